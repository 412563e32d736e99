/* report.c: what `pnetc check` prints: a table of the stages, what they add up to, and a verdict on their balance.
 *
 * Nothing here is measured or predicted in time: work is counted in multiply-adds, and the text says so. Lines are
 * under 100 columns. */
#include "report.h"

#include <string.h>

enum { NAMES_WIDTH = 21 };

typedef long long Int;

/* Nodes whose names tell what a stage holds: all but inputs and, where there are others, the loss. */
static bool named(const Plan *plan, int s, NodeId i)
{
    const Pipe *pipe = plan->sched->pipe;
    return pipe->graph->node[i].op && (i != pipe->graph->loss || i == pipe->stage[s].first);
}

/* The names of a stage's nodes: all, or as many as fit and the last. */
static const char *stage_names(Arena *arena, const Plan *plan, int s)
{
    const Stage *stage = &plan->sched->pipe->stage[s];
    const Node *node = plan->sched->pipe->graph->node;
    NodeId last = stage->last - 1;
    while (last > stage->first && !named(plan, s, last))
        last--;
    const char *end = node[last].name;
    const size_t rest = strlen(" .. ") + strlen(end);
    Text all = text_new(arena);
    size_t fits = 0; /* length of the names that leave room for the last */
    for (NodeId i = stage->first; i <= last && all.length <= NAMES_WIDTH; i++) {
        if (!named(plan, s, i))
            continue;
        text_printf(&all, "%s%s", all.length ? " " : "", node[i].name);
        if (all.length + rest <= NAMES_WIDTH)
            fits = all.length;
    }
    if (all.length <= NAMES_WIDTH)
        return all.data;
    if (fits > 0)
        return arena_printf(arena, "%.*s .. %s", (int)fits, all.data, end);
    return strlen(end) > NAMES_WIDTH ? arena_printf(arena, "..%s", end + strlen(end) - (NAMES_WIDTH - 2)) : end;
}

static const char *layers_text(Arena *arena, const Stage *stage)
{
    if (stage->last_layer < stage->first_layer)
        return "-";
    if (stage->last_layer == stage->first_layer)
        return arena_printf(arena, "%d", stage->first_layer);
    return arena_printf(arena, "%d..%d", stage->first_layer, stage->last_layer);
}

typedef struct {
    double macs, most; /* of all stages, of the slowest */
    int slowest;
    int64_t params, saved, transient, weights, registers;
} Totals;

static Totals add_up(const Plan *plan)
{
    const Pipe *pipe = plan->sched->pipe;
    Totals sum = {0};
    for (int s = 0; s < pipe->nstages; s++) {
        const Stage *stage = &pipe->stage[s];
        const StagePlan *memory = &plan->stage[s];
        sum.macs += stage->cost.macs;
        if (stage->cost.macs > sum.most) {
            sum.most = stage->cost.macs;
            sum.slowest = s;
        }
        sum.params += stage->params;
        sum.saved += memory->saved_bytes;
        sum.transient += memory->transient_bytes;
        sum.registers += memory->register_bytes;
        sum.weights += memory->weight_floats * 4 * (memory->versions + 1 + memory->states) + memory->running_floats * 4;
    }
    return sum;
}

static void table(const Plan *plan, const Totals *sum, Text *out)
{
    static const char row[] = "%5s %9s %7s %8s %5s %5s %4s %8s %8s %8s  %s\n";
    Arena *arena = out->arena;
    const Sched *sched = plan->sched;
    text_printf(out, row, "stage", "layers", "params", "MACs", "share", "stale", "ring", "gives", "saved", "static",
                "nodes");
    for (int s = 0; s < sched->pipe->nstages; s++) {
        const Stage *stage = &sched->pipe->stage[s];
        const StagePlan *memory = &plan->stage[s];
        text_printf(out, row, arena_printf(arena, "%d", s), layers_text(arena, stage),
                    human_count(arena, (double)stage->params), human_count(arena, stage->cost.macs),
                    arena_printf(arena, "%.0f %%", sum->macs > 0 ? 100 * stage->cost.macs / sum->macs : 0.0),
                    arena_printf(arena, "%d", sched->staleness[s]), arena_printf(arena, "%d", sched->ring[s]),
                    memory->register_bytes ? human_bytes(arena, memory->register_bytes) : "-",
                    human_bytes(arena, memory->saved_bytes), human_bytes(arena, memory->static_bytes),
                    stage_names(arena, plan, s));
    }
}

static void phases(const Sched *sched, Text *out)
{
    for (int p = 0; p < sched->nphases; p++) {
        const PhaseChoice *choice = sched->phase[p].choice;
        text_printf(out, "%-12s %s", p ? "" : "schedule", choice->preset);
        if (choice->minibatches > 0)
            text_printf(out, ", %lld minibatches", (Int)choice->minibatches);
        else if (p > 0)
            text_printf(out, ", the rest");
        text_printf(out, " (order %s, weights %s)\n", choice->order->name, choice->rule->name);
        text_printf(out, "%-12s   %s\n%-12s   %s\n", "", choice->order->doc, "", choice->rule->doc);
    }
}

static void verdict(const Plan *plan, const Totals *sum, Text *out)
{
    const Sched *sched = plan->sched;
    const int nstages = sched->pipe->nstages;
    const double allowed = sched->settings->pipeline.balance;
    bool overlaps = false;
    for (int p = 0; p < sched->nphases; p++)
        for (int s = 0; s < nstages; s++)
            overlaps |= sched->phase[p].stage[s].warmup > 0;
    if (nstages == 1) {
        text_printf(out, "balance      one stage, one worker: nothing to balance\n");
        return;
    }
    if (!overlaps) {
        text_printf(out, "balance      stages take turns in this schedule: no faster than one worker\n");
        return;
    }
    if (sum->macs <= 0) {
        text_printf(out, "balance      no multiply-adds to judge by\n");
        return;
    }
    const double factor = sum->most * nstages / sum->macs;
    text_printf(out, "balance      %s by MACs: stage %d has %.2f x the mean (up to %.2f allowed)\n",
                allowed > 0 && factor > allowed ? "unbalanced" : "balanced", sum->slowest, factor, allowed);
    text_printf(out,
                "             at best %.2f x one worker with %d workers, if time follows MACs; it is not measured\n",
                sum->macs / sum->most, nstages);
    text_printf(out, "             one worker may be faster: small stages wait for registers, cores may be fewer\n");
}

void report_check(const Plan *plan, Text *out)
{
    Arena *arena = out->arena;
    const Sched *sched = plan->sched;
    const Graph *graph = sched->pipe->graph;
    const int nstages = sched->pipe->nstages;
    const Totals sum = add_up(plan);
    int most_stale = 0;
    for (int s = 0; s < nstages; s++)
        most_stale = sched->staleness[s] > most_stale ? sched->staleness[s] : most_stale;

    text_printf(out, "%s on %s: %d stage%s", graph->name, plan->target->name, nstages, nstages == 1 ? "" : "s");
    if (nstages > 1)
        text_printf(out, " (%d as the paper counts)", 2 * nstages);
    text_printf(out, ", batch %lld\n\n", (Int)graph->batch);
    table(plan, &sum, out);

    text_printf(out, "\nparameters   %lld, %.4g %% of them stale", (Int)sum.params, 100 * sched->stale_fraction);
    if (most_stale > 0)
        text_printf(out, " (by up to %d updates)", most_stale);
    text_printf(out, "\nwork         %.0f MACs an image, forward\n", sum.macs);
    text_printf(out, "registers    %s a minibatch, there and back\n", human_bytes(arena, plan->traffic_bytes));
    text_printf(out, "memory       %s static: saved %s, transient %s, weights %s, registers %s\n",
                human_bytes(arena, plan->static_bytes), human_bytes(arena, sum.saved),
                human_bytes(arena, sum.transient), human_bytes(arena, sum.weights), human_bytes(arena, sum.registers));
    phases(sched, out);
    verdict(plan, &sum, out);
}
