/* fail.h: what the driver and the transports share about errors; everybody else calls pn_fail. */
#ifndef PN_FAIL_H
#define PN_FAIL_H

#include "rt.h"

/* Keeps the message if it is the first of the run, and stops all stages; returns. Any thread. run->error may be read
 * once all threads of the stages have ended. */
void fail_record(pn_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void fail_unwind(pn_stage *stage); /* to the running step of this stage */
void fail_check(pn_stage *stage);            /* unwinds if the run has been stopped */

#endif
