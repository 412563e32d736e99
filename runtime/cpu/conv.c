/* conv.c: convolution. The activations keep the layout they have; only when the library has nothing but its reference
 * code for it may it choose another, and a reorder is put between. The forward's choice of layout is y's and the
 * weights'. Algorithm: direct, which is exact on small integers and sums in one order. */
#include "cpu.h"

typedef struct {
    const pn_conv_def *def;
    cpu_stage *stage;
    dnn_window window;
    int64_t weight_dim[5];
    int weight_rank;
    dnn_layout any_x, any_w, any_y, bias; /* bias NULL: none */
} shapes;

static shapes shapes_of(pn_stage *stage, const pn_conv_def *d)
{
    shapes s = {.def = d, .stage = cpu_open(stage)};
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (int64_t)d->dilation * (d->kernel - 1) + 1;
        s.window.kernel[i] = d->kernel;
        s.window.stride[i] = d->stride;
        s.window.dilation[i] = d->dilation - 1;
        s.window.low[i] = d->pad;
        s.window.high[i] = (d->y->dim[2 + i] - 1) * d->stride + reach - d->x->dim[2 + i] - d->pad;
    }
    int n = 0;
    if (d->groups > 1)
        s.weight_dim[n++] = d->groups;
    s.weight_dim[n++] = d->y->dim[1] / d->groups;
    s.weight_dim[n++] = d->x->dim[1] / d->groups;
    s.weight_dim[n++] = d->kernel;
    s.weight_dim[n++] = d->kernel;
    s.weight_rank = n;
    s.any_x = dnn_any(4, d->x->dim);
    s.any_y = dnn_any(4, d->y->dim);
    s.any_w = dnn_any(n, s.weight_dim);
    s.bias = d->b ? dnn_plain(1, &d->y->dim[1]) : NULL;
    return s;
}

static dnnl_primitive_desc_t create(const shapes *s, dnn_pass pass, dnn_layout x, dnn_layout y,
                                    dnnl_primitive_desc_t hint)
{
    const bool forward = pass == DNN_FORWARD;
    return dnn_convolution(s->stage->engine, pass, x, s->any_w, pass == DNN_BACKWARD_DATA ? NULL : s->bias, y,
                           &s->window, forward && s->def->relu, hint);
}

/* With the layouts that x and y have, else with those that the library likes. */
static dnnl_primitive_desc_t pick(const shapes *s, dnn_pass pass, dnn_layout x, dnn_layout y,
                                  dnnl_primitive_desc_t hint, const char *what)
{
    dnnl_primitive_desc_t made = create(s, pass, x, y, hint);
    if (!made || cpu_is_slow(made)) {
        dnnl_primitive_desc_t free_choice = create(s, pass, s->any_x, s->any_y, hint);
        if (free_choice && (!made || !cpu_is_slow(free_choice))) {
            if (made)
                dnn_need(dnnl_primitive_desc_destroy(made), "descriptor");
            made = free_choice;
        } else if (free_choice) {
            dnn_need(dnnl_primitive_desc_destroy(free_choice), "descriptor");
        }
    }
    if (!made)
        pn_fail(NULL, "%s: oneDNN has no %s for this convolution", s->def->name, what);
    cpu_warn_if_slow(s->def->name, what, made);
    return made;
}

pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_conv_def *d = &op->def.conv;
    op->def.conv = *def;
    const shapes s = shapes_of(stage, d);
    const pn_layout *x = cpu_layout(stage, d->x);

    dnnl_primitive_desc_t forward = pick(&s, DNN_FORWARD, x->stored, s.any_y, NULL, "forward");
    const pn_layout *y = cpu_choose(stage, d->y, dnn_wants(forward, dnnl_query_dst_md));
    const pn_layout *w =
        cpu_choose_param(stage, d->w, s.weight_rank, s.weight_dim, dnn_wants(forward, dnnl_query_weights_md));

    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_bank_param(&op->w, stage, "the weights", d->w, w->stored);
    if (d->b)
        cpu_bank_param(&op->b, stage, "the bias", d->b, s.bias);

    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, DNNL_ARG_SRC, dnn_wants(forward, dnnl_query_src_md), false);
    cpu_call_port(&op->forward, &op->w, DNNL_ARG_WEIGHTS, dnn_wants(forward, dnnl_query_weights_md), false);
    cpu_call_port(&op->forward, &op->y, DNNL_ARG_DST, dnn_wants(forward, dnnl_query_dst_md), true);
    if (d->b)
        cpu_call_port(&op->forward, &op->b, DNNL_ARG_BIAS, s.bias, false);
    cpu_call_close(&op->forward, forward);

    dnnl_primitive_desc_t weights =
        pick(&s, DNN_BACKWARD_WEIGHTS, x->stored, y->stored, forward, "gradient of weights");
    cpu_call_open(&op->backward_weights, stage, d->name);
    cpu_call_port(&op->backward_weights, &op->x, DNNL_ARG_SRC, dnn_wants(weights, dnnl_query_src_md), false);
    cpu_call_port(&op->backward_weights, &op->y, DNNL_ARG_DIFF_DST, dnn_wants(weights, dnnl_query_diff_dst_md), false);
    cpu_call_port(&op->backward_weights, &op->w, DNNL_ARG_DIFF_WEIGHTS, dnn_wants(weights, dnnl_query_diff_weights_md),
                  true);
    if (d->b)
        cpu_call_port(&op->backward_weights, &op->b, DNNL_ARG_DIFF_BIAS, s.bias, true);
    cpu_call_close(&op->backward_weights, weights);

    if (d->data_gradient) {
        dnnl_primitive_desc_t data = pick(&s, DNN_BACKWARD_DATA, x->stored, y->stored, forward, "gradient of data");
        cpu_call_open(&op->backward_data, stage, d->name);
        cpu_call_port(&op->backward_data, &op->y, DNNL_ARG_DIFF_DST, dnn_wants(data, dnnl_query_diff_dst_md), false);
        cpu_call_port(&op->backward_data, &op->w, DNNL_ARG_WEIGHTS, dnn_wants(data, dnnl_query_weights_md), false);
        cpu_call_port(&op->backward_data, &op->x, DNNL_ARG_DIFF_SRC, dnn_wants(data, dnnl_query_diff_src_md), true);
        cpu_call_close(&op->backward_data, data);
    }
    return op;
}

void pn_conv_forward(pn_op *op, const float *x, const float *w, const float *b, float *y)
{
    cpu_run(&op->forward, (const void *const[]){x, w, y, b});
}

void pn_conv_backward_data(pn_op *op, const float *gy, const float *w, float *gx)
{
    cpu_run(&op->backward_data, (const void *const[]){gy, w, gx});
}

void pn_conv_backward_weights(pn_op *op, const float *x, const float *gy, float *gw, float *gb)
{
    cpu_run(&op->backward_weights, (const void *const[]){x, gy, gw, gb});
}
