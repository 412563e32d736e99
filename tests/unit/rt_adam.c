/* Adam and AdamW (core/adam.c) against the papers' algorithms, written out in double: Kingma and Ba 2015, algorithm 1;
 * Loshchilov and Hutter 2019, algorithm 2. And what a look-ahead reads. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/choices.h"

enum { N = 1003, STEPS = 40 };
static float w[N], g[N], m[N], s[N], to[N];
static double exact_w[N], exact_m[N], exact_s[N];

static pn_recipe recipe_of(const char *name, const pn_arg *arg, int nargs)
{
    static const pn_arg rate = {.number = 0.01};
    pn_program program = {.optimizer = {name, arg, nargs}, .lr = {"constant", &rate, 1}};
    pn_recipe recipe;
    recipe_resolve(&recipe, &program, STEPS);
    return recipe;
}

static void close_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-5 * (fabs(expected) + 0.1)))
        fail_msg("found %.9g, expected %.9g", found, expected);
}

static void begin(void)
{
    memset(m, 0, sizeof m);
    memset(s, 0, sizeof s);
    memset(exact_m, 0, sizeof exact_m);
    memset(exact_s, 0, sizeof exact_s);
    for (int i = 0; i < N; i++)
        exact_w[i] = w[i] = (float)pn_normal(1, (uint64_t)i);
}

/* One element of one step t = 1, 2, ...: the papers' lines. */
static void exact(int i, int t, double rate, double beta1, double beta2, double epsilon, double l2, double decoupled)
{
    double d = g[i] + l2 * exact_w[i];
    exact_m[i] = beta1 * exact_m[i] + (1 - beta1) * d;
    exact_s[i] = beta2 * exact_s[i] + (1 - beta2) * d * d;
    double m_hat = exact_m[i] / (1 - pow(beta1, t)), s_hat = exact_s[i] / (1 - pow(beta2, t));
    exact_w[i] -= rate * (m_hat / (sqrt(s_hat) + epsilon) + decoupled * exact_w[i]);
}

static void compare(const char *name, const pn_arg *arg, int nargs, double beta1, double beta2, double epsilon,
                    double l2, double decoupled)
{
    pn_recipe recipe = recipe_of(name, arg, nargs);
    begin();
    for (int t = 0; t < STEPS; t++) {
        double rate = 0.01 / (1 + 0.1 * t);
        for (int i = 0; i < N; i++)
            g[i] = i % 17 == 0 && t < 3 ? 0 : (float)(pn_normal(7 + (uint64_t)t, (uint64_t)i) * pow(10, i % 5 - 3));
        pn_terms terms = recipe.optimizer->terms(recipe.optimizer_value, t, rate);
        recipe.optimizer->update(recipe.optimizer_value, &terms, &(pn_block){N, w, g, {m, s}});
        for (int i = 0; i < N; i++) {
            exact(i, t + 1, rate, beta1, beta2, epsilon, l2, decoupled);
            close_to(w[i], exact_w[i]);
        }
    }
}

static void adam(void **state)
{
    (void)state;
    compare("adam", NULL, 0, 0.9, 0.999, 1e-8, 0, 0);
    const pn_arg arg[] = {{.key = "beta1", .number = 0.8},
                          {.key = "beta2", .number = 0.99},
                          {.key = "epsilon", .number = 1e-3},
                          {.key = "weight_decay", .number = 0.1}};
    compare("adam", arg, 4, 0.8, 0.99, 1e-3, 0.1, 0);
}

static void adamw(void **state)
{
    (void)state;
    compare("adamw", NULL, 0, 0.9, 0.999, 1e-8, 0, 0.01);
    const pn_arg arg[] = {{.key = "weight_decay", .number = 0.3}};
    compare("adamw", arg, 1, 0.9, 0.999, 1e-8, 0, 0.3);
}

/* Along the last direction; before the first update: the weights. */
static void look_ahead(void **state)
{
    (void)state;
    pn_recipe recipe = recipe_of("adam", NULL, 0);
    begin();
    pn_terms terms = recipe.optimizer->terms(recipe.optimizer_value, 0, 0.01);
    recipe.optimizer->ahead(recipe.optimizer_value, &terms, 5, &(pn_block){N, w, g, {m, s}}, to);
    assert_memory_equal(to, w, sizeof w);
    for (int t = 0; t < 3; t++) {
        for (int i = 0; i < N; i++)
            g[i] = (float)pn_normal(7 + (uint64_t)t, (uint64_t)i);
        terms = recipe.optimizer->terms(recipe.optimizer_value, t, 0.01);
        recipe.optimizer->update(recipe.optimizer_value, &terms, &(pn_block){N, w, g, {m, s}});
    }
    terms = recipe.optimizer->terms(recipe.optimizer_value, 3, 0.01);
    recipe.optimizer->ahead(recipe.optimizer_value, &terms, 5, &(pn_block){N, w, g, {m, s}}, to);
    for (int i = 0; i < N; i++) {
        double m_hat = m[i] / (1 - pow(0.9, 3)), s_hat = s[i] / (1 - pow(0.999, 3));
        close_to(to[i], w[i] - 0.01 * 5 * m_hat / (sqrt(s_hat) + 1e-8));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam),
        cmocka_unit_test(adamw),
        cmocka_unit_test(look_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
