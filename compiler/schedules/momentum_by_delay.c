/* momentum_by_delay.c: the correction `momentum_by_delay`. Look-ahead is worth as much as the velocity remembers:
 * 1/(1-m) updates become at least k delays; lr/(1-m) stays. */
#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    const double own = 1 / (1 - site->momentum), wanted = site->arg[0] * site->delay;
    out->momentum = 1 - 1 / (wanted > own ? wanted : own);
    out->rate_factor *= site->averages ? 1 : (1 - out->momentum) / (1 - site->momentum);
    out->on_velocity = site->nesterov ? out->momentum : out->on_velocity;
}

extern const CorrectionDef correction_momentum_by_delay;
const CorrectionDef correction_momentum_by_delay = {
    .name = "momentum_by_delay",
    .doc = "momentum 1 - 1/max(1/(1-m), k d); the rate shrinks by as much: lr/(1-m) stays",
    .source = "measured for this compiler; momentum raised with the delay: Ajanthan et al. 2025 (ICML)",
    .corrects = CORRECTS_MOMENTUM,
    .arg = {{"k", "delays that the velocity remembers", 5, 0, 100}},
    .apply = apply,
};
