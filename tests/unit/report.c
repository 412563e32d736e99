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
        report_check(planned(l), &text);
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
    "\n}\n"

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

/* conv: 8*2*9*64 = 9216 MACs; linear: 512*3 = 1536: 1.71 x the mean of 5376 */
static void the_verdict(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
        bool warns;
    } cases[] = {
        {NETWORK("schedule = stale\n balance = 1.5"), "unbalanced by MACs: stage 0 has 1.71 x", true},
        {NETWORK("schedule = stale\n balance = 1.8"), "balance      balanced by MACs: stage 0 has 1.71 x", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "one worker may be faster", false},
        {NETWORK("schedule = stale\n balance = 1.8"), "at best 1.17 x one worker", false},
        {NETWORK("schedule = sequential"), "no faster than one worker", false},
        {NETWORK("schedule = hybrid(stale, steps = 3, then = sequential)\n balance = 1.5"), "stale, 3 minibatches",
         true},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Lowered *l = lowered(cases[i].text);
        Text text = text_new(l->arena);
        report_check(planned(l), &text);
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
    static const char *const keys[] = {"stage",          "layers",      "parameters",      "macs",
                                       "staleness",      "ring",        "versions",        "gives_bytes",
                                       "takes_bytes",    "saved_bytes", "transient_bytes", "weight_bytes",
                                       "register_bytes", "static_bytes"};
    Arena *arena = arena_new();
    Lowered *l = lowered(random_net(arena, 5, 24, 6));
    Text text = text_new(l->arena);
    const Plan *plan = planned(l);
    report_check_json(plan, &text);
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
                             number(stage, "weight_bytes") + number(stage, "register_bytes"));
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
    report_plan_json(plan, &text);
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
