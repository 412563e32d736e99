/* syntax.c: the wording of syntax errors: "expected WHAT before FOUND", and the hint when the mistake is a known one.
 */
#include "parser.h"

#include <string.h>

#include "pnet.tab.h"

typedef struct {
    const char *const *name;
    int count;
} Expected;

static bool expects(const Expected *e, const char *name)
{
    for (int i = 0; i < e->count; i++)
        if (strcmp(e->name[i], name) == 0)
            return true;
    return false;
}

/* Names joined by ", " and "or". */
static const char *joined(Arena *arena, const char *const *name, int count)
{
    Text text = text_new(arena);
    for (int i = 0; i < count; i++)
        text_printf(&text, "%s%s", i == 0 ? "" : i + 1 == count ? " or " : ", ", name[i]);
    return text.data;
}

/* The set of expected tokens in words: groups by what they begin, operators only where nothing else could follow. */
static const char *what(Arena *arena, const Expected *e)
{
    static const char *const operators[] = {"'+'",  "'-'",  "'*'",  "'/'",  "'%'",   "'<'",  "'>'", "'('",
                                            "'=='", "'!='", "'<='", "'>='", "'and'", "'or'", "'|>'"};
    static const char *const order[] = {"a name",
                                        "a text",
                                        "'='",
                                        "','",
                                        "':'",
                                        "'..'",
                                        "'('",
                                        "'['",
                                        "'{'",
                                        "')'",
                                        "']'",
                                        "'}'",
                                        "the end of the line",
                                        "the end of the file"};
    if (expects(e, "an integer") && expects(e, "'('"))
        return expects(e, "')'") ? "an argument or ')'" : "an expression";
    if (expects(e, "'return'") && !expects(e, "'network'"))
        return "a statement or '}'";
    if (expects(e, "'network'"))
        return expects(e, "'='") || expects(e, "a name") ? "a setting or '}'"
                                                         : "network, def, use, param, train, pipeline or machine";
    bool in_expression = expects(e, "'+'"), in_chain = expects(e, "'|>'");
    const char *name[64];
    int count = 0;
    for (int i = 0; i < COUNT(order); i++)
        if (expects(e, order[i]) && !(in_chain && (strcmp(order[i], "'('") == 0 || strcmp(order[i], "'='") == 0)))
            name[count++] = order[i];
    for (int i = 0; i < e->count && count < COUNT(name); i++) {
        bool known = false;
        for (int k = 0; k < COUNT(order); k++)
            known = known || strcmp(e->name[i], order[k]) == 0;
        for (int k = 0; k < COUNT(operators); k++)
            known = known || ((in_expression || in_chain) && strcmp(e->name[i], operators[k]) == 0);
        if (!known)
            name[count++] = e->name[i];
    }
    return count ? joined(arena, name, count) : "something else";
}

static bool is_keyword(int kind)
{
    return kind >= T_NETWORK && kind <= T_NO;
}

static bool is_comparison(int kind)
{
    return kind == '<' || kind == '>' || kind == T_EQ || kind == T_NE || kind == T_LE || kind == T_GE;
}

/* The token in words; a long one is shortened. */
static const char *found(const Parser *p, int i)
{
    Token token = p->token.at[i];
    if (token.kind == T_NEWLINE && token.at == token.end)
        return found(p, i + 1);
    if (token.kind == T_NEWLINE || (token.kind == '{' && token.at == token.end))
        return "the end of the line";
    if (token.kind == T_END)
        return "the end of the file";
    int length;
    const char *text = token_text(p, token, &length);
    bool cut = length > 40;
    return arena_printf(p->arena, "'%.*s%s'", cut ? 40 : length, text, cut ? "..." : "");
}

static const char *token_copy(const Parser *p, Token token)
{
    int length;
    const char *text = token_text(p, token, &length);
    return arena_text(p->arena, text, (size_t)length);
}

/* The mistakes that people are known to make; NULL: another one. */
static const char *known_mistake(const Parser *p, const Expected *e, int i)
{
    static const char *const items[] = {"network", "def", "use", "param", "train", "pipeline", "machine"};
    static const char *const statements[] = {"input", "register", "loss", "for", "if", "else", "return"};
    Arena *arena = p->arena;
    Token now = p->token.at[i], before = p->token.at[i > 0 ? i - 1 : 0], before_that = p->token.at[i > 1 ? i - 2 : 0];
    const char *word = token_copy(p, now), *word_before = token_copy(p, before);
    bool item = expects(e, "'network'") && !expects(e, "a name");
    bool second = before.kind == T_NAME && (before_that.kind == T_NEWLINE || before_that.kind == '{');
    bool number_before = before.kind == T_INTEGER || before.kind == T_REAL;
    const char *near;

    if (item && now.kind == T_NAME && (near = nearest(word, items, COUNT(items))))
        return arena_printf(arena, "did you mean `%s`?", near);
    if (item && (now.kind == T_NAME || is_keyword(now.kind)))
        return "statements stand inside a network or a def";
    if (now.kind == '=' && before.kind == T_LOSS)
        return "loss takes an expression: loss softmax_cross_entropy(x, label)";
    if (now.kind == '=' && before.kind == T_REGISTER)
        return "`register` stands alone; `registers = ...` is a setting of the pipeline block";
    if (now.kind == '=' && expects(e, "'=='") && expects(e, "'{'"))
        return "`==` compares";
    if (now.kind == ':' && expects(e, "'='"))
        return "write `=`";
    if (is_keyword(now.kind) && e->count == 1 && expects(e, "a name"))
        return arena_printf(arena, "`%s` is a word of the language; choose another name", word);
    if (is_keyword(before.kind) && (now.kind == '=' || (e->count == 1 && expects(e, "'='"))))
        return arena_printf(arena, "`%s` is a word of the language; choose another name", word_before);
    if (now.kind == T_NAME && before.kind == '}' && strcmp(word, "elif") == 0)
        return "write `else if`";
    if (second && (near = nearest(word_before, statements, COUNT(statements))))
        return arena_printf(arena, "did you mean `%s`?", near);
    if (now.kind == '(' && second)
        return arena_printf(arena, "a statement gives its value a name: y = %s(...)", word_before);
    if (now.kind == '[' && (expects(e, "an integer") || before.kind == '='))
        return "a list is written (1, 2)";
    if (is_comparison(now.kind) && expects(e, "'and'"))
        return "comparisons are joined by `and`";
    if (now.kind == T_INTEGER && expects(e, "'return'") && p->token.at[i + 1].at == now.end)
        return "names begin with a letter or _";
    if (now.kind == T_NAME && number_before && now.at == before.end)
        return "a number is made of digits, a point and an exponent: 30000, 0.5, 5e-4";
    if (now.kind == T_NAME && number_before && expects(e, "the end of the line"))
        return "units stand in machine blocks only";
    if (expects(e, "'|>'") && !expects(e, "'+'") && now.kind < 128 && strchr("+-*/%", now.kind))
        return arena_printf(arena, "put the chain in parentheses: (x |> relu) %c y", now.kind);
    if (before.kind == T_PIPE && now.kind == T_NEWLINE)
        return "a chain goes on when the next line begins with `|>`";
    return NULL;
}

void syntax_error(Parser *p, const char *const *expected, int count)
{
    Expected e = {expected, count};
    int i = p->next - 1;
    Token token = p->token.at[i];
    if (token.reported)
        return;
    if (p->cut && (token.at >= p->cut || token.at == token.end))
        return;
    Span span = {p->file->base + token.at, p->file->base + token.end};
    diag_error(p->diags, P0102, span, "expected %s before %s", what(p->arena, &e), found(p, i));
    const char *hint = known_mistake(p, &e, i);
    if (hint)
        diag_hint(p->diags, "%s", hint);
}
