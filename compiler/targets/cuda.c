/* cuda.c: the target `cuda`: one NVIDIA GPU; cuDNN for convolutions and dense layers, generated kernels for the rest.
 *
 * Activations of rank 3 are stored with the channels last, weights of convolutions likewise; nothing is padded, so
 * every size is exact. Buffers are places in one block of device memory, not arrays. */
#include "target.h"

static int64_t param_floats(const Graph *graph, int param)
{
    const Param *p = &graph->param[param];
    return size_product(p->dim, p->rank);
}

const TargetDef target_cuda = {
    .id = TARGET_cuda,
    .name = "cuda",
    .doc = "NVIDIA GPU: cuDNN and generated kernels; one GPU, a stream a stage (never run on a real one yet)",
    .library = "pn_cuda",
    .bf16 = true,
    .device = true,
    .value_bytes = plain_value_bytes,
    .aux_bytes = plain_aux_bytes,
    .param_floats = param_floats,
};
