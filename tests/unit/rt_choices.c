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

static void update(const pn_recipe *recipe, double rate, int64_t n, float *w, const float *g, float *v)
{
    pn_terms terms = recipe->optimizer->terms(recipe->optimizer_value, 0, rate);
    recipe->optimizer->update(recipe->optimizer_value, &terms, &(pn_block){n, w, g, {v}});
}

/* Powers of two: every step is exact. */
static void sgd_with_momentum_and_decay(void **state)
{
    (void)state;
    pn_arg arg[] = {{.key = "momentum", .number = 0.5}, {.key = "weight_decay", .number = 0.25}};
    pn_recipe recipe = with_sgd(arg, 2);
    float w = 8, v = 0, g = 2;
    update(&recipe, 0.5, 1, &w, &g, &v); /* d = 2 + 2 = 4; v = 4; w = 8 - 2 */
    assert_true(v == 4 && w == 6);
    update(&recipe, 0.5, 1, &w, &g, &v); /* d = 2 + 1.5; v = 2 + 3.5; w = 6 - 2.75 */
    assert_true(v == 5.5f && w == 3.25f);
}

static void sgd_nesterov(void **state)
{
    (void)state;
    pn_arg arg[] = {{.key = "momentum", .number = 0.5}, {.key = "nesterov", .text = "true"}};
    pn_recipe recipe = with_sgd(arg, 2);
    float w = 8, v = 4, g = 2;
    update(&recipe, 0.5, 1, &w, &g, &v); /* v = 2 + 2 = 4; w = 8 - 0.5 (2 + 2) */
    assert_true(v == 4 && w == 6);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
