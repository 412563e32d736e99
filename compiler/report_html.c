/* report_html.c: head, verdict and order of the sections. See report_html.h. */
#include "report_html.h"

const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

const char *page_slice(const Graph *graph)
{
    return graph->microbatches > 1 ? "microbatch" : "minibatch";
}

static const char *number_word(Arena *arena, int n)
{
    static const char *const words[] = {"No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"};
    return n < COUNT(words) ? words[n] : arena_printf(arena, "%d", n);
}

static int most_stale(const Sched *sched)
{
    int most = 0;
    for (int s = 0; s < sched->pipe->nstages; s++)
        most = sched->staleness[s] > most ? sched->staleness[s] : most;
    return most;
}

/* One worker is what a pipeline must beat. */
static void verdict(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Prediction *p = page->balance->prediction;
    const Plan *plan = page->balance->plan;
    const Sched *sched = plan->sched;
    text_printf(out, "<p class=\"verdict\">");
    if (p->nstages == 1)
        html_printf(out, "One stage on one worker: a step of %s", human_seconds(arena, p->step));
    else if (!balance_gains(page->balance))
        html_printf(out,
                    "One worker is as fast or faster: leave the registers out. A step takes %s with %d worker%s, %s "
                    "with one",
                    human_seconds(arena, p->step), p->workers, plural(p->workers), human_seconds(arena, p->one_worker));
    else
        html_printf(out,
                    "%s workers train %.2f times as fast as one, if each has its own %s: a step of %s instead of %s",
                    number_word(arena, p->workers), p->speedup, p->model->hardware->device[0].name,
                    human_seconds(arena, p->step), human_seconds(arena, p->one_worker));
    if (sched->stale_fraction > 0)
        html_printf(out, "; %.3g %% of the weights are stale, by up to %d update%s", 100 * sched->stale_fraction,
                    most_stale(sched), plural(most_stale(sched)));
    else if (p->nstages > 1)
        html_printf(out, "; no weights are stale");
    html_printf(out, "; %s of static memory.", human_bytes(arena, plan->static_bytes));
    if (page->trace)
        html_printf(out, " The run measured here took %s a step, %.2f times the prediction.",
                    human_seconds(arena, page->trace->step), p->step > 0 ? page->trace->step / p->step : 0);
    text_printf(out, "</p>\n");
}

static void figure(Text *out, const char *name, const char *value, const char *note)
{
    text_printf(out, "<div><dt>");
    html_text(out, name);
    text_printf(out, "</dt><dd>");
    html_text(out, value);
    text_printf(out, "<small>");
    html_text(out, note);
    text_printf(out, "</small></dd></div>\n");
}

static void figures(const Page *page, Text *out)
{
    Arena *a = out->arena;
    const Prediction *p = page->balance->prediction;
    const Plan *plan = page->balance->plan;
    const Pipe *pipe = plan->sched->pipe;
    int64_t params = 0, largest = 0;
    double macs = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        params += pipe->stage[s].params;
        macs += pipe->stage[s].cost.macs;
        largest = plan->stage[s].static_bytes > largest ? plan->stage[s].static_bytes : largest;
    }
    text_printf(out, "<dl class=\"figures\">\n");
    figure(out, "step, predicted", human_seconds(a, p->step),
           arena_printf(a, "%s images/s",
                        human_count(a, (double)(pipe->graph->batch * pipe->graph->microbatches) / p->step)));
    if (page->trace)
        figure(
            out, "step, measured", human_seconds(a, page->trace->step),
            arena_printf(a, "%s images/s",
                         human_count(a, (double)(pipe->graph->batch * pipe->graph->microbatches) / page->trace->step)));
    if (p->nstages > 1) {
        figure(out, "speed-up", arena_printf(a, "%.2f x", p->speedup),
               arena_printf(a, "over one worker; efficiency %.0f %%", 100 * p->speedup / p->workers));
        figure(out, "slowest stage", arena_printf(a, "%.2f x", page->balance->factor),
               arena_printf(a, "the mean time; workers wait %.0f %%", 100 * p->bubble));
        figure(out, "stale weights", arena_printf(a, "%.3g %%", 100 * plan->sched->stale_fraction),
               arena_printf(a, "by up to %d update%s", most_stale(plan->sched), plural(most_stale(plan->sched))));
    }
    figure(out, "static memory", human_bytes(a, plan->static_bytes),
           arena_printf(a, "largest stage %s", human_bytes(a, largest)));
    if (p->nstages > 1)
        figure(out, "over registers", human_bytes(a, plan->traffic_bytes), "a minibatch, there and back");
    figure(out, "parameters", human_count(a, (double)params),
           arena_printf(a, "%s MACs an image, forward", human_count(a, macs)));
    text_printf(out, "</dl>\n");
}

static void contents(const Page *page, Text *out)
{
    const bool pipelined = page->balance->prediction->nstages > 1;
    const struct {
        const char *id, *title;
        bool there;
    } sections[] = {{"network", "Network", true},
                    {"cost", "Cost", true},
                    {"layers", "Layers", true},
                    {"balance", "Balance", true},
                    {"staleness", "Staleness", most_stale(page->balance->plan->sched) > 0},
                    {"registers", "Registers", pipelined},
                    {"memory", "Memory", true},
                    {"schedule", "Schedule", true},
                    {"measured", "Measured", page->trace != NULL},
                    {"placements", "Placements", page->front != NULL},
                    {"schedules", "Schedules", true}};
    text_printf(out, "<nav aria-label=\"sections\">");
    for (int i = 0; i < COUNT(sections); i++)
        if (sections[i].there)
            text_printf(out, "<a href=\"#%s\">%s</a> ", sections[i].id, sections[i].title);
    text_printf(out, "</nav>\n");
}

static void head(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Plan *plan = page->balance->plan;
    const Sched *sched = plan->sched;
    const Graph *graph = sched->pipe->graph;
    const Prediction *p = page->balance->prediction;
    const int n = sched->pipe->nstages;
    text_printf(out, "<header>\n<p class=\"kicker\">pnetc report</p>\n<h1>");
    html_text(out, graph->name);
    text_printf(out, "</h1>\n<p class=\"meta\">");
    html_printf(out, "%s, target %s, %d stage%s", graph->file ? graph->file : "", plan->target->name, n, plural(n));
    if (n > 1)
        html_printf(out, " (%d as the paper counts)", 2 * n);
    html_printf(out, ", batch %lld", (Int)(graph->batch * graph->microbatches));
    if (sched->settings->pipeline.threads > 1)
        html_printf(out, ", %lld threads a stage", (Int)sched->settings->pipeline.threads);
    html_printf(out, ", schedule ");
    for (int i = 0; i < sched->nphases; i++)
        html_printf(out, "%s%s", i ? ", then " : "", sched->phase[i].choice->preset);
    html_printf(out, ". Times are predictions, %s, for machine %s (%s).", prediction_source(arena, p),
                p->model->hardware->name, p->model->hardware->source);
    text_printf(out, "</p>\n");
    verdict(page, out);
    figures(page, out);
    contents(page, out);
    text_printf(out, "</header>\n<main>\n");
}

void report_html(const Page *page, Text *out)
{
    html_open(out, arena_printf(out->arena, "%s: pnetc report", page->written->name));
    head(page, out);
    page_network(page, out);
    page_layers(page, out);
    page_balance(page, out);
    if (most_stale(page->balance->plan->sched) > 0)
        page_staleness(page, out);
    if (page->balance->prediction->nstages > 1)
        page_registers(page, out);
    page_memory(page, out);
    page_schedule(page, out);
    if (page->trace)
        page_measured(page, out);
    page_choices(page, out);
    text_printf(out, "</main>\n<footer><p>Made by pnetc " PNETC_VERSION
                     ". Charts tell their figures under the pointer; with "
                     "the keyboard, go to a chart with Tab and through it with the arrow keys.</p></footer>\n");
    html_close(out);
}
