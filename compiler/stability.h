/* stability.h: how near to divergence staleness brings a pipeline, said before the run. */
#ifndef PNETC_STABILITY_H
#define PNETC_STABILITY_H

#include "balance.h"

typedef struct {
    double most; /* the largest stability number (cure.h) of a stage and phase with delay; 0: none has; -1: not known */
    int stage, phase;
} Stability;
Stability stability_judge(const Sched *sched);
/* Of one stage: the largest over the phases. */
double stability_of_stage(const Sched *sched, int stage);

/* Of a phase's stages, the largest, were they in the order 1f1b: the fewest delays without a flush. */
double stability_by_1f1b(Arena *arena, const Sched *sched, const PhaseChoice *phase);

/* Has every stage with delay and weights a batch normalisation? The limits of cure.h were measured with it; an
 * AlexNet without it lost 3.5 points at G = 0.065. */
bool stability_is_normalised(const Sched *sched);

/* A phase's schedule as a hint may name it: "stale"; "..." where its name alone is not all of it. */
const char *stability_schedule(const PhaseChoice *phase);

/* Over the limit, or, with a cure that has no time, over the lower one or without batch normalisation: at the schedule,
 * with what would help. */
void stability_warn(Arena *arena, Diags *diags, const Sched *sched, Warn level);

#endif
