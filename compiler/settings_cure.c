/* settings_cure.c: the corrections of staleness:
 *
 *     cure = none | auto
 *     cure = lookahead                              one of schedules/corrections.def
 *     cure = (lookahead(horizon = 2), lr_reschedule)
 */
#include <math.h>
#include <string.h>

#include "correction.h"
#include "lower.h"
#include "order.h"

static const CorrectionDef *find_correction(Lower *l, const char *word, Span span)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < correction_count; i++) {
        if (!strcmp(correction_table[i]->name, word))
            return correction_table[i];
        *vec_push(l->arena, &names) = correction_table[i]->name;
    }
    FAIL(l, NULL, P0440, span, "unknown correction %s", word);
    const char *near = nearest(word, names.at, names.count);
    if (near)
        diag_hint(l->diags, "did you mean %s? `pnetc list schedules` describes them", near);
    else
        diag_hint(l->diags, "cure = auto chooses; `pnetc list schedules` shows what there is");
    return NULL;
}

static void arguments(Lower *l, const Expr *expr, CorrectionChoice *out)
{
    const char *key[CORRECTION_ARGS];
    const Arg *slot[CORRECTION_ARGS] = {0};
    int count = 0;
    for (; count < CORRECTION_ARGS && out->def->arg[count].key; count++) {
        key[count] = out->def->arg[count].key;
        out->arg[count] = out->def->arg[count].preset;
    }
    if (expr->kind != EXPR_CALL || !bind_arguments(l, &l->file, expr, 0, key, count, slot, (Span){0, 0}))
        return;
    for (int i = 0; i < count; i++) {
        if (!slot[i])
            continue;
        const CorrectionArg *arg = &out->def->arg[i];
        const Expr *value = slot[i]->value;
        const char *what = arena_printf(l->arena, "%s of %s", arg->key, out->def->name);
        double number = 0;
        if (!value_want_number(l, &l->file, lower_expr(l, &l->file, value, NULL), value->span, what, &number))
            continue;
        if (number < arg->low || number > arg->high)
            FAIL(l, NULL, P0212, value->span, "%s must be from %.15g to %.15g, found %.15g", what, arg->low, arg->high,
                 number);
        else if (out->def->whole && number != floor(number))
            FAIL(l, NULL, P0209, value->span, "%s must be a whole number, found %g", what, number);
        else
            out->arg[i] = number;
    }
}

/* Kept in the order of the table: that is the order in which they are applied. */
static void insert(CureChoice *out, const CorrectionChoice *choice)
{
    int at = out->count++;
    for (; at > 0; at--) {
        int before = 0, mine = 0;
        for (int i = 0; i < correction_count; i++) {
            before = correction_table[i] == out->correction[at - 1].def ? i : before;
            mine = correction_table[i] == choice->def ? i : mine;
        }
        if (before < mine)
            break;
        out->correction[at] = out->correction[at - 1];
    }
    out->correction[at] = *choice;
}

static void add(Lower *l, const Expr *expr, CureChoice *out)
{
    if (expr->kind != EXPR_NAME && expr->kind != EXPR_CALL) {
        FAIL(l, NULL, P0441, expr->span, "the name of a correction is wanted here");
        diag_hint(l->diags, "cure = auto, none, or (lookahead, lr_reschedule)");
        return;
    }
    CorrectionChoice choice = {.span = expr->span};
    choice.def = find_correction(l, expr->text, expr->kind == EXPR_CALL ? expr->name_span : expr->span);
    if (!choice.def)
        return;
    for (int i = 0; i < out->count; i++) {
        if (!(out->correction[i].def->corrects & choice.def->corrects))
            continue;
        if (out->correction[i].def == choice.def)
            FAIL(l, NULL, P0441, expr->span, "%s stands here twice", choice.def->name);
        else
            FAIL(l, NULL, P0441, expr->span, "%s and %s correct the same thing", choice.def->name,
                 out->correction[i].def->name);
        diag_note(l->diags, out->correction[i].span, "the other one is here");
        return;
    }
    arguments(l, expr, &choice);
    insert(out, &choice);
}

/* ---- what does not go together ---- */

static const CorrectionChoice *corrects(const CureChoice *cure, unsigned what)
{
    for (int i = 0; i < cure->count; i++)
        if (cure->correction[i].def->corrects & what)
            return &cure->correction[i];
    return NULL;
}

static void refuse_with_rules(Lower *l, const Pipeline *pipeline, const CorrectionChoice *forward,
                              const CorrectionChoice *backward)
{
    for (int p = 0; p < pipeline->nphases; p++) {
        const PhaseChoice *phase = &pipeline->phase[p];
        const CorrectionChoice *wrong = NULL;
        if (phase->rule->forward_ahead || phase->rule->forward_reads)
            wrong = forward ? forward : backward;
        else if (phase->rule->backward_reads_own)
            wrong = backward;
        if (!wrong)
            continue;
        FAIL(l, NULL, P0442, wrong->span, "%s does not go with the weight rule %s of schedule %s", wrong->def->name,
             phase->rule->name, phase->preset);
        diag_note(l->diags, phase->span, "%s: %s", phase->rule->name, phase->rule->doc);
        return;
    }
}

/* Needs the optimiser and the phases. What `auto` chooses leaves out what does not fit. */
void lower_cure_check(Lower *l)
{
    Pipeline *pipeline = &l->settings->pipeline;
    const Momentum momentum = optimizer_momentum(&l->settings->train.optimizer);
    const CorrectionChoice *step = corrects(&pipeline->cure, CORRECTS_STEP);
    const CorrectionChoice *forward = corrects(&pipeline->cure, CORRECTS_FORWARD);
    const CorrectionChoice *backward = corrects(&pipeline->cure, CORRECTS_BACKWARD);
    if (step && (momentum.averages || momentum.nesterov)) {
        const Choice *optimizer = &l->settings->train.optimizer;
        FAIL(l, NULL, P0442, step->span, "%s is a form of the update of sgd, and so is %s", step->def->name,
             momentum.averages ? optimizer->name : "Nesterov's");
        if (optimizer->span.at)
            diag_note(l->diags, optimizer->span, "the optimizer is chosen here");
        diag_hint(l->diags, "lookahead goes with every optimizer");
    }
    const CorrectionChoice *often = corrects(&pipeline->cure, CORRECTS_OFTEN);
    if (often && momentum.averages) {
        const Choice *optimizer = &l->settings->train.optimizer;
        FAIL(l, NULL, P0442, often->span, "%s makes steps longer with the rate, and those of %s are normalised",
             often->def->name, optimizer->name);
        if (optimizer->span.at)
            diag_note(l->diags, optimizer->span, "the optimizer is chosen here");
        diag_hint(l->diags, "schedule = stale_1f1b(microbatches = n) updates as rarely, with every optimizer");
    }
    if (forward && backward) {
        FAIL(l, NULL, P0442, backward->span,
             "%s brings the backward's weights near those its forward read; %s has them "
             "read others",
             backward->def->name, forward->def->name);
        diag_note(l->diags, forward->span, "%s is chosen here", forward->def->name);
        return;
    }
    if (!pipeline->cure.automatic)
        refuse_with_rules(l, pipeline, forward, backward);
}

/* ---- cure = ... ---- */

static const char *const automatic[] = {"momentum_by_delay", "lookahead", "lr_reschedule"};

void lower_cure(Lower *l, const Expr *expr, CureChoice *out)
{
    *out = (CureChoice){.given = expr != NULL, .span = expr ? expr->span : (Span){0, 0}};
    if (!expr || (expr->kind == EXPR_NAME && !strcmp(expr->text, "none")))
        return;
    out->automatic = expr->kind == EXPR_NAME && !strcmp(expr->text, "auto");
    if (out->automatic) {
        for (int i = 0; i < COUNT(automatic); i++) {
            const Expr name = {.kind = EXPR_NAME, .text = automatic[i], .span = expr->span};
            add(l, &name, out);
        }
    } else if (expr->kind == EXPR_LIST) {
        for (int i = 0; i < expr->nargs; i++)
            add(l, expr->arg[i].value, out);
    } else {
        add(l, expr, out);
    }
}
