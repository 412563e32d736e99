/* parse.c: text -> Ast. Drives the grammar over the tokens of layout.c and gives tokens their values. A pure function
 * of the text: nothing is looked up, folded or remembered. */
#include "parser.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pnet.tab.h"

static int64_t integer_value(Parser *p, const char *text, int length, Span span)
{
    int64_t value = 0;
    for (int i = 0; i < length; i++)
        if (!checked_mul(value, 10, &value) || !checked_add(value, text[i] - '0', &value)) {
            diag_error(p->diags, P0110, span, "the integer %.*s%s does not fit into 64 bits", length > 30 ? 30 : length,
                       text, length > 30 ? "..." : "");
            diag_hint(p->diags, "the largest is 9223372036854775807");
            return 0;
        }
    return value;
}

static double real_value(Parser *p, const char *text, int length, Span span)
{
    const char *copy = arena_text(p->arena, text, (size_t)length);
    errno = 0;
    double value = strtod(copy, NULL);
    if (errno == ERANGE && (value > 1 || value < -1)) {
        diag_error(p->diags, P0110, span, "the number %.30s%s is too large", copy, length > 30 ? "..." : "");
        return 0;
    }
    return value;
}

/* What stands between the quotes, escapes resolved; NULL after an error. */
static Name text_value(Parser *p, const char *text, int length, Span span)
{
    Text value = text_new(p->arena);
    bool right = true;
    for (int i = 1; i < length - 1; i++) {
        if (text[i] != '\\') {
            text_append(&value, &text[i], 1);
            continue;
        }
        i++;
        const char *known = strchr("\\\"nt", text[i]);
        if (known) {
            text_append(&value, &"\\\"\n\t"[known - "\\\"nt"], 1);
        } else {
            Span here = {span.at + (uint32_t)i - 1, span.at + (uint32_t)i + 1};
            diag_error(p->diags, P0104, here, "no such escape in a text");
            diag_hint(p->diags, "there are \\\\ \\\" \\n and \\t");
            right = false;
        }
    }
    return right ? name_intern(p->arena, value.data, value.length) : NULL;
}

int grammar_lex(GRAMMAR_STYPE *value, Span *span, Parser *p)
{
    if (p->next < p->token.count)
        p->next++;
    Token token = p->token.at[p->next - 1];
    int length;
    const char *text = token_text(p, token, &length);
    *span = (Span){p->file->base + token.at, p->file->base + token.end};
    switch (token.kind) {
    case T_INTEGER:
        value->integer = integer_value(p, text, length, *span);
        break;
    case T_REAL:
        value->real = real_value(p, text, length, *span);
        break;
    case T_TEXT:
        value->name = token.reported ? NULL : text_value(p, text, length, *span);
        break;
    default:
        value->name = name_intern(p->arena, text, (size_t)length);
        break;
    }
    return token.kind;
}

static void read_text(Parser *p, int start)
{
    if (p->file->length > MAX_SOURCE) {
        diag_error(p->diags, P0111, (Span){p->file->base, p->file->base}, "the file is larger than %d MiB",
                   MAX_SOURCE >> 20);
        return;
    }
    if (tokens_read(p, start))
        grammar_parse(p);
}

Ast *parse(Arena *arena, Diags *diags, const SourceFile *file)
{
    Parser p = {.arena = arena, .diags = diags, .file = file};
    read_text(&p, T_START_FILE);
    Ast *ast = arena_alloc(arena, sizeof *ast);
    *ast = (Ast){
        .item = p.item.at, .nitems = p.item.count, .comment = p.comment.at, .ncomments = p.comment.count, .file = file};
    return ast;
}

Expr *parse_expr(Arena *arena, Diags *diags, const SourceFile *file)
{
    int before = diag_errors(diags);
    Parser p = {.arena = arena, .diags = diags, .file = file};
    read_text(&p, T_START_EXPR);
    return diag_errors(diags) == before ? p.expression : NULL;
}
