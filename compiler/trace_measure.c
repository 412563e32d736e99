/* trace_measure.c: from the steps of a run, what a minibatch takes in the steady state. See trace.h. */
#include <math.h>
#include <stdlib.h>

#include "trace.h"

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which `share` of the sorted numbers lie. */
static double quantile(const double *sorted, int count, double share)
{
    return count ? sorted[(int)lround(share * (count - 1))] : 0;
}

static double median(double *numbers, int count)
{
    if (!count)
        return 0;
    qsort(numbers, (size_t)count, sizeof *numbers, ascending);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}

double trace_waits(TraceStep *step, int nsteps, const TraceWait *wait, int nwaits)
{
    const double rounding = 2e-9; /* seconds; of the file: a nanosecond a number */
    double work = 0;
    int w = 0;
    for (int i = 0; i < nsteps; i++) {
        while (w < nwaits && wait[w].begin < step[i].at.begin - rounding)
            w++;
        for (; w < nwaits && wait[w].end <= step[i].at.end + rounding; w++)
            step[i].waited += wait[w].end - wait[w].begin;
        work += fmax(0, step[i].at.end - step[i].at.begin - step[i].waited);
    }
    return work;
}

/* Minibatches of the first phase, without those that fill or drain the pipe where others are left. */
static bool choose_minibatches(Trace *trace, const Sched *sched)
{
    int64_t first = INT64_MAX, last = -1;
    for (int s = 0; s < trace->nstages; s++)
        for (int i = 0; i < trace->stage[s].nsteps; i++) {
            const TimedStep *step = &trace->stage[s].step[i].at;
            if (step->kind != STEP_UPDATE)
                continue;
            first = step->n < first ? step->n : first;
            last = step->n > last ? step->n : last;
        }
    if (sched->nphases > 1 && sched->phase[0].choice->minibatches > first)
        last = last < sched->phase[0].choice->minibatches ? last : sched->phase[0].choice->minibatches - 1;
    int64_t warmup = 0;
    for (int s = 0; s < trace->nstages; s++)
        warmup = sched->phase[0].stage[s].warmup > warmup ? sched->phase[0].stage[s].warmup : warmup;
    const int64_t margin = warmup + 2;
    const bool room = last - first > 2 * margin + 4;
    trace->first = room ? first + margin : first;
    trace->last = room ? last - margin : last;
    return last >= first;
}

/* `slices`: microbatches of a minibatch. */
static void measure_stage(Arena *arena, const Trace *trace, int64_t slices, TraceStage *stage)
{
    double *taken[STEP_TEST];
    int count[STEP_TEST] = {0};
    for (int k = 0; k < STEP_TEST; k++)
        taken[k] = arena_alloc(arena, sizeof(double) * (size_t)stage->nsteps);
    for (int i = 0; i < stage->nsteps; i++) {
        const TraceStep *step = &stage->step[i];
        const StepKind k = step->at.kind;
        const int64_t minibatch = step->at.n / (k == STEP_UPDATE ? 1 : slices);
        if (minibatch >= trace->first && minibatch <= trace->last)
            taken[k][count[k]++] = fmax(0, step->at.end - step->at.begin - step->waited);
    }
    stage->forward = (double)slices * median(taken[STEP_FORWARD], count[STEP_FORWARD]);
    stage->backward = (double)slices * (median(taken[STEP_BACKWARD], count[STEP_BACKWARD]) +
                                        median(taken[STEP_WEIGHTS], count[STEP_WEIGHTS]));
    stage->update = median(taken[STEP_UPDATE], count[STEP_UPDATE]);
    const double minibatches = (double)(trace->last - trace->first + 1);
    for (int w = 0; w < stage->nwaits; w++) {
        const TraceWait *wait = &stage->wait[w];
        const int64_t minibatch = wait->minibatch / slices;
        if (minibatch >= trace->first && minibatch <= trace->last)
            *(wait->room ? &stage->room : &stage->input) += (wait->end - wait->begin) / minibatches;
    }
}

/* Ends of the updates of a stage that count, by time; NAN where the turn before it was interrupted. */
static double *update_ends(Arena *arena, const Trace *trace, int s, const double *interruption, int ninterruptions,
                           int *count)
{
    const TraceStage *stage = &trace->stage[s];
    double *end = arena_alloc(arena, sizeof *end * (size_t)stage->nsteps * 2), last = 0;
    int at = 0;
    *count = 0;
    for (int i = 0; i < stage->nsteps; i++) {
        const TimedStep *step = &stage->step[i].at;
        if (step->kind != STEP_UPDATE || step->n < trace->first || step->n > trace->last)
            continue;
        while (at < ninterruptions && interruption[at] < last)
            at++;
        if (*count && at < ninterruptions && interruption[at] < step->end)
            end[(*count)++] = NAN;
        last = end[(*count)++] = step->end;
    }
    return end;
}

/* The stretch of `updates` turns whose length is nearest to the mean. */
static void choose_stretch(Trace *trace, const double *end, int count, int updates)
{
    double best = INFINITY;
    for (int i = 0; i + updates < count; i++) {
        bool whole = true;
        for (int k = 0; k <= updates; k++)
            whole &= !isnan(end[i + k]);
        const double off = fabs(end[i + updates] - end[i] - updates * trace->step);
        if (!whole || off >= best)
            continue;
        best = off;
        trace->from = end[i];
        trace->to = end[i + updates];
        trace->updates = updates;
    }
}

bool trace_measure(Arena *arena, Trace *trace, const Sched *sched, const double *const *interruption,
                   const int *ninterruptions, int updates)
{
    for (int s = 0; s < trace->nstages; s++) {
        TraceStage *stage = &trace->stage[s];
        stage->core = stage->work > 0 ? fmin(1, fmax(0, stage->core / stage->work)) : 1;
    }
    if (!choose_minibatches(trace, sched))
        return false;
    int count = 0, turns = 0;
    double sum = 0;
    VEC(double) taken = {0};
    double *first = NULL;
    int nfirst = 0;
    for (int s = 0; s < trace->nstages; s++) {
        measure_stage(arena, trace, sched->pipe->graph->microbatches, &trace->stage[s]);
        double *end = update_ends(arena, trace, s, interruption[s], ninterruptions[s], &count);
        if (s == 0) {
            first = end;
            nfirst = count;
        }
        for (int i = 1; i < count; i++) {
            if (isnan(end[i]) || isnan(end[i - 1]))
                continue;
            sum += end[i] - end[i - 1];
            turns++;
            *vec_push(arena, &taken) = end[i] - end[i - 1];
        }
    }
    if (!turns) { /* a single minibatch: all it took */
        for (int s = 0; s < trace->nstages; s++)
            sum += trace->stage[s].forward + trace->stage[s].backward + trace->stage[s].update;
        turns = 1;
        *vec_push(arena, &taken) = sum;
    }
    qsort(taken.at, (size_t)taken.count, sizeof(double), ascending);
    trace->step = sum / turns;
    trace->low = quantile(taken.at, taken.count, 0.1);
    trace->high = quantile(taken.at, taken.count, 0.9);
    choose_stretch(trace, first, nfirst, updates);
    return true;
}
