/* lower_registers.c: where the cuts are: the `register` statements, or `registers = ...` of the pipeline block.
 *
 * ppv(p1, .., pK): the paper's pipeline placement vector: a register after weighted layer p (Zhang and Abdelrahman
 * 2021, section 3). It stands just before the next weighted layer, so that the activations and pools behind a layer
 * stay with it. after(a, b, ...): a register right behind the node of that name, or behind what a variable of the
 * network holds at last. auto(...): none yet; place.c finds them. */
#include "lower.h"
#include "op.h"

#include <stdlib.h>
#include <string.h>

/* ---- ppv ---- */

static void place_ppv(Lower *l, const Expr *call, Cuts *cuts)
{
    const Graph *g = l->graph;
    VEC(NodeId) layer = {0};
    for (NodeId id = 0; id < g->nnodes; id++)
        if (g->node[id].op && g->node[id].op->flags & OP_WEIGHTED)
            *vec_push(l->arena, &layer) = id;
    int64_t last = 0;
    for (int i = 0; i < call->nargs; i++) {
        const Arg *arg = &call->arg[i];
        int64_t p = 0;
        if (arg->key) {
            FAIL(l, NULL, P0204, arg->key_span, "the positions of ppv have no names");
            continue;
        }
        if (!value_want_integer(l, &l->file, lower_expr(l, &l->file, arg->value, NULL), arg->value->span,
                                "a position of ppv", &p))
            continue;
        if (p < 1 || p >= layer.count) {
            FAIL(l, NULL, P0521, arg->value->span,
                 "there is no register position %lld: the network has %d weighted layer%s", (long long)p, layer.count,
                 layer.count == 1 ? "" : "s");
            if (layer.count > 1)
                diag_hint(l->diags, "positions are 1 to %d: the register stands behind that layer", layer.count - 1);
            continue;
        }
        if (p <= last) {
            FAIL(l, NULL, P0521, arg->value->span, "the positions of ppv must ascend, found %lld after %lld",
                 (long long)p, (long long)last);
            continue;
        }
        last = p;
        *vec_push(l->arena, cuts) = (Cut){layer.at[p], arg->value->span};
    }
}

/* ---- after ---- */

static NodeId find_node(const Graph *g, const char *name)
{
    for (NodeId id = 0; id < g->nnodes; id++)
        if (!strcmp(g->node[id].name, name))
            return id;
    return -1;
}

static void unknown_node(Lower *l, const Expr *expr, const char *name)
{
    VEC(const char *) names = {0};
    for (NodeId id = 0; id < l->graph->nnodes; id++)
        *vec_push(l->arena, &names) = l->graph->node[id].name;
    for (int i = 0; i < l->body.binding.count; i++)
        if (l->body.binding.at[i].value.kind == VALUE_TENSOR)
            *vec_push(l->arena, &names) = l->body.binding.at[i].name;
    FAIL(l, NULL, P0522, expr->span, "the network has no value %s", name);
    const char *near = nearest(name, names.at, names.count);
    if (near)
        diag_hint(l->diags, "did you mean %s?", near);
    else
        diag_hint(l->diags, "`pnetc check --dump=graph` shows all names");
}

/* The node a name of after() stands for; -1 after an error. */
static NodeId named_node(Lower *l, const Expr *expr, const NodeId *to)
{
    if (expr->kind != EXPR_NAME && expr->kind != EXPR_TEXT) {
        FAIL(l, NULL, P0522, expr->span, "after wants names of values");
        return -1;
    }
    const NodeId id = find_node(l->graph, expr->text);
    if (id >= 0 && !l->graph->node[id].op) {
        FAIL(l, NULL, P0522, expr->span, "%s is an input; a register stands behind an op", expr->text);
        diag_note(l->diags, l->graph->node[id].span, "%s is declared here", expr->text);
        return -1;
    }
    if (id >= 0)
        return id;
    const int at = map_get(&l->body.index, name_of(l->arena, expr->text));
    if (at < 0) {
        unknown_node(l, expr, expr->text);
        return -1;
    }
    const Binding *binding = &l->body.binding.at[at];
    if (binding->value.kind != VALUE_TENSOR) {
        FAIL(l, NULL, P0522, expr->span, "%s is %s; a register stands behind a tensor", expr->text,
             value_text(l, &binding->value));
        diag_note(l->diags, binding->span, "%s is bound here", expr->text);
        return -1;
    }
    if (to[binding->value.node] < 0) {
        FAIL(l, NULL, P0522, expr->span, "%s does not reach the loss", expr->text);
        diag_note(l->diags, binding->span, "%s is bound here", expr->text);
    }
    return to[binding->value.node];
}

static int compare_cuts(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    const int order = (x->before > y->before) - (x->before < y->before);
    return order ? order : (x->span.at > y->span.at) - (x->span.at < y->span.at);
}

static void place_after(Lower *l, const Expr *call, const NodeId *to, Cuts *cuts)
{
    for (int i = 0; i < call->nargs; i++) {
        const Arg *arg = &call->arg[i];
        if (arg->key) {
            FAIL(l, NULL, P0204, arg->key_span, "the names in after stand alone");
            continue;
        }
        const NodeId id = named_node(l, arg->value, to);
        if (id >= 0)
            *vec_push(l->arena, cuts) = (Cut){id + 1, arg->value->span};
    }
    if (cuts->count)
        qsort(cuts->at, (size_t)cuts->count, sizeof *cuts->at, compare_cuts);
}

/* ---- all ---- */

bool lower_places(Lower *l, const Expr *expr, const NodeId *to, Cuts *cuts)
{
    if (expr->kind != EXPR_CALL)
        return false;
    if (!strcmp(expr->text, "ppv"))
        place_ppv(l, expr, cuts);
    else if (!strcmp(expr->text, "after"))
        place_after(l, expr, to, cuts);
    else
        return false;
    return true;
}

static void place_by_setting(Lower *l, const NodeId *to, Cuts *cuts)
{
    const Expr *expr = l->registers;
    if (expr->kind == EXPR_NAME && !strcmp(expr->text, "none"))
        return;
    if (expr->kind == EXPR_CALL && !strcmp(expr->text, "auto")) {
        lower_auto(l, expr, to);
    } else if (!lower_places(l, expr, to, cuts)) {
        static const char *const ways[] = {"ppv", "after", "auto", "none"};
        FAIL(l, NULL, P0523, expr->span,
             "registers are placed by ppv(...), after(...) or auto(...), or there are none");
        const char *near =
            expr->kind == EXPR_NAME || expr->kind == EXPR_CALL ? nearest(expr->text, ways, COUNT(ways)) : NULL;
        diag_hint(l->diags, "%s",
                  near ? arena_printf(l->arena, "did you mean %s?", near)
                       : "registers = ppv(1, 2), after(pool1), auto(stages = 2) or none");
    }
}

/* The statements, moved from the numbers of elaboration to those of the finished graph. */
static void place_by_statement(Lower *l, const NodeId *to, int old_nodes, Cuts *cuts)
{
    NodeId *next = arena_alloc(l->arena, (size_t)(old_nodes + 1) * sizeof *next); /* first kept node that is no input */
    next[old_nodes] = l->graph->nnodes;
    for (NodeId id = old_nodes - 1; id >= 0; id--)
        next[id] = to[id] >= l->graph->ninputs ? to[id] : next[id + 1];
    for (int i = 0; i < l->cuts.count; i++)
        *vec_push(l->arena, cuts) = (Cut){next[l->cuts.at[i].before], l->cuts.at[i].span};
}

static bool stage_not_empty(Lower *l, const Cut *cut, const Cut *previous)
{
    const Graph *g = l->graph;
    if (cut->before <= g->ninputs) {
        FAIL(l, NULL, P0501, cut->span, "no op stands before this register: its stage would be empty");
        return false;
    }
    if (cut->before >= g->nnodes) {
        FAIL(l, NULL, P0503, cut->span, "nothing follows this register: its stage would be empty");
        diag_note(l->diags, g->node[g->loss].span, "the network ends with its loss, here");
        return false;
    }
    if (previous && cut->before == previous->before) {
        FAIL(l, NULL, P0501, cut->span, "no op stands between this register and the one before it");
        diag_note(l->diags, previous->span, "the one before it");
        return false;
    }
    return true;
}

void lower_registers(Lower *l, const NodeId *to, int old_nodes)
{
    Graph *g = l->graph;
    Cuts cuts = {0};
    if (l->registers && l->cuts.count && !l->registers_override) {
        FAIL(l, NULL, P0520, l->registers_span, "the registers are stated twice");
        diag_note(l->diags, l->cuts.at[0].span, "a register statement stands here");
        diag_hint(l->diags, "keep the statements or the setting");
        return;
    }
    if (l->registers)
        place_by_setting(l, to, &cuts);
    else
        place_by_statement(l, to, old_nodes, &cuts);
    if (cuts.count >= MAX_STAGES) {
        FAIL(l, NULL, P0502, cuts.at[MAX_STAGES - 1].span, "%d registers make more than %d stages", cuts.count,
             MAX_STAGES);
        return;
    }
    g->cut = arena_alloc(l->arena, (size_t)(cuts.count + 1) * sizeof *g->cut);
    for (int i = 0; i < cuts.count; i++)
        if (stage_not_empty(l, &cuts.at[i], g->ncuts ? &g->cut[g->ncuts - 1] : NULL))
            g->cut[g->ncuts++] = cuts.at[i];
}
