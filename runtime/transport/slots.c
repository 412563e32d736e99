#include "transport/slots.h"

static int place(const pn_channel *channel, int64_t n)
{
    return (int)(n % channel->area.slots);
}

static void *memory(const pn_channel *channel, int64_t n)
{
    return (char *)channel->area.memory + place(channel, n) * channel->area.bytes;
}

static void open_channel(pn_channel *channel)
{
    int slots = channel->area.slots;
    if (slots == 0)
        return;
    channel->link = pn_alloc((int64_t)sizeof *channel->link);
    channel->link->full = pn_alloc((int64_t)sizeof *channel->link->full * slots);
    for (int i = 0; i < slots; i++) {
        atomic_init(&channel->link->full[i], 0);
        channel->number[i] = -1;
    }
    atomic_init(&channel->link->sleepers, 0);
    if (pthread_mutex_init(&channel->link->lock, NULL) != 0 || pthread_cond_init(&channel->link->changed, NULL) != 0)
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

void slots_open(pn_run *run)
{
    for (int i = 0; i < run->program->nregisters; i++) {
        open_channel(&run->program->reg[i]->forward);
        open_channel(&run->program->reg[i]->gradient);
        open_channel(&run->program->reg[i]->test);
    }
}

void slots_close(pn_run *run)
{
    for (int i = 0; i < run->program->nregisters; i++) {
        close_channel(&run->program->reg[i]->forward);
        close_channel(&run->program->reg[i]->gradient);
        close_channel(&run->program->reg[i]->test);
    }
}

bool slot_full(const pn_channel *channel, int64_t n)
{
    return atomic_load(&channel->link->full[place(channel, n)]) != 0;
}

void *slot_begin(pn_channel *channel, int64_t n)
{
    channel->number[place(channel, n)] = n;
    return memory(channel, n);
}

static void check_number(pn_stage *stage, const pn_channel *channel, int64_t n)
{
    int64_t found = channel->number[place(channel, n)];
    if (found != n)
        pn_fail(stage, "internal error: asked for minibatch %lld of %s and found %lld", (long long)n, channel->name,
                (long long)found);
}

void *slot_found(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check_number(stage, channel, n);
    return memory(channel, n);
}

void slot_give(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check_number(stage, channel, n);
    if (atomic_exchange(&channel->link->full[place(channel, n)], 1))
        pn_fail(stage, "internal error: gave minibatch %lld of %s twice", (long long)n, channel->name);
}

void slot_done(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (!slot_full(channel, n))
        pn_fail(stage, "internal error: done with minibatch %lld of %s, which it does not hold", (long long)n,
                channel->name);
    check_number(stage, channel, n);
    atomic_store(&channel->link->full[place(channel, n)], 0);
}

/* The consumer holds what it has taken and not released. The producer holds what it has given until it takes room for
 * another minibatch in that slot. */
void *pn_held(pn_stage *stage, pn_channel *channel, int64_t n)
{
    if (stage->index == channel->to && !slot_full(channel, n))
        pn_fail(stage, "internal error: minibatch %lld of %s is not held", (long long)n, channel->name);
    return slot_found(stage, channel, n);
}

const char *slot_describe(const pn_stage *stage, const pn_channel *channel, int64_t n, char *text, size_t size)
{
    if (stage->index == channel->to)
        snprintf(text, size, "minibatch %lld of %s from stage %d", (long long)n, channel->name, channel->from);
    else
        snprintf(text, size, "room for minibatch %lld of %s to stage %d", (long long)n, channel->name, channel->to);
    return text;
}
