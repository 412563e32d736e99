/* order.h: where a stage stands in its order, and what it does next; doing it is the driver's (core/driver.h). */
#ifndef PN_ORDER_H
#define PN_ORDER_H

#include "rt.h"

/* SHARE, SUM: the update of a stage with replicas begins with these (core/replicas.h). HAND_OVER: what an update is to
 * a forward half (core/halves.h). */
typedef enum {
    ACTION_FORWARD,
    ACTION_BACKWARD,
    ACTION_WEIGHTS,
    ACTION_SHARE,
    ACTION_SUM,
    ACTION_HAND_OVER,
    ACTION_UPDATE,
    ACTION_TEST,
    ACTION_CHECKPOINT,
    ACTION_END
} Action;
typedef struct {
    Action action;
    int64_t n; /* microbatch; UPDATE, HAND_OVER: minibatch; TEST: test batch; CHECKPOINT: updates done */
} Step;

/* Where a stage stands in its order. */
struct pn_cursor {
    int phase;
    int position;           /* in the body of the phase's order */
    int64_t tested_after;   /* updates done at the last finished test; -1: none yet */
    int64_t test_batch;     /* next one of the test that goes on; -1: training */
    int64_t saved_after;    /* updates done at the last checkpoint */
    int64_t shared, summed; /* updates of which this replica has done that */
};

/* Puts a new stage behind update run->first: its order starts anew, in the phase of that minibatch. */
void order_begin(pn_stage *stage);

/* The next step of the stage's order: the warm-up forwards of the phase, its body again and again, what is left of it
 * when no minibatch may be begun any more; then the next phase. After update m comes a test if m is a multiple of
 * run->test_every, and one comes at the end if the last update had none; then a checkpoint if m is a multiple of
 * run->checkpoint_every. Asking again without doing the step gives the same step. */
Step order_next(pn_stage *stage);

/* Leaves the body's position behind the step, which is about to be done; a warm-up forward is not part of the body. */
void order_advance(pn_stage *stage, Step step);

/* Leaves the next step behind as if it had been done: nothing but numbers and places changes. For who follows a stage's
 * order without running it. */
void order_pass(pn_stage *stage, Step step);

int64_t order_test_batches(const pn_run *run);

/* No stage is ahead of another by more updates than there are minibatches between the two: those in flight, and those
 * that lie in registers. */
int64_t order_most_apart(const pn_program *program);

#endif
