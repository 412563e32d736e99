/* lrn.c: local response normalisation across channels (Krizhevsky et al. 2012, in Caffe's scaling): y = x / s^beta, s =
 * k + alpha / size * the sum of x^2 over `size` channels around. Saves nothing: its backward computes s again. */
#include "ops/common.h"

enum { SIZE, ALPHA, BETA, OFFSET };

static bool shape(ShapeContext *c)
{
    if (!shape_need(c, 0, 3))
        return false;
    if (c->node->attr[SIZE].i % 2 == 0)
        return shape_error(c, P0310, SIZE, -1, "lrn: size = %lld has no middle", (long long)c->node->attr[SIZE].i);
    return shape_set(c, 3, shape_in(c, 0)->dim);
}

/* Squares and sums of a window, then root, product; backward the window twice. */
static Cost cost(const Graph *graph, const Node *node)
{
    const double window = (double)node->attr[SIZE].i;
    Cost all = cost_map(graph, node, 2 * window + 6, 3 * window + 12);
    all.backward_bytes += 4 * count_in(graph, node, 0);
    return all;
}

static ref_lrn plain(const EvalContext *c)
{
    const int64_t *d = c->node->shape.dim;
    const Attr *attr = c->node->attr;
    return (ref_lrn){{c->batch, d[0], d[1] * d[2]}, attr[SIZE].i, attr[ALPHA].f, attr[BETA].f, attr[OFFSET].f};
}

static void eval(const EvalContext *c)
{
    const ref_lrn lrn = plain(c);
    ref_lrn_forward(&lrn, c->in[0], c->out);
}

static void eval_gradients(const EvalContext *c)
{
    if (c->grad_in[0] == NULL)
        return;
    const ref_lrn lrn = plain(c);
    const int64_t n = c->batch * shape_count(&c->node->shape);
    float *gx = eval_scratch(n);
    ref_lrn_backward(&lrn, c->in[0], c->grad_out, gx);
    eval_add(c->grad_in[0], gx, n);
}

static void emit_init(Emit *e, const Node *node)
{
    Arena *arena = emit_arena(e);
    const Attr *attr = node->attr;
    emit_call(e, node, NULL, "%s = pn_lrn_init(stage, &(pn_lrn_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    emit_line(e, "    .size = %d, .alpha = %s, .beta = %s, .k = %s});", (int)attr[SIZE].i,
              attr_text(arena, attr[ALPHA].f), attr_text(arena, attr[BETA].f), attr_text(arena, attr[OFFSET].f));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_lrn_forward(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0), emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_lrn_backward(%s, %s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_gradient_out(e, node), emit_gradient_in(e, node, 0));
}

static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    const Attr *attr = node->attr;
    const int64_t items = kernel_items(e, node);
    const char *shape =
        arena_printf(a, "%lld, %lld, %lld", (long long)items, (long long)node->shape.dim[0], (long long)attr[SIZE].i);
    const char *numbers = arena_printf(a, "%s, %s, %s", kernel_number(a, attr[ALPHA].f / (double)attr[SIZE].i),
                                       kernel_number(a, attr[BETA].f), kernel_number(a, attr[OFFSET].f));
    emit_kernel(e, node, "forward", emit_blocks(items), "value_t *y, const value_t *x",
                arena_printf(a, "lrn<%s>(y, x, %s)", shape, numbers));
    emit_kernel(e, node, "backward", emit_blocks(items), "value_t *gx, const value_t *x, const value_t *gy",
                arena_printf(a, "lrn_backward<%s>(gx, x, gy, %s)", shape, numbers));
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

const OpDef op_lrn = {
    .name = "lrn",
    .doc = "local response normalisation across channels: x / (k + alpha / size * sum of x^2 over size channels)^beta",
    .min_in = 1,
    .max_in = 1,
    .attr =
        {[SIZE] = {.name = "size",
                   .kind = ATTR_INT,
                   .fallback = 5,
                   .low = 1,
                   .high = REF_LRN_MOST,
                   .doc = "channels of the window, an odd number"},
         [ALPHA] =
             {.name = "alpha", .kind = ATTR_REAL, .fallback = 1e-4, .high = 1e6, .doc = "weight of the mean square"},
         [BETA] = {.name = "beta", .kind = ATTR_REAL, .fallback = 0.75, .high = 16, .doc = "exponent"},
         [OFFSET] = {.name = "k", .kind = ATTR_REAL, .fallback = 1, .low = 1e-6, .high = 1e6, .doc = "what is added"}},
    .nattrs = OFFSET + 1,
    .needs = NEEDS_IN0,
    .shape = shape,
    .cost = cost,
    .eval = eval,
    .eval_backward = eval_gradients,
    .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},
};
