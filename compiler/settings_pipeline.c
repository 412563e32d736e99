/* settings_pipeline.c: the schedule: a preset, an order with a weight rule, or phases of them.
 *
 *     stale, gpipe(microbatches = 8)          a preset of schedules/presets.def
 *     schedule("1f1b", weights = stash)       an order with a weight rule (default: stale), perhaps with microbatches
 *     any of them (recompute = yes)           or (yes, no, ...), stage by stage; buffers are the program's: it holds for
 *                                             all phases
 *     hybrid(A, steps = n, then = B)          n minibatches by A, then B; B may be a hybrid again
 *     hybrid(A, when = plateau(tests = 3), then = B, lr = 0.01)    A until the test loss falls no more, B with this rate
 *
 * A program slices its minibatches in one way: the phases agree on the number of microbatches, or take it over. */
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
    const PhaseChoice phase = {
        .order = find_order(preset->order), .rule = find_rule(preset->rule), .preset = preset->name, .span = span};
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

/* microbatches = n; NULL: not given. */
static bool read_microbatches(Lower *l, const Arg *arg, PhaseChoice *out)
{
    if (!arg)
        return true;
    const Span span = arg->value->span;
    if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, arg->value, NULL), span, "microbatches",
                            &out->microbatches))
        return false;
    if (out->microbatches < 1 || out->microbatches > MAX_MICROBATCHES) {
        FAIL(l, NULL, P0411, span, "a minibatch has from 1 to %d microbatches, found %lld", MAX_MICROBATCHES,
             (long long)out->microbatches);
        return false;
    }
    out->microbatches_span = span;
    return true;
}

/* recompute = yes, or (yes, no); NULL: not given. */
static bool read_recompute(Lower *l, const Arg *arg, PhaseChoice *out)
{
    if (!arg)
        return true;
    const Expr *expr = arg->value;
    out->recompute_span = expr->span;
    if (expr->kind != EXPR_LIST)
        return value_want_bool(l, &l->file, lower_expr(l, &l->file, expr, NULL), expr->span, "recompute",
                               &out->recompute);
    bool sound = true;
    out->nrecomputes = expr->nargs;
    out->recomputes = arena_alloc(l->arena, sizeof(bool) * (size_t)expr->nargs);
    for (int i = 0; i < expr->nargs; i++) {
        const Expr *value = expr->arg[i].value;
        sound &= value_want_bool(l, &l->file, lower_expr(l, &l->file, value, NULL), value->span, "recompute",
                                 &out->recomputes[i]);
    }
    return sound;
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

/* gpipe(microbatches = 8) */
static bool preset_with_arguments(Lower *l, const Expr *expr, PhaseChoice *out)
{
    static const char *const key[] = {"microbatches", "recompute"};
    const Arg *slot[COUNT(key)] = {0};
    const Expr name = {.kind = EXPR_NAME, .text = expr->text, .span = expr->name_span};
    if (!preset(l, &name, out) || !bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    out->span = expr->span;
    return read_microbatches(l, slot[0], out) && read_recompute(l, slot[1], out);
}

/* schedule(order, weights = rule, microbatches = n) */
static bool order_and_rule(Lower *l, const Expr *expr, PhaseChoice *out)
{
    static const char *const key[] = {"order", "weights", "microbatches", "recompute"};
    const Arg *slot[COUNT(key)] = {0};
    if (!bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    if (!slot[0]) {
        FAIL(l, NULL, P0207, expr->span, "schedule needs an order");
        diag_hint(l->diags, "schedule(\"1f1b\", weights = stash)");
        return false;
    }
    for (int i = 0; i < 2; i++)
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
    return out->order && out->rule && read_microbatches(l, slot[2], out) && read_recompute(l, slot[3], out);
}

static bool add_phases(Lower *l, const Expr *expr, int depth, Pipeline *out);

/* plateau(tests = 3, least = 0.01) */
static bool plateau(Lower *l, const Expr *expr, PhaseChoice *out)
{
    static const char *const key[] = {"tests", "least"};
    const Arg *slot[COUNT(key)] = {0};
    int64_t tests = 3;
    out->plateau_least = 0.01;
    if ((expr->kind != EXPR_CALL && expr->kind != EXPR_NAME) || strcmp(expr->text, "plateau")) {
        FAIL(l, NULL, P0444, expr->span, "when of hybrid is plateau(tests = n, least = x)");
        return false;
    }
    if (expr->kind == EXPR_CALL && !bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    if (slot[0] && !value_want_integer(l, &l->file, lower_expr(l, &l->file, slot[0]->value, NULL), slot[0]->value->span,
                                       "tests of plateau", &tests))
        return false;
    if (slot[1] && !value_want_number(l, &l->file, lower_expr(l, &l->file, slot[1]->value, NULL), slot[1]->value->span,
                                      "least of plateau", &out->plateau_least))
        return false;
    if (tests < 1 || tests > 1000000 || out->plateau_least < 0 || out->plateau_least >= 1) {
        FAIL(l, NULL, P0212, expr->span, "plateau wants tests from 1 to 1000000 and least from 0 to below 1");
        return false;
    }
    const int64_t every = l->settings->train.test_every;
    if (every == 0) {
        FAIL(l, NULL, P0444, expr->span, "a plateau is judged by tests, and there are none during the run");
        diag_hint(l->diags, "train { test_every = 100 }");
        return false;
    }
    out->plateau_tests = (int)tests;
    out->minibatches = every;
    return true;
}

static bool steps_of_hybrid(Lower *l, const Expr *count, PhaseChoice *out)
{
    int64_t steps = 0;
    if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, count, NULL), count->span, "steps of hybrid", &steps))
        return false;
    if (steps < 1 || steps > most_minibatches) {
        FAIL(l, NULL, P0212, count->span, "steps of hybrid must be from 1 to %lld, found %lld",
             (long long)most_minibatches, (long long)steps);
        return false;
    }
    out->minibatches = steps;
    return true;
}

/* hybrid(A, steps = n, then = B): the last phase of A ends after n minibatches, or by when = plateau(...). lr = ... is
 * the rate of B, where B has none of its own. */
static bool hybrid(Lower *l, const Expr *expr, int depth, Pipeline *out)
{
    enum { FIRST, STEPS, THEN, WHEN, RATE };
    static const char *const key[] = {"first", "steps", "then", "when", "lr"};
    const Arg *slot[COUNT(key)] = {0};
    if (!bind_arguments(l, &l->file, expr, 0, key, COUNT(key), slot, (Span){0, 0}))
        return false;
    if (!slot[FIRST] || !slot[THEN] || (!slot[STEPS] && !slot[WHEN])) {
        FAIL(l, NULL, P0207, expr->span, "hybrid needs %s",
             !slot[FIRST]                  ? "a schedule to begin with"
             : !slot[STEPS] && !slot[WHEN] ? "steps"
                                           : "then");
        diag_hint(l->diags, "hybrid(stale, steps = 20000, then = sequential)");
        return false;
    }
    if (slot[STEPS] && slot[WHEN]) {
        FAIL(l, NULL, P0444, slot[WHEN]->value->span, "steps and when both say when a hybrid switches");
        diag_note(l->diags, slot[STEPS]->value->span, "steps is set here");
        return false;
    }
    Choice rate;
    if (slot[RATE] && !lower_choice(l, CHOICE_POLICY, slot[RATE]->value, &rate))
        return false;
    if (!add_phases(l, slot[FIRST]->value, depth + 1, out))
        return false;
    PhaseChoice *first = &out->phase[out->nphases - 1];
    if (slot[STEPS] ? !steps_of_hybrid(l, slot[STEPS]->value, first) : !plateau(l, slot[WHEN]->value, first))
        return false;
    const int second = out->nphases;
    if (!add_phases(l, slot[THEN]->value, depth + 1, out))
        return false;
    for (int i = second; slot[RATE] && i < out->nphases; i++)
        if (!out->phase[i].own_lr) {
            out->phase[i].own_lr = true;
            out->phase[i].lr = rate;
        }
    return true;
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
        if (!preset_with_arguments(l, expr, &phase))
            return false;
    } else {
        FAIL(l, NULL, P0408, expr->span, "a schedule is wanted here");
        diag_hint(l->diags, "`pnetc list schedules` shows what there is");
        return false;
    }
    out->phase[out->nphases++] = phase;
    return true;
}

/* One number of microbatches for all phases. */
static void settle_microbatches(Lower *l, int64_t batch, Span batch_span, Pipeline *out)
{
    const PhaseChoice *said = NULL;
    for (int i = 0; i < out->nphases; i++) {
        const PhaseChoice *phase = &out->phase[i];
        if (phase->microbatches && said && phase->microbatches != said->microbatches) {
            FAIL(l, NULL, P0411, phase->microbatches_span,
                 "the phases of a program have the same microbatches: %lld here", (long long)phase->microbatches);
            diag_note(l->diags, said->microbatches_span, "and %lld here", (long long)said->microbatches);
            return;
        }
        said = phase->microbatches && !said ? phase : said;
    }
    for (int i = 0; i < out->nphases; i++)
        if (!said && out->phase[i].order->slices) {
            FAIL(l, NULL, P0411, out->phase[i].span, "the schedule %s needs a number of microbatches",
                 out->phase[i].preset);
            diag_hint(l->diags, "%s(microbatches = 8): the more, the smaller the share of time that workers wait",
                      out->phase[i].preset);
            return;
        }
    out->microbatches = said ? said->microbatches : 1;
    if (batch % out->microbatches) {
        FAIL(l, NULL, P0411, said->microbatches_span, "a batch of %lld cannot be cut into %lld equal microbatches",
             (long long)batch, (long long)out->microbatches);
        if (batch_span.at)
            diag_note(l->diags, batch_span, "the batch is set here");
        out->microbatches = 1;
    }
}

/* What any phase asks for holds in all of them. */
static void settle_recomputation(Lower *l, Pipeline *out)
{
    for (int i = 0; i < out->nphases; i++) {
        const PhaseChoice *phase = &out->phase[i];
        out->recompute |= phase->recompute || phase->rule->recomputes;
        if (out->recomputes && phase->recomputes) {
            FAIL(l, NULL, P0509, phase->recompute_span, "the stages that recompute are those of all phases");
            diag_note(l->diags, out->recompute_span, "they are told here already");
        } else if (phase->recomputes) {
            out->recomputes = phase->recomputes;
            out->nrecomputes = phase->nrecomputes;
            out->recompute_span = phase->recompute_span;
        }
    }
}

/* expr NULL: the default, which is the first preset. */
void lower_schedule(Lower *l, const Expr *expr, int64_t batch, Span batch_span, Pipeline *out)
{
    out->microbatches = 1;
    if (expr && add_phases(l, expr, 0, out)) {
        settle_recomputation(l, out);
        settle_microbatches(l, batch, batch_span, out);
        return;
    }
    out->phase[0] = preset_phase(&preset_table[0], expr ? expr->span : (Span){0, 0});
    out->nphases = 1;
}
