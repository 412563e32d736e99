/* update.h: the weights that a stage's steps read, and how an update moves them. */
#ifndef PN_UPDATE_H
#define PN_UPDATE_H

#include "rt.h"

/* Of the stage's present phase; NULL: the optimiser alone. */
const pn_cure *update_cure(const pn_stage *stage);
/* The learning rate of the present phase: the policy. */
double update_policy_rate(const pn_stage *stage, int64_t t);
/* The stage's learning rate of the update from version t to t + 1, what corrects for staleness included. */
double update_rate(const pn_stage *stage, int64_t t);

/* What a forward reads, and a backward where the weight rule says: the current weights. */
const float *update_forward(pn_stage *stage);
const float *update_backward(pn_stage *stage);

/* A stage that starts behind update run->first: its velocity stands for updates of the phase before. */
void update_begin(pn_stage *stage);

/* The stage goes on to the next phase, which begins with microbatch `end`. */
void update_leave(pn_stage *stage, int64_t end);

/* What pn_update is to a replica whose weights another one has updated. */
void update_follow(pn_stage *stage);

#endif
