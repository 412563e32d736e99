/* halves.h: a stage in two halves, each with a worker of its own (pn.h, "halves").
 *
 * Both walk the order of the stage. A step that belongs to the other half is passed: nothing but its number counts. The
 * forward half does the forwards, and in place of each update takes its weights over; the backward half does backwards,
 * weight parts, updates, tests and checkpoints.
 *
 * What one waits for from the other goes over two channels without memory:
 *   saved    a forward wants a slot of the ring that the backward has let go; a backward wants the forward's values
 *   weights  version v + 1 overwrites version v + 1 - V of the V that are kept, so an update wants that the forward
 *            half has gone on from that one: with V = 2 it has what the update before made. Slots: V - 1
 * So the forward of a microbatch reads the version that its place in the order says, whoever is faster. */
#ifndef PN_HALVES_H
#define PN_HALVES_H

#include "core/driver.h"

/* Joins a half to what both share. Needs run, def and index; the forward half before the backward one. */
void halves_join(pn_stage *stage);

/* The other half does this step, or nobody needs to. */
bool halves_leave(const pn_stage *stage, Step step);
/* The channels of a step that are not the registers of its def; false: there are none. */
bool halves_channels(const pn_stage *stage, Step step, StepChannels *channels);

/* Around the steps. They wait, and let go. */
void halves_begin_forward(pn_stage *stage, int64_t n);
void halves_end_forward(pn_stage *stage, int64_t n);
void halves_begin_backward(pn_stage *stage, int64_t n);
void halves_end_backward(pn_stage *stage, int64_t n); /* all of it is done */
void halves_hand_over(pn_stage *stage);
void halves_update(pn_stage *stage);

/* The half that has the stage's measured ring, or its staleness; the stage itself where it is whole. */
const pn_stage *halves_forward(const pn_stage *stage);
const pn_stage *halves_backward(const pn_stage *stage);

#endif
