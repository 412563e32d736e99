/* lower_call.c: the arguments of calls, and op calls against their schema (op.h): first the tensors, then the required
 * attributes in order (where none is required, the first: dropout(0.5)), then any attribute by name. */
#include "lower.h"
#include "op.h"

#include <string.h>

/* ---- arguments in general ---- */

static void unknown_argument(Lower *l, const Scope *scope, const Expr *call, const Arg *arg, const char *const *key,
                             int nkeys, Span declared)
{
    FAIL(l, scope, P0204, arg->key_span, "%s has no argument %s", call->text, arg->key);
    if (declared.at)
        diag_note(l->diags, declared, "%s is declared here", call->text);
    const char *near = nearest(arg->key, key, nkeys);
    if (near) {
        diag_hint(l->diags, "did you mean %s?", near);
        return;
    }
    Text all = text_new(l->arena);
    for (int i = 0; i < nkeys; i++)
        text_printf(&all, "%s%s", i ? ", " : "", key[i]);
    if (nkeys)
        diag_hint(l->diags, "it has %s", all.data);
    else
        diag_hint(l->diags, "it has none");
}

static void given_twice(Lower *l, const Scope *scope, const Expr *call, const char *key, Span second, Span first)
{
    FAIL(l, scope, P0205, second, "%s of %s is given twice", key, call->text);
    if (first.at)
        diag_note(l->diags, first, "it is given here already");
}

bool bind_arguments(Lower *l, Scope *scope, const Expr *call, int taken, const char *const *key, int nkeys,
                    const Arg **slot, Span declared)
{
    bool good = true, named = false;
    int next = taken;
    for (int i = 0; i < call->nargs; i++) {
        const Arg *arg = &call->arg[i];
        int at = -1;
        if (!arg->key && named) {
            FAIL(l, scope, P0206, arg->value->span, "an argument without a name follows one with a name");
            good = false;
            continue;
        }
        if (!arg->key && next >= nkeys) {
            FAIL(l, scope, P0206, arg->value->span, "%s takes %d argument%s, found one more", call->text, nkeys,
                 nkeys == 1 ? "" : "s");
            if (declared.at)
                diag_note(l->diags, declared, "%s is declared here", call->text);
            return false;
        }
        if (!arg->key) {
            at = next++;
        } else {
            named = true;
            for (int k = 0; k < nkeys && at < 0; k++)
                if (!strcmp(arg->key, key[k]))
                    at = k;
            if (at < 0) {
                unknown_argument(l, scope, call, arg, key, nkeys, declared);
                good = false;
                continue;
            }
        }
        if (slot[at] || at < taken) {
            given_twice(l, scope, call, key[at], arg->key ? arg->key_span : arg->value->span,
                        slot[at]     ? slot[at]->value->span
                        : call->left ? call->left->span
                                     : (Span){0, 0});
            good = false;
            continue;
        }
        slot[at] = arg;
    }
    return good;
}

/* ---- attributes ---- */

static bool attribute_number(Lower *l, const Scope *scope, const AttrDef *def, const char *what, Value value, Span span,
                             Attr *out)
{
    double number;
    if (def->kind == ATTR_INT) {
        if (!value_want_integer(l, scope, value, span, what, &out->i))
            return false;
        number = (double)out->i;
    } else if (!value_want_number(l, scope, value, span, what, &number)) {
        return false;
    }
    out->f = number;
    if (number < def->low || number > def->high) {
        FAIL(l, scope, P0212, span, "%s must be from %.15g to %.15g, found %.15g", what, def->low, def->high, number);
        return false;
    }
    return true;
}

static bool attribute_value(Lower *l, const Scope *scope, const OpDef *op, int which, Value value, Span span, Attr *out)
{
    const AttrDef *def = &op->attr[which];
    const char *what = arena_printf(l->arena, "%s of %s", def->name, op->name);
    out->given = true;
    out->span = span;
    bool truth = false;
    switch (def->kind) {
    case ATTR_INT:
    case ATTR_REAL:
        return attribute_number(l, scope, def, what, value, span, out);
    case ATTR_BOOL:
        if (!value_want_bool(l, scope, value, span, what, &truth))
            return false;
        out->i = truth;
        out->f = truth;
        return true;
    case ATTR_INIT:
        break;
    }
    if (value.kind == VALUE_INIT) {
        out->init = value.init;
        return true;
    }
    if (value.kind != VALUE_ERROR) {
        FAIL(l, scope, P0209, span, "%s must be an initialiser, found %s", what, value_text(l, &value));
        diag_hint(l->diags, "he, xavier, gaussian(std = 0.01), uniform(low, high) or constant(value)");
    }
    return false;
}

/* The next attribute that may be given by position: the required ones; where none is required, the first. -1: none. */
static int next_positional(const OpDef *op, int after)
{
    bool required = false;
    for (int i = 0; i < op->nattrs; i++) {
        required |= op->attr[i].required;
        if (op->attr[i].required && i > after)
            return i;
    }
    return !required && op->nattrs && after < 0 ? 0 : -1;
}

/* ---- op calls ---- */

/* A call under inspection. A wrong argument spoils the call, but the others are still looked at. */
typedef struct {
    Lower *l;
    Scope *scope;
    const OpDef *op;
    const Expr *call;
    Node node;
    VEC(NodeId) in;
    int position; /* the last attribute given by position */
    bool named, attributes, spoiled;
    bool unsure; /* an erroneous argument may have been meant for what is missing */
} OpCall;

static void add_tensor(OpCall *c, Value value, Span span)
{
    Lower *l = c->l;
    const Node *producer = &l->graph->node[value.node];
    const bool is_loss = producer->op && producer->op->flags & OP_LOSS;
    if ((c->attributes || c->named) && !c->unsure) {
        FAIL(l, c->scope, P0206, span, "the tensors of %s come before its attributes", c->op->name);
    } else if (is_loss) {
        FAIL(l, c->scope, P0222, span, "the loss is a number for each minibatch and no layer reads it");
        diag_note(l->diags, producer->span, "it is computed here");
    }
    c->spoiled = c->spoiled || c->attributes || c->named || is_loss;
    *vec_push(l->arena, &c->in) = value.node;
}

static void take_attribute(OpCall *c, int which, Value value, Span span, Span name_span)
{
    Attr *attr = &c->node.attr[which];
    if (attr->given) {
        given_twice(c->l, c->scope, c->call, c->op->attr[which].name, name_span, attr->span);
        c->spoiled = true;
        return;
    }
    if (!attribute_value(c->l, c->scope, c->op, which, value, span, attr))
        c->spoiled = true;
}

/* For a hint: the first attribute that could have been meant; -1: none. */
static int first_optional(const OpCall *c)
{
    for (int i = 0; i < c->op->nattrs; i++)
        if (!c->op->attr[i].required && !c->node.attr[i].given)
            return i;
    return -1;
}

static void take_positional(OpCall *c, Value value, Span span)
{
    if (value.kind == VALUE_TENSOR) {
        add_tensor(c, value, span);
        return;
    }
    if (value.kind == VALUE_ERROR) {
        c->unsure = c->spoiled = true;
        return;
    }
    if (c->named) {
        FAIL(c->l, c->scope, P0206, span, "an argument without a name follows one with a name");
        c->spoiled = c->unsure = true;
        return;
    }
    const int which = next_positional(c->op, c->position);
    if (which < 0) {
        FAIL(c->l, c->scope, P0206, span, "%s takes no further argument without a name, found %s", c->op->name,
             value_text(c->l, &value));
        const int optional = first_optional(c);
        if (optional >= 0)
            diag_hint(c->l->diags, "name it, as in %s = ...", c->op->attr[optional].name);
        c->spoiled = true;
        return;
    }
    c->attributes = true;
    c->position = which;
    take_attribute(c, which, value, span, span);
}

static void take_named(OpCall *c, const Arg *arg)
{
    Lower *l = c->l;
    const char *key[MAX_ATTRS];
    int which = -1;
    for (int i = 0; i < c->op->nattrs; i++) {
        key[i] = c->op->attr[i].name;
        if (!strcmp(key[i], arg->key))
            which = i;
    }
    c->named = true;
    Value value = lower_expr(l, c->scope, arg->value, NULL);
    if (which >= 0) {
        take_attribute(c, which, value, arg->value->span, arg->key_span);
        return;
    }
    unknown_argument(l, c->scope, c->call, arg, key, c->op->nattrs, (Span){0, 0});
    c->spoiled = c->unsure = true;
}

static void check_complete(OpCall *c)
{
    Lower *l = c->l;
    const OpDef *op = c->op;
    if (c->unsure)
        return;
    if (c->in.count < op->min_in || c->in.count > op->max_in) {
        const char *range = op->min_in == op->max_in ? arena_printf(l->arena, "%d", op->min_in)
                                                     : arena_printf(l->arena, "%d to %d", op->min_in, op->max_in);
        FAIL(l, c->scope, P0208, c->call->name_span, "%s reads %s tensor%s, found %d", op->name, range,
             op->max_in == 1 ? "" : "s", c->in.count);
        if (c->in.count == 0)
            diag_hint(l->diags, "x |> %s%s", op->name, c->call->nargs ? "(...)" : "");
        c->spoiled = true;
        if (c->in.count > op->max_in)
            return;
    }
    Text missing = text_new(l->arena);
    for (int i = 0; i < op->nattrs; i++) {
        Attr *attr = &c->node.attr[i];
        if (attr->given)
            continue;
        *attr = (Attr){.i = (int64_t)op->attr[i].fallback, .f = op->attr[i].fallback, .init = op->attr[i].init};
        if (op->attr[i].required)
            text_printf(&missing, "%s%s (%s)", missing.length ? " and " : "", op->attr[i].name, op->attr[i].doc);
    }
    if (missing.length) {
        FAIL(l, c->scope, P0207, c->call->name_span, "%s needs %s", op->name, missing.data);
        c->spoiled = true;
    }
}

/* Names the node, infers its shape, appends it. */
static Value add_node(OpCall *c, Span span, Name explicit_name)
{
    Lower *l = c->l;
    Graph *g = l->graph;
    Node *node = &c->node;
    if (g->nnodes >= MAX_NODES) {
        FAIL(l, c->scope, P0214, span, "the network has more than %d nodes", MAX_NODES);
        l->stopped = true;
        return value_error();
    }
    node->op = c->op;
    node->span = span;
    node->in = c->in.at;
    node->nin = c->in.count;
    node->name = explicit_name ? name_explicit(l, c->scope, explicit_name, c->op->name)
                               : name_automatic(l, c->scope, c->op->name);
    node->value_name = node->name;
    ShapeContext context = {l->arena, l->diags, g, node};
    if (!c->op->shape(&context)) {
        lower_trace(l, c->scope);
        return value_error();
    }
    node->in_shape = g->node[node->in[0]].shape;
    g->node = arena_grow(l->arena, g->node, sizeof *g->node, g->nnodes, &l->node_room);
    g->node[g->nnodes] = *node;
    return (Value){.kind = VALUE_TENSOR, .node = g->nnodes++};
}

Value lower_op(Lower *l, Scope *scope, const OpDef *op, const Expr *call, const First *first, Name explicit_name)
{
    OpCall *c = &(OpCall){.l = l, .scope = scope, .op = op, .call = call, .position = -1};
    if (first)
        take_positional(c, first->value, first->span);
    for (int i = 0; i < call->nargs; i++) {
        const Arg *arg = &call->arg[i];
        if (arg->key)
            take_named(c, arg);
        else
            take_positional(c, lower_expr(l, scope, arg->value, NULL), arg->value->span);
    }
    check_complete(c);
    if (c->spoiled || l->stopped)
        return value_error();
    return add_node(c, (Span){call->name_span.at, call->span.end}, explicit_name);
}

Value lower_add(Lower *l, Scope *scope, const Expr *expr, Value left, Value right, Name explicit_name)
{
    const OpDef *add = op_find("add");
    if (!add)
        ICE("there is no op add");
    OpCall *c = &(OpCall){.l = l, .scope = scope, .op = add, .call = expr, .position = -1};
    add_tensor(c, left, expr->left->span);
    add_tensor(c, right, expr->right->span);
    check_complete(c);
    return c->spoiled ? value_error() : add_node(c, expr->span, explicit_name);
}
