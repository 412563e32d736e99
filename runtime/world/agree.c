/* agree.c: an interrupt at any rank ends all behind the same minibatch. Rank 0 asks how many minibatches each has
 * begun; none begins another before it knows the answer, the most of them. */
#include "core/interrupt.h"
#include "world/records.h"

void world_interrupt(pn_run *run)
{
    atomic_store(&run->world->wishes, 1);
}

static void ask(pn_world *world)
{
    if (!atomic_exchange(&world->asked, 1))
        world_send_all(world, WORLD_ASK, NULL, 0);
}

static void take_answer(pn_world *world, int64_t begun)
{
    pthread_mutex_lock(&world->lock);
    world->most = begun > world->most ? begun : world->most;
    const bool all = ++world->answers == world->launch.size;
    if (all)
        world->agreed = world->most;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
    if (all)
        world_send_all(world, WORLD_AGREED, &world->most, sizeof world->most);
}

static void set_agreed(pn_world *world, int64_t agreed)
{
    pthread_mutex_lock(&world->lock);
    world->agreed = agreed;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
}

/* By the main thread, or, when that has ended all its steps, by the watcher. */
static void answer(pn_world *world)
{
    const int64_t begun = atomic_load(&world->run->begun) / 2;
    if (atomic_exchange(&world->answered, 1))
        return;
    if (world->launch.rank == 0)
        take_answer(world, begun);
    else
        world_send(world, 0, WORLD_BEGUN, &begun, sizeof begun);
}

bool world_agree(pn_run *run)
{
    pn_world *world = run->world;
    if (!atomic_load(&world->asked) || (atomic_load(&run->begun) & 1))
        return !atomic_load(&run->stop);
    answer(world);
    pthread_mutex_lock(&world->lock);
    while (world->agreed < 0 && !atomic_load(&run->stop))
        pthread_cond_wait(&world->changed, &world->lock);
    const int64_t agreed = world->agreed;
    pthread_mutex_unlock(&world->lock);
    if (agreed >= 0)
        atomic_store(&run->begun, 2 * agreed + 1);
    return !atomic_load(&run->stop);
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
    if (atomic_load(&world->asked) && atomic_load(&world->ended))
        answer(world);
}

bool agree_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes)
{
    switch (kind) {
    case WORLD_WISH:
        ask(world);
        return true;
    case WORLD_ASK:
        atomic_store(&world->asked, 1);
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
