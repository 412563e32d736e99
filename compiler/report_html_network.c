/* report_html_network.c: the network in program order, cut into its stages: what flows, and what each layer costs. */
#include <math.h>

#include "report_html.h"

enum { LEFT = 64, RIGHT = 10, NAMES = 116, LEAST_NAMED = 15 };

const NodeTime *page_times(Arena *arena, const Page *page)
{
    const Prediction *p = page->balance->prediction;
    const Pipe *pipe = page->balance->plan->sched->pipe;
    NodeTime *time = arena_alloc(arena, sizeof *time * (size_t)pipe->graph->nnodes);
    for (int kind = 0; kind < p->model->hardware->ndevices; kind++) {
        const NodeTime *of_kind = NULL;
        for (int s = 0; s < pipe->nstages; s++) {
            if (p->stage[s].kind != kind)
                continue;
            if (!of_kind)
                of_kind = cost_times(arena, p->model, pipe->graph, pipe->backward, kind);
            for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
                time[i] = of_kind[i];
        }
    }
    return time;
}

Columns page_columns(Arena *arena, const Graph *graph)
{
    enum { LEAST = 4, MOST = 96 };
    Columns c = {.left = LEFT};
    c.node = arena_alloc(arena, sizeof *c.node * (size_t)graph->nnodes);
    c.column = arena_alloc(arena, sizeof *c.column * (size_t)graph->nnodes);
    for (NodeId i = 0; i < graph->nnodes; i++) {
        c.column[i] = graph->node[i].op ? c.count : -1;
        if (graph->node[i].op)
            c.node[c.count++] = i;
    }
    c.pitch = fmin(MOST, fmax(LEAST, floor((PAGE_WIDTH - LEFT - RIGHT) * 10.0 / c.count) / 10));
    c.width = LEFT + c.pitch * c.count + RIGHT;
    return c;
}

static bool weighted(const Node *node)
{
    return node->op && node->op->flags & OP_WEIGHTED;
}

void page_names(const Page *page, const Columns *c, double y, Text *out)
{
    const Graph *graph = page->balance->plan->sched->pipe->graph;
    int layer = 0;
    for (int i = 0; i < c->count; i++) {
        const Node *node = &graph->node[c->node[i]];
        const double x = c->left + (i + 0.5) * c->pitch;
        layer += weighted(node);
        if (c->pitch >= LEAST_NAMED) {
            text_printf(out, "<g transform=\"translate(%g %g) rotate(-42)\">", round(x * 100 + 400) / 100, y + 14);
            const int room = (int)((x - 4) / 5); /* characters, at this angle */
            chart_text(out, "small e", 0, 0, "%s", chart_short(out->arena, node->name, room < 22 ? room : 22));
            text_printf(out, "</g>\n");
        } else if (weighted(node) && (layer == 1 || layer % 10 == 0)) {
            chart_line(out, "axis", x, y, x, y + 5);
            chart_text(out, "small m", x, y + 18, "%d", layer);
        }
    }
    if (c->pitch < LEAST_NAMED)
        chart_text(out, "small", c->left, y + 36, "number of the weighted layer, as ppv(...) counts");
}

static double names_height(const Columns *c)
{
    return c->pitch >= LEAST_NAMED ? NAMES : 44;
}

/* The first and last column of a stage; false: it has none. */
static bool stage_columns(const Columns *c, const Stage *stage, int *first, int *last)
{
    *first = -1;
    for (NodeId i = stage->first; i < stage->last; i++)
        if (c->column[i] >= 0) {
            *first = *first < 0 ? c->column[i] : *first;
            *last = c->column[i];
        }
    return *first >= 0;
}

void page_bands(const Page *page, const Columns *c, double top, double bottom, Text *out)
{
    Arena *arena = out->arena;
    const Sched *sched = page->balance->plan->sched;
    for (int s = 0; s < sched->pipe->nstages; s++) {
        const Stage *stage = &sched->pipe->stage[s];
        int first, last;
        if (!stage_columns(c, stage, &first, &last))
            continue;
        const double x = c->left + first * c->pitch, width = (last - first + 1) * c->pitch;
        const char *const texts[] = {
            arena_printf(arena, "stage %d, staleness %d, ring %d", s, sched->staleness[s], sched->ring[s]),
            arena_printf(arena, "stage %d", s), arena_printf(arena, "%d", s)};
        int text = 0;
        while (text + 1 < COUNT(texts) && chart_width(texts[text], 12) > width - 6)
            text++;
        if (s % 2 == 0)
            text_printf(out, "<rect class=\"track\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\"/>\n", x, top, width,
                        bottom - top);
        chart_text(out, "b m", x + width / 2, top - 8, "%s", texts[text]);
        if (s > 0)
            chart_line(out, "cut", x, top - 20, x, bottom);
    }
}

/* A value read by other than the next node goes over the columns between. */
static void skips(const Page *page, const Columns *c, double y, double height, Text *out)
{
    const Pipe *pipe = page->balance->plan->sched->pipe;
    const Graph *graph = pipe->graph;
    for (int i = 0; i < c->count; i++) {
        const Node *node = &graph->node[c->node[i]];
        for (int k = 0; k < node->nin; k++) {
            const int from = c->column[node->in[k]];
            if (from < 0 || i - from < 2)
                continue;
            const int crossed = pipe_stage_of(pipe, c->node[i]) - pipe_stage_of(pipe, node->in[k]);
            const double x1 = c->left + (from + 0.5) * c->pitch, x2 = c->left + (i + 0.5) * c->pitch;
            const double rise = fmin(height, 6 + 5 * sqrt((double)(i - from)));
            text_printf(out, "<path class=\"skip%s\" d=\"M%.2f %gQ%.2f %g %.2f %g\"><title>",
                        crossed ? " crossing" : "", x1, y, (x1 + x2) / 2, y - 2 * rise, x2, y);
            html_printf(out, "%s goes to %s", graph->node[node->in[k]].value_name, node->name);
            if (crossed)
                html_printf(out, "\nover %d register%s", crossed, plural(crossed));
            text_printf(out, "</title></path>\n");
        }
    }
}

static bool has_skips(const Graph *graph, const Columns *c)
{
    bool found = false;
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < graph->node[c->node[i]].nin; k++)
            found |= c->column[graph->node[c->node[i]].in[k]] >= 0 && i - c->column[graph->node[c->node[i]].in[k]] > 1;
    return found;
}

static void byte_axis(const Columns *c, double most, double top, double bottom, Text *out)
{
    const double step = chart_step(most, 5);
    for (int i = 0; i * step <= most * 1.0001; i++) {
        const double y = bottom - (bottom - top) * i * step / most;
        chart_line(out, "grid", c->left, y, c->width - RIGHT, y);
        chart_text(out, "small e", c->left - 6, y + 4, "%s", human_bytes(out->arena, (int64_t)(i * step)));
    }
}

static void second_axis(const Columns *c, double most, double top, double bottom, Text *out)
{
    const double step = chart_step(most, 4);
    for (int i = 0; i * step <= most * 1.0001; i++) {
        const double y = bottom - (bottom - top) * i * step / most;
        chart_line(out, "grid", c->left, y, c->width - RIGHT, y);
        chart_text(out, "small e", c->left - 6, y + 4, "%s", human_seconds(out->arena, i * step));
    }
}

static double bytes_of(const Graph *graph, NodeId id)
{
    return (double)element_bytes(element_of_value(graph, id)) * (double)shape_count(&graph->node[id].shape) *
           (double)graph->batch;
}

static void flow(const Page *page, const Columns *c, Text *out)
{
    enum { HEAD = 26, ARCS = 50, HEIGHT = 130 };
    Arena *arena = out->arena;
    const Graph *graph = page->balance->plan->sched->pipe->graph;
    double most = 1;
    for (int i = 0; i < c->count; i++)
        most = fmax(most, bytes_of(graph, c->node[i]));
    const bool arcs = has_skips(graph, c);
    const double top = HEAD + (arcs ? ARCS : 10), bottom = top + HEIGHT;
    chart_open(out, "what each layer gives to the next, in program order", c->width, bottom + names_height(c));
    page_bands(page, c, HEAD, bottom, out);
    byte_axis(c, most, top, bottom, out);
    for (int i = 0; i < c->count; i++) {
        const Node *node = &graph->node[c->node[i]];
        const double bytes = bytes_of(graph, c->node[i]);
        const double height = fmax(1.5, HEIGHT * bytes / most), gap = c->pitch > 12 ? 2 : 0.5;
        chart_box(out, weighted(node) ? "S" : "T", c->left + i * c->pitch + gap, bottom - height, c->pitch - 2 * gap,
                  height, "%s: %s%s%s\n%s, %s a %s\n%lld parameters", node->name, node->op->name,
                  node->fused ? ", then " : "", node->fused ? node->fused : "",
                  element_shape_text(arena, graph, c->node[i]), human_bytes(arena, (int64_t)bytes), page_slice(graph),
                  (Int)graph_param_count(graph, c->node[i]));
    }
    skips(page, c, top + 2, ARCS - 8, out);
    page_names(page, c, bottom, out);
    chart_close(out);
    static const LegendEntry entries[] = {{"S", "output of a layer with weights"}, {"T", "of another"}};
    html_legend(out, entries, COUNT(entries));
}

static void costs(const Page *page, const Columns *c, Text *out)
{
    enum { HEAD = 26, HEIGHT = 200 };
    Arena *arena = out->arena;
    const Graph *graph = page->balance->plan->sched->pipe->graph;
    const NodeTime *time = page_times(arena, page);
    double most = 1e-9;
    for (int i = 0; i < c->count; i++)
        most = fmax(most, node_time_sum(&time[c->node[i]]));
    const double top = HEAD + 8, bottom = top + HEIGHT;
    chart_open(out, "time of each layer, in program order", c->width, bottom + names_height(c));
    page_bands(page, c, HEAD, bottom, out);
    second_axis(c, most, top, bottom, out);
    for (int i = 0; i < c->count; i++) {
        const Node *node = &graph->node[c->node[i]];
        const NodeTime *t = &time[c->node[i]];
        const double parts[] = {t->forward, t->backward_data + t->backward_weights, t->update};
        static const char *const styles[] = {"F", "B", "U"}, *const thin[] = {"F thin", "B thin", "U thin"};
        const double gap = c->pitch > 12 ? 3 : 0.5;
        double y = bottom;
        for (int k = 0; k < COUNT(parts); k++) {
            const double height = HEIGHT * parts[k] / most;
            if (height < 0.3)
                continue;
            y -= height;
            chart_box(out, (c->pitch > 12 ? styles : thin)[k], c->left + i * c->pitch + gap, y, c->pitch - 2 * gap,
                      height, "%s, %s\nforward %s, backward %s, update %s", node->name,
                      t->measured ? "measured" : "by its FLOPs and bytes", human_seconds(arena, parts[0]),
                      human_seconds(arena, parts[1]), human_seconds(arena, parts[2]));
        }
    }
    page_names(page, c, bottom, out);
    chart_close(out);
    static const LegendEntry entries[] = {{"F", "forward"}, {"B", "backward"}, {"U", "update of the weights"}};
    html_legend(out, entries, COUNT(entries));
}

void page_network(const Page *page, Text *out)
{
    const Graph *graph = page->balance->plan->sched->pipe->graph;
    const Columns c = page_columns(out->arena, graph);
    html_section(out, "network", "Network by stage",
                 "Each column is a layer and the size of what it gives to the next, for a %s of %lld; arcs skip "
                 "layers, dotted lines are pipeline registers%s.",
                 page_slice(graph), (Int)graph->batch, graph->ncuts ? "; thick arcs cross one" : "");
    flow(page, &c, out);
    html_section_end(out);
    html_section(out, "cost", "Cost of each layer", "Time of a %s on the worker of its stage: %s, machine %s (%s).",
                 page_slice(graph), prediction_source(out->arena, page->balance->prediction),
                 page->balance->prediction->model->hardware->name, page->balance->prediction->model->hardware->source);
    costs(page, &c, out);
    html_section_end(out);
}
