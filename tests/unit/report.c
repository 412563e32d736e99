/* report.c: the table of check keeps its width and says what it must; the JSON has its keys, and its sums are right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "lowered.h"
#include "report.h"

static const Plan *planned(Lowered *l)
{
    const Sched *sched = schedule(l->arena, l->diags, l->pipe, &l->settings);
    assert_non_null(sched);
    const Plan *plan = plan_memory(l->arena, l->diags, sched, target_table[0]);
    assert_non_null(plan);
    return plan;
}

/* The same with its times, on the machine of the source or the built-in one. */
static const Balance *judged(Lowered *l, const TargetDef *target)
{
    const Sched *sched = schedule(l->arena, l->diags, l->pipe, &l->settings);
    assert_non_null(sched);
    const Plan *plan = plan_memory(l->arena, l->diags, sched, target);
    assert_non_null(plan);
    CostModel *model = arena_alloc(l->arena, sizeof *model);
    *model = (CostModel){.hardware = hardware_find(l->arena, l->diags, &l->sources, &l->settings, NULL),
                         .target = target,
                         .states = optimizer_states(&l->settings.train.optimizer)};
    assert_non_null(model->hardware);
    const Balance *b = balance_judge(l->arena, plan, predict(l->arena, sched, model), l->graph, true);
    balance_warn(l->arena, l->diags, b, l->graph, WARN_ON, WARN_ON, WARN_ON);
    return b;
}

/* Columns, not bytes: what is printed is ASCII. */
static int widest(const char *text)
{
    int most = 0;
    for (const char *line = text; *line;) {
        const size_t n = strcspn(line, "\n");
        most = (int)n > most ? (int)n : most;
        line += n + (line[n] == '\n');
    }
    return most;
}

static void tables_stay_under_100_columns(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 30, (int)(seed % 12)));
        Text text = text_new(l->arena);
        report_check(judged(l, target_table[0]), l->graph, &text);
        assert_true(widest(text.data) < 100);
        assert_non_null(strstr(text.data, "balance"));
        arena_free(l->arena);
        arena_free(arena);
    }
}

#define NETWORK(pipeline)                                                                                              \
    "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n a = image |> conv(8, kernel = 3, pad = 1) |> "  \
    "relu\n"                                                                                                           \
    " register\n loss softmax_cross_entropy(linear(a, 3), label)\n}\n"                                                 \
    "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\npipeline {\n" pipeline        \
    "\n}\n"                                                                                                            \
    "machine flops {\n device d { count = 2\n compute = 1 MFLOP/s\n bandwidth = 10000 TB/s }\n}\n"

static char *warnings(Lowered *l)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    diags_render(l->diags, out, false);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* A machine that only FLOPs hold up, of 2 samples: conv forward 2 * 9216 + 512 (bias) and as much for its weights, no
 * gradient of the image: 37888; linear 3075 + 3072 + 3075, and the loss: 9276 in all, so stage 0 has 1.61 x the mean of
 * 23582. One worker takes 94.3 ms, two 75.8. */
static void the_verdict(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        bool warns;
    } cases[] = {
        {NETWORK("schedule = stale\n balance = 1.5"), "unbalanced: stage 0 has 1.61 x the mean time", true},
        {NETWORK("schedule = stale\n balance = 1.8"), "balance      balanced: stage 0 has 1.61 x", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "better cut   none into 2 stages", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "2 workers are faster, if each has its own d", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "speed-up     1.24 x one worker, efficiency 62 %", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "analytic, machine flops (test.pnet)", false},
        {NETWORK("schedule = sequential"), "no faster than one worker", false},
        {NETWORK("schedule = sequential"), "verdict      one worker is as fast or faster", false},
        {NETWORK("schedule = hybrid(stale, steps = 3, then = sequential)\n balance = 1.5"), "stale, 3 minibatches",
         true},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Lowered *l = lowered(cases[i].text);
        Text text = text_new(l->arena);
        report_check(judged(l, target_table[TARGET_ref]), l->graph, &text);
        if (!strstr(text.data, cases[i].says))
            fail_msg("expected '%s' in:\n%s", cases[i].says, text.data);
        char *rendered = warnings(l);
        assert_int_equal(strstr(rendered, "P0506") != NULL, cases[i].warns);
        assert_int_equal(diag_errors(l->diags), 0);
        free(rendered);
        arena_free(l->arena);
    }
}

static json_int_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        fail_msg("no integer %s", key);
    return json_integer_value(value);
}

static json_t *parsed(const Text *text)
{
    json_error_t error;
    json_t *top = json_loads(text->data, JSON_REJECT_DUPLICATES, &error);
    if (!top)
        fail_msg("line %d: %s", error.line, error.text);
    return top;
}

static void json_of_check_adds_up(void **state)
{
    (void)state;
    static const char *const keys[] = {"stage",          "layers",        "parameters",      "macs",
                                       "staleness",      "ring",          "versions",        "gives_bytes",
                                       "takes_bytes",    "saved_bytes",   "transient_bytes", "weight_bytes",
                                       "register_bytes", "running_bytes", "static_bytes"};
    Arena *arena = arena_new();
    Lowered *l = lowered(random_net(arena, 5, 24, 6));
    Text text = text_new(l->arena);
    report_check_json(judged(l, target_table[0]), l->graph, &text);
    json_t *top = parsed(&text);
    const json_t *stages = json_object_get(top, "stages"), *registers = json_object_get(top, "registers");
    assert_int_equal(json_array_size(stages), l->pipe->nstages);
    assert_int_equal(json_array_size(registers), l->pipe->nedges);
    assert_true(l->pipe->nstages > 3);
    json_int_t bytes = 0, params = 0, given = 0, slots = 0;
    for (size_t s = 0; s < json_array_size(stages); s++) {
        const json_t *stage = json_array_get(stages, s);
        for (int k = 0; k < COUNT(keys); k++)
            number(stage, keys[k]);
        assert_int_equal(number(stage, "static_bytes"),
                         number(stage, "saved_bytes") + number(stage, "transient_bytes") +
                             number(stage, "weight_bytes") + number(stage, "running_bytes") +
                             number(stage, "register_bytes"));
        assert_int_equal(number(stage, "takes_bytes"), given);
        given = number(stage, "gives_bytes");
        assert_int_equal(number(stage, "ring"), 2 * (l->pipe->nstages - 1 - (int)s) + 1);
        bytes += number(stage, "static_bytes");
        params += number(stage, "parameters");
    }
    for (size_t r = 0; r < json_array_size(registers); r++) {
        const json_t *reg = json_array_get(registers, r);
        slots += number(reg, "slot_bytes") * (number(reg, "gradient_slots") ? 2 : 1);
        assert_int_equal(number(reg, "to"), number(reg, "from") + 1);
        assert_true(number(reg, "forward_slots") > 0);
        assert_true(json_is_string(json_object_get(reg, "value")));
    }
    assert_int_equal(number(top, "static_bytes"), bytes);
    assert_int_equal(number(top, "parameters"), params);
    assert_int_equal(number(top, "traffic_bytes"), slots);
    assert_true(json_is_real(json_object_get(top, "stale_fraction")));
    const json_t *prediction = json_object_get(top, "prediction");
    double share = 0, work = 0;
    for (size_t s = 0; s < json_array_size(stages); s++) {
        static const char *const times[] = {"forward_seconds", "backward_seconds", "update_seconds"};
        const json_t *stage = json_array_get(stages, s);
        for (int k = 0; k < COUNT(times); k++)
            work += json_real_value(json_object_get(stage, times[k]));
        share += json_real_value(json_object_get(stage, "time_share"));
    }
    assert_true(share > 0.999999 && share < 1.000001);
    const double alone = json_real_value(json_object_get(prediction, "one_worker_seconds"));
    assert_true(work > alone * 0.999999 && work < alone * 1.000001);
    assert_true(json_real_value(json_object_get(prediction, "step_seconds")) * l->pipe->nstages >= work);
    assert_string_equal(json_string_value(json_object_get(prediction, "source")), "analytic");
    assert_string_equal(json_string_value(json_object_get(top, "schedule")), "stale");
    json_decref(top);
    arena_free(l->arena);
    arena_free(arena);
}

static void json_of_plan_has_every_buffer(void **state)
{
    (void)state;
    Lowered *l = lowered(NETWORK("schedule = pipedream\n balance = 2"));
    const Plan *plan = planned(l);
    Text text = text_new(l->arena);
    report_plan_json(plan, NULL, &text);
    json_t *top = parsed(&text);
    const json_t *stages = json_object_get(top, "stages");
    for (int s = 0; s < l->pipe->nstages; s++) {
        const json_t *stage = json_array_get(stages, (size_t)s);
        assert_int_equal(json_array_size(json_object_get(stage, "buffers")), plan->stage[s].nbuffers);
        assert_int_equal(json_array_size(json_object_get(stage, "weights")), 2);
    }
    json_decref(top);
    arena_free(l->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_stay_under_100_columns),
        cmocka_unit_test(the_verdict),
        cmocka_unit_test(json_of_check_adds_up),
        cmocka_unit_test(json_of_plan_has_every_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
