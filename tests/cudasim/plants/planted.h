/* planted.h: what the programs with planted bugs share. Each plant is a small program as pnetc generates them, with a
 * switch: right, it must run without a report; wrong, the double must name what is wrong. */
#pragma once
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void pn_sim_region(const void *start, size_t bytes, const char *name) __attribute__((weak));
extern void pn_sim_stream(cudaStream_t stream, const char *name) __attribute__((weak));

#define CUDA(CALL)                                                                                                     \
    do {                                                                                                               \
        cudaError_t error_ = (CALL);                                                                                   \
        if (error_ != cudaSuccess) {                                                                                   \
            fprintf(stderr, "planted: %s: %s\n", #CALL, cudaGetErrorString(error_));                                   \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

enum { N = 1000 };

/* A stage: an arena with named buffers, a stream, kernels. */
typedef struct stage {
    char *arena;
    float *image, *activation, *gradient, *weight; /* N floats each, in the arena; nothing of image is written yet */
    cudaStream_t stream;
    cudaLibrary_t library;
} stage;
void open_stage(stage *s, int number);
cudaKernel_t kernel_of(const stage *s, const char *name);
/* Blocks of 256 threads. */
cudaError_t start(cudaKernel_t kernel, cudaStream_t stream, int blocks, void **arguments);
cudaError_t scale(const stage *s, cudaStream_t stream, float *y, const float *x, int n); /* y = 2 x */
void fill_image(const stage *s);                                                         /* waited for */
const float *pattern(void); /* N floats of the host, pageable */

typedef struct plant {
    const char *name;
    void (*run)(int wrong);
} plant;
extern const plant memory_plants[], order_plants[], kernel_plants[], graph_plants[], dnn_plants[],
    nccl_plants[]; /* last: no name */
