/* sched.h: in which order each stage works, proved legal before a run starts.
 *
 * A stage runs `warmup` forwards, then repeats `body`, then drains: the body goes on with what is left (a forward only
 * while minibatches remain). Every order is given by these, per stage; everything else is derived here for any order:
 * staleness, ring depth, weight versions, slots of each register, and the proof. Backwards are ascending in every
 * order. TEST is the evaluation after update m of every stage: it may be asked for after any m.
 *
 * A minibatch is M microbatches (Graph.microbatches; 1 where nothing is sliced). Forwards, backwards, rings and slots
 * count microbatches, n of minibatch n / M; updates, staleness, versions and phases count minibatches.
 *
 * Where a stage is in halves (mapping = split) both walk the same order: the forward half does its forwards, and takes
 * the new weights where the order has an update; the backward half does all else. So a forward reads the version that
 * it would read in one worker, and the bits are the same. A forward waits for a slot of the ring that the backward half
 * lets go; an update waits until the forward half has left the version that it overwrites: two versions are kept at
 * least.
 *
 * Staleness is the number of a stage's updates that a backward's gradient comes late: from the version of the weights
 * that its forward read to the version that it updates. */
#ifndef PNETC_SCHED_H
#define PNETC_SCHED_H

#include "cure.h"
#include "order.h"
#include "pipe.h"
#include "settings.h"

typedef struct {
    const PhaseChoice *choice;
    StageOrder *stage; /* per stage */
    int *staleness;    /* per stage, in this phase, steady state */
    int *in_flight;    /* per stage: most microbatches between their forward and their backward, with its weight part */
    int *ahead;        /* per stage: the same, without the weight part */
    int *late;         /* per stage: most microbatches between the two parts of a backward; 0: it is not split */
    Cure *cure;        /* per stage */
} Phase;

typedef struct {
    const Pipe *pipe; /* registers are kept as recomputation wants */
    const Settings *settings;
    Phase *phase;
    int nphases;
    /* per stage: the largest over the phases */
    int *staleness, *ring, *versions;
    int *late;       /* per stage, likewise: 0 where no phase splits its backwards */
    bool *recompute; /* per stage: the values of its forward are made again before each backward */
    /* per edge: slots of the forward register, of the gradient register (0: no gradient), of the test register */
    int *forward_slots, *gradient_slots, *test_slots;
    double stale_fraction; /* weights in stages with staleness > 0, over all weights; of the first phase */
} Sched;

/* sched.c. Builds and proves: every step once, dependencies met, both ends of each register agree on the order, no
 * deadlock with the planned slots (also with a TEST after any update), no slot overwritten that a backward still needs.
 * An illegal order is an error at the pipeline block's schedule. */
Sched *schedule(Arena *arena, Diags *diags, const Pipe *pipe, const Settings *settings);
/* The explicit steps of one stage for n minibatches, all phases; *count out. */
typedef struct {
    StepKind kind;
    int64_t n; /* microbatch; UPDATE: minibatch; TEST: test batch */
} Step;
Step *sched_steps(Arena *arena, const Sched *sched, int stage, int64_t minibatches, int *count);
/* One stage's order in the steady state, as in Phase. `first`: the order of stage 0, for READS_FIRST. */
typedef struct {
    int staleness, in_flight, ahead, late;
} OrderFacts;
OrderFacts order_measure(Arena *arena, const StageOrder *order, Reads reads, const StageOrder *first,
                         int64_t microbatches);
/* "20 minibatches", "until a plateau of 3 tests", "the rest": how long phase p takes. */
const char *phase_length(Arena *arena, const Sched *sched, int p);
/* sched_halves.c: false after an error: the stages are in halves, and that does not go with what else is wished. */
bool halves_hold(Diags *diags, const Sched *sched);
bool sched_splits(const Sched *sched); /* some stage splits its backwards in some phase */
void sched_check(const Sched *sched);
void sched_dump(const Sched *sched, Text *out);

/* prove.c, prove_all.c: run all stages of `minibatches` minibatches with a TEST after update `test_after` (0: none)
 * under the slots of `sched`; NULL if legal, else what went wrong ("deadlock: stage 0 waits for ..."). */
const char *sched_prove(Arena *arena, const Sched *sched, int64_t minibatches, int64_t test_after);
/* The same for given steps: step[s][0..count[s]) of each stage. */
const char *sched_prove_steps(Arena *arena, const Sched *sched, const Step *const *step, const int *count,
                              int64_t minibatches, int64_t test_after);
/* Runs of several lengths, long enough that longer ones only repeat, without a test and with one after each update. */
const char *sched_prove_all(Arena *arena, const Sched *sched);

#endif
