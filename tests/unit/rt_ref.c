/* rt_ref.c: the verbs of target ref: each equals its kernel on the slots it is given, writes (and does not add),
 * applies a fused relu, gives its output a layout, and refuses a pointer that is no slot of its tensor, a label out of
 * range and an area that is too small. The kernels themselves are tested with the evaluator (ops.c, oracle.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ref/kernels.h"
#include "rt.h"

enum { ROOM = 512, SLOTS = 2 };

typedef struct {
    pn_program program;
    pn_run run;
    pn_stage_def def;
    pn_stage stage;
} World;

static World *world_new(void)
{
    World *w = pn_alloc(sizeof *w);
    w->run.program = &w->program;
    w->run.stage = &w->stage;
    w->run.seed = 7;
    w->stage.def = &w->def;
    w->stage.run = &w->run;
    return w;
}

static int64_t count(const pn_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

static pn_area area(int slots)
{
    return (pn_area){pn_alloc((int64_t)sizeof(float) * ROOM * slots), (int64_t)sizeof(float) * ROOM, slots, false};
}

static pn_tensor tensor(const char *name, int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    pn_tensor t = {.name = name, .rank = rank, .dim = {a, b, c, d}};
    assert_true(count(&t) <= ROOM);
    t.value = area(SLOTS);
    t.gradient = area(1);
    t.partial = area(1);
    t.test = area(1);
    return t;
}

/* Slot 1 of the values, filled with small integers; other contents of a slot a verb writes must not matter. */
static float *value(const pn_tensor *t)
{
    float *x = (float *)t->value.memory + ROOM;
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)((int)(pn_random((uint64_t)t->name[0], (uint64_t)i) % 7) - 3);
    return x;
}

static float *gradient(const pn_tensor *t)
{
    float *x = t->gradient.memory;
    for (int i = 0; i < ROOM; i++)
        x[i] = (float)((int)(pn_random((uint64_t)t->name[0] + 99, (uint64_t)i) % 5) - 2);
    return x;
}

static void same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        assert_true(a[i] == b[i]);
}

static float weights[ROOM], bias[ROOM], gw[ROOM], gb[ROOM], wanted[ROOM], wanted_too[ROOM];

static void fill_weights(void)
{
    for (int i = 0; i < ROOM; i++) {
        weights[i] = (float)(i * 7 % 3 - 1);
        bias[i] = (float)(i % 5 - 2);
        gw[i] = gb[i] = 1000;
    }
}

static void conv(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor x = tensor("x", 4, 2, 4, 5, 5), y = tensor("y", 4, 2, 6, 3, 3);
    const ref_conv shape = {2, 4, 5, 5, 6, 3, 3, 2, 3, 2, 1, 1};
    fill_weights();
    pn_op *op = pn_conv_init(&w->stage, &(pn_conv_def){.name = "conv1",
                                                       .x = &x,
                                                       .y = &y,
                                                       .groups = 2,
                                                       .kernel = 3,
                                                       .stride = 2,
                                                       .pad = 1,
                                                       .dilation = 1,
                                                       .relu = true,
                                                       .data_gradient = true});
    assert_non_null(y.layout);
    assert_int_equal(pn_tensor_floats(&y), 2 * 6 * 9);
    pn_conv_forward(op, value(&x), weights, bias, value(&y));
    ref_conv_forward(&shape, (float *)x.value.memory + ROOM, weights, bias, wanted);
    ref_relu(wanted, count(&y));
    same((float *)y.value.memory + ROOM, wanted, count(&y));
    pn_conv_backward_data(op, gradient(&y), weights, gradient(&x));
    ref_conv_backward_data(&shape, y.gradient.memory, weights, wanted);
    same(x.gradient.memory, wanted, count(&x));
    pn_conv_backward_weights(op, (float *)x.value.memory + ROOM, y.gradient.memory, gw, gb);
    ref_conv_backward_weights(&shape, (float *)x.value.memory + ROOM, y.gradient.memory, wanted, wanted_too);
    same(gw, wanted, 6 * 2 * 9);
    same(gb, wanted_too, 6);
}

static void linear(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 2, 2, 2), y = tensor("y", 2, 3, 5, 0, 0);
    fill_weights();
    pn_op *op = pn_linear_init(&w->stage,
                               &(pn_linear_def){.name = "fc", .x = &x, .y = &y, .relu = true, .data_gradient = true});
    pn_linear_forward(op, value(&x), weights, bias, value(&y));
    ref_linear_forward(3, 8, 5, (float *)x.value.memory + ROOM, weights, bias, wanted);
    ref_relu(wanted, 15);
    same((float *)y.value.memory + ROOM, wanted, 15);
    pn_linear_backward_data(op, gradient(&y), weights, x.partial.memory);
    ref_linear_backward_data(3, 8, 5, y.gradient.memory, weights, wanted);
    same(x.partial.memory, wanted, 24);
    pn_linear_backward_weights(op, (float *)x.value.memory + ROOM, y.gradient.memory, gw, gb);
    ref_linear_backward_weights(3, 8, 5, (float *)x.value.memory + ROOM, y.gradient.memory, wanted, wanted_too);
    same(gw, wanted, 40);
    same(gb, wanted_too, 5);
}

static void pools(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor x = tensor("x", 4, 2, 3, 5, 6), y = tensor("y", 4, 2, 3, 3, 3);
    const ref_pool shape = {6, 5, 6, 3, 3, 3, 3, 2, 1, false};
    static uint8_t argmax[64];
    const pn_pool_def def = {.name = "pool",
                             .x = &x,
                             .y = &y,
                             .kernel_h = 3,
                             .kernel_w = 3,
                             .stride = 2,
                             .pad = 1,
                             .relu = true,
                             .argmax = {argmax, sizeof argmax, 1, false}};
    pn_op *op = pn_maxpool_init(&w->stage, &def);
    pn_maxpool_forward(op, value(&x), value(&y), argmax);
    uint8_t winners[64];
    ref_maxpool_forward(&shape, (float *)x.value.memory + ROOM, wanted, winners);
    assert_memory_equal(winners, argmax, 54);
    ref_relu(wanted, 54);
    same((float *)y.value.memory + ROOM, wanted, 54);
    pn_maxpool_backward(op, gradient(&y), argmax, gradient(&x));
    ref_maxpool_backward(&shape, y.gradient.memory, winners, wanted);
    same(x.gradient.memory, wanted, count(&x));
    pn_maxpool_forward(op, value(&x), y.test.memory, NULL);
    same(y.test.memory, (float *)y.value.memory + ROOM, 54);

    pn_op *mean = pn_avgpool_init(&w->stage, &def);
    pn_avgpool_forward(mean, value(&x), value(&y));
    ref_avgpool_forward(&shape, (float *)x.value.memory + ROOM, wanted);
    same((float *)y.value.memory + ROOM, wanted, 54);
    pn_avgpool_backward(mean, gradient(&y), gradient(&x));
    ref_avgpool_backward(&shape, y.gradient.memory, wanted);
    same(x.gradient.memory, wanted, count(&x));
}

static void square(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * x[i];
}

static void square_back(const float *restrict x, const float *restrict gy, float *restrict gx, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gx[i] = 2 * x[i] * gy[i];
}

static void maps(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor a = tensor("a", 4, 2, 2, 3, 3), b = tensor("b", 4, 2, 2, 3, 3), c = tensor("c", 4, 2, 1, 3, 3);
    pn_tensor y = tensor("y", 4, 2, 2, 3, 3), joined = tensor("j", 4, 2, 3, 3, 3), flat = tensor("f", 2, 2, 18, 0, 0);
    float *va = value(&a), *vb = value(&b), *vc = value(&c), *vy = value(&y), *gy = gradient(&y);

    pn_op *op = pn_pointwise_init(
        &w->stage,
        &(pn_pointwise_def){
            .name = "square", .x = &a, .y = &y, .forward = square, .backward = square_back, .reads_x = true});
    pn_pointwise_forward(op, va, vy);
    pn_pointwise_backward(op, va, gy, a.gradient.memory);
    for (int i = 0; i < 36; i++)
        assert_true(vy[i] == va[i] * va[i] && ((float *)a.gradient.memory)[i] == 2 * va[i] * gy[i]);

    op = pn_add_init(&w->stage, &(pn_add_def){.name = "add", .a = &a, .b = &b, .y = &y, .relu = true});
    pn_add_forward(op, va, vb, vy);
    for (int i = 0; i < 36; i++)
        assert_true(vy[i] == (va[i] + vb[i] > 0 ? va[i] + vb[i] : 0));
    pn_relu_mask(&y, vy, gy);
    pn_add_backward(op, 1, gy, b.gradient.memory);
    for (int i = 0; i < 36; i++)
        assert_true(((float *)b.gradient.memory)[i] == gy[i] && (vy[i] > 0 || gy[i] == 0));

    op = pn_concat_init(&w->stage, &(pn_concat_def){.name = "concat", .x = {&a, &c}, .count = 2, .y = &joined});
    float *vj = value(&joined), *gj = gradient(&joined);
    pn_concat_forward(op, 0, va, vj);
    pn_concat_forward(op, 1, vc, vj);
    pn_concat_backward(op, 0, gj, gradient(&a));
    pn_concat_backward(op, 1, gj, gradient(&c));
    for (int n = 0; n < 2; n++) {
        same(vj + 27 * n, va + 18 * n, 18);
        same(vj + 27 * n + 18, vc + 9 * n, 9);
        same(gj + 27 * n, (float *)a.gradient.memory + 18 * n, 18);
        same(gj + 27 * n + 18, (float *)c.gradient.memory + 9 * n, 9);
    }

    op = pn_flatten_init(&w->stage, &(pn_flatten_def){.name = "flatten", .x = &a, .y = &flat});
    pn_flatten_forward(op, va, value(&flat));
    same((float *)flat.value.memory + ROOM, va, 36);
    pn_flatten_backward(op, gradient(&flat), a.gradient.memory);
    same(a.gradient.memory, flat.gradient.memory, 36);

    uint8_t mask[36];
    op = pn_dropout_init(&w->stage, &(pn_dropout_def){.name = "drop", .x = &a, .y = &y, .probability = 0.5});
    pn_dropout_forward(op, 12, va, vy, mask);
    pn_dropout_backward(op, gradient(&y), mask, a.gradient.memory);
    const uint64_t key = pn_dropout_key(7, "drop", 12);
    for (int i = 0; i < 36; i++) {
        assert_int_equal(mask[i], pn_uniform(key, (uint64_t)i) >= 0.5);
        assert_true(vy[i] == 2 * mask[i] * va[i] && ((float *)a.gradient.memory)[i] == 2 * mask[i] * gy[i]);
    }
    pn_dropout_test(op, va, y.test.memory);
    same(y.test.memory, va, 36);

    pn_copy(&a, vy, va);
    pn_accumulate(&a, vy, va);
    for (int i = 0; i < 36; i++)
        assert_true(vy[i] == 2 * va[i]);
}

static void loss_gradients(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor x = tensor("x", 2, 4, 3, 0, 0), t = tensor("t", 2, 4, 3, 0, 0), label = tensor("l", 1, 4, 0, 0, 0);
    const int32_t labels[4] = {2, 0, 1, 1};
    memcpy(label.value.memory, labels, sizeof labels);
    float *vx = value(&x), *vt = value(&t), *gx = gradient(&x);
    pn_op *op = pn_mse_init(&w->stage, &(pn_loss_def){.name = "mse", .x = &x, .target = &t});
    for (int input = 0; input < 2; input++) {
        float *g = input == 0 ? gx : t.gradient.memory;
        pn_mse_backward(op, vx, vt, input, g);
        for (int i = 0; i < 12; i++)
            assert_true(g[i] == (input == 0 ? vx[i] - vt[i] : vt[i] - vx[i]) / 4);
    }
    op = pn_mse_init(&w->stage, &(pn_loss_def){.name = "mse", .x = &x, .target = &label});
    pn_mse_backward(op, vx, label.value.memory, 0, gx);
    for (int i = 0; i < 12; i++)
        assert_true(gx[i] == (vx[i] - (i % 3 == labels[i / 3])) / 4);
    op = pn_softmax_cross_entropy_init(&w->stage, &(pn_loss_def){.name = "loss", .x = &x, .target = &label});
    static const float probability[12] = {0.5f, 0.25f, 0.25f, 1, 0, 0, 0, 1, 0, 0.25f, 0.5f, 0.25f};
    pn_softmax_cross_entropy_backward(op, probability, label.value.memory, gx);
    for (int i = 0; i < 12; i++)
        assert_true(gx[i] == (probability[i] - (i % 3 == labels[i / 3])) / 4);
}

static void params(void **state)
{
    (void)state;
    const pn_param param = {.name = "w", .rank = 2, .dim = {3, 4}, .room = 16};
    float plain[13] = {0}, stored[16];
    fill_weights();
    pn_param_from_plain(&param, weights, stored);
    plain[12] = 77;
    pn_param_to_plain(&param, stored, plain);
    same(plain, weights, 12);
    assert_true(plain[12] == 77);
    assert_string_equal(pn_target_name, "ref");
}

/* Runs `act`; the error it must end with. */
static void fails(World *w, void (*act)(World *), const char *text)
{
    atomic_store(&w->run.failing, 0);
    atomic_store(&w->run.stop, 0);
    if (setjmp(w->stage.escape) == 0) {
        act(w);
        fail_msg("no error: wanted %s", text);
    }
    if (strstr(w->run.error, text) == NULL)
        fail_msg("wanted \"%s\", got \"%s\"", text, w->run.error);
}

static pn_tensor ex, ey, elabel;

static void wrong_pointer(World *w)
{
    pn_op *op = pn_flatten_init(&w->stage, &(pn_flatten_def){.name = "flat", .x = &ex, .y = &ey});
    pn_flatten_forward(op, (float *)ex.value.memory + 1, ey.value.memory);
}

static void wrong_role(World *w)
{
    pn_op *op = pn_flatten_init(&w->stage, &(pn_flatten_def){.name = "flat", .x = &ex, .y = &ey});
    pn_flatten_backward(op, ey.gradient.memory, ex.value.memory);
}

static void wrong_label(World *w)
{
    pn_op *op = pn_softmax_cross_entropy_init(&w->stage, &(pn_loss_def){.name = "loss", .x = &ey, .target = &elabel});
    ((int32_t *)elabel.value.memory)[1] = 9;
    pn_softmax_cross_entropy_forward(op, 0, ey.value.memory, elabel.value.memory, wanted);
}

static void too_small(World *w)
{
    pn_tensor small = ex;
    small.test.bytes = 4;
    pn_flatten_init(&w->stage, &(pn_flatten_def){.name = "flat", .x = &small, .y = &ey});
}

static void errors(void **state)
{
    (void)state;
    World *w = world_new();
    ex = tensor("image", 4, 2, 1, 3, 3);
    ey = tensor("y", 2, 2, 9, 0, 0);
    elabel = tensor("label", 1, 2, 0, 0, 0);
    fails(w, wrong_pointer, "flat: a pointer is no slot of the value of image");
    fails(w, wrong_role, "flat: a pointer is no slot of the gradient of image");
    fails(w, wrong_label, "loss: label 9 of sample 1 is not below 9");
    fails(w, too_small, "flat: the test value of image has 4 bytes, needs 72");
}

/* Batch normalisation through the verbs: statistics into the slot given, running ones moved by track, test with those.
 */
static void norm(void **state)
{
    (void)state;
    World *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 4, 2, 5), y = tensor("y", 4, 3, 4, 2, 5), skip = tensor("skip", 4, 3, 4, 2, 5);
    const ref_channels all = {3, 4, 10};
    static float slots[SLOTS][8], running[2][4], expected[2][4];
    fill_weights();
    pn_op *op = pn_batch_norm_init(&w->stage, &(pn_batch_norm_def){.name = "norm1",
                                                                   .x = &x,
                                                                   .y = &y,
                                                                   .skip = &skip,
                                                                   .epsilon = 1e-3,
                                                                   .momentum = 0.25,
                                                                   .statistics = PN_RING(slots),
                                                                   .relu = true});
    assert_non_null(y.layout);
    const float *in = value(&x), *add = value(&skip);
    float masked[ROOM], mean[4], variance[4];
    ref_norm_statistics(&all, in, mean, variance);
    pn_batch_norm_forward(op, in, add, weights, bias, slots[1], value(&y));
    same(slots[1], mean, 4);
    same(slots[1] + 4, variance, 4);
    ref_norm_forward(&all, 1e-3, in, weights, bias, mean, variance, wanted);
    ref_accumulate(wanted, add, count(&y));
    ref_relu(wanted, count(&y));
    same((float *)y.value.memory + ROOM, wanted, count(&y));
    ref_relu_mask((float *)y.value.memory + ROOM, gradient(&y), count(&y));
    memcpy(masked, y.gradient.memory, sizeof masked);
    pn_batch_norm_backward(op, in, (float *)y.value.memory + ROOM, gradient(&y), weights, slots[1], gradient(&x),
                           gradient(&skip), gw, gb);
    same(skip.gradient.memory, masked, count(&y));
    ref_norm_backward(&all, 1e-3, in, masked, weights, mean, variance, wanted, wanted_too, wanted_too + 4);
    same(x.gradient.memory, wanted, count(&x));
    same(gw, wanted_too, 4);
    same(gb, wanted_too + 4, 4);
    for (int k = 0; k < 4; k++) {
        running[1][k] = 1;
        expected[0][k] = 0.25f * mean[k];
        expected[1][k] = 0.75f + 0.25f * variance[k] * 30 / 29; /* unbiased */
    }
    pn_batch_norm_track(op, slots[1], running[0], running[1]);
    for (int k = 0; k < 8; k++)
        assert_true(fabsf(running[k / 4][k % 4] - expected[k / 4][k % 4]) <= 1e-6f);
    pn_batch_norm_test(op, in, add, weights, bias, running[0], running[1], value(&y));
    ref_norm_forward(&all, 1e-3, in, weights, bias, running[0], running[1], wanted);
    ref_accumulate(wanted, add, count(&y));
    ref_relu(wanted, count(&y));
    same((float *)y.value.memory + ROOM, wanted, count(&y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv), cmocka_unit_test(linear),         cmocka_unit_test(pools),  cmocka_unit_test(maps),
        cmocka_unit_test(norm), cmocka_unit_test(loss_gradients), cmocka_unit_test(params), cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests_name("rt_ref", tests, NULL, NULL);
}
