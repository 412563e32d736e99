/* pipe.c: stages from the cuts, and what crosses each of them.
 *
 * Edges of a value run from the stage that makes it to the last stage that reads it, one at each cut between. Cost of a
 * stage: the sum over its nodes. Time: linear in nodes, their inputs and edges. */
#include "pipe.h"

#include <string.h>

#include "element.h"

Graph pipe_slice(const Pipe *pipe, int stage)
{
    Graph slice = *pipe->graph;
    slice.batch /= pipe->stage[stage].replicas;
    return slice;
}

bool pipe_sliced(const Pipe *pipe, const Edge *edge)
{
    return pipe->stage[edge->from].replicas > 1 || pipe->stage[edge->from + 1].replicas > 1;
}

int stage_workers(const Stage *stage)
{
    return stage->halves ? 2 : stage->replicas;
}

int pipe_workers(const Pipe *pipe, int stages)
{
    int sum = 0;
    for (int s = 0; s < stages; s++)
        sum += stage_workers(&pipe->stage[s]);
    return sum;
}

bool pipe_replicated(const Pipe *pipe)
{
    bool any = false;
    for (int s = 0; s < pipe->nstages; s++)
        any |= pipe->stage[s].replicas > 1;
    return any;
}

bool pipe_halved(const Pipe *pipe)
{
    return pipe->stage[0].halves;
}

int pipe_rows(const Pipe *pipe)
{
    return pipe_halved(pipe) ? 2 * pipe->nstages - 1 : pipe->nstages;
}

int pipe_row(const Pipe *pipe, int stage, bool forward)
{
    return forward || !pipe->stage[stage].halves ? stage : 2 * (pipe->nstages - 1) - stage;
}

int pipe_row_stage(const Pipe *pipe, int row)
{
    return row < pipe->nstages ? row : 2 * (pipe->nstages - 1) - row;
}

const char *pipe_row_name(Arena *arena, const Pipe *pipe, int row)
{
    const int stage = pipe_row_stage(pipe, row);
    if (!pipe_halved(pipe))
        return arena_printf(arena, "stage %d", stage);
    if (!pipe->stage[stage].halves)
        return arena_printf(arena, "FS%d BKS1", stage + 1);
    return row == stage ? arena_printf(arena, "FS%d", stage + 1) : arena_printf(arena, "BKS%d", pipe->nstages - stage);
}

int pipe_stage_of(const Pipe *pipe, NodeId node)
{
    if (!pipe->graph->node[node].op)
        return -1;
    int low = 0, high = pipe->nstages - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (node < pipe->stage[middle].last)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int edge_order(const Edge *edge, NodeId value, int from)
{
    if (edge->from != from)
        return edge->from < from ? -1 : 1;
    return (edge->value > value) - (edge->value < value);
}

const Edge *pipe_edge(const Pipe *pipe, NodeId value, int from)
{
    int low = 0, high = pipe->nedges - 1;
    while (low <= high) {
        const int middle = (low + high) / 2;
        const int order = edge_order(&pipe->edge[middle], value, from);
        if (order == 0)
            return &pipe->edge[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return NULL;
}

bool pipe_reads_input(const Pipe *pipe, int stage, NodeId input)
{
    for (NodeId i = pipe->stage[stage].first; i < pipe->stage[stage].last; i++)
        for (int k = 0; k < pipe->graph->node[i].nin; k++)
            if (pipe->graph->node[i].in[k] == input)
                return true;
    return false;
}

bool pipe_normalises(const Pipe *pipe, int stage)
{
    static const char prefix[] = "batch_norm"; /* batch_norm_add, too */
    bool learns = false;
    for (NodeId i = pipe->stage[stage].first; i < pipe->stage[stage].last; i++) {
        const Node *node = &pipe->graph->node[i];
        if (node->op && !strncmp(node->op->name, prefix, sizeof prefix - 1))
            return true;
        learns |= node->nparams > 0;
    }
    return !learns;
}

static void add_cost(Cost *sum, const Cost *cost)
{
    sum->macs += cost->macs;
    sum->forward += cost->forward;
    sum->backward_data += cost->backward_data;
    sum->backward_weights += cost->backward_weights;
    sum->forward_bytes += cost->forward_bytes;
    sum->backward_bytes += cost->backward_bytes;
}

static Span cut_span(const Graph *graph, int cut)
{
    return cut >= 0 && cut < graph->ncuts ? graph->cut[cut].span : (Span){0};
}

/* Fills the stages; false after an error. */
static bool cut_stages(Pipe *pipe, Diags *diags)
{
    const Graph *graph = pipe->graph;
    if (graph->ncuts + 1 > MAX_STAGES) {
        diag_error(diags, P0502, cut_span(graph, MAX_STAGES - 1), "%d stages, but at most %d are possible",
                   graph->ncuts + 1, MAX_STAGES);
        return false;
    }
    int layer = 0;
    bool sound = true;
    for (int s = 0; s < pipe->nstages; s++) {
        Stage *stage = &pipe->stage[s];
        stage->first = s == 0 ? 0 : graph->cut[s - 1].before;
        stage->last = s + 1 < pipe->nstages ? graph->cut[s].before : graph->nnodes;
        stage->replicas = graph_replicas(graph, s);
        stage->halves = graph->halves && s + 1 < pipe->nstages;
        stage->first_layer = layer + 1;
        int nodes = 0;
        for (NodeId i = stage->first; i < stage->last; i++) {
            const Node *node = &graph->node[i];
            if (!node->op)
                continue;
            nodes++;
            layer += (node->op->flags & OP_WEIGHTED) != 0;
            stage->params += graph_param_count(graph, i);
            const Cost cost = node->op->cost ? node->op->cost(graph, node) : (Cost){0};
            add_cost(&stage->cost, &cost);
        }
        stage->last_layer = layer;
        if (nodes > 0)
            continue;
        sound = false;
        if (s == 0) {
            diag_error(diags, P0501, cut_span(graph, 0), "the first stage is empty: no op stands before this register");
            diag_hint(diags, "move the register behind the first layer");
        } else if (s + 1 == pipe->nstages) {
            diag_error(diags, P0501, cut_span(graph, s - 1),
                       "the last stage is empty: no op stands behind this register");
            diag_hint(diags, "move the register before the last layer");
        } else {
            diag_error(diags, P0501, cut_span(graph, s), "stage %d is empty: no op stands between two registers", s);
            diag_note(diags, cut_span(graph, s - 1), "the register before it");
        }
    }
    if (sound && graph->loss < pipe->stage[pipe->nstages - 1].first) {
        const int s = pipe_stage_of(pipe, graph->loss);
        diag_error(diags, P0503, cut_span(graph, s), "nothing behind this register leads to the loss");
        diag_note(diags, graph->node[graph->loss].span, "the loss stands before it");
        sound = false;
    }
    return sound;
}

/* What is known of a value across all its readers. */
typedef struct {
    int made;     /* stage; -1: input */
    int read;     /* last stage that reads it */
    int gradient; /* last stage that makes a contribution to its gradient; -1: none */
} Reach;

static Reach *reach(Arena *arena, const Pipe *pipe)
{
    const Graph *graph = pipe->graph;
    Reach *of = arena_alloc(arena, sizeof(Reach) * (size_t)(graph->nnodes + 1));
    for (int s = 0; s < pipe->nstages; s++)
        for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++) {
            const Node *node = &graph->node[i];
            of[i] = (Reach){node->op ? s : -1, s, -1};
            for (int k = 0; k < node->nin; k++)
                of[node->in[k]].read = s;
        }
    for (int b = 0; b < pipe->backward->nsteps;
         b++) { /* descending nodes: the first contribution is the last stage's */
        const BackwardStep *step = &pipe->backward->step[b];
        const Node *node = &graph->node[step->node];
        for (int k = 0; k < node->nin; k++)
            if (step->in[k] != GRADIENT_NONE && of[node->in[k]].gradient < 0)
                of[node->in[k]].gradient = of[step->node].made;
    }
    return of;
}

static bool value_bytes(const Graph *graph, NodeId value, int64_t *bytes)
{
    return checked_mul(shape_count(&graph->node[value].shape), graph->batch, bytes) &&
           checked_mul(*bytes, element_bytes(element_of_value(graph, value)), bytes);
}

static bool make_edges(Arena *arena, Diags *diags, Pipe *pipe)
{
    const Graph *graph = pipe->graph;
    const Reach *of = reach(arena, pipe);
    /* Sorted by `from`, then value: counting sort over the cuts; values come ascending. */
    int *next = arena_alloc(arena, sizeof(int) * (size_t)(pipe->nstages + 1));
    for (NodeId v = 0; v < graph->nnodes; v++)
        for (int s = of[v].made; s >= 0 && s < of[v].read; s++)
            next[s + 1]++;
    for (int s = 0; s < pipe->nstages; s++)
        next[s + 1] += next[s];
    pipe->nedges = next[pipe->nstages];
    pipe->edge = arena_alloc(arena, sizeof(Edge) * (size_t)(pipe->nedges + 1));
    for (NodeId v = 0; v < graph->nnodes; v++) {
        int64_t bytes = 0;
        if (of[v].made < 0 || of[v].made == of[v].read)
            continue;
        if (!value_bytes(graph, v, &bytes)) {
            diag_error(diags, P0504, graph->node[v].span, "the register of %s exceeds 2^63 bytes",
                       graph->node[v].value_name);
            return false;
        }
        for (int s = of[v].made; s < of[v].read; s++)
            pipe->edge[next[s]++] = (Edge){.value = v,
                                           .from = s,
                                           .gradient = of[v].gradient > s,
                                           .kept_producer = of[v].made == s && (pipe->backward->needs[v] & NEEDS_OUT),
                                           .bytes = bytes};
    }
    return true;
}

/* Marks on the edges what each node reads forward and backward. */
static void mark_reads(Pipe *pipe)
{
    const Graph *graph = pipe->graph;
    for (int s = 0; s < pipe->nstages; s++)
        for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
            for (int k = 0; k < graph->node[i].nin; k++) {
                const NodeId v = graph->node[i].in[k];
                const bool backward_reads = (k == 0 && pipe->backward->needs[i] & NEEDS_IN0) ||
                                            (k == 1 && pipe->backward->needs[i] & NEEDS_IN1);
                Edge *in = s > 0 ? (Edge *)pipe_edge(pipe, v, s - 1) : NULL;
                Edge *out = (Edge *)pipe_edge(pipe, v, s);
                if (in) {
                    in->read_forward = true;
                    in->kept_consumer |= backward_reads;
                } else if (out) {
                    out->kept_producer |= backward_reads;
                }
            }
}

Pipe *pipe_cut(Arena *arena, Diags *diags, const Graph *graph, const Backward *backward)
{
    Pipe *pipe = arena_alloc(arena, sizeof *pipe);
    pipe->graph = graph;
    pipe->backward = backward;
    pipe->nstages = graph->ncuts + 1;
    pipe->stage = arena_alloc(arena, sizeof(Stage) * (size_t)pipe->nstages);
    if (!cut_stages(pipe, diags) || !make_edges(arena, diags, pipe))
        return NULL;
    mark_reads(pipe);
    return pipe;
}

void pipe_check(const Pipe *pipe)
{
    const Graph *graph = pipe->graph;
    NodeId next = 0;
    int layer = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        const Stage *stage = &pipe->stage[s];
        if (stage->replicas < 1 || graph->batch % stage->replicas)
            ICE("pipe: stage %d has %d replicas", s, stage->replicas);
        if (stage->halves && (stage->replicas > 1 || s + 1 == pipe->nstages))
            ICE("pipe: stage %d cannot be in halves", s);
        if (stage->first != next || stage->last <= stage->first || stage->first_layer != layer + 1)
            ICE("pipe: stage %d does not join the one before it", s);
        next = stage->last;
        layer = stage->last_layer;
        for (NodeId i = stage->first; i < stage->last; i++) {
            if (graph->node[i].op && pipe_stage_of(pipe, i) != s)
                ICE("pipe: %s is not found in stage %d", graph->node[i].name, s);
            for (int k = 0; k < graph->node[i].nin; k++) {
                const NodeId v = graph->node[i].in[k];
                const int made = pipe_stage_of(pipe, v);
                for (int from = made; from >= 0 && from < s; from++)
                    if (!pipe_edge(pipe, v, from))
                        ICE("pipe: %s has no register from stage %d on", graph->node[v].name, from);
            }
        }
    }
    if (next != graph->nnodes)
        ICE("pipe: the stages hold %d of %d nodes", next, graph->nnodes);
    for (int e = 0; e < pipe->nedges; e++) {
        const Edge *edge = &pipe->edge[e];
        if (e > 0 && edge_order(&pipe->edge[e - 1], edge->value, edge->from) >= 0)
            ICE("pipe: edges out of order at %d", e);
        const int made = pipe_stage_of(pipe, edge->value);
        if (made < 0 || made > edge->from || edge->from + 1 >= pipe->nstages || edge->bytes <= 0)
            ICE("pipe: a register of %s that cannot be", graph->node[edge->value].name);
        if (edge->kept_consumer && !edge->read_forward)
            ICE("pipe: %s is kept where nobody reads it", graph->node[edge->value].name);
        if (edge->gradient && !pipe->backward->wants[edge->value])
            ICE("pipe: a gradient of %s that nobody wants", graph->node[edge->value].name);
    }
}

void pipe_dump(const Pipe *pipe, Text *out)
{
    const Graph *graph = pipe->graph;
    text_printf(out, "pipe %s: %d stage%s\n", graph->name, pipe->nstages, pipe->nstages == 1 ? "" : "s");
    int e = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        const Stage *stage = &pipe->stage[s];
        text_printf(out, "stage %d:", s);
        if (stage->replicas > 1)
            text_printf(out, " %d replicas,", stage->replicas);
        if (stage->halves)
            text_printf(out, " in halves,");
        if (stage->last_layer >= stage->first_layer)
            text_printf(out, " layers %d..%d,", stage->first_layer, stage->last_layer);
        text_printf(out, " %lld parameters, %.0f MACs, %.0f FLOPs forward, %.0f backward\n", (long long)stage->params,
                    stage->cost.macs, stage->cost.forward, stage->cost.backward_data + stage->cost.backward_weights);
        for (NodeId i = stage->first; i < stage->last; i++) {
            const Node *node = &graph->node[i];
            if (!node->op)
                continue;
            text_printf(out, "  %s %s", node->op->name, node->name);
            if (node->fused)
                text_printf(out, " (%s)", node->fused);
            text_printf(out, ": %s\n", element_shape_text(out->arena, graph, i));
        }
        for (; e < pipe->nedges && pipe->edge[e].from == s; e++) {
            const Edge *edge = &pipe->edge[e];
            text_printf(out, "  gives %s to stage %d: %lld bytes%s%s%s%s\n", graph->node[edge->value].value_name, s + 1,
                        (long long)edge->bytes, edge->gradient ? ", gradient back" : "",
                        edge->read_forward ? "" : ", passed on", edge->kept_consumer ? ", kept by the reader" : "",
                        edge->kept_producer ? ", kept by the giver" : "");
        }
    }
}
