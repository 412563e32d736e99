/* two_buffer.c: the weight rule `two_buffer`. Minibatch b reads version b - 1 in all its microbatches and in all
 * stages: w(b+1) = w(b) - rate gradient(w(b-1)), whatever the depth. Two versions hold where no stage is more than a
 * minibatch ahead of its backwards. */
#include "order.h"

static int versions(int staleness)
{
    return staleness + 1;
}

extern const RuleDef rule_two_buffer;
const RuleDef rule_two_buffer = {
    .name = "two_buffer",
    .doc = "forward and backward read the version before the newest in all stages: one update late at any depth",
    .source = "Narayanan et al. 2021 (PipeDream-2BW, ICML), section 3.1: double-buffered weight updates",
    .backward_reads_own = true,
    .forward_reads = READS_BEFORE,
    .most_stale = 1,
    .versions = versions,
};
