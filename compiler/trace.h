/* trace.h: what a program did and when, as its --trace file tells it (runtime/core/trace.h writes it), to hold
 * predictions against.
 *
 * Only training counts: tests, checkpoints and the turns that they interrupt are left out, and so are the minibatches
 * that fill and drain the pipe, where the run is long enough for that. */
#ifndef PNETC_TRACE_H
#define PNETC_TRACE_H

#include "ast.h"
#include "predict.h"

typedef struct {
    TimedStep at;  /* seconds from the beginning of the trace */
    double waited; /* of its time: for input and for room */
} TraceStep;
typedef struct {
    bool room;        /* else: input */
    bool forward;     /* of the forward half of a stage in halves */
    const char *name; /* of the register */
    int stage;
    int64_t minibatch; /* or microbatch */
    double begin, end;
} TraceWait;

typedef struct {
    double forward, backward, update; /* medians of the seconds of a minibatch, without waits */
    double input, room;               /* mean waits of a minibatch */
    double work;                      /* seconds of its steps, without waits */
    double core;                      /* share of that for which it had a core */
    TraceStep *step;                  /* all of training, by time; a forward half first */
    int nsteps;
    TraceWait *wait; /* likewise */
    int nwaits;
} TraceStage;

typedef struct {
    const char *path, *transport, *target;
    int64_t minibatches; /* trained */
    int64_t dropped;     /* events that had no room */
    int64_t first, last; /* minibatches that count */
    TraceStage *stage;
    int nstages;
    double step;      /* mean seconds from one update to the next */
    double low, high; /* of a tenth of them it is less, of a tenth more */
    /* A stretch of the run that is like the mean: seconds from the beginning of the trace. */
    double from, to;
    int updates; /* of the first stage in it; 0: the run was too short */
} Trace;

/* trace_read.c. NULL after errors: P0740, P0741. `updates`: as many as the stretch is to have. */
const Trace *trace_read(Arena *arena, Diags *diags, Sources *sources, const char *path, const Plan *plan, int updates);

/* trace_measure.c. Waits lie inside their step, on the same track: sets what each step has waited. Returns the sum of
 * the working time. */
double trace_waits(TraceStep *step, int nsteps, const TraceWait *wait, int nwaits);
/* Fills all that is not read, from the steps and waits of each stage. `core` of a stage comes as
 * seconds on a core without waits. False: there is no update. */
bool trace_measure(Arena *arena, Trace *trace, const Sched *sched, const double *const *interruption,
                   const int *ninterruptions, int updates);

#endif
