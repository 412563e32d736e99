/* add.c: the sum of two tensors of one shape; `a + b` in the language. Its gradient is the arriving one, for both. */
#include "ops/common.h"

static bool shape(ShapeContext *c)
{
    if (!shape_need(c, 0, 0) || !shape_need(c, 1, 0))
        return false;
    const Shape *a = shape_in(c, 0), *b = shape_in(c, 1);
    if (!shape_equal(a, b)) {
        shape_error(c, P0304, -1, 0, "add: %s and %s differ", shape_text(c->arena, a), shape_text(c->arena, b));
        const Node *other = &c->graph->node[c->node->in[1]];
        diag_note(c->diags, other->span, "%s is %s", other->name, shape_text(c->arena, b));
        return false;
    }
    return shape_set(c, a->rank, a->dim);
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 1, 0);
}

static int64_t count(const EvalContext *c)
{
    return c->batch * shape_count(&c->node->shape);
}

static void eval(const EvalContext *c)
{
    ref_add(c->in[0], c->in[1], c->out, count(c));
}

static void eval_gradients(const EvalContext *c)
{
    for (int i = 0; i < 2; i++)
        if (c->grad_in[i] != NULL)
            ref_accumulate(c->grad_in[i], c->grad_out, count(c));
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "%s = pn_add_init(stage, &(pn_add_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .a = %s, .b = %s, .y = %s%s});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_in(e, node, 1), emit_tensor_out(e, node), emit_flag(e, "relu", node->relu));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_add_forward(%s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_in(e, node, 1), emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_relu_mask(e, node);
    for (int i = 0; i < 2; i++) {
        const char *gx = emit_gradient_in(e, node, i);
        if (gx != NULL)
            emit_call(e, node, NULL, "pn_add_backward(%s, %d, %s, %s);", emit_op(e, node), i,
                      emit_gradient_out(e, node), gx);
    }
}

static void emit_kernels(Emit *e, const Node *node)
{
    const int64_t items = kernel_items(e, node);
    emit_kernel(e, node, "forward", emit_blocks(items), "value_t *y, const value_t *a, const value_t *b",
                arena_printf(emit_arena(e), "add<%lld, %s>(y, a, b)", (long long)items, node->relu ? "true" : "false"));
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

const OpDef op_add = {
    .name = "add",
    .doc = "the sum of two tensors of one shape; also written a + b",
    .min_in = 2,
    .max_in = 2,
    .flags = OP_RELU_FUSES,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
