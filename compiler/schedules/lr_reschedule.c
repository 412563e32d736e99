/* lr_reschedule.c: the correction `lr_reschedule`. Staleness does its harm early, while the curvature is high; what the
 * slow start costs is not won back. Measured with momentum_by_delay and lookahead on CIFAR-10: ResNet-20 with every
 * residual unit a stage, 12000 steps, lost 0.7 points with K = 3000 and 0.3 with K = 1200; AlexNet (G 0.065, 2500 steps)
 * lost 2.9 with K = 625 and x = d, 2.5 without a start, though in 1000 steps one of 100 helped it; a LeNet-5 at G 1.3
 * wants 250 of 1000 steps. One seed each: the best length is not settled (bench/README.md). */
#include "correction.h"

/* The limit for G was found with batch normalisation: ResNet-20 at G 0.65, 12000 steps, loses 1.3 points without a cure,
 * 0.8 with x = 6, 0.5 with 1.3. Where there is none G counts more: a LeNet-5 at G 1.3, 1000 steps, means of four seeds,
 * is at 97.9 % with x = 6, at 96.3 % with 2.6, at 98.1 % without staleness. */
static const double without_normalisation = 5;

static double divisor_of(const CorrectionSite *site, double enough)
{
    if (enough <= 0 || site->stability < 0)
        return site->delay;
    const double over = site->stability * (site->normalised ? 1 : without_normalisation) / enough;
    return over < site->delay ? over : site->delay;
}

static void apply(const CorrectionSite *site, Cure *out)
{
    const double divisor = divisor_of(site, site->arg[1]);
    if (divisor <= 1)
        return;
    out->divisor = divisor;
    out->reschedule = site->arg[0];
    out->reschedule_most = site->arg[2];
}

extern const CorrectionDef correction_lr_reschedule;
const CorrectionDef correction_lr_reschedule = {
    .name = "lr_reschedule",
    .doc = "rate / x^(1 - k/K) until update K; x = min(d, G / enough), nothing from 1 down",
    .source = "Yang et al. 2021 (PipeMare, MLSys), technique T1; by G: measured for this compiler",
    .corrects = CORRECTS_RATE,
    .arg = {{"part", "of the run that K is", 0.25, 0, 1},
            {"enough", "a G to begin with (G: 5 times without batch normalisation); 0: x = d, as PipeMare has it", 0.5,
             0, 100},
            {"most", "updates that K is at most", 1200, 0, 1e9}},
    .apply = apply,
};
