/* build.c: where the runtime is, the flags to use it, and make. See build.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "build.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target.h"
#include "toolkit.h"

static bool is_there(const char *path)
{
    return !access(path, R_OK);
}

const char *self_file(Arena *arena, const char *self)
{
    char path[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n > 0) {
        path[n] = '\0';
        return arena_text(arena, path, (size_t)n);
    }
    const char *found = find_program(arena, self);
    return found && realpath(found, path) ? arena_text(arena, path, strlen(path)) : self;
}

Runtime runtime_find(Arena *arena, const char *self)
{
    const char *file = self_file(arena, self);
    const char *slash = strrchr(file, '/');
    const char *folder = slash ? arena_text(arena, file, (size_t)(slash - file)) : ".";
    Runtime runtime = {arena_printf(arena, "%s/../include/pnetc", folder),
                       arena_printf(arena, "%s/../lib/pnetc", folder)};

    /* In a source tree the executable is in build/, or in a build folder of its own below it. */
    const char *above = folder;
    for (int i = 0; i < 2; i++) {
        above = arena_printf(arena, "%s/..", above);
        if (is_there(arena_printf(arena, "%s/runtime/pn.h", above)))
            runtime = (Runtime){arena_printf(arena, "%s/runtime", above), arena_printf(arena, "%s/lib", folder)};
    }
    char path[PATH_MAX];
    if (realpath(runtime.include, path))
        runtime.include = arena_text(arena, path, strlen(path));
    if (realpath(runtime.lib, path))
        runtime.lib = arena_text(arena, path, strlen(path));
    return runtime;
}

const char *runtime_library(Arena *arena, const Runtime *runtime, const char *library)
{
    return arena_printf(arena, "%s/lib%s.a", runtime->lib, library);
}

/* A path as one word of a shell command. */
static const char *shell_word(Arena *arena, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
    if (strspn(path, plain) == strlen(path))
        return path;
    Text word = text_new(arena);
    text_append(&word, "'", 1);
    for (; *path; path++)
        text_append(&word, *path == '\'' ? "'\\''" : path, *path == '\'' ? 4 : 1);
    text_append(&word, "'", 1);
    return word.data;
}

/* Shared libraries of the toolkit by their files, and the folders they are in for the program. NULL: one is missing. */
static const char *toolkit_flags(Arena *arena)
{
    static const char *const libraries[] = {"cudart", "cudnn", "nccl"}; /* nccl: opened by a program when it needs it */
    enum { LINKED = 2 };
    Text text = text_new(arena);
    for (int i = 0; i < COUNT(libraries); i++) {
        const char *file = toolkit_library(arena, libraries[i]);
        if (!file && i >= LINKED)
            continue;
        if (!file) {
            fprintf(stderr, "pnetc: there is no lib%s.so: install the CUDA toolkit with cuDNN, or set CUDA_HOME\n",
                    libraries[i]);
            return NULL;
        }
        const char *folder = arena_text(arena, file, (size_t)(strrchr(file, '/') - file));
        text_printf(&text, "%s%s%s-Wl,-rpath,%s", i ? " " : "", i < LINKED ? shell_word(arena, file) : "",
                    i < LINKED ? " " : "", shell_word(arena, folder));
    }
    return text.data;
}

static bool print_libraries(Arena *arena, const Runtime *runtime, const TargetDef *target, FILE *out)
{
    const char *kernels = runtime_library(arena, runtime, target->library);
    const char *core = runtime_library(arena, runtime, "pn_core");
    if (!is_there(kernels) || !is_there(core)) {
        fprintf(stderr, "pnetc: there is no %s: this pnetc was built without target '%s' (pnetc doctor)\n",
                is_there(core) ? kernels : core, target->name);
        return false;
    }
    const char *libs = target->libs ? target->libs : toolkit_flags(arena);
    if (!libs)
        return false;
    /* Each of the two libraries needs the other. */
    fprintf(out, "-Wl,--start-group %s %s -Wl,--end-group%s%s -ljansson -lz -lm -pthread\n", shell_word(arena, kernels),
            shell_word(arena, core), *libs ? " " : "", libs);
    return true;
}

bool flags_print(const char *self, const char *what, FILE *out)
{
    Arena *arena = arena_new();
    const Runtime runtime = runtime_find(arena, self);
    const TargetDef *target = target_find(what);
    bool found = false;
    if (!strcmp(what, "cflags")) {
        found = is_there(arena_printf(arena, "%s/pn.h", runtime.include));
        if (found)
            fprintf(out, "-I%s\n", shell_word(arena, runtime.include));
        else
            fprintf(stderr, "pnetc: there is no pn.h in %s\n", runtime.include);
    } else if (target) {
        found = print_libraries(arena, &runtime, target, out);
    } else {
        fprintf(stderr, "pnetc: unknown target '%s'; `pnetc list targets` shows what there is\n", what);
    }
    arena_free(arena);
    return found;
}

/* ---- make ---- */

/* The last lines of what a child said, at most `most` bytes. */
static const char *tail(Arena *arena, const Text *said, size_t most)
{
    size_t length = said->length;
    while (length && said->data[length - 1] == '\n')
        length--;
    size_t start = length > most ? length - most : 0;
    while (start && start < length && said->data[start - 1] != '\n')
        start++;
    return arena_text(arena, said->data + start, length - start);
}

static bool no_tool(Diags *diags, const char *what, const char *name, const char *hint)
{
    diag_error(diags, P0605, (Span){0}, "%s '%s' is not there", what, name);
    diag_hint(diags, "%s", hint);
    return false;
}

bool build_program(Arena *arena, Diags *diags, const char *self, const char *folder, bool quiet)
{
    enum { SHOWN = 4000 };
    const char *compiler = getenv("CC");
    if (!compiler || !*compiler)
        compiler = "cc";
    const char *word = arena_text(arena, compiler, strcspn(compiler, " \t"));
    if (!find_program(arena, word))
        return no_tool(diags, "the C compiler", word, "install gcc (apt install gcc), or set CC to a C compiler");
    if (!find_program(arena, "make"))
        return no_tool(diags, "the program", "make", "install it (apt install make)");

    Text pnetc = text_new(arena);
    text_printf(&pnetc, "PNETC=");
    for (const char *c = self_file(arena, self); *c; c++)
        text_append(&pnetc, *c == '$' ? "$$" : c, *c == '$' ? 2 : 1);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    char *argv[] = {"make",
                    "--silent",
                    "--no-print-directory",
                    arena_printf(arena, "-j%ld", processors > 0 ? processors : 1),
                    "-C",
                    arena_printf(arena, "%s", folder),
                    pnetc.data,
                    NULL};
    Text said = text_new(arena);
    const int code = run_captured(argv, &said, quiet ? NULL : stderr);
    if (!code)
        return true;
    diag_error(diags, P0605, (Span){0}, "make -C %s ended with exit code %d", folder, code);
    if (quiet && said.length)
        diag_note(diags, (Span){0}, "the end of what it said:\n%s", tail(arena, &said, SHOWN));
    diag_hint(diags, "`pnetc doctor` shows what this machine has for building programs");
    return false;
}

/* ---- temporary folders ---- */

char *temporary_folder(Arena *arena, Diags *diags)
{
    const char *parent = getenv("TMPDIR");
    char *folder = arena_printf(arena, "%s/pnetc-XXXXXX", parent && *parent ? parent : "/tmp");
    if (mkdtemp(folder))
        return folder;
    diag_error(diags, P0606, (Span){0}, "cannot make a folder in %s: %s", parent && *parent ? parent : "/tmp",
               strerror(errno));
    return NULL;
}

void remove_folder(const char *folder)
{
    Arena *arena = arena_new();
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        const char *path = arena_printf(arena, "%s/%s", folder, entry->d_name);
        struct stat status;
        if (!lstat(path, &status) && S_ISDIR(status.st_mode))
            remove_folder(path);
        else
            unlink(path);
    }
    if (list)
        closedir(list);
    rmdir(folder);
    arena_free(arena);
}
