/* rt_cpu_threads.c: verbs of target cpu whose work is shared by threads: parts cover everything once, and every element
 * has the bits that one thread gives it, where no sum crosses parts. */
#include "rt_cpu_world.h"

#include <stdatomic.h>

/* ---- the split itself ---- */
enum { MOST = 1000 };
typedef struct {
    atomic_int seen[MOST];
    atomic_int parts;
    int64_t unit;
} marks;

static void mark(void *data, int64_t from, int64_t to)
{
    marks *m = data;
    if (from % m->unit != 0 || from >= to)
        atomic_fetch_add(&m->parts, 1000);
    atomic_fetch_add(&m->parts, 1);
    for (int64_t i = from; i < to; i++)
        atomic_fetch_add(&m->seen[i], 1);
}

static void test_split(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 3, 16, 17, 100, MOST}, units[] = {1, 2, 16, 64, MOST};
    for (int threads = 1; threads <= 5; threads++) {
        world *w = world_of(threads);
        for (int c = 0; c < PN_COUNT(counts); c++)
            for (int u = 0; u < PN_COUNT(units); u++) {
                const int64_t whole = (counts[c] + units[u] - 1) / units[u];
                marks m = {.unit = units[u]};
                pn_target_split(&w->stage, counts[c], units[u], mark, &m);
                assert_int_equal(m.parts, whole < threads ? whole : threads);
                for (int64_t i = 0; i < MOST; i++)
                    assert_int_equal(m.seen[i], i < counts[c]);
            }
    }
}

/* ---- verbs: what each thread count makes of the same numbers ---- */
enum { BATCH = 6, CHANNELS = 20, SIZE = 13 }; /* parts of several thousand floats, a ragged block of channels */

static void square(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * x[i];
}
static void square_back(const float *restrict x, const float *restrict gy, float *restrict gx, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gx[i] = 2.0f * x[i] * gy[i];
}

typedef enum { POINTWISE, ADD, SHORTCUT, DROPOUT, MAXPOOL, CONV, MASK, KINDS } kind;

/* Runs forward and backward of one kind; y and gx in plain order. */
static void run(kind which, int threads, float **y_found, float **gx_found)
{
    world *w = world_of(threads);
    const bool halves = which == SHORTCUT || which == MAXPOOL;
    const int64_t out = halves ? (SIZE + (which == SHORTCUT)) / 2 : SIZE,
                  more = which == SHORTCUT ? 2 * CHANNELS : CHANNELS;
    pn_tensor x = tensor("x", 4, BATCH, CHANNELS, SIZE, SIZE), y = tensor("y", 4, BATCH, more, out, out);
    pn_tensor b = tensor("b", 4, BATCH, CHANNELS, SIZE, SIZE);
    pn_area winners = area(4, y.dim, 1);
    pn_param weight = param("weight", 4, CHANNELS, CHANNELS, 3, 3, 0);
    uint8_t *dropped = pn_alloc(elements(4, x.dim));
    cpu_choose(&w->stage, &x, dnn_blocked(x.dim, 16));
    cpu_choose(&w->stage, &b, dnn_blocked(b.dim, 16));
    pn_op *op = NULL;
    if (which == POINTWISE)
        op = pn_pointwise_init(&w->stage, &(pn_pointwise_def){"square", &x, &y, square, square_back, true, true});
    else if (which == ADD || which == MASK)
        op = pn_add_init(&w->stage, &(pn_add_def){"add", &x, &b, &y, true});
    else if (which == SHORTCUT)
        op = pn_shortcut_init(&w->stage, &(pn_shortcut_def){"shortcut", &x, &y, 2});
    else if (which == DROPOUT)
        op = pn_dropout_init(&w->stage, &(pn_dropout_def){"drop", &x, &y, 0.5});
    else if (which == MAXPOOL)
        op = pn_maxpool_init(&w->stage, &(pn_pool_def){"pool", &x, &y, 2, 2, 2, 0, true, false, winners});
    else
        op = pn_conv_init(&w->stage, &(pn_conv_def){"conv", &x, &y, &weight, NULL, 1, 3, 1, 1, 1, false, true});
    world_ready(w);
    float *sx = slot(&x.value, 0), *sy = slot(&y.value, 0), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
    float *sb = slot(&b.value, 0);
    put(&x, numbers(elements(4, x.dim), false, 1), sx);
    put(&b, numbers(elements(4, b.dim), false, 2), sb);
    put(&y, numbers(elements(4, y.dim), false, 3), gy);
    pn_param_from_plain(&weight, numbers(CHANNELS * CHANNELS * 9, false, 4), w->def.weights);
    dirty(&y.value);
    dirty(&x.gradient);
    if (which == POINTWISE) {
        pn_pointwise_forward(op, sx, sy);
        pn_pointwise_backward(op, sx, gy, gx);
    } else if (which == ADD) {
        pn_add_forward(op, sx, sb, sy);
        pn_add_backward(op, 0, gy, gx);
        pn_accumulate(&x, gx, sb);
    } else if (which == MASK) {
        pn_add_forward(op, sx, sb, sy);
        pn_relu_mask(&y, sy, gy);
        pn_copy(&y, gx, gy);
    } else if (which == SHORTCUT) {
        pn_shortcut_forward(op, sx, sy);
        pn_shortcut_backward(op, gy, gx);
    } else if (which == DROPOUT) {
        pn_dropout_forward(op, 5, sx, sy, dropped);
        pn_dropout_backward(op, gy, dropped, gx);
    } else if (which == MAXPOOL) {
        pn_maxpool_forward(op, sx, sy, winners.memory);
        pn_maxpool_backward(op, gy, winners.memory, gx);
    } else {
        pn_conv_forward(op, sx, w->def.weights, NULL, sy);
        pn_conv_backward_data(op, gy, w->def.weights, gx);
    }
    lanes_are_zero("y", &y, sy);
    lanes_are_zero("gx", &x, gx);
    *y_found = get(&y, sy);
    *gx_found = get(&x, gx);
}

static void test_verbs(void **state)
{
    (void)state;
    const int64_t n = BATCH * CHANNELS * SIZE * SIZE;
    for (int which = 0; which < KINDS; which++) {
        float *y[4], *gx[4];
        for (int threads = 1; threads <= 3; threads++) {
            run((kind)which, threads, &y[threads], &gx[threads]);
            const int64_t ny = which == SHORTCUT  ? 2 * CHANNELS * BATCH * 49
                               : which == MAXPOOL ? CHANNELS * BATCH * 36
                                                  : n;
            assert_memory_equal(y[1], y[threads], (size_t)ny * sizeof(float));
            assert_memory_equal(gx[1], gx[threads], (size_t)n * sizeof(float));
        }
        bool any = false;
        for (int64_t i = 0; i < n; i++)
            any |= gx[1][i] != 0;
        assert_true(any);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_split), cmocka_unit_test(test_verbs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
