#include "transport/watchdog.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/driver.h"
#include "transport/slots.h"

void watchdog_open(Watchdog *watchdog, pn_run *run)
{
    memset(watchdog, 0, sizeof *watchdog);
    watchdog->run = run;
    if (pthread_mutex_init(&watchdog->lock, NULL) != 0 || pthread_cond_init(&watchdog->one_ended, NULL) != 0)
        pn_fail(NULL, "cannot create the watchdog's lock");
}

void watchdog_close(Watchdog *watchdog)
{
    pthread_cond_destroy(&watchdog->one_ended);
    pthread_mutex_destroy(&watchdog->lock);
}

void watchdog_ended(Watchdog *watchdog)
{
    pthread_mutex_lock(&watchdog->lock);
    watchdog->ended++;
    pthread_cond_signal(&watchdog->one_ended);
    pthread_mutex_unlock(&watchdog->lock);
}

static long long progress(pn_run *run)
{
    long long sum = 0;
    for (int i = 0; i < run->program->nstages; i++)
        sum += atomic_load_explicit(&run->stage[i].progress, memory_order_relaxed);
    return sum;
}

static void bark(pn_run *run, double silent)
{
    char text[sizeof run->error - 128] = "", line[224], wanted[128], name[STAGE_NAME];
    for (int i = 0; i < run->program->nstages; i++) {
        pn_stage *stage = &run->stage[i];
        const pn_channel *channel = atomic_load(&stage->waits_for);
        if (channel)
            snprintf(line, sizeof line, "\n  %s waits for %s", stage_name(stage, name, sizeof name),
                     slot_describe(stage, channel, atomic_load(&stage->waits_number), wanted, sizeof wanted));
        else
            snprintf(line, sizeof line, "\n  %s computes, or has ended", stage_name(stage, name, sizeof name));
        strncat(text, line, sizeof text - strlen(text) - 1);
    }
    fail_record(run, "no stage has finished a step in %.3g seconds (PN_TIMEOUT sets the limit)%s", silent, text);
}

/* A tick passes, or a thread ends. */
static void tick(Watchdog *watchdog)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WATCHDOG_TICK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&watchdog->one_ended, &watchdog->lock, &until);
}

/* Ticks are counted, not the clock: a machine that slept must not look like a silent run. */
void watchdog_watch(Watchdog *watchdog, int count)
{
    pn_run *run = watchdog->run;
    long long before = -1;
    double silent = 0;
    pthread_mutex_lock(&watchdog->lock);
    while (watchdog->ended < count) {
        int ended = watchdog->ended;
        tick(watchdog);
        long long now = progress(run);
        bool stopped = atomic_load(&run->stop) != 0;
        bool alive = now != before || watchdog->ended != ended || atomic_load(&run->writing);
        silent = alive ? 0 : silent + WATCHDOG_TICK_MS * 1e-3;
        before = now;
        if (!stopped && run->timeout > 0 && silent >= run->timeout) {
            bark(run, silent);
            silent = 0;
        } else if (stopped && silent >= WATCHDOG_GRACE_SECONDS) {
            fprintf(stderr, "error: %s\n(a stage hangs in its computation; ended by force)\n", run->error);
            _exit(1);
        }
    }
    pthread_mutex_unlock(&watchdog->lock);
}
