/* place_problem.h: a network cut into so many stages as numbers for place_solve, and the limits that the plan holds
 * them to: the solver knows a lower bound of a stage's memory only. */
#ifndef PNETC_PLACE_PROBLEM_H
#define PNETC_PLACE_PROBLEM_H

#include "place.h"

typedef struct {
    PlaceInput in;
    PlaceStage *stage;
    PlaceChoice **choice; /* per stage */
    bool sums;            /* gradients of microbatches are summed in an array of their own */
    int64_t cap;          /* bytes of a stage, all its replicas; < 0: none */
    int64_t *device_cap;  /* per worker: bytes of what it does; < 0: none */
    bool several_kinds;   /* of devices */
    VEC(PlaceBan) bans;
} Problem;

/* With as many workers as stages a stage has one, or the replicas of the written graph. */
Problem *problem_new(const Placing *placing, int nstages, int workers);
/* The caps again, after a change of `cap` or `device_cap`. */
void problem_caps(Problem *problem);
bool problem_capped(const Problem *problem);
/* `bytes` a stage needs, `worker_bytes` of them the first of its workers. */
bool problem_over(const Problem *problem, int worker, int replicas, int64_t bytes, int64_t worker_bytes);
/* The stage that this placement gives to `stage` shall not be again. */
void problem_ban(Arena *arena, Problem *problem, int stage, const int *cut, const int *replicas);
/* Prefix sums of a stage with so many replicas that begins with this worker. */
const int64_t *problem_work(const Problem *problem, int stage, int worker, int replicas);
/* The slowest stage over the mean, without transfers. */
double problem_balance(const Problem *problem, const int *cut, const int *replicas);

#endif
