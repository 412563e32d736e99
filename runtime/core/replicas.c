#include "core/replicas.h"

#include "core/driver.h"
#include "core/update.h"

/* A channel inside a stage, without memory: one slot that says which update it stands for. */
static pn_channel meeting(const char *name, int stage, int givers)
{
    pn_channel channel = {.name = name, .from = stage, .to = stage, .area = {.slots = 1}};
    channel.number = pn_alloc((int64_t)sizeof *channel.number * givers);
    for (int i = 0; i < givers; i++)
        channel.number[i] = -1;
    return channel;
}

static struct pn_replicas *group_new(pn_stage *first)
{
    struct pn_replicas *group = pn_alloc((int64_t)sizeof *group);
    *group = (struct pn_replicas){
        .stage = first,
        .count = first->replicas,
        .gradients = meeting("the gradients of the replicas", first->index, first->replicas),
        .sums = meeting("the sums of the gradients", first->index, first->replicas),
        .weights = meeting("the new weights", first->index, 1),
        .next = first->run->replicas,
    };
    group->to_share[0] = &group->gradients;
    group->to_sum[0] = &group->sums;
    group->to_update[0] = &group->weights;
    return first->run->replicas = group;
}

void replicas_join(pn_stage *stage)
{
    const pn_stage_def *def = stage->def;
    pn_stage *first = stage - def->replica;
    stage->replica = def->replica;
    stage->replicas = def->replicas > 1 ? def->replicas : 1;
    stage->samples = pn_slice(stage->run->program) / stage->replicas;
    stage->first_sample = stage->replica * stage->samples;
    if (stage->replicas == 1)
        return;
    stage->group = stage == first ? group_new(stage) : first->group;
    if (stage == first)
        return;
    pn_stage_def *shared = pn_alloc((int64_t)sizeof *shared);
    *shared = *def;
    shared->weights = first->def->weights;
    shared->state = first->def->state;
    stage->def = shared;
}

StepChannels replicas_channels(const pn_stage *stage, Step step)
{
    struct pn_replicas *group = stage->group;
    const bool first = stage->replica == 0;
    switch (step.action) {
    case ACTION_SHARE:
        return (StepChannels){.gives = group->to_share, .ngives = 1};
    case ACTION_SUM:
        return (StepChannels){.takes = group->to_share, .ntakes = 1, .gives = group->to_sum, .ngives = 1};
    default: /* replica 0 meets itself over the weights: what it takes is its own */
        return (StepChannels){
            .takes = first ? group->to_sum : group->to_update, .ntakes = 1, .gives = group->to_update, .ngives = first};
    }
}

static void give(pn_stage *stage, pn_channel *channel, int64_t n)
{
    stage->run->transport->room(stage, channel, n);
    stage->run->transport->give(stage, channel, n);
}

void replicas_share(pn_stage *stage)
{
    give(stage, &stage->group->gradients, stage->updates);
}

/* The part of `count` numbers that is this replica's business, in whole cache lines. */
typedef struct {
    int64_t from, to;
} Part;

static Part part_of(const pn_stage *stage, int64_t count)
{
    enum { LINE = 16 };
    const int64_t lines = (count + LINE - 1) / LINE, replicas = stage->replicas;
    const int64_t from = lines * stage->replica / replicas * LINE, to = lines * (stage->replica + 1) / replicas * LINE;
    return (Part){from, to < count ? to : count};
}

static void add_gradients(const pn_stage *stage)
{
    const struct pn_replicas *group = stage->group;
    const Part part = part_of(stage, stage->def->weight_floats);
    float *restrict sum = group->stage->def->gradient;
    for (int r = 1; r < group->count; r++) {
        const float *restrict more = group->stage[r].def->gradient;
        for (int64_t i = part.from; i < part.to; i++)
            sum[i] += more[i];
    }
}

static void average_running(const pn_stage *stage)
{
    const struct pn_replicas *group = stage->group;
    const Part part = part_of(stage, stage->def->running_floats);
    for (int64_t i = part.from; i < part.to; i++) {
        double sum = 0;
        for (int r = 0; r < group->count; r++)
            sum += group->stage[r].def->running[i];
        for (int r = 0; r < group->count; r++)
            group->stage[r].def->running[i] = (float)(sum / group->count);
    }
}

void replicas_sum(pn_stage *stage)
{
    struct pn_replicas *group = stage->group;
    stage->run->transport->take(stage, &group->gradients, stage->updates);
    add_gradients(stage);
    average_running(stage);
    stage->run->transport->done(stage, &group->gradients, stage->updates);
    give(stage, &group->sums, stage->updates);
}

void replicas_update(pn_stage *stage)
{
    struct pn_replicas *group = stage->group;
    const pn_transport *transport = stage->run->transport;
    const int64_t n = stage->updates;
    if (stage->replica == 0) {
        transport->take(stage, &group->sums, n);
        pn_update(stage);
        transport->done(stage, &group->sums, n);
        give(stage, &group->weights, n);
    }
    transport->take(stage, &group->weights, n);
    if (stage->replica > 0)
        update_follow(stage);
    transport->done(stage, &group->weights, n);
}
