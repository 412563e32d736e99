/* draw_time.c: when each step of a short run happens in ideal time. See draw.h.
 *
 * Stages do their steps in a fixed order and registers are bounded queues, so the times do not depend on the order in
 * which this file looks at stages (see prove.c). Time: stages x steps. */
#include "draw.h"

typedef struct {
    const Sched *sched;
    DrawTime time;
    Step **step;
    int *count, *at;
    double *free;                            /* per stage: when its last step ended */
    double **forward, **backward, **weights; /* per stage and microbatch: when it ended; -1: not yet */
    double unit;
} Simulation;

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

/* When the next step of a stage can begin; false: what it waits for has no time yet. */
static bool can_begin(const Simulation *s, int stage, Step step, double *begin)
{
    const Pipe *pipe = s->sched->pipe;
    const int64_t m = step.n;
    bool known = true;
    *begin = s->free[stage];
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
        .at = arena_alloc(arena, sizeof(int) * nstages),
        .free = arena_alloc(arena, sizeof(double) * nstages),
        .forward = arena_alloc(arena, sizeof(double *) * nstages),
        .backward = arena_alloc(arena, sizeof(double *) * nstages),
        .weights = arena_alloc(arena, sizeof(double *) * nstages),
    };
    run.unit_flops = s.unit * (double)sched->pipe->graph->batch;
    VEC(DrawStep) *drawn = arena_alloc(arena, sizeof *drawn * nstages);
    int64_t *updates = arena_alloc(arena, sizeof *updates * nstages);
    int64_t **version = arena_alloc(arena, sizeof *version * nstages);
    for (int i = 0; i < sched->pipe->nstages; i++) {
        s.step[i] = sched_steps(arena, &shown, i, run.minibatches, &s.count[i]);
        s.forward[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        s.backward[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        s.weights[i] = arena_alloc(arena, sizeof(double) * (size_t)slices);
        version[i] = arena_alloc(arena, sizeof(int64_t) * (size_t)slices);
        for (int64_t m = 0; m < slices; m++)
            s.forward[i][m] = s.backward[i][m] = s.weights[i][m] = -1;
    }

    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < sched->pipe->nstages; i++) {
            double begin;
            while (s.at[i] < s.count[i] && can_begin(&s, i, s.step[i][s.at[i]], &begin)) {
                const Step next = s.step[i][s.at[i]++];
                moved = true;
                updates[i] += next.kind == STEP_UPDATE;
                if (next.kind == STEP_UPDATE)
                    continue;
                DrawStep step = {.kind = next.kind, .stage = i, .n = next.n, .begin = begin};
                place_in_phase(sched, run.shown, &step);
                const bool splits = sched->phase[step.phase].late[i] > 0;
                step.end = s.free[i] = begin + duration(&s, i, step.kind, splits);
                if (step.kind != STEP_WEIGHTS)
                    (step.kind == STEP_FORWARD ? s.forward : s.backward)[i][step.n] = step.end;
                if (step.kind == (splits ? STEP_WEIGHTS : STEP_BACKWARD))
                    s.weights[i][step.n] = step.end;
                read_weights(sched, run.shown, updates[i], version[0], version[i], &step);
                *vec_push(arena, &drawn[i]) = step;
            }
        }
    }

    VEC(DrawStep) all = {0};
    for (int i = 0; i < sched->pipe->nstages; i++) {
        if (s.at[i] < s.count[i])
            ICE("draw: stage %d cannot go on", i); /* sched.c has proved that it can */
        for (int k = 0; k < drawn[i].count; k++) {
            const DrawStep *step = &drawn[i].at[k];
            *vec_push(arena, &all) = *step;
            run.end = step->end > run.end ? step->end : run.end;
            run.busy += step->end - step->begin;
        }
    }
    run.step = all.at;
    run.nsteps = all.count;
    return run;
}
