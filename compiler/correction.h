/* correction.h: corrections of staleness, and what they and the weight rule make of one stage: coefficients that are
 * known before the run. One const struct in schedules/<name>.c, one line in schedules/corrections.def.
 *
 * Update k of a stage with weights w, gradient g (decay included), velocity v and learning rate lr(k):
 *
 *     rate = lr(k) rate_factor divisor^-(1 - min(k / K, 1)) min((k + 1) / W, 1)   K, W: below
 *     v = momentum v + g;  w -= rate (on_velocity v + on_gradient g)              sgd; Adam has its own direction for v
 *     delta = memory delta + (1 - memory) (w after - w before)                    where memory > 0
 *
 * With accumulate = a > 1 the weights move at every a-th update of the phase alone, g being the mean gradient of the
 * minibatches since the last move; what is left of them at the end of the phase joins the first move of the next, what
 * is left at the end of the run is not applied.
 *
 * Its forward reads w - rate forward v. Its backward reads what the weight rule says; less rate backward v; less
 * back delta. Tests, checkpoints and saved weights are w. */
#ifndef PNETC_CORRECTION_H
#define PNETC_CORRECTION_H

#include "base.h"

typedef struct {
    bool active; /* false: the optimiser alone, untouched */
    double momentum, rate_factor, on_velocity, on_gradient;
    double forward, backward;
    double memory, back;
    int accumulate, moves;              /* 0: every minibatch moves the weights; moves: in a delay */
    double divisor;                     /* of the rate where the reschedule begins; 0: none */
    double reschedule, reschedule_most; /* K: that part of the run's updates, so many at most; 0: none */
    double warmup;                      /* W: that part of the run's updates; 0: none */
} Cure;

enum { CORRECTION_ARGS = 3 };
typedef struct {
    const char *key, *doc; /* key NULL: no such argument */
    double preset, low, high;
} CorrectionArg;

/* One stage in one phase, before corrections. */
typedef struct {
    int delay;       /* moves of the weights between the forward and the backward of a minibatch; over 0 */
    double momentum; /* of the optimiser, as the user set it */
    double
        stability; /* G (cure.h), with the rate and the momentum that the corrections before it chose; -1: not known */
    bool normalised; /* by batch normalisation, as where the limits of G were measured */
    bool averages;   /* its velocity is a mean of gradients (Adam), not a sum: momentum does not scale the step */
    bool nesterov;
    const double *arg;
} CorrectionSite;

/* What a correction does: two of the same kind contradict each other. */
typedef enum {
    CORRECTS_MOMENTUM = 1,
    CORRECTS_STEP = 2,     /* the form of the update: not with Nesterov's or Adam's */
    CORRECTS_FORWARD = 4,  /* the forward's weights */
    CORRECTS_BACKWARD = 8, /* the backward's weights: only where the rule gives it the current ones */
    CORRECTS_RATE = 16,
    CORRECTS_START = 32,
    CORRECTS_OFTEN =
        64 /* how often the weights move; not with Adam, whose steps are as long however large the gradient */
} Corrects;

typedef struct CorrectionDef {
    const char *name, *doc, *source; /* source: paper and section */
    unsigned corrects;
    CorrectionArg arg[CORRECTION_ARGS];
    bool whole;                                           /* its arguments are whole numbers */
    void (*apply)(const CorrectionSite *site, Cure *out); /* on what those before it in corrections.def have made */
} CorrectionDef;

extern const CorrectionDef *const correction_table[];
extern const int correction_count;
void correction_list(Text *out); /* their part of pnetc list schedules */

#endif
