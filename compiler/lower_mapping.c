/* lower_mapping.c: mapping = joined | split: which workers do a stage. Zhang and Abdelrahman 2021 have both: an
 * accelerator for the forward and the backward stage of the same layers (section 6.5: K + 1 of them), and one for each,
 * but for the last forward and the first backward stage (section 3: 2K + 1). */
#include "lower.h"

#include <string.h>

void lower_mapping(Lower *l, const Expr *expr, Pipeline *out)
{
    static const char *const words[] = {"joined", "split"};
    if (!expr)
        return;
    out->mapping_span = expr->span;
    const bool named = expr->kind == EXPR_NAME || expr->kind == EXPR_TEXT;
    for (int i = 0; named && i < COUNT(words); i++)
        if (!strcmp(expr->text, words[i])) {
            out->split = i == 1;
            return;
        }
    FAIL(l, NULL, P0525, expr->span, "mapping is joined or split");
    const char *near = named ? nearest(expr->text, words, COUNT(words)) : NULL;
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
    else
        diag_hint(l->diags, "joined: a worker for each stage; split: two, one for its forwards, one for its backwards");
}

static bool has_replicas(const Graph *g)
{
    bool any = false;
    for (int s = 0; s < g->nreplicas; s++)
        any |= g->replicas[s] > 1;
    return any;
}

void lower_mapping_check(Lower *l)
{
    const Pipeline *pipeline = &l->settings->pipeline;
    const Span span = pipeline->mapping_span;
    if (!pipeline->split || diag_errors(l->diags))
        return;
    if (pipeline->automatic.wanted) {
        FAIL(l, NULL, P0525, span, "mapping = split is of stages that are stated, not of those that auto(...) finds");
        diag_note(l->diags, pipeline->automatic.span, "registers are placed here");
        diag_hint(l->diags,
                  "`pnetc place` says where they would stand with mapping = joined; state them by ppv or after");
        return;
    }
    if (has_replicas(l->graph)) {
        FAIL(l, NULL, P0525, span, "mapping = split does not go with replicas of a stage");
        diag_note(l->diags, l->replicas->span, "replicas are set here");
        diag_hint(l->diags, "replicas = 1 for every stage, or mapping = joined");
        return;
    }
    const int workers = 2 * l->graph->ncuts + 1;
    if (workers > MAX_STAGES) {
        FAIL(l, NULL, P0525, span, "%d stages in halves are %d workers, more than %d", l->graph->ncuts + 1, workers,
             MAX_STAGES);
        diag_hint(l->diags, "at most %d registers, or mapping = joined", (MAX_STAGES - 1) / 2);
        return;
    }
    l->graph->halves = true;
}
