/* diag.c: the arena, names, texts and numbers of base.h; sources and the rendering of diagnostics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "diag.h"

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

/* What print() writes, in the arena. */
static const char *captured(Fixture *f, void (*print)(Fixture *f, FILE *out))
{
    char *data;
    size_t length;
    FILE *out = open_memstream(&data, &length);
    assert_non_null(out);
    print(f, out);
    assert_int_equal(fclose(out), 0);
    const char *copy = arena_text(f->arena, data, length);
    free(data);
    return copy;
}

static void plain(Fixture *f, FILE *out)
{
    diags_render(f->diags, out, false);
}

static void coloured(Fixture *f, FILE *out)
{
    diags_render(f->diags, out, true);
}

static const SourceFile *add(Fixture *f, const char *path, const char *text)
{
    return source_add(f->arena, &f->sources, path, text, strlen(text));
}

/* The span of the first `word` in a file. */
static Span span_of(const SourceFile *file, const char *word)
{
    const char *found = strstr(file->text, word);
    assert_non_null(found);
    uint32_t at = file->base + (uint32_t)(found - file->text);
    return (Span){at, at + (uint32_t)strlen(word)};
}

static void memory(void **state)
{
    Fixture *f = *state;
    for (size_t size = 0; size < 3000000; size = size * 3 + 1) {
        unsigned char *block = arena_alloc(f->arena, size);
        assert_int_equal((uintptr_t)block % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(block[i], 0);
        memset(block, 0xFF, size);
    }
    VEC(int) numbers = {0};
    for (int i = 0; i < 10000; i++)
        *vec_push(f->arena, &numbers) = i;
    assert_int_equal(numbers.count, 10000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(numbers.at[i], i);
}

static void names(void **state)
{
    Fixture *f = *state;
    Name first[5000];
    for (int i = 0; i < COUNT(first); i++)
        first[i] = name_of(f->arena, arena_printf(f->arena, "name%d", i));
    for (int i = 0; i < COUNT(first); i++) {
        assert_ptr_equal(first[i], name_of(f->arena, arena_printf(f->arena, "name%d", i)));
        assert_string_equal(first[i], arena_printf(f->arena, "name%d", i));
    }
    assert_ptr_equal(name_intern(f->arena, "name12345", 6), first[12]);
    assert_ptr_not_equal(name_intern(f->arena, "name\0001", 6), name_intern(f->arena, "name\0002", 6));
}

static void texts(void **state)
{
    Fixture *f = *state;
    Text text = text_new(f->arena);
    assert_string_equal(text.data, "");
    for (int i = 0; i < 1000; i++)
        text_printf(&text, "%d,", i % 10);
    text_append(&text, "end", 2);
    assert_int_equal(text.length, 2002);
    assert_string_equal(text.data + 1996, "8,9,en");
    assert_int_equal(strlen(text.data), text.length);
    char wide[500];
    memset(wide, 'x', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    assert_string_equal(arena_printf(f->arena, "%s", wide), wide);
}

static void numbers(void **state)
{
    Fixture *f = *state;
    int64_t result = 7;
    assert_false(checked_mul(INT64_MAX / 2, 3, &result));
    assert_false(checked_add(INT64_MAX, 1, &result));
    assert_false(checked_add(INT64_MIN, -1, &result));
    assert_int_equal(result, 7);
    assert_true(checked_mul(INT64_MAX, 1, &result));
    assert_true(result == INT64_MAX);
    assert_true(checked_mul(-3, 4, &result));
    assert_int_equal(result, -12);
    assert_string_equal(human_bytes(f->arena, 0), "0 B");
    assert_string_equal(human_bytes(f->arena, 950), "950 B");
    assert_string_equal(human_bytes(f->arena, 999), "999 B");
    assert_string_equal(human_bytes(f->arena, 12345), "12.3 kB");
    assert_string_equal(human_bytes(f->arena, 999949), "1.00 MB");
    assert_string_equal(human_bytes(f->arena, 1881600), "1.88 MB");
    assert_string_equal(human_bytes(f->arena, INT64_MAX), "9.22 EB");
    assert_string_equal(human_count(f->arena, 24.6e6), "24.6 M");
    assert_string_equal(human_count(f->arena, 156), "156");
    assert_int_equal(round_up(13, 8), 16);
}

static void near_words(void **state)
{
    (void)state;
    static const char *const words[] = {"conv", "linear", "maxpool", "avgpool", "softmax_cross_entropy", "relu", "add"};
    assert_string_equal(nearest("conw", words, COUNT(words)), "conv");
    assert_string_equal(nearest("Conv2d", words, COUNT(words)), "conv");
    assert_string_equal(nearest("ocnv", words, COUNT(words)), "conv");
    assert_string_equal(nearest("maxpol", words, COUNT(words)), "maxpool");
    assert_string_equal(nearest("softmax", words, COUNT(words)), "softmax_cross_entropy");
    assert_string_equal(nearest("lineaer", words, COUNT(words)), "linear");
    assert_null(nearest("transformer", words, COUNT(words)));
    assert_null(nearest("x", words, COUNT(words)));
    assert_null(nearest("", words, COUNT(words)));
}

static void places(void **state)
{
    Fixture *f = *state;
    const SourceFile *a = add(f, "a.pnet", "\xEF\xBB\xBFone\r\ntw\xC3\xB6!\n"), *b = add(f, "b.pnet", "x");
    int line, column;
    assert_null(source_of(&f->sources, 0));
    assert_string_equal(source_of(&f->sources, a->base)->path, "a.pnet");
    assert_string_equal(source_of(&f->sources, a->base + a->length)->path, "a.pnet");
    assert_string_equal(source_of(&f->sources, b->base)->path, "b.pnet");
    assert_null(source_of(&f->sources, b->base + 2));
    source_locate(a, span_of(a, "one").at, &line, &column);
    assert_int_equal(line * 100 + column, 101);
    source_locate(a, span_of(a, "!").at, &line, &column);
    assert_int_equal(line * 100 + column, 204);
    source_locate(a, a->base + a->length, &line, &column);
    assert_int_equal(line * 100 + column, 301);
}

static void rendering(void **state)
{
    Fixture *f = *state;
    const SourceFile *file = add(f, "dir/net.pnet", "a = 1\n\tb\xC3\xA9 = foo(x)\nlast");
    diag_error(f->diags, P0102, span_of(file, "last"), "the %s error", "second");
    diag_error(f->diags, P0101, span_of(file, "foo"), "the first error");
    diag_note(f->diags, span_of(file, "a = 1"), "declared here");
    diag_hint(f->diags, "type %d", 7);
    diag_warning(f->diags, P0103, (Span){0, 0}, "no place");
    assert_int_equal(diag_errors(f->diags), 2);
    assert_string_equal(captured(f, plain), "pnetc: warning: no place [P0103]\n"
                                            "dir/net.pnet:2:7: error: the first error [P0101]\n"
                                            "    \tb\xC3\xA9 = foo(x)\n"
                                            "    \t     ^~~\n"
                                            "dir/net.pnet:1:1: note: declared here\n"
                                            "    a = 1\n"
                                            "    ^~~~~\n"
                                            "hint: type 7\n"
                                            "dir/net.pnet:3:1: error: the second error [P0102]\n"
                                            "    last\n"
                                            "    ^~~~\n");
    const char *colours = captured(f, coloured);
    assert_non_null(strstr(colours, "\033[1;31merror:\033[0m"));
    assert_non_null(strstr(colours, "\033[1;32m^~~\033[0m"));
}

static void duplicates(void **state)
{
    Fixture *f = *state;
    const SourceFile *file = add(f, "x", "abc def");
    for (int i = 0; i < 3; i++) {
        diag_error(f->diags, P0101, span_of(file, "abc"), "once");
        diag_note(f->diags, span_of(file, "def"), "once, too");
        diag_error(f->diags, P0101, (Span){0, 0}, "without place %d", i / 2);
    }
    diag_error(f->diags, P0102, span_of(file, "abc"), "another code");
    assert_int_equal(diag_errors(f->diags), 4);
    assert_string_equal(captured(f, plain), "pnetc: error: without place 0 [P0101]\n"
                                            "pnetc: error: without place 1 [P0101]\n"
                                            "x:1:1: error: once [P0101]\n    abc def\n    ^~~\n"
                                            "x:1:5: note: once, too\n    abc def\n        ^~~\n"
                                            "x:1:1: error: another code [P0102]\n    abc def\n    ^~~\n");
}

static void cap(void **state)
{
    Fixture *f = *state;
    char text[3000];
    memset(text, 'x', sizeof text);
    const SourceFile *file = source_add(f->arena, &f->sources, "x", text, sizeof text);
    for (uint32_t i = 0; i < sizeof text; i++)
        diag_error(f->diags, P0101, (Span){file->base + i, file->base + i + 1}, "error");
    diag_warning(f->diags, P0101, (Span){file->base, file->base + 2}, "still shown");
    assert_int_equal(diag_errors(f->diags), 3000);
    const char *said = captured(f, plain), *end = "pnetc: 2980 more errors\n";
    assert_string_equal(said + strlen(said) - strlen(end), end);
    assert_non_null(strstr(said, "still shown"));
}

/* Bytes that would move the cursor or break the columns; a span behind the end; a line without end. */
static void strange_lines(void **state)
{
    Fixture *f = *state;
    static const char text[] = "\0\033[2J\xFF\xC2\x9B\x7F here\r\n";
    const SourceFile *file = source_add(f->arena, &f->sources, "x", text, sizeof text - 1);
    diag_error(f->diags, P0101, (Span){file->base + 10, file->base + 14}, "found");
    diag_error(f->diags, P0102, (Span){file->base + file->length, file->base + file->length + 5}, "at the end");
    assert_string_equal(captured(f, plain),
                        "x:1:11: error: found [P0101]\n"
                        "    \xE2\x90\x80\xE2\x90\x9B[2J\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xE2\x90\xA1 here\n"
                        "              ^~~~\n"
                        "x:2:1: error: at the end [P0102]\n    \n    ^\n");
}

static void long_lines(void **state)
{
    Fixture *f = *state;
    char text[4001];
    memset(text, '.', 4000);
    text[4000] = '\0';
    memcpy(text + 2000, "HERE", 4);
    const SourceFile *file = add(f, "x", text);
    diag_error(f->diags, P0101, span_of(file, "HERE"), "found");
    const char *said = captured(f, plain), *here = strstr(said, "HERE"), *line = strchr(said, '\n') + 1;
    assert_non_null(here);
    const char *under = strchr(line, '\n') + 1;
    assert_int_equal(strchr(under, '^') - under, here - line);
    assert_true(under - line < 130);
    assert_int_equal(strncmp(line, "    ...", 7), 0);
    assert_int_equal(strncmp(under - 4, "...\n", 4), 0);
}

static void explain_known(Fixture *f, FILE *out)
{
    (void)f;
    assert_true(diag_explain("p0102", out));
}

static void explain_unknown(Fixture *f, FILE *out)
{
    (void)f;
    assert_false(diag_explain("P0192", out));
    assert_false(diag_explain("nonsense", out));
    assert_false(diag_explain("", out));
}

static void explain_list(Fixture *f, FILE *out)
{
    (void)f;
    assert_true(diag_explain(NULL, out));
}

static void explain(void **state)
{
    Fixture *f = *state;
    const char *text = captured(f, explain_known);
    assert_int_equal(strncmp(text, "P0102: ", 7), 0);
    text = captured(f, explain_unknown);
    assert_non_null(strstr(text, "no code 'P0192'\nhint: did you mean P0102?"));
    assert_non_null(strstr(text, "no code 'nonsense'\nhint: codes look like P0301"));
    text = captured(f, explain_list);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, CODE_COUNT);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(memory),    TEST(names),      TEST(texts), TEST(numbers),       TEST(near_words), TEST(places),
        TEST(rendering), TEST(duplicates), TEST(cap),   TEST(strange_lines), TEST(long_lines), TEST(explain),
    };
    return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
