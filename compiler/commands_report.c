/* commands_report.c: the report page. */
#include "report_html.h"
#include "session.h"

int command_report(Session *s)
{
    enum { USUAL = 8 }; /* stages that are tried */
    const Options *o = &s->options;
    Text page = text_new(s->arena), unused = text_new(s->arena);
    const Plan *plan = compile(s, &unused);
    if (session_errors(s) || !plan)
        return 1;
    s->diags = diags_new(s->arena, &s->sources);
    Page p = {.balance = s->balance, .written = s->written, .settings = &s->settings};
    if (o->trace)
        p.trace = trace_read(s->arena, s->diags, &s->sources, o->trace, plan, PAGE_UPDATES);
    if (session_errors(s))
        return 1;
    const TimedWindow steps = predict_window(s->arena, plan->sched, s->balance->prediction, PAGE_UPDATES);
    p.steps = &steps;
    const AutoRegisters *wishes = &s->settings.pipeline.automatic;
    const int asked = wishes->stages > wishes->workers ? wishes->stages : wishes->workers;
    const int machine = s->model->hardware->workers;
    Diags *unheard = diags_new(s->arena, &s->sources); /* wishes that cannot be met have been reported */
    p.front = place_front(s->arena, unheard, s->written, &s->settings, s->model,
                          asked             ? asked
                          : machine < USUAL ? machine
                                            : USUAL);
    report_html(&p, &page);
    return session_deliver(s, &page);
}
