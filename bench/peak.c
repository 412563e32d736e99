/* peak.c: what the cores of this machine give at best, for the floors of bench/throughput.
 *
 * usage: peak THREADS MEBIBYTES
 *
 * Prints GFLOP/s of fused multiply-adds in registers, of one thread and of THREADS at once, and GB/s of a triad
 * a = b + s c (McCalpin's STREAM; 12 bytes an element) over three arrays that are MEBIBYTES in all for each thread. The
 * best of some runs. Built by bench/throughput with -O3 -march=native -ffp-contract=fast. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LANES = 16, CHAINS = 12, STEPS = 200000, RUNS = 20, MOST = 256 };
typedef float vector __attribute__((vector_size(64)));

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* other programs do not count */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct {
    pthread_barrier_t *start;
    int64_t floats;      /* of an array */
    double flops, bytes; /* a second */
    float kept;
} Worker;

static double multiply_adds(Worker *w)
{
    vector sum[CHAINS]; /* all different, or compilers do one of them */
    const vector a = (vector){0} + 0.999f, b = (vector){0} + 0.001f;
    for (int c = 0; c < CHAINS; c++)
        sum[c] = (vector){0} + (float)c;
    const double begin = now();
    for (int i = 0; i < STEPS; i++)
        for (int c = 0; c < CHAINS; c++)
            sum[c] = sum[c] * a + b;
    const double end = now();
    for (int c = 0; c < CHAINS; c++)
        w->kept += sum[c][0];
    return 2.0 * LANES * CHAINS * STEPS / (end - begin);
}

static double triad(Worker *w, float *restrict a, const float *restrict b, const float *restrict c)
{
    const double begin = now();
    for (int64_t i = 0; i < w->floats; i++)
        a[i] = b[i] + 0.5f * c[i];
    const double end = now();
    w->kept += a[w->floats / 2];
    return 12.0 * (double)w->floats / (end - begin);
}

static void *work(void *argument)
{
    Worker *w = argument;
    float *memory = aligned_alloc(64, (size_t)w->floats * 3 * sizeof *memory);
    if (!memory)
        exit(1);
    for (int64_t i = 0; i < 3 * w->floats; i++)
        memory[i] = 1;
    for (int run = 0; run < RUNS; run++) {
        pthread_barrier_wait(w->start);
        const double flops = multiply_adds(w);
        pthread_barrier_wait(w->start);
        const double bytes = triad(w, memory, memory + w->floats, memory + 2 * w->floats);
        w->flops = flops > w->flops ? flops : w->flops;
        w->bytes = bytes > w->bytes ? bytes : w->bytes;
    }
    free(memory);
    return NULL;
}

static void measure(int threads, int64_t floats, double *flops, double *bytes)
{
    static Worker worker[MOST];
    pthread_t thread[MOST];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        worker[i] = (Worker){.start = &start, .floats = floats};
        if (pthread_create(&thread[i], NULL, work, &worker[i]))
            exit(1);
    }
    *flops = *bytes = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        *flops += worker[i].flops;
        *bytes += worker[i].bytes;
    }
    pthread_barrier_destroy(&start);
}

int main(int argc, char **argv)
{
    const int threads = argc > 2 ? atoi(argv[1]) : 0, mebibytes = argc > 2 ? atoi(argv[2]) : 0;
    if (threads < 1 || threads > MOST || mebibytes < 1)
        return 2;
    const int64_t floats = (int64_t)mebibytes * 1024 * 1024 / 12 / 16 * 16;
    double flops[2], bytes[2];
    measure(1, floats, &flops[0], &bytes[0]);
    measure(threads, floats, &flops[1], &bytes[1]);
    printf("{\"flops\": [%.4g, %.4g], \"bytes\": [%.4g, %.4g]}\n", flops[0], flops[1], bytes[0], bytes[1]);
    return 0;
}
