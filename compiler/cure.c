/* cure.c: coefficients of the weight rule and the corrections, stage by stage. */
#include "cure.h"

#include "order.h"

double stability_rate(const Settings *settings, const PhaseChoice *phase)
{
    return (phase->own_lr ? &phase->lr : &settings->train.lr)->arg[0].number;
}

static double stability_of(double rate, double momentum, int delay)
{
    return rate / (1 - momentum) * (delay + 0.5);
}

double stability_number(const Settings *settings, const PhaseChoice *phase, int delay)
{
    const Momentum momentum = optimizer_momentum(&settings->train.optimizer);
    if (momentum.averages)
        return -1;
    return stability_of(stability_rate(settings, phase), momentum.momentum, delay);
}

static bool chosen(const Settings *settings, const PhaseChoice *phase, const CorrectionDef *def, int delay)
{
    const bool reads_other = phase->rule->forward_ahead || phase->rule->forward_reads != READS_CURRENT;
    const bool fits = !(reads_other && (def->corrects & CORRECTS_FORWARD));
    return delay > 0 && (fits || !settings->pipeline.cure.automatic);
}

static bool neutral(const Cure *cure, const Cure *own)
{
    return cure->momentum == own->momentum && cure->rate_factor == own->rate_factor &&
           cure->on_velocity == own->on_velocity && cure->on_gradient == own->on_gradient && cure->forward == 0 &&
           cure->backward == 0 && cure->memory == 0 && cure->divisor == 0 && cure->warmup == 0 && cure->accumulate <= 1;
}

Cure cure_of(const Settings *settings, const PhaseChoice *phase, int delay, int first_delay, bool normalised)
{
    const Momentum momentum = optimizer_momentum(&settings->train.optimizer);
    const CureChoice *choice = &settings->pipeline.cure;
    const Cure own = {.momentum = momentum.momentum,
                      .rate_factor = 1,
                      .on_velocity = momentum.nesterov ? momentum.momentum : 1,
                      .on_gradient = momentum.nesterov ? 1 : 0};
    Cure cure = own;
    if (phase->rule->forward_ahead)
        cure.forward = phase->rule->forward_ahead(delay, first_delay);
    if (phase->rule->backward_ahead)
        cure.backward = phase->rule->backward_ahead(delay, first_delay);
    for (int i = 0; i < choice->count; i++) {
        const int moves = cure.accumulate > 1 ? cure.moves : delay;
        const double rate = stability_rate(settings, phase) * cure.rate_factor;
        const CorrectionSite site = {.delay = moves,
                                     .momentum = momentum.momentum,
                                     .stability = momentum.averages ? -1 : stability_of(rate, cure.momentum, moves),
                                     .normalised = normalised,
                                     .averages = momentum.averages,
                                     .nesterov = momentum.nesterov,
                                     .arg = choice->correction[i].arg};
        if (chosen(settings, phase, choice->correction[i].def, delay))
            choice->correction[i].def->apply(&site, &cure);
    }
    cure.active = !neutral(&cure, &own);
    return cure;
}

int cure_ahead_copies(const Cure *cure)
{
    return (cure->forward != 0) + (cure->backward != 0 || cure->memory > 0);
}

static bool corrects(const Settings *settings, Corrects what)
{
    const CureChoice *choice = &settings->pipeline.cure;
    for (int i = 0; i < choice->count; i++)
        if (choice->correction[i].def->corrects & what)
            return true;
    return false;
}

bool cure_accumulates(const Settings *settings)
{
    return corrects(settings, CORRECTS_OFTEN);
}

int cure_states(const Settings *settings)
{
    return cure_accumulates(settings) + corrects(settings, CORRECTS_BACKWARD);
}

const char *cure_text(Arena *arena, const Cure *cure)
{
    if (!cure->active)
        return "-";
    Text text = text_new(arena);
    const char *between = "";
#define PART(...) (text_printf(&text, "%s", between), text_printf(&text, __VA_ARGS__), between = ", ")
    if (cure->forward != 0)
        PART("forward %.4g v ahead", cure->forward);
    if (cure->backward != 0)
        PART("backward %.4g v ahead", cure->backward);
    if (cure->memory > 0)
        PART("backward %.4g delta back (memory %.4g)", cure->back, cure->memory);
    if (cure->accumulate > 1)
        PART("gradients of %d at once", cure->accumulate);
    PART("momentum %.4g", cure->momentum);
    if (cure->on_velocity != 1 || cure->on_gradient != 0)
        PART("update %.4g v + %.4g g", cure->on_velocity, cure->on_gradient);
    if (cure->rate_factor != 1)
        PART("rate x %.4g", cure->rate_factor);
    if (cure->divisor > 1)
        PART("/ %.4g^(1 - k/K) until %.4g %% or %.15g updates", cure->divisor, 100 * cure->reschedule,
             cure->reschedule_most);
    if (cure->warmup > 0)
        PART("rate rises until %.4g %%", 100 * cure->warmup);
#undef PART
    return text.data;
}
