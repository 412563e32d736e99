/* commands_draw.c: the commands that make pictures: draw, plot. */
#include <string.h>

#include "draw.h"
#include "session.h"

int command_draw(Session *s)
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
    if (session_errors(s) || !plan)
        return 1;
    s->diags = diags_new(s->arena, &s->sources);
    if (timeline)
        draw_schedule(plan->sched, o->time && !strcmp(o->time, "macs") ? TIME_MACS : TIME_UNIT, o->minibatches,
                      &picture);
    else
        draw_network(plan, &dot);
    if (!timeline && !strcmp(format, "svg"))
        draw_by_graphviz(s->arena, s->diags, &dot, &picture);
    return session_errors(s) ? 1 : session_deliver(s, timeline || !strcmp(format, "svg") ? &picture : &dot);
}

int command_plot(Session *s)
{
    const Options *o = &s->options;
    Text script = text_new(s->arena), picture = text_new(s->arena);
    const bool good = plot_script(s->arena, s->diags, &s->sources, o->file, o->nfiles, o->x ? o->x : "step",
                                  o->smooth ? o->smooth : 1, &script) &&
                      draw_by_gnuplot(s->arena, s->diags, &script, &picture);
    return session_errors(s) || !good ? 1 : session_deliver(s, &picture);
}
