/* Random numbers and initial values: distributions, dependence on keys, permutations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "rt.h"

enum { DRAWS = 100000 };

static void uniform_fills_the_unit_interval(void **state)
{
    (void)state;
    int bin[16] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        double u = pn_uniform(7, i);
        assert_true(u >= 0 && u < 1);
        bin[(int)(u * 16)]++;
    }
    for (int i = 0; i < 16; i++) /* 5 deviations of a binomial count */
        assert_true(abs(bin[i] - DRAWS / 16) < 5 * sqrt(DRAWS / 16.0));
}

static void normal_has_its_moments(void **state)
{
    (void)state;
    double sum = 0, square = 0, fourth = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double z = pn_normal(3, i);
        sum += z;
        square += z * z;
        fourth += z * z * z * z;
    }
    assert_true(fabs(sum / DRAWS) < 0.02);
    assert_true(fabs(square / DRAWS - 1) < 0.03);
    assert_true(fabs(fourth / DRAWS - 3) < 0.2);
}

static void keys_and_counters_matter(void **state)
{
    (void)state;
    assert_true(pn_key(1, "conv1.weight") == pn_key(1, "conv1.weight"));
    assert_true(pn_key(1, "conv1.weight") != pn_key(2, "conv1.weight"));
    assert_true(pn_key(1, "conv1.weight") != pn_key(1, "conv2.weight"));
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(pn_random(1, i) != pn_random(1, i + 1));
        assert_true(pn_random(1, i + 1) != pn_random(2, i)); /* no shifted copies of a sequence under near keys */
    }
}

static void shuffled_is_a_permutation_of_every_size(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 100, 1000, 60000};
    for (int s = 0; s < PN_COUNT(sizes); s++) {
        int64_t n = sizes[s];
        char *seen = calloc((size_t)n, 1);
        assert_non_null(seen);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = pn_shuffled(5, 2, i, n);
            assert_true(at >= 0 && at < n && !seen[at]);
            seen[at] = 1;
        }
        free(seen);
    }
}

static void shuffled_differs_by_epoch_and_seed(void **state)
{
    (void)state;
    int same_epoch = 0, same_seed = 0, fixed = 0;
    for (int64_t i = 0; i < 1000; i++) {
        int64_t at = pn_shuffled(5, 0, i, 1000);
        same_epoch += at == pn_shuffled(5, 1, i, 1000);
        same_seed += at == pn_shuffled(6, 0, i, 1000);
        fixed += at == i;
    }
    assert_true(same_epoch < 10 && same_seed < 10 && fixed < 10); /* 1 is expected of each */
}

static double deviation_of(const float *value, int64_t n)
{
    double sum = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += value[i];
        square += (double)value[i] * value[i];
    }
    return sqrt(square / (double)n - sum / (double)n * (sum / (double)n));
}

static void initial_values_follow_their_formulas(void **state)
{
    (void)state;
    static float value[50 * 400];
    pn_param param = {.name = "a.weight", .rank = 2, .dim = {50, 400}, .fan_in = 400, .fan_out = 50, .init = PN_HE};
    pn_param_initial(&param, 1, value);
    assert_true(fabs(deviation_of(value, 20000) - sqrt(2.0 / 400)) < 0.002);
    param.init = PN_XAVIER;
    pn_param_initial(&param, 1, value);
    double bound = sqrt(6.0 / 450), most = 0;
    for (int i = 0; i < 20000; i++)
        most = fmax(most, fabs(value[i]));
    assert_true(most <= bound && most > 0.99 * bound);
    param.init = PN_GAUSSIAN;
    param.a = 1;
    param.b = 0.5;
    pn_param_initial(&param, 1, value);
    assert_true(fabs(deviation_of(value, 20000) - 0.5) < 0.02);
    param.init = PN_CONSTANT;
    param.a = 0.25;
    pn_param_initial(&param, 1, value);
    assert_true(value[0] == 0.25f && value[19999] == 0.25f);
    param.init = PN_UNIFORM;
    param.a = -3;
    param.b = -1;
    pn_param_initial(&param, 1, value);
    for (int i = 0; i < 20000; i++)
        assert_true(value[i] >= -3 && value[i] < -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_fills_the_unit_interval),    cmocka_unit_test(normal_has_its_moments),
        cmocka_unit_test(keys_and_counters_matter),           cmocka_unit_test(shuffled_is_a_permutation_of_every_size),
        cmocka_unit_test(shuffled_differs_by_epoch_and_seed), cmocka_unit_test(initial_values_follow_their_formulas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
