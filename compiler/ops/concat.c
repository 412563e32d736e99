/* concat.c: tensors joined along their first dimension: the channels of images, the elements of vectors. */
#include "ops/common.h"

enum { MAX_CONCAT = 32 }; /* PN_MAX_CONCAT of runtime/pn_ops.h */

static bool shape(ShapeContext *c)
{
    Shape out = {0};
    for (int i = 0; i < c->node->nin; i++) {
        if (!shape_need(c, i, 0))
            return false;
        const Shape *in = shape_in(c, i);
        if (i == 0) {
            out = *in;
            continue;
        }
        bool same = in->rank == out.rank;
        for (int d = 1; same && d < out.rank; d++)
            same = in->dim[d] == out.dim[d];
        if (!same) {
            const Node *first = &c->graph->node[c->node->in[0]];
            shape_error(c, P0304, -1, i, "concat: %s and %s may differ in the first dimension only",
                        shape_text(c->arena, &first->shape), shape_text(c->arena, in));
            diag_note(c->diags, first->span, "%s is %s", first->name, shape_text(c->arena, &first->shape));
            return false;
        }
        out.dim[0] += in->dim[0]; /* no overflow: 32 values of at most 2^40 elements */
    }
    return shape_set(c, out.rank, out.dim);
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 0, 0);
}

/* Elements per sample before input i. */
static int64_t offset(const Graph *graph, const Node *node, int i)
{
    int64_t before = 0;
    for (int k = 0; k < i; k++)
        before += shape_count(graph_in_shape(graph, node, k));
    return before;
}

static void eval(const EvalContext *c)
{
    for (int i = 0; i < c->node->nin; i++)
        ref_concat_put(c->batch, shape_count(eval_shape(c, i)), shape_count(&c->node->shape),
                       offset(c->graph, c->node, i), c->in[i], c->out);
}

static void eval_gradients(const EvalContext *c)
{
    for (int i = 0; i < c->node->nin; i++) {
        if (c->grad_in[i] == NULL)
            continue;
        const int64_t inner = shape_count(eval_shape(c, i));
        float *gx = eval_scratch(c->batch * inner);
        ref_concat_get(c->batch, inner, shape_count(&c->node->shape), offset(c->graph, c->node, i), c->grad_out, gx);
        eval_add(c->grad_in[i], gx, c->batch * inner);
    }
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_concat_init(stage, &(pn_concat_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .count = %d, .y = %s,", node->name, node->nin, emit_tensor_out(e, node));
    emit_line(e, "    .x = {");
    for (int i = 0; i < node->nin; i++)
        emit_line(e, "        %s%s", emit_tensor_in(e, node, i), i + 1 < node->nin ? "," : "}});");
}

static void emit_forward(Emit *e, const Node *node)
{
    for (int i = 0; i < node->nin; i++)
        emit_call(e, node, NULL, "pn_concat_forward(%s, %d, %s, %s);", emit_op(e, node), i, emit_in(e, node, i),
                  emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    for (int i = 0; i < node->nin; i++) {
        const char *gx = emit_gradient_in(e, node, i);
        if (gx != NULL)
            emit_call(e, node, NULL, "pn_concat_backward(%s, %d, %s, %s);", emit_op(e, node), i,
                      emit_gradient_out(e, node), gx);
    }
}

/* Passes "forward0", "backward0", "forward1", ... */
static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    int64_t before = 0;
    for (int i = 0; i < node->nin; i++) {
        const int64_t items = kernel_items_in(e, node, i), part = graph_in_shape(emit_graph(e), node, i)->dim[0];
        const char *shape = arena_printf(a, "%lld, %lld, %lld, %lld", (long long)items, (long long)part,
                                         (long long)before, (long long)node->shape.dim[0]);
        emit_kernel(e, node, arena_printf(a, "forward%d", i), emit_blocks(items), "value_t *y, const value_t *x",
                    arena_printf(a, "concat<%s>(y, x)", shape));
        emit_kernel(e, node, arena_printf(a, "backward%d", i), emit_blocks(items), "value_t *gx, const value_t *gy",
                    arena_printf(a, "concat_backward<%s>(gx, gy)", shape));
        before += part;
    }
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

const OpDef op_concat = {
    .name = "concat",
    .doc = "tensors joined along their first dimension (the channels of images)",
    .min_in = 2,
    .max_in = MAX_CONCAT,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
