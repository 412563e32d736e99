/* toolkit.h: the CUDA toolkit, for target cuda: where its libraries are, and compiling kernels with NVRTC.
 *
 * pnetc is built without it: NVRTC is opened when it is needed. Looked for in $CUDA_HOME, in /usr/local/cuda, and where
 * Debian and Ubuntu put libraries. No GPU and no driver is needed for anything here. */
#ifndef PNETC_TOOLKIT_H
#define PNETC_TOOLKIT_H

#include "diag.h"

/* The file of a library, "cudart": libcudart.so.N with the highest N, or libcudart.so. NULL: not there. */
const char *toolkit_library(Arena *arena, const char *name);
/* "13.0" of NVRTC; NULL: not there, or it cannot be opened. */
const char *toolkit_nvrtc_version(Arena *arena);

/* ---- cubin.c: what a cubin, an ELF file, says of one of its kernels ---- */
typedef struct {
    const char *name;
    int parameters, bytes; /* bytes: of all parameters, with the gaps between them */
    int registers;         /* of a thread; of several cubins the most */
    int stack, spill;      /* bytes of a thread, likewise: what NVRTC's log says */
} KernelFact;
typedef VEC(KernelFact) KernelFacts;
/* Adds the kernels of a cubin, or what it needs more than the facts already say. False: it is no cubin as we know
 * them. */
bool cubin_facts(Arena *arena, const unsigned char *cubin, size_t size, KernelFacts *facts);
/* Adds stack and spills, from the log of a compilation with --ptxas-options=-v. */
void ptxas_facts(const char *log, KernelFacts *facts);

/* ---- nvrtc.c ---- */
typedef struct {
    int sm; /* 90: sm_90; 0: PTX */
    unsigned char *bytes;
    size_t size;
} Binary;
typedef struct {
    Binary *binary;
    int count;
    KernelFacts facts;
} KernelImage;
enum { MOST_HEADERS = 32 };
/* What a source includes, by the names that it includes them by: "cuda/kernels.cuh". */
typedef struct {
    const char *name[MOST_HEADERS], *text[MOST_HEADERS];
    int count;
} KernelHeaders;
/* Compiles a source for each architecture, and to PTX for newer ones. Same texts, same bytes. NULL after P0610, with
 * NVRTC's messages. */
KernelImage *nvrtc_compile(Arena *arena, Diags *diags, const char *path, const char *source,
                           const KernelHeaders *headers, const int *sm, int count);

#endif
