/* doctor.c: what this machine has for building programs: a line a thing, with its version and place. See build.h.
 *
 * Libraries are looked up by asking the compiler to read their header: what it finds is what a program would get. */
#include "build.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target.h"
#include "toolkit.h"

typedef struct {
    Arena *arena;
    FILE *out;
    const char *self, *compiler; /* the compiler's file; NULL: none */
    bool broken;
} Doctor;

static void line(Doctor *d, const char *state, const char *thing, const char *what, const char *where)
{
    fprintf(d->out, "%-8s  %-12s  %s", state, thing, what);
    if (where)
        fprintf(d->out, "  (%s)", where);
    fputc('\n', d->out);
}

static void missing(Doctor *d, bool needed, const char *thing, const char *purpose, const char *package)
{
    line(d, needed ? "MISSING" : "absent", thing, purpose, arena_printf(d->arena, "apt install %s", package));
    d->broken |= needed;
}

/* The first line of `file --version`, or of `file -V`. */
static const char *version_of(Doctor *d, const char *file)
{
    static const char *const options[] = {"--version", "-V"};
    for (int i = 0; i < COUNT(options); i++) {
        char *argv[] = {arena_printf(d->arena, "%s", file), arena_printf(d->arena, "%s", options[i]), NULL};
        Text said = text_new(d->arena);
        if (run_captured(argv, &said, NULL))
            continue;
        const char *start = said.data + strspn(said.data, "\n");
        return arena_text(d->arena, start, strcspn(start, "\n"));
    }
    return "does not tell its version";
}

static void tool(Doctor *d, bool needed, const char *name, const char *purpose, const char *package)
{
    const char *file = find_program(d->arena, name);
    if (file)
        line(d, "ok", name, version_of(d, file), file);
    else
        missing(d, needed, name, purpose, package);
}

static void compiler(Doctor *d)
{
    const char *name = getenv("CC");
    const bool chosen = name && *name;
    if (!chosen)
        name = "cc";
    const char *word = arena_text(d->arena, name, strcspn(name, " \t"));
    d->compiler = find_program(d->arena, word);
    if (!d->compiler)
        missing(d, true, "C compiler",
                arena_printf(d->arena, "'%s' is not there%s", word, chosen ? ", but CC names it" : ""), "gcc");
    else
        line(d, "ok", "C compiler", version_of(d, d->compiler), d->compiler);
}

/* Where the compiler finds a header, and the values of macros in it. false: it does not. */
static bool header(Doctor *d, const char *name, const char *const *macro, int macros, const char **place,
                   const char **value)
{
    if (!d->compiler)
        return false;
    char *argv[] = {arena_printf(d->arena, "%s", d->compiler), "-E",        "-dD", "-x", "c", "-include",
                    arena_printf(d->arena, "%s", name),        "/dev/null", NULL};
    Text said = text_new(d->arena);
    if (run_captured(argv, &said, NULL))
        return false;
    *place = NULL;
    for (int i = 0; i < macros; i++)
        value[i] = "?";
    for (const char *at = said.data; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        const size_t length = strcspn(at, "\n");
        if (*at != '#')
            continue;
        const char *text = arena_text(d->arena, at, length);
        const char *open = strchr(text, '"'), *ends = open ? strchr(open + 1, '"') : NULL;
        const size_t name_length = strlen(name);
        if (text[1] == ' ' && ends && (size_t)(ends - open - 1) > name_length && !*place &&
            !strncmp(ends - name_length, name, name_length))
            *place = arena_text(d->arena, open + 1, (size_t)(ends - open - 1));
        for (int i = 0; i < macros; i++) {
            const char *define = arena_printf(d->arena, "#define %s ", macro[i]);
            if (!strncmp(text, define, strlen(define)))
                value[i] = text + strlen(define) + strspn(text + strlen(define), " ");
        }
    }
    return true;
}

static bool library(Doctor *d, bool needed, const char *thing, const char *name, const char *const *macro, int macros,
                    const char *purpose, const char *package)
{
    const char *place, *value[3];
    if (!header(d, name, macro, macros, &place, value)) {
        missing(d, needed, thing, purpose, package);
        return false;
    }
    Text version = text_new(d->arena);
    for (int i = 0; i < macros; i++) {
        if (i)
            text_append(&version, ".", 1);
        for (const char *c = value[i]; *c; c++)
            if (*c != '"') /* of string macros */
                text_append(&version, c, 1);
    }
    line(d, "ok", thing, version.data, place);
    return true;
}

static void runtime(Doctor *d)
{
    const Runtime runtime = runtime_find(d->arena, d->self);
    const char *pn = arena_printf(d->arena, "%s/pn.h", runtime.include);
    const char *core = runtime_library(d->arena, &runtime, "pn_core");
    const bool whole = !access(pn, R_OK) && !access(core, R_OK);
    line(d, whole ? "ok" : "MISSING", "runtime",
         whole ? PNETC_VERSION : "pn.h or libpn_core.a: run make in the sources, or make install", whole ? core : pn);
    d->broken |= !whole;
}

/* The CUDA toolkit is not in Debian's main section: NVIDIA's packages, or wheels, with CUDA_HOME naming their
 * folder. */
static bool toolkit(Doctor *d)
{
    static const struct {
        const char *library, *purpose;
    } parts[] = {{"cudart", "the CUDA runtime, for target cuda"}, {"cudnn", "convolutions of target cuda"}};
    bool whole = true;
    for (int i = 0; i < COUNT(parts); i++) {
        const char *file = toolkit_library(d->arena, parts[i].library);
        line(d, file ? "ok" : "absent", parts[i].library, parts[i].purpose, file ? file : "CUDA toolkit 13, cuDNN 9");
        whole &= file != NULL;
    }
    const char *nccl = toolkit_library(d->arena, "nccl");
    line(d, nccl ? "ok" : "absent", "nccl", "several GPUs, for programs of target cuda",
         nccl ? nccl : "NCCL 2.9 or newer");
    const char *version = toolkit_nvrtc_version(d->arena);
    line(d, version ? "ok" : "absent", "NVRTC", version ? version : "compiles the kernels of target cuda",
         version ? toolkit_library(d->arena, "nvrtc") : "CUDA toolkit 13");
    return whole && version;
}

static void targets(Doctor *d)
{
    static const char *const dnnl[] = {"DNNL_VERSION_MAJOR", "DNNL_VERSION_MINOR", "DNNL_VERSION_PATCH"};
    const Runtime runtime = runtime_find(d->arena, d->self);
    const bool onednn = library(d, false, "oneDNN", "oneapi/dnnl/dnnl_version.h", dnnl, COUNT(dnnl),
                                "the kernels of target cpu", "libdnnl-dev");
    const bool cuda = toolkit(d);
    int usable = 0;
    for (int i = 0; i < TARGET_COUNT; i++) {
        const TargetDef *target = target_table[i];
        const char *file = runtime_library(d->arena, &runtime, target->library);
        const bool there = !access(file, R_OK) && (target->id != TARGET_cpu || onednn) && (!target->device || cuda);
        usable += there;
        line(d, there ? "ok" : "absent", arena_printf(d->arena, "target %s", target->name), target->doc,
             there            ? file
             : target->device ? "not built: install the CUDA toolkit and cuDNN, then run make"
                              : "not built: install oneDNN, then run make");
    }
    d->broken |= !usable;
    line(d, "absent", "MPI", "not in this version", NULL);
}

int doctor(const char *self, FILE *out)
{
    static const char *const zlib[] = {"ZLIB_VERSION"}, *const jansson[] = {"JANSSON_VERSION"};
    Doctor d = {.arena = arena_new(), .out = out, .self = self};
    line(&d, "ok", "pnetc", PNETC_VERSION, self_file(d.arena, self));
    compiler(&d);
    tool(&d, true, "make", "builds programs", "make");
    runtime(&d);
    library(&d, true, "zlib", "zlib.h", zlib, COUNT(zlib), "reads compressed data", "zlib1g-dev");
    library(&d, true, "jansson", "jansson.h", jansson, COUNT(jansson), "metrics and checkpoints", "libjansson-dev");
    targets(&d);
    tool(&d, false, "dot", "pnetc draw --format=svg", "graphviz");
    tool(&d, false, "gnuplot", "pnetc plot", "gnuplot-nox");
    tool(&d, false, "chromium", "tests the page of pnetc report", "chromium");
    tool(&d, false, "prove", "runs the tests of pnetc itself", "perl");
    tool(&d, false, "clang-format", "checks the sources of pnetc itself", "clang-format");
    fprintf(out, "\n%s\n",
            d.broken ? "programs cannot be built here: see MISSING above" : "programs can be built here");
    const int status = d.broken ? 1 : 0;
    arena_free(d.arena);
    return status;
}
