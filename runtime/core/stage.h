/* stage.h: weight versions of a stage, and what is measured of it. Version v is the weights after v updates; it lives
 * in slot v % versions. Where weights have masters (pn.h) these are what updates move, and a version is made of them. */
#ifndef PN_STAGE_H
#define PN_STAGE_H

#include "rt.h"

/* Sets up run->stage[worker], before its init and behind those before it. */
void stage_open(pn_run *run, int worker);
/* Bookkeeping around a step: the version read, minibatches in flight, staleness; each is checked against what was
 * compiled. */
void stage_begin_forward(pn_stage *stage, int64_t minibatch);
void stage_begin_backward(pn_stage *stage, int64_t minibatch);
/* Adds the gradient of a microbatch, of the weights [from, to), to those before it; behind the last of its minibatch
 * `gradient` is their mean. */
void stage_end_backward(pn_stage *stage, int64_t n, int64_t from, int64_t to);
float *stage_version(const pn_stage *stage, int64_t version); /* as forward and backward read it */
float *stage_weights(const pn_stage *stage, int64_t version); /* as updates and files have it; masters: the last one */
int64_t stage_version_floats(const pn_stage *stage);

#endif
