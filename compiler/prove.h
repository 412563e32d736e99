/* prove.h: the state of a proof (prove.c), for those who put it into words (prove_say.c). Private to prove*.c. */
#ifndef PNETC_PROVE_H
#define PNETC_PROVE_H

#include "sched.h"

typedef struct {
    int edge;                /* one of those that behave alike */
    int64_t given, released; /* forward */
    int64_t back_given, back_released;
    int64_t test_given, test_released;
} Queue;

typedef enum { HALF_FORWARD, HALF_BACKWARD, HALVES } Half; /* a stage in one piece is its second half */
typedef struct {
    Queue *queue; /* of the cut behind this stage */
    int nqueues;
    int at[HALVES];                                       /* next step */
    int64_t forwards, backwards, weights, updates, tests; /* weights: backwards with their weight part */
    int64_t taken;                                        /* updates whose weights the forward half has */
    int64_t *version;                                     /* per microbatch: updates at its forward */
    bool waiting;                                         /* stands in the list of stages to look at */
} Worker;

typedef struct {
    Arena *arena;
    const Sched *sched;
    const Step *const *step;
    const int *count;
    int64_t minibatches, microbatches, test_after; /* microbatches: of a minibatch */
    int nstages;
    Worker *worker;
    const char *wrong;
} Proof;

/* What a step waits for. */
typedef struct {
    const Queue *queue; /* NULL: for the other half */
    enum { WAIT_NOTHING, WAIT_VALUE, WAIT_ROOM } what;
} Wait;

static inline bool halved(const Proof *p, int stage)
{
    return p->sched->pipe->stage[stage].halves;
}

/* prove.c */
Wait proof_wait(const Proof *p, int stage, Half half, Step step);
bool proof_next(const Proof *p, int stage, Half half, Step *step); /* false: the half has done all */

/* prove_say.c; NULL: nothing */
const char *proof_value_name(const Proof *p, const Queue *queue);
const char *proof_deadlock(const Proof *p);
const char *proof_unfinished(const Proof *p);

#endif
