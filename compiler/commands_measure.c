/* commands_measure.c: the commands that measure: profile, calibrate. */
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "calibrate.h"
#include "emit.h"
#include "measure.h"
#include "session.h"

int command_profile(Session *s)
{
    enum { USUAL_STEPS = 30 };
    const Options *o = &s->options;
    const int steps = o->steps ? o->steps : USUAL_STEPS;
    Text unused = text_new(s->arena), out = text_new(s->arena);
    s->single = true;
    const Plan *plan = compile(s, &unused);
    if (session_errors(s) || !plan)
        return 1;
    Diags *d = s->diags = diags_new(s->arena, &s->sources);
    char *folder = measure_build(s->arena, d, s->self, plan);
    const bool pipelined = plan->sched->pipe->nstages > 1;
    const Measurement *idle = NULL, *busy = NULL;
    if (folder)
        idle = measure_run(s->arena, d, folder, plan, false, steps, o->program);
    if (idle && pipelined)
        busy = measure_run(s->arena, d, folder, plan, true, steps, o->program);
    if (folder)
        remove_folder(folder);
    if (session_errors(s))
        return 1;
    profile_write(&out, s->written, plan, o->machine ? s->model->hardware->name : machine_name(s->arena), idle, busy,
                  o->alone);
    return session_deliver(s, &out);
}

/* Measures the network of calibrate.h, in a folder that holds its source, as `profile` measures a user's. */
int command_calibrate(Session *s)
{
    enum { STEPS = 40, QUICK_STEPS = 12, MEGABYTE = 1 << 20 };
    Options *o = &s->options;
    Text unused = text_new(s->arena), out = text_new(s->arena);
    const int workers = processors();
    double *rate = arena_alloc(s->arena, sizeof *rate * (size_t)workers);
    const bool rated = calibrate_bandwidth(workers, (size_t)(o->quick ? 16 : 64) * MEGABYTE, rate);
    char *source = temporary_folder(s->arena, s->diags), *folder = NULL;
    const Plan *plan = NULL;
    const Measurement *measured = NULL, *by_rule = NULL;
    char *exact[] = {"--exact", NULL};
    if (source) {
        const TargetDef *target = o->target ? target_find(o->target) : NULL; /* compile refuses an unknown one */
        const char *network = calibrate_network(s->arena, target ? target : target_table[0]);
        o->file[0] = arena_printf(s->arena, "%s/calibration.pnet", source);
        if (write_text(s->arena, s->diags, o->file[0], network, strlen(network)))
            plan = compile(s, &unused);
    }
    if (plan)
        folder = measure_build(s->arena, s->diags, s->self, plan);
    const int steps = o->quick ? QUICK_STEPS : STEPS;
    const bool chooses = plan && plan->target->winograd_tiles;
    if (folder)
        measured = measure_run(s->arena, s->diags, folder, plan, workers > 1, steps, chooses ? exact : NULL);
    if (measured && chooses)
        by_rule = measure_run(s->arena, s->diags, folder, plan, workers > 1, steps, NULL);
    if (folder)
        remove_folder(folder);
    if (source)
        remove_folder(source);
    if (session_errors(s) || !measured || (chooses && !by_rule))
        return 1;
    calibrate_write(&out, plan, s->model->states, measured, by_rule, workers, rated ? rate : NULL);
    const SourceFile *file = source_add(s->arena, &s->sources, "machine", out.data, out.length);
    const Ast *ast = file ? parse(s->arena, s->diags, file) : NULL;
    if (session_errors(s) || !ast)
        return 1;
    Text canonical = text_new(s->arena);
    format(ast, &canonical);
    return session_deliver(s, &canonical);
}
