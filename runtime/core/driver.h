/* driver.h: the steps of one stage, one after another; a transport decides when, and on which thread. */
#ifndef PN_DRIVER_H
#define PN_DRIVER_H

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
void driver_begin(pn_stage *stage);

/* The next step of the stage's order: the warm-up forwards of the phase, its body again and again, what is left of it
 * when no minibatch may be begun any more; then the next phase. After update m comes a test if m is a multiple of
 * run->test_every, and one comes at the end if the last update had none; then a checkpoint if m is a multiple of
 * run->checkpoint_every. Asking again without doing the step gives the
 * same step. */
Step driver_next(pn_stage *stage);

/* Leaves the next step behind as if it had been done: nothing but numbers and places changes. For who follows a stage's
 * order without running it. */
void driver_pass(pn_stage *stage, Step step);

/* Does the next step, on the calling thread. False: the stage has ended, or failed (then the run is stopped). */
bool driver_step(pn_stage *stage);

/* The channels that the step takes from and gives to. */
typedef struct {
    pn_channel *const *takes, *const *gives;
    int ntakes, ngives;
} StepChannels;
StepChannels driver_channels(const pn_stage *stage, Step step);
const char *driver_describe(Step step, char *text, size_t size); /* "the forward of minibatch 7" */

/* "stage 1", "stage 1, replica 0", "stage 1, forward". */
enum { STAGE_NAME = 48 };
const char *stage_name(const pn_stage *stage, char *text, size_t size);

int64_t driver_test_batches(const pn_run *run);

/* No stage is ahead of another by more updates than there are minibatches between the two: those in flight, and those
 * that lie in registers. */
int64_t driver_most_apart(const pn_program *program);

/* ---- fail.c: errors, for the driver and the transports; everybody else calls pn_fail ---- */
/* Keeps the message if it is the first of the run, and stops all stages; returns. Any thread. run->error may be read
 * once all threads of the stages have ended. */
void fail_record(pn_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fail_unwind(pn_stage *stage); /* to the running step of this stage */

#endif
