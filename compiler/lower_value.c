/* lower_value.c: constant arithmetic.
 *
 * Integers are 64 bits and never wrap: overflow is an error. An integer divided by an integer is an integer when it
 * divides exactly, else a real: nothing is rounded in silence, and a size that came out fractional is an error where it
 * is used.
 * `%` is the remainder with the sign of the left side. A mixed pair is computed in reals; a result that is not finite
 * is an error. == and != also compare texts and truth values. */
#include "lower.h"

#include <math.h>
#include <string.h>

Value value_error(void)
{
    return (Value){.kind = VALUE_ERROR};
}

Value value_integer(int64_t integer)
{
    return (Value){.kind = VALUE_INTEGER, .integer = integer, .real = (double)integer};
}

Value value_real(double real)
{
    return (Value){.kind = VALUE_REAL, .real = real};
}

static Value value_bool(bool truth)
{
    return (Value){.kind = VALUE_BOOL, .integer = truth};
}

static bool is_number(const Value *value)
{
    return value->kind == VALUE_INTEGER || value->kind == VALUE_REAL;
}

const char *value_text(Lower *l, const Value *value)
{
    switch (value->kind) {
    case VALUE_INTEGER:
        return arena_printf(l->arena, "the number %lld", (long long)value->integer);
    case VALUE_REAL:
        return arena_printf(l->arena, "the number %g", value->real);
    case VALUE_BOOL:
        return value->integer ? "the truth value true" : "the truth value false";
    case VALUE_TEXT:
        return "a text";
    case VALUE_INIT:
        return "an initialiser";
    case VALUE_TENSOR:
        return arena_printf(l->arena, "a tensor, %s", shape_text(l->arena, &l->graph->node[value->node].shape));
    case VALUE_ERROR:
        break;
    }
    return "nothing";
}

static const char *operator_text(Operator op)
{
    static const char *const text[] = {
        [OP_NEG] = "-", [OP_NOT] = "not", [OP_ADD] = "+", [OP_SUB] = "-",   [OP_MUL] = "*",
        [OP_DIV] = "/", [OP_MOD] = "%",   [OP_EQ] = "==", [OP_NE] = "!=",   [OP_LT] = "<",
        [OP_LE] = "<=", [OP_GT] = ">",    [OP_GE] = ">=", [OP_AND] = "and", [OP_OR] = "or",
    };
    return text[op];
}

/* The operand that stands in the way. */
static Value wrong_operand(Lower *l, const Scope *scope, const Expr *expr, const Expr *side, const Value *value,
                           const char *wanted)
{
    FAIL(l, scope, P0209, side->span, "`%s` wants %s, found %s", operator_text(expr->op), wanted, value_text(l, value));
    if (value->kind == VALUE_TENSOR)
        diag_note(l->diags, l->graph->node[value->node].span, "the tensor comes from here");
    return value_error();
}

Value value_unary(Lower *l, const Scope *scope, const Expr *expr, Value value)
{
    if (value.kind == VALUE_ERROR)
        return value;
    if (expr->op == OP_NOT)
        return value.kind == VALUE_BOOL ? value_bool(!value.integer)
                                        : wrong_operand(l, scope, expr, expr->left, &value, "a truth value");
    if (!is_number(&value))
        return wrong_operand(l, scope, expr, expr->left, &value, "a number");
    if (value.kind == VALUE_REAL)
        return value_real(-value.real);
    if (value.integer == INT64_MIN) {
        FAIL(l, scope, P0210, expr->span, "the result does not fit into 64 bits");
        return value_error();
    }
    return value_integer(-value.integer);
}

static Value overflow(Lower *l, const Scope *scope, const Expr *expr)
{
    FAIL(l, scope, P0210, expr->span, "the result does not fit into 64 bits");
    return value_error();
}

static Value divided_by_zero(Lower *l, const Scope *scope, const Expr *expr)
{
    FAIL(l, scope, P0211, expr->right->span, "division by zero");
    return value_error();
}

static Value integer_arithmetic(Lower *l, const Scope *scope, const Expr *expr, int64_t a, int64_t b)
{
    int64_t result = 0;
    switch (expr->op) {
    case OP_ADD:
        return checked_add(a, b, &result) ? value_integer(result) : overflow(l, scope, expr);
    case OP_SUB:
        if (b == INT64_MIN ? a >= 0 : !checked_add(a, -b, &result))
            return overflow(l, scope, expr);
        return value_integer(b == INT64_MIN ? a - b : result);
    case OP_MUL:
        return checked_mul(a, b, &result) ? value_integer(result) : overflow(l, scope, expr);
    case OP_DIV:
        if (b == 0)
            return divided_by_zero(l, scope, expr);
        if (b == -1)
            return a == INT64_MIN ? overflow(l, scope, expr) : value_integer(-a);
        return a % b == 0 ? value_integer(a / b) : value_real((double)a / (double)b);
    default: /* OP_MOD */
        if (b == 0)
            return divided_by_zero(l, scope, expr);
        return value_integer(b == -1 ? 0 : a % b);
    }
}

static Value real_arithmetic(Lower *l, const Scope *scope, const Expr *expr, double a, double b)
{
    double result;
    if ((expr->op == OP_DIV || expr->op == OP_MOD) && b == 0)
        return divided_by_zero(l, scope, expr);
    switch (expr->op) {
    case OP_ADD:
        result = a + b;
        break;
    case OP_SUB:
        result = a - b;
        break;
    case OP_MUL:
        result = a * b;
        break;
    case OP_DIV:
        result = a / b;
        break;
    default: /* OP_MOD */
        result = fmod(a, b);
        break;
    }
    if (!isfinite(result)) {
        FAIL(l, scope, P0210, expr->span, "the result is not a finite number");
        return value_error();
    }
    return value_real(result);
}

static Value compare(const Expr *expr, const Value *a, const Value *b)
{
    const bool whole = a->kind == VALUE_INTEGER && b->kind == VALUE_INTEGER;
    const int order =
        whole ? (a->integer > b->integer) - (a->integer < b->integer) : (a->real > b->real) - (a->real < b->real);
    switch (expr->op) {
    case OP_EQ:
        return value_bool(order == 0);
    case OP_NE:
        return value_bool(order != 0);
    case OP_LT:
        return value_bool(order < 0);
    case OP_LE:
        return value_bool(order <= 0);
    case OP_GT:
        return value_bool(order > 0);
    default: /* OP_GE */
        return value_bool(order >= 0);
    }
}

Value value_binary(Lower *l, const Scope *scope, const Expr *expr, Value left, Value right)
{
    if (left.kind == VALUE_ERROR || right.kind == VALUE_ERROR)
        return value_error();
    const bool equality = expr->op == OP_EQ || expr->op == OP_NE;
    if (equality && left.kind == right.kind && (left.kind == VALUE_BOOL || left.kind == VALUE_TEXT)) {
        const bool same = left.kind == VALUE_BOOL ? left.integer == right.integer : !strcmp(left.text, right.text);
        return value_bool(same == (expr->op == OP_EQ));
    }
    if (!is_number(&left))
        return wrong_operand(l, scope, expr, expr->left, &left, "a number");
    if (!is_number(&right))
        return wrong_operand(l, scope, expr, expr->right, &right, "a number");
    if (expr->op >= OP_EQ)
        return compare(expr, &left, &right);
    if (left.kind == VALUE_INTEGER && right.kind == VALUE_INTEGER)
        return integer_arithmetic(l, scope, expr, left.integer, right.integer);
    return real_arithmetic(l, scope, expr, left.real, right.real);
}

/* ---- typed values ---- */

static bool wrong_value(Lower *l, const Scope *scope, const Value *value, Span span, const char *what,
                        const char *wanted)
{
    if (value->kind == VALUE_ERROR)
        return false;
    FAIL(l, scope, P0209, span, "%s must be %s, found %s", what, wanted, value_text(l, value));
    if (value->kind == VALUE_TENSOR)
        diag_note(l->diags, l->graph->node[value->node].span, "the tensor comes from here");
    return false;
}

bool value_want_integer(Lower *l, const Scope *scope, Value value, Span span, const char *what, int64_t *out)
{
    if (value.kind != VALUE_INTEGER)
        return wrong_value(l, scope, &value, span, what, "a whole number");
    *out = value.integer;
    return true;
}

bool value_want_number(Lower *l, const Scope *scope, Value value, Span span, const char *what, double *out)
{
    if (!is_number(&value))
        return wrong_value(l, scope, &value, span, what, "a number");
    *out = value.real;
    return true;
}

bool value_want_bool(Lower *l, const Scope *scope, Value value, Span span, const char *what, bool *out)
{
    if (value.kind != VALUE_BOOL)
        return wrong_value(l, scope, &value, span, what, "true or false");
    *out = value.integer != 0;
    return true;
}
