/* lower_finish.c: the graph as later passes want it: only what the loss reads, inputs first, numbered anew. */
#include "lower.h"
#include "op.h"

static bool *reach_loss(Lower *l)
{
    const Graph *g = l->graph;
    bool *reached = arena_alloc(l->arena, (size_t)g->nnodes * sizeof *reached);
    reached[l->loss] = true;
    for (NodeId id = l->loss; id >= 0; id--)
        for (int i = 0; reached[id] && i < g->node[id].nin; i++)
            reached[g->node[id].in[i]] = true;
    return reached;
}

/* One warning for each chain of unused values: at its end. */
static void warn_unused(Lower *l, const bool *reached)
{
    const Graph *g = l->graph;
    bool *read = arena_alloc(l->arena, (size_t)g->nnodes * sizeof *read);
    for (NodeId id = 0; id < g->nnodes; id++)
        for (int i = 0; i < g->node[id].nin; i++)
            read[g->node[id].in[i]] = true;
    for (NodeId id = 0; id < g->nnodes; id++) {
        const Node *n = &g->node[id];
        if (reached[id] || read[id])
            continue;
        if (n->op)
            diag_warning(l->diags, P0215, n->span, "%s does not reach the loss and is left out", n->name);
        else
            diag_warning(l->diags, P0215, n->span, "the input %s is not used", n->name);
    }
}

/* Parameters of the kept nodes, in their order. */
static void renumber_params(Lower *l)
{
    Graph *g = l->graph;
    Param *old = g->param;
    Param *kept = arena_alloc(l->arena, (size_t)(g->nparams + 1) * sizeof *kept);
    int count = 0;
    for (NodeId id = 0; id < g->nnodes; id++) {
        Node *n = &g->node[id];
        for (int i = 0; i < n->nparams; i++) {
            kept[count] = old[n->param[i]];
            kept[count].node = id;
            n->param[i] = count++;
        }
    }
    g->param = kept;
    g->nparams = count;
}

const NodeId *lower_finish(Lower *l)
{
    Graph *g = l->graph;
    const bool *reached = reach_loss(l);
    warn_unused(l, reached);
    NodeId *to = arena_alloc(l->arena, (size_t)g->nnodes * sizeof *to);
    Node *node = arena_alloc(l->arena, (size_t)g->nnodes * sizeof *node);
    NodeId *input = arena_alloc(l->arena, (size_t)(l->inputs.count + 1) * sizeof *input);
    int count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (NodeId id = 0; id < g->nnodes; id++) {
            if (!reached[id]) {
                to[id] = -1;
                continue;
            }
            if ((g->node[id].op != NULL) != (pass == 1))
                continue;
            if (pass == 0)
                input[count] = count;
            node[count] = g->node[id];
            to[id] = count++;
        }
    g->ninputs = 0;
    for (NodeId id = 0; id < count; id++) {
        g->ninputs += node[id].op == NULL;
        for (int i = 0; i < node[id].nin; i++)
            node[id].in[i] = to[node[id].in[i]];
    }
    g->input = input;
    g->loss = to[l->loss];
    l->graph->node = node;
    l->node_room = 0;
    g->nnodes = count;
    renumber_params(l);
    return to;
}
