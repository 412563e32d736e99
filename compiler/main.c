/* main.c: the table of contents. Every pass by name, in order, from text to the plan; then the commands. */
#include <stdlib.h>
#include <string.h>

#include "place.h"
#include "session.h"
#include "stability.h"

static bool dumps(const Session *s, const char *what)
{
    return s->options.dump && !strcmp(s->options.dump, what);
}

/* Machine and profile. NULL after errors. */
static const CostModel *cost_model(Session *s, const Settings *settings, const TargetDef *target)
{
    const Options *o = &s->options;
    CostModel *model = arena_alloc(s->arena, sizeof *model);
    model->hardware = hardware_find(s->arena, s->diags, &s->sources, settings, o->machine);
    model->target = target;
    model->states = optimizer_states(&settings->train.optimizer) + cure_states(settings);
    model->threads = (int)settings->pipeline.threads;
    if (o->profile && model->hardware)
        model->profile = profile_read(s->arena, s->diags, &s->sources, o->profile, s->written, target, model->threads,
                                      o->machine ? model->hardware->name : NULL);
    return model->hardware && (model->profile || !o->profile) ? model : NULL;
}

bool elaborate(Session *s, Text *out)
{
    static const char *const forms[] = {"ast", "graph", "pipe", "sched", "plan"};
    const Options *o = &s->options;
    if (o->dump) {
        bool known = false;
        for (int i = 0; i < COUNT(forms); i++)
            known |= !strcmp(o->dump, forms[i]);
        if (!known) {
            fprintf(stderr, "pnetc: --dump wants ast, graph, pipe, sched or plan, not '%s'\n", o->dump);
            exit(2);
        }
    }
    const TargetDef *target = o->target ? target_find(o->target) : target_table[0];
    if (!target) {
        fprintf(stderr, "pnetc: unknown target '%s'; `pnetc list targets` shows what there is\n", o->target);
        exit(2);
    }

    Arena *a = s->arena;
    Diags *d = s->diags;
    s->ast = load(a, d, &s->sources, o->file[0]);
    s->overrides = options_overrides(a, d, &s->sources, o);
    if (dumps(s, "ast")) {
        ast_dump(s->ast, out);
        return false;
    }
    if (diag_errors(d))
        return false;
    const Name network = o->network ? name_of(a, o->network) : NULL;
    Graph *written = lower(a, d, &s->sources, s->ast, network, s->overrides, o->ndefines, &s->settings);
    s->written = written;
    if (!written)
        return false;
    if (s->single) {
        written->nreplicas = 0;
        written->halves = false;
    }
    graph_check(s->written);
    s->model = cost_model(s, &s->settings, target);
    return target_check(target, d, &s->settings) && s->model != NULL;
}

const Plan *compile(Session *s, Text *out)
{
    if (!elaborate(s, out))
        return NULL;
    const Options *o = &s->options;
    const Settings *settings = &s->settings;
    Arena *a = s->arena;
    Diags *d = s->diags;
    if (settings->pipeline.automatic.wanted)
        s->written = place_registers(a, d, s->written, settings, s->model);
    const Graph *written = s->written;
    if (!written)
        return NULL;
    graph_check(written);
    if (dumps(s, "graph")) {
        graph_dump(written, out);
        return NULL;
    }
    const Graph *graph = fuse(a, written);
    graph_check(graph);
    const Backward *back = backward(a, graph);
    backward_check(back);

    const Pipe *pipe = pipe_cut(a, d, graph, back);
    if (!pipe)
        return NULL;
    pipe_check(pipe);
    if (dumps(s, "pipe")) {
        pipe_dump(pipe, out);
        return NULL;
    }
    const Sched *sched = schedule(a, d, pipe, settings);
    if (!sched)
        return NULL;
    sched_check(sched);
    if (dumps(s, "sched")) {
        sched_dump(sched, out);
        return NULL;
    }
    const Plan *plan = plan_memory(a, d, sched, s->model->target);
    if (!plan)
        return NULL;
    plan_check(plan);
    if (dumps(s, "plan")) {
        plan_dump(plan, out);
        return NULL;
    }
    s->balance = balance_judge(a, plan, predict(a, sched, s->model), written,
                               o->command == COMMAND_CHECK || o->command == COMMAND_REPORT);
    balance_warn(a, d, s->balance, written, o->warn_balance, o->warn_stale, o->warn_memory);
    stability_warn(a, d, sched, o->warn_stability);
    return diag_errors(d) ? NULL : plan;
}

int main(int argc, char **argv)
{
    static int (*const command[COMMAND_COUNT])(Session *) = {
        [COMMAND_CHECK] = command_check,         [COMMAND_PLAN] = command_check,    [COMMAND_PLACE] = command_place,
        [COMMAND_BUILD] = command_build,         [COMMAND_RUN] = command_build,     [COMMAND_FMT] = command_fmt,
        [COMMAND_EXPLAIN] = command_explain,     [COMMAND_DOCTOR] = command_doctor, [COMMAND_LIST] = command_list,
        [COMMAND_DRAW] = command_draw,           [COMMAND_PLOT] = command_plot,     [COMMAND_PROFILE] = command_profile,
        [COMMAND_CALIBRATE] = command_calibrate, [COMMAND_FLAGS] = command_flags,   [COMMAND_REPORT] = command_report,
        [COMMAND_KERNELS] = command_kernels,
    };
    Session s = {.arena = arena_new(), .self = argv[0]};
    s.options = options_read(s.arena, argc, argv);
    s.diags = diags_new(s.arena, &s.sources);
    const int status = command[s.options.command](&s);
    arena_free(s.arena);
    return status;
}
