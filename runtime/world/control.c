/* control.c: the thread that watches over the connections while ranks train: failures, silence, the end. */
#define _DEFAULT_SOURCE
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/driver.h"
#include "world/records.h"

enum { TICK_MS = 100, GRACE_SECONDS = 10 };
typedef struct {
    int64_t progress;
    char doing[WORLD_TEXT];
} Beat;

static bool leads(const pn_world *world)
{
    return world->launch.rank == 0;
}

/* The peers that this rank has a connection to: first, and behind the last. */
static int first_peer(const pn_world *world)
{
    return leads(world) ? 1 : 0;
}
static int peers_end(const pn_world *world)
{
    return leads(world) ? world->launch.size : 1;
}

void world_send(pn_world *world, int rank, WorldKind kind, const void *data, int64_t bytes)
{
    pthread_mutex_lock(&world->sending);
    if (world->peer[rank].socket >= 0)
        wire_send(world->peer[rank].socket, kind, data, bytes);
    pthread_mutex_unlock(&world->sending);
}

void world_send_all(pn_world *world, WorldKind kind, const void *data, int64_t bytes)
{
    for (int r = 1; r < world->launch.size; r++)
        world_send(world, r, kind, data, bytes);
}

/* ---- failures ---- */

/* True: this is the first one. */
static bool begin_failure(pn_world *world, int status)
{
    pthread_mutex_lock(&world->lock);
    const bool first = !world->told && !world->over;
    if (first) {
        world->told = true;
        world->status = status;
    }
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
    return first;
}

static void tell_failure(pn_world *world, int status, const char *text)
{
    FailFrame fail = {.status = status};
    snprintf(fail.text, sizeof fail.text, "%s", text);
    if (leads(world))
        world_send_all(world, WORLD_FAIL, &fail, sizeof fail);
    else
        world_send(world, 0, WORLD_FAIL, &fail, sizeof fail);
}

/* Of another rank, or of all: known to this thread alone until now. */
static void fail_all(pn_world *world, int status, const char *text)
{
    if (!begin_failure(world, status))
        return;
    if (leads(world))
        tell_failure(world, status, text); /* before the main thread sees the stop, and ends the process */
    fail_record(world->run, "%s", text);
    pn_target_abort(world->run);
    pthread_mutex_lock(&world->lock);
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
}

int world_failed(pn_run *run, int status)
{
    pn_world *world = run->world;
    if (!world)
        return status;
    if (!begin_failure(world, status))
        return world->status ? world->status : status;
    char text[sizeof run->error + WORLD_TEXT + 32];
    if (leads(world))
        snprintf(text, sizeof text, "rank 0 (%s): %s", world->peer[0].about, run->error);
    else
        snprintf(text, sizeof text, "%s", run->error);
    tell_failure(world, status, text);
    pn_target_abort(run);
    return status;
}

static void peer_is_gone(pn_world *world, int rank, const char *error)
{
    Peer *peer = &world->peer[rank];
    char text[sizeof world->run->error];
    pthread_mutex_lock(&world->sending);
    close(peer->socket);
    peer->socket = -1;
    pthread_mutex_unlock(&world->sending);
    snprintf(text, sizeof text, "rank %d (%s): %s; its own output or its host's log may say why%s%s", rank, peer->about,
             error, *peer->doing ? ". Last it was at: " : "", peer->doing);
    fail_all(world, 1, text);
}

/* ---- who gets on ---- */

static long long own_progress(const pn_world *world)
{
    const pn_run *run = world->run;
    long long sum = 0;
    for (int i = 0; i < run->program->nstages; i++)
        sum += atomic_load_explicit(&run->stage[i].progress, memory_order_relaxed);
    return sum;
}

void world_doing(pn_run *run, const char *text)
{
    pn_world *world = run->world;
    pthread_mutex_lock(&world->lock);
    snprintf(world->doing, sizeof world->doing, "%s", text);
    pthread_mutex_unlock(&world->lock);
}

static void send_beat(pn_world *world)
{
    Beat beat = {.progress = own_progress(world)};
    pthread_mutex_lock(&world->lock);
    memcpy(beat.doing, world->doing, sizeof beat.doing);
    pthread_mutex_unlock(&world->lock);
    for (int r = first_peer(world); r < peers_end(world); r++)
        world_send(world, r, WORLD_BEAT, &beat, sizeof beat);
}

static void take_beat(Peer *peer, const Beat *beat)
{
    peer->progress = beat->progress;
    memcpy(peer->doing, beat->doing, sizeof peer->doing);
    peer->doing[sizeof peer->doing - 1] = 0;
}

static void report_silence(pn_world *world, double silent)
{
    char text[sizeof world->run->error - 64] = "", line[2 * WORLD_TEXT + 64];
    snprintf(text, sizeof text, "no rank has done a step in %.3g seconds (PN_TIMEOUT sets the limit)", silent);
    for (int r = 0; r < world->launch.size; r++) {
        const Peer *peer = &world->peer[r];
        const double quiet = r ? pn_seconds() - peer->heard : 0;
        snprintf(line, sizeof line, "\n  rank %d (%s)", r, peer->about);
        strncat(text, line, sizeof text - strlen(text) - 1);
        if (quiet > 1)
            snprintf(line, sizeof line, ", from which nothing was heard for %.3g seconds: %s", quiet, peer->doing);
        else
            snprintf(line, sizeof line, ": %s", r ? peer->doing : world->doing);
        strncat(text, line, sizeof text - strlen(text) - 1);
    }
    fail_all(world, 1, text);
}

/* Rank 0 sees when nobody gets on; the others whether rank 0 is there. Before the first step much is set up. */
static void judge(pn_world *world, double passed, long long *before, double *silent)
{
    const pn_run *run = world->run;
    long long now = own_progress(world);
    if (leads(world))
        for (int r = 1; r < world->launch.size; r++)
            now += world->peer[r].progress;
    const bool alive = now != *before || atomic_load(&run->writing) || atomic_load(&run->stop) || world->over;
    *silent = alive ? 0 : *silent + passed;
    *before = now;
    const double limit = now == 0 ? 10 * run->timeout : run->timeout;
    if (run->timeout <= 0)
        return;
    if (leads(world) && *silent >= limit) {
        report_silence(world, *silent);
    } else if (!leads(world) && !world->over && pn_seconds() - world->peer[0].heard > limit + 2) {
        char text[sizeof run->error];
        snprintf(text, sizeof text, "nothing was heard of rank 0 (%s) for %.3g seconds (PN_TIMEOUT sets the limit): %s",
                 world->peer[0].about, pn_seconds() - world->peer[0].heard, world->peer[0].doing);
        fail_all(world, 1, text);
    }
}

/* ---- frames ---- */

static void note(pn_world *world, bool *flag)
{
    pthread_mutex_lock(&world->lock);
    *flag = true;
    pthread_cond_broadcast(&world->changed);
    pthread_mutex_unlock(&world->lock);
}

static void take_failure(pn_world *world, int rank, const FailFrame *fail)
{
    char text[sizeof fail->text + WORLD_TEXT + 32];
    if (rank > 0)
        snprintf(text, sizeof text, "rank %d (%s): %.*s", rank, world->peer[rank].about, (int)sizeof fail->text - 1,
                 fail->text);
    else
        snprintf(text, sizeof text, "%.*s", (int)sizeof fail->text - 1, fail->text);
    fail_all(world, fail->status, text);
}

static void handle(pn_world *world, int rank, WorldKind kind, const void *data, int64_t bytes)
{
    Peer *peer = &world->peer[rank];
    peer->heard = pn_seconds();
    switch (kind) {
    case WORLD_BEAT:
        if (bytes == sizeof(Beat))
            take_beat(peer, data);
        break;
    case WORLD_FAIL:
        if (bytes == sizeof(FailFrame))
            take_failure(world, rank, data);
        break;
    case WORLD_END:
        note(world, &peer->ended);
        break;
    case WORLD_OVER:
        note(world, &world->over);
        break;
    default:
        if (!agree_take(world, kind, data, bytes))
            records_take(world, kind, data, bytes);
    }
}

/* A frame is read whole: who sends one sends all of it at once. */
static void read_frame(pn_world *world, int rank)
{
    const int from = world->peer[rank].socket;
    Frame frame;
    const double seconds = 60;
    const char *error = wire_receive(from, &frame, sizeof frame, seconds);
    if (!error && (frame.bytes < 0 || frame.bytes > world->largest))
        error = "its message is longer than any that there is";
    if (!error)
        error = wire_receive(from, world->incoming, frame.bytes, seconds);
    if (!error)
        handle(world, rank, frame.kind, world->incoming, frame.bytes);
    else
        peer_is_gone(world, rank, error);
}

static void read_frames(pn_world *world)
{
    struct pollfd *wait = world->poll;
    const int first = first_peer(world), end = peers_end(world);
    for (int r = first; r < end; r++)
        wait[r - first] = (struct pollfd){.fd = world->peer[r].socket, .events = POLLIN};
    if (poll(wait, (nfds_t)(end - first), TICK_MS) <= 0)
        return;
    for (int r = first; r < end; r++)
        if (wait[r - first].fd >= 0 && wait[r - first].revents)
            read_frame(world, r);
}

/* A rank that does not see that the run is stopped, because it hangs in a call, is ended by force. */
static void end_by_force(pn_world *world, double passed, double *stopped)
{
    *stopped = atomic_load(&world->run->stop) ? *stopped + passed : 0;
    if (*stopped < GRACE_SECONDS)
        return;
    fprintf(stderr, "error: rank %d: %s\n(it hangs in a call; ended by force)\n", world->launch.rank,
            world->run->error);
    _exit(1);
}

static void *watch(void *argument)
{
    pn_world *world = argument;
    double before = pn_seconds(), silent = 0, stopped = 0, beaten = 0;
    long long progress = -1;
    for (;;) {
        pthread_mutex_lock(&world->lock);
        const bool quits = world->quits;
        pthread_mutex_unlock(&world->lock);
        if (quits)
            return NULL;
        read_frames(world);
        const double now = pn_seconds();
        const double passed = now - before > 0.5 ? 0.5 : now - before; /* a machine that slept is no silent run */
        before = now;
        if (now - beaten > 0.25) {
            send_beat(world);
            beaten = now;
        }
        agree_tick(world);
        judge(world, passed, &progress, &silent);
        end_by_force(world, passed, &stopped);
    }
}

void world_watch(pn_world *world)
{
    world->poll = pn_alloc((int64_t)sizeof *world->poll * world->launch.size);
    world->largest = records_open(world);
    world->incoming = pn_alloc(world->largest);
    const int error = pthread_create(&world->watcher, NULL, watch, world);
    if (error)
        pn_fail(NULL, "cannot start the thread that watches over the ranks: %s", strerror(error));
}

/* ---- the end ---- */

static bool all_ended(const pn_world *world)
{
    for (int r = first_peer(world); leads(world) && r < peers_end(world); r++)
        if (!world->peer[r].ended)
            return false;
    return leads(world) || world->over;
}

bool world_end(pn_run *run)
{
    pn_world *world = run->world;
    world_doing(run, "all its steps are done");
    if (!leads(world)) {
        records_send_stages(run);
        world_send(world, 0, WORLD_END, NULL, 0);
    }
    pthread_mutex_lock(&world->lock);
    while (!all_ended(world) && !atomic_load(&run->stop))
        pthread_cond_wait(&world->changed, &world->lock);
    const bool good = !atomic_load(&run->stop);
    if (good)
        world->over = true;
    pthread_mutex_unlock(&world->lock);
    if (!good)
        return false;
    if (leads(world))
        world_send_all(world, WORLD_OVER, NULL, 0);
    pthread_mutex_lock(&world->lock);
    world->quits = true;
    pthread_mutex_unlock(&world->lock);
    pthread_join(world->watcher, NULL);
    return true;
}
