/* lr_reschedule.c: the correction `lr_reschedule`. Staleness does its harm early. */
#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    out->delay = site->delay;
    out->reschedule = site->arg[0];
}

extern const CorrectionDef correction_lr_reschedule;
const CorrectionDef correction_lr_reschedule = {
    .name = "lr_reschedule",
    .doc = "rate / d^(1 - k/K) until update K, a part of the run",
    .source = "Yang et al. 2021 (PipeMare, MLSys), technique T1",
    .corrects = CORRECTS_RATE,
    .arg = {{"part", "of the run that K is", 0.25, 0, 1}},
    .apply = apply,
};
