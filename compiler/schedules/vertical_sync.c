/* vertical_sync.c: the weight rule `vertical_sync`. One version for a minibatch in all stages, that of stage 0 when it
 * began: known from the order, so that nothing is sent with it. Every stage is as stale as the first. */
#include "order.h"

static int versions(int staleness)
{
    return staleness + 1;
}

extern const RuleDef rule_vertical_sync;
const RuleDef rule_vertical_sync = {
    .name = "vertical_sync",
    .doc = "forward and backward read the version that stage 0 had at its forward: a gradient of one set of weights",
    .source = "Harlap et al. 2018 (PipeDream); Narayanan et al. 2019 (SOSP), section 3.3: vertical sync",
    .backward_reads_own = true,
    .forward_reads = READS_FIRST,
    .versions = versions,
};
