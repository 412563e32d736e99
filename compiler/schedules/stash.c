/* stash.c: the weight rule `stash`. A version lives from the forward that reads it to the backward that reads it. */
#include "order.h"

static int versions(int staleness)
{
    return staleness + 1;
}

extern const RuleDef rule_stash;
const RuleDef rule_stash = {
    .name = "stash",
    .doc = "backward reads the version of the weights that its forward read",
    .source = "Narayanan et al. 2019 (PipeDream, SOSP), section 3.3: weight stashing",
    .backward_reads_own = true,
    .versions = versions,
};
