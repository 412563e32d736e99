/* predict.c: the weight rule `predict`. All steps of a minibatch read the weights predicted for the time when the first
 * stage has done its backward: s updates ahead, w - s rate v. From a stage's backward to that of the first stage is
 * half of what their delays differ by: floor(r/2) in stage r of 1F1B, as in the source, r in lockstep. */
#include "order.h"

static int versions(int staleness)
{
    (void)staleness;
    return 1;
}

static int backward_ahead(int delay, int first_delay)
{
    return (first_delay - delay) / 2;
}

static int forward_ahead(int delay, int first_delay)
{
    return delay + backward_ahead(delay, first_delay);
}

extern const RuleDef rule_predict;
const RuleDef rule_predict = {
    .name = "predict",
    .doc = "forward and backward read weights predicted by the velocity for one and the same time",
    .source = "Chen et al. 2018 (SpecTrain): s = floor(r/2) + N - r - 1 forward, floor(r/2) backward",
    .backward_reads_own = false,
    .versions = versions,
    .forward_ahead = forward_ahead,
    .backward_ahead = backward_ahead,
};
