/* predict.h: how long a step of a pipeline takes on a machine, and what one worker alone would take.
 *
 * The steps of every stage run in simulated time: a step begins when its worker is free, what it takes is there and
 * what it gives has a slot by the time that it writes it; a backward that computes values again has done so by the time
 * that its gradient comes. A link that overlaps carries one transfer at a time beside the work; one that does not
 * holds up both its ends. Halves of a stage are workers of their own; what goes between them takes no time. Replicas of
 * a stage act as one, since they meet at every update. What is measured of it is the time between updates once the
 * pipeline is full. */
#ifndef PNETC_PREDICT_H
#define PNETC_PREDICT_H

#include "cost.h"
#include "plan.h"

typedef struct {
    double forward, backward,
        update; /* seconds of work a minibatch, backward in all its parts; of each replica: sum of gradients in update */
    double weights;     /* of the backward: its weight part, where the order may split it */
    double before_room; /* of the forward: until it writes into a register */
    double recompute;   /* of the backward: what is computed again before it looks for its gradient */
    double give, back;  /* seconds on the link behind the stage: values there, gradients back */
    int worker, kind;   /* that runs it (the first of its replicas; its forward half); its device (the slowest) */
    int workers;        /* that run its replicas */
    bool halves;
    int back_worker, back_kind; /* of the backward half; of a whole stage: worker, kind */
} StageTime;

typedef struct {
    const CostModel *model;
    StageTime *stage;
    int nstages;
    int workers;         /* that have a stage */
    int measured, timed; /* nodes with times from a profile, nodes with times */
    int parts;           /* stages, halves counted */
    double work, most;   /* seconds of all stages, of the slowest part */
    int slowest;         /* its stage */
    double step;         /* seconds from one update to the next in the steady state of the first phase */
    double one_worker;   /* seconds of a step without registers on the fastest device */
    double speedup;      /* one_worker / step */
    double bubble;       /* share of its time that a worker waits, mean of the workers */
} Prediction;

Prediction *predict(Arena *arena, const Sched *sched, const CostModel *model);
double stage_time(const StageTime *stage);                         /* its work */
double stage_pace(const StageTime *stage);                         /* of its slower half, where it is in halves */
const char *prediction_slowest(Arena *arena, const Prediction *p); /* "stage 1", "the backward half of stage 1" */

/* predict_steps.c. Seconds from one update to the next in the simulated steady state of the first phase. */
double predict_step(Arena *arena, const Sched *sched, const Prediction *prediction);
/* What the stages do in the simulated steady state while the first of them makes `updates` updates: every step that
 * lies in that time, also in part. Times are seconds from its beginning. */
typedef struct {
    StepKind kind;
    int stage;
    int64_t n;         /* microbatch; UPDATE: minibatch */
    double begin, end; /* transfers that hold up the worker included */
} TimedStep;
typedef struct {
    TimedStep *step; /* by stage, then by time */
    int nsteps;
    double seconds;
} TimedWindow;
TimedWindow predict_window(Arena *arena, const Sched *sched, const Prediction *prediction, int updates);

/* A placement carried through all passes. plan NULL after errors. */
typedef struct {
    const Plan *plan;
    const Prediction *prediction;
} Candidate;
Candidate candidate(Arena *arena, Diags *diags, const Graph *written, const Cut *cut, int ncuts,
                    const Settings *settings, const CostModel *model);

/* What counts of a candidate, without its memory. */
typedef struct {
    bool legal; /* false: it exceeds what memory can be counted, or its schedule cannot run */
    int nstages, workers;
    double step, speedup, bubble, stale_fraction, balance; /* balance: slowest stage over the mean */
    int most_stale;
    int64_t most_bytes; /* of one stage */
    int64_t static_bytes, traffic_bytes;
} Outcome;
Outcome outcome(const Graph *written, const Cut *cut, int ncuts, const Settings *settings, const CostModel *model);

#endif
