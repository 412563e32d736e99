/* calibrate.h: a machine block for this machine, fitted to measurements with the cost model's own formulas (cost.h). */
#ifndef PNETC_CALIBRATE_H
#define PNETC_CALIBRATE_H

#include "measure.h"

/* The network to measure: every op family, at sizes that compute, sizes that move bytes, and sizes that do neither. In
 * two stages. */
const char *calibrate_network(Arena *arena, const TargetDef *target);

/* Memory bandwidth in B/s of each worker when 1 .. n run at once: rate[workers - 1]. A triad (McCalpin's STREAM) over
 * arrays of `bytes` each; 12 bytes count for an element, as the cost model counts. False: no memory or no threads. */
bool calibrate_bandwidth(int workers, size_t bytes, double *rate);

/* Writes the machine block. `direct` on `plan`, the plan of the network above, with all convolutions direct; `by_rule`
 * as programs run by themselves, NULL where the target has one algorithm; `states` of its optimiser. */
void calibrate_write(Text *out, const Plan *plan, int states, const Measurement *direct, const Measurement *by_rule,
                     int workers, const double *rate);

int processors(void);

#endif
