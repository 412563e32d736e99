/* load.c: a file and everything it uses -> one Ast, used files first, each file once. Files are the same when device
 * and inode are. A file that `use` cannot read, or that is still being read (a circle), is an error at the `use`. */
#include "ast.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAX_BYTES = (16 << 20) + 1, /* one more than parse() accepts: it says so */
    MAX_DEPTH = 100,            /* files that use each other in a row */
};

typedef struct {
    dev_t device;
    ino_t inode;
    const char *path;
    Span use;     /* where it was asked for */
    bool reading; /* not finished: using it again is a circle */
} Loaded;

typedef struct {
    Arena *arena;
    Diags *diags;
    Sources *sources;
    VEC(Loaded) loaded;
    VEC(Item) item;
    VEC(Comment) comment;
    int depth;
    size_t most; /* bytes of a file; 0: MAX_BYTES */
} Loader;

/* The bytes of an open file; NULL with errno set when reading fails. */
static char *read_all(Loader *l, int descriptor, size_t *length)
{
    Text text = text_new(l->arena);
    char block[16384];
    const size_t most = l->most ? l->most : MAX_BYTES;
    for (;;) {
        ssize_t got = read(descriptor, block, sizeof block);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return NULL;
        size_t wanted = most - text.length;
        text_append(&text, block, (size_t)got < wanted ? (size_t)got : wanted);
        if (got == 0 || text.length == most)
            break;
    }
    *length = text.length;
    return text.data;
}

static void unreadable(Loader *l, const char *path, Span use, const char *reason)
{
    diag_error(l->diags, P0112, use, "cannot read '%s': %s", path, reason);
}

/* `path` in a file at `user`: paths are relative to the using file. */
static const char *beside(Arena *arena, const char *user, const char *path)
{
    const char *slash = strrchr(user, '/');
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(arena, "%.*s%s", (int)(slash - user + 1), user, path);
}

/* False: `path` need not be read again, or must not be. */
static bool is_new(Loader *l, const struct stat *status, const char *path, Span use)
{
    for (int i = 0; i < l->loaded.count; i++) {
        const Loaded *other = &l->loaded.at[i];
        if (other->device != status->st_dev || other->inode != status->st_ino)
            continue;
        if (other->reading) {
            diag_error(l->diags, P0113, use,
                       "'%s' is used while it is being read: the files use each other in a circle", path);
            for (int k = i + 1; k < l->loaded.count; k++)
                if (l->loaded.at[k].reading)
                    diag_note(l->diags, l->loaded.at[k].use, "'%s' is used here", l->loaded.at[k].path);
        }
        return false;
    }
    return true;
}

static const SourceFile *load_file(Loader *l, const char *path, Span use);

static void follow_uses(Loader *l, const Ast *ast)
{
    for (int i = 0; i < ast->nitems; i++) {
        const Item *item = &ast->item[i];
        if (item->kind == ITEM_USE)
            load_file(l, beside(l->arena, ast->file->path, item->value->text), item->value->span);
    }
    for (int i = 0; i < ast->nitems; i++)
        *vec_push(l->arena, &l->item) = ast->item[i];
    for (int i = 0; i < ast->ncomments; i++)
        *vec_push(l->arena, &l->comment) = ast->comment[i];
}

/* Opens and reads; *status is the file's. NULL after an error, or for a file read before. */
static const SourceFile *read_source(Loader *l, const char *path, Span use, struct stat *status)
{
    bool standard_input = strcmp(path, "-") == 0 && !use.at;
    int descriptor = standard_input ? STDIN_FILENO : open(path, O_RDONLY | O_NOCTTY);
    if (descriptor < 0 || fstat(descriptor, status) != 0) {
        unreadable(l, path, use, strerror(errno));
        if (descriptor >= 0 && !standard_input)
            close(descriptor);
        return NULL;
    }
    size_t length = 0;
    char *text = NULL;
    bool fresh = is_new(l, status, path, use);
    if (fresh && S_ISDIR(status->st_mode))
        unreadable(l, path, use, "it is a folder");
    else if (fresh && l->depth == MAX_DEPTH)
        unreadable(l, path, use, "too many files use each other in a row");
    else if (fresh && !(text = read_all(l, descriptor, &length)))
        unreadable(l, path, use, strerror(errno));
    if (!standard_input)
        close(descriptor);
    if (!text)
        return NULL;
    const SourceFile *file = source_add(l->arena, l->sources, standard_input ? "<stdin>" : path, text, length);
    if (!file)
        unreadable(l, path, use, "all files together have over 1 GiB");
    return file;
}

static const SourceFile *load_file(Loader *l, const char *path, Span use)
{
    struct stat status;
    const SourceFile *file = read_source(l, path, use, &status);
    if (!file)
        return NULL;
    int self = l->loaded.count;
    *vec_push(l->arena, &l->loaded) = (Loaded){status.st_dev, status.st_ino, path, use, true};
    l->depth++;
    follow_uses(l, parse(l->arena, l->diags, file));
    l->depth--;
    l->loaded.at[self].reading = false;
    return file;
}

const SourceFile *load_long_text(Arena *arena, Diags *diags, Sources *sources, const char *path, size_t most)
{
    Loader l = {.arena = arena, .diags = diags, .sources = sources, .most = most};
    struct stat status;
    return read_source(&l, path, (Span){0, 0}, &status);
}

const SourceFile *load_text(Arena *arena, Diags *diags, Sources *sources, const char *path)
{
    return load_long_text(arena, diags, sources, path, MAX_BYTES);
}

Ast *load(Arena *arena, Diags *diags, Sources *sources, const char *path)
{
    Loader l = {.arena = arena, .diags = diags, .sources = sources};
    const SourceFile *file = load_file(&l, path, (Span){0, 0});
    Ast *ast = arena_alloc(arena, sizeof *ast);
    *ast = (Ast){
        .item = l.item.at, .nitems = l.item.count, .comment = l.comment.at, .ncomments = l.comment.count, .file = file};
    return ast;
}
