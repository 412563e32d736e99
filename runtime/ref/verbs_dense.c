/* verbs_dense.c: the verbs of the ops with weights, conv and linear, for target ref. */
#include "ref/verbs.h"

pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    const int64_t *x = def->x->dim, *y = def->y->dim;
    op->conv.def = *def;
    op->conv.shape = (ref_conv){.batch = x[0],
                                .in = x[1],
                                .height = x[2],
                                .width = x[3],
                                .out = y[1],
                                .out_height = y[2],
                                .out_width = y[3],
                                .groups = def->groups,
                                .kernel = def->kernel,
                                .stride = def->stride,
                                .pad = def->pad,
                                .dilation = def->dilation};
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_conv_forward(pn_op *op, const float *x, const float *w, const float *b, float *y)
{
    const pn_conv_def *def = &op->conv.def;
    ref_op_check(op, def->x, REF_VALUE, x);
    ref_op_check(op, def->y, REF_VALUE, y);
    ref_conv_forward(&op->conv.shape, x, w, b, y);
    if (def->relu)
        ref_relu(y, pn_tensor_floats(def->y));
}

void pn_conv_backward_data(pn_op *op, const float *gy, const float *w, float *gx)
{
    ref_op_check(op, op->conv.def.y, REF_GRADIENT, gy);
    ref_op_check(op, op->conv.def.x, REF_GRADIENT, gx);
    ref_conv_backward_data(&op->conv.shape, gy, w, gx);
}

void pn_conv_backward_weights(pn_op *op, const float *x, const float *gy, float *gw, float *gb)
{
    ref_op_check(op, op->conv.def.x, REF_VALUE, x);
    ref_op_check(op, op->conv.def.y, REF_GRADIENT, gy);
    ref_conv_backward_weights(&op->conv.shape, x, gy, gw, gb);
}

pn_op *pn_linear_init(pn_stage *stage, const pn_linear_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->linear.def = *def;
    op->linear.batch = def->y->dim[0];
    op->linear.in = pn_tensor_floats(def->x) / def->x->dim[0];
    op->linear.out = def->y->dim[1];
    ref_op_reads(op, def->x);
    ref_op_writes(op, def->y);
    return op;
}

void pn_linear_forward(pn_op *op, const float *x, const float *w, const float *b, float *y)
{
    const pn_linear_def *def = &op->linear.def;
    ref_op_check(op, def->x, REF_VALUE, x);
    ref_op_check(op, def->y, REF_VALUE, y);
    ref_linear_forward(op->linear.batch, op->linear.in, op->linear.out, x, w, b, y);
    if (def->relu)
        ref_relu(y, pn_tensor_floats(def->y));
}

void pn_linear_backward_data(pn_op *op, const float *gy, const float *w, float *gx)
{
    ref_op_check(op, op->linear.def.y, REF_GRADIENT, gy);
    ref_op_check(op, op->linear.def.x, REF_GRADIENT, gx);
    ref_linear_backward_data(op->linear.batch, op->linear.in, op->linear.out, gy, w, gx);
}

void pn_linear_backward_weights(pn_op *op, const float *x, const float *gy, float *gw, float *gb)
{
    ref_op_check(op, op->linear.def.x, REF_VALUE, x);
    ref_op_check(op, op->linear.def.y, REF_GRADIENT, gy);
    ref_linear_backward_weights(op->linear.batch, op->linear.in, op->linear.out, x, gy, gw, gb);
}
