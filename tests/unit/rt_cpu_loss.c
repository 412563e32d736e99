/* rt_cpu_loss.c: gradients of the losses of target cpu where x or the target is in blocks of channels, and what happens
 * to a pointer that is none of an op's slots. */
#include "rt_cpu_world.h"

/* ---- mean squared error ---- */
static void mse_check(int block_x, int block_target)
{
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 6, 4, 5), t = tensor("t", 4, 3, 6, 4, 5);
    const int64_t n = elements(4, x.dim);
    if (block_x)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block_x));
    if (block_target)
        cpu_choose(&w->stage, &t, dnn_blocked(t.dim, block_target));
    pn_op *op = pn_mse_init(&w->stage, &(pn_loss_def){"mse", &x, &t});
    world_ready(w);
    float *px = numbers(n, false, 1), *pt = numbers(n, false, 2), *expected = floats(n);
    dirty(&x.gradient);
    dirty(&t.gradient);
    put(&x, px, slot(&x.value, 2));
    put(&t, pt, slot(&t.value, 1));
    float *gx = slot(&x.gradient, 0), *gt = slot(&t.gradient, 0);
    pn_mse_backward(op, slot(&x.value, 2), slot(&t.value, 1), 0, gx);
    pn_mse_backward(op, slot(&x.value, 2), slot(&t.value, 1), 1, gt);
    ref_mse_backward(3, 3, n / 3, px, pt, NULL, 1.0f, expected);
    same("gx", expected, get(&x, gx), n, true);
    lanes_are_zero("gx", &x, gx);
    ref_mse_backward(3, 3, n / 3, px, pt, NULL, -1.0f, expected);
    same("gradient of the target", expected, get(&t, gt), n, true);
    lanes_are_zero("gradient of the target", &t, gt);
}

static void test_mse(void **state)
{
    (void)state;
    mse_check(0, 0);
    mse_check(16, 0);
    mse_check(0, 16);
    mse_check(16, 16);
}

static void test_mse_of_labels(void **state)
{
    (void)state;
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 10, 1, 1), t = {.name = "label", .rank = 1, .dim = {3}};
    const int32_t label[3] = {9, 0, 4};
    cpu_choose(&w->stage, &x, dnn_blocked(x.dim, 16));
    pn_op *op = pn_mse_init(&w->stage, &(pn_loss_def){"mse", &x, &t});
    world_ready(w);
    float *px = numbers(30, false, 1), *expected = floats(30);
    put(&x, px, slot(&x.value, 0));
    dirty(&x.gradient);
    pn_mse_backward(op, slot(&x.value, 0), label, 0, slot(&x.gradient, 0));
    ref_mse_backward(3, 3, 10, px, NULL, label, 1.0f, expected);
    same("gx", expected, get(&x, slot(&x.gradient, 0)), 30, true);
    lanes_are_zero("gx", &x, slot(&x.gradient, 0));
}

/* ---- softmax cross entropy behind a global pooling: classes in blocks ---- */
static void test_cross_entropy(void **state)
{
    (void)state;
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 3, 10, 1, 1), t = {.name = "label", .rank = 1, .dim = {3}};
    const int32_t label[3] = {9, 0, 4};
    cpu_choose(&w->stage, &x, dnn_blocked(x.dim, 16));
    pn_op *op = pn_softmax_cross_entropy_init(&w->stage, &(pn_loss_def){"loss", &x, &t});
    world_ready(w);
    float *probability = floats(30), *expected = floats(30);
    int64_t correct;
    (void)ref_softmax_cross_entropy(3, 10, numbers(30, false, 1), label, probability, &correct);
    dirty(&x.gradient);
    pn_softmax_cross_entropy_backward(op, probability, label, slot(&x.gradient, 0));
    ref_softmax_cross_entropy_backward(3, 3, 10, probability, label, expected);
    same("gx", expected, get(&x, slot(&x.gradient, 0)), 30, true);
    lanes_are_zero("gx", &x, slot(&x.gradient, 0));
}

/* ---- a wrong pointer is an internal error that names op and argument; nothing is calculated ---- */
static void test_wrong_pointer(void **state)
{
    (void)state;
    world *w = world_new();
    pn_tensor x = tensor("x", 4, 2, 16, 4, 4), y = tensor("y", 4, 2, 16, 4, 4);
    pn_param weight = param("weight", 4, 16, 16, 1, 1, 0);
    pn_op *op = pn_conv_init(&w->stage, &(pn_conv_def){"conv9", &x, &y, &weight, NULL, 1, 1, 1, 0, 1, false, false});
    world_ready(w);
    const float *const wrong[] = {slot(&x.value, 1) + 1, (float *)((char *)x.value.memory + SLOTS * x.value.bytes)};
    for (int i = 0; i < 2; i++) {
        dirty(&y.value);
        w->run.failing = w->run.stop = 0;
        if (setjmp(w->stage.escape) == 0) {
            pn_conv_forward(op, wrong[i], w->def.weights, NULL, slot(&y.value, 0));
            fail_msg("a pointer that is no slot was taken");
        }
        assert_non_null(strstr(w->run.error, "internal error: conv9: the pointer given for x"));
        assert_int_equal(*(const char *)y.value.memory, 0x41);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mse),
        cmocka_unit_test(test_mse_of_labels),
        cmocka_unit_test(test_cross_entropy),
        cmocka_unit_test(test_wrong_pointer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
