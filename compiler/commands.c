/* commands.c: the commands around a source: check, plan, place, build, run, fmt, and those that tell what there is. */
#include <stdlib.h>
#include <string.h>

#include "build.h"
#include "emit.h"
#include "measure.h"
#include "place_report.h"
#include "session.h"

/* Of a device also what emission counts. */
static void tell_plan(Session *s, const Plan *plan, Text *out)
{
    const DeviceStage *on_device = plan->target->device ? emit(s->arena, s->diags, plan).on_device : NULL;
    if (s->options.json) {
        report_plan_json(plan, on_device, out);
        return;
    }
    plan_dump(plan, out);
    if (on_device)
        device_dump(plan, on_device, out);
}

int command_check(Session *s)
{
    if (s->options.layouts && (s->options.json || s->options.all_schedules || s->options.dump)) {
        fprintf(stderr, "pnetc: --layouts goes with the memory map as text only\n");
        return 2;
    }
    Text out = text_new(s->arena);
    const Plan *plan = compile(s, &out);
    if (plan && s->options.all_schedules)
        (s->options.json ? report_schedules_json : report_schedules)(s->written, &s->settings, s->model, &out);
    else if (plan && s->options.command == COMMAND_CHECK)
        (s->options.json ? report_check_json : report_check)(s->balance, s->written, &out);
    else if (plan)
        tell_plan(s, plan, &out);
    if (plan && s->options.layouts && !diag_errors(s->diags))
        measure_layouts(s->arena, s->diags, s->self, plan, &out);
    if (session_errors(s))
        return 1;
    fwrite(out.data, 1, out.length, stdout);
    return session_finish(0);
}

int command_place(Session *s)
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
        session_errors(s);
        return 1;
    }
    if (s->written->halves) {
        diag_error(s->diags, P0525, s->settings.pipeline.mapping_span,
                   "place finds registers for stages of one worker, not for mapping = split");
        diag_hint(s->diags,
                  "--set pipeline.mapping=joined places them; `pnetc check` then says what the halves would take");
        session_errors(s);
        return 1;
    }
    const AutoRegisters *wishes = &s->settings.pipeline.automatic;
    const int wished = wishes->stages > wishes->workers ? wishes->stages : wishes->workers;
    const int asked = o->workers ? o->workers : wished;
    const int machine = s->model->hardware->workers;
    const Front *front = place_front(s->arena, s->diags, s->written, &s->settings, s->model,
                                     asked             ? asked
                                     : machine < USUAL ? machine
                                                       : USUAL);
    const int chosen = front ? front_chosen(front, wishes, o->workers) : -1;
    if (front && chosen < 0)
        place_refused(s->arena, s->diags, front, wishes->stages && !o->workers ? wishes->stages : 0);
    if (session_errors(s))
        return 1;
    (o->json ? report_front_json : report_front)(front, chosen, &out);
    if (o->write) {
        s->diags = diags_new(s->arena, &s->sources);
        const Placement *placed = &front->row[chosen].placed;
        bool by_setting;
        const char *text = place_write(s->arena, s->diags, &s->sources, s->ast, s->written, placed, s->overrides,
                                       o->ndefines, &by_setting);
        if (text && write_text(s->arena, s->diags, path, text, strlen(text)) && !o->json)
            text_printf(&out, "%s: written with %d register%s%s%s\n", path, placed->ncuts,
                        placed->ncuts == 1 ? "" : "s",
                        placed->workers > placed->ncuts + 1
                            ? arena_printf(s->arena, ", replicas = %s",
                                           replicas_text(s->arena, placed->replicas, placed->ncuts + 1))
                            : "",
                        by_setting ? ", as registers = after(...): not all stand between statements" : "");
        if (session_errors(s))
            return 1;
    }
    fwrite(out.data, 1, out.length, stdout);
    return session_finish(0);
}

int command_build(Session *s)
{
    const Options *o = &s->options;
    Text unused = text_new(s->arena);
    const Plan *plan = compile(s, &unused);
    if (session_errors(s) || !plan)
        return 1;
    Diags *d = s->diags = diags_new(s->arena, &s->sources);
    const Files files = emit(s->arena, d, plan);
    const char *folder = o->out;
    char *temporary = NULL;
    if (!folder && !diag_errors(d))
        folder = temporary = temporary_folder(s->arena, d);
    bool built = !diag_errors(d) && write_files(s->arena, d, folder, &files) &&
                 (o->emit_only || build_program(s->arena, d, s->self, folder, o->quiet || o->command == COMMAND_RUN));
    int status = session_errors(s) || !built ? 1 : 0;
    if (!status && o->command == COMMAND_RUN)
        status = run_program(folder, plan->sched->pipe->graph->name, o->program);
    else if (!status && !o->quiet)
        printf("%s: %s\n", folder,
               o->emit_only
                   ? "sources written"
                   : arena_printf(s->arena, "built; run %s/%s --help", folder, plan->sched->pipe->graph->name));
    if (temporary)
        remove_folder(temporary);
    return session_finish(status);
}

int command_fmt(Session *s)
{
    int status = 0;
    for (int i = 0; i < s->options.nfiles; i++) {
        const char *path = s->options.file[i];
        s->diags = diags_new(s->arena, &s->sources);
        const SourceFile *file = load_text(s->arena, s->diags, &s->sources, path);
        const Ast *ast = file ? parse(s->arena, s->diags, file) : NULL;
        if (session_errors(s) || !ast) {
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
            session_errors(s);
        } else if (!s->options.check && !s->options.write) {
            fwrite(out.data, 1, out.length, stdout);
        }
    }
    return session_finish(status);
}

int command_list(Session *s)
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
            return session_finish(0);
        }
    }
    const char *near = nearest(word, names, COUNT(names));
    fprintf(stderr, "pnetc: list wants ops, schedules, targets, data or machines, not '%s'%s%s%s\n", word,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return 2;
}

int command_explain(Session *s)
{
    return diag_explain(s->options.nfiles ? s->options.file[0] : NULL, stdout) ? session_finish(0) : 1;
}

int command_doctor(Session *s)
{
    return session_finish(doctor(s->self, stdout));
}

int command_flags(Session *s)
{
    const Options *o = &s->options;
    if (!o->cflags && !o->libs) {
        fprintf(stderr, "pnetc: flags wants --cflags, --libs=TARGET or both\n");
        return 2;
    }
    const bool found =
        (!o->cflags || flags_print(s->self, "cflags", stdout)) && (!o->libs || flags_print(s->self, o->libs, stdout));
    return session_finish(found ? 0 : 1);
}
