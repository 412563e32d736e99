/* stale.c: the weight rule `stale`. One copy, whatever the staleness. */
#include "order.h"

static int versions(int staleness)
{
    (void)staleness;
    return 1;
}

extern const RuleDef rule_stale;
const RuleDef rule_stale = {
    .name = "stale",
    .doc = "backward reads the current weights; its activations are the old ones",
    .source = "Zhang and Abdelrahman 2021, section 3 and appendix D: no copies of weights",
    .backward_reads_own = false,
    .versions = versions,
};
