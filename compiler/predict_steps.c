/* predict_steps.c: a schedule run in simulated time.
 *
 * A part is what has a worker: a stage, or a half of one; both halves go along the steps of their stage. The forward
 * half takes weights over in no time, as soon as they are there. Workers take their steps one at a
 * time; where several parts share a worker, the step that can begin first goes first (the lower stage on a tie). Time:
 * steps x stages. */
#include <math.h>

#include "predict.h"

typedef enum { FORWARD_HALF, REST, HALVES } Half; /* a whole stage is REST alone */
typedef struct {
    const Step *step;
    int count, at[HALVES];
    double *forward_end, *backward_end, *weights_end; /* per microbatch; NAN: not yet */
    double *update_end, *taken_end;                   /* per minibatch; taken: by the forward half */
    double *begin, *end;                              /* per step; NULL: not wanted */
} Track;

/* Registers of one cut that hold up their giver alike. */
typedef struct {
    int slots, gradient_slots; /* gradient 0: none */
    bool kept_consumer, kept_producer;
} Queue;

typedef struct {
    const Sched *sched;
    const Prediction *p;
    Track *track;
    double *ready; /* per part, of its next step */
    double *worker_free, *link_free;
    Queue **queue;
    int *nqueues;
    Link *link; /* per cut */
} Run;

static void make_queues(Arena *arena, Run *run)
{
    const Sched *sched = run->sched;
    const Pipe *pipe = sched->pipe;
    for (int e = 0; e < pipe->nedges; e++) {
        const Edge *edge = &pipe->edge[e];
        const Queue queue = {sched->forward_slots[e], edge->gradient ? sched->gradient_slots[e] : 0,
                             edge->kept_consumer, edge->kept_producer};
        Queue **list = &run->queue[edge->from];
        if (!*list)
            *list = arena_alloc(arena, sizeof **list * (size_t)pipe->nedges);
        bool known = false;
        for (int i = 0; i < run->nqueues[edge->from]; i++) {
            const Queue *q = &(*list)[i];
            known |= q->slots == queue.slots && q->gradient_slots == queue.gradient_slots &&
                     q->kept_consumer == queue.kept_consumer && q->kept_producer == queue.kept_producer;
        }
        if (!known)
            (*list)[run->nqueues[edge->from]++] = queue;
    }
}

static double later(double a, double b) /* NAN wins: not known yet */
{
    return isnan(a) || a > b ? a : b;
}

static bool halved(const Run *run, int s)
{
    return run->p->stage[s].halves;
}

/* The next step of a part; false: there is none left. */
static bool next_step(const Run *run, int s, Half half, Step *out)
{
    Track *t = &run->track[s];
    int *at = &t->at[half];
    if (half == FORWARD_HALF && !halved(run, s))
        return false;
    for (; *at < t->count; ++*at) {
        *out = t->step[*at];
        const bool forward = out->kind == STEP_FORWARD;
        if (!halved(run, s) || (half == REST ? !forward : forward || out->kind == STEP_UPDATE))
            return true;
    }
    return false;
}

/* When a step of a half has what it waits for of the other one. */
static double inside(const Run *run, int s, Half half, Step step)
{
    const Track *t = &run->track[s];
    const int ring = run->sched->ring[s], versions = run->sched->versions[s];
    if (!halved(run, s))
        return 0;
    if (step.kind == STEP_FORWARD)
        return step.n >= ring ? t->weights_end[step.n - ring] : 0;
    if (step.kind == STEP_BACKWARD)
        return t->forward_end[step.n];
    if (step.kind != STEP_UPDATE)
        return 0;
    if (half == FORWARD_HALF)
        return t->update_end[step.n];
    return step.n >= versions - 1 ? t->taken_end[step.n - (versions - 1)] : 0;
}

/* When the next step of a part can begin, but for its worker and the links; NAN: what it waits for is not known yet. */
static double ready(const Run *run, int s, Half half)
{
    const Track *t = &run->track[s];
    Step step;
    if (!next_step(run, s, half, &step))
        return NAN;
    const int64_t m = step.n;
    double when = inside(run, s, half, step);
    if (step.kind == STEP_UPDATE || step.kind == STEP_WEIGHTS || isnan(when))
        return when;
    const bool forward = step.kind == STEP_FORWARD;
    const double slice = (double)run->sched->pipe->graph->microbatches;
    const double before_room = run->p->stage[s].before_room / slice;
    if (forward && s > 0)
        when = later(t[-1].forward_end[m], when);
    if (forward)
        for (int i = 0; i < run->nqueues[s]; i++) { /* room in the registers behind */
            const Queue *q = &run->queue[s][i];
            const int64_t old = m - q->slots;
            if (old < 0)
                continue;
            when = later((q->kept_consumer ? t[1].weights_end[old] : t[1].forward_end[old]) - before_room, when);
            if (q->kept_producer && !isnan(when))
                when = later(t->weights_end[old], when);
        }
    bool gradient = false;
    for (int i = 0; !forward && i < run->nqueues[s]; i++)
        gradient |= run->queue[s][i].gradient_slots > 0;
    if (gradient) /* what is computed again is there by then */
        when = later(t[1].backward_end[m] - run->p->stage[s].recompute / slice, when);
    for (int i = 0; !forward && s > 0 && i < run->nqueues[s - 1]; i++) {
        const int slots = run->queue[s - 1][i].gradient_slots;
        if (slots > 0 && m >= slots && !isnan(when))
            when = later(t[-1].backward_end[m - slots], when);
    }
    return when;
}

/* The end of a transfer of `seconds` over the cut that begins at `from`. */
static double carry(Run *run, int cut, double from, double seconds)
{
    const double begin = from > run->link_free[cut] ? from : run->link_free[cut];
    return run->link_free[cut] = begin + seconds;
}

/* The first of the workers of a part; how many there are. */
static int worker_of(const Run *run, int s, Half half)
{
    return half == FORWARD_HALF || !halved(run, s) ? run->p->stage[s].worker : run->p->stage[s].back_worker;
}

/* When all workers of a part are. */
static double workers_free(const Run *run, int s, Half half)
{
    const int worker = worker_of(run, s, half);
    double last = run->worker_free[worker];
    for (int w = 1; w < run->p->stage[s].workers; w++)
        last = later(run->worker_free[worker + w], last);
    return last;
}

/* What a step takes its worker, with the transfers that hold it up. */
static double seconds_of(const Run *run, int s, Step step)
{
    const StageTime *time = &run->p->stage[s];
    const bool forward = step.kind == STEP_FORWARD, backward = step.kind == STEP_BACKWARD;
    const bool gives = s + 1 < run->p->nstages, splits = run->sched->phase[0].late[s] > 0;
    const double slice = (double)run->sched->pipe->graph->microbatches;
    double seconds = forward                     ? time->forward / slice
                     : backward                  ? (time->backward - (splits ? time->weights : 0)) / slice
                     : step.kind == STEP_WEIGHTS ? time->weights / slice
                                                 : time->update;
    if (forward && gives && !run->link[s].overlap)
        seconds += time->give / slice;
    if (forward && s > 0 && !run->link[s - 1].overlap)
        seconds += run->p->stage[s - 1].give / slice;
    if (backward && s > 0 && !run->link[s - 1].overlap)
        seconds += run->p->stage[s - 1].back / slice;
    if (backward && gives && !run->link[s].overlap)
        seconds += time->back / slice;
    return seconds;
}

/* Does the next step of a part, which is ready at `when`. Ends include the transfer to the reader. */
static void take(Run *run, int s, Half half, double when)
{
    Track *t = &run->track[s];
    const StageTime *time = &run->p->stage[s];
    const int at = t->at[half]++;
    const Step step = t->step[at];
    const bool forward = step.kind == STEP_FORWARD, backward = step.kind == STEP_BACKWARD;
    const bool gives = s + 1 < run->p->nstages, weights = step.kind == STEP_WEIGHTS;
    const bool splits = run->sched->phase[0].late[s] > 0;
    double *worker = &run->worker_free[worker_of(run, s, half)]; /* and those behind it, for its replicas */
    const double slice = (double)run->sched->pipe->graph->microbatches;
    const double free = workers_free(run, s, half), begin = free > when ? free : when;
    if (half == FORWARD_HALF && step.kind == STEP_UPDATE) {
        *worker = t->taken_end[step.n] = begin;
        return;
    }
    const double end = begin + seconds_of(run, s, step);
    for (int w = 0; w < time->workers; w++)
        worker[w] = end;
    if (t->begin) {
        t->begin[at] = begin;
        t->end[at] = end;
    }
    if (forward)
        t->forward_end[step.n] = gives && run->link[s].overlap ? carry(run, s, end, time->give / slice) : end;
    else if (backward)
        t->backward_end[step.n] =
            s > 0 && run->link[s - 1].overlap ? carry(run, s - 1, end, run->p->stage[s - 1].back / slice) : end;
    else if (!weights)
        t->update_end[step.n] = end;
    if (weights || (backward && !splits))
        t->weights_end[step.n] = weights ? end : t->backward_end[step.n];
}

static void look(Run *run, int s)
{
    for (int h = 0; h < HALVES; h++)
        run->ready[s * HALVES + h] = ready(run, s, (Half)h);
}

static bool steps_left(const Run *run, int s)
{
    Step step;
    return next_step(run, s, FORWARD_HALF, &step) || next_step(run, s, REST, &step);
}

/* Runs all steps; the times of the updates of each stage are what is wanted. */
static bool run_steps(Run *run)
{
    const int nstages = run->p->nstages;
    for (int s = 0; s < nstages; s++)
        look(run, s);
    for (;;) {
        int first = -1;
        double first_begin = 0, first_ready = 0;
        for (int part = 0; part < nstages * HALVES; part++) {
            const double when = run->ready[part];
            if (isnan(when))
                continue;
            const double busy = workers_free(run, part / HALVES, (Half)(part % HALVES)),
                         begin = busy > when ? busy : when;
            if (first < 0 || begin < first_begin) {
                first = part;
                first_begin = begin;
                first_ready = when;
            }
        }
        if (first < 0) {
            bool left = false;
            for (int s = 0; s < nstages; s++)
                left |= steps_left(run, s);
            return !left;
        }
        const int stage = first / HALVES;
        take(run, stage, (Half)(first % HALVES), first_ready);
        for (int s = stage - 1; s <= stage + 1; s++) /* others wait for nothing of this stage */
            if (s >= 0 && s < nstages)
                look(run, s);
    }
}

/* The first phase alone, run for long enough. The steady state lasts from update `from` to update `to`: behind the
 * warm-up, and before the drain, by `more` updates. */
static Run simulate(Arena *arena, const Sched *sched, const Prediction *p, int64_t more, bool wanted, int64_t *from,
                    int64_t *to)
{
    Sched phase = *sched;
    phase.nphases = 1;
    const int n = sched->pipe->nstages;
    const int64_t slices = sched->pipe->graph->microbatches;
    int64_t warmup = 0;
    for (int s = 0; s < n; s++)
        warmup = sched->phase[0].stage[s].warmup > warmup ? sched->phase[0].stage[s].warmup : warmup;
    warmup = (warmup + slices - 1) / slices;
    const int64_t fill = (n + slices - 1) / slices, steady = slices < 4 ? 64 / slices : 16;
    const int64_t minibatches = 3 * warmup + 3 * fill + steady + more;
    const size_t stages = (size_t)n;
    Run run = {
        .sched = sched,
        .p = p,
        .track = arena_alloc(arena, sizeof(Track) * stages),
        .ready = arena_alloc(arena, sizeof(double) * stages * HALVES),
        .worker_free = arena_alloc(arena, sizeof(double) * MAX_STAGES),
        .link_free = arena_alloc(arena, sizeof(double) * stages),
        .queue = arena_alloc(arena, sizeof(Queue *) * stages),
        .nqueues = arena_alloc(arena, sizeof(int) * stages),
        .link = arena_alloc(arena, sizeof(Link) * stages),
    };
    make_queues(arena, &run);
    for (int s = 0; s < n; s++) {
        Track *t = &run.track[s];
        t->step = sched_steps(arena, &phase, s, minibatches, &t->count);
        t->forward_end = arena_alloc(arena, sizeof(double) * (size_t)(minibatches * slices));
        t->backward_end = arena_alloc(arena, sizeof(double) * (size_t)(minibatches * slices));
        t->weights_end = arena_alloc(arena, sizeof(double) * (size_t)(minibatches * slices));
        t->update_end = arena_alloc(arena, sizeof(double) * (size_t)minibatches);
        t->taken_end = arena_alloc(arena, sizeof(double) * (size_t)minibatches);
        if (wanted) {
            t->begin = arena_alloc(arena, sizeof(double) * (size_t)t->count);
            t->end = arena_alloc(arena, sizeof(double) * (size_t)t->count);
        }
        for (int64_t m = 0; m < minibatches * slices; m++)
            t->forward_end[m] = t->backward_end[m] = t->weights_end[m] = NAN;
        for (int64_t m = 0; m < minibatches; m++)
            t->update_end[m] = t->taken_end[m] = NAN;
        run.link[s] = cost_link(p->model, s);
    }
    if (!run_steps(&run))
        ICE("predict: a proved schedule does not run");
    *from = warmup + fill + 8;
    *to = minibatches - 1 - 2 * warmup - fill;
    return run;
}

double predict_step(Arena *arena, const Sched *sched, const Prediction *p)
{
    int64_t from, to;
    const Run run = simulate(arena, sched, p, 0, false, &from, &to);
    double most = 0; /* all stages keep the pace of the slowest in the end; it shows it at once */
    for (int s = 0; s < p->nstages; s++) {
        const double *end = run.track[s].update_end, step = (end[to] - end[from]) / (double)(to - from);
        most = step > most ? step : most;
    }
    return most;
}

TimedWindow predict_window(Arena *arena, const Sched *sched, const Prediction *p, int updates)
{
    Arena *scratch = arena_new();
    int64_t from, to;
    const Run run = simulate(scratch, sched, p, updates, true, &from, &to);
    const double *update = run.track[0].update_end, zero = update[to - updates], last = update[to];
    VEC(TimedStep) list = {0};
    for (int s = 0; s < p->nstages; s++) {
        const Track *t = &run.track[s];
        for (int i = 0; i < t->count; i++)
            if (t->begin[i] < last && t->end[i] > zero)
                *vec_push(arena, &list) =
                    (TimedStep){t->step[i].kind, s, t->step[i].n, t->begin[i] - zero, t->end[i] - zero};
    }
    arena_free(scratch);
    return (TimedWindow){list.at, list.count, last - zero};
}
