/* nvrtc.c: CUDA's run-time compiler, opened when it is needed: no header and no library of the toolkit is wanted to
 * build pnetc. The prototypes are those of nvrtc.h, whose C interface has not changed since CUDA 8. See toolkit.h. */
#include "toolkit.h"

#include <dlfcn.h>
#include <string.h>

typedef struct Program *Handle;
typedef struct {
    int (*version)(int *major, int *minor);
    const char *(*error_text)(int error);
    int (*create)(Handle *program, const char *source, const char *name, int headers, const char *const *header,
                  const char *const *header_name);
    int (*destroy)(Handle *program);
    int (*compile)(Handle program, int count, const char *const *option);
    int (*log_size)(Handle program, size_t *size);
    int (*log)(Handle program, char *text);
    int (*cubin_size)(Handle program, size_t *size);
    int (*cubin)(Handle program, char *bytes);
    int (*ptx_size)(Handle program, size_t *size);
    int (*ptx)(Handle program, char *bytes);
} Nvrtc;

static const char *const names[] = {"nvrtcVersion",        "nvrtcGetErrorString", "nvrtcCreateProgram",
                                    "nvrtcDestroyProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
                                    "nvrtcGetProgramLog",  "nvrtcGetCUBINSize",   "nvrtcGetCUBIN",
                                    "nvrtcGetPTXSize",     "nvrtcGetPTX"};

/* Stays open to the end of the process. NULL, or why not. */
static const char *open_library(Arena *arena, Nvrtc *nvrtc)
{
    void *function[COUNT(names)];
    const char *file = toolkit_library(arena, "nvrtc");
    if (!file)
        return "libnvrtc is not there: install the CUDA toolkit, or set CUDA_HOME to its folder";
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    for (int i = 0; i < COUNT(names); i++) {
        function[i] = dlsym(library, names[i]);
        if (!function[i])
            return arena_printf(arena, "%s has no %s", file, names[i]);
    }
    memcpy(nvrtc, function, sizeof *nvrtc); /* POSIX: functions and objects have addresses of one kind */
    return NULL;
}

const char *toolkit_nvrtc_version(Arena *arena)
{
    Nvrtc nvrtc;
    int major = 0, minor = 0;
    if (open_library(arena, &nvrtc) || nvrtc.version(&major, &minor))
        return NULL;
    return arena_printf(arena, "%d.%d", major, minor);
}

typedef struct {
    Arena *arena;
    Diags *diags;
    Nvrtc nvrtc;
    const char *path, *source;
    const KernelHeaders *headers;
} Compiler;

static const char *log_of(Compiler *c, Handle program)
{
    size_t size = 0;
    if (c->nvrtc.log_size(program, &size) || size == 0)
        return "";
    char *text = arena_alloc(c->arena, size + 1);
    return c->nvrtc.log(program, text) ? "" : text;
}

static bool failed(Compiler *c, const char *arch, int error, const char *log)
{
    diag_error(c->diags, P0610, (Span){0}, "%s cannot be compiled for %s: %s", c->path, arch,
               c->nvrtc.error_text(error));
    if (*log)
        diag_note(c->diags, (Span){0}, "NVRTC says:\n%s", log);
    return false;
}

static bool compile(Compiler *c, int sm, Binary *binary, KernelFacts *facts)
{
    const char *arch = sm ? arena_printf(c->arena, "sm_%d", sm) : "compute_75";
    const char *option[] = {arena_printf(c->arena, "--gpu-architecture=%s", arch), "--std=c++17", "--ptxas-options=-v"};
    const char *name = strrchr(c->path, '/');
    Handle program = NULL;
    int error = c->nvrtc.create(&program, c->source, name ? name + 1 : c->path, c->headers->count, c->headers->text,
                                c->headers->name);
    if (error)
        return failed(c, arch, error, "");
    error = c->nvrtc.compile(program, COUNT(option), option);
    const char *log = log_of(c, program);
    if (!error)
        error = sm ? c->nvrtc.cubin_size(program, &binary->size) : c->nvrtc.ptx_size(program, &binary->size);
    if (!error) {
        binary->sm = sm;
        binary->bytes = arena_alloc(c->arena, binary->size);
        error = sm ? c->nvrtc.cubin(program, (char *)binary->bytes) : c->nvrtc.ptx(program, (char *)binary->bytes);
    }
    c->nvrtc.destroy(&program);
    if (error)
        return failed(c, arch, error, log);
    if (sm && !cubin_facts(c->arena, binary->bytes, binary->size, facts)) {
        diag_error(c->diags, P0610, (Span){0}, "NVRTC's binary of %s for %s is not as pnetc knows them", c->path, arch);
        return false;
    }
    ptxas_facts(log, facts);
    return true;
}

KernelImage *nvrtc_compile(Arena *arena, Diags *diags, const char *path, const char *source,
                           const KernelHeaders *headers, const int *sm, int count)
{
    Compiler c = {.arena = arena, .diags = diags, .path = path, .source = source, .headers = headers};
    const char *why = open_library(arena, &c.nvrtc);
    if (why) {
        diag_error(diags, P0610, (Span){0}, "%s cannot be compiled: %s", path, why);
        return NULL;
    }
    KernelImage *image = arena_alloc(arena, sizeof *image);
    image->binary = arena_alloc(arena, sizeof *image->binary * (size_t)(count + 1));
    for (int i = 0; i < count; i++)
        if (!compile(&c, sm[i], &image->binary[image->count++], &image->facts))
            return NULL;
    return compile(&c, 0, &image->binary[image->count++], &image->facts) ? image : NULL;
}
