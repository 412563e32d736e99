/* settings_pipeline.c: the schedule: a preset, an order with a weight rule, or phases of them.
 *
 *     stale                                   a preset of schedules/presets.def
 *     schedule("1f1b", weights = stash)       an order with a weight rule (default: stale)
 *     hybrid(A, steps = n, then = B)          n minibatches by A, then B; B may be a hybrid again */
#include "lower.h"
#include "order.h"

#include <string.h>

static const int64_t most_minibatches = 1000000000000;

static const OrderDef *find_order(const char *name)
{
    for (int i = 0; i < order_count; i++)
        if (!strcmp(order_table[i]->name, name))
            return order_table[i];
    return NULL;
}

static const RuleDef *find_rule(const char *name)
{
    for (int i = 0; i < rule_count; i++)
        if (!strcmp(rule_table[i]->name, name))
            return rule_table[i];
    return NULL;
}

static PhaseChoice preset_phase(const PresetDef *preset, Span span)
{
    PhaseChoice phase = {find_order(preset->order), find_rule(preset->rule), preset->name, 0, span};
    if (!phase.order || !phase.rule)
        ICE("preset %s names an unknown order or rule", preset->name);
    return phase;
}

static bool is_word(const Expr *expr)
{
    return expr->kind == EXPR_NAME || expr->kind == EXPR_TEXT;
}

static void unknown_word(Lower *l, const char *kind, const char *word, Span span, const char *const *names, int count)
{
    FAIL(l, NULL, P0408, span, "unknown %s %s", kind, word);
    const char *near = nearest(word, names, count);
    if (near)
        diag_hint(l->diags, "did you mean %s? `pnetc list schedules` describes them", near);
    else
        diag_hint(l->diags, "`pnetc list schedules` shows what there is");
}

static bool preset(Lower *l, const Expr *expr, PhaseChoice *out)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < preset_count; i++) {
        if (!strcmp(preset_table[i].name, expr->text)) {
            *out = preset_phase(&preset_table[i], expr->span);
            return true;
        }
        *vec_push(l->arena, &names) = preset_table[i].name;
    }
    if (find_order(expr->text)) {
        FAIL(l, NULL, P0408, expr->span, "%s is an order; a schedule is an order and a weight rule", expr->text);
        diag_hint(l->diags, "schedule(\"%s\", weights = stale)", expr->text);
        return false;
    }
    unknown_word(l, "schedule", expr->text, expr->span, names.at, names.count);
    return false;
}

/* schedule(order, weights = rule) */
static bool order_and_rule(Lower *l, const Expr *expr, PhaseChoice *out)
{
    static const char *const key[] = {"order", "weights"};
    const Arg *slot[COUNT(key)] = {0};
    if (!bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    if (!slot[0]) {
        FAIL(l, NULL, P0207, expr->span, "schedule needs an order");
        diag_hint(l->diags, "schedule(\"1f1b\", weights = stash)");
        return false;
    }
    for (int i = 0; i < COUNT(key); i++)
        if (slot[i] && !is_word(slot[i]->value)) {
            FAIL(l, NULL, P0408, slot[i]->value->span, "%s of schedule is a name", key[i]);
            return false;
        }
    const char *order = slot[0]->value->text, *rule = slot[1] ? slot[1]->value->text : "stale";
    out->order = find_order(order);
    out->rule = find_rule(rule);
    VEC(const char *) names = {0};
    for (int i = 0; !out->order && i < order_count; i++)
        *vec_push(l->arena, &names) = order_table[i]->name;
    if (!out->order)
        unknown_word(l, "order", order, slot[0]->value->span, names.at, names.count);
    names.count = 0;
    for (int i = 0; !out->rule && i < rule_count; i++)
        *vec_push(l->arena, &names) = rule_table[i]->name;
    if (!out->rule)
        unknown_word(l, "weight rule", rule, slot[1] ? slot[1]->value->span : expr->span, names.at, names.count);
    out->preset = arena_printf(l->arena, "%s+%s", order, rule);
    out->span = expr->span;
    return out->order && out->rule;
}

static bool add_phases(Lower *l, const Expr *expr, int depth, Pipeline *out);

/* hybrid(A, steps = n, then = B): the last phase of A ends after n minibatches. */
static bool hybrid(Lower *l, const Expr *expr, int depth, Pipeline *out)
{
    static const char *const key[] = {"first", "steps", "then"};
    const Arg *slot[COUNT(key)] = {0};
    if (!bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    for (int i = 0; i < COUNT(key); i++)
        if (!slot[i]) {
            FAIL(l, NULL, P0207, expr->span, "hybrid needs %s", i == 0 ? "a schedule to begin with" : key[i]);
            diag_hint(l->diags, "hybrid(stale, steps = 20000, then = sequential)");
            return false;
        }
    if (!add_phases(l, slot[0]->value, depth + 1, out))
        return false;
    int64_t steps = 0;
    const Expr *count = slot[1]->value;
    if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, count, NULL), count->span, "steps of hybrid", &steps))
        return false;
    if (steps < 1 || steps > most_minibatches) {
        FAIL(l, NULL, P0212, count->span, "steps of hybrid must be from 1 to %lld, found %lld",
             (long long)most_minibatches, (long long)steps);
        return false;
    }
    out->phase[out->nphases - 1].minibatches = steps;
    return add_phases(l, slot[2]->value, depth + 1, out);
}

static bool add_phases(Lower *l, const Expr *expr, int depth, Pipeline *out)
{
    if (out->nphases == COUNT(out->phase) || depth > COUNT(out->phase)) {
        FAIL(l, NULL, P0409, expr->span, "a schedule has at most %d phases", COUNT(out->phase));
        return false;
    }
    if (expr->kind == EXPR_CALL && !strcmp(expr->text, "hybrid"))
        return hybrid(l, expr, depth, out);
    PhaseChoice phase = {0};
    if (expr->kind == EXPR_CALL && !strcmp(expr->text, "schedule")) {
        if (!order_and_rule(l, expr, &phase))
            return false;
    } else if (is_word(expr)) {
        if (!preset(l, expr, &phase))
            return false;
    } else if (expr->kind == EXPR_CALL) {
        PhaseChoice unused;
        const Expr name = {.kind = EXPR_NAME, .text = expr->text, .span = expr->name_span};
        if (preset(l, &name, &unused))
            FAIL(l, NULL, P0409, expr->span, "the schedule %s takes no arguments", expr->text);
        return false;
    } else {
        FAIL(l, NULL, P0408, expr->span, "a schedule is wanted here");
        diag_hint(l->diags, "`pnetc list schedules` shows what there is");
        return false;
    }
    out->phase[out->nphases++] = phase;
    return true;
}

/* expr NULL: the default, which is the first preset. */
void lower_schedule(Lower *l, const Expr *expr, Pipeline *out)
{
    if (expr && add_phases(l, expr, 0, out))
        return;
    out->phase[0] = preset_phase(&preset_table[0], expr ? expr->span : (Span){0, 0});
    out->phase[0].minibatches = 0;
    out->nphases = 1;
}
