/* join.c: how ranks come together: each step is an answer of all ranks to rank 0, and a word of rank 0 to all. */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world/hello.h"

typedef struct {
    char device[96], identity[160];
} About;
typedef struct {
    int64_t steps, first, training, tests;
} Ready;

enum { ID = 128 };
static const double a_while = 10; /* times the timeout: for what takes longer than a step */

static double patience(const pn_run *run)
{
    return run->timeout > 0 ? run->timeout : 1e9;
}

/* ---- failures before the watcher's time ---- */

static void tell_all(pn_world *world, const char *text)
{
    FailFrame fail = {.status = 1};
    snprintf(fail.text, sizeof fail.text, "%s", text);
    if (world->launch.rank == 0)
        world_send_all(world, WORLD_FAIL, &fail, sizeof fail);
}

static _Noreturn void give_up(pn_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
static _Noreturn void give_up(pn_world *world, const char *format, ...)
{
    char text[sizeof((FailFrame *)0)->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    tell_all(world, text);
    pn_fail(NULL, "%s", text);
}

/* The next frame from a rank must be this. */
static void expect(pn_world *world, int rank, WorldKind kind, void *data, int64_t bytes, double seconds)
{
    Peer *peer = &world->peer[rank];
    Frame frame;
    const char *error = wire_receive(peer->socket, &frame, sizeof frame, seconds);
    if (!error && frame.kind == WORLD_FAIL && frame.bytes == sizeof(FailFrame)) {
        FailFrame fail;
        error = wire_receive(peer->socket, &fail, sizeof fail, seconds);
        if (!error && rank > 0)
            give_up(world, "rank %d (%s): %s", rank, peer->about, fail.text);
        if (!error)
            give_up(world, "%s", fail.text);
    }
    if (!error && (frame.kind != (uint32_t)kind || frame.bytes != bytes))
        error = "it says something else: is it of another version?";
    if (!error)
        error = wire_receive(peer->socket, data, bytes, seconds);
    if (error)
        give_up(world, "rank %d (%s) is not there for the start: %s%s", rank, peer->about, error,
                strcmp(error, "it is gone") == 0 ? "; its own message says why" : "");
}

/* ---- coming together ---- */

/* A stranger, who does not say hello, is sent away. */
static bool read_hello(int from, Hello *hello)
{
    Frame frame = {0};
    return !wire_receive(from, &frame, sizeof frame, 5) && frame.kind == WORLD_HELLO && frame.bytes == sizeof *hello &&
           !wire_receive(from, hello, sizeof *hello, 5);
}

static _Noreturn void report_absent(pn_world *world, double seconds)
{
    char text[256] = "";
    int count = 0;
    for (int r = 1; r < world->launch.size; r++)
        if (world->peer[r].socket < 0) {
            const size_t length = strlen(text);
            if (count++ < 16)
                snprintf(text + length, sizeof text - length, "%s%d", count > 1 ? ", " : "", r);
        }
    give_up(world, "of %d ranks %d did not come to rank 0 at port %d in %.3g seconds: %s%s (PN_TIMEOUT)",
            world->launch.size, count, world->launch.port, seconds, text, count > 16 ? ", ..." : "");
}

static void add_rank(pn_world *world, const Hello *own, int at)
{
    Hello hello;
    FailFrame fail = {.status = 1};
    if (!read_hello(at, &hello)) {
        close(at);
        return;
    }
    hello.host[sizeof hello.host - 1] = hello.version[sizeof hello.version - 1] = 0;
    hello.program[sizeof hello.program - 1] = 0;
    if (!world_fits(world, own, &hello, fail.text, sizeof fail.text)) {
        wire_send(at, WORLD_FAIL, &fail, sizeof fail);
        give_up(world, "%s", fail.text);
    }
    Peer *peer = &world->peer[hello.rank];
    peer->socket = at;
    snprintf(peer->about, sizeof peer->about, "%s", hello.host);
}

static int count_there(const pn_world *world)
{
    int count = 1;
    for (int r = 1; r < world->launch.size; r++)
        count += world->peer[r].socket >= 0;
    return count;
}

static void gather_ranks(pn_world *world, const Hello *own)
{
    const double seconds = patience(world->run), until = pn_seconds() + seconds;
    const int listener = wire_listen(world->launch.port);
    while (count_there(world) < world->launch.size) {
        const int at = wire_accept(listener, 0.1);
        if (at >= 0)
            add_rank(world, own, at);
        else if (pn_seconds() > until)
            report_absent(world, seconds);
    }
    close(listener);
    world_send_all(world, WORLD_WELCOME, NULL, 0);
}

static void join_rank_0(pn_world *world, const Hello *own)
{
    const Launch *launch = &world->launch;
    Peer *peer = &world->peer[0];
    snprintf(peer->about, sizeof peer->about, "%.*s", WORLD_TEXT - 1, launch->host);
    peer->socket = wire_connect(launch->host, launch->port, patience(world->run));
    world_send(world, 0, WORLD_HELLO, own, sizeof *own);
    expect(world, 0, WORLD_WELCOME, NULL, 0, patience(world->run) + a_while);
}

/* ---- the steps ---- */

static void check_request(const pn_run *run, const pn_options *options, const Launch *launch)
{
    const pn_program *program = run->program;
    if (launch->size > program->nstages)
        pn_fail(NULL, "%d ranks for %d stage%s: each needs one (%s); start %d", launch->size, program->nstages,
                program->nstages == 1 ? "" : "s", launch->by, program->nstages);
    if (options->transport != pn_transport_table[0])
        pn_fail(NULL, "--transport %s is for one process, not for %d ranks (%s)", options->transport->name,
                launch->size, launch->by);
    if (options->trace)
        pn_fail(NULL, "--trace is for one process, not for %d ranks (%s)", launch->size, launch->by);
    if (options->layouts)
        pn_fail(NULL, "--layouts is for one process, not for %d ranks (%s)", launch->size, launch->by);
    for (int i = 0; i < program->nphases; i++)
        if (program->phase[i].plateau_tests > 0)
            pn_fail(NULL, "a schedule that switches on a plateau of the test loss is for one process, not for %d ranks",
                    launch->size);
}

void world_open(pn_run *run, pn_options *options)
{
    Launch launch;
    if (!pn_target_ranks || !launch_read(&launch))
        return;
    check_request(run, options, &launch);
    pn_world *world = pn_alloc((int64_t)sizeof *world);
    world->run = run;
    world->launch = launch;
    world->wants_values = options->save || options->checkpoint;
    world->peer = pn_alloc((int64_t)sizeof *world->peer * launch.size);
    for (int r = 0; r < launch.size; r++)
        world->peer[r].socket = -1;
    if (pthread_mutex_init(&world->sending, NULL) != 0 || pthread_mutex_init(&world->lock, NULL) != 0 ||
        pthread_cond_init(&world->changed, NULL) != 0)
        pn_fail(NULL, "cannot create the locks of the ranks");
    run->world = world;
    run->transport = &pn_transport_ranks;
    const Hello own = world_hello(world, options);
    snprintf(world->doing, sizeof world->doing, "it prepares");
    if (launch.rank == 0) {
        snprintf(world->peer[0].about, sizeof world->peer[0].about, "%s", own.host);
        gather_ranks(world, &own);
        return;
    }
    join_rank_0(world, &own);
    options->quiet = true;
    options->metrics = options->save = options->checkpoint = options->report = NULL;
}

static void print_table(const pn_world *world, const About *about)
{
    const int size = world->launch.size;
    int width = 4;
    for (int r = 0; r < size; r++)
        if ((int)strlen(world->peer[r].about) > width)
            width = (int)strlen(world->peer[r].about);
    printf("%d ranks (%s), port %d\n  %4s  %-*s  %-6s  %s\n", size, world->launch.by, world->launch.port, "rank", width,
           "host", "stages", "device");
    for (int r = 0; r < size; r++) {
        char stages[32];
        const int first = world_first(world, r), last = world_first(world, r + 1) - 1;
        snprintf(stages, sizeof stages, first == last ? "%d" : "%d-%d", first, last);
        printf("  %4d  %-*s  %-6s  %s\n", r, width, world->peer[r].about, stages, about[r].device);
    }
    fflush(stdout);
}

/* Of all ranks, on rank 0. */
static void check_devices(pn_world *world, const About *about)
{
    for (int b = 1; b < world->launch.size; b++)
        for (int a = 0; a < b; a++)
            if (strcmp(about[a].identity, about[b].identity) == 0 &&
                strcmp(world->peer[a].about, world->peer[b].about) == 0)
                give_up(
                    world,
                    "ranks %d and %d are on the same device of %s (%s): a rank needs one of its own; stages share a "
                    "GPU in one process, without ranks",
                    a, b, world->peer[a].about, about[a].device);
}

/* The identity is the same text only for the same device of a host. */
void world_meet(pn_run *run, bool quiet)
{
    pn_world *world = run->world;
    const char *device, *identity;
    pn_target_describe(run, &device, &identity);
    const int size = world->launch.size;
    About *about = pn_alloc((int64_t)sizeof *about * size), *own = &about[world->launch.rank];
    snprintf(own->device, sizeof own->device, "%s", device);
    snprintf(own->identity, sizeof own->identity, "%s", identity);
    if (world->launch.rank > 0) {
        world_send(world, 0, WORLD_ABOUT, own, sizeof *own);
        expect(world, 0, WORLD_WELCOME, NULL, 0, a_while * patience(run));
        return;
    }
    for (int r = 1; r < size; r++)
        expect(world, r, WORLD_ABOUT, &about[r], sizeof about[r], a_while * patience(run));
    if (!quiet)
        print_table(world, about);
    check_devices(world, about);
    for (int r = 0; r < size; r++) {
        char host[64];
        snprintf(host, sizeof host, "%.63s", world->peer[r].about);
        snprintf(world->peer[r].about, sizeof world->peer[r].about, "%s, %s", host, about[r].device);
    }
    world_send_all(world, WORLD_WELCOME, NULL, 0);
}

bool world_ready(pn_run *run)
{
    pn_world *world = run->world;
    const pn_dataset *data = run->data;
    const Ready own = {run->steps, run->first, data ? data->train_count : 0, data ? data->test_count : 0};
    char id[ID] = {0};
    if (world->launch.rank > 0) {
        world_send(world, 0, WORLD_READY, &own, sizeof own);
        expect(world, 0, WORLD_ID, id, sizeof id, a_while * patience(run));
    } else {
        for (int r = 1; r < world->launch.size; r++) {
            Ready ready;
            expect(world, r, WORLD_READY, &ready, sizeof ready, a_while * patience(run));
            if (memcmp(&ready, &own, sizeof own) != 0)
                give_up(
                    world,
                    "rank %d (%s) is to train to step %lld, after step %lld, with %lld + %lld images; rank 0 to step "
                    "%lld, after step %lld, with %lld + %lld: the data or the checkpoint are not the same",
                    r, world->peer[r].about, (long long)ready.steps, (long long)ready.first, (long long)ready.training,
                    (long long)ready.tests, (long long)own.steps, (long long)own.first, (long long)own.training,
                    (long long)own.tests);
        }
        pn_target_make_id(run, id);
        world_send_all(world, WORLD_ID, id, sizeof id);
    }
    for (int r = 0; r < world->launch.size; r++)
        world->peer[r].heard = pn_seconds();
    world_watch(world);
    return pn_target_connect(run, id, world->launch.rank, world->launch.size);
}

/* ---- who runs what ---- */

int world_first(const pn_world *world, int rank)
{
    return (int)((int64_t)rank * world->run->program->nstages / world->launch.size);
}

int world_rank_of(const pn_world *world, int stage)
{
    int rank = 0;
    while (world_first(world, rank + 1) <= stage)
        rank++;
    return rank;
}

int world_size(const pn_run *run)
{
    return run->world ? run->world->launch.size : 1;
}

int world_rank(const pn_run *run)
{
    return run->world ? run->world->launch.rank : 0;
}

int world_local(const pn_run *run)
{
    return run->world ? run->world->launch.local : 0;
}
