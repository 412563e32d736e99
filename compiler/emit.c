/* emit.c: the files of a program, in order. See emit.h. */
#include "emit_state.h"

#include <stdlib.h>
#include <string.h>

/* The program is called as the network, and lies in one folder with its sources. */
static void check_name(Emit *e)
{
    static const char *const words[] = {"all", "build", "clean", "kernels", "pn", "Makefile", "plan"};
    const char *name = e->graph->name;
    bool clash = false;
    for (int i = 0; i < COUNT(words); i++)
        clash |= !strcmp(name, words[i]);
    if (!strncmp(name, "stage", 5)) {
        const char *digits = name + 5;
        clash |= *digits && strspn(digits, "0123456789") == strlen(digits);
    }
    if (!clash)
        return;
    diag_error(e->diags, P0602, (Span){0},
               "a network cannot be called '%s': that is a name in the folder of its program", name);
    diag_hint(e->diags, "call it %s_net", name);
}

static void check_ops(Emit *e)
{
    const TargetDef *target = e->plan->target;
    for (NodeId id = 0; id < e->graph->nnodes; id++) {
        const Node *node = &e->graph->node[id];
        if (!node->op)
            continue;
        const OpEmit *verbs = node->op->emit[target->id];
        if (verbs && verbs->init && verbs->forward && (verbs->backward || !e->step[id]))
            continue;
        diag_error(e->diags, P0601, node->span, "target '%s' has no code for %s", target->name, node->op->name);
        diag_hint(e->diags, "`pnetc list targets` shows the others");
    }
}

/* What a target with kernels of its own does not do. */
static void check_steps(Emit *e)
{
    if (!e->device)
        return;
    if (sched_splits(e->sched)) {
        diag_error(e->diags, P0611, e->sched->phase[0].choice->span,
                   "target '%s' does not split backwards in input and weight parts", e->plan->target->name);
        diag_hint(e->diags, "take 1f1b_flush in place of zb_h1, or target cpu");
    }
    if (cure_accumulates(e->sched->settings)) {
        diag_error(e->diags, P0611, e->sched->settings->pipeline.cure.span,
                   "target '%s' has no kernel that sums the gradients of minibatches", e->plan->target->name);
        diag_hint(e->diags, "leave accumulate out, take microbatches in place of it, or target cpu");
    }
}

/* "lenet5.pnet:6" per node. */
static void find_lines(Emit *e)
{
    e->line = arena_alloc(e->arena, (size_t)(e->graph->nnodes + 1) * sizeof *e->line);
    for (NodeId id = 0; id < e->graph->nnodes; id++) {
        const Span span = e->graph->node[id].span;
        const SourceFile *file = source_of(e->graph->sources, span.at);
        const char *path = file ? file->path : e->graph->file;
        const char *slash = strrchr(path, '/');
        const char *name = comment_safe(e->arena, slash ? slash + 1 : path);
        e->line[id] = arena_printf(e->arena, "%s:%d", name, graph_line(e->graph, span));
    }
}

static void name_shared(Emit *e)
{
    e->shared = names_new(e->arena, NULL);
    e->register_name = arena_alloc(e->arena, (size_t)(e->pipe->nedges + 1) * sizeof *e->register_name);
    e->input_name = arena_alloc(e->arena, (size_t)(e->graph->nnodes + 1) * sizeof *e->input_name);
    for (int s = 0; s < e->pipe->nstages; s++)
        for (int w = 0; w < stage_workers(&e->pipe->stage[s]); w++)
            names_take(e->shared, stage_symbol(e, s, w));
    for (int i = 0; i < e->pipe->nedges; i++) {
        static const char *const arrays[] = {"value", "gradient", "test"};
        const Edge *edge = &e->pipe->edge[i];
        const char *name = names_take(e->shared, arena_printf(e->arena, "%s_%dto%d",
                                                              c_name(e->arena, e->graph->node[edge->value].value_name),
                                                              edge->from, edge->from + 1));
        for (int k = 0; k < COUNT(arrays); k++)
            names_take(e->shared, arena_printf(e->arena, "%s_%s", name, arrays[k]));
        e->register_name[i] = name;
    }
    for (int i = 0; i < e->graph->ninputs; i++) {
        const NodeId id = e->graph->input[i];
        const char *name = upper(e->arena, c_name(e->arena, e->graph->node[id].name));
        e->input_name[id] = names_take(e->shared, arena_printf(e->arena, "INPUT_%s", name));
    }
}

static void add(Files *files, const char *name, Text text)
{
    files->file[files->count++] = (File){name, text.data, text.length};
}

Files emit(Arena *arena, Diags *diags, const Plan *plan)
{
    const Pipe *pipe = plan->sched->pipe;
    const Graph *graph = pipe->graph;
    Emit *e = arena_alloc(arena, sizeof *e);
    *e = (Emit){.arena = arena, .diags = diags, .plan = plan, .sched = plan->sched, .pipe = pipe, .graph = graph};
    e->net = c_name(arena, graph->name);
    e->device = plan->target->device;
    e->source = comment_safe(arena, graph->file);
    e->step = arena_alloc(arena, (size_t)(graph->nnodes + 1) * sizeof *e->step);
    for (int i = 0; i < pipe->backward->nsteps; i++)
        e->step[pipe->backward->step[i].node] = &pipe->backward->step[i];

    Files files = {0};
    check_name(e);
    check_ops(e);
    check_steps(e);
    if (diag_errors(diags))
        return files;

    find_lines(e);
    name_shared(e);
    e->value = arena_alloc(arena, (size_t)(graph->nnodes + 1) * sizeof *e->value);
    e->offset_name = arena_alloc(arena, (size_t)(graph->nparams + 1) * sizeof *e->offset_name);
    e->index_name = arena_alloc(arena, (size_t)(graph->nparams + 1) * sizeof *e->index_name);
    files.file = arena_alloc(arena, (size_t)(pipe_workers(pipe, pipe->nstages) + 5) * sizeof *files.file);

    Text text = text_new(arena), kernels = text_new(arena);
    if (e->device) {
        e->on_device = arena_alloc(arena, (size_t)pipe->nstages * sizeof *e->on_device);
        emit_kernels(e, &kernels);
    }
    emit_header_file(e, &text);
    add(&files, arena_printf(arena, "%s.h", graph->name), text);
    for (int s = 0; s < pipe->nstages; s++) {
        const Graph slice = pipe_slice(pipe, s);
        e->graph = &slice;
        text = text_new(arena);
        stage_view(e, s);
        emit_stage_file(e, &text);
        add(&files, arena_printf(arena, "%s.c", stage_file(e, s, 0)), text);
        for (int r = 1; r < pipe->stage[s].replicas; r++) {
            text = text_new(arena);
            emit_replica_file(e, r, &text);
            add(&files, arena_printf(arena, "%s.c", stage_file(e, s, r)), text);
        }
        e->graph = graph;
    }
    if (e->device) {
        emit_launches(e);
        files.on_device = e->on_device;
        add(&files, "kernels.cu", kernels);
    }
    text = text_new(arena);
    emit_program_file(e, &text);
    add(&files, arena_printf(arena, "%s.c", graph->name), text);
    text = text_new(arena);
    emit_makefile(e, &text);
    add(&files, "Makefile", text);
    text = text_new(arena);
    plan_dump(plan, &text);
    if (e->device)
        device_dump(plan, e->on_device, &text);
    add(&files, "plan.txt", text);
    return files;
}
