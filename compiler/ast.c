/* ast.c: the Ast as a stable text, one node a line, children indented. Spans are left out: the text is for goldens. */
#include "ast.h"

#include <inttypes.h>
#include <stdlib.h>

static const char *const operator_name[] = {
    [OP_NEG] = "-", [OP_NOT] = "not", [OP_ADD] = "+", [OP_SUB] = "-",   [OP_MUL] = "*",
    [OP_DIV] = "/", [OP_MOD] = "%",   [OP_EQ] = "==", [OP_NE] = "!=",   [OP_LT] = "<",
    [OP_LE] = "<=", [OP_GT] = ">",    [OP_GE] = ">=", [OP_AND] = "and", [OP_OR] = "or",
};

static void line(Text *out, int depth, const char *format, ...) PRINTF_LIKE(3, 4);
static void line(Text *out, int depth, const char *format, ...)
{
    text_printf(out, "%*s", 2 * depth, "");
    va_list args;
    va_start(args, format);
    text_vprintf(out, format, args);
    va_end(args);
    text_append(out, "\n", 1);
}

/* The shortest text that reads back as the same number. */
static const char *real_text(Arena *arena, double value)
{
    const char *text = "";
    for (int digits = 15; digits <= 17; digits++) {
        text = arena_printf(arena, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    return text;
}

static const char *quoted(Arena *arena, const char *text)
{
    Text out = text_new(arena);
    text_append(&out, "\"", 1);
    for (; *text; text++)
        if (*text == '\n' || *text == '\t')
            text_printf(&out, "\\%c", *text == '\n' ? 'n' : 't');
        else
            text_printf(&out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    text_append(&out, "\"", 1);
    return out.data;
}

static void dump_expr(Text *out, int depth, const char *role, const Expr *expr);

static void dump_args(Text *out, int depth, const Expr *expr)
{
    for (int i = 0; i < expr->nargs; i++) {
        const char *role = expr->arg[i].key ? arena_printf(out->arena, "%s = ", expr->arg[i].key) : "";
        dump_expr(out, depth, role, expr->arg[i].value);
    }
}

static void dump_expr(Text *out, int depth, const char *role, const Expr *expr)
{
    switch (expr->kind) {
    case EXPR_INTEGER:
        line(out, depth, "%s%" PRId64, role, expr->integer);
        break;
    case EXPR_REAL:
        line(out, depth, "%s%s real", role, real_text(out->arena, expr->real));
        break;
    case EXPR_TEXT:
        line(out, depth, "%s%s", role, quoted(out->arena, expr->text));
        break;
    case EXPR_BOOL:
        line(out, depth, "%s%s", role, expr->integer ? "yes" : "no");
        break;
    case EXPR_NAME:
        line(out, depth, "%s%s", role, expr->text);
        break;
    case EXPR_CALL:
        line(out, depth, "%scall %s", role, expr->text);
        dump_args(out, depth + 1, expr);
        break;
    case EXPR_PIPE:
        line(out, depth, "%spipe into %s", role, expr->text);
        dump_expr(out, depth + 1, "", expr->left);
        dump_args(out, depth + 1, expr);
        break;
    case EXPR_UNARY:
        line(out, depth, "%s%s", role, operator_name[expr->op]);
        dump_expr(out, depth + 1, "", expr->left);
        break;
    case EXPR_BINARY:
        line(out, depth, "%s%s", role, operator_name[expr->op]);
        dump_expr(out, depth + 1, "", expr->left);
        dump_expr(out, depth + 1, "", expr->right);
        break;
    case EXPR_LIST:
        line(out, depth, "%slist", role);
        dump_args(out, depth + 1, expr);
        break;
    case EXPR_QUANTITY:
        line(out, depth, "%s%s %s", role, real_text(out->arena, expr->real), expr->text);
        break;
    case EXPR_ERROR:
        line(out, depth, "%serror", role);
        break;
    }
}

static void dump_body(Text *out, int depth, const Body *body);

static void dump_stmt(Text *out, int depth, const Stmt *stmt)
{
    switch (stmt->kind) {
    case STMT_INPUT:
        line(out, depth, "input %s: %s", stmt->name, stmt->type.name);
        for (int i = 0; i < stmt->type.ndims; i++)
            dump_expr(out, depth + 1, "", stmt->type.dim[i]);
        break;
    case STMT_ASSIGN:
        line(out, depth, "assign %s", stmt->name);
        dump_expr(out, depth + 1, "", stmt->value);
        break;
    case STMT_REGISTER:
        line(out, depth, "register");
        break;
    case STMT_LOSS:
        line(out, depth, "loss");
        dump_expr(out, depth + 1, "", stmt->value);
        break;
    case STMT_FOR:
        line(out, depth, "for %s", stmt->name);
        dump_expr(out, depth + 1, "from ", stmt->value);
        dump_expr(out, depth + 1, "below ", stmt->limit);
        dump_body(out, depth + 1, &stmt->body);
        break;
    case STMT_IF:
        line(out, depth, "if");
        dump_expr(out, depth + 1, "", stmt->value);
        dump_body(out, depth + 1, &stmt->body);
        if (stmt->has_other) {
            line(out, depth, "else");
            dump_body(out, depth + 1, &stmt->other);
        }
        break;
    case STMT_RETURN:
        line(out, depth, "return");
        dump_expr(out, depth + 1, "", stmt->value);
        break;
    }
}

static void dump_body(Text *out, int depth, const Body *body)
{
    for (int i = 0; i < body->count; i++)
        dump_stmt(out, depth, &body->stmt[i]);
}

static void dump_settings(Text *out, int depth, const Setting *setting, int count)
{
    for (int i = 0; i < count; i++) {
        if (setting[i].value) {
            dump_expr(out, depth, arena_printf(out->arena, "%s = ", setting[i].name), setting[i].value);
            continue;
        }
        line(out, depth, "%s%s%s", setting[i].name, setting[i].label ? " " : "",
             setting[i].label ? setting[i].label : "");
        dump_settings(out, depth + 1, setting[i].inner, setting[i].ninner);
    }
}

void ast_dump(const Ast *ast, Text *out)
{
    static const char *const kind[] = {
        [ITEM_NETWORK] = "network", [ITEM_DEF] = "def",           [ITEM_USE] = "use",         [ITEM_PARAM] = "param",
        [ITEM_TRAIN] = "train",     [ITEM_PIPELINE] = "pipeline", [ITEM_MACHINE] = "machine",
    };
    for (int i = 0; i < ast->nitems; i++) {
        const Item *item = &ast->item[i];
        line(out, 0, "%s%s%s", kind[item->kind], item->name ? " " : "", item->name ? item->name : "");
        for (int k = 0; k < item->nparams; k++) {
            line(out, 1, "parameter %s", item->param[k].name);
            if (item->param[k].initial)
                dump_expr(out, 2, "", item->param[k].initial);
        }
        if (item->value)
            dump_expr(out, 1, "", item->value);
        dump_body(out, 1, &item->body);
        dump_settings(out, 1, item->setting, item->nsettings);
    }
}
