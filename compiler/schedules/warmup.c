/* warmup.c: the correction `warmup`. The same as `warmup` of the train block, for stale stages alone. */
#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    out->warmup = site->arg[0];
}

extern const CorrectionDef correction_warmup;
const CorrectionDef correction_warmup = {
    .name = "warmup",
    .doc = "the rate of stale stages rises linearly over a part of the run",
    .source = "Goyal et al. 2017, gradual warm-up",
    .corrects = CORRECTS_START,
    .arg = {{"part", "of the run", 0.1, 0, 1}},
    .apply = apply,
};
