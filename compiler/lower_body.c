/* lower_body.c: statements. */
#include "lower.h"
#include "op.h"

#include <string.h>

enum { MAX_INPUT_DIM = 1 << 20, MAX_CLASSES = 65536 }; /* labels are 16 bits in the data sources */

/* ---- input ---- */

static bool input_dimension(Lower *l, Scope *scope, const Stmt *s, int i, int64_t low, int64_t high, int64_t *out)
{
    const Expr *dim = s->type.dim[i];
    const char *what = arena_printf(l->arena, "%s of input %s",
                                    s->type.name[0] == 'c' ? "the number of classes" : "a dimension", s->name);
    if (!value_want_integer(l, scope, lower_expr(l, scope, dim, NULL), dim->span, what, out))
        return false;
    if (*out >= low && *out <= high)
        return true;
    FAIL(l, scope, P0212, dim->span, "%s must be from %lld to %lld, found %lld", what, (long long)low, (long long)high,
         (long long)*out);
    return false;
}

static bool input_shape(Lower *l, Scope *scope, const Stmt *s, Shape *out)
{
    static const char *const types[] = {"f32", "class"};
    const TypeExpr *type = &s->type;
    if (!strcmp(type->name, "class")) {
        out->dtype = DTYPE_CLASS;
        if (type->ndims == 1)
            return input_dimension(l, scope, s, 0, 2, MAX_CLASSES, &out->classes);
        FAIL(l, scope, P0221, type->span, "class wants one number: class[10] is a label of ten classes");
        return false;
    }
    if (strcmp(type->name, "f32")) {
        FAIL(l, scope, P0221, type->span, "unknown type %s", type->name);
        const char *near = nearest(type->name, types, COUNT(types));
        diag_hint(l->diags,
                  near ? "did you mean %s?" : "inputs are f32[channels, height, width], f32[features] or class[n]",
                  near);
        return false;
    }
    out->dtype = DTYPE_F32;
    if (type->ndims != 1 && type->ndims != 3) {
        FAIL(l, scope, P0221, type->span, "an input has 1 or 3 dimensions, found %d", type->ndims);
        diag_hint(l->diags, "f32[features] or f32[channels, height, width]; the batch is a setting of train");
        return false;
    }
    out->rank = type->ndims;
    bool good = true;
    for (int i = 0; i < type->ndims; i++)
        good &= input_dimension(l, scope, s, i, 1, MAX_INPUT_DIM, &out->dim[i]);
    return good;
}

static void input(Lower *l, Scope *scope, const Stmt *s)
{
    Node node = {.name = s->name, .value_name = s->name, .span = s->span};
    if (scope->item->kind != ITEM_NETWORK) {
        FAIL(l, scope, P0218, s->span, "an input stands in a network, not in a def");
        diag_hint(l->diags, "make %s a parameter of %s", s->name, scope->item->name);
        scope_bind(l, scope, s->name, s->name_span, value_error());
        return;
    }
    const int before = map_get(&scope->index, s->name);
    if (before >= 0) {
        FAIL(l, scope, P0203, s->name_span, "the name of the input %s is taken", s->name);
        diag_note(l->diags, scope->binding.at[before].span, "%s is bound here already", s->name);
        return;
    }
    Value value = value_error();
    if (input_shape(l, scope, s, &node.shape)) {
        Graph *g = l->graph;
        map_set(l->arena, &l->taken, name_of(l->arena, c_name(l->arena, s->name)), 1);
        g->node = arena_grow(l->arena, g->node, sizeof *g->node, g->nnodes, &l->node_room);
        g->node[g->nnodes] = node;
        *vec_push(l->arena, &l->inputs) = g->nnodes;
        value = (Value){.kind = VALUE_TENSOR, .node = g->nnodes++};
    }
    scope_bind(l, scope, s->name, s->name_span, value);
}

/* ---- loss ---- */

static void not_a_loss(Lower *l, const Scope *scope, const Stmt *s, const Value *value)
{
    const OpDef *op = value->kind == VALUE_TENSOR ? l->graph->node[value->node].op : NULL;
    FAIL(l, scope, P0216, s->value->span, "the loss must come from a loss op, found %s",
         op ? arena_printf(l->arena, "%s", op->name) : value_text(l, value));
    Text all = text_new(l->arena);
    for (int i = 0; i < op_count; i++)
        if (op_table[i]->flags & OP_LOSS)
            text_printf(&all, "%s%s", all.length ? ", " : "", op_table[i]->name);
    diag_hint(l->diags, "the loss ops are %s", all.data);
}

static void loss(Lower *l, Scope *scope, const Stmt *s)
{
    if (scope->item->kind != ITEM_NETWORK) {
        FAIL(l, scope, P0218, s->span, "the loss stands in the network, not in a def");
        l->loss_failed = true; /* a network without a loss is not reported as well */
        return;
    }
    Value value = lower_expr(l, scope, s->value, NULL);
    if (l->loss_span.at) {
        FAIL(l, scope, P0216, s->span, "the network has a second loss");
        diag_note(l->diags, l->loss_span, "the first one is here");
        return;
    }
    l->loss_span = s->span;
    l->loss_failed = true;
    if (value.kind == VALUE_ERROR)
        return;
    const OpDef *op = value.kind == VALUE_TENSOR ? l->graph->node[value.node].op : NULL;
    if (!op || !(op->flags & OP_LOSS)) {
        not_a_loss(l, scope, s, &value);
        return;
    }
    l->loss_failed = false;
    l->loss = value.node;
}

/* ---- loops and branches ---- */

/* A condition or bound was wrong: what the body would have bound is unknown but no new error. True: it may have
 * returned. */
static bool poison(Lower *l, Scope *scope, const Body *body)
{
    bool returned = false;
    for (int i = 0; i < body->count; i++) {
        const Stmt *s = &body->stmt[i];
        if (s->kind == STMT_ASSIGN || s->kind == STMT_INPUT)
            scope_bind(l, scope, s->name, s->name_span, value_error());
        l->loss_failed |= s->kind == STMT_LOSS;
        returned |= s->kind == STMT_RETURN;
        returned |= poison(l, scope, &s->body);
        returned |= poison(l, scope, &s->other);
    }
    return returned;
}

static bool loop(Lower *l, Scope *scope, const Stmt *s, Value *result)
{
    int64_t low = 0, high = 0, count = 0;
    bool good =
        value_want_integer(l, scope, lower_expr(l, scope, s->value, NULL), s->value->span, "a bound of for", &low);
    good &= value_want_integer(l, scope, lower_expr(l, scope, s->limit, NULL), s->limit->span, "a bound of for", &high);
    if (good && high > low && (!checked_add(high, -(low + 1), &count) || count >= MAX_LOOP)) {
        FAIL(l, scope, P0214, span_join(s->value->span, s->limit->span), "a loop runs at most %d times", MAX_LOOP);
        good = false;
    }
    if (!good) {
        *result = value_error();
        return poison(l, scope, &s->body);
    }
    const int shadowed = map_get(&scope->index, s->name);
    const Binding old = shadowed >= 0 ? scope->binding.at[shadowed] : (Binding){0};
    bool returned = false;
    for (int64_t i = low; i < high && !returned && !l->stopped; i++) {
        scope_bind(l, scope, s->name, s->name_span, value_integer(i));
        returned = lower_body(l, scope, &s->body, result);
    }
    const int at = map_get(&scope->index, s->name);
    if (at >= 0 && shadowed >= 0)
        scope->binding.at[at] = old;
    else if (at >= 0)
        scope->binding.at[at].hidden = true;
    return returned;
}

static bool branch(Lower *l, Scope *scope, const Stmt *s, Value *result)
{
    bool truth = false;
    if (value_want_bool(l, scope, lower_expr(l, scope, s->value, NULL), s->value->span, "the condition of if", &truth))
        return lower_body(l, scope, truth ? &s->body : &s->other, result);
    *result = value_error();
    const bool first = poison(l, scope, &s->body), second = poison(l, scope, &s->other);
    return first || second;
}

static bool statement(Lower *l, Scope *scope, const Stmt *s, Value *result)
{
    switch (s->kind) {
    case STMT_INPUT:
        input(l, scope, s);
        return false;
    case STMT_ASSIGN:
        scope_bind(l, scope, s->name, s->name_span,
                   lower_expr(l, scope, s->value, scope_binds_once(scope, s->name) ? s->name : NULL));
        return false;
    case STMT_REGISTER:
        *vec_push(l->arena, &l->cuts) = (Cut){l->graph->nnodes, s->span};
        return false;
    case STMT_LOSS:
        loss(l, scope, s);
        return false;
    case STMT_FOR:
        return loop(l, scope, s, result);
    case STMT_IF:
        return branch(l, scope, s, result);
    case STMT_RETURN:
        break;
    }
    if (scope->item->kind == ITEM_NETWORK) {
        FAIL(l, scope, P0217, s->span, "return stands in a def; a network ends with its loss");
        return false;
    }
    *result = lower_expr(l, scope, s->value, NULL);
    return true;
}

bool lower_body(Lower *l, Scope *scope, const Body *body, Value *result)
{
    bool returned = false;
    l->depth++;
    for (int i = 0; i < body->count && !returned && lower_step(l, scope, body->stmt[i].span); i++)
        returned = statement(l, scope, &body->stmt[i], result);
    l->depth--;
    return returned;
}
