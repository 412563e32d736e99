/* cure.h: what the weight rule and the corrections of the pipeline block come to in one stage, and how stable training
 * with its staleness is. */
#ifndef PNETC_CURE_H
#define PNETC_CURE_H

#include "correction.h"
#include "settings.h"

/* delay: of the stage in this phase, first_delay: of stage 0; normalised: pipe_normalises. A stage without delay is left
 * to the optimiser alone, but for a rule that predicts. cure = auto leaves out what does not go with the weight rule. */
Cure cure_of(const Settings *settings, const PhaseChoice *phase, int delay, int first_delay, bool normalised);

/* Copies of the stage's weights that its forward and backward read in place of the stored ones. */
int cure_ahead_copies(const Cure *cure);
/* State arrays besides the optimiser's, in every stage: a checkpoint does not depend on the cut. First the sum of
 * gradients, where they accumulate, then delta. */
int cure_states(const Settings *settings);
bool cure_accumulates(const Settings *settings);

/* G = lr/(1-m) (delay + 1/2) with the highest rate of the phase's policy. Delayed SGD with momentum on a quadratic of
 * curvature c is stable while G c is below about 1 to 1.6; without delay its limit is lr c = 2 (1 + m). -1: not known,
 * as for Adam, whose steps are normalised. */
double stability_number(const Settings *settings, const PhaseChoice *phase, int delay);
double stability_rate(const Settings *settings, const PhaseChoice *phase); /* that highest rate */
/* Measured on ResNet-20, with batch normalisation; a LeNet-5 without it lost 1 point at 0.2, and diverged at 0.65. */
static const double stability_enough = 0.5;  /* little is lost */
static const double stability_most = 10;     /* not even a cure helps enough */
static const int64_t stability_steps = 4800; /* of a run: auto's slow start has all its updates; 2500 were few */

/* "forward 5.338 v ahead, momentum 0.9667, rate x 0.3333, / 6^(1 - k/K) until 25 % or 1200 updates" (of the run); "-": nothing. */
const char *cure_text(Arena *arena, const Cure *cure);

#endif
