/* replay.c: the weight rule `replay`. A stage keeps what it takes for each microbatch in flight, and nothing else:
 * before the backward it makes its forward's values again, with the current weights, which the backward reads too. */
#include "order.h"

static int versions(int staleness)
{
    (void)staleness;
    return 1;
}

extern const RuleDef rule_replay;
const RuleDef rule_replay = {
    .name = "replay",
    .doc = "inputs are kept alone: the forward is computed again with the current weights, which the backward reads",
    .source = "Huo et al. 2018 (Features Replay, NeurIPS), algorithm 1",
    .backward_reads_own = false,
    .recomputes = true,
    .versions = versions,
};
