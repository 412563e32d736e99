/* format.c: the canonical text of one file (pnetc fmt).
 *
 *   indent 4, one blank around signs, no blank inside brackets; numbers and texts as written; user parentheses kept
 *   one blank line at most between statements, exactly one around items with a block
 *   `=` in one column in a run of neighbouring assignments or settings; comments at line ends in one column likewise
 *   a line over 100 columns is broken before |>, else behind a comma; a break before |> that was written stays
 *   a comment inside a statement moves in front of it; a block of one statement on one line stays on it if it fits
 *
 * Lines are made first, then aligned and printed. format(parse(format(x))) == format(x). */
#include "format.h"

#include <string.h>

/* ---- expressions ---- */

static const char *const operator_text[] = {
    [OP_NEG] = "-",   [OP_NOT] = "not ", [OP_ADD] = " + ", [OP_SUB] = " - ",   [OP_MUL] = " * ",
    [OP_DIV] = " / ", [OP_MOD] = " % ",  [OP_EQ] = " == ", [OP_NE] = " != ",   [OP_LT] = " < ",
    [OP_LE] = " <= ", [OP_GT] = " > ",   [OP_GE] = " >= ", [OP_AND] = " and ", [OP_OR] = " or ",
};

static void put(Text *out, const char *text)
{
    text_append(out, text, strlen(text));
}

static void put_expr(Format *f, Text *out, const Expr *expr);

static void put_args(Format *f, Text *out, const Arg *arg, int count)
{
    put(out, "(");
    f->depth++;
    for (int i = 0; i < count; i++) {
        if (i > 0) {
            put(out, ", ");
            *vec_push(f->arena, &f->brk) = (Break){.at = out->length, .level = 2 * f->depth - 1};
        }
        if (arg[i].key)
            text_printf(out, "%s = ", arg[i].key);
        put_expr(f, out, arg[i].value);
    }
    f->depth--;
    put(out, ")");
}

static void put_expr(Format *f, Text *out, const Expr *expr)
{
    if (expr->parens) {
        put(out, "(");
        f->depth++;
    }
    switch (expr->kind) {
    case EXPR_INTEGER:
    case EXPR_REAL:
    case EXPR_TEXT:
    case EXPR_BOOL:
    case EXPR_NAME:
        text_append(out, format_source(f, expr->name_span.at), expr->name_span.end - expr->name_span.at);
        break;
    case EXPR_CALL:
        put(out, expr->text);
        put_args(f, out, expr->arg, expr->nargs);
        break;
    case EXPR_PIPE:
        put_expr(f, out, expr->left);
        put(out, " ");
        *vec_push(f->arena, &f->brk) = (Break){
            .at = out->length,
            .level = 2 * f->depth,
            .kept = f->depth == 0 && format_newline_between(f, expr->left->span.end, expr->name_span.at),
        };
        text_printf(out, "|> %s", expr->text);
        if (!expr->bare)
            put_args(f, out, expr->arg, expr->nargs);
        break;
    case EXPR_UNARY:
        put(out, operator_text[expr->op]);
        put_expr(f, out, expr->left);
        break;
    case EXPR_BINARY:
        put_expr(f, out, expr->left);
        put(out, operator_text[expr->op]);
        put_expr(f, out, expr->right);
        break;
    case EXPR_LIST:
        put_args(f, out, expr->arg, expr->nargs);
        break;
    case EXPR_QUANTITY: {
        const char *number = format_source(f, expr->name_span.at);
        if (*number == '-')
            number += 1 + strspn(number + 1, " \t");
        const int digits = (int)strcspn(number, " \t"
                                                "ABCDFGHIJKLMNOPQRSTUVWXYZabcdfghijklmnopqrstuvwxyz_");
        text_printf(out, "%s%.*s %s", expr->real < 0 ? "-" : "", digits, number, expr->text);
        break;
    }
    case EXPR_ERROR:
        ICE("an Ast with errors reached format()");
    }
    if (expr->parens) {
        put(out, ")");
        f->depth--;
    }
}

static Text begin(Format *f)
{
    f->brk.count = 0;
    f->depth = 0;
    return text_new(f->arena);
}

/* ---- statements ---- */

static void put_body(Format *f, const Body *body);

/* The statement without its blocks; a header is followed by its block. */
static void put_simple(Format *f, Text *out, const Stmt *stmt, int pad)
{
    switch (stmt->kind) {
    case STMT_INPUT:
        text_printf(out, "input %s: %s", stmt->name, stmt->type.name);
        for (int i = 0; i < stmt->type.ndims; i++) {
            put(out, i == 0 ? "[" : ", ");
            f->depth++;
            put_expr(f, out, stmt->type.dim[i]);
            f->depth--;
        }
        put(out, stmt->type.ndims ? "]" : "");
        break;
    case STMT_ASSIGN:
        text_printf(out, "%-*s = ", pad, stmt->name);
        put_expr(f, out, stmt->value);
        break;
    case STMT_REGISTER:
        put(out, "register");
        break;
    case STMT_LOSS:
    case STMT_RETURN:
        put(out, stmt->kind == STMT_LOSS ? "loss " : "return ");
        put_expr(f, out, stmt->value);
        break;
    case STMT_FOR:
        text_printf(out, "for %s in ", stmt->name);
        put_expr(f, out, stmt->value);
        put(out, "..");
        put_expr(f, out, stmt->limit);
        break;
    case STMT_IF:
        put(out, "if ");
        put_expr(f, out, stmt->value);
        break;
    }
}

static bool has_block(const Stmt *stmt)
{
    return stmt->kind == STMT_FOR || stmt->kind == STMT_IF;
}

/* ` { one statement }` behind a header, when it was written so and fits. */
static bool put_inline(Format *f, const Text *header, const Body *body)
{
    if (body->count > 1 || format_newline_between(f, body->span.at, body->span.end) ||
        (body->count && has_block(body->stmt)))
        return false;
    int breaks = f->brk.count;
    Text line = text_new(f->arena);
    text_printf(&line, "%s { ", header->data);
    if (body->count) {
        put_simple(f, &line, body->stmt, 0);
        put(&line, " ");
    }
    put(&line, "}");
    bool fits = (size_t)f->indent + format_columns(line.data, line.length) <= WIDTH;
    f->brk.count = breaks;
    if (fits)
        format_line(f, line.data);
    return fits;
}

/* The header's line with its `{`; comments in the header stand before it already. */
static void open_block(Format *f, Text *header, uint32_t brace)
{
    put(header, " {");
    format_statement(f, header);
    format_trailing_comment(f, brace + 1);
}

static void close_block(Format *f, uint32_t end, const char *text)
{
    f->indent += INDENT;
    format_comments(f, end - 1, false);
    f->indent -= INDENT;
    format_line(f, text);
}

static void put_if(Format *f, Text *header, const Stmt *stmt)
{
    if (!stmt->has_other && put_inline(f, header, &stmt->body))
        return;
    open_block(f, header, stmt->body.span.at);
    put_body(f, &stmt->body);
    while (stmt->has_other) {
        const Body *other = &stmt->other;
        f->indent += INDENT;
        format_comments(f, stmt->body.span.end - 1, false);
        f->indent -= INDENT;
        Text text = begin(f);
        bool chain = other->count == 1 && other->stmt->kind == STMT_IF && *format_source(f, other->span.at) != '{';
        put(&text, chain ? "} else " : "} else");
        if (chain)
            put_simple(f, &text, other->stmt, 0);
        stmt = chain ? other->stmt : stmt;
        open_block(f, &text, chain ? stmt->body.span.at : other->span.at);
        put_body(f, chain ? &stmt->body : other);
        if (!chain) {
            close_block(f, other->span.end, "}");
            return;
        }
    }
    close_block(f, stmt->body.span.end, "}");
}

static void put_stmt(Format *f, const Stmt *stmt, int pad)
{
    uint32_t header_end = has_block(stmt) ? stmt->body.span.at : stmt->span.end;
    format_lead(f, stmt->span.at, header_end, false);
    Text text = begin(f);
    put_simple(f, &text, stmt, pad);
    if (stmt->kind == STMT_IF) {
        put_if(f, &text, stmt);
    } else if (stmt->kind == STMT_FOR && !put_inline(f, &text, &stmt->body)) {
        open_block(f, &text, stmt->body.span.at);
        put_body(f, &stmt->body);
        close_block(f, stmt->body.span.end, "}");
    } else if (stmt->kind != STMT_FOR) {
        format_statement(f, &text);
    }
    format_trailing_comment(f, stmt->span.end);
}

/* May [at, end) stand in one run with what ends at `before`: on the next line, with no comment of its own before it? */
static bool joins_run(const Format *f, uint32_t before, uint32_t at, uint32_t end)
{
    if (format_blank_before(f, at))
        return false;
    for (int i = f->next; i < f->ast->ncomments && f->ast->comment[i].span.at < end; i++)
        if (f->ast->comment[i].span.at >= before && format_newline_between(f, before, f->ast->comment[i].span.at))
            return false;
    return true;
}

static int wider(int pad, const char *name)
{
    int length = (int)strlen(name);
    return length > pad && length <= MAX_PAD ? length : pad;
}

static void put_body(Format *f, const Body *body)
{
    f->indent += INDENT;
    int pad = 0;
    for (int i = 0, run = 0; i < body->count; i++) {
        const Stmt *stmt = &body->stmt[i];
        if (stmt->kind == STMT_ASSIGN && i >= run) {
            pad = wider(0, stmt->name);
            for (run = i + 1; run < body->count && body->stmt[run].kind == STMT_ASSIGN; run++) {
                const Stmt *before = &body->stmt[run - 1];
                if (!joins_run(f, before->span.end, body->stmt[run].span.at, body->stmt[run].span.end))
                    break;
                pad = wider(pad, body->stmt[run].name);
            }
        }
        put_stmt(f, stmt, pad);
    }
    f->indent -= INDENT;
}

/* ---- settings ---- */

static void put_settings(Format *f, const Setting *setting, int count);

static void put_setting(Format *f, const Setting *setting, int pad)
{
    uint32_t header_end = setting->value ? setting->span.end : setting->body.at;
    format_lead(f, setting->span.at, header_end, false);
    Text text = begin(f);
    if (setting->value) {
        text_printf(&text, "%-*s = ", pad, setting->name);
        put_expr(f, &text, setting->value);
        format_statement(f, &text);
    } else {
        text_printf(&text, "%s%s%s", setting->name, setting->label ? " " : "", setting->label ? setting->label : "");
        open_block(f, &text, setting->body.at);
        put_settings(f, setting->inner, setting->ninner);
        close_block(f, setting->span.end, "}");
    }
    format_trailing_comment(f, setting->span.end);
}

static void put_settings(Format *f, const Setting *setting, int count)
{
    f->indent += INDENT;
    int pad = 0;
    for (int i = 0, run = 0; i < count; i++) {
        if (setting[i].value && i >= run) {
            pad = wider(0, setting[i].name);
            for (run = i + 1; run < count && setting[run].value; run++) {
                if (!joins_run(f, setting[run - 1].span.end, setting[run].span.at, setting[run].span.end))
                    break;
                pad = wider(pad, setting[run].name);
            }
        }
        put_setting(f, &setting[i], pad);
    }
    f->indent -= INDENT;
}

/* ---- items ---- */

static void put_parameters(Format *f, Text *out, const Item *item)
{
    if (!item->nparams && item->kind == ITEM_NETWORK)
        return;
    put(out, "(");
    f->depth++;
    for (int i = 0; i < item->nparams; i++) {
        if (i > 0) {
            put(out, ", ");
            *vec_push(f->arena, &f->brk) = (Break){.at = out->length, .level = 2 * f->depth - 1};
        }
        put(out, item->param[i].name);
        if (item->param[i].initial) {
            put(out, " = ");
            put_expr(f, out, item->param[i].initial);
        }
    }
    f->depth--;
    put(out, ")");
}

static bool is_block(const Item *item)
{
    return item->kind != ITEM_USE && item->kind != ITEM_PARAM;
}

static void put_item(Format *f, const Item *item, bool blank)
{
    format_lead(f, item->span.at, is_block(item) ? item->body.span.at : item->span.end, blank);
    Text text = begin(f);
    text_append(&text, format_source(f, item->keyword.at), item->keyword.end - item->keyword.at);
    if (item->name)
        text_printf(&text, " %s", item->name);
    if (item->kind == ITEM_NETWORK || item->kind == ITEM_DEF)
        put_parameters(f, &text, item);
    if (item->value) {
        put(&text, item->kind == ITEM_PARAM ? " = " : " ");
        put_expr(f, &text, item->value);
    }
    if (is_block(item)) {
        open_block(f, &text, item->body.span.at);
        put_body(f, &item->body);
        put_settings(f, item->setting, item->nsettings);
        close_block(f, item->span.end, "}");
    } else {
        format_statement(f, &text);
    }
    format_trailing_comment(f, item->span.end);
}

void format(const Ast *ast, Text *out)
{
    Format f = {.arena = out->arena, .ast = ast};
    for (int i = 0; i < ast->nitems; i++) {
        const Item *item = &ast->item[i];
        put_item(&f, item, i > 0 && (is_block(item) || is_block(item - 1)));
    }
    format_comments(&f, UINT32_MAX, false);
    format_print(&f, out);
}
