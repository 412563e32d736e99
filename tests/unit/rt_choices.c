/* Learning-rate policies and the optimiser against values worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/choices.h"

static const pn_choice sgd = {"sgd", NULL, 0};

static pn_recipe with_rate(pn_choice lr, int64_t steps, int64_t warmup)
{
    pn_program program = {.optimizer = sgd, .lr = lr, .warmup = warmup};
    pn_recipe recipe;
    recipe_resolve(&recipe, &program, steps);
    return recipe;
}

static void assert_rate(const pn_recipe *recipe, int64_t t, double expected)
{
    double rate = recipe_rate(recipe, t);
    if (fabs(rate - expected) > 1e-12 * fabs(expected) + 1e-18)
        fail_msg("rate at %lld is %.17g, not %.17g", (long long)t, rate, expected);
}

static void constant_and_warmup(void **state)
{
    (void)state;
    pn_arg arg[] = {{.number = 0.5}};
    pn_recipe recipe = with_rate((pn_choice){"constant", arg, 1}, 100, 4);
    assert_rate(&recipe, 0, 0.125);
    assert_rate(&recipe, 1, 0.25);
    assert_rate(&recipe, 3, 0.5);
    assert_rate(&recipe, 4, 0.5);
    assert_rate(&recipe, 99, 0.5);
}

static void inv(void **state)
{
    (void)state;
    pn_arg arg[] = {{.number = 0.01}, {.key = "power", .number = 0.5}};
    pn_recipe recipe = with_rate((pn_choice){"inv", arg, 2}, 100, 0); /* gamma 1e-4 by default */
    assert_rate(&recipe, 0, 0.01);
    assert_rate(&recipe, 30000, 0.005);
}

static void step(void **state)
{
    (void)state;
    pn_arg arg[] = {{.key = "every", .number = 10}, {.key = "lr", .number = 8}, {.key = "gamma", .number = 0.5}};
    pn_recipe recipe = with_rate((pn_choice){"step", arg, 3}, 100, 0);
    assert_rate(&recipe, 9, 8);
    assert_rate(&recipe, 10, 4);
    assert_rate(&recipe, 35, 1);
}

static void multistep(void **state)
{
    (void)state;
    static const double at[] = {10, 20};
    pn_arg arg[] = {{.number = 1}, {.key = "at", .list = at, .nlist = 2}};
    pn_recipe recipe = with_rate((pn_choice){"multistep", arg, 2}, 100, 0); /* gamma 0.1 by default */
    assert_rate(&recipe, 9, 1);
    assert_rate(&recipe, 10, 0.1);
    assert_rate(&recipe, 20, 0.01);
}

static void poly_and_cosine(void **state)
{
    (void)state;
    pn_arg arg[] = {{.number = 2}, {.key = "power", .number = 2}};
    pn_recipe recipe = with_rate((pn_choice){"poly", arg, 2}, 100, 0);
    assert_rate(&recipe, 0, 2);
    assert_rate(&recipe, 50, 0.5);
    assert_rate(&recipe, 100, 0);
    recipe = with_rate((pn_choice){"cosine", arg, 1}, 100, 0);
    assert_rate(&recipe, 0, 2);
    assert_rate(&recipe, 50, 1);
    assert_true(recipe_rate(&recipe, 99) > 0);
    assert_rate(&recipe, 100, 0);
}

static pn_recipe with_sgd(const pn_arg *arg, int nargs)
{
    static const pn_arg rate = {.number = 1};
    pn_program program = {.optimizer = {"sgd", arg, nargs}, .lr = {"constant", &rate, 1}};
    pn_recipe recipe;
    recipe_resolve(&recipe, &program, 1);
    return recipe;
}

static void update(const pn_recipe *recipe, double rate, int64_t n, float *w, float *next, const float *g, float *v)
{
    recipe->optimizer->update(recipe->optimizer_value, rate, n, w, next, g, v);
}

/* Powers of two: every step is exact. */
static void sgd_with_momentum_and_decay(void **state)
{
    (void)state;
    pn_arg arg[] = {{.key = "momentum", .number = 0.5}, {.key = "weight_decay", .number = 0.25}};
    pn_recipe recipe = with_sgd(arg, 2);
    float w = 8, v = 0, g = 2;
    update(&recipe, 0.5, 1, &w, &w, &g, &v); /* d = 2 + 2 = 4; v = 4; w = 8 - 2 */
    assert_true(v == 4 && w == 6);
    update(&recipe, 0.5, 1, &w, &w, &g, &v); /* d = 2 + 1.5; v = 2 + 3.5; w = 6 - 2.75 */
    assert_true(v == 5.5f && w == 3.25f);
}

static void sgd_nesterov(void **state)
{
    (void)state;
    pn_arg arg[] = {{.key = "momentum", .number = 0.5}, {.key = "nesterov", .text = "true"}};
    pn_recipe recipe = with_sgd(arg, 2);
    float w = 8, v = 4, g = 2;
    update(&recipe, 0.5, 1, &w, &w, &g, &v); /* v = 2 + 2 = 4; w = 8 - 0.5 (2 + 2) */
    assert_true(v == 4 && w == 6);
}

/* Another slot for the new version: the old one stays, the new one has the same bits as an update in place. */
static void sgd_to_another_version(void **state)
{
    (void)state;
    enum { N = 10007 };
    static float old[N], kept[N], next[N], g[N], v[N], in_place[N], v2[N];
    for (int i = 0; i < N; i++) {
        old[i] = kept[i] = in_place[i] = (float)pn_normal(1, (uint64_t)i);
        g[i] = (float)pn_normal(2, (uint64_t)i);
        v[i] = v2[i] = (float)pn_normal(3, (uint64_t)i);
    }
    pn_arg arg[] = {{.key = "momentum", .number = 0.9}, {.key = "weight_decay", .number = 5e-4}};
    pn_recipe recipe = with_sgd(arg, 2);
    update(&recipe, 0.01, N, old, next, g, v);
    update(&recipe, 0.01, N, in_place, in_place, g, v2);
    assert_memory_equal(old, kept, sizeof old);
    assert_memory_equal(next, in_place, sizeof next);
    assert_memory_equal(v, v2, sizeof v);
    assert_true(next[N - 1] != kept[N - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_and_warmup),
        cmocka_unit_test(inv),
        cmocka_unit_test(step),
        cmocka_unit_test(multistep),
        cmocka_unit_test(poly_and_cosine),
        cmocka_unit_test(sgd_with_momentum_and_decay),
        cmocka_unit_test(sgd_nesterov),
        cmocka_unit_test(sgd_to_another_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
