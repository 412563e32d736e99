/* rounds.h: the steps of all stages as rounds, the same on every rank.
 *
 * The order of each stage is fixed, so every rank can follow all of them. In a round a stage does steps until one needs
 * what is given in the same round, or a slot that a later stage frees in it, or until it would be a second forward or
 * a second backward; what is given in a round arrives between it and the next. So all that crosses between two ranks in a round
 * is one exchange, and every rank knows it: nothing is agreed upon while it trains, no exchange waits in a circle, and
 * the results are those of any other order. With lockstep a round is the paper's cycle: the forward of a minibatch and
 * the backward of another. Orders that alternate in halves of it (1F1B) get on faster when a round is one of the two:
 * `rounds_open` tries both and takes the one that takes less time, if a forward costs 1, a backward 2, an exchange 1/4.
 *
 * Stages are followed on copies: the run's own are a step behind, and of other ranks' nothing is known here. */
#ifndef PN_ROUNDS_H
#define PN_ROUNDS_H

#include "core/driver.h"

typedef struct {
    int stage;
    Step step;
} RoundStep;
typedef struct {
    pn_channel *channel;
    int64_t n; /* what was given */
} RoundGift;
typedef struct {
    int64_t number;
    RoundStep *step; /* stage after stage */
    int steps;
    RoundGift *gift; /* in the order of the steps */
    int gifts;
} Round;
typedef struct pn_rounds pn_rounds;

pn_rounds *rounds_open(pn_run *run);
int rounds_most_gifts(const pn_run *run);
/* The next round, valid until the one after it; NULL: all stages have ended, or none can go on (then the run is
 * stopped). */
const Round *rounds_next(pn_rounds *rounds);

#endif
