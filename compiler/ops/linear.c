/* linear.c: a fully connected layer, y = w x + b. A tensor of higher rank is read in its plain order: no flatten
 * needed. */
#include "ops/common.h"

enum { OUT, BIAS, INIT, BIAS_INIT };

static bool shape(ShapeContext *c)
{
    const Attr *attr = c->node->attr;
    if (!shape_need(c, 0, 0))
        return false;
    const int64_t in = shape_count(shape_in(c, 0)), out = attr[OUT].i;
    return shape_set(c, 1, &out) && shape_weight(c, "weight", attr[INIT].init, in, out, 2, (int64_t[]){out, in}) &&
           (!attr[BIAS].i || shape_weight(c, "bias", attr[BIAS_INIT].init, in, out, 1, &out));
}

static Cost cost(const Graph *graph, const Node *node)
{
    const double in = count_in(graph, node, 0), out = count_out(node);
    const double macs = in * out, bias = node->attr[BIAS].i ? out : 0;
    return (Cost){.macs = macs,
                  .forward = 2 * macs + bias,
                  .backward_data = 2 * macs,
                  .backward_weights = 2 * macs + bias,
                  .forward_bytes = 4 * (in + out),
                  .backward_bytes = 4 * (2 * in + 2 * out)}; /* gy twice, x in; gx out */
}

static void eval(const EvalContext *c)
{
    ref_linear_forward(c->batch, shape_count(eval_shape(c, 0)), c->node->shape.dim[0], c->in[0], c->param[0],
                       c->node->attr[BIAS].i ? c->param[1] : NULL, c->out);
}

static void eval_gradients(const EvalContext *c)
{
    const int64_t in = shape_count(eval_shape(c, 0)), out = c->node->shape.dim[0];
    float *gw = eval_scratch(in * out), *gb = c->node->attr[BIAS].i ? eval_scratch(out) : NULL;
    ref_linear_backward_weights(c->batch, in, out, c->in[0], c->grad_out, gw, gb);
    eval_add(c->grad_param[0], gw, in * out);
    if (gb != NULL)
        eval_add(c->grad_param[1], gb, out);
    if (c->grad_in[0] != NULL) {
        float *gx = eval_scratch(c->batch * in);
        ref_linear_backward_data(c->batch, in, out, c->grad_out, c->param[0], gx);
        eval_add(c->grad_in[0], gx, c->batch * in);
    }
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "%s = pn_linear_init(stage, &(pn_linear_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    emit_line(e, "    .w = %s, .b = %s%s%s});", emit_param(e, node, 0),
              node->attr[BIAS].i ? emit_param(e, node, 1) : "NULL", emit_flag(e, "relu", node->relu),
              emit_flag(e, "data_gradient", emit_gradient_in(e, node, 0) != NULL));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_linear_forward(%s, %s, %s, %s, %s);", emit_op(e, node),
              emit_in(e, node, 0), emit_weight(e, node, 0), node->attr[BIAS].i ? emit_weight(e, node, 1) : "NULL",
              emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_relu_mask(e, node);
    const char *gx = emit_gradient_in(e, node, 0);
    if (gx != NULL)
        emit_call(e, node, NULL, "pn_linear_backward_data(%s, %s, %s, %s);", emit_op(e, node),
                  emit_gradient_out(e, node), emit_weight(e, node, 0), gx);
}

static void emit_weights(Emit *e, const Node *node)
{
    const char *gy = emit_gradient_out(e, node);
    emit_call(e, node, NULL, "pn_linear_backward_weights(%s, %s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              gy, emit_gradient_weight(e, node, 0), node->attr[BIAS].i ? emit_gradient_weight(e, node, 1) : "NULL");
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

const OpDef op_linear = {
    .name = "linear",
    .doc = "fully connected layer: any tensor, read in plain order, to f32[out]",
    .min_in = 1,
    .max_in = 1,
    .attr =
        {
            [OUT] = {.name = "out", .kind = ATTR_INT, .required = true, .low = 1, .high = 1 << 30, .doc = "outputs"},
            [BIAS] = {.name = "bias",
                      .kind = ATTR_BOOL,
                      .fallback = 1,
                      .high = 1,
                      .doc = "adds one trainable number per output"},
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
