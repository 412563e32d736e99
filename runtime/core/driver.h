/* driver.h: the steps of one stage, one after another; a transport decides when, and on which thread. */
#ifndef PN_DRIVER_H
#define PN_DRIVER_H

#include "core/order.h"

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

/* ---- fail.c: errors, for the driver and the transports; everybody else calls pn_fail ---- */
/* Keeps the message if it is the first of the run, and stops all stages; returns. Any thread. run->error may be read
 * once all threads of the stages have ended. */
void fail_record(pn_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fail_unwind(pn_stage *stage); /* to the running step of this stage */

#endif
