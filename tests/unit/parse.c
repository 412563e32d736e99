/* parse.c: the language room: trees of texts, layout, spans, values, expressions of the command line, `use`. Wrong
 * texts are in tests/bad/, the canonical form in tests/format/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "ast.h"

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
} Fixture;

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof *f);
    if (!f)
        return -1;
    f->arena = arena_new();
    f->diags = diags_new(f->arena, &f->sources);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    Fixture *f = *state;
    arena_free(f->arena);
    free(f);
    return 0;
}

/* The Ast of a right text. */
static const Ast *parsed(Fixture *f, const char *text)
{
    const Ast *ast = parse(f->arena, f->diags, source_add(f->arena, &f->sources, "test.pnet", text, strlen(text)));
    if (diag_errors(f->diags))
        diags_render(f->diags, stderr, false);
    assert_int_equal(diag_errors(f->diags), 0);
    return ast;
}

static const char *dumped(Fixture *f, const char *text)
{
    Text out = text_new(f->arena);
    ast_dump(parsed(f, text), &out);
    return out.data;
}

/* The dump of one value: texts with the same tree have the same dump. */
static const char *value(Fixture *f, const char *expression)
{
    return dumped(f, arena_printf(f->arena, "def f(x) {\n    y = %s\n}\n", expression));
}

static void everything(void **state)
{
    Fixture *f = *state;
    assert_string_equal(dumped(f, "use \"blocks/unit.pnet\"\n"
                                  "param depth\n"
                                  "param width = 2 * 8   # comment\n"
                                  "def unit(x, channels, stride = 1) {\n"
                                  "    y = x |> conv(channels, kernel = 3, bias = no)\n"
                                  "          |> relu\n"
                                  "    if stride == 1 and not (channels < 3) { y = add(y, x) }\n"
                                  "    else if stride != 2 {\n"
                                  "        y = -y % 3\n"
                                  "    } else {\n"
                                  "    }\n"
                                  "    return y\n"
                                  "}\n"
                                  "network net(classes = 10) {\n"
                                  "    input image: f32[3, 32, 32]\n"
                                  "    input label: class[classes]\n"
                                  "    h = image\n"
                                  "    for i in 1..depth / 2 { h = unit(h, width) }\n"
                                  "    register\n"
                                  "    loss mse(h, label)\n"
                                  "}\n"
                                  "train {\n"
                                  "    data = mnist(path = \"a \\\"b\\\"\\n\")\n"
                                  "    lr   = multistep(5e-4, steps = (1, 2.50))\n"
                                  "    loss = true\n"
                                  "}\n"
                                  "pipeline { registers = after(a.b1.conv1, c) }\n"
                                  "machine pair {\n"
                                  "    device cpu0 { rate = 25 GB/s\n cores = 4 }\n"
                                  "    link { latency = 1.5 us }\n"
                                  "}\n"),
                        "use\n"
                        "  \"blocks/unit.pnet\"\n"
                        "param depth\n"
                        "param width\n"
                        "  *\n"
                        "    2\n"
                        "    8\n"
                        "def unit\n"
                        "  parameter x\n"
                        "  parameter channels\n"
                        "  parameter stride\n"
                        "    1\n"
                        "  assign y\n"
                        "    pipe into relu\n"
                        "      pipe into conv\n"
                        "        x\n"
                        "        channels\n"
                        "        kernel = 3\n"
                        "        bias = no\n"
                        "  if\n"
                        "    and\n"
                        "      ==\n"
                        "        stride\n"
                        "        1\n"
                        "      not\n"
                        "        <\n"
                        "          channels\n"
                        "          3\n"
                        "    assign y\n"
                        "      call add\n"
                        "        y\n"
                        "        x\n"
                        "  else\n"
                        "    if\n"
                        "      !=\n"
                        "        stride\n"
                        "        2\n"
                        "      assign y\n"
                        "        %\n"
                        "          -\n"
                        "            y\n"
                        "          3\n"
                        "    else\n"
                        "  return\n"
                        "    y\n"
                        "network net\n"
                        "  parameter classes\n"
                        "    10\n"
                        "  input image: f32\n"
                        "    3\n"
                        "    32\n"
                        "    32\n"
                        "  input label: class\n"
                        "    classes\n"
                        "  assign h\n"
                        "    image\n"
                        "  for i\n"
                        "    from 1\n"
                        "    below /\n"
                        "      depth\n"
                        "      2\n"
                        "    assign h\n"
                        "      call unit\n"
                        "        h\n"
                        "        width\n"
                        "  register\n"
                        "  loss\n"
                        "    call mse\n"
                        "      h\n"
                        "      label\n"
                        "train\n"
                        "  data = call mnist\n"
                        "    path = \"a \\\"b\\\"\\n\"\n"
                        "  lr = call multistep\n"
                        "    0.0005 real\n"
                        "    steps = list\n"
                        "      1\n"
                        "      2.5 real\n"
                        "  loss = yes\n"
                        "pipeline\n"
                        "  registers = call after\n"
                        "    a.b1.conv1\n"
                        "    c\n"
                        "machine pair\n"
                        "  device cpu0\n"
                        "    rate = 25 GB/s\n"
                        "    cores = 4\n"
                        "  link\n"
                        "    latency = 1.5 us\n");
}

static void precedence(void **state)
{
    Fixture *f = *state;
    static const char *const same[][2] = {
        {"a + b * c - d", "(a + (b * c)) - d"},
        {"a - b - c", "(a - b) - c"},
        {"a / b * c % d", "((a / b) * c) % d"},
        {"-a * b", "(-a) * b"},
        {"- -a", "-(-a)"},
        {"a + b < c * d", "(a + b) < (c * d)"},
        {"not a == b", "not (a == b)"},
        {"not a and b or c and not d", "((not a) and b) or (c and (not d))"},
        {"a + b |> f |> g(c + d)", "((a + b) |> f) |> g((c + d))"},
        {"a or b |> f", "(a or b) |> f"},
        {"f(a |> g, k = b |> h)", "f((a |> g), k = (b |> h))"},
        {"f(a, b,)", "f(a, b)"},
    };
    for (int i = 0; i < COUNT(same); i++)
        assert_string_equal(value(f, same[i][0]), value(f, same[i][1]));
    assert_string_not_equal(value(f, "a - (b - c)"), value(f, "a - b - c"));
    assert_string_not_equal(value(f, "x |> f"), value(f, "f(x)"));
}

/* Every word of the language may be a key in front of `=`. */
static void keys(void **state)
{
    Fixture *f = *state;
    static const char *const words[] = {"network",  "def",     "use", "param", "input", "register", "loss",   "train",
                                        "pipeline", "machine", "for", "in",    "if",    "else",     "return", "and",
                                        "or",       "not",     "yes", "no",    "true",  "false"};
    for (int i = 0; i < COUNT(words); i++) {
        const char *text =
            arena_printf(f->arena, "train {\n    a = f(x, %s = 1, %s = 2)\n%s = 3\n}\n", words[i], words[i], words[i]);
        const Ast *ast = parsed(f, text);
        assert_int_equal(ast->nitems, 1);
        assert_string_equal(ast->item[0].setting[1].name, words[i]);
        assert_string_equal(ast->item[0].setting[0].value->arg[2].key, words[i]);
    }
}

static void layout(void **state)
{
    Fixture *f = *state;
    static const char *const same[] = {
        "def f(x, y) {\n    z = x |> g(1, k = 2) |> h\n    if x == y { z = y } else { z = x }\n}\n",
        "def f(x, y) { z = x |> g(1, k = 2) |> h\nif x == y { z = y } else { z = x } }",
        "\xEF\xBB\xBF\r\n\r\ndef f(x,\r\n  y)\r\n{\r\n z = x\r\n # comment\r\n\r\n  |> g(1,\r\n\r\n k = # why\r\n "
        "2\r\n)\r\n |> h"
        "\r\n\r\nif x == y {\r\nz = y\r\n}\r\nelse\r\n{\r\nz = x\r\n}\r\n}\r\n",
        "def f(x, y)\n\n{\n\n\tz = x\n|> g(1, k = 2)\n|> h\n\n\n    if x == y\n{ z = y\n}\n\nelse { z = x }\n}",
    };
    for (int i = 1; i < COUNT(same); i++)
        assert_string_equal(dumped(f, same[i]), dumped(f, same[0]));
    assert_int_equal(parsed(f, "")->nitems, 0);
    assert_int_equal(parsed(f, "# only a comment")->ncomments, 1);
    assert_int_equal(parsed(f, "network a { }\n\n\n")->nitems, 1);
    assert_int_equal(parsed(f, "\xEF\xBB\xBF")->nitems, 0);
}

static const char *spanned(const Fixture *f, Span span)
{
    const SourceFile *file = source_of(&f->sources, span.at);
    return arena_text(f->arena, file->text + (span.at - file->base), span.end - span.at);
}

static void spans(void **state)
{
    Fixture *f = *state;
    const Ast *ast = parsed(
        f,
        "# head\nnetwork net(k = 1) {  # tail\n    y  = (a + f(b)) |> conv( 3, pad = 1 )\n    input x: f32[1, k]\n}\n");
    const Item *item = &ast->item[0];
    assert_string_equal(spanned(f, item->keyword), "network");
    assert_string_equal(spanned(f, item->name_span), "net");
    assert_string_equal(spanned(f, item->param[0].span), "k");
    assert_int_equal(spanned(f, item->body.span)[0], '{');
    assert_string_equal(spanned(f, item->body.stmt[1].type.span), "f32[1, k]");
    const Stmt *stmt = &item->body.stmt[0];
    const Expr *pipe = stmt->value;
    assert_string_equal(spanned(f, stmt->span), "y  = (a + f(b)) |> conv( 3, pad = 1 )");
    assert_string_equal(spanned(f, stmt->name_span), "y");
    assert_string_equal(spanned(f, pipe->span), "(a + f(b)) |> conv( 3, pad = 1 )");
    assert_string_equal(spanned(f, pipe->name_span), "conv");
    assert_string_equal(spanned(f, pipe->arg[1].key_span), "pad");
    assert_string_equal(spanned(f, pipe->left->span), "(a + f(b))");
    assert_string_equal(spanned(f, pipe->left->name_span), "a + f(b)");
    assert_string_equal(spanned(f, pipe->left->right->span), "f(b)");
    assert_string_equal(spanned(f, ast->comment[0].span), "# head");
    assert_string_equal(spanned(f, ast->comment[1].span), "# tail");
    assert_true(ast->comment[0].own_line && !ast->comment[1].own_line);
}

/* One expression, as after -D. */
static const Expr *expression(Fixture *f, const char *text)
{
    return parse_expr(f->arena, f->diags, source_add(f->arena, &f->sources, "-D x", text, strlen(text)));
}

static void expressions(void **state)
{
    Fixture *f = *state;
    assert_true(expression(f, "9223372036854775807")->integer == INT64_MAX);
    assert_true(expression(f, "1e-400")->real == 0);
    assert_true(expression(f, "0.1")->real == 0.1);
    assert_int_equal(expression(f, "hybrid(stale, steps = 5, then = (1, 2))")->nargs, 3);
    assert_int_equal(expression(f, " 56 # depth\n")->integer, 56);
    assert_string_equal(expression(f, "\"data/mnist\"")->text, "data/mnist");
    assert_int_equal(expression(f, "yes")->kind, EXPR_BOOL);
    assert_string_equal(expression(f, "a.b.c")->text, "a.b.c");
    assert_int_equal(diag_errors(f->diags), 0);
    static const char *const wrong[] = {"",     " ",       "1 2", "a = 3", "(1", "9223372036854775808",
                                        "x |>", "25 GB/s", "}",   "a\nb"};
    for (int i = 0; i < COUNT(wrong); i++) {
        int before = diag_errors(f->diags);
        assert_null(expression(f, wrong[i]));
        assert_true(diag_errors(f->diags) > before);
    }
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* main uses blocks/a and blocks/b, which both use blocks/c: c, a, b, main, each once. */
static void uses(void **state)
{
    Fixture *f = *state;
    char folder[] = "/tmp/pnetc-parse-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *path[] = {"blocks", "blocks/a.pnet", "blocks/b.pnet", "blocks/c.pnet", "main.pnet"};
    for (int i = 0; i < COUNT(path); i++)
        path[i] = arena_printf(f->arena, "%s/%s", folder, path[i]);
    assert_int_equal(mkdir(path[0], 0700), 0);
    write_text(path[1], "use \"c.pnet\"\ndef a() {\n}\n");
    write_text(path[2], "use \"../blocks/c.pnet\"\ndef b() {\n}\n");
    write_text(path[3], "def c() {\n}\n");
    write_text(path[4], "use \"blocks/a.pnet\"\nuse \"blocks/b.pnet\"\ndef d() {\n}\n");
    const Ast *ast = load(f->arena, f->diags, &f->sources, path[4]);
    assert_int_equal(diag_errors(f->diags), 0);
    Text names = text_new(f->arena);
    for (int i = 0; i < ast->nitems; i++)
        if (ast->item[i].kind == ITEM_DEF)
            text_printf(&names, "%s", ast->item[i].name);
    assert_string_equal(names.data, "cabd");
    assert_string_equal(ast->file->path, path[4]);
    assert_int_equal(f->sources.count, 4);
    for (int i = COUNT(path) - 1; i > 0; i--)
        assert_int_equal(unlink(path[i]), 0);
    assert_int_equal(rmdir(path[0]), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* An error leaves what could be read. */
static void after_errors(void **state)
{
    Fixture *f = *state;
    const char *text =
        "network a {\n    x = 1 2\n    y = f((3)\n    z = 4\n}\ntrain {\n    batch = = 3\n    steps = 5\n}\n";
    const Ast *ast = parse(f->arena, f->diags, source_add(f->arena, &f->sources, "test.pnet", text, strlen(text)));
    assert_int_equal(diag_errors(f->diags), 3);
    assert_int_equal(ast->nitems, 2);
    assert_int_equal(ast->item[0].body.count, 2);
    assert_string_equal(ast->item[0].body.stmt[1].name, "z");
    assert_int_equal(ast->item[1].nsettings, 1);
}

/* Two megabytes. */
static void long_text(void **state)
{
    Fixture *f = *state;
    Text text = text_new(f->arena);
    text_printf(&text, "network long_one {\n");
    for (int i = 0; i < 30000; i++)
        text_printf(&text, "    h%d = h%d |> conv(16, kernel = 3, pad = 1) |> relu  # layer\n", i, i - 1);
    text_printf(&text, "}\n");
    assert_int_equal(parsed(f, text.data)->item[0].body.count, 30000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(everything),  TEST(precedence), TEST(keys),         TEST(layout),    TEST(spans),
        TEST(expressions), TEST(uses),       TEST(after_errors), TEST(long_text),
    };
    return cmocka_run_group_tests_name("parse", tests, NULL, NULL);
}
