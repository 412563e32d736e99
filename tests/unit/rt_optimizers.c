/* rt_optimizers.c: every optimiser of core/choices.def against what PyTorch's did in double (tests/oracle/make_oracle.py
 * writes the runs and says how they read). Stated tolerance: each weight within 1e-6 of the largest (at least 1). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/choices.h"

enum { MOST = 64, ARGUMENTS = 8 };

static FILE *open_file(void)
{
    /* From the repository's root (make test), or wherever ROOT says it is. */
    char path[1024];
    const char *root = getenv("ROOT");
    snprintf(path, sizeof path, "%s/tests/oracle/optimizers.txt", root ? root : ".");
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    return file;
}

static int read_numbers(FILE *file, const char *key, float *to)
{
    char word[40];
    int n = 0;
    if (fscanf(file, " %39s %d", word, &n) != 2 || strcmp(word, key) != 0 || n < 1 || n > MOST)
        fail_msg("expected '%s N'", key);
    for (int i = 0; i < n; i++)
        if (fscanf(file, " %f", &to[i]) != 1)
            fail_msg("expected a number of %s", key);
    return n;
}

static pn_recipe recipe_of(char *line)
{
    static char key[ARGUMENTS][40];
    static const pn_arg rate = {.number = 1};
    pn_arg arg[ARGUMENTS];
    int nargs = 0;
    const char *name = strtok(line, " \n");
    for (char *word; (word = strtok(NULL, " \n")); nargs++) {
        assert_in_range(nargs, 0, ARGUMENTS - 1);
        arg[nargs] = (pn_arg){.key = key[nargs]};
        assert_int_equal(sscanf(word, "%39[^=]=%lf", key[nargs], &arg[nargs].number), 2);
    }
    pn_program program = {.optimizer = {name, arg, nargs}, .lr = {"constant", &rate, 1}};
    pn_recipe recipe;
    recipe_resolve(&recipe, &program, 1);
    return recipe;
}

/* Its worst error, as a part of the largest weight. */
static double follow(FILE *file, const char *what, pn_recipe *recipe)
{
    float w[MOST], g[MOST], expected[MOST], states[OPTIMIZER_STATES][MOST] = {{0}};
    int n = read_numbers(file, "weights", w);
    double rate, worst = 0;
    int t = 0;
    for (; fscanf(file, " rate %lf", &rate) == 1; t++) {
        assert_int_equal(read_numbers(file, "gradient", g), n);
        assert_int_equal(read_numbers(file, "weights", expected), n);
        pn_terms terms = recipe->optimizer->terms(recipe->optimizer_value, t, rate);
        recipe->optimizer->update(recipe->optimizer_value, &terms, &(pn_block){n, w, g, {states[0], states[1]}});
        double largest = 1;
        for (int i = 0; i < n; i++)
            largest = fmax(largest, fabs(expected[i]));
        for (int i = 0; i < n; i++) {
            worst = fmax(worst, fabs(w[i] - expected[i]) / largest);
            if (!(fabs(w[i] - expected[i]) <= 1e-6 * largest))
                fail_msg("%s, step %d: weight %d is %.9g, PyTorch's %.9g", what, t, i, w[i], expected[i]);
        }
    }
    assert_in_range(t, 2, 1000);
    return worst;
}

static void as_pytorch(void **state)
{
    (void)state;
    FILE *file = open_file();
    char line[400], what[400];
    int cases = 0;
    while (fscanf(file, " case %399[^\n]", line) == 1) {
        snprintf(what, sizeof what, "%s", line);
        pn_recipe recipe = recipe_of(line);
        double worst = follow(file, what, &recipe);
        print_message("%s: within %.1e\n", what, worst);
        assert_int_equal(fscanf(file, " %399s", line), 1);
        assert_string_equal(line, "end");
        cases++;
    }
    assert_true(feof(file));
    fclose(file);
    assert_in_range(cases, 8, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_pytorch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
