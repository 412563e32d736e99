/* accumulate.c: the correction `accumulate`. A stage moves its weights once in a minibatches, by the mean of their
 * gradients at a times the rate: per minibatch as far as before, and between a forward and its backward at most ceil(d
 * / a) times. What comes behind it in corrections.def counts the delay in such moves. */
#include <math.h>

#include "correction.h"

static void apply(const CorrectionSite *site, Cure *out)
{
    const int minibatches = (int)site->arg[0];
    out->accumulate = minibatches;
    out->moves = (site->delay + minibatches - 1) / minibatches;
    out->rate_factor *= minibatches;
    out->forward /= minibatches; /* of a weight rule that predicts: counted in minibatches */
    out->backward /= minibatches;
}

extern const CorrectionDef correction_accumulate;
const CorrectionDef correction_accumulate = {
    .name = "accumulate",
    .doc = "one update by the mean gradient of a minibatches, a times the rate: ceil(d/a) moves of the weights in d",
    .source = "PACI 2026 (arXiv 2606.07881): a step every a backwards, per stage; the rate: Goyal et al. 2017, linear "
              "scaling",
    .corrects = CORRECTS_OFTEN,
    .arg = {{"a", "minibatches of an update", 2, 1, 256}},
    .whole = true,
    .apply = apply,
};
