/* replicas.h: the update of a stage that has replicas (pn.h, "replicas").
 *
 * In place of the update each replica does three steps of its order: it shares its gradient; when all have, it adds up
 * its part of the gradients, in replica order, into that of replica 0, and takes the mean of its part of the running
 * statistics into all of them; when all have done that, replica 0 updates the weights and the others go on. No replica
 * has a forward or a backward between these steps, so none reads weights or writes gradients that another one is
 * working on. Sums have one order: runs repeat bit for bit.
 *
 * The steps meet over channels without memory, so that transports wait for them as for any register. */
#ifndef PN_REPLICAS_H
#define PN_REPLICAS_H

#include "core/driver.h"

/* What the def of a stage says of replicas; the weights it shares. Needs run, def, index, and replica 0 before the
 * others. */
void replicas_join(pn_stage *stage);

/* The steps, and their channels. */
void replicas_share(pn_stage *stage);
void replicas_sum(pn_stage *stage);
void replicas_update(pn_stage *stage);
StepChannels replicas_channels(const pn_stage *stage, Step step);

#endif
