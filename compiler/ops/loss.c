/* loss.c: losses: the mean over the minibatch, the end of every network. The last input is the target. */
#include "ops/common.h"

/* x f32[n] against class[n]: P0303, P0305. */
static bool shape_classes(ShapeContext *c)
{
    const Shape *label = shape_in(c, 1);
    if (!shape_need(c, 0, 1))
        return false;
    const Shape *x = shape_in(c, 0);
    if (x->dim[0] != label->classes) {
        shape_error(c, P0305, -1, 0, "%s: %lld outputs for %lld classes", c->node->op->name, (long long)x->dim[0],
                    (long long)label->classes);
        const Node *target = &c->graph->node[c->node->in[1]];
        diag_note(c->diags, target->span, "%s is %s", target->name, shape_text(c->arena, label));
        return false;
    }
    return true;
}

static void set_scalar(ShapeContext *c)
{
    c->node->shape = (Shape){.dtype = DTYPE_F32};
}

static bool shape_entropy(ShapeContext *c)
{
    const Shape *label = shape_in(c, 1);
    if (label->dtype != DTYPE_CLASS)
        return shape_error(c, P0303, -1, 1, "softmax_cross_entropy compares with class labels, not %s",
                           shape_text(c->arena, label));
    if (!shape_classes(c))
        return false;
    set_scalar(c);
    return true;
}

static bool shape_squares(ShapeContext *c)
{
    const Shape *target = shape_in(c, 1);
    if (target->dtype == DTYPE_CLASS) {
        if (!shape_classes(c))
            return false;
    } else {
        if (!shape_need(c, 0, 0))
            return false;
        if (!shape_equal(shape_in(c, 0), target)) {
            shape_error(c, P0304, -1, 0, "mse: %s and its target %s differ", shape_text(c->arena, shape_in(c, 0)),
                        shape_text(c->arena, target));
            const Node *node = &c->graph->node[c->node->in[1]];
            diag_note(c->diags, node->span, "%s is %s", node->name, shape_text(c->arena, target));
            return false;
        }
    }
    set_scalar(c);
    return true;
}

/* exp and log counted as one FLOP: maximum, difference, exp, sum, quotient; the backward is a difference. */
static Cost cost_entropy(const Graph *graph, const Node *node)
{
    const double n = count_in(graph, node, 0);
    return (Cost){
        .forward = 5 * n, .backward_data = 2 * n, .forward_bytes = 4 * (2 * n + 1), .backward_bytes = 4 * (2 * n + 1)};
}

static Cost cost_squares(const Graph *graph, const Node *node)
{
    const double n = count_in(graph, node, 0), target = count_in(graph, node, 1);
    return (Cost){.forward = 3 * n,
                  .backward_data = 2 * n,
                  .forward_bytes = 4 * (n + target),
                  .backward_bytes = 4 * (2 * n + target)};
}

static int64_t probability_bytes(const Graph *graph, const Node *node)
{
    return 4 * shape_count(graph_in_shape(graph, node, 0));
}

static void eval_entropy(const EvalContext *c)
{
    int64_t correct;
    c->out[0] =
        (float)ref_softmax_cross_entropy(c->batch, eval_shape(c, 0)->dim[0], c->in[0], c->in[1], c->aux, &correct);
    if (c->correct != NULL)
        *c->correct = correct;
}

/* n elements of `from` times the gradient of the loss (1: exact), added to `to`. */
static void add_scaled(float *to, float *from, float scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        from[i] *= scale;
    eval_add(to, from, n);
}

static void eval_entropy_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    const int64_t classes = eval_shape(c, 0)->dim[0];
    float *gx = eval_scratch(c->batch * classes);
    ref_softmax_cross_entropy_backward(c->batch, c->batch, classes, c->aux, c->in[1], gx);
    add_scaled(c->grad_in[0], gx, c->grad_out[0], c->batch * classes);
}

static void eval_squares(const EvalContext *c)
{
    const bool labels = eval_shape(c, 1)->dtype == DTYPE_CLASS;
    int64_t correct;
    c->out[0] = (float)ref_mse(c->batch, shape_count(eval_shape(c, 0)), c->in[0], labels ? NULL : c->in[1],
                               labels ? c->in[1] : NULL, &correct);
    if (c->correct != NULL)
        *c->correct = correct;
}

static void eval_squares_gradients(const EvalContext *c)
{
    const bool labels = eval_shape(c, 1)->dtype == DTYPE_CLASS;
    const int64_t size = shape_count(eval_shape(c, 0));
    for (int i = 0; i < 2; i++) {
        if (c->grad_in[i] == NULL)
            continue;
        float *gx = eval_scratch(c->batch * size);
        ref_mse_backward(c->batch, c->batch, size, c->in[0], labels ? NULL : c->in[1], labels ? c->in[1] : NULL,
                         i == 0 ? 1.0f : -1.0f, gx);
        add_scaled(c->grad_in[i], gx, c->grad_out[0], c->batch * size);
    }
}

static void emit_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_%s_init(stage, &(pn_loss_def){", emit_op(e, node), node->op->name);
    emit_line(e, "    .name = \"%s\", .x = %s, .target = %s});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_in(e, node, 1));
}

static void emit_entropy_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_softmax_cross_entropy_forward(%s, n, %s, %s, %s);", emit_op(e, node),
              emit_in(e, node, 0), emit_in(e, node, 1), emit_aux(e, node));
}

static void emit_entropy_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_softmax_cross_entropy_backward(%s, %s, %s, %s);", emit_op(e, node), emit_aux(e, node),
              emit_in(e, node, 1), emit_gradient_in(e, node, 0));
}

static void emit_squares_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_mse_forward(%s, n, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_in(e, node, 1));
}

static void emit_squares_backward(Emit *e, const Node *node)
{
    for (int i = 0; i < 2; i++) {
        const char *gx = emit_gradient_in(e, node, i);
        if (gx != NULL)
            emit_call(e, node, NULL, "pn_mse_backward(%s, %s, %s, %d, %s);", emit_op(e, node), emit_in(e, node, 0),
                      emit_in(e, node, 1), i, gx);
    }
}

static void emit_evaluate(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_%s_test(%s, n, %s, %s);", node->op->name, emit_op(e, node), emit_in(e, node, 0),
              emit_in(e, node, 1));
}

/* A warp a sample */
static int64_t row_blocks(Emit *e)
{
    return emit_blocks(emit_graph(e)->batch * 32);
}

static const char *batch_and_size(Emit *e, const Node *node)
{
    return arena_printf(emit_arena(e), "%lld, %lld", (long long)emit_graph(e)->batch,
                        (long long)shape_count(graph_in_shape(emit_graph(e), node, 0)));
}

static void emit_entropy_kernels(Emit *e, const Node *node)
{
    const char *shape = batch_and_size(e, node);
    emit_kernel(e, node, "forward", row_blocks(e),
                "float *rows, float *probability, const value_t *x, const int *label",
                arena_printf(emit_arena(e), "softmax_cross_entropy<%s>(rows, probability, x, label)", shape));
    emit_kernel(e, node, "backward", emit_blocks(kernel_items_in(e, node, 0)),
                "value_t *gx, const float *probability, const int *label",
                arena_printf(emit_arena(e), "softmax_cross_entropy_backward<%s>(gx, probability, label)", shape));
}

static void emit_squares_kernels(Emit *e, const Node *node)
{
    const char *shape = batch_and_size(e, node);
    const bool labels = graph_in_shape(emit_graph(e), node, 1)->dtype == DTYPE_CLASS;
    emit_kernel(e, node, "forward", row_blocks(e), "float *rows, const value_t *x, const void *target",
                arena_printf(emit_arena(e), "mse<%s, %s>(rows, x, target)", shape, labels ? "true" : "false"));
    emit_kernel(
        e, node, "backward", emit_blocks(kernel_items_in(e, node, 0)),
        "value_t *gx, const value_t *x, const void *target, float sign",
        arena_printf(emit_arena(e), "mse_backward<%s, %s>(gx, x, target, sign)", shape, labels ? "true" : "false"));
}

static const OpEmit entropy_verbs = {.init = emit_init,
                                     .forward = emit_entropy_forward,
                                     .backward = emit_entropy_backward,
                                     .evaluate = emit_evaluate,
                                     .kernels = emit_entropy_kernels};
static const OpEmit squares_verbs = {.init = emit_init,
                                     .forward = emit_squares_forward,
                                     .backward = emit_squares_backward,
                                     .evaluate = emit_evaluate,
                                     .kernels = emit_squares_kernels};

const OpDef op_softmax_cross_entropy = {
    .name = "softmax_cross_entropy",
    .doc = "-log softmax(x)[label], the mean over the minibatch; x f32[n], label class[n]",
    .min_in = 2,
    .max_in = 2,
    .flags = OP_LOSS,
    .needs = NEEDS_AUX | NEEDS_IN1,
    .shape = shape_entropy,
    .cost = cost_entropy,
    .aux = probability_bytes,
    .aux_name = "probability",
    .aux_type = "float",
    .eval = eval_entropy,
    .eval_backward = eval_entropy_gradients,
    .emit = {[TARGET_ref] = &entropy_verbs, [TARGET_cpu] = &entropy_verbs, [TARGET_cuda] = &entropy_verbs},
};

const OpDef op_mse = {
    .name = "mse",
    .doc = "1/2 sum of (x - target)^2, the mean over the minibatch; target: a tensor like x, or class[n] as one-hot",
    .min_in = 2,
    .max_in = 2,
    .flags = OP_LOSS,
    .needs = NEEDS_IN0 | NEEDS_IN1,
    .shape = shape_squares,
    .cost = cost_squares,
    .eval = eval_squares,
    .eval_backward = eval_squares_gradients,
    .emit = {[TARGET_ref] = &squares_verbs, [TARGET_cpu] = &squares_verbs, [TARGET_cuda] = &squares_verbs},
};
