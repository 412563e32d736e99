/* report.c: what `pnetc check` prints: a table of the stages, what they add up to, and a verdict on their balance.
 *
 * Times are predictions, and the text says from what: a machine's description or a profile. Lines are under 100
 * columns. */
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

/* "1", "1 x2" with two replicas */
static const char *stage_text(Arena *arena, int s, int replicas)
{
    return replicas > 1 ? arena_printf(arena, "%d x%d", s, replicas) : arena_printf(arena, "%d", s);
}

typedef struct {
    double macs;
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
        sum.params += stage->params;
        sum.saved += memory->saved_bytes * stage->replicas;
        sum.transient += (memory->transient_bytes + memory->forward_transient_bytes) * stage->replicas;
        sum.registers += memory->register_bytes;
        sum.weights += weight_bytes(memory) + (stage->replicas - 1) * gradient_bytes(memory) +
                       memory->running_floats * 4 * stage->replicas;
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
        text_printf(out, row, stage_text(arena, s, stage->replicas), layers_text(arena, stage),
                    human_count(arena, (double)stage->params), human_count(arena, stage->cost.macs),
                    arena_printf(arena, "%.0f %%", sum->macs > 0 ? 100 * stage->cost.macs / sum->macs : 0.0),
                    arena_printf(arena, "%d", sched->staleness[s]), arena_printf(arena, "%d", sched->ring[s]),
                    memory->register_bytes ? human_bytes(arena, memory->register_bytes) : "-",
                    human_bytes(arena, memory->saved_bytes * stage->replicas), human_bytes(arena, memory->static_bytes),
                    stage_names(arena, plan, s));
    }
}

static void phases(const Sched *sched, Text *out)
{
    for (int p = 0; p < sched->nphases; p++) {
        const PhaseChoice *choice = sched->phase[p].choice;
        text_printf(out, "%-12s %s", p ? "" : "schedule", choice->preset);
        if (choice->minibatches > 0 || p > 0)
            text_printf(out, ", %s", phase_length(out->arena, sched, p));
        if (choice->own_lr)
            text_printf(out, ", lr %s(%g)", choice->lr.name, choice->lr.arg[0].number);
        text_printf(out, " (order %s, weights %s)\n", choice->order->name, choice->rule->name);
        text_printf(out, "%-12s   %s\n%-12s   %s\n", "", choice->order->doc, "", choice->rule->doc);
    }
}

static const char *worker_text(Arena *arena, const Prediction *p, const StageTime *t)
{
    const Device *device = p->model->hardware->device;
    const char *name = device[t->kind].name, *back = device[t->back_kind].name;
    if (t->workers > 1)
        return arena_printf(arena, "%d-%d, %.40s", t->worker, t->worker + t->workers - 1, name);
    if (t->halves && t->kind != t->back_kind)
        return arena_printf(arena, "%d, %.20s; %d, %.20s", t->worker, name, t->back_worker, back);
    if (t->halves)
        return arena_printf(arena, "%d; %d, %.40s", t->worker, t->back_worker, name);
    return arena_printf(arena, "%d, %.40s", t->worker, name);
}

/* Forward, backward and update of each stage, and its register. */
static void times(const Prediction *p, const Pipe *pipe, Text *out)
{
    static const char row[] = "%5s %9s %9s %9s %6s %9s  %s\n";
    Arena *arena = out->arena;
    const Hardware *hardware = p->model->hardware;
    text_printf(out, row, "stage", "forward", "backward", "update", "share", "register", "worker");
    for (int s = 0; s < p->nstages; s++) {
        const StageTime *t = &p->stage[s];
        text_printf(out, row, stage_text(arena, s, pipe->stage[s].replicas), human_seconds(arena, t->forward),
                    human_seconds(arena, t->backward), human_seconds(arena, t->update),
                    arena_printf(arena, "%.0f %%", p->work > 0 ? 100 * stage_time(t) / p->work : 0.0),
                    s + 1 < p->nstages ? human_seconds(arena, t->give + t->back) : "-", worker_text(arena, p, t));
    }
    text_printf(out, "%s, machine %.24s (%.40s); of a minibatch; shares of all stages' work\n",
                prediction_source(arena, p), hardware->name, hardware->source);
    if (pipe_replicated(pipe))
        text_printf(out, "x2: replicas, each with its slice of every minibatch; times of one, the sum of gradients in "
                         "update; bytes of all\n");
    if (pipe_halved(pipe))
        text_printf(out,
                    "two workers: the first does the forwards, the second backwards and updates; they share weights "
                    "and values\n");
}

static void balance_lines(const Balance *b, const Graph *written, Text *out)
{
    const Prediction *p = b->prediction;
    Arena *arena = out->arena;
    if (p->nstages == 1) {
        text_printf(out, "balance      one stage%s: nothing to balance\n", p->workers == 1 ? ", one worker" : "");
        return;
    }
    if (!b->overlaps) {
        text_printf(out, "balance      stages take turns in this schedule: no faster than one worker\n");
        return;
    }
    const bool halves = p->parts > p->nstages;
    text_printf(out, "balance      %s: %s has %.2f x the mean time (up to %.2f allowed)\n",
                b->unbalanced ? "unbalanced" : "balanced", prediction_slowest(arena, p), b->factor,
                b->plan->sched->settings->pipeline.balance);
    if (halves) {
        text_printf(out,
                    "             of %d workers: two for each stage but the last; places are solved for joined ones\n",
                    p->parts);
    } else if (b->ncuts > 0) {
        text_printf(out, "better cut   after %s\n", balance_cuts_text(arena, written, b->cut, b->ncuts));
        text_printf(out, "             a step of %s, %.2f x one worker, %.4g %% of the weights stale\n",
                    human_seconds(arena, b->better.step), b->better.speedup, 100 * b->better.stale_fraction);
    } else {
        text_printf(out, "better cut   none into %d stages: this one is as fast as any, by this prediction\n",
                    p->nstages);
    }
}

/* One worker is what a pipeline must beat. */
static void verdict(const Balance *b, int64_t batch, Text *out)
{
    const Prediction *p = b->prediction;
    Arena *arena = out->arena;
    text_printf(out, "step         %s with %d worker%s, %s images/s; one worker alone %s, %s images/s\n",
                human_seconds(arena, p->step), p->workers, p->workers == 1 ? "" : "s",
                human_count(arena, (double)batch / p->step), human_seconds(arena, p->one_worker),
                human_count(arena, (double)batch / p->one_worker));
    if (p->workers == 1 && p->nstages == 1)
        return;
    text_printf(out, "speed-up     %.2f x one worker, efficiency %.0f %%; workers wait %.0f %% of the time\n",
                p->speedup, 100 * p->speedup / p->workers, 100 * p->bubble);
    if (p->workers < p->parts)
        text_printf(out, "             %d %s share the %d workers of this machine\n", p->parts,
                    p->parts > p->nstages ? "halves of stages" : "stages", p->workers);
    if (!balance_gains(b))
        text_printf(out, "verdict      one worker is as fast or faster: leave the %s out\n",
                    p->nstages > 1 ? "registers" : "replicas");
    else
        text_printf(out, "verdict      %d workers are faster, if each has its own %s; else expect no gain\n",
                    p->workers, p->model->hardware->device[0].name);
}

static void recompute_line(const Sched *sched, Text *out)
{
    const Pipeline *wanted = &sched->settings->pipeline;
    if (wanted->recompute)
        text_printf(
            out, "recompute    stages with a ring keep what they take, and make the rest again before each backward\n");
    if (wanted->recompute || !wanted->recomputes)
        return;
    const char *between = "recompute    stages that keep what they take, and make the rest again before each backward:";
    for (int s = 0; s < sched->pipe->nstages; s++)
        if (sched->recompute[s]) {
            text_printf(out, "%s %d", between, s);
            between = ",";
        }
    text_printf(out, "%s\n", *between == ',' ? "" : "recompute    no stage with a ring");
}

void report_check(const Balance *balance, const Graph *written, Text *out)
{
    Arena *arena = out->arena;
    const Plan *plan = balance->plan;
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
    text_printf(out, ", batch %lld", (Int)(graph->batch * graph->microbatches));
    if (graph->microbatches > 1)
        text_printf(out, " in %lld microbatches", (Int)graph->microbatches);
    if (pipe_halved(sched->pipe))
        text_printf(out, ", %d workers", pipe_workers(sched->pipe, nstages));
    if (sched->settings->pipeline.threads > 1)
        text_printf(out, ", %lld threads a %s", (Int)sched->settings->pipeline.threads,
                    pipe_halved(sched->pipe) ? "worker" : "stage");
    text_printf(out, "\n\n");
    table(plan, &sum, out);
    text_printf(out, "\n");
    times(balance->prediction, sched->pipe, out);

    text_printf(out, "\nparameters   %lld, %.4g %% of them stale", (Int)sum.params, 100 * sched->stale_fraction);
    if (most_stale > 0)
        text_printf(out, " (by up to %d updates)", most_stale);
    text_printf(out, "\nwork         %.0f MACs an image, forward\n", sum.macs);
    text_printf(out, "registers    %s a minibatch, there and back\n", human_bytes(arena, plan->traffic_bytes));
    text_printf(out, "memory       %s static: saved %s, transient %s, weights %s, registers %s\n",
                human_bytes(arena, plan->static_bytes), human_bytes(arena, sum.saved),
                human_bytes(arena, sum.transient), human_bytes(arena, sum.weights), human_bytes(arena, sum.registers));
    phases(sched, out);
    recompute_line(sched, out);
    report_cure(sched, out);
    balance_lines(balance, written, out);
    verdict(balance, graph->batch * graph->microbatches, out);
}
