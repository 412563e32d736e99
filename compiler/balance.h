/* balance.h: is the pipeline balanced, is it worth it, does it keep its limits; and would another cut be better. */
#ifndef PNETC_BALANCE_H
#define PNETC_BALANCE_H

#include "place.h"

typedef struct {
    const Plan *plan;
    const Prediction *prediction;
    bool overlaps; /* stages work at one time */
    double factor; /* slowest stage over the mean of all, in time */
    bool unbalanced;
    int ncuts;      /* a faster cut into as many stages under the same limits; -1: none */
    const Cut *cut; /* of the written graph */
    Outcome better;
    bool over_stale, over_memory; /* max_stale or memory of the pipeline block is exceeded */
    Placement within; /* then: the fastest cut into as many stages that keeps them, or the nearest possible limits */
    Outcome kept;     /* of it */
} Balance;

/* The better cut is looked for where `look` says so, and for a pipeline that is not balanced or exceeds a limit; not
 * for one that the compiler placed itself. */
const Balance *balance_judge(Arena *arena, const Plan *plan, const Prediction *prediction, const Graph *written,
                             bool look);

/* The pipeline is faster than one worker alone, by more than nothing. */
bool balance_gains(const Balance *balance);

typedef enum { WARN_ON, WARN_OFF, WARN_ERROR } Warn;
/* Holds the plan against balance, max_stale and memory of the pipeline block, and the memory of the devices. */
void balance_warn(Arena *arena, Diags *diags, const Balance *balance, const Graph *written, Warn balanced, Warn stale,
                  Warn memory);

/* "pool1, fc2": where the registers of the better cut stand. */
const char *balance_cuts_text(Arena *arena, const Graph *written, const Cut *cut, int ncuts);
/* "analytic", "profiled 7 nodes of 9" */
const char *prediction_source(Arena *arena, const Prediction *prediction);
/* "3.21 ms", "810 us", "2 s" */
const char *human_seconds(Arena *arena, double seconds);

#endif
