/* pointwise.c: unary element-by-element ops, one line each: the expression is the evaluator and the generated C at
 * once.
 *
 * POINTWISE(name, flags, attributes, attribute, value, slope, doc): value in x; slope in y, the value, and g, the
 * gradient that arrives; both may read p, the value of the one attribute. Slopes in y need no x, so an op that stands
 * alone saves its output only. A node with a chain computes the whole chain in one loop and saves the chain's input:
 * its backward recomputes the values. All C here is plain f32 arithmetic without branches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/common.h"

static bool shape(ShapeContext *c)
{
    const Shape *in = shape_in(c, 0);
    return shape_need(c, 0, 0) && shape_set(c, in->rank, in->dim);
}

static Cost cost(const Graph *graph, const Node *node)
{
    return cost_map(graph, node, 1 + node->nchain, 1 + node->nchain);
}

static int64_t count(const EvalContext *c)
{
    return c->batch * shape_count(&c->node->shape);
}

/* ---- evaluator: a chain runs op by op over a copy of the context ---- */

static const OpDef *link_op(const Node *node, int k)
{
    return k == 0 ? node->op : node->chain[k - 1];
}

/* 0: the op has no attribute. */
static double link_attr(const Node *node, int k)
{
    if (link_op(node, k)->nattrs == 0)
        return 0;
    return k == 0 ? node->attr[0].f : node->chain_attr[k - 1];
}

/* The context of one op of the chain alone. */
static EvalContext link_of(const EvalContext *c, Node *alone, int k, const void **in, float *out)
{
    *alone = *c->node;
    alone->op = link_op(c->node, k);
    alone->attr[0].f = link_attr(c->node, k);
    alone->nchain = 0;
    EvalContext one = *c;
    one.node = alone;
    one.in = in;
    one.out = out;
    return one;
}

/* The ops behind the first, in place on c->out. */
static void eval_rest(const EvalContext *c)
{
    for (int k = 1; k <= c->node->nchain; k++) {
        Node alone;
        const void *in[1] = {c->out};
        const EvalContext one = link_of(c, &alone, k, in, c->out);
        alone.op->eval(&one);
    }
}

/* Backward of a chain: the values again, then the gradient through them from last to first. */
static void eval_chain_gradients(const EvalContext *c)
{
    const int links = c->node->nchain + 1;
    const int64_t n = count(c);
    float *value = eval_scratch(n * links), *gradient = eval_scratch(n), *next = eval_scratch(n);
    const void *x = c->in[0];
    Node alone;
    for (int k = 0; k < links; k++) {
        const void *in[1] = {k == 0 ? x : value + n * (k - 1)};
        const EvalContext one = link_of(c, &alone, k, in, value + n * k);
        alone.op->eval(&one);
    }
    memcpy(gradient, c->grad_out, sizeof *gradient * (size_t)n);
    for (int k = links - 1; k >= 0; k--) {
        const void *in[1] = {k == 0 ? x : value + n * (k - 1)};
        float *gx[1] = {next};
        EvalContext one = link_of(c, &alone, k, in, value + n * k);
        one.grad_out = gradient;
        one.grad_in = gx;
        memset(next, 0, sizeof *next * (size_t)n);
        alone.op->eval_backward(&one);
        float *swap = gradient;
        gradient = next;
        next = swap;
    }
    free(value);
    free(next);
    eval_add(c->grad_in[0], gradient, n);
}

/* ---- generated code ---- */

static void print_value_function(Emit *e, const OpDef *op)
{
    Arena *arena = emit_arena(e);
    emit_function(e, arena_printf(arena, "%s_value", op->name),
                  arena_printf(arena,
                               "static inline float %s_value(float x%s)\n"
                               "{\n"
                               "    return %s;\n"
                               "}\n",
                               op->name, op->nattrs ? ", float p" : "", op->expr));
}

static void print_slope_function(Emit *e, const OpDef *op)
{
    Arena *arena = emit_arena(e);
    emit_function(e, arena_printf(arena, "%s_slope", op->name),
                  arena_printf(arena,
                               "static inline float %s_slope(float y, float g%s)\n"
                               "{\n"
                               "    return %s;\n"
                               "}\n",
                               op->name, op->nattrs ? ", float p" : "", op->derivative));
}

/* ", 0.01f" behind the other arguments; "": the op has no attribute. */
static const char *attr_argument(Emit *e, const Node *node, int k)
{
    if (link_op(node, k)->nattrs == 0)
        return "";
    const float value = (float)link_attr(node, k);
    const char *text = NULL;
    for (int digits = 1; digits <= 9; digits++) {
        text = arena_printf(emit_arena(e), "%#.*g", digits, (double)value); /* with a point: 1.f */
        if (strtof(text, NULL) == value)
            break;
    }
    return arena_printf(emit_arena(e), ", %sf", text);
}

/* "relu_tanh": of a node's op and chain; with attributes, which others may give other values, also its own name. */
static const char *chain_name(Emit *e, const Node *node)
{
    Text name = text_new(emit_arena(e));
    bool attributes = false;
    for (int k = 0; k <= node->nchain; k++) {
        text_printf(&name, "%s%s", k > 0 ? "_" : "", link_op(node, k)->name);
        attributes |= link_op(node, k)->nattrs > 0;
    }
    if (attributes)
        text_printf(&name, "_of_%s", c_name(emit_arena(e), node->name));
    return name.data;
}

static void print_forward_function(Emit *e, const Node *node, const char *name)
{
    Text text = text_new(emit_arena(e));
    text_printf(&text,
                "static void %s(const float *restrict x, float *restrict y, int64_t n)\n"
                "{\n"
                "    for (int64_t i = 0; i < n; i++)\n"
                "        y[i] = ",
                name);
    for (int k = node->nchain; k >= 0; k--)
        text_printf(&text, "%s_value(", link_op(node, k)->name);
    text_printf(&text, "x[i]");
    for (int k = 0; k <= node->nchain; k++)
        text_printf(&text, "%s)", attr_argument(e, node, k));
    text_printf(&text, ";\n}\n");
    emit_function(e, name, text.data);
}

static void print_backward_function(Emit *e, const Node *node, const char *name)
{
    Text text = text_new(emit_arena(e));
    if (node->nchain == 0) {
        text_printf(&text,
                    "static void %s(const float *restrict y, const float *restrict gy, float *restrict gx, int64_t n)\n"
                    "{\n"
                    "    for (int64_t i = 0; i < n; i++)\n"
                    "        gx[i] = %s_slope(y[i], gy[i]%s);\n"
                    "}\n",
                    name, node->op->name, attr_argument(e, node, 0));
    } else {
        text_printf(&text,
                    "static void %s(const float *restrict x, const float *restrict gy, float *restrict gx, int64_t n)\n"
                    "{\n"
                    "    for (int64_t i = 0; i < n; i++) {\n",
                    name);
        for (int k = 0; k <= node->nchain; k++)
            if (k == 0)
                text_printf(&text, "        const float v0 = %s_value(x[i]%s);\n", node->op->name,
                            attr_argument(e, node, 0));
            else
                text_printf(&text, "        const float v%d = %s_value(v%d%s);\n", k, link_op(node, k)->name, k - 1,
                            attr_argument(e, node, k));
        text_printf(&text, "        gx[i] = ");
        for (int k = 0; k <= node->nchain; k++)
            text_printf(&text, "%s_slope(v%d, ", link_op(node, k)->name, k);
        text_printf(&text, "gy[i]");
        for (int k = node->nchain; k >= 0; k--)
            text_printf(&text, "%s)", attr_argument(e, node, k));
        text_printf(&text, ";\n    }\n}\n");
    }
    emit_function(e, name, text.data);
}

/* ---- the same on a GPU: a kernel whose body is the chain ---- */

static void device_functions(Emit *e, const OpDef *op)
{
    Arena *a = emit_arena(e);
    const char *p = op->nattrs ? ", float p" : "";
    emit_device_function(
        e, arena_printf(a, "%s_value", op->name),
        arena_printf(a, "__device__ inline float %s_value(float x%s)\n{\n    return %s;\n}\n", op->name, p, op->expr));
    emit_device_function(e, arena_printf(a, "%s_slope", op->name),
                         arena_printf(a, "__device__ inline float %s_slope(float y, float g%s)\n{\n    return %s;\n}\n",
                                      op->name, p, op->derivative));
}

/* The chain applied to `x`, up to its link `last`. */
static const char *chain_value(Emit *e, const Node *node, int last, const char *x)
{
    const char *text = x;
    for (int k = 0; k <= last; k++)
        text = arena_printf(emit_arena(e), "%s_value(%s%s)", link_op(node, k)->name, text, attr_argument(e, node, k));
    return text;
}

static void emit_kernels(Emit *e, const Node *node)
{
    Arena *a = emit_arena(e);
    const int64_t items = kernel_items(e, node);
    for (int k = 0; k <= node->nchain; k++)
        device_functions(e, link_op(node, k));
    emit_kernel(e, node, "forward", emit_blocks(items), "value_t *y, const value_t *x",
                arena_printf(a, "pointwise<%lld>(y, x, [](float x) { return %s; })", (long long)items,
                             chain_value(e, node, node->nchain, "x")));
    const char *g = "g"; /* the gradient behind link k, from the last one on */
    for (int k = node->nchain; k >= 0; k--)
        g = arena_printf(a, "%s_slope(%s, %s%s)", link_op(node, k)->name,
                         node->nchain ? chain_value(e, node, k, "saved") : "saved", g, attr_argument(e, node, k));
    emit_kernel(e, node, "backward", emit_blocks(items), "value_t *gx, const value_t *saved, const value_t *gy",
                arena_printf(a, "pointwise_backward<%lld>(gx, saved, gy, [](float saved, float g) { return %s; })",
                             (long long)items, g));
}

static void emit_device_init(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "%s = pn_pointwise_init(stage, &(pn_pointwise_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s%s});", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node), emit_flag(e, "reads_x", node->nchain > 0));
}

static void emit_init(Emit *e, const Node *node)
{
    if (emit_on_device(e)) {
        emit_device_init(e, node);
        return;
    }
    const char *chain = chain_name(e, node);
    const char *forward = arena_printf(emit_arena(e), "%s_forward", chain);
    const char *backward =
        emit_gradient_in(e, node, 0) != NULL ? arena_printf(emit_arena(e), "%s_backward", chain) : NULL;
    bool keeps_zero = true;
    for (int k = 0; k <= node->nchain; k++) {
        print_value_function(e, link_op(node, k));
        if (backward != NULL)
            print_slope_function(e, link_op(node, k));
        keeps_zero = keeps_zero && (link_op(node, k)->flags & OP_KEEPS_ZERO) != 0;
    }
    print_forward_function(e, node, forward);
    if (backward != NULL)
        print_backward_function(e, node, backward);
    emit_call(e, node, NULL, "%s = pn_pointwise_init(stage, &(pn_pointwise_def){", emit_op(e, node));
    emit_line(e, "    .name = \"%s\", .x = %s, .y = %s,", node->name, emit_tensor_in(e, node, 0),
              emit_tensor_out(e, node));
    emit_line(e, "    .forward = %s, .backward = %s%s%s});", forward, backward != NULL ? backward : "NULL",
              emit_flag(e, "reads_x", node->nchain > 0), emit_flag(e, "keeps_zero", keeps_zero));
}

static void emit_forward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_pointwise_forward(%s, %s, %s);", emit_op(e, node), emit_in(e, node, 0),
              emit_out(e, node));
}

static void emit_backward(Emit *e, const Node *node)
{
    emit_call(e, node, NULL, "pn_pointwise_backward(%s, %s, %s, %s);", emit_op(e, node),
              node->nchain > 0 ? emit_in(e, node, 0) : emit_out(e, node), emit_gradient_out(e, node),
              emit_gradient_in(e, node, 0));
}

static const OpEmit verbs = {
    .init = emit_init, .forward = emit_forward, .backward = emit_backward, .kernels = emit_kernels};

/* ---- the ops ---- */

#define NONE                                                                                                           \
    {                                                                                                                  \
        .name = NULL                                                                                                   \
    }
#define SLOPE_BELOW                                                                                                    \
    {                                                                                                                  \
        .name = "slope", .kind = ATTR_REAL, .fallback = 0.01, .high = 1, .doc = "factor of negative x"                 \
    }

#define POINTWISE(NAME, FLAGS, ATTRIBUTES, ATTRIBUTE, VALUE, SLOPE, DOC)                                               \
    static float NAME##_value(float x, float p)                                                                        \
    {                                                                                                                  \
        (void)p;                                                                                                       \
        return VALUE;                                                                                                  \
    }                                                                                                                  \
    static float NAME##_slope(float y, float g, float p)                                                               \
    {                                                                                                                  \
        (void)p;                                                                                                       \
        return SLOPE;                                                                                                  \
    }                                                                                                                  \
    static void NAME##_eval(const EvalContext *c)                                                                      \
    {                                                                                                                  \
        const float *x = c->in[0], p = (float)c->node->attr[0].f;                                                      \
        for (int64_t i = 0, n = count(c); i < n; i++)                                                                  \
            c->out[i] = NAME##_value(x[i], p);                                                                         \
        eval_rest(c);                                                                                                  \
    }                                                                                                                  \
    static void NAME##_eval_gradients(const EvalContext *c)                                                            \
    {                                                                                                                  \
        if (c->grad_in[0] == NULL)                                                                                     \
            return;                                                                                                    \
        if (c->node->nchain > 0) {                                                                                     \
            eval_chain_gradients(c);                                                                                   \
            return;                                                                                                    \
        }                                                                                                              \
        const float p = (float)c->node->attr[0].f;                                                                     \
        for (int64_t i = 0, n = count(c); i < n; i++)                                                                  \
            c->grad_in[0][i] += NAME##_slope(c->out[i], c->grad_out[i], p);                                            \
    }                                                                                                                  \
    const OpDef op_##NAME = {                                                                                          \
        .name = #NAME,                                                                                                 \
        .doc = DOC,                                                                                                    \
        .min_in = 1,                                                                                                   \
        .max_in = 1,                                                                                                   \
        .attr = {ATTRIBUTE},                                                                                           \
        .nattrs = ATTRIBUTES,                                                                                          \
        .flags = OP_POINTWISE | (FLAGS),                                                                               \
        .needs = NEEDS_OUT,                                                                                            \
        .expr = #VALUE,                                                                                                \
        .derivative = #SLOPE,                                                                                          \
        .shape = shape,                                                                                                \
        .cost = cost,                                                                                                  \
        .eval = NAME##_eval,                                                                                           \
        .eval_backward = NAME##_eval_gradients,                                                                        \
        .emit = {[TARGET_ref] = &verbs, [TARGET_cpu] = &verbs, [TARGET_cuda] = &verbs},                                \
    };

POINTWISE(relu, OP_KEEPS_ZERO, 0, NONE, x > 0.0f ? x : 0.0f, y > 0.0f ? g : 0.0f, "max(0, x)")
POINTWISE(tanh, OP_KEEPS_ZERO, 0, NONE, tanhf(x), (1.0f - y * y) * g, "hyperbolic tangent")
POINTWISE(sigmoid, 0, 0, NONE, 1.0f / (1.0f + expf(-x)), (1.0f - y) * y * g, "1 / (1 + exp(-x))")
POINTWISE(leaky_relu, OP_KEEPS_ZERO, 1, SLOPE_BELOW, x > 0.0f ? x : p * x, y > 0.0f ? g : p * g,
          "x where it is positive, else slope * x")
