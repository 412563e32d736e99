/* rt_cpu_world.h: for tests of the verbs of target cpu: a stage without a program, tensors with the room that the plan
 * gives, numbers, and the comparison with what the naive kernels say. */
#ifndef TEST_RT_CPU_WORLD_H
#define TEST_RT_CPU_WORLD_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "ref/kernels.h"

/* ---- a stage with one or two parameters, without a program ---- */
enum { WEIGHT_FLOATS = 1 << 18, BIAS_OFFSET = WEIGHT_FLOATS - 4096, VERSIONS = 2, SLOTS = 3 };
typedef struct {
    pn_program program;
    pn_run run;
    pn_stage_def def;
    pn_stage stage;
} world;

static inline world *world_without_weights(int threads)
{
    world *w = pn_alloc(sizeof *w);
    w->run.program = &w->program;
    w->run.stage = &w->stage;
    w->run.seed = 7;
    w->run.threads = threads;
    w->stage.def = &w->def;
    w->stage.run = &w->run;
    pn_target_thread(&w->run);
    return w;
}

static inline world *world_of(int threads)
{
    world *w = world_without_weights(threads);
    w->def.weights = pn_alloc((int64_t)VERSIONS * WEIGHT_FLOATS * (int64_t)sizeof(float));
    w->def.gradient = pn_alloc((int64_t)WEIGHT_FLOATS * (int64_t)sizeof(float));
    w->def.versions = VERSIONS;
    w->def.weight_floats = WEIGHT_FLOATS;
    return w;
}

static inline world *world_new(void)
{
    return world_of(1);
}

static inline void world_ready(world *w)
{
    if (w->stage.scratch_bytes > 0)
        w->stage.scratch = pn_alloc(w->stage.scratch_bytes);
    pn_target_prepare(&w->stage);
}

static inline int64_t elements(int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    return n;
}

static inline float *floats(int64_t n)
{
    return pn_alloc(n * (int64_t)sizeof(float));
}

/* Room for channels in blocks of 16, as the plan gives it. */
static inline pn_area area(int rank, const int64_t *dim, int slots)
{
    int64_t padded[4] = {1, 1, 1, 1};
    memcpy(padded, dim, (size_t)rank * sizeof *dim);
    if (rank == 4)
        padded[1] = (padded[1] + 15) / 16 * 16;
    const int64_t bytes = (elements(rank, padded) * (int64_t)sizeof(float) + 63) / 64 * 64;
    return (pn_area){pn_alloc(bytes * slots), bytes, slots, false};
}

static inline pn_tensor tensor(const char *name, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    pn_tensor t = {.name = name, .rank = rank, .dim = {a, b, c, d}};
    t.value = area(rank, t.dim, SLOTS);
    t.gradient = area(rank, t.dim, 1);
    t.partial = area(rank, t.dim, 1);
    t.test = area(rank, t.dim, 1);
    return t;
}

static inline float *slot(const pn_area *a, int k)
{
    return (float *)((char *)a->memory + k * a->bytes);
}

/* Between plain order and a slot, through the services for parameters, which know layouts. */
static inline pn_param param_like(const pn_tensor *t)
{
    pn_param p = {.rank = t->rank, .layout = t->layout, .room = pn_tensor_floats(t)};
    memcpy(p.dim, t->dim, sizeof p.dim);
    if (t->layout && !t->layout->to_plain)
        cpu_make_moves(&world_without_weights(t->layout->threads)->stage, t->layout);
    return p;
}
static inline void put(const pn_tensor *t, const float *plain, float *to)
{
    const pn_param p = param_like(t);
    pn_param_from_plain(&p, plain, to);
}
static inline float *get(const pn_tensor *t, const float *from)
{
    const pn_param p = param_like(t);
    float *plain = floats(elements(t->rank, t->dim));
    pn_param_to_plain(&p, from, plain);
    return plain;
}

/* ---- data and comparison ---- */
static inline float *numbers(int64_t n, bool small_integers, uint64_t key)
{
    float *x = floats(n);
    for (int64_t i = 0; i < n; i++)
        x[i] =
            small_integers ? (float)((int)(pn_random(key, (uint64_t)i) % 7) - 3) : (float)pn_normal(key, (uint64_t)i);
    return x;
}

/* Integers: equal (zeros of either sign). Else: within `tolerance` of the largest value. */
static inline void same(const char *what, const float *expected, const float *found, int64_t n, bool exact)
{
    double largest = 1e-3;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < n; i++) {
        const bool good = exact ? expected[i] == found[i] : fabs(expected[i] - found[i]) <= 2e-5 * largest;
        if (!good)
            fail_msg("%s: element %lld is %.9g and not %.9g", what, (long long)i, found[i], expected[i]);
    }
}

/* Padded lanes of a slot: what is stored beyond the elements must sum to nothing. */
static inline void lanes_are_zero(const char *what, const pn_tensor *t, const float *stored)
{
    double all = 0, real = 0;
    const float *plain = get(t, stored);
    for (int64_t i = 0; i < pn_tensor_floats(t); i++)
        all += fabs(stored[i]);
    for (int64_t i = 0; i < elements(t->rank, t->dim); i++)
        real += fabs(plain[i]);
    if (fabs(all - real) > 1e-6 * real)
        fail_msg("%s: padded lanes are not zero", what);
}

static inline void dirty(const pn_area *a)
{
    memset(a->memory, 0x41, (size_t)(a->bytes * a->slots));
}

static inline pn_param param(const char *name, int rank, int64_t a, int64_t b, int64_t c, int64_t d, int64_t offset)
{
    return (pn_param){
        .name = name, .rank = rank, .dim = {a, b, c, d}, .offset = offset, .room = rank == 1 ? 4096 : BIAS_OFFSET};
}

#endif
