/* calibrate_bandwidth.c: memory bandwidth of each of several threads that run at once. See calibrate.h. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "calibrate.h"

enum { REPEATS = 5, BYTES_AN_ELEMENT = 12 };

typedef struct {
    atomic_int arrived;
    atomic_bool gone; /* not all could be started: nobody waits */
    int count;
} Meeting;
typedef struct {
    pthread_t thread;
    Meeting *meeting;
    float *a, *b, *c;
    size_t count;
    double seconds; /* of the fastest repeat */
} Worker;

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* All go on once all are there for the `time`-th time, counted from 1. */
static void meet(Meeting *meeting, int time)
{
    atomic_fetch_add(&meeting->arrived, 1);
    while (atomic_load(&meeting->arrived) < time * meeting->count && !atomic_load(&meeting->gone))
        sched_yield();
}

static void *triad(void *argument)
{
    Worker *worker = argument;
    float *restrict a = worker->a;
    const float *restrict b = worker->b, *restrict c = worker->c;
    for (size_t i = 0; i < worker->count; i++) /* by the thread that uses them: pages near it */
        worker->a[i] = worker->b[i] = worker->c[i] = 1;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        meet(worker->meeting, repeat + 1);
        const double begin = now();
        for (size_t i = 0; i < worker->count; i++)
            a[i] = b[i] + 3 * c[i];
        const double took = now() - begin;
        if (repeat == 0 || took < worker->seconds)
            worker->seconds = took;
    }
    return NULL;
}

/* Of each of `count` workers that run at once; 0: no threads. */
static double run(Worker *worker, int count)
{
    Meeting meeting = {.count = count};
    int started = 0;
    for (; started < count; started++) {
        worker[started].meeting = &meeting;
        if (pthread_create(&worker[started].thread, NULL, triad, &worker[started]))
            break;
    }
    if (started < count)
        atomic_store(&meeting.gone, true);
    double rates = 0;
    for (int i = 0; i < started; i++) {
        pthread_join(worker[i].thread, NULL);
        rates += BYTES_AN_ELEMENT * (double)worker[i].count / worker[i].seconds;
    }
    return started < count ? 0 : rates / count;
}

bool calibrate_bandwidth(int workers, size_t bytes, double *rate)
{
    Worker *worker = calloc((size_t)workers, sizeof *worker);
    bool good = worker != NULL;
    for (int i = 0; good && i < workers; i++) {
        worker[i].count = bytes / sizeof(float);
        worker[i].a = malloc(bytes);
        worker[i].b = malloc(bytes);
        worker[i].c = malloc(bytes);
        good = worker[i].a && worker[i].b && worker[i].c;
    }
    for (int count = 1; good && count <= workers; count++) {
        rate[count - 1] = run(worker, count);
        good = rate[count - 1] > 0;
    }
    for (int i = 0; worker && i < workers; i++) {
        free(worker[i].a);
        free(worker[i].b);
        free(worker[i].c);
    }
    free(worker);
    return good;
}
