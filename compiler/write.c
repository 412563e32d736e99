/* write.c: files to a folder. See emit.h.
 *
 * Every changed file is first written completely beside its place and flushed to the disk; only when all are there do
 * they take their places, each by one rename. An error on the way removes what was newly made, folders too, and leaves
 * the files of before as they were. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "emit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    Arena *arena;
    Diags *diags;
    VEC(const char *) made;   /* folders, outermost first */
    VEC(const char *) staged; /* temporary files */
    VEC(const char *) place;  /* where they go */
} Writing;

static bool failed(Writing *w, Code code, const char *action, const char *path, int error)
{
    diag_error(w->diags, code, (Span){0}, "cannot %s %s: %s", action, path, strerror(error));
    if (error == EACCES || error == EROFS || error == EPERM)
        diag_hint(w->diags, "choose a folder that you may write to, with -o");
    else if (error == ENOSPC || error == EDQUOT)
        diag_hint(w->diags, "make room on that disk, or choose a folder on another one, with -o");
    return false;
}

static void undo(Writing *w)
{
    for (int i = 0; i < w->staged.count; i++)
        unlink(w->staged.at[i]); /* nothing more can be done about a failure here */
    for (int i = w->made.count - 1; i >= 0; i--)
        rmdir(w->made.at[i]);
    w->staged.count = w->made.count = 0;
}

static bool make_folder(Writing *w, const char *folder)
{
    struct stat status;
    if (!stat(folder, &status)) {
        if (S_ISDIR(status.st_mode))
            return true;
        diag_error(w->diags, P0603, (Span){0}, "%s is there and is no folder", folder);
        diag_hint(w->diags, "choose another folder with -o");
        return false;
    }
    if (errno != ENOENT)
        return failed(w, P0603, "make the folder", folder, errno);
    const char *slash = strrchr(folder, '/');
    while (slash && slash > folder && slash[1] == '\0') { /* a slash at the end */
        folder = arena_text(w->arena, folder, (size_t)(slash - folder));
        slash = strrchr(folder, '/');
    }
    if (slash && slash > folder && !make_folder(w, arena_text(w->arena, folder, (size_t)(slash - folder))))
        return false;
    if (mkdir(folder, 0777))
        return failed(w, P0603, "make the folder", folder, errno);
    *vec_push(w->arena, &w->made) = folder;
    return true;
}

/* Whether the file holds exactly this. Any trouble with reading counts as a difference. */
static bool same(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    bool equal = true;
    char part[1 << 14];
    while (equal) {
        const size_t n = fread(part, 1, sizeof part, file);
        if (!n)
            break;
        equal = n <= length && !memcmp(part, text, n);
        text += n;
        length -= n;
    }
    equal = equal && !length && !ferror(file);
    fclose(file);
    return equal;
}

static bool write_all(int file, const char *text, size_t length)
{
    while (length) {
        const ssize_t n = write(file, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        length -= (size_t)n;
    }
    return true;
}

/* Writes a temporary file beside `path`, unless nothing would change. */
static bool stage(Writing *w, const char *path, const char *text, size_t length)
{
    struct stat status;
    const bool exists = !stat(path, &status);
    if (exists && !S_ISREG(status.st_mode))
        return failed(w, P0604, "write", path, S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
    if (exists && same(path, text, length))
        return true;
    char *temporary = arena_printf(w->arena, "%s.XXXXXX", path);
    const int file = mkstemp(temporary);
    if (file < 0)
        return failed(w, P0604, "write", path, errno);
    *vec_push(w->arena, &w->staged) = temporary;
    *vec_push(w->arena, &w->place) = path;
    const mode_t mask = umask(0);
    umask(mask);
    bool good =
        write_all(file, text, length) && !fchmod(file, exists ? status.st_mode & 07777 : 0666 & ~mask) && !fsync(file);
    int error = errno;
    if (close(file) && good) {
        good = false;
        error = errno;
    }
    return good || failed(w, P0604, "write", path, error);
}

static bool commit(Writing *w)
{
    for (int i = 0; i < w->staged.count; i++)
        if (rename(w->staged.at[i], w->place.at[i]))
            return failed(w, P0604, "write", w->place.at[i], errno);
    w->staged.count = 0;
    return true;
}

bool write_files(Arena *arena, Diags *diags, const char *folder, const Files *files)
{
    Writing w = {.arena = arena, .diags = diags};
    bool good = make_folder(&w, folder);
    for (int i = 0; good && i < files->count; i++)
        good = stage(&w, arena_printf(arena, "%s/%s", folder, files->file[i].name), files->file[i].text,
                     files->file[i].length);
    good = good && commit(&w);
    if (!good)
        undo(&w);
    return good;
}

bool write_text(Arena *arena, Diags *diags, const char *path, const char *text, size_t length)
{
    Writing w = {.arena = arena, .diags = diags};
    char *target = realpath(path, NULL); /* a link stays a link */
    const char *place = target ? arena_text(arena, target, strlen(target)) : path;
    free(target);
    const bool good = stage(&w, place, text, length) && commit(&w);
    if (!good)
        undo(&w);
    return good;
}
