/* graph_check.c: what must hold of every graph, and its stable text (--dump=graph). */
#include "op.h"

#include <stdlib.h>
#include <string.h>

/* ---- check ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const Name *)a, *(const Name *)b);
}

static void check_unique(const Graph *graph)
{
    Name *names = malloc((size_t)(graph->nnodes + 1) * sizeof *names);
    if (!names)
        ICE("graph: out of memory in the check");
    for (int i = 0; i < graph->nnodes; i++)
        names[i] = graph->node[i].name;
    qsort(names, (size_t)graph->nnodes, sizeof *names, compare_names);
    for (int i = 1; i < graph->nnodes; i++)
        if (!strcmp(names[i - 1], names[i]))
            ICE("graph: two nodes are named %s", names[i]);
    free(names);
}

static void check_node(const Graph *graph, NodeId id)
{
    const Node *n = &graph->node[id];
    if (!n->name || !n->value_name)
        ICE("graph: node %d has no name", id);
    if (n->shape.rank < 0 || n->shape.rank > MAX_RANK)
        ICE("graph: %s has rank %d", n->name, n->shape.rank);
    for (int i = 0; i < n->shape.rank; i++)
        if (n->shape.dim[i] < 1)
            ICE("graph: %s has dimension %d of %lld", n->name, i, (long long)n->shape.dim[i]);
    if (!n->op) {
        if (n->nin || n->nparams)
            ICE("graph: the input %s has inputs or parameters", n->name);
        return;
    }
    if (n->nin < n->op->min_in || n->nin > n->op->max_in)
        ICE("graph: %s has %d inputs", n->name, n->nin);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] < 0 || n->in[i] >= id)
            ICE("graph: %s reads node %d, which is not before it", n->name, n->in[i]);
    for (int i = 0; i < n->nparams; i++)
        if (n->param[i] < 0 || n->param[i] >= graph->nparams || graph->param[n->param[i]].node != id)
            ICE("graph: parameter %d of %s is not its own", i, n->name);
}

void graph_check(const Graph *graph)
{
    if (graph->batch < 1)
        ICE("graph: batch %lld", (long long)graph->batch);
    if (graph->microbatches < 1)
        ICE("graph: %lld microbatches", (long long)graph->microbatches);
    for (NodeId id = 0; id < graph->nnodes; id++)
        check_node(graph, id);
    check_unique(graph);
    for (int i = 0; i < graph->ninputs; i++)
        if (graph->input[i] < 0 || graph->input[i] >= graph->nnodes || graph->node[graph->input[i]].op)
            ICE("graph: input %d is no input node", i);
    if (graph->loss < 0 || graph->loss >= graph->nnodes || !graph->node[graph->loss].op ||
        !(graph->node[graph->loss].op->flags & OP_LOSS))
        ICE("graph: the loss is node %d", graph->loss);
    for (int i = 0; i < graph->ncuts; i++)
        if (graph->cut[i].before <= (i ? graph->cut[i - 1].before : 0) || graph->cut[i].before >= graph->nnodes)
            ICE("graph: cut %d stands before node %d", i, graph->cut[i].before);
}

/* ---- dump ---- */

static const char *param_dims(Arena *arena, const Param *param)
{
    Text text = text_new(arena);
    for (int i = 0; i < param->rank; i++)
        text_printf(&text, "%s%lld", i ? "," : "f32[", (long long)param->dim[i]);
    text_printf(&text, "]");
    return text.data;
}

static void dump_attrs(Text *out, const Node *node)
{
    for (int i = 0; i < node->op->nattrs; i++) {
        const AttrDef *def = &node->op->attr[i];
        const Attr *attr = &node->attr[i];
        text_printf(out, ", %s = ", def->name);
        attr_print(out, def->kind, attr);
    }
}

static void dump_node(const Graph *graph, NodeId id, Text *out)
{
    const Node *n = &graph->node[id];
    text_printf(out, "%4d  %s: %s", id, n->name, shape_text(out->arena, &n->shape));
    if (!n->op) {
        text_printf(out, " = input\n");
        return;
    }
    text_printf(out, " = %s(", n->op->name);
    for (int i = 0; i < n->nin; i++)
        text_printf(out, "%s%s", i ? ", " : "", graph->node[n->in[i]].name);
    dump_attrs(out, n);
    text_printf(out, ")");
    for (int i = 0; i < n->nchain; i++)
        if (n->chain[i]->nattrs && n->chain_attr)
            text_printf(out, " |> %s(%s = %g)", n->chain[i]->name, n->chain[i]->attr[0].name, n->chain_attr[i]);
        else
            text_printf(out, " |> %s", n->chain[i]->name);
    if (n->relu)
        text_printf(out, " + relu");
    if (n->fused)
        text_printf(out, "  fused %s", n->fused);
    if (strcmp(n->value_name, n->name))
        text_printf(out, "  value %s", n->value_name);
    text_printf(out, "  line %d\n", graph_line(graph, n->span));
    for (int i = 0; i < n->nparams; i++) {
        const Param *p = &graph->param[n->param[i]];
        text_printf(out, "      %s %s ", p->name, param_dims(out->arena, p));
        init_print(out, &p->init);
        text_printf(out, " fan %lld/%lld\n", (long long)p->fan_in, (long long)p->fan_out);
    }
}

void graph_dump(const Graph *graph, Text *out)
{
    text_printf(out, "network %s, batch %lld\n", graph->name, (long long)graph->batch);
    int cut = 0;
    for (NodeId id = 0; id < graph->nnodes; id++) {
        for (; cut < graph->ncuts && graph->cut[cut].before == id; cut++)
            text_printf(out, "----  register %d  line %d\n", cut, graph_line(graph, graph->cut[cut].span));
        dump_node(graph, id, out);
    }
    text_printf(out, "loss %s\n", graph->node[graph->loss].name);
}
