/* report_cure.c: what `pnetc check` says of staleness: the stability number of the stages and what corrects them. */
#include "json_text.h"
#include "report.h"

#include "stability.h"

static void stability_line(const Sched *sched, const Stability *worst, Text *out)
{
    const Momentum momentum = optimizer_momentum(&sched->settings->train.optimizer);
    const PhaseChoice *phase = sched->phase[worst->phase].choice;
    if (worst->most < 0) {
        text_printf(out, "stability    not known for %s: its steps are normalised\n",
                    sched->settings->train.optimizer.name);
        return;
    }
    text_printf(out, "stability    G up to %.3g: lr %.4g/(1 - %.4g) x (%d + 1/2) in stage %d", worst->most,
                stability_rate(sched->settings, phase), momentum.momentum,
                sched->phase[worst->phase].staleness[worst->stage], worst->stage);
    if (worst->most <= stability_enough && worst->most > 0 && !stability_is_normalised(sched)) {
        text_printf(out, "; without batch normalisation more is lost than the number says\n");
        if (sched->nphases == 1)
            text_printf(out, "             hybrid(sequential, steps = n, then = %s) would begin without staleness\n",
                        stability_schedule(phase));
    } else if (worst->most <= stability_enough) {
        text_printf(out, "; up to %g little is lost\n", stability_enough);
    } else if (worst->most > stability_most) {
        text_printf(out, "; over %g: unstable\n", stability_most);
    } else {
        text_printf(out, "; over %g it costs accuracy\n", stability_enough);
    }
    const double by_1f1b = stability_by_1f1b(out->arena, sched, phase);
    if (worst->most > stability_enough && by_1f1b < worst->most)
        text_printf(out, "             by the order 1f1b (schedule = stale_1f1b) G up to %.3g\n", by_1f1b);
}

static const char *stability_text(Arena *arena, const Sched *sched, int p, int s)
{
    const Phase *phase = &sched->phase[p];
    const double number = stability_number(sched->settings, phase->choice, phase->staleness[s]);
    return number < 0 ? "" : arena_printf(arena, ", G %.3g", number);
}

static void cure_lines(const Sched *sched, int p, Text *out)
{
    const Phase *phase = &sched->phase[p];
    for (int s = 0; s < sched->pipe->nstages; s++)
        if (phase->cure[s].active)
            text_printf(out, "             stage %d%s%s: %s\n", s, stability_text(out->arena, sched, p, s),
                        sched->nphases > 1 ? arena_printf(out->arena, ", %s", phase->choice->preset) : "",
                        cure_text(out->arena, &phase->cure[s]));
}

/* null where there is nothing to correct, else the coefficients of cure.h. */
json_t *report_cure_json(const Cure *cure)
{
    if (!cure->active)
        return json_made(json_null());
    return json_made(json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:i}", "momentum",
                               cure->momentum, "rate_factor", cure->rate_factor, "on_velocity", cure->on_velocity,
                               "on_gradient", cure->on_gradient, "forward_ahead", cure->forward, "backward_ahead",
                               cure->backward, "memory", cure->memory, "back", cure->back, "divisor", cure->divisor,
                               "reschedule", cure->reschedule, "reschedule_most", cure->reschedule_most, "warmup",
                               cure->warmup, "accumulate", cure->accumulate));
}

void report_cure(const Sched *sched, Text *out)
{
    const CureChoice *choice = &sched->settings->pipeline.cure;
    const Stability worst = stability_judge(sched);
    bool active = false;
    for (int p = 0; p < sched->nphases; p++)
        for (int s = 0; s < sched->pipe->nstages; s++)
            active |= sched->phase[p].cure[s].active;
    if (worst.most == 0 && !active)
        return;
    stability_line(sched, &worst, out);
    if (!active) {
        if (!choice->given && worst.most > stability_enough)
            text_printf(out,
                        "             not corrected; cure = auto is made for this, cure = none leaves this line out\n");
        else if (choice->given && choice->count)
            text_printf(out, "cure         nothing to correct\n");
        return;
    }
    text_printf(out, "cure         %s", choice->automatic ? "auto: " : choice->count ? "" : "by the weight rule");
    for (int i = 0; i < choice->count; i++)
        text_printf(out, "%s%s", i ? ", " : "", choice->correction[i].def->name);
    text_printf(out, "\n");
    for (int p = 0; p < sched->nphases; p++)
        cure_lines(sched, p, out);
}
