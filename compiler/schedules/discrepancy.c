/* discrepancy.c: the correction `discrepancy`. The backward undoes the mean of the last updates, d times. */
#include <math.h>

#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    out->memory = pow(site->arg[0], 1.0 / site->delay);
    out->back = site->delay;
}

extern const CorrectionDef correction_discrepancy;
const CorrectionDef correction_discrepancy = {
    .name = "discrepancy",
    .doc = "backward with w - d delta, about what its forward read; delta: running mean of the updates",
    .source = "Yang et al. 2021 (PipeMare, MLSys), technique T2",
    .corrects = CORRECTS_BACKWARD,
    .arg = {{"decay", "of delta over d updates", 0.135, 0.000001, 0.999999}},
    .apply = apply,
};
