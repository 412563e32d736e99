/* predict.c: times of stages, and what a placement comes to. See predict.h. */
#include <math.h>

#include "predict.h"

double stage_time(const StageTime *stage)
{
    return stage->forward + stage->backward + stage->update;
}

static double back_time(const StageTime *stage)
{
    return stage->backward + stage->update;
}

double stage_pace(const StageTime *stage)
{
    return !stage->halves ? stage_time(stage) : fmax(stage->forward, back_time(stage));
}

const char *prediction_slowest(Arena *arena, const Prediction *p)
{
    const StageTime *stage = &p->stage[p->slowest];
    return arena_printf(arena, "%sstage %d",
                        !stage->halves                      ? ""
                        : stage->forward > back_time(stage) ? "the forward half of "
                                                            : "the backward half of ",
                        p->slowest);
}

/* ---- times of stages ---- */

static void add_transfers(Prediction *p, const Pipe *pipe)
{
    for (int s = 0; s + 1 < pipe->nstages; s++) {
        const Link link = cost_link(p->model, s);
        int64_t there = 0, back = 0;
        for (int e = 0; e < pipe->nedges; e++) {
            const Edge *edge = &pipe->edge[e];
            if (edge->from != s)
                continue;
            const int64_t bytes = cost_register_bytes(p->model, pipe->graph, edge->value);
            there += bytes;
            back += edge->gradient ? bytes : 0;
        }
        const double times = (double)pipe->graph->microbatches;
        p->stage[s].give = times * cost_transfer(&link, there);
        p->stage[s].back = back ? times * cost_transfer(&link, back) : 0;
    }
}

/* The first node of a stage that writes into a register: until then its forward needs no room there. */
static NodeId first_giver(const Pipe *pipe, int s)
{
    NodeId first = pipe->stage[s].last;
    for (int e = 0; e < pipe->nedges; e++)
        if (pipe->edge[e].from == s && pipe->edge[e].value < first)
            first = pipe->edge[e].value;
    return first;
}

/* What a replica of stage s does on a device of this kind; its workers may do the work of several in turn. */
static StageTime time_on(Arena *arena, const Prediction *p, const Sched *sched, int s, int kind, const NodeTime *whole)
{
    const Pipe *pipe = sched->pipe;
    const Stage *stage = &pipe->stage[s];
    const Device *device = &p->model->hardware->device[kind];
    StageTime sum = p->stage[s];
    const Graph slice = pipe_slice(pipe, s);
    const NodeTime *time = stage->replicas > 1 ? cost_times(arena, p->model, &slice, pipe->backward, kind) : whole;
    const int turns = (stage->replicas + sum.workers - 1) / sum.workers;
    const double times = turns * (double)pipe->graph->microbatches;
    const NodeId giver = first_giver(pipe, s);
    int64_t floats = 0;
    sum.kind = sum.back_kind = kind;
    for (NodeId i = stage->first; i < stage->last; i++) {
        const NodeTime mine = cost_slice(&time[i], stage->replicas);
        const int64_t own = cost_weight_floats(p->model, pipe->graph, i);
        const double mean = turns * cost_gradient_mean(device, own, pipe->graph->microbatches);
        sum.forward += times * mine.forward;
        sum.before_room += i < giver ? times * mine.forward : 0;
        sum.recompute += sched->recompute[s] ? times * mine.forward : 0;
        sum.backward += times * (mine.backward_data + mine.backward_weights) + mean;
        if (pipe->graph->node[i].op && pipe->graph->node[i].op->flags & OP_WEIGHT_PART)
            sum.weights += times * mine.backward_weights + mean;
        sum.update += mine.update;
        floats += own;
    }
    sum.backward += sum.recompute;
    if (stage->replicas > 1)
        sum.update += turns * cost_gradient_sum(device, floats, stage->replicas);
    return sum;
}

static bool runs_on(const Prediction *p, const StageTime *stage, int kind)
{
    for (int w = 0; w < stage->workers; w++)
        if (hardware_kind(p->model->hardware, stage->worker + w) == kind)
            return true;
    return stage->halves && hardware_kind(p->model->hardware, stage->back_worker) == kind;
}

/* A forward half on a device of its kind, a backward half on one of its own. */
static void take_half(const Prediction *p, int kind, const StageTime *time, StageTime *out)
{
    const Hardware *hardware = p->model->hardware;
    const StageTime before = *out;
    *out = *time;
    if (before.workers && kind != hardware_kind(hardware, time->worker)) {
        out->forward = before.forward;
        out->before_room = before.before_room;
        out->kind = before.kind;
    }
    if (before.workers && kind != hardware_kind(hardware, time->back_worker)) {
        out->backward = before.backward;
        out->weights = before.weights;
        out->recompute = before.recompute;
        out->update = before.update;
        out->back_kind = before.back_kind;
    }
}

static void add_work(Arena *arena, Prediction *p, const Sched *sched)
{
    const Pipe *pipe = sched->pipe;
    const Hardware *hardware = p->model->hardware;
    StageTime *slowest = arena_alloc(arena, sizeof *slowest * (size_t)pipe->nstages);
    const NodeTime *first = NULL;
    p->one_worker = INFINITY;
    for (int kind = 0; kind < hardware->ndevices; kind++) {
        const NodeTime *time = cost_times(arena, p->model, pipe->graph, pipe->backward, kind); /* of a microbatch */
        double alone = 0;
        for (NodeId i = 0; i < pipe->graph->nnodes; i++)
            alone += cost_minibatch(p->model, pipe->graph, &hardware->device[kind], i, &time[i]);
        p->one_worker = alone < p->one_worker ? alone : p->one_worker;
        for (int s = 0; s < pipe->nstages; s++) {
            if (!runs_on(p, &p->stage[s], kind))
                continue;
            const StageTime one = time_on(arena, p, sched, s, kind, time);
            if (one.halves) {
                take_half(p, kind, &one, &slowest[s]);
                continue;
            }
            if (slowest[s].workers && stage_time(&one) <= stage_time(&slowest[s]))
                continue;
            slowest[s] = one;
        }
        if (kind == 0)
            first = time;
    }
    for (int s = 0; s < pipe->nstages; s++)
        for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++) {
            p->timed += pipe->graph->node[i].op != NULL;
            p->measured += slowest[s].kind == 0 && first[i].measured;
        }
    for (int s = 0; s < pipe->nstages; s++)
        p->stage[s] = slowest[s];
}

Prediction *predict(Arena *arena, const Sched *sched, const CostModel *model)
{
    const Pipe *pipe = sched->pipe;
    const Hardware *hardware = model->hardware;
    Prediction *p = arena_alloc(arena, sizeof *p);
    p->model = model;
    p->nstages = pipe->nstages;
    const int all = pipe_workers(pipe, pipe->nstages);
    p->workers = all < hardware->workers ? all : hardware->workers;
    p->stage = arena_alloc(arena, sizeof(StageTime) * (size_t)pipe->nstages);
    for (int s = 0; s < pipe->nstages; s++) {
        const int first = pipe_workers(pipe, s);
        StageTime *stage = &p->stage[s];
        stage->halves = pipe->stage[s].halves;
        stage->worker = hardware_worker(hardware, first, all);
        stage->workers = hardware_worker(hardware, first + pipe->stage[s].replicas - 1, all) - stage->worker + 1;
        stage->back_worker = stage->halves ? hardware_worker(hardware, first + 1, all) : stage->worker;
        p->parts += stage->halves ? 2 : 1;
    }
    Arena *scratch = arena_new();
    add_work(scratch, p, sched);
    add_transfers(p, pipe);
    double busy = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        const double time = stage_time(&p->stage[s]), pace = stage_pace(&p->stage[s]);
        p->work += time;
        busy += time * p->stage[s].workers;
        if (pace > p->most) {
            p->most = pace;
            p->slowest = s;
        }
    }
    p->step = predict_step(scratch, sched, p);
    arena_free(scratch);
    p->speedup = p->step > 0 ? p->one_worker / p->step : 1;
    p->bubble = p->step > 0 ? 1 - busy / (p->step * p->workers) : 0;
    return p;
}

/* ---- candidates ---- */

Candidate candidate(Arena *arena, Diags *diags, const Graph *written, const Cut *cut, int ncuts,
                    const Settings *settings, const CostModel *model)
{
    Graph *with_cuts = arena_alloc(arena, sizeof *with_cuts);
    *with_cuts = *written;
    with_cuts->cut = arena_alloc(arena, sizeof(Cut) * (size_t)(ncuts + 1));
    with_cuts->ncuts = ncuts;
    for (int i = 0; i < ncuts; i++)
        with_cuts->cut[i] = cut[i];
    const Graph *graph = fuse(arena, with_cuts);
    graph_check(graph);
    const Backward *back = backward(arena, graph);
    backward_check(back);
    const Pipe *pipe = pipe_cut(arena, diags, graph, back);
    if (!pipe)
        return (Candidate){0};
    pipe_check(pipe);
    const Sched *sched = schedule(arena, diags, pipe, settings);
    if (!sched)
        return (Candidate){0};
    sched_check(sched);
    const Plan *plan = plan_memory(arena, diags, sched, model->target);
    if (!plan)
        return (Candidate){0};
    plan_check(plan);
    return (Candidate){plan, predict(arena, sched, model)};
}

Outcome outcome(const Graph *written, const Cut *cut, int ncuts, const Settings *settings, const CostModel *model)
{
    Arena *scratch = arena_new();
    Diags *diags = diags_new(scratch, (Sources *)written->sources);
    const Candidate c = candidate(scratch, diags, written, cut, ncuts, settings, model);
    Outcome out = {.nstages = ncuts + 1};
    if (c.plan) {
        const Sched *sched = c.plan->sched;
        const Prediction *p = c.prediction;
        out.legal = true;
        out.workers = p->workers;
        out.step = p->step;
        out.speedup = p->speedup;
        out.bubble = p->bubble;
        out.stale_fraction = sched->stale_fraction;
        out.balance = p->work > 0 ? p->most * p->parts / p->work : 1;
        out.static_bytes = c.plan->static_bytes;
        out.traffic_bytes = c.plan->traffic_bytes;
        for (int s = 0; s < p->nstages; s++) {
            const int64_t bytes = c.plan->stage[s].static_bytes;
            out.most_bytes = bytes > out.most_bytes ? bytes : out.most_bytes;
            out.most_stale = sched->staleness[s] > out.most_stale ? sched->staleness[s] : out.most_stale;
        }
    }
    arena_free(scratch);
    return out;
}
