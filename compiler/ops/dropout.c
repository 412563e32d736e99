/* dropout.c: inverted dropout (Srivastava et al. 2014, with the factor at training time): y = mask x / (1 - p). The
 * mask is a function of seed, name, minibatch and element only, so it is the same in every schedule, cut and target. */
#include "ops/common.h"
#include "rt.h"

enum { PROBABILITY };

static bool shape(ShapeContext *c)
{
    const Shape *in = shape_in(c, 0);
    return shape_need(c, 0, 0) && shape_set(c, in->rank, in->dim);
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 2, 2);
}

static int64_t mask_bytes(const Graph *graph, const Node *node)
{
    (void)graph;
    return shape_count(&node->shape);
}

static int64_t count(const EvalContext *c)
{
    return c->batch * shape_count(&c->node->shape);
}

static void eval(const EvalContext *c)
{
    if (!c->training) {
        ref_concat_put(1, count(c), count(c), 0, c->in[0], c->out);
        return;
    }
    const double probability = c->node->attr[PROBABILITY].f;
    ref_dropout_mask(pn_dropout_key(c->seed, c->node->name, c->minibatch), probability, 0, count(c), c->aux);
    ref_dropout(probability, count(c), c->in[0], c->aux, c->out);
}

static void eval_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    float *gx = eval_scratch(count(c));
    ref_dropout(c->node->attr[PROBABILITY].f, count(c), c->grad_out, c->aux, gx);
    eval_add(c->grad_in[0], gx, count(c));
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_dropout_init(stage, &(pn_dropout_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s, .probability = %s});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node), attr_text(emit_arena(e), node->attr[PROBABILITY].f));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_dropout_forward(%s, n, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node), emit_aux(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_dropout_backward(%s, %s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
              emit_aux(e, node), emit_gradient_in(e, node, 0));
}

static void emit_evaluate(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_dropout_test(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0), emit_out(e, node));
}

static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    const int64_t items = kernel_items(e, node);
    const char *probability = attr_text(a, node->attr[PROBABILITY].f);
    emit_kernel(e, node, "forward", emit_blocks(items),
                "value_t *y, byte_t *mask, const value_t *x, const bits_t *minibatch, bits_t key",
                arena_printf(a, "dropout<%lld, %s>(y, mask, x, minibatch, key, %s)", (long long)items,
                             kernel_plane(e, &node->shape), probability));
    emit_kernel(e, node, "backward", emit_blocks(items), "value_t *gx, const value_t *gy, const byte_t *mask",
                arena_printf(a, "dropout_backward<%lld>(gx, gy, mask, %s)", (long long)items, probability));
}

static const OpEmit verbs = {.init = emit_init,
                             .forward = emit_forward,
                             .backward = emit_backward,
                             .evaluate = emit_evaluate,
                             .kernels = emit_kernels};

const OpDef op_dropout = {
    .name = "dropout",
    .doc = "sets elements to zero at random in training, scales the others by 1 / (1 - probability)",
    .min_in = 1,
    .max_in = 1,
    .attr = {[PROBABILITY] = {.name = "probability",
                              .kind = ATTR_REAL,
                              .fallback = 0.5,
                              .low = 0,
                              .high = 0.999,
                              .doc = "of zero"}},
    .nattrs = PROBABILITY + 1,
    .needs = NEEDS_AUX,
    .shape = shape,
    .cost = cost,
    .aux = mask_bytes,
    .aux_channels = 1,
    .aux_name = "mask",
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
