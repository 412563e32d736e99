/* lower_expr.c: an expression becomes a Value; op calls in it become nodes. */
#include "lower.h"
#include "op.h"

#include <string.h>

void lower_trace(Lower *l, const Scope *scope)
{
    uint32_t last = 0; /* a recursive call is noted once */
    for (int notes = 0; notes < MAX_CALL_NOTES && scope && scope->caller; scope = scope->caller) {
        if (scope->call.at == last)
            continue;
        diag_note(l->diags, scope->call, "in this call of %s", scope->item->name);
        last = scope->call.at;
        notes++;
    }
}

bool lower_step(Lower *l, const Scope *scope, Span span)
{
    if (l->stopped)
        return false;
    if (l->depth > MAX_DEPTH) {
        FAIL(l, scope, P0213, span, "more than %d expressions and blocks are nested here", MAX_DEPTH);
        l->stopped = true;
    } else if (++l->work > MAX_WORK) {
        FAIL(l, scope, P0214, span, "expanding the network takes more than %d steps", MAX_WORK);
        diag_hint(l->diags, "are the bounds of the loops right?");
        l->stopped = true;
    }
    return !l->stopped;
}

/* ---- names ---- */

static void note_definition(Lower *l, const Scope *scope, const Expr *expr)
{
    const int at = scope->names ? map_get(&scope->names->index, expr->text) : -1;
    if (at < 0)
        return;
    const Span first = scope->names->bound.at[at].first;
    if (map_get(&scope->index, expr->text) >= 0)
        diag_note(l->diags, first, "%s is the variable of this loop and unknown outside of it", expr->text);
    else if (first.at > expr->span.at)
        diag_note(l->diags, first, "%s is defined later, here", expr->text);
    else
        diag_note(l->diags, first, "%s is bound here, in a branch or loop that was not run", expr->text);
}

static Value unknown_name(Lower *l, const Scope *scope, const Expr *expr)
{
    const char *name = expr->text;
    if (op_find(name) || map_get(&l->def_index, expr->text) >= 0) {
        FAIL(l, scope, P0201, expr->span, "%s is %s, not a value", name, op_find(name) ? "an op" : "a def");
        diag_hint(l->diags, "call it: %s(...), or x |> %s", name, name);
        return value_error();
    }
    FAIL(l, scope, P0201, expr->span, "unknown name %s", name);
    note_definition(l, scope, expr);
    const char *near = scope_nearest(l, scope, expr->text);
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
    return value_error();
}

static Value name_value(Lower *l, Scope *scope, const Expr *expr)
{
    const Binding *binding = scope_find(scope, expr->text);
    if (binding)
        return binding->value;
    return is_initialiser(expr->text) ? lower_init(l, scope, expr) : unknown_name(l, scope, expr);
}

/* ---- initialisers ---- */

enum { INIT_ARGS = 2 };
static const struct {
    const char *name;
    InitKind kind;
    int nargs, required;
    const char *key[INIT_ARGS];
    double fallback[INIT_ARGS];
} init_table[] = {
    {"he", INIT_HE, 0, 0, {0}, {0}},
    {"xavier", INIT_XAVIER, 0, 0, {0}, {0}},
    {"gaussian", INIT_GAUSSIAN, 2, 0, {"std", "mean"}, {0.01, 0}},
    {"uniform", INIT_UNIFORM, 2, 2, {"low", "high"}, {0}},
    {"constant", INIT_CONSTANT, 1, 1, {"value"}, {0}},
};

static int find_initialiser(const char *name)
{
    for (int i = 0; i < COUNT(init_table); i++)
        if (!strcmp(init_table[i].name, name))
            return i;
    return -1;
}

bool is_initialiser(const char *name)
{
    return find_initialiser(name) >= 0;
}

/* `call` is a call or the bare name. */
Value lower_init(Lower *l, Scope *scope, const Expr *call)
{
    const int which = find_initialiser(call->text);
    double number[INIT_ARGS] = {init_table[which].fallback[0], init_table[which].fallback[1]};
    const int nargs = init_table[which].nargs;
    const Arg *slot[INIT_ARGS] = {0};
    if (!bind_arguments(l, scope, call, 0, init_table[which].key, nargs, slot, (Span){0, 0}))
        return value_error();
    bool good = true;
    for (int i = 0; i < nargs; i++) {
        const char *what = arena_printf(l->arena, "%s of %s", init_table[which].key[i], call->text);
        if (slot[i])
            good &= value_want_number(l, scope, lower_expr(l, scope, slot[i]->value, NULL), slot[i]->value->span, what,
                                      &number[i]);
        else if (i < init_table[which].required) {
            FAIL(l, scope, P0207, call->span, "%s needs %s", call->text, init_table[which].key[i]);
            return value_error();
        }
    }
    if (!good)
        return value_error();
    const InitKind kind = init_table[which].kind;
    if ((kind == INIT_GAUSSIAN && number[0] < 0) || (kind == INIT_UNIFORM && number[0] > number[1])) {
        FAIL(l, scope, P0212, call->span,
             kind == INIT_GAUSSIAN ? "std of gaussian must not be negative" : "uniform wants low <= high");
        return value_error();
    }
    /* Init holds mean and deviation in this order; the language puts std first. */
    const Init init = {.kind = kind,
                       .a = kind == INIT_GAUSSIAN ? number[1] : number[0],
                       .b = kind == INIT_GAUSSIAN ? number[0] : number[1]};
    return (Value){.kind = VALUE_INIT, .init = init};
}

/* ---- calls ---- */

static Value unknown_callee(Lower *l, Scope *scope, const Expr *call)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < op_count; i++)
        *vec_push(l->arena, &names) = op_table[i]->name;
    for (int i = 0; i < l->ndefs; i++)
        *vec_push(l->arena, &names) = l->def[i]->name;
    for (int i = 0; i < COUNT(init_table); i++)
        *vec_push(l->arena, &names) = init_table[i].name;
    const Binding *binding = scope_find(scope, call->text);
    if (binding) {
        FAIL(l, scope, P0202, call->name_span, "%s is a value, not an op or a def", call->text);
        diag_note(l->diags, binding->span, "%s is bound here", call->text);
    } else {
        FAIL(l, scope, P0202, call->name_span, "unknown op or def %s", call->text);
        const char *near = nearest(call->text, names.at, names.count);
        if (near)
            diag_hint(l->diags, "did you mean %s? `pnetc list ops` shows all ops", near);
        else
            diag_hint(l->diags, "`pnetc list ops` shows all ops");
    }
    for (int i = 0; i < call->nargs; i++) /* what is wrong in them is wrong anyway */
        lower_expr(l, scope, call->arg[i].value, NULL);
    return value_error();
}

static Value call_value(Lower *l, Scope *scope, const Expr *call, const First *first, Name explicit_name)
{
    if (!lower_step(l, scope, call->name_span))
        return value_error();
    const int def = map_get(&l->def_index, call->text);
    if (def >= 0)
        return lower_def(l, scope, def, call, first);
    const OpDef *op = op_find(call->text);
    if (op)
        return lower_op(l, scope, op, call, first, explicit_name);
    if (is_initialiser(call->text) && !first)
        return lower_init(l, scope, call);
    if (is_initialiser(call->text)) {
        FAIL(l, scope, P0206, call->name_span, "%s is an initialiser and takes nothing from |>", call->text);
        return value_error();
    }
    return unknown_callee(l, scope, call);
}

/* a |> f |> g(...): from the left, without recursion, since chains are as long as networks are deep. */
static Value pipe_value(Lower *l, Scope *scope, const Expr *expr, Name explicit_name)
{
    VEC(const Expr *) calls = {0};
    const Expr *start = expr;
    for (; start->kind == EXPR_PIPE; start = start->left)
        *vec_push(l->arena, &calls) = start;
    First first = {lower_expr(l, scope, start, NULL), start->span};
    for (int i = calls.count - 1; i >= 0; i--) {
        const Expr *call = calls.at[i];
        first.value = call_value(l, scope, call, &first, i ? NULL : explicit_name);
        first.span.end = call->span.end;
    }
    return first.value;
}

/* ---- operators ---- */

static Value logical_value(Lower *l, Scope *scope, const Expr *expr, Value left)
{
    const char *what = expr->op == OP_AND ? "a side of `and`" : "a side of `or`";
    bool a, b;
    if (!value_want_bool(l, scope, left, expr->left->span, what, &a))
        return value_error();
    if (a == (expr->op == OP_OR)) /* the right side counts only if the left does not decide */
        return left;
    Value right = lower_expr(l, scope, expr->right, NULL);
    return value_want_bool(l, scope, right, expr->right->span, what, &b) ? right : value_error();
}

static Value operator_value(Lower *l, Scope *scope, const Expr *expr, Value left, Name explicit_name)
{
    if (expr->op == OP_AND || expr->op == OP_OR)
        return logical_value(l, scope, expr, left);
    Value right = lower_expr(l, scope, expr->right, NULL);
    if (expr->op != OP_ADD || left.kind == VALUE_ERROR || right.kind == VALUE_ERROR ||
        (left.kind != VALUE_TENSOR && right.kind != VALUE_TENSOR))
        return value_binary(l, scope, expr, left, right);
    if (left.kind == right.kind)
        return lower_add(l, scope, expr, left, right, explicit_name);
    const bool tensor_left = left.kind == VALUE_TENSOR;
    FAIL(l, scope, P0209, (tensor_left ? expr->right : expr->left)->span, "expected a tensor, found %s",
         value_text(l, tensor_left ? &right : &left));
    diag_note(l->diags, (tensor_left ? expr->left : expr->right)->span, "the other side of `+` is %s",
              value_text(l, tensor_left ? &left : &right));
    return value_error();
}

/* a + b + ...: from the left, as chains of |> */
static Value binary_value(Lower *l, Scope *scope, const Expr *expr, Name explicit_name)
{
    VEC(const Expr *) operators = {0};
    const Expr *start = expr;
    for (; start->kind == EXPR_BINARY; start = start->left)
        *vec_push(l->arena, &operators) = start;
    Value value = lower_expr(l, scope, start, NULL);
    for (int i = operators.count - 1; i >= 0; i--)
        value = operator_value(l, scope, operators.at[i], value, i ? NULL : explicit_name);
    return value;
}

static Value expression(Lower *l, Scope *scope, const Expr *expr, Name explicit_name)
{
    switch (expr->kind) {
    case EXPR_INTEGER:
        return value_integer(expr->integer);
    case EXPR_REAL:
        return value_real(expr->real);
    case EXPR_TEXT:
        return (Value){.kind = VALUE_TEXT, .text = expr->text};
    case EXPR_BOOL:
        return (Value){.kind = VALUE_BOOL, .integer = expr->integer != 0};
    case EXPR_NAME:
        return name_value(l, scope, expr);
    case EXPR_CALL:
        return call_value(l, scope, expr, NULL, explicit_name);
    case EXPR_PIPE:
        return pipe_value(l, scope, expr, explicit_name);
    case EXPR_UNARY:
        return value_unary(l, scope, expr, lower_expr(l, scope, expr->left, NULL));
    case EXPR_BINARY:
        return binary_value(l, scope, expr, explicit_name);
    case EXPR_LIST:
        FAIL(l, scope, P0209, expr->span, "a list stands where one value is wanted");
        return value_error();
    case EXPR_QUANTITY:
        FAIL(l, scope, P0209, expr->span, "a number with the unit %s stands outside a machine block", expr->text);
        return value_error();
    case EXPR_ERROR:
        break;
    }
    return value_error();
}

Value lower_expr(Lower *l, Scope *scope, const Expr *expr, Name explicit_name)
{
    if (!lower_step(l, scope, expr->span))
        return value_error();
    l->depth++;
    Value value = expression(l, scope, expr, explicit_name);
    l->depth--;
    return value;
}
