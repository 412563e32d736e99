/* conv.c: 2-d convolution (cross-correlation, as all frameworks have it) with square kernel, stride, zero padding,
 * dilation, groups and bias. Depthwise is groups = input channels. */
#include "ops/common.h"

enum { OUT, KERNEL, STRIDE, PAD, DILATION, GROUPS, BIAS, INIT, BIAS_INIT };

static bool shape(ShapeContext *c)
{
    const Attr *attr = c->node->attr;
    if (!shape_need(c, 0, 3))
        return false;
    const int64_t *in = shape_in(c, 0)->dim;
    const int64_t out = attr[OUT].i, kernel = attr[KERNEL].i, groups = attr[GROUPS].i;
    if (in[0] % groups != 0)
        return shape_error(c, P0302, GROUPS, 0, "conv: %lld input channels do not divide into %lld groups",
                           (long long)in[0], (long long)groups);
    if (out % groups != 0)
        return shape_error(c, P0302, GROUPS, -1, "conv: %lld output channels do not divide into %lld groups",
                           (long long)out, (long long)groups);
    const int64_t height = ref_conv_size(in[1], kernel, attr[STRIDE].i, attr[PAD].i, attr[DILATION].i);
    const int64_t width = ref_conv_size(in[2], kernel, attr[STRIDE].i, attr[PAD].i, attr[DILATION].i);
    if (height == 0 || width == 0) {
        const int64_t spread = attr[DILATION].i * (kernel - 1) + 1;
        return shape_error(
            c, P0301, KERNEL, 0, "conv: a %lldx%lld kernel does not fit into a %lldx%lld image with pad = %lld",
            (long long)spread, (long long)spread, (long long)in[1], (long long)in[2], (long long)attr[PAD].i);
    }
    const int64_t weight[4] = {out, in[0] / groups, kernel, kernel};
    int64_t fan_in = 0; /* overflow: the weight is too large, said below */
    checked_mul(weight[1], kernel * kernel, &fan_in);
    const int64_t fan_out = out / groups * kernel * kernel;
    return shape_set(c, 3, (int64_t[]){out, height, width}) &&
           shape_weight(c, "weight", attr[INIT].init, fan_in, fan_out, 4, weight) &&
           (!attr[BIAS].i || shape_weight(c, "bias", attr[BIAS_INIT].init, fan_in, fan_out, 1, &out));
}

static Cost cost(const Graph *graph, const Node *node)
{
    const double in = count_in(graph, node, 0), out = count_out(node);
    const Attr *attr = node->attr;
    const double window = (double)graph_in_shape(graph, node, 0)->dim[0] / (double)attr[GROUPS].i *
                          (double)(attr[KERNEL].i * attr[KERNEL].i);
    const double macs = out * window;
    return (Cost){.macs = macs,
                  .forward = 2 * macs + (attr[BIAS].i ? out : 0),
                  .backward_data = 2 * macs,
                  .backward_weights = 2 * macs + (attr[BIAS].i ? out : 0),
                  .forward_bytes = 4 * (in + out),
                  .backward_bytes = 4 * (2 * in + 2 * out)}; /* gy twice, x in; gx out */
}

static ref_conv plain(const EvalContext *c)
{
    const Shape *in = eval_shape(c, 0), *out = &c->node->shape;
    const Attr *attr = c->node->attr;
    return (ref_conv){.batch = c->batch,
                      .in = in->dim[0],
                      .height = in->dim[1],
                      .width = in->dim[2],
                      .out = out->dim[0],
                      .out_height = out->dim[1],
                      .out_width = out->dim[2],
                      .groups = attr[GROUPS].i,
                      .kernel = attr[KERNEL].i,
                      .stride = attr[STRIDE].i,
                      .pad = attr[PAD].i,
                      .dilation = attr[DILATION].i};
}

static void eval(const EvalContext *c)
{
    const ref_conv conv = plain(c);
    ref_conv_forward(&conv, c->in[0], c->param[0], c->node->attr[BIAS].i ? c->param[1] : NULL, c->out);
}

static void eval_gradients(const EvalContext *c)
{
    const ref_conv conv = plain(c);
    const int64_t weights = conv.out * (conv.in / conv.groups) * conv.kernel * conv.kernel;
    float *gw = eval_scratch(weights), *gb = c->node->attr[BIAS].i ? eval_scratch(conv.out) : NULL;
    ref_conv_backward_weights(&conv, c->in[0], c->grad_out, gw, gb);
    eval_add(c->grad_param[0], gw, weights);
    if (gb != NULL)
        eval_add(c->grad_param[1], gb, conv.out);
    if (c->grad_in[0] != NULL) {
        const int64_t n = conv.batch * conv.in * conv.height * conv.width;
        float *gx = eval_scratch(n);
        ref_conv_backward_data(&conv, c->grad_out, c->param[0], gx);
        eval_add(c->grad_in[0], gx, n);
    }
}

static void emit_init(Emit *e, const Node *node)
{
    const Attr *attr = node->attr;
    emit_call(e, node, remark_relu(node), "%s = pn_conv_init(stage, &(pn_conv_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    emit_line(e, "    .w = %s, .b = %s,", emit_param(e, node, 0), attr[BIAS].i ? emit_param(e, node, 1) : "NULL");
    emit_line(e, "    .groups = %d, .kernel = %d, .stride = %d, .pad = %d, .dilation = %d%s%s});", (int)attr[GROUPS].i,
              (int)attr[KERNEL].i, (int)attr[STRIDE].i, (int)attr[PAD].i, (int)attr[DILATION].i,
              emit_flag(e, "relu", node->relu), emit_flag(e, "data_gradient", emit_gradient_in(e, node, 0) != NULL));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_conv_forward(%s, %s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_weight(e, node, 0), node->attr[BIAS].i ? emit_weight(e, node, 1) : "NULL", emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_relu_mask(e, node);
    const char *gx = emit_gradient_in(e, node, 0);
    if (gx != NULL)
        emit_call(e, node, NULL, "pn_conv_backward_data(%s, %s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
                  emit_weight(e, node, 0), gx);
}

static void emit_weights(Emit *e, const Node *node)
{
    const char *gy = emit_gradient_out(e, node);
    emit_call(e, node, NULL, "pn_conv_backward_weights(%s, %s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0), gy,
              emit_gradient_weight(e, node, 0), node->attr[BIAS].i ? emit_gradient_weight(e, node, 1) : "NULL");
}

static void emit_kernels(Emit *e, const Node *node)
{
    kernel_bias(e, node, node->attr[BIAS].i);
}

static const OpEmit verbs = {.init = emit_init,
                             .forward = emit_forward,
                             .backward = emit_backward,
                             .weights = emit_weights,
                             .kernels = emit_kernels};

const OpDef op_conv = {
    .name = "conv",
    .doc = "2-d convolution of an image f32[C,H,W] to f32[out,H',W'], H' = (H + 2 pad - dilation (kernel - 1) - 1) / "
           "stride + 1",
    .min_in = 1,
    .max_in = 1,
    .attr =
        {
            [OUT] = {.name = "out",
                     .kind = ATTR_INT,
                     .required = true,
                     .low = 1,
                     .high = 1 << 24,
                     .doc = "output channels"},
            [KERNEL] = {.name = "kernel",
                        .kind = ATTR_INT,
                        .required = true,
                        .low = 1,
                        .high = 4096,
                        .doc = "rows and columns of the window"},
            [STRIDE] = {.name = "stride",
                        .kind = ATTR_INT,
                        .fallback = 1,
                        .low = 1,
                        .high = 4096,
                        .doc = "step of the window"},
            [PAD] = {.name = "pad",
                     .kind = ATTR_INT,
                     .fallback = 0,
                     .low = 0,
                     .high = 4096,
                     .doc = "zeros added on each side"},
            [DILATION] = {.name = "dilation",
                          .kind = ATTR_INT,
                          .fallback = 1,
                          .low = 1,
                          .high = 4096,
                          .doc = "distance between the window's elements"},
            [GROUPS] = {.name = "groups",
                        .kind = ATTR_INT,
                        .fallback = 1,
                        .low = 1,
                        .high = 1 << 24,
                        .doc = "independent groups of channels"},
            [BIAS] = {.name = "bias",
                      .kind = ATTR_BOOL,
                      .fallback = 1,
                      .high = 1,
                      .doc = "adds one trainable number per output channel"},
            [INIT] = {.name = "init",
                      .kind = ATTR_INIT,
                      .init = {.kind = INIT_HE},
                      .doc = "initial weights: he, xavier, gaussian, uniform, constant"},
            [BIAS_INIT] =
                {.name = "bias_init", .kind = ATTR_INIT, .init = {.kind = INIT_CONSTANT}, .doc = "initial biases"},
        },
    .nattrs = BIAS_INIT + 1,
    .flags = OP_WEIGHTED | OP_RELU_FUSES | OP_WEIGHT_PART,
    .needs = NEEDS_IN0,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
