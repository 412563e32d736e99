/* agree.c: an interrupt at any rank ends all behind the same minibatch. Rank 0 asks how many minibatches each has
 * begun; none begins another before it knows the answer, the most of them. The watchers ask and answer, for a thread
 * that trains may wait for its device, and that for what another rank has not begun yet. */
#include "core/interrupt.h"
#include "world/records.h"

void world_interrupt(pn_run *run)
{
    atomic_store(&run->world->wishes, 1);
}

void world_begins(pn_run *run)
{
    atomic_store(&run->world->begins, 1);
}

bool world_agreed(pn_run *run)
{
    pn_world *world = run->world;
    pthread_mutex_lock(&world->lock);
    while (!world->agreed && !atomic_load(&run->stop))
        pthread_cond_wait(&world->changed, &world->lock);
    pthread_mutex_unlock(&world->lock);
    return !atomic_load(&run->stop);
}

static void ask(pn_world *world)
{
    if (!world->asked)
        world_send_all(world, WORLD_ASK, NULL, 0);
    world->asked = true;
}

static void set_agreed(pn_world *world, int64_t minibatches)
{
    interrupt_close_behind(world->run, minibatches);
    pthread_mutex_lock(&world->lock);
    world->agreed = true;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
}

static void take_answer(pn_world *world, int64_t begun)
{
    world->most = begun > world->most ? begun : world->most;
    if (++world->answers < world->launch.size)
        return;
    world_send_all(world, WORLD_AGREED, &world->most, sizeof world->most);
    set_agreed(world, world->most);
}

static void answer(pn_world *world)
{
    const int64_t begun = interrupt_hold(world->run);
    world->answered = true;
    if (world->launch.rank == 0)
        take_answer(world, begun);
    else
        world_send(world, 0, WORLD_BEGUN, &begun, sizeof begun);
}

void agree_tick(pn_world *world)
{
    int came = 1;
    if (atomic_compare_exchange_strong(&world->wishes, &came, 2)) {
        if (world->launch.rank == 0)
            ask(world);
        else
            world_send(world, 0, WORLD_WISH, NULL, 0);
    }
    if (world->asked && !world->answered && atomic_load(&world->begins))
        answer(world);
}

bool agree_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes)
{
    switch (kind) {
    case WORLD_WISH:
        ask(world);
        return true;
    case WORLD_ASK:
        world->asked = true;
        return true;
    case WORLD_BEGUN:
        if (bytes == sizeof(int64_t))
            take_answer(world, *(const int64_t *)data);
        return true;
    case WORLD_AGREED:
        if (bytes == sizeof(int64_t))
            set_agreed(world, *(const int64_t *)data);
        return true;
    default:
        return false;
    }
}
