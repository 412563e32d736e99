/* plan.h: one convolution as an execution plan of cuDNN's backend graph API; a dense layer is a 1x1 convolution of 1x1
 * images. All f32, channels last. cuDNN only describes and runs: no other part of the runtime sees its types. */
#ifndef PN_CUDA_PLAN_H
#define PN_CUDA_PLAN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { CUDA_FORWARD, CUDA_DATA, CUDA_FILTER, CUDA_PASSES } cuda_pass; /* gives y, gx, gw */
typedef struct {
    int64_t batch, in, height, width, out, out_height, out_width; /* channels in, out */
    int64_t groups, kernel, stride, pad, dilation;
    bool bias, relu; /* behind the forward, in the same plan */
} cuda_shape;

/* Where a plan is for: a GPU (handle), or one that is only described (device: a DEVICEPROP descriptor; cuDNN 9.8). */
typedef struct {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
    bool tf32; /* engines may round what they multiply to TF32 */
} cuda_place;

typedef struct {
    cudnnBackendDescriptor_t descriptor;
    int64_t workspace; /* bytes */
    int64_t engine;    /* cuDNN's number, for messages */
    unsigned notes;    /* bit n: cudnnBackendNumericalNote_t n */
    bool bias, relu;   /* it does these, too */
} cuda_plan;

/* The first plan of cuDNN's heuristics whose engine repeats bit for bit, and, unless place->tf32, computes in f32
 * throughout. False: there is none; `why` says what cuDNN said. */
bool cuda_plan_make(cuda_plan *plan, const cuda_place *place, cuda_pass pass, const cuda_shape *shape, char *why,
                    size_t size);
void cuda_plan_free(cuda_plan *plan);
/* x, w, y: of the pass, each read or written as it says; b: where the plan has a bias. 0, or cuDNN's status. */
cudnnStatus_t cuda_plan_run(const cuda_plan *plan, cudnnHandle_t handle, const float *x, const float *w, const float *b,
                            const float *y, void *workspace);

#endif
