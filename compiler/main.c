/* main.c: the table of contents. Every pass by name, in order, from text to files. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "calibrate.h"
#include "draw.h"
#include "emit.h"
#include "measure.h"
#include "options.h"
#include "place_report.h"
#include "report.h"

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Options options;
    const char *self;
    const Ast *ast;
    Override *overrides;
    const Graph *written; /* with its registers */
    Settings settings;
    const CostModel *model;
    const Balance *balance;
} Session;

/* Prints what was reported; true if there were errors. */
static bool errors(Session *s)
{
    diags_render(s->diags, stderr, isatty(STDERR_FILENO) && !getenv("NO_COLOR"));
    return diag_errors(s->diags) > 0;
}

/* Standard output reaches its end, or the command has failed. */
static int finish_output(int status)
{
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "pnetc: cannot write to standard output\n");
        return 1;
    }
    return status;
}

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
    model->states = optimizer_states(&settings->train.optimizer);
    if (o->profile && model->hardware)
        model->profile = profile_read(s->arena, s->diags, &s->sources, o->profile, s->written, target,
                                      o->machine ? model->hardware->name : NULL);
    return model->hardware && (model->profile || !o->profile) ? model : NULL;
}

/* text -> Ast -> Graph, settings and cost model. False after errors, or when a dump (into `out`) ended it early. */
static bool elaborate(Session *s, Text *out)
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
    s->written = lower(a, d, &s->sources, s->ast, network, s->overrides, o->ndefines, &s->settings);
    if (!s->written)
        return false;
    graph_check(s->written);
    s->model = cost_model(s, &s->settings, target);
    return s->model != NULL;
}

/* Further -> Pipe -> Sched -> Plan, and its balance. NULL after errors, or when a dump (into `out`) ended it early. */
static const Plan *compile(Session *s, Text *out)
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
    s->balance = balance_judge(a, plan, predict(a, sched, s->model), written, o->command == COMMAND_CHECK);
    balance_warn(a, d, s->balance, written, o->warn_balance, o->warn_stale, o->warn_memory);
    return diag_errors(d) ? NULL : plan;
}

static int check_or_plan(Session *s)
{
    Text out = text_new(s->arena);
    const Plan *plan = compile(s, &out);
    if (plan && s->options.all_schedules)
        (s->options.json ? report_schedules_json : report_schedules)(s->written, &s->settings, s->model, &out);
    else if (plan && s->options.command == COMMAND_CHECK)
        (s->options.json ? report_check_json : report_check)(s->balance, s->written, &out);
    else if (plan)
        (s->options.json ? report_plan_json : plan_dump)(plan, &out);
    if (errors(s))
        return 1;
    fwrite(out.data, 1, out.length, stdout);
    return finish_output(0);
}

static int place(Session *s)
{
    enum { USUAL = 8 };
    const Options *o = &s->options;
    const char *path = o->file[0];
    if (o->write && !strcmp(path, "-")) {
        fprintf(stderr, "pnetc: --write needs a file, not standard input\n");
        return 2;
    }
    Text out = text_new(s->arena);
    if (!elaborate(s, &out)) {
        errors(s);
        return 1;
    }
    const AutoRegisters *wishes = &s->settings.pipeline.automatic;
    const int asked = o->workers ? o->workers : wishes->stages ? wishes->stages : wishes->workers;
    const int machine = s->model->hardware->workers;
    const Front *front = place_front(s->arena, s->diags, s->written, &s->settings, s->model,
                                     asked             ? asked
                                     : machine < USUAL ? machine
                                                       : USUAL);
    const int chosen = !front ? 0 : wishes->stages && !o->workers ? wishes->stages : front->best;
    if (front && (chosen < 1 || chosen > front->nrows || !front->row[chosen - 1].outcome.legal))
        place_refused(s->arena, s->diags, front, chosen ? chosen : asked);
    if (errors(s))
        return 1;
    (o->json ? report_front_json : report_front)(front, chosen, &out);
    if (o->write) {
        s->diags = diags_new(s->arena, &s->sources);
        const Placement *placed = &front->row[chosen - 1].placed;
        bool by_setting;
        const char *text = place_write(s->arena, s->diags, &s->sources, s->ast, s->written, placed->cut, placed->ncuts,
                                       s->overrides, o->ndefines, &by_setting);
        if (text && write_text(s->arena, s->diags, path, text, strlen(text)) && !o->json)
            text_printf(&out, "%s: written with %d register%s%s\n", path, placed->ncuts, placed->ncuts == 1 ? "" : "s",
                        by_setting ? ", as registers = after(...): not all stand between statements" : "");
        if (errors(s))
            return 1;
    }
    fwrite(out.data, 1, out.length, stdout);
    return finish_output(0);
}

static int build_or_run(Session *s)
{
    const Options *o = &s->options;
    Text unused = text_new(s->arena);
    const Plan *plan = compile(s, &unused);
    if (errors(s) || !plan)
        return 1;
    Diags *d = s->diags = diags_new(s->arena, &s->sources);
    const Files files = emit(s->arena, d, plan);
    const char *folder = o->out;
    char *temporary = NULL;
    if (!folder && !diag_errors(d))
        folder = temporary = temporary_folder(s->arena, d);
    bool built = !diag_errors(d) && write_files(s->arena, d, folder, &files) &&
                 (o->emit_only || build_program(s->arena, d, s->self, folder, o->quiet || o->command == COMMAND_RUN));
    int status = errors(s) || !built ? 1 : 0;
    if (!status && o->command == COMMAND_RUN)
        status = run_program(folder, plan->sched->pipe->graph->name, o->program);
    else if (!status && !o->quiet)
        printf("%s: %s\n", folder,
               o->emit_only
                   ? "sources written"
                   : arena_printf(s->arena, "built; run %s/%s --help", folder, plan->sched->pipe->graph->name));
    if (temporary)
        remove_folder(temporary);
    return finish_output(status);
}

/* A picture to -o or to standard output. */
static int deliver(Session *s, const Text *picture)
{
    const char *path = s->options.out;
    if (!path) {
        fwrite(picture->data, 1, picture->length, stdout);
        return finish_output(0);
    }
    s->diags = diags_new(s->arena, &s->sources);
    const bool written = write_text(s->arena, s->diags, path, picture->data, picture->length);
    return errors(s) || !written ? 1 : 0;
}

static int draw(Session *s)
{
    const Options *o = &s->options;
    const bool timeline = o->what && !strcmp(o->what, "schedule");
    const char *ending = o->out ? strrchr(o->out, '.') : NULL;
    const char *format = o->format ? o->format : timeline || (ending && !strcmp(ending, ".svg")) ? "svg" : "dot";
    if (timeline && strcmp(format, "svg")) {
        fprintf(stderr, "pnetc: a schedule is drawn as SVG only, not as --format=%s\n", format);
        return 2;
    }
    if (!timeline && (o->time || o->minibatches)) {
        fprintf(stderr, "pnetc: --time and --minibatches are for --what=schedule\n");
        return 2;
    }
    Text picture = text_new(s->arena), dot = text_new(s->arena);
    const Plan *plan = compile(s, &dot);
    if (errors(s) || !plan)
        return 1;
    s->diags = diags_new(s->arena, &s->sources);
    if (timeline)
        draw_schedule(plan->sched, o->time && !strcmp(o->time, "macs") ? TIME_MACS : TIME_UNIT, o->minibatches,
                      &picture);
    else
        draw_network(plan, &dot);
    if (!timeline && !strcmp(format, "svg"))
        draw_by_graphviz(s->arena, s->diags, &dot, &picture);
    return errors(s) ? 1 : deliver(s, timeline || !strcmp(format, "svg") ? &picture : &dot);
}

static int profile(Session *s)
{
    enum { USUAL_STEPS = 30 };
    const Options *o = &s->options;
    const int steps = o->steps ? o->steps : USUAL_STEPS;
    Text unused = text_new(s->arena), out = text_new(s->arena);
    const Plan *plan = compile(s, &unused);
    if (errors(s) || !plan)
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
    if (errors(s))
        return 1;
    profile_write(&out, s->written, plan, o->machine ? s->model->hardware->name : machine_name(s->arena), idle, busy,
                  o->alone);
    return deliver(s, &out);
}

/* Measures the network of calibrate.h, in a folder that holds its source, as `profile` measures a user's. */
static int calibrate(Session *s)
{
    enum { STEPS = 40, QUICK_STEPS = 12, MEGABYTE = 1 << 20 };
    Options *o = &s->options;
    Text unused = text_new(s->arena), out = text_new(s->arena);
    const int workers = processors();
    double *rate = arena_alloc(s->arena, sizeof *rate * (size_t)workers);
    const bool rated = calibrate_bandwidth(workers, (size_t)(o->quick ? 16 : 64) * MEGABYTE, rate);
    char *source = temporary_folder(s->arena, s->diags), *folder = NULL;
    const Plan *plan = NULL;
    const Measurement *measured = NULL;
    if (source) {
        const TargetDef *target = o->target ? target_find(o->target) : NULL; /* compile refuses an unknown one */
        const char *network = calibrate_network(s->arena, target ? target : target_table[0]);
        o->file[0] = arena_printf(s->arena, "%s/calibration.pnet", source);
        if (write_text(s->arena, s->diags, o->file[0], network, strlen(network)))
            plan = compile(s, &unused);
    }
    if (plan)
        folder = measure_build(s->arena, s->diags, s->self, plan);
    if (folder)
        measured = measure_run(s->arena, s->diags, folder, plan, workers > 1, o->quick ? QUICK_STEPS : STEPS, NULL);
    if (folder)
        remove_folder(folder);
    if (source)
        remove_folder(source);
    if (errors(s) || !measured)
        return 1;
    calibrate_write(&out, plan, s->model->states, measured, workers, rated ? rate : NULL);
    const SourceFile *file = source_add(s->arena, &s->sources, "machine", out.data, out.length);
    const Ast *ast = file ? parse(s->arena, s->diags, file) : NULL;
    if (errors(s) || !ast)
        return 1;
    Text canonical = text_new(s->arena);
    format(ast, &canonical);
    return deliver(s, &canonical);
}

static int plot(Session *s)
{
    const Options *o = &s->options;
    Text script = text_new(s->arena), picture = text_new(s->arena);
    const bool good = plot_script(s->arena, s->diags, &s->sources, o->file, o->nfiles, o->x ? o->x : "step",
                                  o->smooth ? o->smooth : 1, &script) &&
                      draw_by_gnuplot(s->arena, s->diags, &script, &picture);
    return errors(s) || !good ? 1 : deliver(s, &picture);
}

static int fmt(Session *s)
{
    int status = 0;
    for (int i = 0; i < s->options.nfiles; i++) {
        const char *path = s->options.file[i];
        s->diags = diags_new(s->arena, &s->sources);
        const SourceFile *file = load_text(s->arena, s->diags, &s->sources, path);
        const Ast *ast = file ? parse(s->arena, s->diags, file) : NULL;
        if (errors(s) || !ast) {
            status = 1;
            continue;
        }
        Text out = text_new(s->arena);
        format(ast, &out);
        bool same = out.length == file->length && !memcmp(out.data, file->text, out.length);
        if (s->options.check && !same) {
            fprintf(stderr, "%s: not in canonical form (pnetc fmt --write %s)\n", path, path);
            status = 1;
        } else if (s->options.write && !same) {
            if (!write_text(s->arena, s->diags, path, out.data, out.length))
                status = 1;
            errors(s);
        } else if (!s->options.check && !s->options.write) {
            fwrite(out.data, 1, out.length, stdout);
        }
    }
    return finish_output(status);
}

static int list(Session *s)
{
    static const struct {
        const char *name;
        void (*print)(Text *out);
    } lists[] = {{"ops", op_list},
                 {"schedules", schedule_list},
                 {"targets", target_list},
                 {"data", choices_list},
                 {"machines", hardware_list}};
    const char *names[COUNT(lists)];
    const char *word = s->options.file[0];
    for (int i = 0; i < COUNT(lists); i++) {
        names[i] = lists[i].name;
        if (!strcmp(word, lists[i].name)) {
            Text out = text_new(s->arena);
            lists[i].print(&out);
            fwrite(out.data, 1, out.length, stdout);
            return finish_output(0);
        }
    }
    const char *near = nearest(word, names, COUNT(names));
    fprintf(stderr, "pnetc: list wants ops, schedules, targets, data or machines, not '%s'%s%s%s\n", word,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return 2;
}

int main(int argc, char **argv)
{
    Session s = {.arena = arena_new(), .self = argv[0]};
    s.options = options_read(s.arena, argc, argv);
    s.diags = diags_new(s.arena, &s.sources);
    int status = 2;
    switch (s.options.command) {
    case COMMAND_CHECK:
    case COMMAND_PLAN:
        status = check_or_plan(&s);
        break;
    case COMMAND_PLACE:
        status = place(&s);
        break;
    case COMMAND_BUILD:
    case COMMAND_RUN:
        status = build_or_run(&s);
        break;
    case COMMAND_FMT:
        status = fmt(&s);
        break;
    case COMMAND_EXPLAIN:
        status = diag_explain(s.options.nfiles ? s.options.file[0] : NULL, stdout) ? finish_output(0) : 1;
        break;
    case COMMAND_DOCTOR:
        status = finish_output(doctor(s.self, stdout));
        break;
    case COMMAND_LIST:
        status = list(&s);
        break;
    case COMMAND_DRAW:
        status = draw(&s);
        break;
    case COMMAND_PLOT:
        status = plot(&s);
        break;
    case COMMAND_PROFILE:
        status = profile(&s);
        break;
    case COMMAND_CALIBRATE:
        status = calibrate(&s);
        break;
    case COMMAND_FLAGS:
        flags_print(s.self, s.options.libs ? s.options.libs : "cflags", stdout);
        status = finish_output(0);
        break;
    case COMMAND_COUNT:
        break;
    }
    arena_free(s.arena);
    return status;
}
