/* verbs_norm.c: the verbs of batch and local response normalisation for target ref. */
#include <string.h>

#include "ref/verbs.h"

pn_op *pn_batch_norm_init(pn_stage *stage, const pn_batch_norm_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->norm.def = *def;
    op->norm.shape = (ref_channels){.batch = def->x->dim[0], .channels = def->x->dim[1]};
    op->norm.shape.size = pn_tensor_floats(def->x) / (def->x->dim[0] * def->x->dim[1]);
    const int64_t need = 2 * op->norm.shape.channels * (int64_t)sizeof(float);
    if (def->statistics.memory != NULL && def->statistics.bytes < need)
        pn_fail(stage, "%s: the statistics have %lld bytes, need %lld", def->name, (long long)def->statistics.bytes,
                (long long)need);
    ref_op_reads(op, def->x);
    if (def->skip != NULL)
        ref_op_reads(op, def->skip);
    ref_op_writes(op, def->y);
    return op;
}

static void normalise(pn_op *op, const float *x, const float *skip, const float *scale, const float *shift,
                      const float *mean, const float *variance, float *y)
{
    const pn_batch_norm_def *def = &op->norm.def;
    ref_op_check(op, def->x, REF_VALUE, x);
    ref_op_check(op, def->y, REF_VALUE, y);
    ref_norm_forward(&op->norm.shape, def->epsilon, x, scale, shift, mean, variance, y);
    if (def->skip != NULL) {
        ref_op_check(op, def->skip, REF_VALUE, skip);
        ref_accumulate(y, skip, pn_tensor_floats(def->y));
    }
    if (def->relu)
        ref_relu(y, pn_tensor_floats(def->y));
}

void pn_batch_norm_forward(pn_op *op, const float *x, const float *skip, const float *scale, const float *shift,
                           float *statistics, float *y)
{
    float *variance = statistics + op->norm.shape.channels;
    ref_norm_statistics(&op->norm.shape, x, statistics, variance);
    normalise(op, x, skip, scale, shift, statistics, variance, y);
}

void pn_batch_norm_backward(pn_op *op, const float *x, const float *y, float *gy, const float *scale,
                            const float *statistics, float *gx, float *gskip, float *gscale, float *gshift)
{
    const pn_batch_norm_def *def = &op->norm.def;
    ref_op_check(op, def->x, REF_VALUE, x);
    ref_op_check(op, def->y, REF_GRADIENT, gy);
    if (gx != NULL)
        ref_op_check(op, def->x, REF_GRADIENT, gx);
    if (def->relu) {
        ref_op_check(op, def->y, REF_VALUE, y);
        ref_relu_mask(y, gy, pn_tensor_floats(def->y));
    }
    if (gskip != NULL) {
        ref_op_check(op, def->skip, REF_GRADIENT, gskip);
        memcpy(gskip, gy, sizeof *gskip * (size_t)pn_tensor_floats(def->y));
    }
    ref_norm_backward(&op->norm.shape, def->epsilon, x, gy, scale, statistics, statistics + op->norm.shape.channels, gx,
                      gscale, gshift);
}

void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance)
{
    ref_norm_track(&op->norm.shape, op->norm.def.momentum, statistics, statistics + op->norm.shape.channels,
                   running_mean, running_variance);
}

void pn_batch_norm_test(pn_op *op, const float *x, const float *skip, const float *scale, const float *shift,
                        const float *running_mean, const float *running_variance, float *y)
{
    normalise(op, x, skip, scale, shift, running_mean, running_variance, y);
}

pn_op *pn_lrn_init(pn_stage *stage, const pn_lrn_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    const int64_t *x = def->x->dim;
    op->lrn.def = *def;
    op->lrn.shape = (ref_lrn){{x[0], x[1], x[2] * x[3]}, def->size, def->alpha, def->beta, def->k};
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_lrn_forward(pn_op *op, const float *x, float *y)
{
    ref_op_check(op, op->lrn.def.x, REF_VALUE, x);
    ref_op_check(op, op->lrn.def.y, REF_VALUE, y);
    ref_lrn_forward(&op->lrn.shape, x, y);
}

void pn_lrn_backward(pn_op *op, const float *x, const float *gy, float *gx)
{
    ref_op_check(op, op->lrn.def.x, REF_VALUE, x);
    ref_op_check(op, op->lrn.def.y, REF_GRADIENT, gy);
    ref_op_check(op, op->lrn.def.x, REF_GRADIENT, gx);
    ref_lrn_backward(&op->lrn.shape, x, gy, gx);
}
