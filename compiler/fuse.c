/* fuse.c: Graph -> Graph with fewer nodes that computes the same, bit for bit.
 *
 * - conv, linear, maxpool, add or batch_norm, then relu: one node with `relu`, when the relu is the only reader
 * - relu, then maxpool: the relu moves behind the pool: max and relu commute exactly, and the pool is smaller
 * - pointwise, then pointwise: one node with a chain
 * - flatten, then linear: the linear reads the tensor as it is; in_shape keeps the flat shape
 * - batch_norm, then add: one batch_norm_add where the add stood, when the add is the only reader
 * - a shortcut that changes nothing, then add: the add reads the tensor itself
 *
 * Two nodes merge only within one stage, so a cut never moves. A flatten is a view and no work: linear reads through it
 * across a cut too (its layout, and so the order of its sums, must not depend on the cuts), unless its stage would be
 * empty then. A merged node stands where its first node stood, a batch_norm_add where its add did. Linear time. */
#include "op.h"

enum { MAX_CHAIN = 16 }; /* a longer run of pointwise ops becomes several nodes */

typedef struct {
    Arena *arena;
    const Graph *from;
    Node *node;      /* working copy, old ids; `in` is resolved through `becomes` when the new graph is made */
    NodeId *becomes; /* per old id: the old id whose node now makes this value; itself: kept */
    int *segment;    /* per old id: number of cuts at or before it */
    NodeId *next;    /* per old id: the next reader of in[0] behind it; nnodes: none */
    NodeId *reader;  /* per old id: its only reader; -1: none or several */
    int *readers;
    int *ops; /* per stage: nodes not dropped */
    const OpDef *relu, *maxpool, *linear, *flatten, *shortcut, *add, *norm, *norm_add;
} Fusion;

static NodeId source(const Fusion *f, NodeId value)
{
    while (f->becomes[value] != value)
        value = f->becomes[value] = f->becomes[f->becomes[value]];
    return value;
}

/* Whether `reader` may read in[0] of `dropped` itself without changing the order of the readers. */
static bool in_order(const Fusion *f, NodeId dropped, NodeId reader)
{
    return !f->from->node[f->from->node[dropped].in[0]].op || f->next[dropped] > reader;
}

static void add_name(Fusion *f, Node *node, Name name)
{
    node->fused = node->fused ? arena_printf(f->arena, "%s %s", node->fused, name) : name;
}

static void survey(Fusion *f)
{
    const Graph *g = f->from;
    int cut = 0;
    for (NodeId i = 0; i < g->nnodes; i++) {
        while (cut < g->ncuts && g->cut[cut].before <= i)
            cut++;
        f->segment[i] = cut;
        f->becomes[i] = i;
        f->reader[i] = -1;
        f->node[i] = g->node[i];
        f->node[i].first = f->node[i].last = i;
        f->ops[cut] += g->node[i].op != NULL;
        if (g->node[i].nin > 0 && f->node[i].in_shape.rank == 0)
            f->node[i].in_shape = g->node[g->node[i].in[0]].shape;
        for (int k = 0; k < g->node[i].nin; k++) {
            const NodeId v = g->node[i].in[k];
            f->reader[v] = f->readers[v]++ == 0 ? i : -1;
        }
    }
    NodeId *behind =
        arena_alloc(f->arena, sizeof(NodeId) * (size_t)(g->nnodes + 1)); /* per value: first reader so far */
    for (NodeId i = 0; i < g->nnodes; i++)
        behind[i] = g->nnodes;
    for (NodeId i = g->nnodes - 1; i >= 0; i--) {
        f->next[i] = g->node[i].nin > 0 ? behind[g->node[i].in[0]] : g->nnodes;
        for (int k = 0; k < g->node[i].nin; k++)
            behind[g->node[i].in[k]] = i;
    }
}

/* Into the node that makes what `id` reads, if `id` is its only reader and of the same stage; NULL otherwise. */
static Node *producer(Fusion *f, NodeId id)
{
    const NodeId read = f->from->node[id].in[0];
    const NodeId maker = source(f, read);
    if (!f->node[maker].op || f->reader[read] != id || f->segment[maker] != f->segment[id])
        return NULL;
    return &f->node[maker];
}

static void widen(Node *node, const Node *by)
{
    node->first = by->first < node->first ? by->first : node->first;
    node->last = by->last > node->last ? by->last : node->last;
}

static void absorb(Fusion *f, NodeId id, Node *into)
{
    widen(into, &f->node[id]);
    add_name(f, into, f->node[id].name);
    into->value_name = f->node[id].value_name;
    f->becomes[id] = (NodeId)(into - f->node);
}

static void fuse_relu(Fusion *f, NodeId id)
{
    Node *maker = producer(f, id);
    if (maker && maker->op->flags & OP_RELU_FUSES && !maker->nchain) {
        maker->relu = true;
        absorb(f, id, maker);
    }
}

static void fuse_pointwise(Fusion *f, NodeId id)
{
    Node *maker = producer(f, id);
    if (!maker || !(maker->op->flags & OP_POINTWISE) || maker->nchain == MAX_CHAIN)
        return;
    if (!maker->chain) {
        maker->chain = arena_alloc(f->arena, MAX_CHAIN * sizeof *maker->chain);
        maker->chain_attr = arena_alloc(f->arena, MAX_CHAIN * sizeof *maker->chain_attr);
    }
    maker->chain_attr[maker->nchain] = f->node[id].op->nattrs ? f->node[id].attr[0].f : 0;
    maker->chain[maker->nchain++] = f->node[id].op;
    absorb(f, id, maker);
}

/* The only relu between x and a maxpool goes behind the pool; x gets its own name back. */
static void move_relu(Fusion *f, NodeId id)
{
    const NodeId read = f->from->node[id].in[0];
    const NodeId maker = source(f, read);
    Node *pool = &f->node[id], *below = &f->node[maker];
    if (!below->op || f->reader[read] != id || f->segment[maker] != f->segment[id])
        return;
    if (below->op == f->relu && below->nchain == 0 && in_order(f, maker, id)) {
        add_name(f, pool, below->name);
        widen(pool, below);
        pool->relu = true;
        f->becomes[maker] = source(f, f->from->node[maker].in[0]);
    } else if (below->relu && f->from->node[read].op == f->relu) {
        /* The relu is the last thing that `below` absorbed. */
        add_name(f, pool, below->fused);
        pool->relu = true;
        below->relu = f->from->node[maker].relu;
        below->fused = f->from->node[maker].fused;
        below->value_name = f->from->node[maker].value_name;
        widen(pool, &f->node[read]);
        below->first = below->last = maker;
    }
}

/* The first of the add's inputs that is a batch_norm for it alone, and the only reader of what it reads: it moves, and
 * with it a part of that gradient. */
static void fuse_norm_add(Fusion *f, NodeId id)
{
    const Node *add = &f->from->node[id];
    for (int k = 0; k < 2; k++) {
        const NodeId maker = source(f, add->in[k]);
        const Node *norm = &f->node[maker];
        const bool only_reader = maker == add->in[k] || f->reader[maker] == add->in[k]; /* or of a dropped shortcut */
        if (norm->op != f->norm || norm->relu || !only_reader || f->reader[add->in[k]] != id ||
            f->segment[maker] != f->segment[id] || (f->from->node[norm->in[0]].op && f->reader[norm->in[0]] != maker))
            continue;
        Node *merged = &f->node[id];
        *merged = *norm;
        merged->last = id;
        merged->op = f->norm_add;
        merged->value_name = add->value_name;
        merged->in = arena_alloc(f->arena, 2 * sizeof *merged->in);
        merged->in[0] = norm->in[0];
        merged->in[1] = add->in[1 - k];
        merged->nin = 2;
        f->becomes[maker] = id;
        return;
    }
}

/* The readers of `id` read what it reads, unless its stage would be empty then. */
static void drop(Fusion *f, NodeId id)
{
    if (f->ops[f->segment[id]] == 1)
        return;
    f->ops[f->segment[id]]--;
    f->becomes[id] = f->from->node[id].in[0];
}

/* Shortcuts without stride or further channels, as a loop over residual units makes them. */
static void drop_shortcuts(Fusion *f)
{
    const Graph *g = f->from;
    for (NodeId i = 0; i < g->nnodes; i++) {
        const Node *node = &g->node[i];
        if (node->op && node->op == f->shortcut && shape_equal(&node->shape, &g->node[node->in[0]].shape) &&
            f->reader[i] >= 0 && g->node[f->reader[i]].op == f->add && in_order(f, i, f->reader[i]))
            drop(f, i);
    }
}

/* Flattens whose readers are all linear. With several of them the gradient of x is summed in another way, which is the
 * same if nothing else reads x. */
static void drop_flattens(Fusion *f)
{
    const Graph *g = f->from;
    int *linear_readers = arena_alloc(f->arena, sizeof(int) * (size_t)(g->nnodes + 1));
    for (NodeId i = 0; i < g->nnodes; i++)
        if (g->node[i].op && g->node[i].op == f->linear)
            linear_readers[g->node[i].in[0]]++;
    for (NodeId i = 0; i < g->nnodes; i++) {
        if (!g->node[i].op || g->node[i].op != f->flatten || f->readers[i] == 0 || linear_readers[i] != f->readers[i])
            continue;
        const NodeId x = g->node[i].in[0];
        const bool same_sums =
            f->readers[x] == 1 || (f->reader[i] >= 0 && in_order(f, i, f->reader[i])) || !g->node[x].op;
        if (same_sums)
            drop(f, i);
    }
    for (NodeId i = 0; i < g->nnodes; i++)
        if (g->node[i].op && g->node[i].op == f->linear && f->becomes[g->node[i].in[0]] != g->node[i].in[0])
            add_name(f, &f->node[i], g->node[g->node[i].in[0]].name);
}

/* Copies what is kept, renumbered. */
static Graph *renumber(Fusion *f)
{
    const Graph *g = f->from;
    Graph *made = arena_alloc(f->arena, sizeof *made);
    *made = *g;
    made->node = arena_alloc(f->arena, sizeof(Node) * (size_t)(g->nnodes + 1));
    NodeId *id = arena_alloc(f->arena, sizeof(NodeId) * (size_t)(g->nnodes + 1));
    NodeId next = 0;
    for (NodeId i = 0; i < g->nnodes; i++) {
        id[i] = next; /* also for what is gone: where a cut before it now stands */
        if (f->becomes[i] != i)
            continue;
        Node *node = &made->node[next++];
        *node = f->node[i];
        node->in = arena_alloc(f->arena, sizeof(NodeId) * (size_t)(node->nin + 1));
        for (int k = 0; k < node->nin; k++)
            node->in[k] = id[source(f, f->node[i].in[k])];
    }
    id[g->nnodes] = next;
    made->nnodes = next;

    made->param = arena_alloc(f->arena, sizeof(Param) * (size_t)(g->nparams + 1));
    for (int i = 0; i < g->nparams; i++) {
        made->param[i] = g->param[i];
        made->param[i].node = id[source(f, g->param[i].node)];
    }
    made->input = arena_alloc(f->arena, sizeof(NodeId) * (size_t)(g->ninputs + 1));
    for (int i = 0; i < g->ninputs; i++)
        made->input[i] = id[g->input[i]];
    made->cut = arena_alloc(f->arena, sizeof(Cut) * (size_t)(g->ncuts + 1));
    for (int i = 0; i < g->ncuts; i++)
        made->cut[i] = (Cut){id[g->cut[i].before], g->cut[i].span};
    made->loss = id[g->loss];
    return made;
}

Graph *fuse(Arena *arena, const Graph *graph)
{
    const size_t n = (size_t)graph->nnodes + 1;
    Fusion f = {
        .arena = arena,
        .from = graph,
        .node = arena_alloc(arena, n * sizeof(Node)),
        .becomes = arena_alloc(arena, n * sizeof(NodeId)),
        .segment = arena_alloc(arena, n * sizeof(int)),
        .next = arena_alloc(arena, n * sizeof(NodeId)),
        .reader = arena_alloc(arena, n * sizeof(NodeId)),
        .readers = arena_alloc(arena, n * sizeof(int)),
        .ops = arena_alloc(arena, sizeof(int) * (size_t)(graph->ncuts + 1)),
        .relu = op_find("relu"),
        .maxpool = op_find("maxpool"),
        .linear = op_find("linear"),
        .flatten = op_find("flatten"),
        .shortcut = op_find("shortcut"),
        .add = op_find("add"),
        .norm = op_find("batch_norm"),
        .norm_add = op_find("batch_norm_add"),
    };
    survey(&f);
    drop_shortcuts(&f);
    drop_flattens(&f);
    for (NodeId i = 0; i < graph->nnodes; i++) {
        const OpDef *op = graph->node[i].op;
        if (!op)
            continue;
        if (op == f.relu)
            fuse_relu(&f, i);
        if (op->flags & OP_POINTWISE && f.becomes[i] == i)
            fuse_pointwise(&f, i);
        if (op == f.add)
            fuse_norm_add(&f, i);
        if (op == f.maxpool)
            move_relu(&f, i);
    }
    return renumber(&f);
}
