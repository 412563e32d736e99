/* conv.c: convolution. The activations keep the layout they have; only when the library has nothing but its reference
 * code for it may it choose another, and a reorder is put between. The direct forward's choice of layout is y's and the
 * weights'. Algorithm, for each pass: direct, which is exact on small integers; or Winograd's, by the kernels of
 * winograd.h where these layouts are theirs, else by the library if it has it: no layout depends on the choice. */
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
    return dnn_convolution(s->stage->engine, pass, dnnl_convolution_direct, x, s->any_w,
                           pass == DNN_BACKWARD_DATA ? NULL : s->bias, y, &s->window, forward && s->def->relu, hint);
}

/* NULL: there is none. */
static dnnl_primitive_desc_t create_winograd(const pn_op *op, const shapes *s, dnn_pass pass,
                                             dnnl_primitive_desc_t hint)
{
    const pn_conv_def *d = s->def;
    if (d->kernel != 3 || d->stride != 1 || d->dilation != 1 || d->groups != 1)
        return NULL;
    dnnl_primitive_desc_t made = dnn_convolution(s->stage->engine, pass, dnnl_convolution_winograd, op->x.layout,
                                                 op->w.layout, pass == DNN_BACKWARD_DATA ? NULL : s->bias, op->y.layout,
                                                 &s->window, pass == DNN_FORWARD && d->relu, hint);
    if (made && cpu_is_slow(made)) {
        dnn_need(dnnl_primitive_desc_destroy(made), "descriptor");
        return NULL;
    }
    return made;
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

static const char *const pass_name[] = {
    [DNN_FORWARD] = "forward", [DNN_BACKWARD_DATA] = "backward_data", [DNN_BACKWARD_WEIGHTS] = "backward_weights"};

/* The layouts that a pass wants. */
typedef struct {
    dnn_layout x, w, y;
} wishes;

static wishes wishes_of(dnnl_primitive_desc_t made, dnn_pass pass)
{
    return (wishes){
        .x = dnn_wants(made, pass == DNN_BACKWARD_DATA ? dnnl_query_diff_src_md : dnnl_query_src_md),
        .w = dnn_wants(made, pass == DNN_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md),
        .y = dnn_wants(made, pass == DNN_FORWARD ? dnnl_query_dst_md : dnnl_query_diff_dst_md)};
}

/* The call of a pass: its ports in the order of the verb's pointers. */
static void open_call(cpu_call *call, const pn_op *op, const shapes *s, dnn_pass pass, pn_algorithm algorithm,
                      const wishes *wants)
{
    cpu_call_open(call, op->stage, op->name);
    call->pass = pass_name[pass];
    call->algorithm = algorithm;
    switch (pass) {
    case DNN_BACKWARD_DATA:
        cpu_call_port(call, &op->y, DNNL_ARG_DIFF_DST, wants->y, false);
        cpu_call_port(call, &op->w, DNNL_ARG_WEIGHTS, wants->w, false);
        cpu_call_port(call, &op->x, DNNL_ARG_DIFF_SRC, wants->x, true);
        break;
    case DNN_BACKWARD_WEIGHTS:
        cpu_call_port(call, &op->x, DNNL_ARG_SRC, wants->x, false);
        cpu_call_port(call, &op->y, DNNL_ARG_DIFF_DST, wants->y, false);
        cpu_call_port(call, &op->w, DNNL_ARG_DIFF_WEIGHTS, wants->w, true);
        if (s->bias)
            cpu_call_port(call, &op->b, DNNL_ARG_DIFF_BIAS, s->bias, true);
        break;
    default:
        cpu_call_port(call, &op->x, DNNL_ARG_SRC, wants->x, false);
        cpu_call_port(call, &op->w, DNNL_ARG_WEIGHTS, wants->w, false);
        cpu_call_port(call, &op->y, DNNL_ARG_DST, wants->y, true);
        if (s->bias)
            cpu_call_port(call, &op->b, DNNL_ARG_BIAS, s->bias, false);
        break;
    }
}

static void open_library(cpu_call *call, const pn_op *op, const shapes *s, dnn_pass pass, pn_algorithm algorithm,
                         dnnl_primitive_desc_t made)
{
    const wishes wants = wishes_of(made, pass);
    open_call(call, op, s, pass, algorithm, &wants);
    cpu_call_close(call, made);
}

/* winograd NULL: by our own kernels. */
static void open_winograd(cpu_call *call, const pn_op *op, const shapes *s, dnn_pass pass,
                          dnnl_primitive_desc_t winograd)
{
    if (winograd) {
        open_library(call, op, s, pass, PN_WINOGRAD, winograd);
        return;
    }
    open_call(call, op, s, pass, PN_WINOGRAD, &(wishes){op->x.layout, op->w.layout, op->y.layout});
    cpu_winograd_close(call, &op->winograd, pass);
}

/* The pass as the run wants it: direct, Winograd's, or both, to be measured. */
static void open_pass(cpu_call *call, const pn_op *op, const shapes *s, dnn_pass pass, dnnl_primitive_desc_t direct,
                      dnnl_primitive_desc_t hint)
{
    const char *name = pass_name[pass];
    const bool own = op->winograd.in > 0;
    dnnl_primitive_desc_t winograd = op->stage->run->algorithms && !own ? create_winograd(op, s, pass, hint) : NULL;
    const pn_algorithm chosen =
        pn_algorithm_of(op->stage, op->name, name, own || winograd, own && winograd_wins(&op->winograd));
    if (chosen == PN_WINOGRAD)
        open_winograd(call, op, s, pass, winograd);
    else
        open_library(call, op, s, pass, PN_DIRECT, direct);
    if (chosen == PN_DIRECT && winograd)
        dnn_need(dnnl_primitive_desc_destroy(winograd), "descriptor");
    if (chosen == PN_WINOGRAD && pass != DNN_FORWARD) /* layouts are the forward's */
        dnn_need(dnnl_primitive_desc_destroy(direct), "descriptor");
    if (chosen == PN_ALGORITHMS) {
        cpu_choice *choice = cpu_choice_new(call, name);
        if (own || winograd)
            open_winograd(&choice->winograd, op, s, pass, winograd);
    }
}

pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_conv_def *d = &op->def.conv;
    op->def.conv = *def;
    const shapes s = shapes_of(stage, d);
    const pn_layout *x = cpu_layout(stage, d->x);

    dnnl_primitive_desc_t forward = pick(&s, DNN_FORWARD, x->stored, s.any_y, NULL, "forward");
    op->chose = forward;
    const pn_layout *y = cpu_choose(stage, d->y, dnn_wants(forward, dnnl_query_dst_md));
    const pn_layout *w =
        cpu_choose_param(stage, d->w, s.weight_rank, s.weight_dim, dnn_wants(forward, dnnl_query_weights_md));

    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_bank_param(&op->w, stage, "the weights", d->w, w->stored);
    if (d->b)
        cpu_bank_param(&op->b, stage, "the bias", d->b, s.bias);
    if (!cpu_winograd_of(&op->winograd, d, op))
        op->winograd.in = 0;

    open_pass(&op->forward, op, &s, DNN_FORWARD, forward, NULL);
    open_pass(&op->backward_weights, op, &s, DNN_BACKWARD_WEIGHTS,
              pick(&s, DNN_BACKWARD_WEIGHTS, x->stored, y->stored, forward, "gradient of weights"), forward);
    if (d->data_gradient)
        open_pass(&op->backward_data, op, &s, DNN_BACKWARD_DATA,
                  pick(&s, DNN_BACKWARD_DATA, x->stored, y->stored, forward, "gradient of data"), forward);
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
