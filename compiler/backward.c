/* backward.c: which nodes have a backward, which gradients it makes, what it reads.
 *
 * A gradient exists where a parameter lies at or before a value and the value leads to the loss. The loss itself starts
 * from 1 and has no gradient buffer: wants[loss] is false. */
#include "backward.h"

/* Whether the value of each node leads to the loss. */
static bool *reach_loss(Arena *arena, const Graph *graph)
{
    bool *reaches = arena_alloc(arena, sizeof(bool) * (size_t)(graph->nnodes + 1));
    reaches[graph->loss] = true;
    for (NodeId i = graph->loss; i >= 0; i--)
        if (reaches[i])
            for (int k = 0; k < graph->node[i].nin; k++)
                reaches[graph->node[i].in[k]] = true;
    return reaches;
}

static unsigned node_needs(const Node *node)
{
    if (node->nchain > 0)
        return NEEDS_IN0;
    return node->op->needs | (node->relu ? NEEDS_OUT : 0u);
}

Backward *backward(Arena *arena, const Graph *graph)
{
    const size_t n = (size_t)graph->nnodes + 1;
    Backward *b = arena_alloc(arena, sizeof *b);
    b->graph = graph;
    b->wants = arena_alloc(arena, n * sizeof(bool));
    b->needs = arena_alloc(arena, n * sizeof(unsigned));
    b->step = arena_alloc(arena, n * sizeof(BackwardStep));

    const bool *reaches = reach_loss(arena, graph);
    for (NodeId i = 0; i < graph->nnodes; i++) {
        const Node *node = &graph->node[i];
        bool trains = node->nparams > 0;
        for (int k = 0; k < node->nin; k++)
            trains |= b->wants[node->in[k]];
        b->wants[i] = node->op && trains && reaches[i];
        b->needs[i] = b->wants[i] ? node_needs(node) : 0;
    }

    bool *written = arena_alloc(arena, n * sizeof(bool));
    for (NodeId i = graph->nnodes - 1; i >= 0; i--) {
        const Node *node = &graph->node[i];
        if (!b->wants[i])
            continue;
        BackwardStep *step = &b->step[b->nsteps++];
        step->node = i;
        step->in = arena_alloc(arena, sizeof(GradientMode) * (size_t)(node->nin + 1));
        for (int k = 0; k < node->nin; k++) {
            const NodeId v = node->in[k];
            if (!b->wants[v])
                continue;
            step->in[k] = written[v] ? GRADIENT_ADD : GRADIENT_WRITE;
            written[v] = true;
        }
    }
    b->wants[graph->loss] = false;
    return b;
}

void backward_check(const Backward *b)
{
    const Graph *graph = b->graph;
    NodeId above = graph->nnodes;
    Arena *arena = arena_new();
    int *writes = arena_alloc(arena, sizeof(int) * (size_t)(graph->nnodes + 1));
    for (int s = 0; s < b->nsteps; s++) {
        const BackwardStep *step = &b->step[s];
        const Node *node = &graph->node[step->node];
        if (step->node >= above || !node->op)
            ICE("backward: step %d of %s out of order", s, node->name);
        above = step->node;
        if (step->node != graph->loss && writes[step->node] == 0)
            ICE("backward: %s runs before its gradient is written", node->name);
        for (int k = 0; k < node->nin; k++) {
            const NodeId v = node->in[k];
            if ((step->in[k] != GRADIENT_NONE) != b->wants[v])
                ICE("backward: %s, input %d: a gradient nobody wants, or none where one is wanted", node->name, k);
            if (step->in[k] == GRADIENT_WRITE && writes[v] != 0)
                ICE("backward: the gradient of %s is written twice", graph->node[v].name);
            if (step->in[k] == GRADIENT_ADD && writes[v] == 0)
                ICE("backward: the gradient of %s is added to before it is written", graph->node[v].name);
            writes[v] += step->in[k] != GRADIENT_NONE;
        }
    }
    for (NodeId i = 0; i < graph->nnodes; i++) {
        if (b->wants[i] && writes[i] == 0)
            ICE("backward: nobody writes the gradient of %s", graph->node[i].name);
        if (!graph->node[i].op && (b->wants[i] || b->needs[i]))
            ICE("backward: the input %s has a gradient", graph->node[i].name);
    }
    arena_free(arena);
}
