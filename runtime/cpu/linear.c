/* linear.c: fully connected layers, as oneDNN's inner product. An x of rank 4 is read in the layout that it has, with
 * the weights as [out, c, h, w]: no flattening. y is plain. */
#include "cpu.h"

static dnnl_primitive_desc_t pick(const pn_op *op, dnn_pass pass, dnn_layout x, dnnl_primitive_desc_t hint,
                                  const char *what)
{
    const pn_linear_def *d = &op->def.linear;
    dnnl_engine_t engine = cpu_open(op->stage)->engine;
    int64_t dim[4] = {d->y->dim[1], d->x->dim[1], d->x->dim[2], d->x->dim[3]};
    const dnn_layout any_x = dnn_any(d->x->rank, d->x->dim), any_w = dnn_any(d->x->rank, dim);
    const dnn_layout y = dnn_plain(2, d->y->dim);
    const dnn_layout bias = d->b && pass != DNN_BACKWARD_DATA ? dnn_plain(1, dim) : NULL;
    const bool relu = d->relu && pass == DNN_FORWARD;
    dnnl_primitive_desc_t made = dnn_inner_product(engine, pass, x, any_w, bias, y, relu, hint);
    if (!made || cpu_is_slow(made)) {
        dnnl_primitive_desc_t free_choice = dnn_inner_product(engine, pass, any_x, any_w, bias, y, relu, hint);
        if (free_choice && made)
            dnn_need(dnnl_primitive_desc_destroy(made), "descriptor");
        if (free_choice)
            made = free_choice;
    }
    if (!made)
        pn_fail(NULL, "%s: oneDNN has no %s for this linear layer", op->name, what);
    cpu_warn_if_slow(op->name, what, made);
    return made;
}

pn_op *pn_linear_init(pn_stage *stage, const pn_linear_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_linear_def *d = &op->def.linear;
    op->def.linear = *def;
    const int64_t dim[4] = {d->y->dim[1], d->x->dim[1], d->x->dim[2], d->x->dim[3]};
    const pn_layout *x = cpu_layout(stage, d->x);
    const pn_layout *y = cpu_choose(stage, d->y, dnn_plain(2, d->y->dim));

    dnnl_primitive_desc_t forward = pick(op, DNN_FORWARD, x->stored, NULL, "forward");
    const pn_layout *w = cpu_choose_param(stage, d->w, d->x->rank, dim, dnn_wants(forward, dnnl_query_weights_md));
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_bank_param(&op->w, stage, "the weights", d->w, w->stored);
    if (d->b)
        cpu_bank_param(&op->b, stage, "the bias", d->b, dnn_plain(1, dim));

    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, DNNL_ARG_SRC, dnn_wants(forward, dnnl_query_src_md), false);
    cpu_call_port(&op->forward, &op->w, DNNL_ARG_WEIGHTS, dnn_wants(forward, dnnl_query_weights_md), false);
    cpu_call_port(&op->forward, &op->y, DNNL_ARG_DST, y->stored, true);
    if (d->b)
        cpu_call_port(&op->forward, &op->b, DNNL_ARG_BIAS, op->b.layout, false);
    cpu_call_close(&op->forward, forward);

    dnnl_primitive_desc_t weights = pick(op, DNN_BACKWARD_WEIGHTS, x->stored, forward, "gradient of weights");
    cpu_call_open(&op->backward_weights, stage, d->name);
    cpu_call_port(&op->backward_weights, &op->x, DNNL_ARG_SRC, dnn_wants(weights, dnnl_query_src_md), false);
    cpu_call_port(&op->backward_weights, &op->y, DNNL_ARG_DIFF_DST, y->stored, false);
    cpu_call_port(&op->backward_weights, &op->w, DNNL_ARG_DIFF_WEIGHTS, dnn_wants(weights, dnnl_query_diff_weights_md),
                  true);
    if (d->b)
        cpu_call_port(&op->backward_weights, &op->b, DNNL_ARG_DIFF_BIAS, op->b.layout, true);
    cpu_call_close(&op->backward_weights, weights);

    if (d->data_gradient) {
        dnnl_primitive_desc_t data = pick(op, DNN_BACKWARD_DATA, x->stored, forward, "gradient of data");
        cpu_call_open(&op->backward_data, stage, d->name);
        cpu_call_port(&op->backward_data, &op->y, DNNL_ARG_DIFF_DST, y->stored, false);
        cpu_call_port(&op->backward_data, &op->w, DNNL_ARG_WEIGHTS, dnn_wants(data, dnnl_query_weights_md), false);
        cpu_call_port(&op->backward_data, &op->x, DNNL_ARG_DIFF_SRC, dnn_wants(data, dnnl_query_diff_src_md), true);
        cpu_call_close(&op->backward_data, data);
    }
    return op;
}

void pn_linear_forward(pn_op *op, const float *x, const float *w, const float *b, float *y)
{
    cpu_run(&op->forward, (const void *const[]){x, w, y, b});
}

void pn_linear_backward_data(pn_op *op, const float *gy, const float *w, float *gx)
{
    cpu_run(&op->backward_data, (const void *const[]){gy, w, gx});
}

void pn_linear_backward_weights(pn_op *op, const float *x, const float *gy, float *gw, float *gb)
{
    cpu_run(&op->backward_weights, (const void *const[]){x, gy, gw, gb});
}
