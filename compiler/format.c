/* format.c: the canonical text of one file (pnetc fmt).
 *
 *   indent 4, one blank around signs, no blank inside brackets; numbers and texts as written; user parentheses kept
 *   one blank line at most between statements, exactly one around items with a block
 *   `=` in one column in a run of neighbouring assignments or settings; comments at line ends in one column likewise
 *   a line over 100 columns is broken before |>, else behind a comma; a break before |> that was written stays
 *   a comment inside a statement moves in front of it; a block of one statement on one line stays on it if it fits
 *
 * Lines are made first, then aligned and printed. format(parse(format(x))) == format(x). */
#include "ast.h"

#include <string.h>

enum { WIDTH = 100, INDENT = 4, MAX_PAD = 24, MAX_CHAIN_COLUMN = 40 };

/* A place where a line may be broken. Level: 2 * bracket depth for |>, one less behind a comma: arguments
 * part before chains. */
typedef struct {
    size_t at;
    int level;
    bool kept; /* the source has a newline here */
} Break;

typedef struct {
    const char *text; /* without indent; "" is a blank line */
    const char *comment;
    int indent;
} Line;

typedef struct {
    Arena *arena;
    const Ast *ast;
    int next; /* the first comment not yet printed */
    int indent;
    VEC(Line) line;
    VEC(Break) brk; /* of the statement under construction */
    int depth;      /* of brackets in it */
} Format;

/* ---- places in the source ---- */

static const char *source(const Format *f, uint32_t at)
{
    return f->ast->file->text + (at - f->ast->file->base);
}

static bool newline_between(const Format *f, uint32_t from, uint32_t to)
{
    return to > from && memchr(source(f, from), '\n', to - from);
}

/* Does a blank line stand before the line that begins with `at`? */
static bool blank_before(const Format *f, uint32_t at)
{
    const char *start = f->ast->file->text, *c = source(f, at);
    int newlines = 0;
    while (c > start && strchr(" \t\r\n", c[-1]) && c[-1]) {
        newlines += c[-1] == '\n';
        c--;
    }
    return newlines > 1;
}

/* ---- lines ---- */

static void add_line(Format *f, const char *text)
{
    *vec_push(f->arena, &f->line) = (Line){.text = text, .indent = f->indent};
}

/* No blank line at the start of a block or of the file, and never two. */
static void add_blank(Format *f)
{
    if (!f->line.count)
        return;
    const Line *last = &f->line.at[f->line.count - 1];
    size_t length = strlen(last->text);
    bool opens = length && last->text[length - 1] == '{' && last->indent < f->indent;
    if (length && !opens)
        *vec_push(f->arena, &f->line) = (Line){.text = ""};
}

static const Comment *next_comment(const Format *f)
{
    return f->next < f->ast->ncomments ? &f->ast->comment[f->next] : NULL;
}

static const char *comment_text(const Format *f, const Comment *comment)
{
    return arena_text(f->arena, source(f, comment->span.at), comment->span.end - comment->span.at);
}

/* Comments that begin before `at` get lines of their own; `blank` asks for a blank line before the first. */
static bool flush_comments(Format *f, uint32_t at, bool blank)
{
    bool any = false;
    for (const Comment *comment; (comment = next_comment(f)) && comment->span.at < at; f->next++) {
        if ((blank && !any) || blank_before(f, comment->span.at))
            add_blank(f);
        add_line(f, arena_printf(f->arena, "%s", comment_text(f, comment)));
        any = true;
    }
    return any;
}

/* A comment with only blanks between `end` and itself joins the line printed last. */
static void trailing_comment(Format *f, uint32_t end)
{
    const Comment *comment = next_comment(f);
    if (!comment || comment->span.at < end)
        return;
    for (const char *c = source(f, end); c < source(f, comment->span.at); c++)
        if (*c != ' ' && *c != '\t')
            return;
    f->line.at[f->line.count - 1].comment = comment_text(f, comment);
    f->next++;
}

/* Comments in front of and inside [at, end), then the blank line that the source has. */
static void lead(Format *f, uint32_t at, uint32_t end, bool blank)
{
    bool any = flush_comments(f, end, blank);
    if ((blank && !any) || blank_before(f, at))
        add_blank(f);
}

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
        text_append(out, source(f, expr->name_span.at), expr->name_span.end - expr->name_span.at);
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
            .kept = f->depth == 0 && newline_between(f, expr->left->span.end, expr->name_span.at),
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
        int digits = (int)strcspn(source(f, expr->name_span.at), " \t"
                                                                 "ABCDFGHIJKLMNOPQRSTUVWXYZabcdfghijklmnopqrstuvwxyz_");
        text_printf(out, "%.*s %s", digits, source(f, expr->name_span.at), expr->text);
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

/* ---- breaking lines ---- */

static size_t columns(const char *text, size_t length)
{
    size_t count = 0;
    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* The break to take in text[from..]: the first that was written; else, if the line is too long, the last of the lowest
 * level that fits, or the first of all. -1: none. */
static int choose_break(const Format *f, const Text *text, size_t from, size_t room)
{
    size_t stop = text->length;
    int kept = -1, best = -1;
    for (int i = 0; i < f->brk.count && kept < 0; i++)
        if (f->brk.at[i].at > from && f->brk.at[i].kept)
            kept = i;
    if (kept >= 0)
        stop = f->brk.at[kept].at;
    if (columns(text->data + from, stop - from) <= room + (kept >= 0))
        return kept;
    for (int i = 0; i < f->brk.count; i++) {
        const Break *brk = &f->brk.at[i];
        if (brk->at <= from || brk->at > stop)
            continue;
        bool fits = columns(text->data + from, brk->at - from) <= room + 1; /* the blank before it is dropped */
        if (!fits && best < 0)
            return i;
        if (fits && (best < 0 || brk->level <= f->brk.at[best].level))
            best = i;
    }
    return best >= 0 ? best : kept;
}

/* Adds a statement's lines. Continuations stand below the first |> if that is near, else two indents further. */
static void add_statement(Format *f, const Text *text)
{
    int further = f->indent + 2 * INDENT, outer = f->indent;
    size_t from = 0;
    bool first = true;
    int chain = further;
    for (int i = 0; i < f->brk.count; i++)
        if (f->brk.at[i].level == 0) {
            size_t column = (size_t)f->indent + columns(text->data, f->brk.at[i].at);
            chain = column <= MAX_CHAIN_COLUMN ? (int)column : further;
            break;
        }
    bool chain_printed = false; /* a |> already stands on a line: the next one goes below it */
    for (;;) {
        int brk = choose_break(f, text, from, (size_t)(WIDTH - f->indent));
        size_t end = brk >= 0 ? f->brk.at[brk].at : text->length, length = end - from;
        while (length && text->data[from + length - 1] == ' ')
            length--;
        add_line(f, arena_text(f->arena, text->data + from, length));
        if (brk < 0)
            break;
        for (int i = 0; i < f->brk.count; i++)
            chain_printed = chain_printed || (f->brk.at[i].level == 0 && f->brk.at[i].at < end);
        if (f->brk.at[brk].level == 0) {
            if (!chain_printed)
                chain = further;
            f->indent = chain;
        } else if (first) {
            f->indent = further;
        }
        first = false;
        from = end;
    }
    f->indent = outer;
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
    if (body->count > 1 || newline_between(f, body->span.at, body->span.end) || (body->count && has_block(body->stmt)))
        return false;
    int breaks = f->brk.count;
    Text line = text_new(f->arena);
    text_printf(&line, "%s { ", header->data);
    if (body->count) {
        put_simple(f, &line, body->stmt, 0);
        put(&line, " ");
    }
    put(&line, "}");
    bool fits = (size_t)f->indent + columns(line.data, line.length) <= WIDTH;
    f->brk.count = breaks;
    if (fits)
        add_line(f, line.data);
    return fits;
}

/* The header's line with its `{`; comments in the header stand before it already. */
static void open_block(Format *f, Text *header, uint32_t brace)
{
    put(header, " {");
    add_statement(f, header);
    trailing_comment(f, brace + 1);
}

static void close_block(Format *f, uint32_t end, const char *text)
{
    f->indent += INDENT;
    flush_comments(f, end - 1, false);
    f->indent -= INDENT;
    add_line(f, text);
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
        flush_comments(f, stmt->body.span.end - 1, false);
        f->indent -= INDENT;
        Text text = begin(f);
        bool chain = other->count == 1 && other->stmt->kind == STMT_IF && *source(f, other->span.at) != '{';
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
    lead(f, stmt->span.at, header_end, false);
    Text text = begin(f);
    put_simple(f, &text, stmt, pad);
    if (stmt->kind == STMT_IF) {
        put_if(f, &text, stmt);
    } else if (stmt->kind == STMT_FOR && !put_inline(f, &text, &stmt->body)) {
        open_block(f, &text, stmt->body.span.at);
        put_body(f, &stmt->body);
        close_block(f, stmt->body.span.end, "}");
    } else if (stmt->kind != STMT_FOR) {
        add_statement(f, &text);
    }
    trailing_comment(f, stmt->span.end);
}

/* May [at, end) stand in one run with what ends at `before`: on the next line, with no comment of its own before it? */
static bool joins_run(const Format *f, uint32_t before, uint32_t at, uint32_t end)
{
    if (blank_before(f, at))
        return false;
    for (int i = f->next; i < f->ast->ncomments && f->ast->comment[i].span.at < end; i++)
        if (f->ast->comment[i].span.at >= before && newline_between(f, before, f->ast->comment[i].span.at))
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
    lead(f, setting->span.at, header_end, false);
    Text text = begin(f);
    if (setting->value) {
        text_printf(&text, "%-*s = ", pad, setting->name);
        put_expr(f, &text, setting->value);
        add_statement(f, &text);
    } else {
        text_printf(&text, "%s%s%s", setting->name, setting->label ? " " : "", setting->label ? setting->label : "");
        open_block(f, &text, setting->body.at);
        put_settings(f, setting->inner, setting->ninner);
        close_block(f, setting->span.end, "}");
    }
    trailing_comment(f, setting->span.end);
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
    lead(f, item->span.at, is_block(item) ? item->body.span.at : item->span.end, blank);
    Text text = begin(f);
    text_append(&text, source(f, item->keyword.at), item->keyword.end - item->keyword.at);
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
        add_statement(f, &text);
    }
    trailing_comment(f, item->span.end);
}

/* ---- printing ---- */

static size_t width(const Line *line)
{
    return (size_t)line->indent + columns(line->text, strlen(line->text));
}

/* Comments of neighbouring lines stand in one column, two blanks behind the longest. */
static void print(const Format *f, Text *out)
{
    size_t column = 0;
    for (int i = 0, run = 0; i < f->line.count; i++) {
        const Line *line = &f->line.at[i];
        if (line->comment && i >= run) {
            column = 0;
            for (run = i; run < f->line.count && f->line.at[run].comment; run++)
                column = width(&f->line.at[run]) > column ? width(&f->line.at[run]) : column;
        }
        if (*line->text)
            text_printf(out, "%*s%s", line->indent, "", line->text);
        if (line->comment)
            text_printf(out, "%*s%s", (int)(column - width(line)) + 2, "", line->comment);
        text_append(out, "\n", 1);
    }
}

void format(const Ast *ast, Text *out)
{
    Format f = {.arena = out->arena, .ast = ast};
    for (int i = 0; i < ast->nitems; i++) {
        const Item *item = &ast->item[i];
        put_item(&f, item, i > 0 && (is_block(item) || is_block(item - 1)));
    }
    flush_comments(&f, UINT32_MAX, false);
    print(&f, out);
}
