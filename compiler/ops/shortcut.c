/* shortcut.c: the identity shortcut of residual units, option A of He et al. 2015: where the unit has a stride or more
 * channels, every stride-th pixel, and channels of zeros on both sides. No parameters. Without any change it is the
 * identity, which fuse drops. */
#include "ops/common.h"

enum { CHANNELS, STRIDE };

static bool shape(ShapeContext *c)
{
    const Attr *attr = c->node->attr;
    if (!shape_need(c, 0, 3))
        return false;
    const int64_t *in = shape_in(c, 0)->dim;
    if (attr[CHANNELS].i < in[0])
        return shape_error(c, P0309, CHANNELS, 0, "shortcut: %lld channels cannot hold the %lld of the input",
                           (long long)attr[CHANNELS].i, (long long)in[0]);
    return shape_set(c, 3,
                     (int64_t[]){attr[CHANNELS].i, (in[1] - 1) / attr[STRIDE].i + 1, (in[2] - 1) / attr[STRIDE].i + 1});
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 0, 0);
}

static ref_shortcut plain(const EvalContext *c)
{
    const int64_t *in = eval_shape(c, 0)->dim, *out = c->node->shape.dim;
    return (ref_shortcut){c->batch, in[0], in[1], in[2], out[0], c->node->attr[STRIDE].i};
}

static void eval(const EvalContext *c)
{
    const ref_shortcut shortcut = plain(c);
    ref_shortcut_forward(&shortcut, c->in[0], c->out);
}

static void eval_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    const ref_shortcut shortcut = plain(c);
    const int64_t n = c->batch * shape_count(eval_shape(c, 0));
    float *gx = eval_scratch(n);
    ref_shortcut_backward(&shortcut, c->grad_out, gx);
    eval_add(c->grad_in[0], gx, n);
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_shortcut_init(stage, &(pn_shortcut_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s, .stride = %d});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node), (int)node->attr[STRIDE].i);
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_shortcut_forward(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_shortcut_backward(%s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
              emit_gradient_in(e, node, 0));
}

static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    const int64_t *in = graph_in_shape(emit_graph(e), node, 0)->dim, *out = node->shape.dim,
                  stride = node->attr[STRIDE].i;
    const ref_shortcut shape = {emit_graph(e)->batch, in[0], in[1], in[2], out[0], stride};
    const char *text = arena_printf(a, "Shortcut<%lld, %lld, %lld, %lld, %lld, %lld, %lld>", (long long)shape.batch,
                                    (long long)in[0], (long long)in[1], (long long)in[2], (long long)out[0],
                                    (long long)ref_shortcut_before(&shape), (long long)stride);
    emit_kernel(e, node, "forward", emit_blocks(kernel_items(e, node)), "value_t *y, const value_t *x",
                arena_printf(a, "shortcut<%s>(y, x)", text));
    emit_kernel(e, node, "backward", emit_blocks(kernel_items_in(e, node, 0)), "value_t *gx, const value_t *gy",
                arena_printf(a, "shortcut_backward<%s>(gx, gy)", text));
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

const OpDef op_shortcut = {
    .name = "shortcut",
    .doc = "identity of a residual unit (option A): every stride-th pixel of f32[C,H,W], zeros as further channels on "
           "both "
           "sides",
    .min_in = 1,
    .max_in = 1,
    .attr = {[CHANNELS] = {.name = "channels",
                           .kind = ATTR_INT,
                           .required = true,
                           .low = 1,
                           .high = 1 << 24,
                           .doc = "of the output, at least the input's"},
             [STRIDE] = {.name = "stride",
                         .kind = ATTR_INT,
                         .fallback = 1,
                         .low = 1,
                         .high = 4096,
                         .doc = "of rows and columns"}},
    .nattrs = STRIDE + 1,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
