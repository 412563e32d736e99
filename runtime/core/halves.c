#include "core/halves.h"

#include <string.h>

#include "core/driver.h"
#include "core/update.h"

/* A channel inside a stage, without memory. */
static pn_channel inner(const char *name, int stage, int slots)
{
    pn_channel channel = {.name = name, .from = stage, .to = stage, .area = {.slots = slots}};
    channel.number = pn_alloc((int64_t)sizeof *channel.number * slots);
    return channel;
}

static pn_channel **longer(pn_channel *const *list, int count, pn_channel *more)
{
    pn_channel **all = pn_alloc((int64_t)sizeof *all * (count + 1));
    if (count > 0)
        memcpy(all, list, sizeof *all * (size_t)count);
    all[count] = more;
    return all;
}

void halves_join(pn_stage *stage)
{
    const pn_stage_def *def = stage->def;
    if (def->half == PN_WHOLE)
        return;
    if (def->half == PN_BACKWARD_HALF) {
        struct pn_halves *halves = stage[-1].halves;
        halves->backward = stage;
        halves->takes_gradient = longer(def->takes_gradient, def->ntakes_gradient, &halves->saved);
        stage->halves = halves;
        return;
    }
    struct pn_halves *halves = pn_alloc((int64_t)sizeof *halves);
    halves->forward = stage;
    halves->saved = inner("the ring", stage->index, def->ring);
    halves->weights = inner("the weights", stage->index, def->versions - 1);
    halves->gives = longer(def->gives, def->ngives, &halves->saved);
    halves->to_hand[0] = &halves->weights;
    halves->next = stage->run->halves;
    stage->halves = stage->run->halves = halves;
}

bool halves_leave(const pn_stage *stage, Step step)
{
    switch (stage->def->half) {
    case PN_FORWARD_HALF:
        return step.action == ACTION_BACKWARD || step.action == ACTION_WEIGHTS || step.action == ACTION_TEST ||
               step.action == ACTION_CHECKPOINT;
    case PN_BACKWARD_HALF:
        return step.action == ACTION_FORWARD;
    case PN_WHOLE:
        break;
    }
    return false;
}

bool halves_channels(const pn_stage *stage, Step step, StepChannels *channels)
{
    const pn_stage_def *def = stage->def;
    const struct pn_halves *halves = stage->halves;
    if (!halves)
        return false;
    switch (step.action) {
    case ACTION_FORWARD:
        *channels = (StepChannels){def->takes, halves->gives, def->ntakes, def->ngives + 1};
        return true;
    case ACTION_BACKWARD:
        *channels =
            (StepChannels){halves->takes_gradient, def->gives_gradient, def->ntakes_gradient + 1, def->ngives_gradient};
        return true;
    case ACTION_HAND_OVER:
        *channels = (StepChannels){.takes = halves->to_hand, .ntakes = 1};
        return true;
    case ACTION_UPDATE:
        *channels = (StepChannels){.gives = halves->to_hand, .ngives = 1};
        return true;
    default:
        return false;
    }
}

void halves_begin_forward(pn_stage *stage, int64_t n)
{
    if (stage->halves)
        stage->run->transport->room(stage, &stage->halves->saved, n);
}

void halves_end_forward(pn_stage *stage, int64_t n)
{
    if (stage->halves)
        stage->run->transport->give(stage, &stage->halves->saved, n);
}

void halves_begin_backward(pn_stage *stage, int64_t n)
{
    if (stage->halves)
        stage->run->transport->take(stage, &stage->halves->saved, n);
}

void halves_end_backward(pn_stage *stage, int64_t n)
{
    if (stage->halves)
        stage->run->transport->done(stage, &stage->halves->saved, n);
}

/* What a forward reads ahead of these weights is there, too, but for the first of a phase: that the forward half makes
 * of the velocity, which rests until the first backward. */
void halves_hand_over(pn_stage *stage)
{
    const pn_transport *transport = stage->run->transport;
    transport->take(stage, &stage->halves->weights, stage->updates);
    transport->done(stage, &stage->halves->weights, stage->updates);
    stage->ahead_version = stage->updates + 1;
}

void halves_update(pn_stage *stage)
{
    const pn_transport *transport = stage->run->transport;
    const int64_t n = stage->updates;
    transport->room(stage, &stage->halves->weights, n);
    pn_update(stage);
    transport->give(stage, &stage->halves->weights, n);
}

const pn_stage *halves_forward(const pn_stage *stage)
{
    return stage->halves ? stage->halves->forward : stage;
}

const pn_stage *halves_backward(const pn_stage *stage)
{
    return stage->halves ? stage->halves->backward : stage;
}
