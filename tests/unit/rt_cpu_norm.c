/* rt_cpu_norm.c: batch normalisation of target cpu against the naive kernels: images plain and in blocks, channels that
 * fill no block, images of more than one chunk, vectors, fused relu and sum with a tensor of another layout, values far
 * from zero, tests with running statistics. */
#include "rt_cpu_world.h"

typedef struct {
    int64_t batch, c, h, w; /* h 0: a vector of c */
    int block;              /* of x's layout; 0: plain */
    bool relu;
    int skip;     /* layout of what is added, as block; -1: nothing is */
    float offset; /* added to x */
} norm_case;

static const norm_case cases[] = {
    {4, 16, 8, 8, 16, false, -1, 0},  {4, 16, 8, 8, 16, true, -1, 0},   {3, 5, 7, 6, 16, true, 16, 0},
    {2, 40, 5, 5, 16, false, 16, 30}, {3, 24, 4, 4, 8, true, 8, 0},     {2, 6, 9, 9, 8, false, -1, -10},
    {3, 20, 6, 7, 0, true, 0, 0},     {2, 3, 41, 37, 16, false, -1, 5}, {1, 16, 33, 33, 16, true, 16, 0},
    {8, 17, 1, 1, 16, false, 0, 0},   {16, 12, 0, 0, 0, true, 0, 0},    {5, 1, 0, 0, 0, false, -1, 0},
    {2, 1, 3, 3, 0, false, -1, 100},  {2, 64, 14, 14, 16, true, 8, -3}, {4, 7, 0, 0, 0, false, 0, 0},
};

static void norm_check(const norm_case *c, bool integers, int threads)
{
    const double epsilon = 1e-5, momentum = 0.3;
    world *w = world_without_weights(threads);
    const int rank = c->h > 0 ? 4 : 2;
    const ref_channels all = {c->batch, c->c, c->h > 0 ? c->h * c->w : 1};
    const int64_t n = all.batch * all.channels * all.size;
    pn_tensor x = tensor("x", rank, c->batch, c->c, c->h, c->w), y = tensor("y", rank, c->batch, c->c, c->h, c->w);
    pn_tensor skip = tensor("skip", rank, c->batch, c->c, c->h, c->w);
    const bool adds = c->skip >= 0;
    if (c->skip > 0)
        cpu_choose(&w->stage, &skip, dnn_blocked(skip.dim, c->skip));
    pn_area statistics = {pn_alloc(SLOTS * 2 * c->c * 4), 2 * c->c * 4, SLOTS, false};
    if (c->block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, c->block));
    pn_op *op = pn_batch_norm_init(&w->stage, &(pn_batch_norm_def){.name = "norm",
                                                                   .x = &x,
                                                                   .y = &y,
                                                                   .skip = adds ? &skip : NULL,
                                                                   .epsilon = epsilon,
                                                                   .momentum = momentum,
                                                                   .statistics = statistics,
                                                                   .relu = c->relu});
    world_ready(w);

    float *px = numbers(n, integers, 1), *pgy = numbers(n, integers, 2), *pskip = numbers(n, integers, 6),
          *scale = numbers(c->c, false, 3);
    float *shift = numbers(c->c, false, 4), *mean = floats(c->c), *variance = floats(c->c), *ey = floats(n);
    float *egx = floats(n), *egscale = floats(c->c), *egshift = floats(c->c), *gscale = floats(c->c);
    float *gshift = floats(c->c), *running[2], *erunning[2];
    for (int64_t i = 0; i < n; i++)
        px[i] += c->offset;
    for (int i = 0; i < 2; i++) {
        running[i] = numbers(c->c, false, 5);
        erunning[i] = numbers(c->c, false, 5);
        for (int64_t k = 0; k < c->c; k++)
            running[i][k] = erunning[i][k] = fabsf(running[i][k]);
    }
    ref_norm_statistics(&all, px, mean, variance);
    ref_norm_forward(&all, epsilon, px, scale, shift, mean, variance, ey);
    if (adds)
        ref_accumulate(ey, pskip, n);
    if (c->relu)
        ref_relu(ey, n);
    float *counts = floats(n); /* of pgy */
    memcpy(counts, pgy, (size_t)n * sizeof *counts);
    if (c->relu)
        ref_relu_mask(ey, counts, n);
    ref_norm_backward(&all, epsilon, px, counts, scale, mean, variance, egx, egscale, egshift);

    for (int k = 0; k < SLOTS; k++) {
        float *sx = slot(&x.value, k), *sy = slot(&y.value, k), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
        float *found = slot(&statistics, k), *ss = adds ? slot(&skip.value, k) : NULL;
        float *gskip = adds ? slot(&skip.gradient, 0) : NULL;
        if (adds)
            put(&skip, pskip, ss);
        dirty(&skip.gradient);
        dirty(&y.value);
        dirty(&x.gradient);
        put(&x, px, sx);
        put(&y, pgy, gy);
        pn_batch_norm_forward(op, sx, ss, scale, shift, found, sy);
        same("mean", mean, found, c->c, integers);
        same("variance", variance, found + c->c, c->c, false);
        same("y", ey, get(&y, sy), n, false);
        lanes_are_zero("y", &y, sy);
        pn_batch_norm_backward(op, sx, c->relu ? sy : NULL, gy, scale, found, gx, gskip, gscale, gshift);
        if (adds) {
            same("gskip", counts, get(&skip, gskip), n, true);
            lanes_are_zero("gskip", &skip, gskip);
        }
        same("gx", egx, get(&x, gx), n, false);
        lanes_are_zero("gx", &x, gx);
        same("gradient of scale", egscale, gscale, c->c, false);
        same("gradient of shift", egshift, gshift, c->c, integers);
        dirty(&x.gradient);
        put(&y, pgy, gy);
        pn_batch_norm_backward(op, sx, c->relu ? sy : NULL, gy, scale, found, NULL, NULL, gscale, gshift);
        put(&y, pgy, gy);
        if (adds) { /* gx without gskip */
            pn_batch_norm_backward(op, sx, c->relu ? sy : NULL, gy, scale, found, gx, NULL, gscale, gshift);
            same("gx alone", egx, get(&x, gx), n, false);
        }
        same("gradient of shift alone", egshift, gshift, c->c, integers);
        pn_batch_norm_track(op, found, running[0], running[1]);
        ref_norm_track(&all, momentum, mean, variance, erunning[0], erunning[1]);
        same("running mean", erunning[0], running[0], c->c, false);
        same("running variance", erunning[1], running[1], c->c, false);
    }
    /* Element by element with given statistics: the same bits. */
    put(&x, px, slot(&x.test, 0));
    put(&skip, pskip, slot(&skip.test, 0));
    pn_batch_norm_test(op, slot(&x.test, 0), adds ? slot(&skip.test, 0) : NULL, scale, shift, running[0], running[1],
                       slot(&y.test, 0));
    ref_norm_forward(&all, epsilon, px, scale, shift, running[0], running[1], ey);
    if (adds)
        ref_accumulate(ey, pskip, n);
    if (c->relu)
        ref_relu(ey, n);
    same("y of a test", ey, get(&y, slot(&y.test, 0)), n, true);
    lanes_are_zero("y of a test", &y, slot(&y.test, 0));
}

static void test_norm(void **state)
{
    (void)state;
    for (int integers = 0; integers < 2; integers++)
        for (int i = 0; i < PN_COUNT(cases); i++)
            for (int threads = 1; threads <= 3; threads++)
                norm_check(&cases[i], integers, threads);
}

static void lrn_check(int64_t c, int64_t h, int64_t wide, int block, int size, int threads)
{
    world *w = world_without_weights(threads);
    const ref_lrn r = {{2, c, h * wide}, size, 0.3, 0.75, 2};
    pn_tensor x = tensor("x", 4, 2, c, h, wide), y = tensor("y", 4, 2, c, h, wide);
    if (block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
    pn_op *op = pn_lrn_init(
        &w->stage, &(pn_lrn_def){.name = "lrn", .x = &x, .y = &y, .size = size, .alpha = 0.3, .beta = 0.75, .k = 2});
    world_ready(w);
    const int64_t n = elements(4, x.dim);
    float *px = numbers(n, false, 1), *pgy = numbers(n, false, 2), *ey = floats(n), *egx = floats(n);
    ref_lrn_forward(&r, px, ey);
    ref_lrn_backward(&r, px, pgy, egx);
    float *sx = slot(&x.value, 1), *sy = slot(&y.value, 1), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
    dirty(&y.value);
    dirty(&x.gradient);
    put(&x, px, sx);
    put(&y, pgy, gy);
    pn_lrn_forward(op, sx, sy);
    pn_lrn_backward(op, sx, gy, gx);
    same("y", ey, get(&y, sy), n, true);
    lanes_are_zero("y", &y, sy);
    same("gx", egx, get(&x, gx), n, true);
    lanes_are_zero("gx", &x, gx);
}

static void test_lrn(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 3; threads++) {
        lrn_check(20, 9, 11, 16, 5, threads);
        lrn_check(7, 4, 4, 8, 3, threads);
        lrn_check(40, 3, 3, 0, 31, threads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_norm), cmocka_unit_test(test_lrn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
