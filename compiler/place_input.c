/* place_input.c: a network as the numbers that place_solve works on.
 *
 * A boundary stands before a node of the fused graph when all written nodes that were merged into what is before it
 * stand before all others: then a register there changes nothing but where the stage ends. */
#include <math.h>
#include <stdlib.h>

#include "place.h"

enum { ALIGN_FLOATS = 16 };

/* ---- boundaries ---- */

static bool listed(const Cut *cut, int count, NodeId low, NodeId high)
{
    for (int i = 0; i < count; i++)
        if (cut[i].before >= low && cut[i].before <= high)
            return true;
    return false;
}

static void add_boundary(Placing *p, NodeId at, NodeId low, NodeId high, bool pin)
{
    p->at[p->n] = at;
    p->low[p->n] = low;
    p->high[p->n] = high;
    p->pin[p->n++] = pin;
}

static void make_boundaries(Placing *p)
{
    const Graph *g = p->graph;
    const AutoRegisters *wishes = &p->wishes;
    const size_t most = (size_t)g->nnodes + 2;
    NodeId *rest = arena_alloc(p->arena, sizeof *rest * most); /* first written node of what is at or behind */
    rest[g->nnodes] = p->written->nnodes;
    for (NodeId i = g->nnodes - 1; i >= 0; i--)
        rest[i] = g->node[i].first < rest[i + 1] ? g->node[i].first : rest[i + 1];
    p->at = arena_alloc(p->arena, sizeof *p->at * most);
    p->low = arena_alloc(p->arena, sizeof *p->low * most);
    p->high = arena_alloc(p->arena, sizeof *p->high * most);
    p->pin = arena_alloc(p->arena, sizeof *p->pin * most);
    add_boundary(p, 0, 0, 0, false);
    NodeId before = -1;
    for (NodeId i = 0; i <= g->loss; i++) {
        if (i > g->ninputs && before < rest[i]) {
            const NodeId low = before + 1, high = rest[i];
            const bool pin = listed(wishes->pin, wishes->npin, low, high);
            const bool allowed = !wishes->limited || listed(wishes->allow, wishes->nallow, low, high);
            if (pin || (allowed && !listed(wishes->forbid, wishes->nforbid, low, high)))
                add_boundary(p, i, low, high, pin);
        }
        before = g->node[i].last > before ? g->node[i].last : before;
    }
    add_boundary(p, g->nnodes, p->written->nnodes, p->written->nnodes, false);
    p->n--;
}

/* ---- the proof that a register at any of them leaves the nodes as they are ---- */

typedef struct {
    Name name;
    const Node *node;
} Named;

static int name_order(const void *x, const void *y)
{
    const uintptr_t a = (uintptr_t)((const Named *)x)->name, b = (uintptr_t)((const Named *)y)->name;
    return (a > b) - (a < b);
}

static bool same_node(const Named *list, int count, const Node *node)
{
    const Named wanted = {.name = node->name};
    const Named *found = bsearch(&wanted, list, (size_t)count, sizeof wanted, name_order);
    return found && found->node->op == node->op && found->node->value_name == node->value_name &&
           found->node->first == node->first && found->node->last == node->last;
}

static void drop_boundary(Placing *p, int b)
{
    if (b < 1 || b >= p->n)
        return;
    for (int i = b; i < p->n; i++) {
        p->at[i] = p->at[i + 1];
        p->low[i] = p->low[i + 1];
        p->high[i] = p->high[i + 1];
        p->pin[i] = p->pin[i + 1];
    }
    p->n--;
}

/* Drops the boundaries next to what fuses otherwise with a cut at every boundary: what all cuts leave as it is, each of
 * them leaves. False: there was something to drop. */
static bool boundaries_hold(Placing *p)
{
    Arena *scratch = arena_new();
    Graph cut = *p->written;
    cut.ncuts = p->n - 1;
    cut.cut = arena_alloc(scratch, sizeof(Cut) * (size_t)(p->n + 1));
    for (int b = 1; b < p->n; b++)
        cut.cut[b - 1] = (Cut){p->low[b], {0, 0}};
    const Graph *fused = fuse(scratch, &cut);
    const int count = p->graph->nnodes;
    Named *list = arena_alloc(scratch, sizeof *list * (size_t)(count + 1));
    for (NodeId i = 0; i < count; i++)
        list[i] = (Named){p->graph->node[i].name, &p->graph->node[i]};
    qsort(list, (size_t)count, sizeof *list, name_order);
    bool hold = true;
    for (NodeId i = fused->nnodes - 1; i >= 0; i--) {
        const Node *node = &fused->node[i];
        if (same_node(list, count, node))
            continue;
        hold = false;
        int b = 0;
        while (b < p->n && p->low[b] <= node->first)
            b++;
        drop_boundary(p, b); /* the first behind it, then the last before it */
        drop_boundary(p, b - 1);
    }
    arena_free(scratch);
    return hold;
}

static const Cut *forbidden(const AutoRegisters *wishes, NodeId before)
{
    for (int i = 0; i < wishes->nforbid; i++)
        if (wishes->forbid[i].before == before)
            return &wishes->forbid[i];
    return NULL;
}

/* Every position of `allow` and `pin` must be one where a register can stand. */
static bool check_wishes(Placing *p, Diags *diags, const Cut *list, int count, const char *what)
{
    for (int i = 0; i < count; i++) {
        bool found = false;
        const Cut *other = forbidden(&p->wishes, list[i].before);
        if (other) {
            diag_error(diags, P0720, list[i].span, "%s and forbid name the same place", what);
            diag_note(diags, other->span, "it is forbidden here");
            return false;
        }
        for (int b = 1; b < p->n && !found; b++)
            found = list[i].before >= p->low[b] && list[i].before <= p->high[b];
        if (found)
            continue;
        diag_error(diags, P0720, list[i].span, "%s: no register can be placed here", what);
        int b = 1;
        while (b + 1 < p->n && p->low[b] < list[i].before)
            b++;
        if (p->n > 1)
            diag_hint(diags, "ops on both sides run as one; the next place is after(\"%s\")",
                      cut_after(p->written, p->low[b]));
        return false;
    }
    return true;
}

/* ---- sums ---- */

static int64_t to_units(const Placing *p, double seconds)
{
    return (int64_t)llround(seconds * p->scale);
}

/* A statistic over one number has no variance (lower_replicas.c). */
static bool slice_holds(const Graph *graph, int replicas)
{
    bool hold = graph->batch % replicas == 0;
    for (int i = 0; hold && graph->batch / replicas == 1 && replicas > 1 && i < graph->nparams; i++) {
        const Shape *shape = &graph->node[graph->param[i].node].shape;
        hold = !graph->param[i].running || shape_count(shape) > shape->dim[0];
    }
    return hold;
}

bool placing_replicates(const Placing *p)
{
    const AutoRegisters *w = &p->wishes;
    return w->workers > 1 && !w->no_replicas && !w->least_memory && !(w->balance > 0) && !p->model->target->device;
}

/* 1, what the written graph has, and what the stages may have. */
static void add_replicas(Placing *p)
{
    p->replicas = arena_alloc(p->arena, sizeof *p->replicas * MAX_REPLICAS);
    for (int r = 1; r <= MAX_REPLICAS; r++) {
        bool wanted = r == 1 || (placing_replicates(p) && r <= p->wishes.workers && slice_holds(p->graph, r));
        for (int s = 0; s < p->written->nreplicas; s++)
            wanted |= p->written->replicas[s] == r;
        if (wanted)
            p->replicas[p->nreplicas++] = r;
    }
}

/* Of one of r replicas, on a kind of device: of each node in units, its part of the sum of the gradients included. */
static int64_t *work_of(const Placing *p, const NodeTime *time, const Device *device, int r, bool again)
{
    int64_t *sum = arena_alloc(p->arena, sizeof *sum * (size_t)(p->n + 1));
    NodeId i = 0;
    for (int b = 1; b <= p->n; b++) {
        sum[b] = sum[b - 1];
        for (; i < p->at[b]; i++) {
            const NodeTime slice = cost_slice(&time[i], r);
            const double sums = r > 1 ? cost_gradient_sum(device, cost_weight_floats(p->model, p->graph, i), r) : 0;
            const double made = again ? (double)p->graph->microbatches * slice.forward : 0;
            sum[b] += to_units(p, cost_minibatch(p->model, p->graph, device, i, &slice) + sums + made);
        }
    }
    return sum;
}

static void add_work(Placing *p)
{
    const Hardware *hardware = p->model->hardware;
    const size_t kinds = (size_t)hardware->ndevices;
    NodeTime **time = arena_alloc(p->arena, sizeof *time * kinds);
    double most = 0;
    for (int k = 0; k < hardware->ndevices; k++) {
        double sum = 0;
        time[k] = cost_times(p->arena, p->model, p->graph, p->backward, k);
        for (NodeId i = 0; i < p->graph->nnodes; i++)
            sum += cost_minibatch(p->model, p->graph, &hardware->device[k], i, &time[k][i]);
        most = sum > most ? sum : most;
    }
    p->again = arena_alloc(p->arena, sizeof *p->again * kinds);
    p->scale = most < 1e5 ? 1e12 : 1e17 / most; /* picoseconds, unless they would not fit */
    p->work = arena_alloc(p->arena, sizeof *p->work * kinds);
    for (int k = 0; k < hardware->ndevices; k++) {
        p->work[k] = arena_alloc(p->arena, sizeof **p->work * (size_t)p->nreplicas);
        p->again[k] = arena_alloc(p->arena, sizeof **p->again * (size_t)p->nreplicas);
        for (int c = 0; c < p->nreplicas; c++) {
            Graph slice = *p->graph;
            slice.batch /= p->replicas[c];
            const NodeTime *of_slice =
                p->replicas[c] > 1 ? cost_times(p->arena, p->model, &slice, p->backward, k) : time[k];
            p->work[k][c] = work_of(p, of_slice, &hardware->device[k], p->replicas[c], false);
            p->again[k][c] = work_of(p, of_slice, &hardware->device[k], p->replicas[c], true);
        }
    }
}

/* Sums over nodes [0, at[b]) of each boundary. */
static int64_t *by_boundary(const Placing *p, const int64_t *per_node)
{
    int64_t *sum = arena_alloc(p->arena, sizeof *sum * (size_t)(p->n + 1));
    NodeId i = 0;
    for (int b = 1; b <= p->n; b++) {
        sum[b] = sum[b - 1];
        for (; i < p->at[b]; i++)
            sum[b] += per_node[i];
    }
    return sum;
}

static int64_t *per_node(const Placing *p)
{
    return arena_alloc(p->arena, sizeof(int64_t) * (size_t)(p->graph->nnodes + 1));
}

static void add_transfers(Placing *p)
{
    const Graph *g = p->graph;
    /* Bytes that begin to cross behind a node, less those that end there. */
    int64_t *there = per_node(p), *back = per_node(p);
    NodeId *read = arena_alloc(p->arena, sizeof *read * (size_t)(g->nnodes + 1));
    NodeId *gradient = arena_alloc(p->arena, sizeof *gradient * (size_t)(g->nnodes + 1));
    for (NodeId i = 0; i < g->nnodes; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            read[g->node[i].in[k]] = i;
    for (int b = 0; b < p->backward->nsteps; b++) {
        const BackwardStep *step = &p->backward->step[b];
        for (int k = 0; k < g->node[step->node].nin; k++) {
            NodeId *last = &gradient[g->node[step->node].in[k]];
            if (step->in[k] != GRADIENT_NONE && step->node > *last)
                *last = step->node;
        }
    }
    for (NodeId v = 0; v < g->nnodes; v++) {
        if (!g->node[v].op)
            continue;
        const int64_t bytes = cost_register_bytes(p->model, g, v);
        if (read[v] > v) {
            there[v] += bytes;
            there[read[v]] -= bytes;
        }
        if (gradient[v] > v) {
            back[v] += bytes;
            back[gradient[v]] -= bytes;
        }
    }
    const int64_t *bytes_there = by_boundary(p, there), *bytes_back = by_boundary(p, back);
    const int nlinks = p->model->hardware->nlinks > 0 ? p->model->hardware->nlinks : 1;
    p->transfer = arena_alloc(p->arena, sizeof *p->transfer * (size_t)nlinks);
    for (int l = 0; l < nlinks; l++) {
        const Link link = cost_link(p->model, l);
        p->transfer[l] = arena_alloc(p->arena, sizeof(int64_t) * (size_t)(p->n + 1));
        for (int b = 1; b < p->n; b++)
            p->transfer[l][b] = to_units(p, cost_transfer(&link, bytes_there[b]) +
                                                (bytes_back[b] ? cost_transfer(&link, bytes_back[b]) : 0));
    }
}

static bool reads_backward(unsigned needs, int input)
{
    return (input == 0 && needs & NEEDS_IN0) || (input == 1 && needs & NEEDS_IN1);
}

/* A value is saved by the stage that makes it once the first node whose backward reads it is in that stage too. */
static void add_memory(Placing *p)
{
    const Graph *g = p->graph;
    int64_t *saved = per_node(p), *crossing = per_node(p), *weights = per_node(p), *stale = per_node(p);
    NodeId *reader = arena_alloc(p->arena, sizeof *reader * (size_t)(g->nnodes + 1));
    for (NodeId i = 0; i < g->nnodes; i++)
        reader[i] = p->backward->needs[i] & NEEDS_OUT ? i : g->nnodes;
    for (NodeId i = 0; i < g->nnodes; i++)
        for (int k = 0; k < g->node[i].nin; k++) {
            const NodeId v = g->node[i].in[k];
            if (reads_backward(p->backward->needs[i], k) && i < reader[v])
                reader[v] = i;
        }
    for (NodeId v = 0; v < g->nnodes; v++) {
        const Node *node = &g->node[v];
        if (reader[v] < g->nnodes && v != g->loss) {
            const int64_t bytes = cost_register_bytes(p->model, g, v);
            saved[reader[v]] += bytes;
            if (node->op && reader[v] > v) {
                crossing[v] += bytes;
                crossing[reader[v]] -= bytes;
            }
        }
        if (node->op && node->op->aux && p->backward->needs[v] & NEEDS_AUX)
            saved[v] += round_up(p->model->target->aux_bytes(g, v), 64);
        for (int k = 0; k < node->nparams; k++)
            if (!g->param[node->param[k]].running)
                weights[v] += round_up(p->model->target->param_floats(g, node->param[k]), ALIGN_FLOATS);
        stale[v] = graph_param_count(g, v);
    }
    p->saved = by_boundary(p, saved);
    p->weights = by_boundary(p, weights);
    p->stale = by_boundary(p, stale);
    p->saved_before = by_boundary(p, crossing);
    int64_t most = 0;
    for (int b = 0; b <= p->n; b++) {
        p->saved_before[b] += p->saved[b];
        most = p->saved_before[b] > most ? p->saved_before[b] : most;
        p->saved_before[b] = most;
    }
}

Placing *placing_new(Arena *arena, Diags *diags, const Graph *written, const Settings *settings, const CostModel *model,
                     const AutoRegisters *wishes)
{
    Placing *p = arena_alloc(arena, sizeof *p);
    Graph *joined = arena_alloc(arena, sizeof *joined), *uncut = arena_alloc(arena, sizeof *uncut);
    *joined = *uncut = *written;
    joined->halves = uncut->halves = false;
    uncut->ncuts = 0;
    p->arena = arena;
    p->written = joined;
    p->graph = fuse(arena, uncut);
    p->backward = backward(arena, p->graph);
    p->settings = settings;
    p->model = model;
    p->wishes = wishes ? *wishes : (AutoRegisters){.max_stale = -1};
    make_boundaries(p);
    while (!boundaries_hold(p))
        ;
    if (!check_wishes(p, diags, p->wishes.allow, p->wishes.nallow, "allow") ||
        !check_wishes(p, diags, p->wishes.pin, p->wishes.npin, "pin"))
        return NULL;
    add_replicas(p);
    add_work(p);
    add_transfers(p);
    add_memory(p);
    return p;
}
