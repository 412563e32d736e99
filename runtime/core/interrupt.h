/* interrupt.h: Ctrl-C ends a run after a minibatch on which all stages agree. */
#ifndef PN_INTERRUPT_H
#define PN_INTERRUPT_H

#include "rt.h"

/* Before the stages ask: minibatch `first` is the first to be begun. */
void interrupt_open(pn_run *run, int64_t first);
/* May a stage begin minibatch n? Stages ask in ascending order. Once SIGINT has come, only for minibatches that some
 * stage had begun by then: so every stage stops at the same one, and none waits for another. Waits while ranks agree
 * on it. */
bool interrupt_may_begin(pn_run *run, int64_t n);
void interrupt_close(pn_run *run); /* what the handler does: no stage begins a minibatch that none has begun */
/* The same for several ranks, in two steps (world/agree.c): how many this one has begun, and none beyond these until
 * all have agreed; the run ends behind so many. */
int64_t interrupt_hold(pn_run *run);
void interrupt_close_behind(pn_run *run, int64_t minibatches);
/* How many minibatches the run has once no stage may begin another: run->steps, or fewer. */
int64_t interrupt_steps(pn_run *run);

/* Between install and remove SIGINT closes the run; a second one has its usual effect. */
void interrupt_install(pn_run *run);
void interrupt_remove(void);

#endif
