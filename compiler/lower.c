/* lower.c: Ast -> Graph and Settings.
 *
 * Takes an Ast without syntax errors. Order of work: declarations are collected, parameters get their values, settings
 * are resolved (the batch bounds sizes), the network is elaborated into nodes, and the graph is finished: unused values
 * dropped, registers placed, inputs held against the data source. */
#include "lower.h"
#include "op.h"

#include <string.h>

/* ---- declarations ---- */

static void declared_twice(Lower *l, const char *kind, const Item *second, const Item *first)
{
    FAIL(l, NULL, P0203, second->name_span, "the %s %s is declared twice", kind, second->name);
    diag_note(l->diags, first->name_span, "it is declared here already");
}

static void check_parameter_names(Lower *l, const Item *item)
{
    NameMap seen = {0};
    for (int i = 0; i < item->nparams; i++) {
        const int before = map_get(&seen, item->param[i].name);
        if (before >= 0) {
            FAIL(l, NULL, P0203, item->param[i].span, "%s has two parameters %s", item->name, item->param[i].name);
            diag_note(l->diags, item->param[before].span, "it is declared here already");
        } else {
            map_set(l->arena, &seen, item->param[i].name, i);
        }
    }
}

static void collect_def(Lower *l, const Item *item)
{
    const int before = map_get(&l->def_index, item->name);
    if (before >= 0) {
        declared_twice(l, "def", item, l->def[before]);
        return;
    }
    if (op_find(item->name) || is_initialiser(item->name)) {
        FAIL(l, NULL, P0203, item->name_span, "%s is %s; a def needs a name of its own", item->name,
             op_find(item->name) ? "an op" : "an initialiser");
        return;
    }
    l->def[l->ndefs] = item;
    map_set(l->arena, &l->def_index, item->name, l->ndefs++);
}

static void unknown_network(Lower *l, Name wanted, const NameMap *networks)
{
    VEC(const char *) names = {0};
    for (int i = 0; i < l->ast->nitems; i++)
        if (l->ast->item[i].kind == ITEM_NETWORK)
            *vec_push(l->arena, &names) = l->ast->item[i].name;
    if (!networks->count) {
        const SourceFile *file = l->ast->file;
        diag_error(l->diags, P0219, file ? (Span){file->base, file->base} : (Span){0, 0},
                   "there is no network in this file");
        diag_hint(l->diags, "network name { input ...  loss ... }");
        return;
    }
    diag_error(l->diags, P0219, (Span){0, 0}, "there is no network %s", wanted);
    const char *near = nearest(wanted, names.at, names.count);
    diag_hint(l->diags, near ? "did you mean %s?" : "the last network of the file is %s",
              near ? near : names.at[names.count - 1]);
}

/* Finds the defs and the network; false if there is none to lower. */
static bool collect(Lower *l, Name wanted)
{
    NameMap networks = {0};
    l->def = arena_alloc(l->arena, (size_t)(l->ast->nitems + 1) * sizeof *l->def);
    l->def_names = arena_alloc(l->arena, (size_t)(l->ast->nitems + 1) * sizeof *l->def_names);
    for (int i = 0; i < l->ast->nitems; i++) {
        const Item *item = &l->ast->item[i];
        if (item->kind == ITEM_DEF || item->kind == ITEM_NETWORK)
            check_parameter_names(l, item);
        if (item->kind == ITEM_DEF)
            collect_def(l, item);
        if (item->kind != ITEM_NETWORK)
            continue;
        const int before = map_get(&networks, item->name);
        if (before >= 0)
            declared_twice(l, "network", item, &l->ast->item[before]);
        map_set(l->arena, &networks, item->name, i);
        if (!wanted || wanted == item->name)
            l->network = item;
    }
    if (!l->network)
        unknown_network(l, wanted, &networks);
    return l->network != NULL;
}

/* ---- the pass ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

Graph *lower(Arena *arena, Diags *diags, const Sources *sources, const Ast *ast, Name network, Override *overrides,
             int noverrides, Settings *settings)
{
    Lower *l = &(Lower){
        .arena = arena,
        .diags = diags,
        .sources = sources,
        .ast = ast,
        .overrides = overrides,
        .noverrides = noverrides,
        .settings = settings,
        .loss = -1,
    };
    *settings = (Settings){0};
    l->graph = arena_alloc(arena, sizeof *l->graph);
    l->graph->sources = sources;
    l->graph->file = ast->file ? base_name(ast->file->path) : "";
    if (!collect(l, network))
        return NULL;
    l->graph->name = l->network->name;
    lower_params_of_file(l);
    lower_settings(l);
    l->graph->microbatches = settings->pipeline.microbatches;
    l->graph->batch = settings->train.batch / settings->pipeline.microbatches;
    l->graph->precision = settings->train.precision;
    lower_network(l);
    if (l->loss < 0 || diag_errors(diags))
        return NULL;
    const int old_nodes = l->graph->nnodes;
    const NodeId *to = lower_finish(l);
    lower_registers(l, to, old_nodes);
    lower_replicas(l);
    lower_mapping_check(l);
    lower_data_check(l);
    return diag_errors(diags) ? NULL : l->graph;
}
