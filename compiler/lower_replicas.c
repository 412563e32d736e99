/* lower_replicas.c: replicas = (1, 2): so many copies of each stage divide every minibatch (data parallelism within a
 * stage; PipeDream, Harlap et al. 2018, section 3.2, divides whole minibatches instead). */
#include "lower.h"

/* A statistic over a slice of one number has no variance. */
static bool statistics_hold(Lower *l, int stage, int replicas, Span span)
{
    const Graph *g = l->graph;
    const NodeId first = stage > 0 ? g->cut[stage - 1].before : 0;
    const NodeId last = stage < g->ncuts ? g->cut[stage].before : g->nnodes;
    for (NodeId id = first; id < last; id++)
        for (int i = 0; i < g->node[id].nparams; i++) {
            const Shape *shape = &g->node[id].shape;
            if (!g->param[g->node[id].param[i]].running || g->batch / replicas > 1 ||
                shape_count(shape) > shape->dim[0])
                continue;
            FAIL(l, NULL, P0524, span, "a replica would have one number for each statistic of %s", g->node[id].name);
            diag_note(l->diags, g->node[id].span, "%s is called here", g->node[id].name);
            return false;
        }
    return true;
}

static bool read_replicas(Lower *l, const Expr *expr, int stage, int *out)
{
    int64_t n = 1;
    if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, (Expr *)expr, NULL), expr->span,
                            "the number of replicas", &n))
        return false;
    if (n < 1 || n > MAX_REPLICAS) {
        FAIL(l, NULL, P0524, expr->span, "a stage has 1 to %d replicas, found %lld", MAX_REPLICAS, (long long)n);
        return false;
    }
    if (l->graph->batch % n) {
        int64_t down = n, up = n;
        while (l->graph->batch % down)
            down--;
        while (up < l->graph->batch && l->graph->batch % up)
            up++;
        FAIL(l, NULL, P0524, expr->span, "a batch of %lld does not divide into %lld equal slices",
             (long long)l->graph->batch, (long long)n);
        diag_hint(l->diags, "the nearest that do are %lld and %lld replicas; or choose another train.batch",
                  (long long)down, (long long)up);
        return false;
    }
    *out = (int)n;
    return statistics_hold(l, stage, *out, expr->span);
}

void lower_replicas(Lower *l)
{
    const Expr *expr = l->replicas;
    Graph *g = l->graph;
    if (!expr || expr->kind == EXPR_ERROR || diag_errors(l->diags))
        return;
    if (l->settings->pipeline.automatic.wanted) {
        FAIL(l, NULL, P0524, expr->span, "replicas are of stages that are stated, not of those that auto(...) finds");
        diag_hint(l->diags, "auto(workers = n) chooses them itself; `pnetc place --write` puts both into the file");
        return;
    }
    const int stages = g->ncuts + 1, count = expr->kind == EXPR_LIST ? expr->nargs : 1;
    if (count != stages) {
        FAIL(l, NULL, P0524, expr->span, "replicas has %d number%s, and there %s %d stage%s", count,
             count == 1 ? "" : "s", stages == 1 ? "is" : "are", stages, stages == 1 ? "" : "s");
        diag_hint(l->diags, "one for each stage, as replicas = (1, 2)");
        return;
    }
    int *replicas = arena_alloc(l->arena, sizeof *replicas * (size_t)stages);
    int workers = 0;
    for (int s = 0; s < stages; s++) {
        if (!read_replicas(l, expr->kind == EXPR_LIST ? expr->arg[s].value : expr, s, &replicas[s]))
            return;
        workers += replicas[s];
    }
    if (workers > MAX_STAGES) {
        FAIL(l, NULL, P0524, expr->span, "%d replicas of all stages are more than %d workers", workers, MAX_STAGES);
        return;
    }
    g->replicas = replicas;
    g->nreplicas = stages;
}
