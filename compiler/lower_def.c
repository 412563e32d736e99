/* lower_def.c: calls of defs, parameters and their values from the command line. */
#include "lower.h"

#include <string.h>

/* ---- calls ---- */

/* Binds the parameters of `item` in `scope`: arguments are evaluated in `from`, defaults in `scope`, where earlier
 * parameters are known. False if one is missing or wrong. */
static bool bind_parameters(Lower *l, Scope *scope, Scope *from, const Expr *call, const First *first)
{
    const Item *item = scope->item;
    const char **key = arena_alloc(l->arena, (size_t)(item->nparams + 1) * sizeof *key);
    const Arg **slot = arena_alloc(l->arena, (size_t)(item->nparams + 1) * sizeof *slot);
    for (int i = 0; i < item->nparams; i++)
        key[i] = item->param[i].name;
    if (first && !item->nparams) {
        FAIL(l, from, P0206, call->name_span, "%s takes no argument, and |> gives it one", item->name);
        diag_note(l->diags, item->name_span, "%s is declared here", item->name);
        return false;
    }
    bool good = bind_arguments(l, from, call, first ? 1 : 0, key, item->nparams, slot, item->name_span);
    for (int i = 0; i < item->nparams; i++) {
        const ParamDecl *param = &item->param[i];
        Value value = value_error();
        Span span = param->span;
        if (first && i == 0) {
            value = first->value;
        } else if (slot[i]) {
            value = lower_expr(l, from, slot[i]->value, NULL);
        } else if (!param->initial && good) {
            FAIL(l, from, P0207, call->name_span, "%s needs its argument %s", item->name, param->name);
            diag_note(l->diags, param->span, "%s is declared here", param->name);
        } else if (good) {
            value = lower_expr(l, scope, param->initial, NULL);
        }
        good &= value.kind != VALUE_ERROR;
        scope_bind(l, scope, param->name, span, value);
    }
    return good;
}

Value lower_def(Lower *l, Scope *scope, int def, const Expr *call, const First *first)
{
    const Item *item = l->def[def];
    if (scope->calls >= MAX_CALL_DEPTH) {
        FAIL(l, scope, P0213, call->name_span, "more than %d defs call each other here", MAX_CALL_DEPTH);
        diag_note(l->diags, item->name_span, "%s is declared here; does its recursion end?", item->name);
        l->stopped = true;
        return value_error();
    }
    if (!l->def_names[def])
        l->def_names[def] = names_of_body(l, item->param, item->nparams, &item->body);
    Scope inner = {
        .outer = &l->file,
        .caller = scope,
        .call = {call->name_span.at, call->span.end},
        .item = item,
        .names = l->def_names[def],
        .calls = scope->calls + 1,
    };
    if (!bind_parameters(l, &inner, scope, call, first) || l->stopped)
        return value_error();
    inner.prefix = name_automatic(l, scope, item->name);
    scope_reserve(l, &inner);
    Value result = value_error();
    if (!lower_body(l, &inner, &item->body, &result) && !l->stopped) {
        FAIL(l, scope, P0217, inner.call, "%s returned nothing here", item->name);
        diag_note(l->diags, item->name_span, "%s is declared here, without a return that was reached", item->name);
    }
    return result;
}

/* ---- parameters ---- */

/* The value of a parameter: the last -D of its name, else its default. */
static Value parameter(Lower *l, Scope *scope, Name name, Span span, const Expr *initial, const char *owner)
{
    const Override *given = NULL;
    for (int i = 0; i < l->noverrides; i++) {
        Override *o = &l->overrides[i];
        if (o->block || o->name != name)
            continue;
        o->used = true;
        given = o;
    }
    if (given) {
        Value value = given->value ? lower_expr(l, &l->file, given->value, NULL) : value_error();
        if (value.kind == VALUE_ERROR && given->value && given->value->kind == EXPR_NAME)
            diag_hint(l->diags, "a text has quotes: -D '%s=\"%s\"'", name, given->value->text);
        return value;
    }
    if (initial)
        return lower_expr(l, scope, initial, NULL);
    FAIL(l, scope, P0220, span, "the parameter %s%s has no value", name, owner);
    diag_hint(l->diags, "give it on the command line: -D %s=...", name);
    return value_error();
}

/* A parameter is a constant: its default sees no tensors because there are none yet, save through an op without inputs.
 */
void lower_params_of_file(Lower *l)
{
    for (int i = 0; i < l->ast->nitems; i++) {
        const Item *item = &l->ast->item[i];
        if (item->kind != ITEM_PARAM)
            continue;
        const int before = map_get(&l->file.index, item->name);
        if (before >= 0) {
            FAIL(l, NULL, P0203, item->name_span, "the parameter %s is declared twice", item->name);
            diag_note(l->diags, l->file.binding.at[before].span, "it is declared here already");
            continue;
        }
        Value value = parameter(l, &l->file, item->name, item->name_span, item->value, "");
        scope_bind(l, &l->file, item->name, item->name_span, value);
    }
}

static void unknown_parameter(Lower *l, const Override *o)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < l->network->nparams; i++)
        *vec_push(l->arena, &names) = l->network->param[i].name;
    for (int i = 0; i < l->file.binding.count; i++)
        *vec_push(l->arena, &names) = l->file.binding.at[i].name;
    FAIL(l, NULL, P0220, o->span, "there is no parameter %s to set with -D", o->name);
    diag_note(l->diags, l->network->name_span, "the network is %s", l->network->name);
    const char *near = nearest(o->name, names.at, names.count);
    Text all = text_new(l->arena);
    for (int i = 0; i < names.count; i++)
        text_printf(&all, "%s%s", i ? ", " : "", names.at[i]);
    if (near)
        diag_hint(l->diags, "did you mean -D %s=...?", near);
    else if (names.count)
        diag_hint(l->diags, "its parameters are %s", all.data);
    else
        diag_hint(l->diags, "it has no parameters");
}

void lower_network(Lower *l)
{
    const Item *item = l->network;
    l->body = (Scope){
        .outer = &l->file,
        .item = item,
        .names = names_of_body(l, item->param, item->nparams, &item->body),
    };
    scope_reserve(l, &l->body);
    const char *owner = arena_printf(l->arena, " of the network %s", item->name);
    for (int i = 0; i < item->nparams; i++) {
        const ParamDecl *p = &item->param[i];
        scope_bind(l, &l->body, p->name, p->span, parameter(l, &l->body, p->name, p->span, p->initial, owner));
    }
    for (int i = 0; i < l->noverrides; i++)
        if (!l->overrides[i].block && !l->overrides[i].used)
            unknown_parameter(l, &l->overrides[i]);
    Value unused;
    lower_body(l, &l->body, &item->body, &unused);
    if (l->loss < 0 && !l->loss_failed && !l->stopped) {
        FAIL(l, NULL, P0216, item->name_span, "the network %s has no loss", item->name);
        diag_hint(l->diags, "end it with: loss softmax_cross_entropy(x, label)");
    }
}
