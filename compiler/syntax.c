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
        if (expects(e, order[i]) && !(in_chain && strcmp(order[i], "'('") == 0))
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

static const char *word(const Parser *p, Token token)
{
    int length;
    const char *text = token_text(p, token, &length);
    return arena_text(p->arena, text, (size_t)length);
}

static void hint(Parser *p, const Expected *e, int i)
{
    static const char *const items[] = {"network", "def", "use", "param", "train", "pipeline", "machine"};
    static const char *const statements[] = {"input", "register", "loss", "for", "if", "else", "return"};
    Token now = p->token.at[i], before = i > 0 ? p->token.at[i - 1] : (Token){0};
    Token before_that = i > 1 ? p->token.at[i - 2] : (Token){0};
    bool item = expects(e, "'network'") && !expects(e, "a name");
    bool second = before.kind == T_NAME && (before_that.kind == T_NEWLINE || before_that.kind == '{');
    const char *near;
    if (item && now.kind == T_NAME && (near = nearest(word(p, now), items, COUNT(items))))
        diag_hint(p->diags, "did you mean `%s`?", near);
    else if (item && (now.kind == T_NAME || is_keyword(now.kind)))
        diag_hint(p->diags, "statements stand inside a network or a def");
    else if (now.kind == '=' && expects(e, "'=='"))
        diag_hint(p->diags, "`==` compares");
    else if (now.kind == '=' && before.kind == T_LOSS)
        diag_hint(p->diags, "loss takes an expression: loss softmax_cross_entropy(x, label)");
    else if (now.kind == '=' && before.kind == T_REGISTER)
        diag_hint(p->diags, "`register` stands alone; `registers = ...` is a setting of the pipeline block");
    else if (is_keyword(now.kind) && expects(e, "a name") && e->count == 1)
        diag_hint(p->diags, "`%s` is a word of the language; choose another name", word(p, now));
    else if (now.kind == T_NAME && before.kind == '}' && strcmp(word(p, now), "elif") == 0)
        diag_hint(p->diags, "write `else if`");
    else if (second && (near = nearest(word(p, before), statements, COUNT(statements))))
        diag_hint(p->diags, "did you mean `%s`?", near);
    else if (now.kind == T_NAME && (before.kind == T_INTEGER || before.kind == T_REAL) &&
             expects(e, "the end of the line"))
        diag_hint(p->diags, "units stand in machine blocks only");
    else if (expects(e, "'|>'") && !expects(e, "'+'") && now.kind < 128 && strchr("+-*/%", now.kind))
        diag_hint(p->diags, "put the chain in parentheses: (x |> relu) %c y", now.kind);
    else if (before.kind == T_PIPE && now.kind == T_NEWLINE)
        diag_hint(p->diags, "a chain goes on when the next line begins with `|>`");
    else if (before.kind == T_PIPE && is_keyword(now.kind))
        diag_hint(p->diags, "`%s` is a word of the language", word(p, now));
}

void syntax_error(Parser *p, const char *const *expected, int count)
{
    Expected e = {expected, count};
    int i = p->next - 1;
    Token token = p->token.at[i];
    Span span = {p->file->base + token.at, p->file->base + token.end};
    diag_error(p->diags, P0102, span, "expected %s before %s", what(p->arena, &e), found(p, i));
    hint(p, &e, i);
}
