/* batch_norm.c: batch normalisation (Ioffe and Szegedy 2015) of channels, the first dimension of a sample: statistics
 * over the minibatch and the image, PyTorch's conventions (pn.h states them). Saves the minibatch's statistics for its
 * backward, which also moves the running ones; those are neither trained nor versioned.
 *
 * batch_norm_add adds a second tensor behind it: the end of a residual unit in one pass over memory. fuse makes it from
 * batch_norm and add. */
#include "ops/common.h"

enum { EPSILON, MOMENTUM };
enum { SCALE, SHIFT, RUNNING_MEAN, RUNNING_VARIANCE };

static bool shape(ShapeContext *c)
{
    const Shape *in = shape_in(c, 0);
    if (!shape_need(c, 0, 0))
        return false;
    if (in->rank != 1 && in->rank != 3)
        return shape_error(c, P0303, -1, 0, "batch_norm reads an image f32[C,H,W] or a vector f32[n], not %s",
                           shape_text(c->arena, in));
    if (c->graph->batch == 1 && shape_count(in) == in->dim[0])
        return shape_error(c, P0308, -1, 0, "batch_norm: one value per channel in a minibatch of 1");
    if (c->node->nin > 1 && !shape_equal(in, shape_in(c, 1)))
        return shape_error(c, P0304, -1, 0, "batch_norm_add: %s and %s differ", shape_text(c->arena, in),
                           shape_text(c->arena, shape_in(c, 1)));
    if (!shape_set(c, in->rank, in->dim) ||
        !shape_weight(c, "weight", (Init){.kind = INIT_CONSTANT, .a = 1}, 0, 0, 1, in->dim) ||
        !shape_weight(c, "bias", (Init){.kind = INIT_CONSTANT}, 0, 0, 1, in->dim))
        return false;
    const int64_t channels = c->node->shape.dim[0];
    shape_running(c, "running_mean", 0, channels);
    shape_running(c, "running_var", 1, channels);
    return true;
}

/* Forward: a sum, a difference squared and summed, a difference, product and sum; backward: the same count of two sums
 * and the linear map. */
static Cost cost(const Graph *graph, const Node *node)
{
    Cost all = cost_map(graph, node, 7, 6);
    all.backward_weights = 4 * count_out(node);
    all.forward_bytes += 4 * count_in(graph, node, 0);        /* x once more, for the statistics */
    all.backward_bytes += 4 * (3 * count_in(graph, node, 0)); /* x and gy for the sums, and x again for gx */
    return all;
}

static int64_t statistics_bytes(const Graph *graph, const Node *node)
{
    (void)graph;
    return 2 * node->shape.dim[0] * (int64_t)sizeof(float);
}

static ref_channels plain(const EvalContext *c)
{
    const int64_t channels = c->node->shape.dim[0];
    return (ref_channels){c->batch, channels, shape_count(&c->node->shape) / channels};
}

static void eval(const EvalContext *c)
{
    const ref_channels all = plain(c);
    const float *mean = c->param[RUNNING_MEAN], *variance = c->param[RUNNING_VARIANCE];
    if (c->training) {
        float *statistics = c->aux;
        ref_norm_statistics(&all, c->in[0], statistics, statistics + all.channels);
        mean = statistics;
        variance = statistics + all.channels;
    }
    ref_norm_forward(&all, c->node->attr[EPSILON].f, c->in[0], c->param[SCALE], c->param[SHIFT], mean, variance,
                     c->out);
    if (c->node->nin > 1)
        ref_accumulate(c->out, c->in[1], all.batch * all.channels * all.size);
}

static void eval_gradients(const EvalContext *c)
{
    const ref_channels all = plain(c);
    const int64_t n = all.batch * all.channels * all.size;
    const float *mean = c->aux, *variance = mean + all.channels;
    float *gx = c->grad_in[0] != NULL ? eval_scratch(n) : NULL;
    float *gscale = eval_scratch(all.channels), *gshift = eval_scratch(all.channels);
    ref_norm_backward(&all, c->node->attr[EPSILON].f, c->in[0], c->grad_out, c->param[SCALE], mean, variance, gx,
                      gscale, gshift);
    if (gx != NULL)
        eval_add(c->grad_in[0], gx, n);
    if (c->node->nin > 1 && c->grad_in[1] != NULL)
        ref_accumulate(c->grad_in[1], c->grad_out, n);
    eval_add(c->grad_param[SCALE], gscale, all.channels);
    eval_add(c->grad_param[SHIFT], gshift, all.channels);
}

static void emit_init(Emit *e, const Node *node)
{
    Arena *arena = emit_arena(e);
    emit_call(e, node, remark_relu(node), "%s = pn_batch_norm_init(stage, &(pn_batch_norm_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    if (node->nin > 1)
        emit_line(e, "    .skip = %s,", emit_tensor_in(e, node, 1));
    emit_line(e, "    .scale = %s, .shift = %s,", emit_param(e, node, SCALE), emit_param(e, node, SHIFT));
    emit_line(e, "    .mean = %s, .variance = %s,", emit_param(e, node, RUNNING_MEAN),
              emit_param(e, node, RUNNING_VARIANCE));
    emit_line(e, "    .epsilon = %s, .momentum = %s, .statistics = %s%s});", attr_text(arena, node->attr[EPSILON].f),
              attr_text(arena, node->attr[MOMENTUM].f), emit_aux_area(e, node), emit_flag(e, "relu", node->relu));
}

static const char *skip(Emit *e, const Node *node)
{
    return node->nin > 1 ? emit_in(e, node, 1) : "NULL";
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_batch_norm_forward(%s, %s, %s, %s, %s, %s, %s);", emit_op(e, node),
              emit_in(e, node, 0), skip(e, node), emit_weight(e, node, SCALE), emit_weight(e, node, SHIFT),
              emit_aux(e, node), emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    const char *gx = emit_gradient_in(e, node, 0), *gskip = node->nin > 1 ? emit_gradient_in(e, node, 1) : NULL;
    emit_call(e, node, remark_relu(node), "pn_batch_norm_backward(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);",
              emit_op(e, node), emit_in(e, node, 0), node->relu ? emit_out(e, node) : "NULL",
              emit_gradient_out(e, node), emit_weight(e, node, SCALE), emit_aux(e, node), gx != NULL ? gx : "NULL",
              gskip != NULL ? gskip : "NULL", emit_gradient_weight(e, node, SCALE),
              emit_gradient_weight(e, node, SHIFT));
    emit_call(e, node, "running statistics", "pn_batch_norm_track(%s, %s, %s, %s);", emit_op(e, node),
              emit_aux(e, node), emit_running(e, node, RUNNING_MEAN), emit_running(e, node, RUNNING_VARIANCE));
}

static void emit_evaluate(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_batch_norm_test(%s, %s, %s, %s, %s, %s, %s, %s);", emit_op(e, node),
              emit_in(e, node, 0), skip(e, node), emit_weight(e, node, SCALE), emit_weight(e, node, SHIFT),
              emit_running(e, node, RUNNING_MEAN), emit_running(e, node, RUNNING_VARIANCE), emit_out(e, node));
}

/* Parameters in the order of cuda/device/norm.cuh; epsilon and momentum are numbers of the text. */
static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    const char *epsilon = kernel_number(a, node->attr[EPSILON].f), *momentum = kernel_number(a, node->attr[MOMENTUM].f);
    const char *relu = node->relu ? "true" : "false", *room = "__shared__ float room[2 * THREADS];\n    ";
    int64_t blocks;
    const char *rows = kernel_rows(e, &node->shape, &blocks);
    const int64_t items = emit_blocks(kernel_items(e, node)), totals = kernel_total_blocks(&node->shape);
    emit_kernel(e, node, "part", blocks, "float *part, const value_t *x",
                arena_printf(a, "%snorm_part<%s>(room, part, x)", room, rows));
    emit_kernel(e, node, "statistics", totals, "float *statistics, const float *part, const value_t *x",
                arena_printf(a, "norm_statistics<%s>(statistics, part, x)", rows));
    emit_kernel(e, node, "apply", items,
                "value_t *y, const value_t *x, const value_t *skip, const float *scale, const float *shift, "
                "const float *mean, const float *variance",
                arena_printf(a, "norm_apply<%s, %s, %s>(y, x, skip, scale, shift, mean, variance, %s)", rows,
                             node->nin > 1 ? "true" : "false", relu, epsilon));
    emit_kernel(e, node, "gradient_part", blocks,
                "float *part, const value_t *gy, const value_t *y, const value_t *x, const float *statistics",
                arena_printf(a, "%snorm_gradient_part<%s, %s>(room, part, gy, y, x, statistics)", room, rows, relu));
    emit_kernel(e, node, "gradient", totals, "float *gscale, float *gshift, const float *part, const float *statistics",
                arena_printf(a, "norm_gradient<%s>(gscale, gshift, part, statistics, %s)", rows, epsilon));
    emit_kernel(
        e, node, "backward", items,
        "value_t *gx, value_t *gskip, const value_t *gy, const value_t *y, const value_t *x, const float *scale, "
        "const float *statistics, const float *gscale, const float *gshift",
        arena_printf(a,
                     "norm_backward<%s, %s>(gx, gskip, gy, y, x, scale, statistics, gscale, gshift, "
                     "%s)",
                     rows, relu, epsilon));
    emit_kernel(e, node, "track", emit_blocks(node->shape.dim[0]),
                "float *mean, float *variance, const float *statistics",
                arena_printf(a, "norm_track<%s>(mean, variance, statistics, %s)", rows, momentum));
}

static const OpEmit verbs = {.init = emit_init,
                             .forward = emit_forward,
                             .backward = emit_backward,
                             .evaluate = emit_evaluate,
                             .kernels = emit_kernels};

#define NORM_ATTRS                                                                                                     \
    [EPSILON] = {.name = "eps",                                                                                        \
                 .kind = ATTR_REAL,                                                                                    \
                 .fallback = 1e-5,                                                                                     \
                 .low = 1e-12,                                                                                         \
                 .high = 1,                                                                                            \
                 .doc = "added to the (biased) variance"},                                                             \
    [MOMENTUM] = {.name = "momentum",                                                                                  \
                  .kind = ATTR_REAL,                                                                                   \
                  .fallback = 0.1,                                                                                     \
                  .low = 0,                                                                                            \
                  .high = 1,                                                                                           \
                  .doc = "running = (1 - momentum) running + momentum * a minibatch's (variance unbiased)"}

const OpDef op_batch_norm = {
    .name = "batch_norm",
    .doc = "normalises each channel to mean 0, variance 1 over the minibatch, then scales and shifts it; tests use "
           "running statistics",
    .min_in = 1,
    .max_in = 1,
    .attr = {NORM_ATTRS},
    .nattrs = MOMENTUM + 1,
    .flags = OP_RELU_FUSES,
    .needs = NEEDS_IN0 | NEEDS_AUX,
    .shape = shape,
    .cost = cost,
    .aux = statistics_bytes,
    .aux_of_minibatch = true,
    .aux_name = "statistics",
    .aux_type = "float",
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};

const OpDef op_batch_norm_add = {
    .name = "batch_norm_add",
    .doc = "batch_norm of the first tensor, plus the second: made of batch_norm and add",
    .min_in = 2,
    .max_in = 2,
    .attr = {NORM_ATTRS},
    .nattrs = MOMENTUM + 1,
    .flags = OP_RELU_FUSES,
    .needs = NEEDS_IN0 | NEEDS_AUX,
    .shape = shape,
    .cost = cost,
    .aux = statistics_bytes,
    .aux_of_minibatch = true,
    .aux_name = "statistics",
    .aux_type = "float",
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
