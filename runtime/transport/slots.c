#include "transport/slots.h"

static int place(const pn_channel *channel, int64_t n)
{
    return (int)(n % channel->area.slots);
}

/* The stage's part of the slot. */
static void *memory(const pn_stage *stage, const pn_channel *channel, int64_t n)
{
    return (char *)channel->area.memory + place(channel, n) * channel->area.bytes +
           stage->first_sample * channel->sample_bytes;
}

static atomic_int *flag(const pn_channel *channel, int64_t n, int giver, int taker)
{
    const struct pn_link *link = channel->link;
    return &link->full[(place(channel, n) * link->givers + giver) * link->takers + taker];
}

/* Slice g of G and slice t of T of the same batch. */
static bool meet(const struct pn_link *link, int64_t g, int64_t t)
{
    return link->all || (g * link->takers < (t + 1) * link->givers && t * link->givers < (g + 1) * link->takers);
}

static void open_channel(pn_channel *channel, int givers, int takers, bool all, int spins)
{
    const int slots = channel->area.slots;
    if (slots == 0)
        return;
    struct pn_link *link = channel->link = pn_alloc((int64_t)sizeof *channel->link);
    const int flags = slots * givers * takers;
    link->full = pn_alloc((int64_t)sizeof *link->full * flags);
    link->givers = givers;
    link->takers = takers;
    link->all = all;
    link->spins = spins;
    for (int i = 0; i < flags; i++)
        atomic_init(&link->full[i], 0);
    for (int i = 0; i < slots * givers; i++)
        channel->number[i] = -1;
    atomic_init(&link->sleepers, 0);
    if (pthread_mutex_init(&link->lock, NULL) != 0 || pthread_cond_init(&link->changed, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of %s", channel->name);
}

static void close_channel(pn_channel *channel)
{
    if (!channel->link)
        return;
    pthread_cond_destroy(&channel->link->changed);
    pthread_mutex_destroy(&channel->link->lock);
    channel->link = NULL;
}

static int replicas_of(const pn_run *run, int index)
{
    for (int i = 0; i < run->program->nstages; i++)
        if (run->stage[i].index == index)
            return run->stage[i].replicas;
    pn_fail(NULL, "internal error: a register reaches stage %d, which there is not", index);
}

void slots_open(pn_run *run, int spins)
{
    for (int i = 0; i < run->program->nregisters; i++) {
        pn_register *reg = run->program->reg[i];
        const int before = replicas_of(run, reg->forward.from), behind = replicas_of(run, reg->forward.to);
        open_channel(&reg->forward, before, behind, false, spins);
        open_channel(&reg->gradient, behind, before, false, spins);
        open_channel(&reg->test, before, behind, false, spins);
    }
    for (struct pn_replicas *group = run->replicas; group; group = group->next) {
        open_channel(&group->gradients, group->count, group->count, true, spins);
        open_channel(&group->sums, group->count, 1, true, spins);
        open_channel(&group->weights, 1, group->count, true, spins);
    }
    for (struct pn_halves *halves = run->halves; halves; halves = halves->next) {
        open_channel(&halves->saved, 1, 1, true, spins);
        open_channel(&halves->weights, 1, 1, true, spins);
    }
}

void slots_close(pn_run *run)
{
    for (int i = 0; i < run->program->nregisters; i++) {
        close_channel(&run->program->reg[i]->forward);
        close_channel(&run->program->reg[i]->gradient);
        close_channel(&run->program->reg[i]->test);
    }
    for (struct pn_replicas *group = run->replicas; group; group = group->next) {
        close_channel(&group->gradients);
        close_channel(&group->sums);
        close_channel(&group->weights);
    }
    for (struct pn_halves *halves = run->halves; halves; halves = halves->next) {
        close_channel(&halves->saved);
        close_channel(&halves->weights);
    }
}

bool slot_has_room(const pn_stage *stage, const pn_channel *channel, int64_t n)
{
    for (int t = 0; t < channel->link->takers; t++)
        if (atomic_load(flag(channel, n, stage->replica, t)))
            return false;
    return true;
}

bool slot_is_there(const pn_stage *stage, const pn_channel *channel, int64_t n)
{
    for (int g = 0; g < channel->link->givers; g++)
        if (meet(channel->link, g, stage->replica) && !atomic_load(flag(channel, n, g, stage->replica)))
            return false;
    return true;
}

static int64_t *number(const pn_channel *channel, int64_t n, int giver)
{
    return &channel->number[place(channel, n) * channel->link->givers + giver];
}

static void check_number(pn_stage *stage, const pn_channel *channel, int64_t n, int giver)
{
    const int64_t found = *number(channel, n, giver);
    if (found != n)
        pn_fail(stage, "internal error: asked for minibatch %lld of %s and found %lld", (long long)n, channel->name,
                (long long)found);
}

void *slot_begin(pn_stage *stage, pn_channel *channel, int64_t n)
{
    *number(channel, n, stage->replica) = n;
    return memory(stage, channel, n);
}

void *slot_found(pn_stage *stage, pn_channel *channel, int64_t n)
{
    for (int g = 0; g < channel->link->givers; g++)
        if (meet(channel->link, g, stage->replica))
            check_number(stage, channel, n, g);
    return memory(stage, channel, n);
}

void *slot_room(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (!slot_has_room(stage, channel, n))
        pn_fail(stage, "internal error: no room for minibatch %lld of %s", (long long)n, channel->name);
    return slot_begin(stage, channel, n);
}

void *slot_take(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (!slot_is_there(stage, channel, n))
        pn_fail(stage, "internal error: minibatch %lld of %s is not there", (long long)n, channel->name);
    return slot_found(stage, channel, n);
}

void slot_give(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check_number(stage, channel, n, stage->replica);
    for (int t = 0; t < channel->link->takers; t++)
        if (meet(channel->link, stage->replica, t) && atomic_exchange(flag(channel, n, stage->replica, t), 1))
            pn_fail(stage, "internal error: gave minibatch %lld of %s twice", (long long)n, channel->name);
}

void slot_done(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (!slot_is_there(stage, channel, n))
        pn_fail(stage, "internal error: done with minibatch %lld of %s, which it does not hold", (long long)n,
                channel->name);
    slot_found(stage, channel, n);
    for (int g = 0; g < channel->link->givers; g++)
        atomic_store(flag(channel, n, g, stage->replica), 0);
}

/* The consumer holds what it has taken and not released. The producer holds what it has given until it takes room for
 * another minibatch in that slot. */
void *pn_held(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (stage->index == channel->to && !slot_is_there(stage, channel, n))
        pn_fail(stage, "internal error: minibatch %lld of %s is not held", (long long)n, channel->name);
    if (stage->index == channel->to)
        return slot_found(stage, channel, n);
    check_number(stage, channel, n, stage->replica);
    return memory(stage, channel, n);
}

const char *slot_describe(const pn_stage *stage, const pn_channel *channel, int64_t n, char *text, size_t size)
{
    if (stage->halves && channel == &stage->halves->saved)
        snprintf(text, size, "its %s half, minibatch %lld", stage == stage->halves->forward ? "backward" : "forward",
                 (long long)n);
    else if (channel->from == channel->to)
        snprintf(text, size, "%s, update %lld", channel->name, (long long)n);
    else if (stage->index == channel->to)
        snprintf(text, size, "minibatch %lld of %s from stage %d", (long long)n, channel->name, channel->from);
    else
        snprintf(text, size, "room for minibatch %lld of %s to stage %d", (long long)n, channel->name, channel->to);
    return text;
}
