/* stability.c: the stability number of the stages against its limit, and what would lower it. */
#include "stability.h"

#include <string.h>

static double of_phase(const Sched *sched, int p, int stage)
{
    const Phase *phase = &sched->phase[p];
    return phase->staleness[stage] > 0 ? stability_number(sched->settings, phase->choice, phase->staleness[stage]) : 0;
}

double stability_of_stage(const Sched *sched, int stage)
{
    double most = stability_number(sched->settings, sched->phase[0].choice, 0);
    for (int p = 0; p < sched->nphases; p++) {
        const double here = stability_number(sched->settings, sched->phase[p].choice, sched->phase[p].staleness[stage]);
        most = here > most ? here : most;
    }
    return most;
}

Stability stability_judge(const Sched *sched)
{
    Stability worst = {0};
    for (int p = 0; p < sched->nphases; p++)
        for (int s = 0; s < sched->pipe->nstages; s++) {
            const double here = of_phase(sched, p, s);
            if (here < 0)
                return (Stability){-1, s, p};
            if (here > worst.most)
                worst = (Stability){here, s, p};
        }
    return worst;
}

static bool is_stale(const Sched *sched, int stage)
{
    for (int p = 0; p < sched->nphases; p++)
        if (sched->phase[p].staleness[stage] > 0)
            return true;
    return false;
}

bool stability_is_normalised(const Sched *sched)
{
    for (int s = 0; s < sched->pipe->nstages; s++)
        if (is_stale(sched, s) && !pipe_normalises(sched->pipe, s))
            return false;
    return true;
}

const char *stability_schedule(const PhaseChoice *phase)
{
    const bool named =
        !strchr(phase->preset, '+') && phase->microbatches == 0 && !phase->recompute && !phase->recomputes;
    return named ? phase->preset : "...";
}

double stability_by_1f1b(Arena *arena, const Sched *sched, const PhaseChoice *phase)
{
    for (int i = 0; i < order_count; i++) {
        if (strcmp(order_table[i]->name, "1f1b"))
            continue;
        const int64_t microbatches = sched->pipe->graph->microbatches;
        StageOrder order = {0};
        order_table[i]->order((OrderPlace){0, sched->pipe->nstages, (int)microbatches}, &order);
        const OrderFacts facts = order_measure(arena, &order, READS_CURRENT, NULL, microbatches);
        return stability_number(sched->settings, phase, facts.staleness);
    }
    ICE("there is no order 1f1b");
}

/* Why it is to be feared that accuracy is lost; NULL: it is not. */
static const char *reason(Arena *arena, const Sched *sched, const Stability *worst, bool cured)
{
    const int64_t steps = sched->settings->train.epochs ? 0 : sched->settings->train.steps;
    const bool says_too_little = worst->most <= stability_enough && !stability_is_normalised(sched);
    if (worst->most > stability_most)
        return arena_printf(arena, ", over %g: %s", stability_most,
                            cured ? "its cure is likely not enough" : "training is likely to diverge");
    if (cured && (worst->most > stability_enough || says_too_little) && steps > 0 && steps < stability_steps)
        return arena_printf(arena, "%s, and %lld steps are few for its cure: it is likely to leave points lost",
                            says_too_little ? ", which says too little without batch normalisation" : "",
                            (long long)steps);
    return NULL;
}

/* What would help at the end of a hint: where G is the trouble a smaller one. */
static void remedies(const Sched *sched, const Stability *worst, Text *hint)
{
    const PhaseChoice *phase = sched->phase[worst->phase].choice;
    const double least = worst->most > stability_most ? stability_most : stability_enough;
    if (worst->most > least)
        text_printf(hint, "a rate of %.2g: G = %g; fewer stages; or hybrid(%s, steps = n, then = sequential)",
                    stability_rate(sched->settings, phase) * least / worst->most, least, stability_schedule(phase));
    else if (sched->nphases == 1)
        text_printf(hint, "fewer stages; or hybrid(sequential, steps = n, then = %s), which begins without staleness",
                    stability_schedule(phase));
    else
        text_printf(hint, "fewer stages");
}

void stability_warn(Arena *arena, Diags *diags, const Sched *sched, Warn level)
{
    const Stability worst = stability_judge(sched);
    const PhaseChoice *phase = sched->phase[worst.phase].choice;
    const bool cured = worst.most > 0 && sched->phase[worst.phase].cure[worst.stage].active;
    const char *why = reason(arena, sched, &worst, cured);
    if (level == WARN_OFF || !why)
        return;
    const char *text =
        arena_printf(arena, "stage %d is %d updates stale: G = lr/(1 - momentum) x (delay + 1/2) = %.3g%s", worst.stage,
                     sched->phase[worst.phase].staleness[worst.stage], worst.most, why);
    if (level == WARN_ERROR)
        diag_error(diags, P0443, phase->span, "%s", text);
    else
        diag_warning(diags, P0443, phase->span, "%s", text);
    Text hint = text_new(arena);
    if (!cured)
        text_printf(&hint, "cure = auto; ");
    else if (worst.most <= stability_most)
        text_printf(&hint, "%lld steps or more; ", (long long)stability_steps);
    const double half = stability_by_1f1b(arena, sched, phase);
    if (half < worst.most)
        text_printf(&hint, "the order 1f1b (schedule = stale_1f1b): G = %.3g; ", half);
    remedies(sched, &worst, &hint);
    diag_hint(diags, "%s", hint.data);
}
