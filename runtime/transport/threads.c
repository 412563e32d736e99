/* A thread for each stage; registers are slots in shared memory, written and read in place.
 *
 * Waiting: some thousand pauses while every stage can have a core of its own, then a condition variable of the channel.
 * A waiter sleeps at most a tick, so that it sees a stopped run soon. Nobody signals unless somebody sleeps. */
#define _DEFAULT_SOURCE /* the number of cores */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/driver.h"
#include "transport/slots.h"
#include "transport/watchdog.h"

enum { SPINS = 2000 };

static void pause_cpu(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static struct timespec in_a_tick(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_nsec += WATCHDOG_TICK_MS * 1000000L;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_nsec -= 1000000000L;
        at.tv_sec++;
    }
    return at;
}

/* What a taker (full) or a giver waits for. */
static bool is_so(const pn_stage *stage, const pn_channel *channel, int64_t n, bool full)
{
    return full ? slot_is_there(stage, channel, n) : slot_has_room(stage, channel, n);
}

/* Sequential consistency makes this work: either the sleeper's second look finds the change, or who changed the slot
 * finds the sleeper counted and signals under the lock. */
static void sleep_until(pn_stage *stage, pn_channel *channel, int64_t n, bool full)
{
    struct pn_link *link = channel->link;
    pthread_mutex_lock(&link->lock);
    atomic_fetch_add(&link->sleepers, 1);
    while (!is_so(stage, channel, n, full) && !atomic_load(&stage->run->stop)) {
        struct timespec until = in_a_tick();
        pthread_cond_timedwait(&link->changed, &link->lock, &until);
    }
    atomic_fetch_sub(&link->sleepers, 1);
    pthread_mutex_unlock(&link->lock);
}

static void wait_until(pn_stage *stage, pn_channel *channel, int64_t n, bool full)
{
    if (is_so(stage, channel, n, full))
        return;
    double work = stage->trace ? pn_work_seconds() : 0;
    double begin = pn_seconds();
    atomic_store(&stage->waits_number, n);
    atomic_store(&stage->waits_for, channel);
    for (int i = 0; i < channel->link->spins && !is_so(stage, channel, n, full); i++)
        pause_cpu();
    if (!is_so(stage, channel, n, full))
        sleep_until(stage, channel, n, full);
    atomic_store(&stage->waits_for, NULL);
    double end = pn_seconds();
    stage->wait_seconds += end - begin;
    if (stage->trace)
        pn_trace_add(stage, full ? PN_TRACE_WAIT_INPUT : PN_TRACE_WAIT_ROOM, channel, n, begin, end,
                     pn_work_seconds() - work);
    fail_check(stage);
}

static void wake(pn_channel *channel)
{
    struct pn_link *link = channel->link;
    if (atomic_load(&link->sleepers) == 0)
        return;
    pthread_mutex_lock(&link->lock);
    pthread_cond_broadcast(&link->changed);
    pthread_mutex_unlock(&link->lock);
}

static void *room(pn_stage *stage, pn_channel *channel, int64_t n)
{
    wait_until(stage, channel, n, false);
    return slot_begin(stage, channel, n);
}

static void give(pn_stage *stage, pn_channel *channel, int64_t n)
{
    slot_give(stage, channel, n);
    wake(channel);
}

static void *take(pn_stage *stage, pn_channel *channel, int64_t n)
{
    wait_until(stage, channel, n, true);
    return slot_found(stage, channel, n);
}

static void done(pn_stage *stage, pn_channel *channel, int64_t n)
{
    slot_done(stage, channel, n);
    wake(channel);
}

/* Spinning costs a stage that has work the core it needs, unless there is a core for each. */
static void open_links(pn_run *run)
{
    slots_open(run, run->program->nstages * run->threads <= sysconf(_SC_NPROCESSORS_ONLN) ? SPINS : 0);
}

/* ---- the threads ---- */
typedef struct {
    pn_stage *stage;
    Watchdog *watchdog;
    pthread_t thread;
} Worker;

static void *work(void *argument)
{
    Worker *worker = argument;
    pn_target_thread(worker->stage->run);
    while (driver_step(worker->stage))
        ;
    watchdog_ended(worker->watchdog);
    return NULL;
}

/* SIGINT is for the main thread: a worker's sleep stays undisturbed. */
static int start(Worker *worker)
{
    sigset_t interrupt, before;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before);
    int error = pthread_create(&worker->thread, NULL, work, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void train(pn_run *run)
{
    int count = run->program->nstages, started = 0;
    Worker *worker = pn_alloc((int64_t)sizeof *worker * count);
    Watchdog watchdog;
    watchdog_open(&watchdog, run);
    for (; started < count; started++) {
        worker[started] = (Worker){.stage = &run->stage[started], .watchdog = &watchdog};
        int error = start(&worker[started]);
        if (error) {
            fail_record(run, "cannot start a thread for stage %d: %s", started, strerror(error));
            break;
        }
    }
    watchdog_watch(&watchdog, started);
    for (int i = 0; i < started; i++)
        pthread_join(worker[i].thread, NULL);
    watchdog_close(&watchdog);
}

/* ---- rounds before the run ---- */
typedef struct {
    pn_stage *stage;
    bool (*round)(pn_stage *stage);
    atomic_int *left; /* stages that have not seen enough */
    bool enough;
    pthread_t thread;
} Rounds;

/* A stage that is ready goes on, so that the others are not alone on the machine. */
static void *go_round(void *argument)
{
    Rounds *rounds = argument;
    pn_stage *stage = rounds->stage;
    pn_target_thread(stage->run);
    if (setjmp(stage->escape))
        return NULL;
    while (!atomic_load(&stage->run->stop) && (!rounds->enough || atomic_load(rounds->left) > 0))
        if (rounds->round(stage) && !rounds->enough) {
            rounds->enough = true;
            atomic_fetch_sub(rounds->left, 1);
        }
    return NULL;
}

static bool each(pn_run *run, bool (*round)(pn_stage *stage))
{
    int count = run->program->nstages, started = 0;
    atomic_int left = count;
    Rounds *rounds = pn_alloc((int64_t)sizeof *rounds * count);
    for (; started < count; started++) {
        rounds[started] = (Rounds){.stage = &run->stage[started], .round = round, .left = &left};
        int error = pthread_create(&rounds[started].thread, NULL, go_round, &rounds[started]);
        if (error) {
            fail_record(run, "cannot start a thread for stage %d: %s", started, strerror(error));
            break;
        }
    }
    for (int i = 0; i < started; i++)
        pthread_join(rounds[i].thread, NULL);
    return !atomic_load(&run->stop);
}

const pn_transport pn_transport_threads = {
    .name = "threads",
    .doc = "a thread a stage, registers in shared memory",
    .open = open_links,
    .train = train,
    .close = slots_close,
    .each = each,
    .room = room,
    .give = give,
    .take = take,
    .done = done,
};
