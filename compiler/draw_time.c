/* draw_time.c: when each step of a short run happens in ideal time. See draw.h.
 *
 * Stages do their steps in a fixed order and registers are bounded queues, so the times do not depend on the order in
 * which this file looks at stages (see prove.c). Time: stages x steps. */
#include "draw.h"

typedef struct {
    const Sched *sched;
    DrawTime time;
    Step **step;
    int *count, *at;                         /* at: per part */
    double *free;                            /* per part: when its last step ended */
    double **forward, **backward, **weights; /* per stage and microbatch: when it ended; -1: not yet */
    double **update, **taken;                /* per stage and minibatch, likewise; taken: by the forward half */
    double unit;
} Simulation;

/* A part is a stage, or a half of one; both halves go along the steps of their stage. */
typedef enum { FORWARD_HALF, REST, HALVES } Half; /* a whole stage is REST alone */

static bool halved(const Simulation *s, int stage)
{
    return s->sched->pipe->stage[stage].halves;
}

/* The next step of a part; false: there is none left. */
static bool next_step(const Simulation *s, int stage, Half half, Step *out)
{
    int *at = &s->at[stage * HALVES + half];
    if (half == FORWARD_HALF && !halved(s, stage))
        return false;
    for (; *at < s->count[stage]; ++*at) {
        *out = s->step[stage][*at];
        const bool forward = out->kind == STEP_FORWARD;
        if (!halved(s, stage) || (half == REST ? !forward : forward || out->kind == STEP_UPDATE))
            return true;
    }
    return false;
}

static double duration(const Simulation *s, int stage, StepKind kind, bool splits)
{
    const Cost *cost = &s->sched->pipe->stage[stage].cost;
    if (s->time == TIME_UNIT)
        return 1;
    const double again = s->sched->recompute[stage] ? cost->forward : 0;
    if (kind == STEP_FORWARD || kind == STEP_WEIGHTS)
        return (kind == STEP_FORWARD ? cost->forward : cost->backward_weights) / s->unit;
    return (again + cost->backward_data + (splits ? 0 : cost->backward_weights)) / s->unit;
}

/* Raises *begin to `end`; false when that is not known yet. */
static bool after(double end, double *begin)
{
    if (end > *begin)
        *begin = end;
    return end >= 0;
}

/* What a step of a half waits for of the other half. */
static bool inside(const Simulation *s, int stage, Half half, Step step, double *begin)
{
    const int64_t slot = step.n - s->sched->ring[stage], old = step.n - (s->sched->versions[stage] - 1);
    if (!halved(s, stage))
        return true;
    if (step.kind == STEP_FORWARD)
        return slot < 0 || after(s->weights[stage][slot], begin);
    if (step.kind == STEP_BACKWARD)
        return after(s->forward[stage][step.n], begin);
    if (step.kind != STEP_UPDATE)
        return true;
    if (half == FORWARD_HALF)
        return after(s->update[stage][step.n], begin);
    return old < 0 || after(s->taken[stage][old], begin);
}

/* When the next step of a part can begin; false: what it waits for has no time yet. */
static bool can_begin(const Simulation *s, int stage, Half half, Step step, double *begin)
{
    const Pipe *pipe = s->sched->pipe;
    const int64_t m = step.n;
    *begin = s->free[stage * HALVES + half];
    bool known = inside(s, stage, half, step, begin);
    for (int i = 0; i < pipe->nedges; i++) {
        const Edge *edge = &pipe->edge[i];
        if (step.kind == STEP_FORWARD && edge->from + 1 == stage)
            known &= after(s->forward[stage - 1][m], begin);
        if (step.kind == STEP_BACKWARD && edge->from == stage && edge->gradient)
            known &= after(s->backward[stage + 1][m], begin);
        const int64_t slot = m - s->sched->forward_slots[i], back = m - s->sched->gradient_slots[i];
        if (step.kind == STEP_FORWARD && edge->from == stage && slot >= 0)
            known &= after((edge->kept_consumer ? s->weights : s->forward)[stage + 1][slot], begin);
        if (step.kind == STEP_BACKWARD && edge->from + 1 == stage && edge->gradient && back >= 0)
            known &= after(s->backward[stage - 1][back], begin);
    }
    return known;
}

/* The phases with as few minibatches as the picture shows. */
static Sched shortened(Arena *arena, const Sched *sched, int minibatches, int64_t *shown)
{
    const int64_t slices = sched->pipe->graph->microbatches;
    const int64_t steady = slices > 1 ? 2 : 4; /* minibatches besides those that fill the pipe and see it filled */
    Sched result = *sched;
    result.phase = arena_alloc(arena, sizeof(Phase) * (size_t)sched->nphases);
    for (int p = 0; p < sched->nphases; p++) {
        PhaseChoice *choice = arena_alloc(arena, sizeof *choice);
        *choice = *sched->phase[p].choice;
        int64_t warmup = 0;
        for (int i = 0; i < sched->pipe->nstages; i++)
            warmup = sched->phase[p].stage[i].warmup > warmup ? sched->phase[p].stage[i].warmup : warmup;
        shown[p] = minibatches ? minibatches : 2 * ((warmup + slices - 1) / slices) + steady;
        if (choice->minibatches > 0 && choice->minibatches < shown[p])
            shown[p] = choice->minibatches;
        choice->minibatches = shown[p];
        result.phase[p] = sched->phase[p];
        result.phase[p].choice = choice;
    }
    return result;
}

/* The phase of a step, and whether it fills or drains the pipe. */
static void place_in_phase(const Sched *sched, const int64_t *shown, DrawStep *step)
{
    const int64_t slices = sched->pipe->graph->microbatches;
    int64_t first = 0; /* microbatch of the phase */
    int p = 0;
    while (p + 1 < sched->nphases && step->n >= first + shown[p] * slices)
        first += shown[p++] * slices;
    const int64_t ordinal = step->n - first, warmup = sched->phase[p].stage[step->stage].warmup;
    step->phase = p;
    step->span = SPAN_STEADY;
    if (step->kind == STEP_FORWARD && ordinal < warmup)
        step->span = SPAN_WARMUP;
    if (step->kind == STEP_BACKWARD && ordinal >= shown[p] * slices - warmup)
        step->span = SPAN_DRAIN;
}

/* Which weights a step reads, after `updates` updates of its stage. `forward` has the version of each forward, `first`
 * those of stage 0. */
static void read_weights(const Sched *sched, const int64_t *shown, int64_t updates, const int64_t *first,
                         int64_t *forward, DrawStep *step)
{
    const RuleDef *rule = sched->phase[step->phase].choice->rule;
    int64_t before = 0; /* the version at the beginning of the phase, or without the last minibatch's update */
    for (int p = 0; p < step->phase; p++)
        before += shown[p];
    const int64_t minibatch = step->n / sched->pipe->graph->microbatches;
    before = minibatch > before ? minibatch - 1 : before;
    step->version = updates;
    if (step->kind == STEP_FORWARD) {
        if (rule->forward_reads == READS_FIRST && step->stage > 0)
            step->version = first[step->n];
        if (rule->forward_reads == READS_BEFORE)
            step->version = before;
        forward[step->n] = step->version;
        return;
    }
    step->age = updates - forward[step->n];
    if (rule->backward_reads_own)
        step->version = forward[step->n];
}

/* Does the next step of a part, which can begin then; false: it is no box. */
static bool take(Simulation *s, int stage, Half half, Step step, double begin, bool splits, DrawStep *out)
{
    s->at[stage * HALVES + half]++;
    double *free = &s->free[stage * HALVES + half];
    if (step.kind == STEP_UPDATE) {
        (half == FORWARD_HALF ? s->taken : s->update)[stage][step.n] = *free = begin;
        return false;
    }
    out->end = *free = begin + duration(s, stage, step.kind, splits);
    if (step.kind != STEP_WEIGHTS)
        (step.kind == STEP_FORWARD ? s->forward : s->backward)[stage][step.n] = out->end;
    if (step.kind == (splits ? STEP_WEIGHTS : STEP_BACKWARD))
        s->weights[stage][step.n] = out->end;
    return true;
}

static double slowest_turn(const Pipe *pipe)
{
    double most = 0;
    for (int i = 0; i < pipe->nstages; i++) {
        const Cost *cost = &pipe->stage[i].cost;
        const double flops = cost->forward + cost->backward_data + cost->backward_weights;
        most = flops > most ? flops : most;
    }
    return most;
}

DrawRun draw_run(Arena *arena, const Sched *sched, DrawTime time, int minibatches)
{
    const size_t nstages = (size_t)sched->pipe->nstages;
    DrawRun run = {.shown = arena_alloc(arena, sizeof(int64_t) * (size_t)sched->nphases)};
    const Sched shown = shortened(arena, sched, minibatches, run.shown);
    for (int p = 0; p < sched->nphases; p++)
        run.minibatches += run.shown[p];
    const int64_t slices = run.minibatches * sched->pipe->graph->microbatches;

    const double turn = slowest_turn(sched->pipe);
    Simulation s = {
        .sched = sched,
        .time = turn > 0 ? time : TIME_UNIT,
        .unit = turn / 2,
        .step = arena_alloc(arena, sizeof(Step *) * nstages),
        .count = arena_alloc(arena, sizeof(int) * nstages),
        .at = arena_alloc(arena, sizeof(int) * nstages * HALVES),
        .free = arena_alloc(arena, sizeof(double) * nstages * HALVES),
        .forward = arena_alloc(arena, sizeof(double *) * nstages),
        .backward = arena_alloc(arena, sizeof(double *) * nstages),
        .weights = arena_alloc(arena, sizeof(double *) * nstages),
        .update = arena_alloc(arena, sizeof(double *) * nstages),
        .taken = arena_alloc(arena, sizeof(double *) * nstages),
    };
    run.unit_flops = s.unit * (double)sched->pipe->graph->batch;
    VEC(DrawStep) *drawn = arena_alloc(arena, sizeof *drawn * nstages * HALVES); /* per part */
    int64_t *updates = arena_alloc(arena, sizeof *updates * nstages * HALVES);   /* likewise */
    int64_t **version = arena_alloc(arena, sizeof *version * nstages);
    for (int i = 0; i < sched->pipe->nstages; i++) {
        s.step[i] = sched_steps(arena, &shown, i, run.minibatches, &s.count[i]);
        s.forward[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        s.backward[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        s.weights[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        version[i] = arena_alloc(arena, sizeof(int64_t) * (size_t)slices);
        for (int64_t m = 0; m < slices; m++)
            s.forward[i][m] = s.backward[i][m] = s.weights[i][m] = -1;
        s.update[i] = arena_alloc(arena, sizeof(double) * (size_t)run.minibatches);
        s.taken[i] = arena_alloc(arena, sizeof(double) * (size_t)run.minibatches);
        for (int64_t m = 0; m < run.minibatches; m++)
            s.update[i][m] = s.taken[i][m] = -1;
    }

    for (bool moved = true; moved;) {
        moved = false;
        for (int part = 0; part < sched->pipe->nstages * HALVES; part++) {
            const int i = part / HALVES;
            const Half half = (Half)(part % HALVES);
            Step next;
            double begin;
            while (next_step(&s, i, half, &next) && can_begin(&s, i, half, next, &begin)) {
                DrawStep step = {.kind = next.kind, .stage = i, .n = next.n, .begin = begin};
                moved = true;
                if (next.kind != STEP_UPDATE)
                    place_in_phase(sched, run.shown, &step);
                if (!take(&s, i, half, next, begin, sched->phase[step.phase].late[i] > 0, &step)) {
                    updates[part]++;
                    continue;
                }
                read_weights(sched, run.shown, updates[part], version[0], version[i], &step);
                *vec_push(arena, &drawn[part]) = step;
            }
        }
    }

    VEC(DrawStep) all = {0};
    for (int part = 0; part < sched->pipe->nstages * HALVES; part++) {
        Step left;
        if (next_step(&s, part / HALVES, (Half)(part % HALVES), &left))
            ICE("draw: stage %d cannot go on", part / HALVES); /* sched.c has proved that it can */
        for (int k = 0; k < drawn[part].count; k++) {
            const DrawStep *step = &drawn[part].at[k];
            *vec_push(arena, &all) = *step;
            run.end = step->end > run.end ? step->end : run.end;
            run.busy += step->end - step->begin;
        }
    }
    run.step = all.at;
    run.nsteps = all.count;
    return run;
}
