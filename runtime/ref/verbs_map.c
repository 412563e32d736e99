/* verbs_map.c: the verbs of pools and of everything element by element, for target ref. */
#include <string.h>

#include "ref/verbs.h"

static pn_op *pool_init(pn_stage *stage, const pn_pool_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    const int64_t *x = def->x->dim, *y = def->y->dim;
    op->pool.def = *def;
    op->pool.shape = (ref_pool){.planes = x[0] * x[1],
                                .height = x[2],
                                .width = x[3],
                                .out_height = y[2],
                                .out_width = y[3],
                                .kernel_h = def->kernel_h,
                                .kernel_w = def->kernel_w,
                                .stride = def->stride,
                                .pad = def->pad,
                                .count_padding = def->count_padding};
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

pn_op *pn_maxpool_init(pn_stage *stage, const pn_pool_def *def)
{
    pn_op *op = pool_init(stage, def);
    const int64_t need = pn_tensor_floats(def->y) * ref_argmax_bytes(def->kernel_h, def->kernel_w);
    if (def->argmax.memory != NULL && def->argmax.bytes < need)
        pn_fail(stage, "%s: argmax has %lld bytes, needs %lld", def->name, (long long)def->argmax.bytes,
                (long long)need);
    return op;
}

pn_op *pn_avgpool_init(pn_stage *stage, const pn_pool_def *def)
{
    return pool_init(stage, def);
}

static void check_forward(const pn_op *op, const pn_tensor *tx, const float *x, const pn_tensor *ty, const float *y)
{
    ref_op_check(op, tx, REF_VALUE, x);
    ref_op_check(op, ty, REF_VALUE, y);
}

static void check_backward(const pn_op *op, const pn_tensor *tx, const float *gx, const pn_tensor *ty, const float *gy)
{
    ref_op_check(op, tx, REF_GRADIENT, gx);
    ref_op_check(op, ty, REF_GRADIENT, gy);
}

void pn_maxpool_forward(pn_op *op, const float *x, float *y, void *argmax)
{
    const pn_pool_def *def = &op->pool.def;
    check_forward(op, def->x, x, def->y, y);
    ref_maxpool_forward(&op->pool.shape, x, y, argmax);
    if (def->relu)
        ref_relu(y, pn_tensor_floats(def->y));
}

void pn_maxpool_backward(pn_op *op, const float *gy, const void *argmax, float *gx)
{
    check_backward(op, op->pool.def.x, gx, op->pool.def.y, gy);
    ref_maxpool_backward(&op->pool.shape, gy, argmax, gx);
}

void pn_avgpool_forward(pn_op *op, const float *x, float *y)
{
    check_forward(op, op->pool.def.x, x, op->pool.def.y, y);
    ref_avgpool_forward(&op->pool.shape, x, y);
}

void pn_avgpool_backward(pn_op *op, const float *gy, float *gx)
{
    check_backward(op, op->pool.def.x, gx, op->pool.def.y, gy);
    ref_avgpool_backward(&op->pool.shape, gy, gx);
}

pn_op *pn_pointwise_init(pn_stage *stage, const pn_pointwise_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->pointwise = *def;
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_pointwise_forward(pn_op *op, const float *x, float *y)
{
    const pn_pointwise_def *def = &op->pointwise;
    check_forward(op, def->x, x, def->y, y);
    def->forward(x, y, pn_tensor_floats(def->y));
}

void pn_pointwise_backward(pn_op *op, const float *saved, const float *gy, float *gx)
{
    const pn_pointwise_def *def = &op->pointwise;
    ref_op_check(op, def->reads_x ? def->x : def->y, REF_VALUE, saved);
    check_backward(op, def->x, gx, def->y, gy);
    def->backward(saved, gy, gx, pn_tensor_floats(def->y));
}

pn_op *pn_add_init(pn_stage *stage, const pn_add_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->add = *def;
    ref_op_reads(op, def->a);
    ref_op_reads(op, def->b);
    ref_op_writes(op, def->y);
    return op;
}

void pn_add_forward(pn_op *op, const float *a, const float *b, float *y)
{
    const pn_add_def *def = &op->add;
    const int64_t n = pn_tensor_floats(def->y);
    check_forward(op, def->a, a, def->y, y);
    ref_op_check(op, def->b, REF_VALUE, b);
    ref_add(a, b, y, n);
    if (def->relu)
        ref_relu(y, n);
}

void pn_add_backward(pn_op *op, int input, const float *gy, float *gx)
{
    const pn_add_def *def = &op->add;
    check_backward(op, input == 0 ? def->a : def->b, gx, def->y, gy);
    memcpy(gx, gy, sizeof *gx * (size_t)pn_tensor_floats(def->y));
}

pn_op *pn_concat_init(pn_stage *stage, const pn_concat_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->concat.def = *def;
    for (int i = 0; i < def->count; i++) {
        ref_op_reads(op, def->x[i]);
        op->concat.inner[i] = pn_tensor_floats(def->x[i]) / def->x[i]->dim[0];
        op->concat.offset[i] = op->concat.outer;
        op->concat.outer += op->concat.inner[i];
    }
    ref_op_writes(op, def->y);
    return op;
}

void pn_concat_forward(pn_op *op, int input, const float *x, float *y)
{
    const pn_concat_def *def = &op->concat.def;
    check_forward(op, def->x[input], x, def->y, y);
    ref_concat_put(def->y->dim[0], op->concat.inner[input], op->concat.outer, op->concat.offset[input], x, y);
}

void pn_concat_backward(pn_op *op, int input, const float *gy, float *gx)
{
    const pn_concat_def *def = &op->concat.def;
    check_backward(op, def->x[input], gx, def->y, gy);
    ref_concat_get(def->y->dim[0], op->concat.inner[input], op->concat.outer, op->concat.offset[input], gy, gx);
}

pn_op *pn_flatten_init(pn_stage *stage, const pn_flatten_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->flatten = *def;
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_flatten_forward(pn_op *op, const float *x, float *y)
{
    check_forward(op, op->flatten.x, x, op->flatten.y, y);
    memcpy(y, x, sizeof *y * (size_t)pn_tensor_floats(op->flatten.y));
}

void pn_flatten_backward(pn_op *op, const float *gy, float *gx)
{
    check_backward(op, op->flatten.x, gx, op->flatten.y, gy);
    memcpy(gx, gy, sizeof *gx * (size_t)pn_tensor_floats(op->flatten.y));
}

pn_op *pn_shortcut_init(pn_stage *stage, const pn_shortcut_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    const int64_t *x = def->x->dim;
    op->shortcut.def = *def;
    op->shortcut.shape = (ref_shortcut){x[0], x[1], x[2], x[3], def->y->dim[1], def->stride};
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_shortcut_forward(pn_op *op, const float *x, float *y)
{
    check_forward(op, op->shortcut.def.x, x, op->shortcut.def.y, y);
    ref_shortcut_forward(&op->shortcut.shape, x, y);
}

void pn_shortcut_backward(pn_op *op, const float *gy, float *gx)
{
    check_backward(op, op->shortcut.def.x, gx, op->shortcut.def.y, gy);
    ref_shortcut_backward(&op->shortcut.shape, gy, gx);
}

pn_op *pn_dropout_init(pn_stage *stage, const pn_dropout_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->dropout = *def;
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_dropout_forward(pn_op *op, int64_t minibatch, const float *x, float *y, uint8_t *mask)
{
    const pn_dropout_def *def = &op->dropout;
    const int64_t n = pn_tensor_floats(def->y);
    check_forward(op, def->x, x, def->y, y);
    ref_dropout_mask(pn_dropout_key(op->stage->run->seed, def->name, minibatch), def->probability,
                     pn_slice_begin(op->stage, n), n, mask);
    ref_dropout(def->probability, n, x, mask, y);
}

void pn_dropout_backward(pn_op *op, const float *gy, const uint8_t *mask, float *gx)
{
    const pn_dropout_def *def = &op->dropout;
    check_backward(op, def->x, gx, def->y, gy);
    ref_dropout(def->probability, pn_tensor_floats(def->y), gy, mask, gx);
}

void pn_dropout_test(pn_op *op, const float *x, float *y)
{
    check_forward(op, op->dropout.x, x, op->dropout.y, y);
    memcpy(y, x, sizeof *y * (size_t)pn_tensor_floats(op->dropout.y));
}
