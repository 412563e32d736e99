/* choices.c: data sources, optimisers and learning-rate policies: `name` or `name(argument = value, ...)`, resolved
 * against the tables of the runtime (runtime/data/sources.def, runtime/core/choices.def), which both sides read.
 *
 * An argument is required when its default lies outside its bounds, when it is a list, and when it is the base rate of
 * a policy. Arguments may stand by position, in the order of the table. */
#include "lower.h"

#include <math.h>
#include <string.h>

typedef enum { NUMBER, BOOL, TEXT, LIST } ArgKind;
typedef struct {
    const char *owner, *key, *doc;
    ArgKind kind;
    double fallback, low, high;
} ArgDef;
typedef struct {
    const char *name, *doc;
    ChoiceFamily family;
    SourceShape shape;
    int states;
} ChoiceDef;

/* A policy may share its name with a source or an optimiser: arguments are kept by file, the two files apart. */
static const ArgDef source_args[] = {
#define SOURCE(name, doc, channels, height, width, classes)
#define ARG(source, key, kind, fallback, low, high, doc) {#source, #key, doc, kind, fallback, low, high},
#include "../runtime/data/sources.def"
#undef SOURCE
#undef ARG
};
static const ArgDef training_args[] = {
#define OPTIMIZER(name, states, doc)
#define POLICY(name, doc)
#define ARG(owner, key, kind, fallback, low, high, doc) {#owner, #key, doc, kind, fallback, low, high},
#include "../runtime/core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG
};
static const ChoiceDef choice_table[] = {
#define SOURCE(name, doc, channels, height, width, classes)                                                            \
    {#name, doc, CHOICE_DATA, {channels, height, width, classes}, 0},
#define ARG(...)
#include "../runtime/data/sources.def"
#undef SOURCE
#define OPTIMIZER(name, states, doc) {#name, doc, CHOICE_OPTIMIZER, {0}, states},
#define POLICY(name, doc)            {#name, doc, CHOICE_POLICY, {0}, 0},
#include "../runtime/core/choices.def"
#undef OPTIMIZER
#undef POLICY
#undef ARG
};

static const char *const family_text[] = {
    [CHOICE_DATA] = "data source", [CHOICE_OPTIMIZER] = "optimizer", [CHOICE_POLICY] = "learning-rate policy"};

static const ChoiceDef *find_choice(ChoiceFamily family, const char *name)
{
    for (int i = 0; i < COUNT(choice_table); i++)
        if (choice_table[i].family == family && !strcmp(choice_table[i].name, name))
            return &choice_table[i];
    return NULL;
}

enum { MAX_CHOICE_ARGS = COUNT(((Choice *)0)->arg) };

/* The arguments of a choice, in order. */
static int args_of(const ChoiceDef *def, const ArgDef **out)
{
    const bool data = def->family == CHOICE_DATA;
    const ArgDef *table = data ? source_args : training_args;
    const int size = data ? COUNT(source_args) : COUNT(training_args);
    int count = 0;
    for (int i = 0; i < size; i++) {
        if (strcmp(table[i].owner, def->name))
            continue;
        if (count == MAX_CHOICE_ARGS)
            ICE("%s has more than %d arguments", def->name, MAX_CHOICE_ARGS);
        out[count++] = &table[i];
    }
    return count;
}

static bool is_required(const ChoiceDef *def, const ArgDef *arg, int position)
{
    return arg->kind == LIST || (def->family == CHOICE_POLICY && position == 0) ||
           (arg->kind != TEXT && (arg->fallback < arg->low || arg->fallback > arg->high));
}

static Choice defaults(const ChoiceDef *def, Span span)
{
    const ArgDef *arg[MAX_CHOICE_ARGS];
    Choice choice = {.name = def->name, .nargs = args_of(def, arg), .span = span};
    for (int i = 0; i < choice.nargs; i++) {
        choice.arg[i].key = arg[i]->key;
        choice.arg[i].is_text = arg[i]->kind == TEXT;
        choice.arg[i].number = arg[i]->fallback;
    }
    return choice;
}

/* ---- values of arguments ---- */

static bool number_argument(Lower *l, const ArgDef *arg, const Expr *expr, double *out)
{
    const char *what = arena_printf(l->arena, "%s of %s", arg->key, arg->owner);
    bool truth = false;
    if (arg->kind == BOOL) {
        if (!value_want_bool(l, &l->file, lower_expr(l, &l->file, expr, NULL), expr->span, what, &truth))
            return false;
        *out = truth;
        return true;
    }
    if (!value_want_number(l, &l->file, lower_expr(l, &l->file, expr, NULL), expr->span, what, out))
        return false;
    if (*out >= arg->low && *out <= arg->high)
        return true;
    FAIL(l, NULL, P0212, expr->span, "%s must be from %.15g to %.15g, found %.15g", what, arg->low, arg->high, *out);
    return false;
}

static bool text_argument(Lower *l, const ArgDef *arg, const Expr *expr, const char **out)
{
    Value value = lower_expr(l, &l->file, expr, NULL);
    if (value.kind == VALUE_TEXT) {
        *out = value.text;
        return true;
    }
    if (value.kind != VALUE_ERROR) {
        FAIL(l, NULL, P0209, expr->span, "%s of %s must be a text, found %s", arg->key, arg->owner,
             value_text(l, &value));
        diag_hint(l->diags, "%s = \"...\"", arg->key);
    }
    return false;
}

/* One number, or (a, b, ...), ascending. */
static bool list_argument(Lower *l, const ArgDef *arg, const Expr *expr, double **out, int *count)
{
    const bool list = expr->kind == EXPR_LIST;
    *count = list ? expr->nargs : 1;
    *out = arena_alloc(l->arena, (size_t)(*count + 1) * sizeof **out);
    bool good = true;
    for (int i = 0; i < *count; i++) {
        const Expr *item = list ? expr->arg[i].value : expr;
        if (!number_argument(l, arg, item, &(*out)[i])) {
            good = false;
        } else if (good && i && (*out)[i] <= (*out)[i - 1]) {
            FAIL(l, NULL, P0212, item->span, "%s of %s must ascend, found %.15g after %.15g", arg->key, arg->owner,
                 (*out)[i], (*out)[i - 1]);
            good = false;
        }
    }
    return good;
}

static bool set_argument(Lower *l, const ArgDef *arg, const Expr *expr, Choice *choice, int i)
{
    choice->arg[i].given = true;
    if (arg->kind == TEXT)
        return text_argument(l, arg, expr, &choice->arg[i].text);
    if (arg->kind == LIST)
        return list_argument(l, arg, expr, &choice->arg[i].list, &choice->arg[i].nlist);
    return number_argument(l, arg, expr, &choice->arg[i].number);
}

/* ---- choices ---- */

static void unknown_choice(Lower *l, ChoiceFamily family, const Expr *expr)
{
    VEC(const char *) names = {0};
    Text all = text_new(l->arena);
    for (int i = 0; i < COUNT(choice_table); i++)
        if (choice_table[i].family == family) {
            text_printf(&all, "%s%s", names.count ? ", " : "", choice_table[i].name);
            *vec_push(l->arena, &names) = choice_table[i].name;
        }
    const bool named = expr->kind == EXPR_NAME || expr->kind == EXPR_CALL;
    FAIL(l, NULL, P0405, expr->kind == EXPR_CALL ? expr->name_span : expr->span,
         named ? "unknown %s %s" : "the name of the %s is wanted here", family_text[family], named ? expr->text : "");
    const char *near = named ? nearest(expr->text, names.at, names.count) : NULL;
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
    else
        diag_hint(l->diags, "there is %s; `pnetc list data` describes them", all.data);
}

/* `lr = 0.01` is `lr = constant(0.01)`. */
static bool plain_rate(Lower *l, const Expr *expr, Choice *out)
{
    const ChoiceDef *def = find_choice(CHOICE_POLICY, "constant");
    const ArgDef *arg[MAX_CHOICE_ARGS];
    if (!def || args_of(def, arg) < 1)
        ICE("there is no policy constant");
    *out = defaults(def, expr->span);
    return set_argument(l, arg[0], expr, out, 0);
}

bool lower_choice(Lower *l, ChoiceFamily family, const Expr *expr, Choice *out)
{
    const bool named = expr->kind == EXPR_NAME || expr->kind == EXPR_CALL;
    const ChoiceDef *def = named ? find_choice(family, expr->text) : NULL;
    if (family == CHOICE_POLICY && !def && (expr->kind != EXPR_CALL) &&
        (expr->kind != EXPR_NAME || scope_find(&l->file, expr->text)))
        return plain_rate(l, expr, out);
    if (!def) {
        unknown_choice(l, family, expr);
        return false;
    }
    const ArgDef *arg[MAX_CHOICE_ARGS];
    const char *key[MAX_CHOICE_ARGS];
    const Arg *slot[MAX_CHOICE_ARGS] = {0};
    *out = defaults(def, expr->span);
    args_of(def, arg);
    for (int i = 0; i < out->nargs; i++)
        key[i] = arg[i]->key;
    bool good = bind_arguments(l, &l->file, expr, 0, key, out->nargs, slot, (Span){0, 0});
    for (int i = 0; i < out->nargs; i++) {
        if (slot[i]) {
            good &= set_argument(l, arg[i], slot[i]->value, out, i);
        } else if (good && is_required(def, arg[i], i)) {
            FAIL(l, NULL, P0207, expr->span, "%s needs %s: %s", def->name, arg[i]->key, arg[i]->doc);
            good = false;
        }
    }
    return good;
}

Choice choice_default(Lower *l, ChoiceFamily family, const char *name)
{
    (void)l;
    const ChoiceDef *def = find_choice(family, name);
    if (!def)
        ICE("there is no %s %s", family_text[family], name);
    return defaults(def, (Span){0, 0});
}

SourceShape choice_source_shape(const Choice *data)
{
    return find_choice(CHOICE_DATA, data->name)->shape;
}

int optimizer_states(const Choice *optimizer)
{
    return find_choice(CHOICE_OPTIMIZER, optimizer->name)->states;
}

double choice_number(const Choice *choice, const char *key, double otherwise)
{
    for (int i = 0; i < choice->nargs; i++)
        if (!strcmp(choice->arg[i].key, key))
            return choice->arg[i].number;
    return otherwise;
}

Momentum optimizer_momentum(const Choice *optimizer)
{
    const double sum = choice_number(optimizer, "momentum", -1), mean = choice_number(optimizer, "beta1", -1);
    return (Momentum){.momentum = sum >= 0 ? sum : mean,
                      .averages = sum < 0,
                      .nesterov = choice_number(optimizer, "nesterov", 0) != 0};
}

/* ---- pnetc list data ---- */

static void list_argument_doc(Text *out, const ChoiceDef *def, const ArgDef *arg, int position)
{
    text_printf(out, "      %-13s", arg->key);
    if (is_required(def, arg, position))
        text_printf(out, "%-9s", "required");
    else if (arg->kind == TEXT)
        text_printf(out, "%-9s", "text");
    else if (arg->kind == BOOL)
        text_printf(out, "%-9s", arg->fallback != 0 ? "true" : "false");
    else
        text_printf(out, "%-9.15g", arg->fallback);
    text_printf(out, " %s", arg->doc);
    if (arg->kind == NUMBER || arg->kind == LIST)
        text_printf(out, "; %.15g to %.15g", arg->low, arg->high);
    text_printf(out, "\n");
}

void choices_list(Text *out)
{
    static const char *const heads[] = {
        [CHOICE_DATA] = "data sources (data = NAME(...); the default is digits)",
        [CHOICE_OPTIMIZER] = "optimizers (optimizer = NAME(...); the default is sgd(momentum = 0.9))",
        [CHOICE_POLICY] = "learning-rate policies (lr = NUMBER or NAME(...); t counts steps; the default is 0.01)"};
    int last = -1;
    for (int i = 0; i < COUNT(choice_table); i++) {
        const ChoiceDef *def = &choice_table[i];
        const ArgDef *arg[MAX_CHOICE_ARGS];
        if ((int)def->family != last)
            text_printf(out, "%s%s\n", last < 0 ? "" : "\n", heads[def->family]);
        last = (int)def->family;
        text_printf(out, "  %-15s %s\n", def->name, def->doc);
        const int count = args_of(def, arg);
        for (int k = 0; k < count; k++)
            list_argument_doc(out, def, arg[k], k);
    }
}
