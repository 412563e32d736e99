/* rt_cpu_winograd.c: the kernels of winograd.h against the naive ones: all passes over channels, sizes, paddings, relu,
 * bias; images in parts; the same bytes again; nothing read before it is written; which shapes are taken unasked. */
#include "rt_cpu_world.h"

/* Of the largest element. Sums of products of 6x6 tiles lose a few bits more than direct ones. */
#define TOLERANCE 2e-5

typedef struct {
    int64_t batch, in, height, width, out;
    int pad;
    bool bias, relu;
} wino_case;

static const wino_case cases[] = {
    {2, 16, 8, 8, 16, 1, false, false},  {1, 16, 4, 4, 48, 1, true, true},     {3, 32, 7, 9, 16, 1, true, false},
    {5, 16, 33, 33, 32, 1, false, true}, {2, 64, 8, 8, 64, 1, false, false},   {4, 48, 6, 5, 32, 1, true, true},
    {2, 16, 5, 6, 16, 0, true, false},   {2, 16, 12, 10, 16, 2, true, true},   {1, 16, 3, 3, 16, 0, true, false},
    {4, 16, 1, 1, 32, 1, true, true},    {2, 32, 2, 2, 32, 1, true, false},    {3, 16, 32, 32, 16, 1, false, true},
    {5, 32, 4, 4, 16, 1, false, false},  {2, 16, 16, 31, 16, 0, false, false}, {1, 80, 12, 12, 16, 1, true, false},
    {1, 16, 9, 4, 64, 2, false, false},  {5, 80, 13, 9, 80, 1, true, false},   {2, 144, 8, 8, 128, 1, true, false},
};

/* To and from blocks of 16 channels, and of weights. */
static float *blocked(const float *plain, int64_t images, int64_t channels, int64_t pixels)
{
    float *to = floats(images * channels * pixels);
    for (int64_t i = 0; i < images * channels * pixels; i++) {
        const int64_t pixel = i % pixels, c = i / pixels % channels, n = i / pixels / channels;
        to[((n * channels / 16 + c / 16) * pixels + pixel) * 16 + c % 16] = plain[i];
    }
    return to;
}
static float *plain_of(const float *stored, int64_t images, int64_t channels, int64_t pixels)
{
    float *to = floats(images * channels * pixels);
    for (int64_t i = 0; i < images * channels * pixels; i++) {
        const int64_t pixel = i % pixels, c = i / pixels % channels, n = i / pixels / channels;
        to[i] = stored[((n * channels / 16 + c / 16) * pixels + pixel) * 16 + c % 16];
    }
    return to;
}
static int64_t weight_at(int64_t i, int64_t in)
{
    const int64_t k = i % 9, c = i / 9 % in, o = i / 9 / in;
    return (((o / 16 * (in / 16) + c / 16) * 9 + k) * 16 + c % 16) * 16 + o % 16;
}

static float *dirty_floats(int64_t n)
{
    float *made = floats(n);
    memset(made, 0xff, (size_t)n * sizeof *made); /* NaN */
    return made;
}

static void compare(const char *what, const wino_case *c, const float *expected, const float *found, int64_t n)
{
    double largest = 1e-3;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(expected[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(expected[i] - found[i]) <= TOLERANCE * largest))
            fail_msg("%s of %lldx%lldx%lldx%lld: element %lld is %.9g and not %.9g", what, (long long)c->batch,
                     (long long)c->in, (long long)c->height, (long long)c->width, (long long)i, found[i], expected[i]);
}

static winograd16 shape_of(const wino_case *c)
{
    return (winograd16){.images = c->batch,
                        .in = c->in / 16,
                        .out = c->out / 16,
                        .height = c->height,
                        .width = c->width,
                        .out_height = c->height + 2 * c->pad - 2,
                        .out_width = c->width + 2 * c->pad - 2,
                        .pad = c->pad,
                        .relu = c->relu};
}

static void check(const wino_case *c)
{
    const winograd16 p = shape_of(c);
    const int64_t in_pixels = p.height * p.width, out_pixels = p.out_height * p.out_width;
    const int64_t nx = c->batch * c->in * in_pixels, ny = c->batch * c->out * out_pixels, nw = c->out * c->in * 9;
    const ref_conv r = {c->batch, c->in, c->height, c->width, c->out, p.out_height, p.out_width, 1, 3, 1, c->pad, 1};
    float *x = numbers(nx, false, 1), *w = numbers(nw, false, 2), *b = numbers(c->out, false, 3);
    float *gy = numbers(ny, false, 4);
    float *ey = floats(ny), *egx = floats(nx), *egw = floats(nw), *egb = floats(c->out);
    ref_conv_forward(&r, x, w, c->bias ? b : NULL, ey);
    if (c->relu)
        ref_relu(ey, ny);
    ref_conv_backward_data(&r, gy, w, egx);
    ref_conv_backward_weights(&r, x, gy, egw, egb);

    float *sx = blocked(x, c->batch, c->in, in_pixels), *sgy = blocked(gy, c->batch, c->out, out_pixels);
    float *sw = floats(nw), *sgw = dirty_floats(nw), *gw = floats(nw), *gb = dirty_floats(c->out);
    for (int64_t i = 0; i < nw; i++)
        sw[weight_at(i, c->in)] = w[i];

    float *transformed = dirty_floats(winograd_weights_floats(&p));
    float *whole = dirty_floats(ny), *parts = dirty_floats(ny), *gx = dirty_floats(nx);
    float *room = dirty_floats(winograd_room_floats(&p, false));
    winograd_weights(&p, false, sw, transformed);
    winograd_convolve(&p, false, sx, transformed, c->bias ? b : NULL, whole, 0, c->batch, room);
    compare("y", c, ey, plain_of(whole, c->batch, c->out, out_pixels), ny);
    for (int64_t n = 0; n < c->batch; n++)
        winograd_convolve(&p, false, sx, transformed, c->bias ? b : NULL, parts, n, n + 1, room);
    assert_memory_equal(whole, parts, (size_t)ny * sizeof *whole);

    room = dirty_floats(winograd_room_floats(&p, true));
    winograd_weights(&p, true, sw, transformed);
    winograd_convolve(&p, true, sgy, transformed, NULL, gx, 0, c->batch, room);
    compare("gx", c, egx, plain_of(gx, c->batch, c->in, in_pixels), nx);

    const int64_t all = winograd_sums_floats(&p), half = c->batch / 2;
    float *sums = dirty_floats(2 * all), *again = dirty_floats(nw);
    room = dirty_floats(winograd_gradient_room_floats(&p));
    for (int count = 1; count <= 2; count++) { /* in one part, in two */
        winograd_gradient(&p, sx, sgy, 0, count == 1 ? c->batch : half, sums, room);
        if (count == 2)
            winograd_gradient(&p, sx, sgy, half, c->batch, sums + all, room);
        winograd_gradient_end(&p, sums, count, sgw, gb);
        for (int64_t i = 0; i < nw; i++)
            gw[i] = sgw[weight_at(i, c->in)];
        compare("gw", c, egw, gw, nw);
        compare("gb", c, egb, gb, c->out);
    }
    winograd_gradient(&p, sx, sgy, 0, half, sums, room);
    winograd_gradient(&p, sx, sgy, half, c->batch, sums + all, room);
    winograd_gradient_end(&p, sums, 2, again, NULL);
    assert_memory_equal(sgw, again, (size_t)nw * sizeof *again);
}

static void test_passes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static bool wins(int64_t batch, int64_t size)
{
    const winograd16 p = shape_of(&(wino_case){batch, 16, size, size, 16, 1, false, false});
    return winograd_wins(&p);
}

/* The rule of winograd.h. */
static void test_rule(void **state)
{
    (void)state;
    const bool fast = wins(128, 32); /* the library was built for AVX-512 */
    assert_int_equal(wins(128, 4), fast);
    assert_int_equal(wins(16, 6), fast);
    assert_int_equal(wins(1, 16), fast);
    assert_false(wins(128, 2));
    assert_false(wins(128, 5));
    assert_false(wins(1, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes),
        cmocka_unit_test(test_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
