/* draw_network.c: the fused network as DOT: what runs in which stage, and what crosses from one to the next. See
 * draw.h.
 *
 * A cluster a stage (tint, number, border style), a grey cluster a cut with a box for each register in it. A value that
 * crosses several cuts goes from register to register: its delay line. Inputs stand outside: no register carries them.
 */
#include "draw.h"

#include <string.h>

typedef long long Int;

/* Tints of the colours of Okabe and Ito, which people with any colour vision tell apart; black text reads on all. */
static const char *const tints[] = {"#cfe6f5", "#fbe3b3", "#c2e8da", "#f0d7e5",
                                    "#f8f5c0", "#f5d0b8", "#dcdcdc", "#d9d3f2"};
static const char *const borders[] = {"solid", "dashed", "dotted"};

static void escaped(Text *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            text_append(out, "\\", 1);
        text_append(out, (unsigned char)*text < ' ' ? " " : text, 1);
    }
}

void draw_call(const Node *node, Text *out)
{
    int shown = 0;
    text_printf(out, "%s", node->op->name);
    for (int i = 0; i < node->op->nattrs; i++) {
        const AttrDef *def = &node->op->attr[i];
        const Attr *attr = &node->attr[i];
        if (!attr->given)
            continue;
        text_printf(out, "%s", shown++ ? ", " : "(");
        if (i > 0 || !def->required)
            text_printf(out, "%s = ", def->name);
        attr_print(out, def->kind, attr);
    }
    text_printf(out, "%s", shown ? ")" : "");
}

static void node_row(const Plan *plan, NodeId id, Text *out)
{
    const Graph *graph = plan->sched->pipe->graph;
    const Node *node = &graph->node[id];
    const int64_t params = graph_param_count(graph, id);
    text_printf(out, "        n%d [label=\"%s\\n", id, node->name);
    draw_call(node, out);
    if (node->fused)
        text_printf(out, ", then %s", node->fused);
    if (id != graph->loss)
        text_printf(out, "\\n%s", shape_text(out->arena, &node->shape));
    if (params)
        text_printf(out, "\\n%s parameters", human_count(out->arena, (double)params));
    text_printf(out, "\"");
    if (params)
        text_printf(out, ", penwidth=2");
    if (id == graph->loss)
        text_printf(out, ", shape=octagon");
    else if (!params)
        text_printf(out, ", style=\"filled,rounded\"");
    text_printf(out, "];\n");
}

static void stage_cluster(const Plan *plan, int s, Text *out)
{
    Arena *arena = out->arena;
    const Sched *sched = plan->sched;
    const Stage *stage = &sched->pipe->stage[s];
    text_printf(out, "    subgraph cluster_stage%d {\n", s);
    text_printf(out,
                "        s%d [shape=plain, style=\"\", fontsize=14, label=\"stage %d\\l%s parameters\\l%s MACs\\l"
                "staleness %d, ring %d\\l%s\\l\"];\n",
                s, s, human_count(arena, (double)stage->params), human_count(arena, stage->cost.macs),
                sched->staleness[s], sched->ring[s], human_bytes(arena, plan->stage[s].static_bytes));
    text_printf(out, "        style=\"filled,%s\"; fillcolor=\"%s\";\n", borders[s % COUNT(borders)],
                tints[s % COUNT(tints)]);
    for (NodeId id = stage->first; id < stage->last; id++)
        if (sched->pipe->graph->node[id].op)
            node_row(plan, id, out);
    text_printf(out, "    }\n");
}

static void cut_cluster(const Plan *plan, int cut, Text *out)
{
    Arena *arena = out->arena;
    const Pipe *pipe = plan->sched->pipe;
    const Graph *graph = pipe->graph;
    const char *file = graph->file ? graph->file : "";
    text_printf(out,
                "    subgraph cluster_cut%d {\n        c%d [shape=plain, style=\"\", fontcolor=white, fontsize=14, "
                "label=\"register\\lstage %d to %d\\l",
                cut, cut, cut, cut + 1);
    escaped(out, file);
    text_printf(out, ":%d\\l\"];\n        style=filled; fillcolor=\"#6e6e6e\"; margin=14;\n",
                graph_line(graph, graph->cut[cut].span));
    for (int i = 0; i < pipe->nedges; i++) {
        const Edge *edge = &pipe->edge[i];
        const Node *node = &graph->node[edge->value];
        if (edge->from != cut)
            continue;
        text_printf(out, "        r%d [shape=box3d, label=\"%s\\n%s a minibatch\\n%d slots forward", i,
                    node->value_name, human_bytes(arena, edge->bytes), plan->reg[i].forward_slots);
        if (edge->gradient)
            text_printf(out, ", %d back\"];\n", plan->reg[i].gradient_slots);
        else
            text_printf(out, ", nothing back\"];\n");
    }
    text_printf(out, "    }\n");
}

/* The index of the register behind stage `from` that holds a value; -1: it does not cross there. */
static int register_index(const Pipe *pipe, NodeId value, int from)
{
    const Edge *edge = from >= 0 ? pipe_edge(pipe, value, from) : NULL;
    return edge ? (int)(edge - pipe->edge) : -1;
}

/* Into and out of a register. What the last node of a stage gives is its main line: kept straight. */
static const char *both_ways(const Pipe *pipe, const Edge *edge)
{
    const bool main_line = edge->value == pipe->stage[edge->from].last - 1;
    if (edge->gradient)
        return main_line ? "dir=both, arrowtail=onormal, weight=2" : "dir=both, arrowtail=onormal";
    return main_line ? "dir=forward, weight=2" : "dir=forward";
}

/* From where a stage has a value to who reads it there. `skips`: it goes past another reader in that stage. */
static void reader_edge(const Plan *plan, NodeId value, NodeId reader, bool skips, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    const int stage = pipe_stage_of(pipe, reader), made_in = pipe_stage_of(pipe, value);
    const int from = made_in >= 0 && made_in < stage ? register_index(pipe, value, stage - 1) : -1;
    if (from >= 0)
        text_printf(out, "    r%d -> n%d [%s%s];\n", from, reader, both_ways(pipe, &pipe->edge[from]),
                    skips ? ", penwidth=2.5" : "");
    else
        text_printf(out, "    n%d -> n%d%s;\n", value, reader, skips ? " [penwidth=2.5]" : "");
}

static void edges(const Plan *plan, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    const Graph *graph = pipe->graph;
    int *read_in = arena_alloc(out->arena, sizeof *read_in * (size_t)graph->nnodes); /* the last stage, from 1 */
    for (NodeId id = 0; id < graph->nnodes; id++)
        for (int i = 0; i < graph->node[id].nin; i++) {
            const NodeId value = graph->node[id].in[i];
            const int stage = pipe_stage_of(pipe, id) + 1;
            reader_edge(plan, value, id, graph->node[value].op && read_in[value] == stage, out);
            read_in[value] = stage;
        }
    for (int i = 0; i < pipe->nedges; i++) {
        const Edge *edge = &pipe->edge[i];
        const int before = register_index(pipe, edge->value, edge->from - 1);
        if (before >= 0)
            text_printf(out, "    r%d -> r%d [%s, style=dashed, label=\"delay\"];\n", before, i, both_ways(pipe, edge));
        else
            text_printf(out, "    n%d -> r%d [%s];\n", edge->value, i, both_ways(pipe, edge));
    }
}

/* The head of the picture. Said last: clusters inherit what stands before them. */
static void head(const Plan *plan, Text *out)
{
    const Sched *sched = plan->sched;
    const Graph *graph = sched->pipe->graph;
    const int nstages = sched->pipe->nstages;
    text_printf(out, "    label=\"%s: %d stage%s, batch %lld, schedule %s", graph->name, nstages,
                nstages == 1 ? "" : "s", (Int)graph->batch, sched->phase[0].choice->preset);
    for (int p = 1; p < sched->nphases; p++)
        text_printf(out, ", then %s", sched->phase[p].choice->preset);
    text_printf(out, "\\l\"\n        + \"thick boxes have parameters; thick arrows go past another reader of the "
                     "value\\l\"");
    if (sched->pipe->nedges)
        text_printf(out, "\n        + \"hollow arrowheads: gradients come back through the registers\\l\""
                         "\n        + \"dashed arrows: a delay line, from register to register\\l\"");
    text_printf(out, ";\n    fontname=\"Helvetica\"; fontsize=14; labelloc=t; labeljust=l;\n");
}

void draw_network(const Plan *plan, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    const Graph *graph = pipe->graph;
    text_printf(out, "// The network as it runs. Drawn by pnetc from ");
    escaped(out, graph->file ? graph->file : "its source");
    text_printf(out,
                ".\ndigraph \"%s\" {\n"
                "    graph [nodesep=0.4, ranksep=0.45];\n"
                "    node [fontname=\"Helvetica\", fontsize=12, shape=box, style=filled, fillcolor=white, "
                "margin=\"0.12,0.06\"];\n"
                "    edge [fontname=\"Helvetica\", fontsize=12];\n",
                graph->name);
    for (int i = 0; i < graph->ninputs; i++) {
        const Node *input = &graph->node[graph->input[i]];
        text_printf(out, "    n%d [shape=ellipse, label=\"%s\\n%s\"];\n", graph->input[i], input->name,
                    shape_text(out->arena, &input->shape));
    }
    for (int s = 0; s < pipe->nstages; s++) {
        stage_cluster(plan, s, out);
        if (s + 1 < pipe->nstages)
            cut_cluster(plan, s, out);
    }
    edges(plan, out);
    head(plan, out);
    text_printf(out, "}\n");
}
