/* cpu.c: the target `cpu`: oneDNN. Room for the layouts it may choose.
 *
 * Activations of rank 3 may be blocked by 16 channels (nChw16c); the network's inputs stay plain. Weights may be
 * blocked by 16 in and out (OIhw16i16o), grouped ones per group or, one channel a group, by 16 groups (Goihw16g); those
 * of a linear layer by up to 64 outputs over the physical input. (oneDNN: "Understanding
 * Memory Formats") */
#include <string.h>

#include "target.h"

enum { LANES = 16, LINEAR_BLOCK = 64, TAPS_IN_A_BYTE = 255 };

/* Elements of one sample of a value as stored. */
static int64_t padded_count(const Graph *graph, NodeId value)
{
    const Node *n = &graph->node[value];
    if (!n->op || n->shape.rank != 3)
        return size_product(n->shape.dim, n->shape.rank);
    return size_product((const int64_t[]){round_up(n->shape.dim[0], LANES), n->shape.dim[1], n->shape.dim[2]}, 3);
}

static int64_t value_bytes(const Graph *graph, NodeId value)
{
    if (graph->node[value].shape.dtype == DTYPE_CLASS)
        return plain_value_bytes(graph, value);
    return size_product((const int64_t[]){graph->batch, padded_count(graph, value), (int64_t)sizeof(float)}, 3);
}

/* Bytes of an element of an activation-shaped aux. oneDNN records the winner of a pooling window in a byte where its
 * taps can be counted in one, else in an int. */
static int64_t aux_entry(const Graph *graph, const Node *node)
{
    if (!op_attr(node->op, "kernel"))
        return node->op->aux(graph, node) / shape_count(&node->shape);
    const int64_t kernel = attr_int(node, "kernel");
    return kernel * kernel < TAPS_IN_A_BYTE ? 1 : (int64_t)sizeof(int32_t);
}

static int64_t aux_bytes(const Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    if (!n->op || !n->op->aux || !n->op->aux_channels)
        return plain_aux_bytes(graph, node);
    return size_product((const int64_t[]){graph->batch, padded_count(graph, node), aux_entry(graph, n)}, 3);
}

static int64_t conv_floats(const Param *weight, int64_t groups)
{
    const int64_t *d = weight->dim;
    const int64_t out = d[0] / groups, in = d[1];
    if (groups > 1 && out == 1 && in == 1)
        return size_product((const int64_t[]){round_up(groups, LANES), d[2], d[3]}, 3);
    return size_product((const int64_t[]){groups, round_up(out, LANES), round_up(in, LANES), d[2], d[3]}, 5);
}

static int64_t linear_floats(const Graph *graph, const Param *weight)
{
    const NodeId input = graph->node[weight->node].in[0];
    int64_t features = padded_count(graph, input);
    if (graph->node[input].shape.rank == 3 && !graph->node[input].op) /* an image, which may be reordered to blocks */
        features = size_product((const int64_t[]){round_up(graph->node[input].shape.dim[0], LANES),
                                                  graph->node[input].shape.dim[1], graph->node[input].shape.dim[2]},
                                3);
    return size_product((const int64_t[]){round_up(weight->dim[0], LINEAR_BLOCK), round_up(features, LANES)}, 2);
}

static int64_t param_floats(const Graph *graph, int param)
{
    const Param *p = &graph->param[param];
    const OpDef *op = graph->node[p->node].op;
    int64_t floats = size_product(p->dim, p->rank);
    if (p->rank == 4 && !strcmp(op->name, "conv"))
        floats = conv_floats(p, attr_int(&graph->node[p->node], "groups"));
    else if (p->rank >= 2 && !strcmp(op->name, "linear"))
        floats = linear_floats(graph, p);
    return round_up(floats, LANES);
}

/* The rule of the runtime (winograd_wins and cpu_winograd_of in runtime/cpu), which is of shapes only. Its products are
 * of 16 tiles at a time, the last ones as well. */
static int64_t winograd_tiles(const Graph *graph, NodeId node)
{
    enum { STEP = 4, TOGETHER = 16, MOST_PAD = 2 };
    const Node *n = &graph->node[node];
    if (!n->op || strcmp(n->op->name, "conv") || attr_int(n, "kernel") != 3 || attr_int(n, "stride") != 1 ||
        attr_int(n, "dilation") != 1 || attr_int(n, "groups") != 1 || attr_int(n, "pad") > MOST_PAD)
        return 0;
    const Node *from = &graph->node[n->in[0]];
    if (!from->op || from->shape.dim[0] % LANES || n->shape.dim[0] % LANES) /* inputs stay plain */
        return 0;
    const int64_t height = n->shape.dim[1], width = n->shape.dim[2];
    const int64_t of_image = (height + STEP - 1) / STEP * ((width + STEP - 1) / STEP), tiles = graph->batch * of_image;
    const bool wins = tiles >= TOGETHER && 2 * height * width >= STEP * STEP * of_image;
    return wins ? (tiles + TOGETHER - 1) / TOGETHER * TOGETHER : 0;
}

const TargetDef target_cpu = {
    .id = TARGET_cpu,
    .name = "cpu",
    .doc = "oneDNN 2.6 or 3.x, one thread a stage or `threads = n`",
    .library = "pn_cpu",
    .libs = "-ldnnl -lgomp",
    .threads = true,
    .value_bytes = value_bytes,
    .aux_bytes = aux_bytes,
    .param_floats = param_floats,
    .winograd_tiles = winograd_tiles,
};
