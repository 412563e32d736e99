/* report_html_layers.c: a table a stage: its layers, with shapes, parameters, work and times. */
#include "report_html.h"

static void layer_row(const Page *page, const NodeTime *time, NodeId id, int *layer, Text *out)
{
    Arena *arena = out->arena;
    const Graph *graph = page->balance->plan->sched->pipe->graph;
    const Node *node = &graph->node[id];
    const Cost cost = node->op->cost(graph, node);
    const int64_t params = graph_param_count(graph, id);
    Text call = text_new(arena);
    draw_call(node, &call);
    if (node->fused)
        text_printf(&call, ", then %s", node->fused);
    text_printf(out, "<tr>");
    if (node->op->flags & OP_WEIGHTED)
        html_cell(out, "n", "%d", ++*layer);
    else
        html_cell(out, "n", "%s", "");
    html_cell(out, NULL, "%s", node->name);
    html_cell(out, "w", "%s", call.data);
    html_cell(out, NULL, "%s", id == graph->loss ? "loss" : shape_text(arena, &node->shape));
    html_cell(out, "n", "%s", params ? arena_printf(arena, "%lld", (Int)params) : "");
    html_cell(out, "n", "%s", cost.macs > 0 ? human_count(arena, cost.macs) : "");
    html_cell(out, "n", "%s", human_seconds(arena, time[id].forward));
    html_cell(out, "n", "%s", human_seconds(arena, time[id].backward_data + time[id].backward_weights));
    html_cell(out, "n", "%s", time[id].update > 0 ? human_seconds(arena, time[id].update) : "");
    html_cell(out, NULL, "%s:%d", graph->file ? graph->file : "", graph_line(graph, node->span));
    text_printf(out, "</tr>\n");
}

void page_layers(const Page *page, Text *out)
{
    enum { OPEN = 24 }; /* layers that are shown at once */
    static const char *const columns[] = {"#",    "layer",   "operation", "output", "parameters",
                                          "MACs", "forward", "backward",  "update", "source"};
    static const char *const styles[] = {"n", NULL, NULL, NULL, "n", "n", "n", "n", "n", NULL};
    Arena *arena = out->arena;
    const Sched *sched = page->balance->plan->sched;
    const Pipe *pipe = sched->pipe;
    const NodeTime *time = page_times(arena, page);
    html_section(out, "layers", "Layers",
                 "The same in figures: MACs of the forward of an image, times of a %s; # numbers the weighted "
                 "layers, as ppv(...) counts.",
                 page_slice(pipe->graph));
    int layer = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        const Stage *stage = &pipe->stage[s];
        int nodes = 0;
        for (NodeId i = stage->first; i < stage->last; i++)
            nodes += pipe->graph->node[i].op != NULL;
        text_printf(out, "<details%s><summary>", pipe->graph->nnodes <= OPEN ? " open=\"\"" : "");
        html_printf(out, "Stage %d: %d layer%s, %lld parameters, staleness %d", s, nodes, plural(nodes),
                    (Int)stage->params, sched->staleness[s]);
        text_printf(out, "</summary>\n");
        html_table(out, arena_printf(arena, "layers of stage %d", s), columns, styles, COUNT(columns));
        for (NodeId i = stage->first; i < stage->last; i++)
            if (pipe->graph->node[i].op)
                layer_row(page, time, i, &layer, out);
        html_table_end(out);
        text_printf(out, "</details>\n");
    }
    html_section_end(out);
}
