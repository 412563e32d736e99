/* pool.c: maxpool, avgpool, global_avgpool. A window may reach into the padding, and with ceil beyond the image;
 * maxpool looks at real elements only. */
#include "ops/common.h"

enum { KERNEL, STRIDE, PAD, CEIL, COUNT_PADDING };

static bool shape(ShapeContext *c)
{
    Attr *attr = c->node->attr;
    if (!shape_need(c, 0, 3))
        return false;
    const char *name = c->node->op->name;
    const int64_t *in = shape_in(c, 0)->dim;
    if (!attr[STRIDE].given)
        attr[STRIDE].i = attr[KERNEL].i;
    const int64_t kernel = attr[KERNEL].i, stride = attr[STRIDE].i, pad = attr[PAD].i;
    if (pad >= kernel)
        return shape_error(c, P0307, PAD, -1, "%s: pad = %lld must be smaller than the window of %lld", name,
                           (long long)pad, (long long)kernel);
    const int64_t height = ref_pool_size(in[1], kernel, stride, pad, attr[CEIL].i != 0);
    const int64_t width = ref_pool_size(in[2], kernel, stride, pad, attr[CEIL].i != 0);
    if (height == 0 || width == 0)
        return shape_error(c, P0301, KERNEL, 0,
                           "%s: a %lldx%lld window does not fit into a %lldx%lld image with pad = %lld", name,
                           (long long)kernel, (long long)kernel, (long long)in[1], (long long)in[2], (long long)pad);
    return shape_set(c, 3, (int64_t[]){in[0], height, width});
}

static bool shape_global(ShapeContext *c)
{
    return shape_need(c, 0, 3) && shape_set(c, 3, (int64_t[]){shape_in(c, 0)->dim[0], 1, 1});
}

static bool is_global(const Node *node)
{
    return node->op->nattrs == 0;
}

static bool counts_padding(const Node *node)
{
    return !is_global(node) && node->op->nattrs > COUNT_PADDING && node->attr[COUNT_PADDING].i;
}

/* Window of a node; planes is left to the caller. */
static ref_pool window(const Graph *graph, const Node *node)
{
    const int64_t *in = graph_in_shape(graph, node, 0)->dim, *out = node->shape.dim;
    const bool global = is_global(node);
    return (ref_pool){.height = in[1],
                      .width = in[2],
                      .out_height = out[1],
                      .out_width = out[2],
                      .kernel_h = global ? in[1] : node->attr[KERNEL].i,
                      .kernel_w = global ? in[2] : node->attr[KERNEL].i,
                      .stride = global ? 1 : node->attr[STRIDE].i,
                      .pad = global ? 0 : node->attr[PAD].i,
                      .count_padding = counts_padding(node)};
}

static ref_pool plain(const EvalContext *c)
{
    ref_pool pool = window(c->graph, c->node);
    pool.planes = c->batch * c->node->shape.dim[0];
    return pool;
}

/* A comparison or an addition per element of a window; the backward of maxpool adds one number per window. */
static Cost cost(const Graph *graph, const Node *node)
{
    const ref_pool pool = window(graph, node);
    const double elements = (double)(pool.kernel_h * pool.kernel_w);
    return cost_map(graph, node, elements, node->op->aux != NULL ? 1 : elements);
}

static int64_t argmax_bytes(const Graph *graph, const Node *node)
{
    const ref_pool pool = window(graph, node);
    return shape_count(&node->shape) * ref_argmax_bytes(pool.kernel_h, pool.kernel_w);
}

static void eval_max(const EvalContext *c)
{
    const ref_pool pool = plain(c);
    ref_maxpool_forward(&pool, c->in[0], c->out, c->aux);
}

static void eval_max_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    const ref_pool pool = plain(c);
    const int64_t n = pool.planes * pool.height * pool.width;
    float *gx = eval_scratch(n);
    ref_maxpool_backward(&pool, c->grad_out, c->aux, gx);
    eval_add(c->grad_in[0], gx, n);
}

static void eval_average(const EvalContext *c)
{
    const ref_pool pool = plain(c);
    ref_avgpool_forward(&pool, c->in[0], c->out);
}

static void eval_average_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    const ref_pool pool = plain(c);
    const int64_t n = pool.planes * pool.height * pool.width;
    float *gx = eval_scratch(n);
    ref_avgpool_backward(&pool, c->grad_out, gx);
    eval_add(c->grad_in[0], gx, n);
}

static void emit_init(Emit *e, const Node *node)
{
    const ref_pool pool = window(emit_graph(e), node);
    const char *verb = node->op->aux != NULL ? "maxpool" : "avgpool";
    emit_call(e, node, remark_relu(node), "%s = pn_%s_init(stage, &(pn_pool_def){", emit_op(e, node), verb);
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    if (node->op->aux != NULL)
        emit_line(e, "    .argmax = %s,", emit_aux_area(e, node));
    emit_line(e, "    .kernel_h = %d, .kernel_w = %d, .stride = %d, .pad = %d%s%s});", (int)pool.kernel_h,
              (int)pool.kernel_w, (int)pool.stride, (int)pool.pad, emit_flag(e, "relu", node->relu),
              emit_flag(e, "count_padding", pool.count_padding));
}

static void emit_max_forward(Emit *e, const Node *node)
{
    emit_call(e, node, remark_relu(node), "pn_maxpool_forward(%s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node), emit_aux(e, node));
}

static void emit_max_backward(Emit *e, const Node *node)
{
    emit_relu_mask(e, node);
    emit_call(e, node, NULL, "pn_maxpool_backward(%s, %s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
              emit_aux(e, node), emit_gradient_in(e, node, 0));
}

static void emit_average_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_avgpool_forward(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node));
}

static void emit_average_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_avgpool_backward(%s, %s, %s);", emit_op(e, node), emit_gradient_out(e, node),
              emit_gradient_in(e, node, 0));
}

/* "Pool<batch, ...>" of cuda/device/pool.cuh */
static const char *pool_text(Emit *e, const Node *node)
{
    const ref_pool p = window(emit_graph(e), node);
    return arena_printf(emit_arena(e), "Pool<%lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld, %lld>",
                        (long long)emit_graph(e)->batch, (long long)node->shape.dim[0], (long long)p.height,
                        (long long)p.width, (long long)p.out_height, (long long)p.out_width, (long long)p.kernel_h,
                        (long long)p.kernel_w, (long long)p.stride, (long long)p.pad);
}

static void emit_max_kernels(Emit *e, const Node *node)
{
    const ref_pool p = window(emit_graph(e), node);
    const char *pool = pool_text(e, node), *index = ref_argmax_bytes(p.kernel_h, p.kernel_w) == 1 ? "byte_t" : "int";
    emit_kernel(
        e, node, "forward", emit_blocks(kernel_items(e, node)), "value_t *y, void *argmax, const value_t *x",
        arena_printf(emit_arena(e), "maxpool<%s, %s, %s>(y, argmax, x)", pool, index, node->relu ? "true" : "false"));
    emit_kernel(e, node, "backward", emit_blocks(kernel_items_in(e, node, 0)),
                "value_t *gx, const value_t *gy, const void *argmax",
                arena_printf(emit_arena(e), "maxpool_backward<%s, %s>(gx, gy, argmax)", pool, index));
}

static void emit_average_kernels(Emit *e, const Node *node)
{
    const char *pool = pool_text(e, node), *padding = counts_padding(node) ? "true" : "false";
    emit_kernel(e, node, "forward", emit_blocks(kernel_items(e, node)), "value_t *y, const value_t *x",
                arena_printf(emit_arena(e), "avgpool<%s, %s>(y, x)", pool, padding));
    emit_kernel(e, node, "backward", emit_blocks(kernel_items_in(e, node, 0)), "value_t *gx, const value_t *gy",
                arena_printf(emit_arena(e), "avgpool_backward<%s, %s>(gx, gy)", pool, padding));
}

static const OpEmit max_verbs = {
    .init = emit_init, .forward = emit_max_forward, .backward = emit_max_backward, .kernels = emit_max_kernels};
static const OpEmit average_verbs = {.init = emit_init,
                                     .forward = emit_average_forward,
                                     .backward = emit_average_backward,
                                     .kernels = emit_average_kernels};

#define WINDOW_ATTRS                                                                                                   \
    [KERNEL] = {.name = "kernel",                                                                                      \
                .kind = ATTR_INT,                                                                                      \
                .required = true,                                                                                      \
                .low = 1,                                                                                              \
                .high = 4096,                                                                                          \
                .doc = "rows and columns of the window"},                                                              \
    [STRIDE] = {.name = "stride",                                                                                      \
                .kind = ATTR_INT,                                                                                      \
                .low = 1,                                                                                              \
                .high = 4096,                                                                                          \
                .doc = "step of the window; the kernel when not given"},                                               \
    [PAD] = {.name = "pad",                                                                                            \
             .kind = ATTR_INT,                                                                                         \
             .high = 4096,                                                                                             \
             .doc = "elements added on each side, less than the kernel"},                                              \
    [CEIL] = {.name = "ceil", .kind = ATTR_BOOL, .high = 1, .doc = "keeps a last window that is only partly inside"}

const OpDef op_maxpool = {
    .name = "maxpool",
    .doc = "the largest element of each window of an image",
    .min_in = 1,
    .max_in = 1,
    .attr = {WINDOW_ATTRS},
    .nattrs = CEIL + 1,
    .flags = OP_RELU_FUSES,
    .needs = NEEDS_AUX,
    .shape = shape,
    .cost = cost,
    .aux = argmax_bytes,
    .aux_channels = 1,
    .aux_name = "argmax",
    .eval = eval_max,
    .eval_backward = eval_max_gradients,
    .emit = {[TARGET_ref] = &max_verbs, [TARGET_cpu] = &max_verbs, [TARGET_cuda] = &max_verbs},
};

const OpDef op_avgpool = {
    .name = "avgpool",
    .doc = "the mean of each window of an image",
    .min_in = 1,
    .max_in = 1,
    .attr =
        {WINDOW_ATTRS, [COUNT_PADDING] = {.name = "count_padding",
                                          .kind = ATTR_BOOL,
                                          .high = 1,
                                          .doc = "divides by the whole window also where it reaches into the padding"}},
    .nattrs = COUNT_PADDING + 1,
    .shape = shape,
    .cost = cost,
    .eval = eval_average,
    .eval_backward = eval_average_gradients,
    .emit = {[TARGET_ref] = &average_verbs, [TARGET_cpu] = &average_verbs, [TARGET_cuda] = &average_verbs},
};

const OpDef op_global_avgpool = {
    .name = "global_avgpool",
    .doc = "the mean of each channel of an image: f32[C,H,W] to f32[C,1,1]",
    .min_in = 1,
    .max_in = 1,
    .shape = shape_global,
    .cost = cost,
    .eval = eval_average,
    .eval_backward = eval_average_gradients,
    .emit = {[TARGET_ref] = &average_verbs, [TARGET_cpu] = &average_verbs, [TARGET_cuda] = &average_verbs},
};
