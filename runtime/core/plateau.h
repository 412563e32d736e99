/* plateau.h: phases that end when the loss on the test set has stopped falling.
 *
 * Such a phase is judged at every test after a multiple of test_every steps: its loss must be below the lowest one
 * before by more than `least` of it; after `tests` in a row that are not, the phase ends one interval later, after the
 * step of the next test. By then no stage can have begun a later minibatch before it sees the decision: an interval is
 * longer than any two stages are apart (plateau_open sees to that). So the switch falls on the same minibatch in every
 * stage and on every transport. */
#ifndef PN_PLATEAU_H
#define PN_PLATEAU_H

#include "rt.h"

enum { PLATEAU_TEXT = 200 };

/* After the course of the run is set, before its stages are opened. text: what a checkpoint said; NULL: none. Ends the
 * program when tests are too near to one another. */
void plateau_open(pn_run *run, const char *text);
/* By the stage of the loss, at the end of a test. */
void plateau_test(pn_stage *stage, double loss);
/* The first minibatch behind the phase; INT64_MAX: not known yet. */
int64_t plateau_end(const pn_run *run, int phase);
/* For a checkpoint, by the stage of the loss: what plateau_open reads. "" where no phase is judged. */
void plateau_text(const pn_run *run, char text[PLATEAU_TEXT]);

#endif
