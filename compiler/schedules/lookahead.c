/* lookahead.c: the correction `lookahead`. What the next d updates add to the weights if no gradient came:
 * rate (m + m^2 + .. + m^d) v, times the share of the velocity in an update. */
#include <math.h>

#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    const double m = out->momentum, updates = site->arg[0] * site->delay;
    out->forward = out->on_velocity * m * (1 - pow(m, updates)) / (1 - m);
}

extern const CorrectionDef correction_lookahead;
const CorrectionDef correction_lookahead = {
    .name = "lookahead",
    .doc = "forward with the weights that the velocity leads to by its backward; backward with the stored ones",
    .source = "Eliad et al. 2021 (FTPipe, USENIX ATC), momentum look-ahead (msnag); Kosson et al. 2021, LWP",
    .corrects = CORRECTS_FORWARD,
    .arg = {{"horizon", "in delays: 2 looks twice as far", 1, 0, 10}},
    .apply = apply,
};
