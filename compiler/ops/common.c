/* common.c: see common.h. */
#include <stdlib.h>
#include <string.h>

#include "ops/common.h"

static bool fits(int64_t count)
{
    return count <= (int64_t)1 << MAX_ELEMENTS_LOG2;
}

/* false: over 2^40. Dimensions are positive. */
static bool product(int rank, const int64_t *dim, int64_t *result)
{
    *result = 1;
    for (int i = 0; i < rank; i++)
        if (!checked_mul(*result, dim[i], result) || !fits(*result))
            return false;
    return true;
}

static const char *dims_text(Arena *arena, int rank, const int64_t *dim)
{
    Text text = text_new(arena);
    for (int i = 0; i < rank; i++)
        text_printf(&text, i > 0 ? ",%lld" : "[%lld", (long long)dim[i]);
    text_printf(&text, "]");
    return text.data;
}

bool shape_need(ShapeContext *c, int in, int rank)
{
    const Shape *shape = shape_in(c, in);
    if (shape->dtype == DTYPE_F32 && (rank == 0 ? shape->rank >= 1 : shape->rank == rank))
        return true;
    const char *wanted = rank == 3 ? "an image f32[C,H,W]" : rank == 1 ? "a vector f32[n]" : "a tensor";
    shape_error(c, P0303, -1, in, "%s reads %s, not %s", c->node->op->name, wanted, shape_text(c->arena, shape));
    if (shape->dtype == DTYPE_F32 && rank == 1)
        diag_hint(c->diags, "put flatten or linear before it");
    return false;
}

bool shape_set(ShapeContext *c, int rank, const int64_t *dim)
{
    int64_t count, all;
    if (!product(rank, dim, &count) || !checked_mul(count, c->graph->batch > 0 ? c->graph->batch : 1, &all) ||
        !fits(all))
        return shape_error(c, P0306, -1, -1, "%s: f32%s in a batch of %lld has more than 2^%d elements",
                           c->node->op->name, dims_text(c->arena, rank, dim), (long long)c->graph->batch,
                           MAX_ELEMENTS_LOG2);
    Shape *shape = &c->node->shape;
    *shape = (Shape){.dtype = DTYPE_F32, .rank = rank};
    for (int i = 0; i < rank; i++)
        shape->dim[i] = dim[i];
    return true;
}

bool shape_weight(ShapeContext *c, const char *suffix, Init init, int64_t fan_in, int64_t fan_out, int rank,
                  const int64_t *dim)
{
    int64_t count;
    if (!product(rank, dim, &count))
        return shape_error(c, P0306, -1, 0, "%s: the parameter %s f32%s has more than 2^%d elements", c->node->op->name,
                           suffix, dims_text(c->arena, rank, dim), MAX_ELEMENTS_LOG2);
    shape_param(c, suffix, init, fan_in, fan_out, rank, dim);
    return true;
}

const Shape *graph_in_shape(const Graph *graph, const Node *node, int i)
{
    return &graph->node[node->in[i]].shape;
}

double count_in(const Graph *graph, const Node *node, int i)
{
    return (double)shape_count(graph_in_shape(graph, node, i));
}

double count_out(const Node *node)
{
    return (double)shape_count(&node->shape);
}

Cost cost_map(const Graph *graph, const Node *node, double forward, double backward)
{
    double in = 0;
    for (int i = 0; i < node->nin; i++)
        in += count_in(graph, node, i);
    const double out = count_out(node);
    return (Cost){.forward = forward * out,
                  .backward_data = backward * out,
                  .forward_bytes = 4 * (in + out),
                  .backward_bytes = 4 * (in + out)};
}

const Shape *eval_shape(const EvalContext *c, int i)
{
    return graph_in_shape(c->graph, c->node, i);
}

float *eval_scratch(int64_t n)
{
    float *scratch = calloc((size_t)(n > 0 ? n : 1), sizeof *scratch);
    if (scratch == NULL) {
        fprintf(stderr, "pnetc: error: out of memory for %lld bytes\n", (long long)n * 4);
        exit(1);
    }
    return scratch;
}

void eval_add(float *to, float *scratch, int64_t n)
{
    ref_accumulate(to, scratch, n);
    free(scratch);
}

NodeId node_id(Emit *e, const Node *node)
{
    return (NodeId)(node - emit_graph(e)->node);
}

const char *emit_tensor_in(Emit *e, const Node *node, int i)
{
    return emit_tensor(e, node->in[i]);
}

const char *emit_tensor_out(Emit *e, const Node *node)
{
    return emit_tensor(e, node_id(e, node));
}

const char *emit_flag(Emit *e, const char *field, bool value)
{
    return value ? arena_printf(emit_arena(e), ", .%s = true", field) : "";
}

const char *attr_text(Arena *arena, double number)
{
    const char *text = NULL;
    for (int digits = 1; digits <= 17; digits++) {
        text = arena_printf(arena, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    return text;
}

void emit_relu_mask(Emit *e, const Node *node)
{
    if (node->relu)
        emit_call(e, node, "behind relu", "pn_relu_mask(%s, %s, %s);", emit_tensor_out(e, node), emit_out(e, node),
                  emit_gradient_out(e, node));
}

const char *remark_relu(const Node *node)
{
    return node->relu ? "relu fused" : NULL;
}

/* ---- kernels ---- */

int64_t kernel_items(Emit *e, const Node *node)
{
    return emit_graph(e)->batch * shape_count(&node->shape);
}

int64_t kernel_items_in(Emit *e, const Node *node, int i)
{
    return emit_graph(e)->batch * shape_count(graph_in_shape(emit_graph(e), node, i));
}

const char *kernel_rows(Emit *e, const Shape *shape, int64_t *blocks)
{
    enum { THREADS = 256, ROWS_A_THREAD = 8, MOST_CHUNKS = 128 };
    const int64_t channels = shape->dim[0], rows = emit_graph(e)->batch * (shape_count(shape) / channels);
    int64_t lanes = 1;
    while (lanes < channels && lanes < THREADS)
        lanes *= 2;
    const int64_t least = THREADS / lanes * ROWS_A_THREAD, even = (rows + MOST_CHUNKS - 1) / MOST_CHUNKS;
    const int64_t chunk = even > least ? even : least;
    *blocks = (rows + chunk - 1) / chunk * ((channels + lanes - 1) / lanes);
    return arena_printf(emit_arena(e), "Rows<%lld, %lld, %lld, %lld>", (long long)rows, (long long)channels,
                        (long long)lanes, (long long)chunk);
}

int64_t kernel_total_blocks(const Shape *shape)
{
    enum { WARP = 32 };
    return emit_blocks(shape->dim[0] * WARP);
}

const char *kernel_plane(Emit *e, const Shape *shape)
{
    const bool image = shape->rank == 3;
    return arena_printf(emit_arena(e), "%lld, %lld, %lld", (long long)(image ? shape->dim[0] : shape_count(shape)),
                        (long long)(image ? shape->dim[1] : 1), (long long)(image ? shape->dim[2] : 1));
}

const char *kernel_number(Arena *arena, double number)
{
    const char *text = NULL;
    for (int digits = 1; digits <= 9; digits++) {
        text = arena_printf(arena, "%#.*g", digits, (double)(float)number); /* with a point */
        if (strtof(text, NULL) == (float)number)
            break;
    }
    return arena_printf(arena, "%sf", text);
}

void kernel_bias(Emit *e, const Node *node, bool bias)
{
    Arena *a = emit_arena(e);
    const int64_t items = kernel_items(e, node);
    int64_t blocks;
    const char *rows = kernel_rows(e, &node->shape, &blocks);
    if (bias || node->relu)
        emit_kernel(e, node, "finish", emit_blocks(items), "value_t *y, const float *b",
                    arena_printf(a, "finish<%lld, %lld, %s, %s>(y, b)", (long long)items, (long long)node->shape.dim[0],
                                 bias ? "true" : "false", node->relu ? "true" : "false"));
    if (!bias)
        return;
    emit_kernel(e, node, "bias_part", blocks, "float *part, const value_t *gy",
                arena_printf(a, "__shared__ float room[2 * THREADS];\n    bias_part<%s>(room, part, gy)", rows));
    emit_kernel(e, node, "bias", kernel_total_blocks(&node->shape), "float *gb, const float *part",
                arena_printf(a, "bias_gradient<%s>(gb, part)", rows));
}
