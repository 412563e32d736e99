/* The coefficients that the compiler computes for corrections of staleness and for the rule predict: against the
 * formulas' own sums, at every delay and momentum; what stays untouched; what is left out; the stability number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cure.h"
#include "lowered.h"
#include "order.h"

static const char net[] = "network n {\n input x: f32[4]\n input y: class[2]\n h = linear(x, 4)\n register\n"
                          " g = linear(h, 4)\n register\n loss softmax_cross_entropy(linear(g, 2), y)\n}\n";

static Lowered *with(const char *optimizer, double lr, const char *schedule, const char *cure)
{
    char text[2000];
    snprintf(text, sizeof text,
             "%strain {\n data = raw\n batch = 10\n optimizer = %s\n lr = %g\n steps = "
             "100\n}\n"
             "pipeline {\n schedule = %s\n cure = %s\n}\n",
             net, optimizer, lr, schedule, cure);
    return lowered(text);
}

static Cure at(const Lowered *l, int delay)
{
    return cure_of(&l->settings, &l->settings.pipeline.phase[0], delay, 8, true);
}

static void near_to(double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-12 * (1 + fabs(expected))))
        fail_msg("found %.17g, expected %.17g", found, expected);
}

/* cure.md's rule, by hand: momentum .9 at delays 2, 3, 4, 6, 9, 18. */
static void momentum_grows_with_the_delay(void **state)
{
    (void)state;
    static const struct {
        int delay;
        double momentum;
    } row[] = {{1, 0.9}, {2, 0.9}, {3, 14.0 / 15}, {4, 0.95}, {6, 29.0 / 30}, {9, 44.0 / 45}, {18, 89.0 / 90}};
    Lowered *l = with("sgd(momentum = 0.9)", 0.1, "stale", "momentum_by_delay");
    for (int i = 0; i < COUNT(row); i++) {
        const Cure cure = at(l, row[i].delay);
        near_to(cure.momentum, row[i].momentum);
        near_to(cure.rate_factor / (1 - cure.momentum), 1 / (1 - 0.9)); /* lr/(1-m) stays */
        assert_int_equal(cure.active, row[i].delay > 2);
    }
    arena_free(l->arena);
}

/* What d updates add without a gradient, one by one. */
static void look_ahead_is_the_sum_of_the_coming_steps(void **state)
{
    (void)state;
    static const char *const optimizer[] = {"sgd(momentum = 0.9)", "sgd(momentum = 0.5)",
                                            "sgd(momentum = 0.9, nesterov = yes)"};
    for (int i = 0; i < COUNT(optimizer); i++)
        for (int both = 0; both < 2; both++) {
            Lowered *l = with(optimizer[i], 0.1, "stale", both ? "(lookahead, momentum_by_delay)" : "lookahead");
            for (int delay = 1; delay < 40; delay++) {
                const Cure cure = at(l, delay);
                double v = 1, moved = 0;
                for (int k = 0; k < delay; k++) {
                    v *= cure.momentum;
                    moved += i == 2 ? cure.momentum * v : v;
                }
                near_to(cure.forward, moved);
                assert_true(cure.active && cure.backward == 0);
                near_to(cure.on_velocity, i == 2 ? cure.momentum : 1);
                near_to(cure.on_gradient, i == 2);
            }
            arena_free(l->arena);
        }
}

/* A gradient d updates late moves the weights at once by what it would have by now. */
static void spike_is_the_sum_of_the_missed_steps(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.8)", 0.1, "stale", "spike");
    for (int delay = 1; delay < 20; delay++) {
        const Cure cure = at(l, delay);
        double in_time = 0, v = 1;
        for (int k = 0; k <= delay; k++) {
            in_time += v;
            v *= 0.8;
        }
        near_to(cure.on_velocity + cure.on_gradient, in_time);
        near_to(cure.on_velocity, pow(0.8, delay));
    }
    arena_free(l->arena);
}

/* Adam's velocity is a mean: its size does not grow with its memory, so the rate stays. */
static void adam_keeps_its_rate(void **state)
{
    (void)state;
    Lowered *l = with("adamw(beta1 = 0.9)", 0.001, "stale", "auto");
    for (int delay = 1; delay < 20; delay++) {
        const Cure cure = at(l, delay);
        double v = 1, moved = 0;
        for (int k = 0; k < delay; k++)
            moved += v *= cure.momentum;
        near_to(cure.forward, moved);
        near_to(cure.rate_factor, 1);
        near_to(cure.momentum, 5 * delay > 10 ? 1 - 1 / (5.0 * delay) : 0.9);
    }
    assert_true(stability_number(&l->settings, &l->settings.pipeline.phase[0], 6) < 0);
    arena_free(l->arena);
}

static void rates_and_discrepancy(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.9)", 0.1, "stale", "(warmup(0.2), lr_reschedule(part = 0.5), discrepancy)");
    const Cure cure = at(l, 4);
    near_to(pow(cure.memory, 4), 0.135);
    near_to(cure.back, 4);
    near_to(cure.divisor, 4);
    near_to(cure.reschedule, 0.5);
    near_to(cure.warmup, 0.2);
    assert_int_equal(cure_ahead_copies(&cure), 1);
    assert_int_equal(cure_states(&l->settings), 1);
    arena_free(l->arena);
}

/* The rate begins divided by the delay, or by what brings G down to `enough`, whichever is less; by no less than 1. */
static void a_small_stability_number_needs_no_slow_start(void **state)
{
    (void)state;
    static const struct {
        const char *optimizer;
        double rate;
        const char *cure;
        double divisor, without; /* of delay 6; without batch normalisation */
    } row[] = {
        {"sgd(momentum = 0.9)", 0.1, "lr_reschedule", 6, 6},                         /* G 6.5 */
        {"sgd(momentum = 0.9)", 0.02, "lr_reschedule", 2.6, 6},                      /* G 1.3 */
        {"sgd(momentum = 0.9)", 0.02, "(momentum_by_delay, lr_reschedule)", 2.6, 6}, /* lr/(1-m) stays */
        {"sgd(momentum = 0.9)", 0.02, "lr_reschedule(enough = 1)", 1.3, 6},
        {"sgd(momentum = 0.9)", 0.01, "lr_reschedule", 1.3, 6},  /* G 0.65 */
        {"sgd(momentum = 0.9)", 0.004, "lr_reschedule", 0, 2.6}, /* G 0.26 */
        {"sgd(momentum = 0.9)", 0.001, "lr_reschedule", 0, 0},   /* G 0.065 */
        {"sgd(momentum = 0.9)", 0.001, "lr_reschedule(enough = 0)", 6, 6},
        {"sgd(momentum = 0)", 0.1, "lr_reschedule", 1.3, 6}, /* G 0.65 */
        {"adam", 0.001, "lr_reschedule", 6, 6},              /* not known */
    };
    for (int i = 0; i < COUNT(row); i++) {
        Lowered *l = with(row[i].optimizer, row[i].rate, "stale", row[i].cure);
        for (int normalised = 0; normalised < 2; normalised++) {
            const double divisor = normalised ? row[i].divisor : row[i].without;
            const Cure cure = cure_of(&l->settings, &l->settings.pipeline.phase[0], 6, 8, normalised);
            near_to(cure.divisor, divisor);
            near_to(cure.reschedule, divisor > 0 ? 0.25 : 0);
            assert_int_equal(cure.active, divisor > 0 || strchr(row[i].cure, ',') != NULL);
        }
        arena_free(l->arena);
    }
}

/* Moves of the weights in place of minibatches: the corrections behind it count in these. */
static void accumulation_counts_in_moves(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.9)", 0.1, "stale", "(lr_reschedule, lookahead, accumulate(a = 4))");
    const Cure cure = at(l, 6);
    assert_int_equal(cure.accumulate, 4);
    assert_int_equal(cure.moves, 2);
    near_to(cure.divisor, 2);
    near_to(cure.rate_factor, 4);
    near_to(cure.forward, 0.9 + 0.81);
    assert_int_equal(cure_states(&l->settings), 1);
    arena_free(l->arena);
    l = with("sgd(momentum = 0.9)", 0.1, "schedule(\"1f1b\", weights = predict)", "accumulate");
    near_to(at(l, 4).forward, 3);
    near_to(at(l, 4).backward, 1);
    arena_free(l->arena);
    l = with("sgd(momentum = 0.9)", 0.1, "stale", "accumulate(a = 1)");
    assert_false(at(l, 6).active);
    arena_free(l->arena);
}

static void no_delay_is_untouched(void **state)
{
    (void)state;
    static const char *const cure[] = {"auto", "(lookahead, lr_reschedule, warmup, momentum_by_delay)",
                                       "(discrepancy, spike)", "(accumulate, lookahead)"};
    for (int i = 0; i < COUNT(cure); i++) {
        Lowered *l = with("sgd(momentum = 0.9)", 10, "stale", cure[i]);
        const Cure none = at(l, 0);
        assert_false(none.active);
        assert_int_equal(cure_ahead_copies(&none), 0);
        assert_true(at(l, 1).active);
        arena_free(l->arena);
    }
}

static void automatic_goes_with_the_rule(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.9)", 0.05, "stale", "auto");
    const Cure cure = at(l, 6);
    assert_true(cure.forward > 0 && cure.rate_factor < 1 && cure.divisor == 6 && cure.reschedule == 0.25 &&
                cure.reschedule_most == 1200);
    arena_free(l->arena);
    l = with("sgd(momentum = 0.9)", 0.1, "schedule(\"1f1b\", weights = predict)", "auto");
    near_to(at(l, 6).forward, 7); /* the rule's own */
    near_to(at(l, 6).backward, 1);
    near_to(at(l, 6).divisor, 6);
    arena_free(l->arena);
}

/* Chen et al. 2018: floor(r/2) + N - r - 1 and floor(r/2) in stage r of N by 1F1B. */
static void prediction_in_1f1b(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.9)", 0.1, "schedule(\"1f1b\", weights = predict)", "none");
    for (int n = 1; n < 20; n++)
        for (int r = 0; r < n; r++) {
            const Cure cure = cure_of(&l->settings, &l->settings.pipeline.phase[0], n - 1 - r, n - 1, true);
            near_to(cure.forward, r / 2 + n - r - 1);
            near_to(cure.backward, r / 2);
        }
    arena_free(l->arena);
}

static void stability(void **state)
{
    (void)state;
    Lowered *l = with("sgd(momentum = 0.9)", 0.1, "stale", "none");
    near_to(stability_number(&l->settings, &l->settings.pipeline.phase[0], 6), 6.5);
    near_to(stability_number(&l->settings, &l->settings.pipeline.phase[0], 18), 18.5);
    near_to(stability_number(&l->settings, &l->settings.pipeline.phase[0], 0), 0.5);
    arena_free(l->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(momentum_grows_with_the_delay),
        cmocka_unit_test(look_ahead_is_the_sum_of_the_coming_steps),
        cmocka_unit_test(spike_is_the_sum_of_the_missed_steps),
        cmocka_unit_test(adam_keeps_its_rate),
        cmocka_unit_test(rates_and_discrepancy),
        cmocka_unit_test(a_small_stability_number_needs_no_slow_start),
        cmocka_unit_test(accumulation_counts_in_moves),
        cmocka_unit_test(no_delay_is_untouched),
        cmocka_unit_test(automatic_goes_with_the_rule),
        cmocka_unit_test(prediction_in_1f1b),
        cmocka_unit_test(stability),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
