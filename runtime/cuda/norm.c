/* norm.c: batch normalisation: sums over all rows in two steps, then one pass over the elements. */
#include "cuda/cuda.h"

pn_op *pn_batch_norm_init(pn_stage *stage, const pn_batch_norm_def *def)
{
    pn_op *op = cuda_op_new(stage, def->name);
    cuda_op_writes(def->y);
    op->norm.channels = def->x->dim[1];
    op->norm.part = cuda_kernel_find(stage, def->name, "part", "pp");
    op->norm.statistics = cuda_kernel_find(stage, def->name, "statistics", "ppp");
    op->norm.apply = cuda_kernel_find(stage, def->name, "apply", "ppppppp");
    op->norm.gradient_part = cuda_kernel_find(stage, def->name, "gradient_part", "ppppp");
    op->norm.gradient = cuda_kernel_find(stage, def->name, "gradient", "pppp");
    op->norm.backward = cuda_kernel_find(stage, def->name, "backward", "ppppppppp");
    op->norm.track = cuda_kernel_find(stage, def->name, "track", "ppp");
    cuda_sums_need(stage, op->norm.part.blocks);
    return op;
}

void pn_batch_norm_forward(pn_op *op, const void *x, const void *skip, const float *scale, const float *shift,
                           float *statistics, void *y)
{
    float *part = cuda_stage_of(op->stage)->sums, *variance = statistics + op->norm.channels;
    CUDA_LAUNCH(op->stage, &op->norm.part, 0, &part, &x);
    CUDA_LAUNCH(op->stage, &op->norm.statistics, 0, &statistics, &part, &x);
    CUDA_LAUNCH(op->stage, &op->norm.apply, 0, &y, &x, &skip, &scale, &shift, &statistics, &variance);
}

void pn_batch_norm_backward(pn_op *op, const void *x, const void *y, void *gy, const float *scale,
                            const float *statistics, void *gx, void *gskip, float *gscale, float *gshift)
{
    float *part = cuda_stage_of(op->stage)->sums;
    CUDA_LAUNCH(op->stage, &op->norm.gradient_part, 0, &part, &gy, &y, &x, &statistics);
    CUDA_LAUNCH(op->stage, &op->norm.gradient, 0, &gscale, &gshift, &part, &statistics);
    if (gx || gskip)
        CUDA_LAUNCH(op->stage, &op->norm.backward, 0, &gx, &gskip, &gy, &y, &x, &scale, &statistics, &gscale, &gshift);
}

void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance)
{
    CUDA_LAUNCH(op->stage, &op->norm.track, 0, &running_mean, &running_variance, &statistics);
}

void pn_batch_norm_test(pn_op *op, const void *x, const void *skip, const float *scale, const float *shift,
                        const float *running_mean, const float *running_variance, void *y)
{
    CUDA_LAUNCH(op->stage, &op->norm.apply, 0, &y, &x, &skip, &scale, &shift, &running_mean, &running_variance);
}
