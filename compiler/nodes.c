/* nodes.c: the nodes of the Ast, made for the grammar's actions. Keeps every expression tree below MAX_HEIGHT, so that
 * passes may recurse over it. */
#include "parser.h"

#include <string.h>

Expr *build_expr(Parser *p, ExprKind kind, Span span)
{
    Expr *expr = arena_alloc(p->arena, sizeof *expr);
    expr->kind = kind;
    expr->span = expr->name_span = span;
    expr->height = 1;
    return expr;
}

/* Counts `part` into the height of `whole`; false: too high, reported once a file, and `part` has to stay out. */
static bool fits(Parser *p, Expr *whole, const Expr *part)
{
    if (part->height >= MAX_HEIGHT) {
        if (!p->too_high)
            diag_error(p->diags, P0109, part->span, "an expression with more than %d steps in a row", MAX_HEIGHT - 1);
        p->too_high = true;
        return false;
    }
    if (whole->height <= part->height)
        whole->height = part->height + 1;
    return true;
}

static void take_args(Parser *p, Expr *expr, const ArgList *args)
{
    expr->arg = args ? args->at : NULL;
    expr->nargs = args ? args->count : 0;
    for (int i = 0; i < expr->nargs; i++)
        if (!fits(p, expr, expr->arg[i].value))
            expr->arg[i].value = build_expr(p, EXPR_ERROR, expr->arg[i].value->span);
}

Expr *build_text(Parser *p, Name text, Span span)
{
    Expr *expr = build_expr(p, text ? EXPR_TEXT : EXPR_ERROR, span);
    expr->text = text;
    return expr;
}

Expr *build_name(Parser *p, Name name, Span span)
{
    Expr *expr = build_expr(p, EXPR_NAME, span);
    expr->text = name;
    return expr;
}

Expr *build_call(Parser *p, Name callee, Span name_span, const ArgList *args, Span span)
{
    Expr *expr = build_expr(p, EXPR_CALL, span);
    expr->text = callee;
    expr->name_span = name_span;
    take_args(p, expr, args);
    return expr;
}

Expr *build_pipe(Parser *p, Expr *left, Name callee, Span name_span, const ArgList *args, Span span)
{
    Expr *expr = build_expr(p, EXPR_PIPE, span);
    if (!fits(p, expr, left))
        return left;
    expr->left = left;
    expr->text = callee;
    expr->name_span = name_span;
    take_args(p, expr, args);
    return expr;
}

Expr *build_unary(Parser *p, Operator op, Expr *operand, Span span)
{
    Expr *expr = build_expr(p, EXPR_UNARY, span);
    if (!fits(p, expr, operand))
        return operand;
    expr->op = op;
    expr->left = operand;
    return expr;
}

Expr *build_binary(Parser *p, Operator op, Expr *left, Expr *right)
{
    Expr *expr = build_expr(p, EXPR_BINARY, span_join(left->span, right->span));
    if (!fits(p, expr, left))
        return left;
    if (!fits(p, expr, right))
        return right;
    expr->op = op;
    expr->left = left;
    expr->right = right;
    return expr;
}

Expr *build_list(Parser *p, Expr *first, const ExprList *rest, Span span)
{
    ArgList *args = args_add(p, NULL, NULL, (Span){0, 0}, first);
    for (int i = 0; i < rest->count; i++)
        args_add(p, args, NULL, (Span){0, 0}, rest->at[i]);
    Expr *expr = build_expr(p, EXPR_LIST, span);
    take_args(p, expr, args);
    return expr;
}

Expr *build_quantity(Parser *p, double number, const char *unit, Span span)
{
    Expr *expr = build_expr(p, EXPR_QUANTITY, span);
    expr->real = number;
    expr->text = name_of(p->arena, unit);
    return expr;
}

/* Lists: NULL is the empty one; the result is the list to go on with. */

ExprList *exprs_add(Parser *p, ExprList *list, Expr *expr)
{
    if (!list)
        list = arena_alloc(p->arena, sizeof *list);
    *vec_push(p->arena, list) = expr;
    return list;
}

ArgList *args_add(Parser *p, ArgList *list, Name key, Span key_span, Expr *value)
{
    if (!list)
        list = arena_alloc(p->arena, sizeof *list);
    *vec_push(p->arena, list) = (Arg){key, key_span, value};
    return list;
}

ParamList *params_add(Parser *p, ParamList *list, Name name, Span span, Expr *initial)
{
    if (!list)
        list = arena_alloc(p->arena, sizeof *list);
    *vec_push(p->arena, list) = (ParamDecl){name, span, initial};
    return list;
}

StmtList *stmts_add(Parser *p, StmtList *list, const Stmt *stmt)
{
    if (!list)
        list = arena_alloc(p->arena, sizeof *list);
    *vec_push(p->arena, list) = *stmt;
    return list;
}

SettingList *settings_add(Parser *p, SettingList *list, const Setting *setting)
{
    if (!list)
        list = arena_alloc(p->arena, sizeof *list);
    *vec_push(p->arena, list) = *setting;
    return list;
}

Body build_body(const StmtList *list, Span span)
{
    return (Body){.stmt = list ? list->at : NULL, .count = list ? list->count : 0, .span = span};
}

void item_add(Parser *p, Item item, const ParamList *params, const SettingList *settings)
{
    item.param = params ? params->at : NULL;
    item.nparams = params ? params->count : 0;
    item.setting = settings ? settings->at : NULL;
    item.nsettings = settings ? settings->count : 0;
    *vec_push(p->arena, &p->item) = item;
}
