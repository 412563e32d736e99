/* What corrects for staleness (core/update.c): the closed forms against step-by-step simulations in double, weights
 * read ahead, versions, blocks, and what must not change. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/choices.h"
#include "core/stage.h"
#include "core/update.h"

enum { N = 10007, STATES = 3, SLOTS = 3 }; /* more than two blocks */

static float weights[SLOTS][N], gradient[N], state[STATES][N], ahead[2][N];
static pn_cure cure[2];
static pn_stage_def def;
static pn_phase phase[2];
static pn_program program;
static pn_run run;
static pn_recipe recipe;
static pn_stage stage;
static int64_t read_version[8];

/* One stage alone, with weights and gradients by seed. */
static void begin(const pn_arg *arg, int nargs, double rate, int64_t steps, int versions, int states)
{
    static pn_arg lr;
    lr = (pn_arg){.number = rate};
    memset(state, 0, sizeof state);
    memset(cure, 0, sizeof cure);
    def = (pn_stage_def){.weights = weights[0], .versions = versions, .states = states, .weight_floats = N, .ring = 8};
    def.gradient = gradient;
    def.state = state[0];
    def.ahead = ahead[0];
    def.cure = cure;
    program = (pn_program){.phase = phase, .nphases = 2, .nstages = 1, .optimizer = {"sgd", arg, nargs}};
    program.lr = (pn_choice){"constant", &lr, 1};
    run = (pn_run){.program = &program, .steps = steps, .stage = &stage};
    recipe_resolve(&recipe, &program, steps);
    run.recipe = &recipe;
    stage = (pn_stage){.def = &def, .run = &run, .phase = phase, .ahead_version = -1, .read_version = read_version};
    update_begin(&stage);
    for (int i = 0; i < N; i++)
        weights[0][i] = (float)pn_normal(1, (uint64_t)i);
}

static void new_gradient(int64_t t)
{
    for (int i = 0; i < N; i++)
        gradient[i] = (float)pn_normal(100 + (uint64_t)t, (uint64_t)i);
}

static const pn_arg momentum_and_decay[] = {{.key = "momentum", .number = 0.9},
                                            {.key = "weight_decay", .number = 5e-4}};
static const pn_arg momentum_only[] = {{.key = "momentum", .number = 0.9}};

static void close_to(double found, double expected, double scale)
{
    if (!(fabs(found - expected) <= 2e-6 * (fabs(expected) + scale)))
        fail_msg("found %.9g, expected %.9g", found, expected);
}

/* ---- without a cure ---- */

/* Another slot for the new version: the old one stays, the new one has the same bits as an update in place. */
static void another_version_has_the_same_bits(void **unused)
{
    (void)unused;
    static float in_place[N], first[N], velocity[N];
    begin(momentum_and_decay, 2, 0.01, 10, 1, 1);
    memcpy(first, weights[0], sizeof first);
    for (int64_t t = 0; t < 2; t++) {
        new_gradient(t);
        pn_update(&stage);
    }
    memcpy(in_place, weights[0], sizeof in_place);
    memcpy(velocity, state[0], sizeof velocity);
    begin(momentum_and_decay, 2, 0.01, 10, 3, 1);
    for (int64_t t = 0; t < 2; t++) {
        new_gradient(t);
        pn_update(&stage);
    }
    assert_memory_equal(weights[0], first, sizeof first);
    assert_memory_equal(weights[2], in_place, sizeof in_place);
    assert_memory_equal(state[0], velocity, sizeof velocity);
    assert_true(in_place[N - 1] != first[N - 1]);
}

/* No delay: an inactive row, a neutral one and no table at all give the bits of the optimiser alone. */
static void nothing_to_correct_changes_no_bit(void **unused)
{
    (void)unused;
    static float alone[N];
    for (int kind = 0; kind < 3; kind++) {
        begin(momentum_and_decay, 2, 0.05, 10, 1, 1);
        if (kind == 0)
            def.cure = NULL;
        if (kind == 2)
            cure[0] = (pn_cure){.active = true, .momentum = 0.9, .rate_factor = 1, .on_velocity = 1};
        for (int64_t t = 0; t < 3; t++) {
            assert_ptr_equal(pn_forward_weights(&stage, t), weights[0]);
            assert_ptr_equal(pn_backward_weights(&stage, t), weights[0]);
            new_gradient(t);
            pn_update(&stage);
        }
        if (kind == 0)
            memcpy(alone, weights[0], sizeof alone);
        assert_memory_equal(weights[0], alone, sizeof alone);
    }
}

/* ---- look-ahead ---- */

/* What the forward reads is where d updates without a gradient would lead, by the rate and momentum of the stage. */
static void look_ahead_is_where_the_velocity_leads(void **unused)
{
    (void)unused;
    const double rate = 0.1, factor = 1.0 / 3, m = 1 - 0.1 / 3;
    const int delay = 6;
    begin(momentum_only, 1, rate, 100, 1, 1);
    cure[0] = (pn_cure){.active = true, .momentum = m, .rate_factor = factor, .on_velocity = 1};
    cure[0].forward = m * (1 - pow(m, delay)) / (1 - m);
    stage.velocity_rate = factor;
    for (int64_t t = 0; t < 5; t++) {
        const float *read = pn_forward_weights(&stage, t);
        assert_ptr_equal(read, ahead[0]);
        for (int i = 0; i < N; i += 97) {
            double w = weights[0][i], v = state[0][i];
            for (int k = 0; k < delay; k++) {
                v *= m;
                w -= rate * factor * v;
            }
            close_to(read[i], w, 1);
        }
        assert_ptr_equal(pn_backward_weights(&stage, t), weights[0]);
        new_gradient(t);
        pn_update(&stage);
    }
}

/* Written by the update or by the first forward behind it: the same bits. */
static void look_ahead_does_not_depend_on_who_writes_it(void **unused)
{
    (void)unused;
    static float by_update[N];
    begin(momentum_and_decay, 2, 0.1, 100, 1, 1);
    cure[0] = (pn_cure){.active = true,
                        .momentum = 0.9,
                        .rate_factor = 1,
                        .on_velocity = 1,
                        .forward = 4.5,
                        .divisor = 3,
                        .reschedule = 0.5,
                        .reschedule_most = 1000};
    new_gradient(0);
    pn_update(&stage);
    assert_true(stage.ahead_version == 1);
    memcpy(by_update, pn_forward_weights(&stage, 1), sizeof by_update);
    stage.ahead_version = -1;
    memset(ahead, 0, sizeof ahead);
    assert_memory_equal(pn_forward_weights(&stage, 1), by_update, sizeof by_update);
}

/* Nesterov's step takes m v + g: the same walk, one momentum further. */
static void look_ahead_of_nesterov(void **unused)
{
    (void)unused;
    const double rate = 0.05, m = 0.9;
    const int delay = 4;
    const pn_arg arg[] = {{.key = "momentum", .number = m}, {.key = "nesterov", .number = 1}};
    begin(arg, 2, rate, 100, 1, 1);
    cure[0] = (pn_cure){.active = true, .momentum = m, .rate_factor = 1, .on_velocity = m, .on_gradient = 1};
    cure[0].forward = m * m * (1 - pow(m, delay)) / (1 - m);
    new_gradient(0);
    pn_update(&stage);
    const float *read = pn_forward_weights(&stage, 1);
    for (int i = 0; i < N; i += 97) {
        double w = weights[0][i], v = state[0][i];
        for (int k = 0; k < delay; k++) {
            v *= m;
            w -= rate * m * v; /* g = 0 */
        }
        close_to(read[i], w, 1);
    }
}

static void both_directions_ahead(void **unused)
{
    (void)unused;
    begin(momentum_only, 1, 0.1, 100, 1, 1);
    cure[0] =
        (pn_cure){.active = true, .momentum = 0.9, .rate_factor = 1, .on_velocity = 1, .forward = 3, .backward = 1};
    new_gradient(0);
    pn_update(&stage);
    const float *forward = pn_forward_weights(&stage, 1), *backward = pn_backward_weights(&stage, 0);
    for (int i = 0; i < N; i += 97) {
        close_to(forward[i], weights[0][i] - 0.1 * 3 * state[0][i], 1);
        close_to(backward[i], weights[0][i] - 0.1 * 1 * state[0][i], 1);
    }
    assert_ptr_not_equal(forward, backward);
    assert_ptr_equal(pn_test_weights(&stage), weights[0]);
}

/* ---- rates ---- */

static void rate_is_rescheduled(void **unused)
{
    (void)unused;
    begin(momentum_only, 1, 0.2, 400, 1, 1);
    cure[0] = (pn_cure){.active = true,
                        .momentum = 0.9,
                        .rate_factor = 0.5,
                        .on_velocity = 1,
                        .divisor = 9,
                        .reschedule = 0.25,
                        .reschedule_most = 1000};
    close_to(update_rate(&stage, 0), 0.1 / 9, 0);
    close_to(update_rate(&stage, 50), 0.1 / 3, 0);
    close_to(update_rate(&stage, 75), 0.1 / pow(9, 0.25), 0);
    close_to(update_rate(&stage, 100), 0.1, 0);
    close_to(update_rate(&stage, 399), 0.1, 0);
    cure[0].reschedule_most = 50;
    close_to(update_rate(&stage, 0), 0.1 / 9, 0);
    close_to(update_rate(&stage, 25), 0.1 / 3, 0);
    close_to(update_rate(&stage, 50), 0.1, 0);
    cure[0] = (pn_cure){.active = true, .momentum = 0.9, .rate_factor = 1, .on_velocity = 1, .warmup = 0.1};
    close_to(update_rate(&stage, 0), 0.2 / 40, 0);
    close_to(update_rate(&stage, 38), 0.2 * 39 / 40, 0);
    close_to(update_rate(&stage, 39), 0.2, 0);
    stage.phase = &phase[1];
    close_to(update_rate(&stage, 0), 0.2, 0);
}

/* A phase with another rate_factor goes on with rate times velocity: the weights coast as far as before. */
static void velocity_is_kept_over_a_switch(void **unused)
{
    (void)unused;
    begin(momentum_only, 1, 0.1, 100, 1, 1);
    cure[0] = (pn_cure){.active = true, .momentum = 1 - 0.1 / 3, .rate_factor = 1.0 / 3, .on_velocity = 1};
    stage.velocity_rate = 1.0 / 3;
    for (int64_t t = 0; t < 3; t++) {
        new_gradient(t);
        pn_update(&stage);
    }
    static float v[N], w[N];
    memcpy(v, state[0], sizeof v);
    memcpy(w, weights[0], sizeof w);
    stage.phase = &phase[1];
    memset(gradient, 0, sizeof gradient);
    pn_update(&stage);
    for (int i = 0; i < N; i += 97) {
        close_to(state[0][i], 0.9 * v[i] / 3, 0.1);
        close_to(weights[0][i], w[i] - 0.1 * 0.9 * v[i] / 3, 1);
    }
    pn_update(&stage); /* once */
    for (int i = 0; i < N; i += 97)
        close_to(state[0][i], 0.9 * 0.9 * v[i] / 3, 0.1);
}

/* A run that goes on exactly where the phase begins has a velocity of the phase before; within it, of its own. */
static void velocity_of_a_resumed_run(void **unused)
{
    (void)unused;
    begin(momentum_only, 1, 0.1, 100, 1, 1);
    cure[0] = (pn_cure){.active = true, .momentum = 0.95, .rate_factor = 0.5, .on_velocity = 1};
    stage.phase = &phase[1];
    stage.phase_begin = stage.phase_first = 20;
    update_begin(&stage);
    assert_true(stage.velocity_rate == 0.5);
    stage.phase_first = 30;
    update_begin(&stage);
    assert_true(stage.velocity_rate == 1);
}

/* ---- spike compensation: a gradient that comes d updates late has moved the weights as far as if it had been in time,
 * once its velocity has coasted d updates less (Kosson et al. 2021) ---- */
static void late_gradient_at_its_full_weight(void **unused)
{
    (void)unused;
    const double rate = 0.1, m = 0.8;
    const int delay = 5;
    begin(momentum_only, 1, rate, 100, 1, 1);
    cure[0] = (pn_cure){.active = true,
                        .momentum = m,
                        .rate_factor = 1,
                        .on_velocity = pow(m, delay),
                        .on_gradient = (1 - pow(m, delay)) / (1 - m)};
    static float first[N];
    memcpy(first, weights[0], sizeof first);
    new_gradient(0);
    static float g[N];
    memcpy(g, gradient, sizeof g);
    for (int k = 0; k < 4; k++) {
        pn_update(&stage);
        memset(gradient, 0, sizeof gradient);
        double in_time = 0, v = 1; /* one gradient, then `delay + k` coasts */
        for (int u = 0; u <= delay + k; u++) {
            in_time += rate * v;
            v *= m;
        }
        for (int i = 0; i < N; i += 97)
            close_to(weights[0][i], first[i] - in_time * g[i], 1);
    }
}

/* ---- discrepancy ---- */
static void backward_goes_back_by_the_mean_of_updates(void **unused)
{
    (void)unused;
    const double memory = pow(0.135, 1.0 / 3);
    begin(momentum_only, 1, 0.1, 100, 1, 2);
    cure[0] =
        (pn_cure){.active = true, .momentum = 0.9, .rate_factor = 1, .on_velocity = 1, .memory = memory, .back = 3};
    double delta[N] = {0};
    for (int64_t t = 0; t < 4; t++) {
        static float before[N];
        memcpy(before, weights[0], sizeof before);
        new_gradient(t);
        pn_update(&stage);
        const float *read = pn_backward_weights(&stage, t);
        for (int i = 0; i < N; i++) {
            delta[i] = memory * delta[i] + (1 - memory) * ((double)weights[0][i] - before[i]);
            if (i % 97 == 0)
                close_to(read[i], weights[0][i] - 3 * delta[i], 1);
        }
        assert_ptr_equal(pn_forward_weights(&stage, t), weights[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_version_has_the_same_bits),
        cmocka_unit_test(nothing_to_correct_changes_no_bit),
        cmocka_unit_test(look_ahead_is_where_the_velocity_leads),
        cmocka_unit_test(look_ahead_does_not_depend_on_who_writes_it),
        cmocka_unit_test(look_ahead_of_nesterov),
        cmocka_unit_test(both_directions_ahead),
        cmocka_unit_test(rate_is_rescheduled),
        cmocka_unit_test(velocity_is_kept_over_a_switch),
        cmocka_unit_test(velocity_of_a_resumed_run),
        cmocka_unit_test(late_gradient_at_its_full_weight),
        cmocka_unit_test(backward_goes_back_by_the_mean_of_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
