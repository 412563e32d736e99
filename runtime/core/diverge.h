/* diverge.h: training that diverges ends at once, says why that may be, and keeps the weights of the last good test.
 *
 * A run has diverged when the loss of a minibatch or of a test is not a finite number, or that of a minibatch is over
 * 1000 times the larger of 1 and the loss of its first one. */
#ifndef PN_DIVERGE_H
#define PN_DIVERGE_H

#include "rt.h"

typedef struct pn_diverge pn_diverge;

/* beside: the file of --save or --checkpoint, by which the last good weights are written as NAME.last-good.safetensors;
 * NULL: they are not kept. After the inits of all stages. */
void diverge_open(pn_run *run, const char *beside);

/* A stage begins a test: its weights are those that the test will judge. */
void diverge_keep(pn_stage *stage);
/* By the stage of the loss. They do not return when the run has diverged. */
void diverge_check_loss(pn_stage *stage, int64_t minibatch, double loss);
void diverge_check_test(pn_stage *stage, double loss);

bool diverge_happened(const pn_run *run);
void diverge_end(pn_run *run); /* all stages have ended: writes the weights and says so */

#endif
