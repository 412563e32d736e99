/* plan.h: one convolution as an execution plan of cuDNN's backend graph API; a dense layer is a 1x1 convolution of 1x1
 * images. Channels last. cuDNN only describes and runs: no other part of the runtime sees its types.
 *
 * Everything is f32, or, with bf16, all tensors are bf16, the gradient of the weights too (of the engines that cuDNN 9.19
 * can plan without a GPU none gives it in f32), and what is computed is f32: products of bf16 are exact in it. Biases
 * stay f32, which no such engine takes: then bias and relu are left to a kernel. */
#ifndef PN_CUDA_PLAN_H
#define PN_CUDA_PLAN_H

#include <cudnn.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum { CUDA_FORWARD, CUDA_DATA, CUDA_FILTER, CUDA_PASSES } cuda_pass; /* gives y, gx, gw */
typedef struct {
    int64_t batch, in, height, width, out, out_height, out_width; /* channels in, out */
    int64_t groups, kernel, stride, pad, dilation;
    bool bias, relu; /* behind the forward, in the same plan; not with bf16 */
    bool bf16;
} cuda_shape;

/* Where a plan is for: a GPU (handle), or one that is only described (device: a DEVICEPROP descriptor; cuDNN 9.8); and
 * what its engine may do to numbers, by cuDNN's notes: else it repeats bit for bit and computes in f32 throughout. */
typedef struct {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
    bool tf32;             /* it may round what it multiplies to TF32 */
    bool nondeterministic; /* it may sum in an order that varies */
    bool exact;            /* it must not go by Winograd or Fourier transforms */
} cuda_place;

/* cuDNN's number of an engine and what its knobs are set to, as one word: "39:1=4:13=0". */
enum { CUDA_ENGINE = 160 };

typedef struct {
    cudnnBackendDescriptor_t descriptor;
    int64_t workspace; /* bytes */
    char engine[CUDA_ENGINE];
    bool bias, relu; /* it does these, too */
} cuda_plan;

/* Plans of the engines that cuDNN's heuristics list and that do as `place` says, best first, `most` of them at most.
 * Gives how many; 0: `why` says what cuDNN said. */
int cuda_plan_make(cuda_plan *plan, int most, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                   char *why, size_t size);
/* The plan of one engine, by its word. False: there is none that does as `place` says; `why`. */
bool cuda_plan_of(cuda_plan *plan, const char *engine, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                  char *why, size_t size);
void cuda_plan_free(cuda_plan *plan);
/* x, w, y: of the pass, each read or written as it says; b: where the plan has a bias. 0, or cuDNN's status. */
cudnnStatus_t cuda_plan_run(const cuda_plan *plan, cudnnHandle_t handle, const void *x, const void *w, const float *b,
                            const void *y, void *workspace);

#endif
