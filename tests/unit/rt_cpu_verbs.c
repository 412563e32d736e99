/* rt_cpu_verbs.c: pooling, maps, joins and dropout of target cpu against the naive kernels: the same bits on small
 * integers, a tolerance on random values; inputs plain and blocked; slots of a ring. */
#include "rt_cpu_world.h"

/* ---- pooling ---- */
typedef struct {
    int64_t c, h, w;
    int kernel_h, kernel_w, stride, pad, block;
    bool ceil, relu, count_padding;
} pool_case;

static void pool_check(const pool_case *c, bool max, bool exact)
{
    world *w = world_new();
    const int64_t batch = 3;
    const ref_pool r = {batch * c->c,
                        c->h,
                        c->w,
                        ref_pool_size(c->h, c->kernel_h, c->stride, c->pad, c->ceil),
                        ref_pool_size(c->w, c->kernel_w, c->stride, c->pad, c->ceil),
                        c->kernel_h,
                        c->kernel_w,
                        c->stride,
                        c->pad,
                        c->count_padding};
    pn_tensor x = tensor("x", 4, batch, c->c, c->h, c->w), y = tensor("y", 4, batch, c->c, r.out_height, r.out_width);
    pn_area winners = area(4, y.dim, SLOTS); /* four bytes each: enough for any window */
    if (c->block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, c->block));
    const pn_pool_def def = {"pool",    &x,     &y,      c->kernel_h,      c->kernel_w,
                             c->stride, c->pad, c->relu, c->count_padding, max ? winners : (pn_area){0}};
    pn_op *op = max ? pn_maxpool_init(&w->stage, &def) : pn_avgpool_init(&w->stage, &def);
    world_ready(w);

    const int64_t nx = elements(4, x.dim), ny = elements(4, y.dim);
    float *px = numbers(nx, exact, 1), *pgy = numbers(ny, exact, 2), *ey = floats(ny), *egx = floats(nx);
    char *winner = pn_alloc(ny * 4);
    if (max) {
        ref_maxpool_forward(&r, px, ey, winner);
        if (c->relu) {
            ref_relu(ey, ny);
            ref_relu_mask(ey, pgy, ny);
        }
        ref_maxpool_backward(&r, pgy, winner, egx);
    } else {
        if (exact) /* multiples of every divisor of overlapping windows: no quotient is rounded before it is added */
            for (int64_t i = 0; i < ny; i++)
                pgy[i] *= 36.0f;
        ref_avgpool_forward(&r, px, ey);
        ref_avgpool_backward(&r, pgy, egx);
    }
    for (int k = 0; k < SLOTS; k++) {
        float *sx = slot(&x.value, k), *sy = slot(&y.value, k), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
        dirty(&y.value);
        dirty(&x.gradient);
        put(&x, px, sx);
        put(&y, pgy, gy);
        if (max) {
            pn_maxpool_forward(op, sx, slot(&y.test, 0), NULL);
            same("y of a test", ey, get(&y, slot(&y.test, 0)), ny, exact);
            pn_maxpool_forward(op, sx, sy, slot(&winners, k));
            pn_maxpool_backward(op, gy, slot(&winners, k), gx);
        } else {
            pn_avgpool_forward(op, sx, sy);
            pn_avgpool_backward(op, gy, gx);
        }
        same("y", ey, get(&y, sy), ny, exact);
        lanes_are_zero("y", &y, sy);
        same("gx", egx, get(&x, gx), nx, exact);
        lanes_are_zero("gx", &x, gx);
    }
}

static const pool_case pool_cases[] = {
    {6, 28, 28, 2, 2, 2, 0, 16, false, true, false}, {6, 28, 28, 2, 2, 2, 0, 0, false, true, false},
    {16, 9, 7, 3, 3, 2, 1, 16, false, false, false}, {20, 9, 7, 3, 3, 2, 1, 16, false, false, true},
    {16, 8, 8, 3, 3, 2, 0, 16, true, true, false},   {5, 8, 8, 3, 2, 1, 1, 0, false, false, true},
    {32, 8, 8, 8, 8, 1, 0, 16, false, false, false}, {8, 17, 17, 17, 17, 1, 0, 8, false, false, false},
};

static void test_maxpool(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pool_cases / sizeof *pool_cases; i++)
        for (int exact = 0; exact < 2; exact++)
            pool_check(&pool_cases[i], true, exact);
}

static void test_avgpool(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof pool_cases / sizeof *pool_cases; i++)
        for (int exact = 0; exact < 2; exact++)
            pool_check(&pool_cases[i], false, exact);
}

/* ---- element by element ---- */
static void cube(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * x[i] * x[i];
}
static void cube_back(const float *restrict x, const float *restrict gy, float *restrict gx, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gx[i] = 3.0f * x[i] * x[i] * gy[i];
}
static void next(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] + 1.0f;
}
static void next_back(const float *restrict y, const float *restrict gy, float *restrict gx, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gx[i] = y[i] * gy[i];
}

static void pointwise_check(int block, bool keeps_zero)
{
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 2, 6, 5, 3), y = tensor("y", 4, 2, 6, 5, 3);
    const int64_t n = elements(4, x.dim);
    if (block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
    pn_op *op =
        pn_pointwise_init(&w->stage, &(pn_pointwise_def){"map", &x, &y, keeps_zero ? cube : next,
                                                         keeps_zero ? cube_back : next_back, keeps_zero, keeps_zero});
    world_ready(w);
    float *px = numbers(n, true, 1), *pgy = numbers(n, true, 2), *ey = floats(n), *egx = floats(n);
    (keeps_zero ? cube : next)(px, ey, n);
    (keeps_zero ? cube_back : next_back)(keeps_zero ? px : ey, pgy, egx, n);
    float *sx = slot(&x.value, 1), *sy = slot(&y.value, 2), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
    dirty(&y.value);
    dirty(&x.gradient);
    put(&x, px, sx);
    put(&y, pgy, gy);
    pn_pointwise_forward(op, sx, sy);
    pn_pointwise_backward(op, keeps_zero ? sx : sy, gy, gx);
    same("y", ey, get(&y, sy), n, true);
    same("gx", egx, get(&x, gx), n, true);
    lanes_are_zero("y", &y, sy);
    lanes_are_zero("gx", &x, gx);
}

static void test_pointwise(void **state)
{
    (void)state;
    for (int block = 0; block <= 16; block += 16) {
        pointwise_check(block, true);
        pointwise_check(block, false);
    }
}

static void add_check(int block_a, int block_b, bool relu)
{
    world *w = world_new();
    pn_tensor a = tensor("a", 4, 2, 20, 5, 3), b = tensor("b", 4, 2, 20, 5, 3), y = tensor("y", 4, 2, 20, 5, 3);
    const int64_t n = elements(4, a.dim);
    if (block_a)
        cpu_choose(&w->stage, &a, dnn_blocked(a.dim, block_a));
    if (block_b)
        cpu_choose(&w->stage, &b, dnn_blocked(b.dim, block_b));
    pn_op *op = pn_add_init(&w->stage, &(pn_add_def){"add", &a, &b, &y, relu});
    world_ready(w);
    float *pa = numbers(n, true, 1), *pb = numbers(n, true, 2), *pgy = numbers(n, true, 3), *ey = floats(n);
    ref_add(pa, pb, ey, n);
    if (relu)
        ref_relu(ey, n);
    float *sa = slot(&a.value, 0), *sb = slot(&b.value, 1), *sy = slot(&y.value, 2), *gy = slot(&y.gradient, 0);
    dirty(&y.value);
    put(&a, pa, sa);
    put(&b, pb, sb);
    put(&y, pgy, gy);
    pn_add_forward(op, sa, sb, sy);
    same("y", ey, get(&y, sy), n, true);
    lanes_are_zero("y", &y, sy);
    if (relu) {
        ref_relu_mask(ey, pgy, n);
        pn_relu_mask(&y, sy, gy);
    }
    dirty(&a.gradient);
    dirty(&b.partial);
    pn_add_backward(op, 0, gy, slot(&a.gradient, 0));
    pn_add_backward(op, 1, gy, slot(&b.partial, 0));
    same("ga", pgy, get(&a, slot(&a.gradient, 0)), n, true);
    same("gb", pgy, get(&b, slot(&b.partial, 0)), n, true);
    lanes_are_zero("gb", &b, slot(&b.partial, 0));

    float *sum = floats(n); /* accumulate and copy over the stored floats */
    put(&a, pa, slot(&a.partial, 0));
    pn_accumulate(&a, slot(&a.gradient, 0), slot(&a.partial, 0));
    ref_add(pgy, pa, sum, n);
    same("sum", sum, get(&a, slot(&a.gradient, 0)), n, true);
    pn_copy(&a, slot(&a.test, 0), slot(&a.gradient, 0));
    same("copy", sum, get(&a, slot(&a.test, 0)), n, true);
}

static void test_add(void **state)
{
    (void)state;
    add_check(0, 0, false);
    add_check(16, 16, true);
    add_check(16, 0, true);
    add_check(0, 16, false);
    add_check(8, 16, true);
}

/* ---- concat, flatten ---- */
static void concat_check(int64_t first, int64_t second, int block)
{
    world *w = world_new();
    pn_tensor a = tensor("a", 4, 3, first, 4, 5), b = tensor("b", 4, 3, second, 4, 5);
    pn_tensor y = tensor("y", 4, 3, first + second, 4, 5);
    if (block) {
        cpu_choose(&w->stage, &a, dnn_blocked(a.dim, block));
        cpu_choose(&w->stage, &b, dnn_blocked(b.dim, block));
    }
    pn_op *op = pn_concat_init(&w->stage, &(pn_concat_def){"concat", {&a, &b}, 2, &y});
    world_ready(w);
    const int64_t na = elements(4, a.dim), nb = elements(4, b.dim), ny = na + nb, inner = ny / 3;
    float *pa = numbers(na, true, 1), *pb = numbers(nb, true, 2), *pgy = numbers(ny, true, 3);
    float *ey = floats(ny), *ega = floats(na), *egb = floats(nb);
    ref_concat_put(3, na / 3, inner, 0, pa, ey);
    ref_concat_put(3, nb / 3, inner, na / 3, pb, ey);
    ref_concat_get(3, na / 3, inner, 0, pgy, ega);
    ref_concat_get(3, nb / 3, inner, na / 3, pgy, egb);
    dirty(&y.value);
    dirty(&a.gradient);
    dirty(&b.gradient);
    put(&a, pa, slot(&a.value, 1));
    put(&b, pb, slot(&b.value, 2));
    put(&y, pgy, slot(&y.gradient, 0));
    pn_concat_forward(op, 0, slot(&a.value, 1), slot(&y.value, 1));
    pn_concat_forward(op, 1, slot(&b.value, 2), slot(&y.value, 1));
    pn_concat_backward(op, 0, slot(&y.gradient, 0), slot(&a.gradient, 0));
    pn_concat_backward(op, 1, slot(&y.gradient, 0), slot(&b.gradient, 0));
    same("y", ey, get(&y, slot(&y.value, 1)), ny, true);
    same("ga", ega, get(&a, slot(&a.gradient, 0)), na, true);
    same("gb", egb, get(&b, slot(&b.gradient, 0)), nb, true);
    lanes_are_zero("ga", &a, slot(&a.gradient, 0));
}

static void test_concat(void **state)
{
    (void)state;
    concat_check(6, 7, 0);
    concat_check(6, 7, 16);
    concat_check(16, 32, 16);
    concat_check(16, 20, 16);
}

static void flatten_check(int block)
{
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 6, 4, 5), y = tensor("y", 2, 3, 120, 0, 0);
    if (block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
    pn_op *op = pn_flatten_init(&w->stage, &(pn_flatten_def){"flatten", &x, &y});
    world_ready(w);
    float *px = numbers(360, true, 1), *pgy = numbers(360, true, 2);
    dirty(&x.gradient);
    put(&x, px, slot(&x.value, 2));
    put(&y, pgy, slot(&y.gradient, 0));
    pn_flatten_forward(op, slot(&x.value, 2), slot(&y.value, 1));
    pn_flatten_backward(op, slot(&y.gradient, 0), slot(&x.gradient, 0));
    same("y", px, slot(&y.value, 1), 360, true);
    same("gx", pgy, get(&x, slot(&x.gradient, 0)), 360, true);
    lanes_are_zero("gx", &x, slot(&x.gradient, 0));
}

static void test_flatten(void **state)
{
    (void)state;
    flatten_check(0);
    flatten_check(16);
}

/* ---- dropout ---- */
static void test_dropout(void **state)
{
    (void)state;
    for (int block = 0; block <= 16; block += 16) {
        world *w = world_new();
        pn_tensor x = tensor("x", 4, 3, 6, 4, 5), y = tensor("y", 4, 3, 6, 4, 5);
        if (block)
            cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
        pn_op *op = pn_dropout_init(&w->stage, &(pn_dropout_def){"drop", &x, &y, 0.25});
        world_ready(w);
        float *px = numbers(360, false, 1), *pgy = numbers(360, false, 2), *ey = floats(360), *egx = floats(360);
        uint8_t *mask = pn_alloc(360), *expected = pn_alloc(360);
        ref_dropout_mask(pn_dropout_key(7, "drop", 11), 0.25, 0, 360, expected);
        ref_dropout(0.25, 360, px, expected, ey);
        ref_dropout(0.25, 360, pgy, expected, egx);
        dirty(&y.value);
        put(&x, px, slot(&x.value, 2));
        put(&y, pgy, slot(&y.gradient, 0));
        pn_dropout_forward(op, 11, slot(&x.value, 2), slot(&y.value, 0), mask);
        pn_dropout_backward(op, slot(&y.gradient, 0), mask, slot(&x.gradient, 0));
        assert_memory_equal(mask, expected, 360);
        same("y", ey, get(&y, slot(&y.value, 0)), 360, true);
        same("gx", egx, get(&x, slot(&x.gradient, 0)), 360, true);
        lanes_are_zero("y", &y, slot(&y.value, 0));
        pn_dropout_test(op, slot(&x.value, 2), slot(&y.test, 0));
        same("y of a test", px, get(&y, slot(&y.test, 0)), 360, true);
    }
}

/* ---- shortcut: every pair of blocks that a run of channels can lie in ---- */
static void shortcut_check(int64_t in, int64_t out, int64_t h, int64_t wide, int stride, int block)
{
    world *w = world_new();
    const ref_shortcut r = {3, in, h, wide, out, stride};
    pn_tensor x = tensor("x", 4, 3, in, h, wide),
              y = tensor("y", 4, 3, out, (h - 1) / stride + 1, (wide - 1) / stride + 1);
    if (block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
    pn_op *op = pn_shortcut_init(&w->stage, &(pn_shortcut_def){"shortcut", &x, &y, stride});
    world_ready(w);
    const int64_t nx = elements(4, x.dim), ny = elements(4, y.dim);
    float *px = numbers(nx, false, 1), *pgy = numbers(ny, false, 2), *ey = floats(ny), *egx = floats(nx);
    ref_shortcut_forward(&r, px, ey);
    ref_shortcut_backward(&r, pgy, egx);
    float *sx = slot(&x.value, 1), *sy = slot(&y.value, 1), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
    dirty(&y.value);
    dirty(&x.gradient);
    put(&x, px, sx);
    put(&y, pgy, gy);
    pn_shortcut_forward(op, sx, sy);
    pn_shortcut_backward(op, gy, gx);
    same("y", ey, get(&y, sy), ny, true);
    lanes_are_zero("y", &y, sy);
    same("gx", egx, get(&x, gx), nx, true);
    lanes_are_zero("gx", &x, gx);
}

static void test_shortcut(void **state)
{
    (void)state;
    for (int block = 0; block <= 16; block += 8) {
        shortcut_check(16, 32, 8, 6, 2, block);
        shortcut_check(32, 64, 4, 4, 2, block);
        shortcut_check(5, 12, 7, 5, 3, block);
        shortcut_check(20, 45, 3, 4, 1, block);
        shortcut_check(24, 24, 5, 5, 1, block);
        shortcut_check(1, 2, 9, 1, 4, block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maxpool),   cmocka_unit_test(test_avgpool), cmocka_unit_test(test_add),
        cmocka_unit_test(test_pointwise), cmocka_unit_test(test_concat),  cmocka_unit_test(test_flatten),
        cmocka_unit_test(test_shortcut),  cmocka_unit_test(test_dropout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
