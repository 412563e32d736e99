/* spike.c: the correction `spike`. A gradient that comes d updates late has at once the weight that it would have
 * gathered by now: m^d in the velocity, (1 - m^d)/(1 - m) at once. */
#include <math.h>

#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    const double m = out->momentum, updates = site->arg[0] * site->delay;
    out->on_velocity = pow(m, updates);
    out->on_gradient = (1 - pow(m, updates)) / (1 - m);
}

extern const CorrectionDef correction_spike;
const CorrectionDef correction_spike = {
    .name = "spike",
    .doc = "update by m^d v + (1 - m^d)/(1 - m) g: a late gradient at its full weight",
    .source = "Kosson et al. 2021 (Pipelined Backpropagation at Scale, MLSys), spike compensation",
    .corrects = CORRECTS_STEP,
    .arg = {{"horizon", "in delays", 1, 0, 10}},
    .apply = apply,
};
