/* flatten.c: a tensor of any rank as a vector in plain order. Where only linear reads it, fuse drops it. */
#include "ops/common.h"

static bool shape(ShapeContext *c)
{
    return shape_need(c, 0, 0) && shape_set(c, 1, (int64_t[]){shape_count(shape_in(c, 0))});
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 0, 0);
}

static int64_t count(const EvalContext *c)
{
    return c->batch * shape_count(&c->node->shape);
}

static void eval(const EvalContext *c)
{
    ref_concat_put(1, count(c), count(c), 0, c->in[0], c->out);
}

static void eval_gradients(const EvalContext *c)
{
    if (c->grad_in[0] != NULL)
        ref_accumulate(c->grad_in[0], c->grad_out, count(c));
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_flatten_init(stage, &(pn_flatten_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_flatten_forward(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_flatten_backward(%s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
              emit_gradient_in(e, node, 0));
}

static void emit_kernels(Emit *e, const Node *node)
{
    const int64_t items = kernel_items(e, node);
    const char *plane = kernel_plane(e, graph_in_shape(emit_graph(e), node, 0));
    emit_kernel(e, node, "forward", emit_blocks(items), "value_t *y, const value_t *x",
                arena_printf(emit_arena(e), "flatten<%lld, %s>(y, x)", (long long)items, plane));
    emit_kernel(e, node, "backward", emit_blocks(items), "value_t *gx, const value_t *gy",
                arena_printf(emit_arena(e), "flatten_backward<%lld, %s>(gx, gy)", (long long)items, plane));
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

const OpDef op_flatten = {
    .name = "flatten",
    .doc = "a tensor as a vector in plain order: f32[C,H,W] to f32[C*H*W]",
    .min_in = 1,
    .max_in = 1,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
