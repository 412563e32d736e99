/* lower.c: elaboration from text: names, scopes, loops, registers, settings, overrides, limits and speed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "op.h"
#include "order.h"
#include "settings.h"

/* One compile of a text; what was reported, as text. */
typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Settings settings;
    const Graph *graph;
    char *said;
    size_t said_length;
} Run;

enum { MAX_OVERRIDES = 4 };

/* `define`: up to four texts "name=value" or "block.key=value", NULL-terminated; NULL: none. */
static Run *run_with(const char *text, const char *const *define)
{
    Arena *arena = arena_new();
    Run *r = arena_alloc(arena, sizeof *r);
    r->arena = arena;
    r->diags = diags_new(arena, &r->sources);
    const Ast *ast = parse(arena, r->diags, source_add(arena, &r->sources, "t.pnet", text, strlen(text)));
    Override override[MAX_OVERRIDES] = {0};
    int count = 0;
    for (; define && define[count]; count++) {
        const char *equals = strchr(define[count], '='),
                   *dot = memchr(define[count], '.', (size_t)(equals - define[count]));
        const char *key = dot ? dot + 1 : define[count];
        const SourceFile *file = source_add(arena, &r->sources, define[count], equals + 1, strlen(equals + 1));
        override[count] = (Override){
            .name = name_intern(arena, key, (size_t)(equals - key)),
            .block = dot ? name_intern(arena, define[count], (size_t)(dot - define[count])) : NULL,
            .value = parse_expr(arena, r->diags, file),
            .span = {file->base, file->base + file->length},
        };
    }
    if (!diag_errors(r->diags))
        r->graph = lower(arena, r->diags, &r->sources, ast, NULL, override, count, &r->settings);
    FILE *out = open_memstream(&r->said, &r->said_length);
    assert_non_null(out);
    diags_render(r->diags, out, false);
    assert_int_equal(fclose(out), 0);
    if (r->graph)
        graph_check(r->graph);
    return r;
}

static Run *run(const char *text)
{
    return run_with(text, NULL);
}

static void end(Run *r)
{
    free(r->said);
    arena_free(r->arena);
}

/* The names of all nodes behind the inputs, with | where a register stands. */
static const char *names(const Run *r)
{
    if (!r->graph)
        fail_msg("%s", r->said);
    Text text = text_new(r->arena);
    int cut = 0;
    for (NodeId id = r->graph->ninputs; id < r->graph->nnodes; id++) {
        const bool before = cut < r->graph->ncuts && r->graph->cut[cut].before == id;
        cut += before;
        text_printf(&text, "%s%s%s", text.length ? " " : "", before ? "| " : "", r->graph->node[id].name);
    }
    return text.data;
}

#define HEAD "network t(classes = 10) {\n input image: f32[1, 28, 28]\n input label: class[classes]\n"
#define LOSS " loss softmax_cross_entropy(linear(h, 10), label)\n}\n"

static void expect_names(const char *text, const char *const *define, const char *wanted)
{
    Run *r = run_with(text, define);
    assert_string_equal(names(r), wanted);
    end(r);
}

static void expect_error(const char *text, const char *const *define, const char *wanted)
{
    Run *r = run_with(text, define);
    assert_null(r->graph);
    if (!strstr(r->said, wanted))
        fail_msg("wanted: %s\nsaid: %s", wanted, r->said);
    end(r);
}

/* ---- names ---- */

static void test_names(void **state)
{
    (void)state;
    expect_names(HEAD " p = image |> linear(4) |> relu |> tanh\n h = relu(p)\n" LOSS, NULL,
                 "linear1 relu1 p h linear2 softmax_cross_entropy1");
    /* bound twice: numbered; numbers skip names of variables, also of later ones */
    expect_names(HEAD " h = relu(image)\n h = relu(h)\n relu1 = tanh(h)\n h = relu1 + h\n" LOSS, NULL,
                 "relu2 relu3 relu1 add1 linear1 softmax_cross_entropy1");
    /* an alias names nothing */
    expect_names(HEAD " p = image\n q = p\n h = relu(q)\n" LOSS, NULL, "h linear1 softmax_cross_entropy1");
}

static void test_scopes(void **state)
{
    (void)state;
    expect_names("def unit(x, n = 4) {\n y = linear(x, n)\n return relu(y)\n}\n"
                 "def group(x, n) {\n for i in 0..n { x = unit(x, n = 8) }\n return x\n}\n" HEAD
                 " h = image |> unit |> group(2)\n" LOSS,
                 NULL,
                 "unit1.y unit1.relu1 group1.unit1.y group1.unit1.relu1 group1.unit2.y group1.unit2.relu1 linear1 "
                 "softmax_cross_entropy1");
    /* a name inside a def is not seen outside, and the other way round */
    expect_error("def f(x) {\n y = relu(x)\n return y\n}\n" HEAD " h = f(image) + y\n" LOSS, NULL, "unknown name y");
    expect_error("def f(x) { return x + image }\n" HEAD " h = f(image)\n" LOSS, NULL, "unknown name image");
}

/* C identifiers of nodes are distinct and no keywords. */
static void test_c_names(void **state)
{
    (void)state;
    Run *r = run("def a(x) { y = relu(x)\n return y\n}\n" HEAD
                 " a1_y = linear(image, 4)\n int = a(a1_y)\n exp = relu(int)\n h = exp + a1_y\n" LOSS);
    assert_string_equal(names(r), "a1_y a1.relu1 exp h linear1 softmax_cross_entropy1");
    for (NodeId i = 0; i < r->graph->nnodes; i++)
        for (NodeId k = 0; k < i; k++)
            assert_string_not_equal(c_name(r->arena, r->graph->node[i].name), c_name(r->arena, r->graph->node[k].name));
    assert_string_equal(c_name(r->arena, "exp"), "exp_");
    assert_string_equal(c_name(r->arena, "int"), "int_");
    assert_string_equal(c_name(r->arena, "pn_op"), "v_pn_op");
    assert_string_equal(c_name(r->arena, "group2.unit1.conv1"), "group2_unit1_conv1");
    end(r);
}

static void test_loops_and_branches(void **state)
{
    (void)state;
    expect_names(HEAD " h = image\n for i in 2..2 { h = relu(h) }\n for i in 3..1 { h = relu(h) }\n"
                      " for i in 0..2 { if i == 1 { h = tanh(h) } else { h = relu(h) } }\n" LOSS,
                 NULL, "relu1 tanh1 linear1 softmax_cross_entropy1");
    expect_names("def down(x, n) {\n if n == 0 { return x }\n return down(relu(x), n - 1)\n}\n" HEAD
                 " h = down(image, 2)\n" LOSS,
                 NULL, "down1.relu1 down1.down1.relu1 linear1 softmax_cross_entropy1");
    /* the loop variable gives back what it hid */
    expect_names(HEAD " i = 7\n h = image\n for i in 0..3 { h = relu(h) }\n h = linear(h, i)\n" LOSS, NULL,
                 "relu1 relu2 relu3 linear1 linear2 softmax_cross_entropy1");
}

static void test_unused(void **state)
{
    (void)state;
    Run *r = run(HEAD " input extra: f32[784]\n h = relu(image)\n a = linear(h, 4)\n b = tanh(a)\n" LOSS);
    assert_string_equal(names(r), "h linear1 softmax_cross_entropy1");
    assert_int_equal(r->graph->ninputs, 2);
    assert_int_equal(r->graph->nparams, 2);
    assert_non_null(strstr(r->said, "warning: b does not reach the loss"));
    assert_null(strstr(r->said, "warning: a does"));
    assert_non_null(strstr(r->said, "the input extra is not used"));
    end(r);
}

/* ---- registers ---- */

#define FIVE                                                                                                           \
    HEAD " c1 = image |> conv(4, 5) |> relu |> maxpool(2)\n c2 = c1 |> conv(8, 5) |> relu |> maxpool(2)\n"             \
         " h = c2 |> linear(16) |> relu |> linear(12) |> tanh\n" LOSS

static void test_registers(void **state)
{
    (void)state;
    expect_names(FIVE "pipeline { registers = ppv(1, 2, 3, 4) }", NULL,
                 "conv1 relu1 c1 | conv2 relu2 c2 | linear1 relu3 | linear2 h | linear3 softmax_cross_entropy1");
    expect_names(FIVE "pipeline { registers = after(h, relu1) }", NULL,
                 "conv1 relu1 | c1 conv2 relu2 c2 linear1 relu3 linear2 h | linear3 softmax_cross_entropy1");
    expect_names(FIVE "pipeline { registers = none }", NULL,
                 "conv1 relu1 c1 conv2 relu2 c2 linear1 relu3 linear2 h linear3 softmax_cross_entropy1");
    const char *const ppv[] = {"pipeline.registers=ppv(2)", NULL}, *const none[] = {"pipeline.registers=ppv()", NULL};
    expect_names(HEAD " a = linear(image, 4)\n register\n b = linear(a, 4)\n h = relu(b)\n" LOSS, ppv,
                 "a b h | linear1 softmax_cross_entropy1");
    expect_names(HEAD " a = linear(image, 4)\n register\n h = relu(a)\n" LOSS, none,
                 "a h linear1 softmax_cross_entropy1");
    /* a register in a def; one beside values that are dropped; one before a late input */
    expect_names("def f(x) {\n y = relu(x)\n register\n return y\n}\n" HEAD " h = image |> f |> f\n" LOSS, NULL,
                 "f1.y | f2.y | linear1 softmax_cross_entropy1");
    expect_names("network t {\n input image: f32[1, 28, 28]\n h = relu(image)\n u = tanh(h)\n register\n v = tanh(u)\n"
                 " input label: class[10]\n" LOSS,
                 NULL, "h | linear1 softmax_cross_entropy1");
}

/* ---- settings ---- */

static void test_defaults(void **state)
{
    (void)state;
    Run *r = run(HEAD " h = image\n" LOSS);
    assert_non_null(r->graph);
    const Train *t = &r->settings.train;
    assert_string_equal(t->data.name, "digits");
    assert_string_equal(t->optimizer.name, "sgd");
    assert_string_equal(t->optimizer.arg[0].key, "momentum");
    assert_true(t->optimizer.arg[0].number == 0.9);
    assert_string_equal(t->lr.name, "constant");
    assert_true(t->lr.arg[0].number == 0.01);
    assert_int_equal(t->batch, 100);
    assert_int_equal(t->steps, 1000);
    assert_int_equal(t->epochs, 0);
    assert_int_equal(r->settings.pipeline.nphases, 1);
    assert_string_equal(r->settings.pipeline.phase[0].preset, preset_table[0].name);
    assert_int_equal(r->graph->batch, 100);
    end(r);
}

static void test_settings(void **state)
{
    (void)state;
    const char *const define[] = {"train.steps=2e3", "train.batch=2*size", "pipeline.schedule=pipedream", NULL};
    Run *r = run_with("param size = 16\n" HEAD " h = image\n" LOSS
                      "train {\n batch = 10\n epochs = 3\n lr = multistep(0.1, at = (10, 20), gamma = 0.5)\n"
                      " data = digits(difficulty = 2)\n warmup = 5\n test_every = 50\n}\npipeline { balance = 2 }\n",
                      define);
    if (!r->graph)
        fail_msg("%s", r->said);
    const Train *t = &r->settings.train;
    assert_int_equal(t->batch, 32);
    assert_int_equal(t->steps, 2000);
    assert_int_equal(t->epochs, 0); /* --set steps replaces the file's epochs */
    assert_int_equal(t->warmup, 5);
    assert_int_equal(t->test_every, 50);
    assert_int_equal(t->lr.nargs, 3);
    assert_int_equal(t->lr.arg[1].nlist, 2);
    assert_true(t->lr.arg[1].list[1] == 20);
    assert_true(t->lr.arg[2].number == 0.5);
    assert_string_equal(r->settings.pipeline.phase[0].order->name, "1f1b");
    assert_string_equal(r->settings.pipeline.phase[0].rule->name, "stash");
    assert_true(r->settings.pipeline.balance == 2);
    end(r);
}

static void test_schedules(void **state)
{
    (void)state;
    Run *r =
        run(HEAD " h = image\n" LOSS
                 "pipeline { schedule = hybrid(schedule(\"1f1b\", weights = stash), steps = 10, then = hybrid(stale, "
                 "steps = 5, then = sequential)) }\n");
    if (!r->graph)
        fail_msg("%s", r->said);
    const Pipeline *p = &r->settings.pipeline;
    assert_int_equal(p->nphases, 3);
    assert_string_equal(p->phase[0].preset, "1f1b+stash");
    assert_int_equal(p->phase[0].minibatches, 10);
    assert_string_equal(p->phase[1].preset, "stale");
    assert_int_equal(p->phase[1].minibatches, 5);
    assert_string_equal(p->phase[2].order->name, "sequential");
    assert_int_equal(p->phase[2].minibatches, 0);
    end(r);
}

static void test_parameters(void **state)
{
    (void)state;
    const char *const define[] = {"classes=12", "classes=10", "deep=true", NULL};
    expect_names("param deep = false\n" HEAD " h = image\n if deep { h = relu(h) }\n" LOSS, define,
                 "relu1 linear1 softmax_cross_entropy1");
    const char *const unknown[] = {"clases=10", NULL};
    expect_error(HEAD " h = image\n" LOSS, unknown, "did you mean -D classes=...?");
    const char *const block[] = {"trian.batch=10", NULL};
    expect_error(HEAD " h = image\n" LOSS, block, "did you mean --set train.batch=...?");
}

/* ---- limits ---- */

/* Deep networks lower without stack and without quadratic time: ten times the nodes, far less than 100 times the time.
 */
static double seconds_of_chain(int layers)
{
    Arena *arena = arena_new();
    Text text = text_new(arena);
    text_printf(&text, HEAD " v0 = image |> linear(4)\n h = v0");
    for (int i = 0; i < layers; i++)
        text_printf(&text, i % 1000 ? " |> relu" : "\n h = h |> relu");
    for (int i = 0; i < layers; i++)
        text_printf(&text, "\n v%d = tanh(v%d)", i + 1, i);
    text_printf(&text, "\n h = h + v%d\n" LOSS, layers);
    struct timespec from, to;
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from), 0);
    Run *r = run(text.data);
    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to), 0);
    if (!r->graph)
        fail_msg("%s", r->said);
    assert_int_equal(r->graph->nnodes, 2 * layers + 6);
    end(r);
    arena_free(arena);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static void test_deep(void **state)
{
    (void)state;
    seconds_of_chain(1000);
    const double small = seconds_of_chain(1000), large = seconds_of_chain(10000);
    if (large > 40 * small && large > 0.5)
        fail_msg("2000 nodes take %.4f s, 20000 take %.4f s", small, large);
}

static void test_limits(void **state)
{
    (void)state;
    Arena *arena = arena_new();
    Text text = text_new(arena);
    text_printf(&text, "def f(x, n) {\n if n == 0 { return x }\n return ");
    for (int i = 0; i < 20; i++)
        text_printf(&text, "relu(");
    text_printf(&text, "f(x, n - 1)");
    for (int i = 0; i < 20; i++)
        text_printf(&text, ")");
    text_printf(&text, "\n}\n" HEAD " h = f(image, 90)\n" LOSS);
    expect_error(text.data, NULL, "more than 1000 expressions");
    arena_free(arena);
    expect_error("def f(x) { return f(x) }\n" HEAD " h = f(image)\n" LOSS, NULL, "more than 100 defs");
    expect_error("def f(x) { return g(x) }\ndef g(x) { return f(x) + f(x) }\n" HEAD " h = f(image)\n" LOSS, NULL,
                 "P0213");
    expect_error("def f(x, n) {\n for i in 0..100000 { n = n + i }\n return x\n}\n" HEAD
                 " h = image\n for i in 0..100000 { h = f(h, i) }\n" LOSS,
                 NULL, "P0214");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_c_names),   cmocka_unit_test(test_loops_and_branches),
        cmocka_unit_test(test_unused),    cmocka_unit_test(test_registers),
        cmocka_unit_test(test_defaults),  cmocka_unit_test(test_settings),
        cmocka_unit_test(test_schedules), cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_deep),      cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests_name("lower", tests, NULL, NULL);
}
