/* report_html_time.c: who does what when: the schedule in ideal time (draw_time.c), and a stretch of the steady state
 * to scale, as predicted and, from a trace, as measured. */
#include <math.h>
#include <string.h>

#include "report_html.h"

/* ---- the schedule in units ---- */

typedef struct {
    const Page *page;
    const DrawRun *run;
    Text *out;
    bool small; /* many stages: low rows without versions */
    int column, row, box, per_band, bands;
} Diagram;

enum { LEFT = 84, AXIS = 22, BAND_GAP = 16 };

static int band_top(const Diagram *d, int band)
{
    return band * (AXIS + pipe_rows(d->page->balance->plan->sched->pipe) * d->row + BAND_GAP) + 4;
}

static int step_top(const Diagram *d, int band, const DrawStep *step)
{
    const Pipe *pipe = d->page->balance->plan->sched->pipe;
    return band_top(d, band) + AXIS + pipe_row(pipe, step->stage, step->kind == STEP_FORWARD) * d->row;
}

static void band_frame(const Diagram *d, int band)
{
    const Sched *sched = d->page->balance->plan->sched;
    const int first = band * d->per_band, top = band_top(d, band);
    const int all = (int)ceil(d->run->end - 1e-9) - first, units = all < d->per_band ? all : d->per_band;
    for (int row = 0; row < pipe_rows(sched->pipe); row++) {
        const int y = top + AXIS + row * d->row;
        chart_text(d->out, "b", 0, y + (d->small ? 14 : 18), "%s", pipe_row_name(d->out->arena, sched->pipe, row));
        if (!d->small)
            chart_text(d->out, "small", 0, y + 34, "staleness %d", sched->staleness[pipe_row_stage(sched->pipe, row)]);
        text_printf(d->out, "<rect class=\"track\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, y,
                    units * d->column, d->box);
    }
    chart_text(d->out, "small", 0, top + AXIS - 7, "time");
    for (int i = 0; i < units; i++)
        chart_text(d->out, "small m", LEFT + (i + 0.5) * d->column, top + AXIS - 7, "%d", first + i);
}

static void diagram_box(const Diagram *d, const DrawStep *step)
{
    static const char *const spans[SPAN_KINDS] = {" warmup", "", " drain"};
    Arena *arena = d->out->arena;
    const int band = (int)fmin(floor(step->begin / d->per_band + 1e-9), d->bands - 1);
    const double x = LEFT + (step->begin - (double)band * d->per_band) * d->column + 1;
    const double y = step_top(d, band, step), width = (step->end - step->begin) * d->column - 2;
    const bool backward = step->kind == STEP_BACKWARD;
    const char *kind = backward ? "backward" : step->kind == STEP_FORWARD ? "forward" : "weight part of the backward";
    chart_box(
        d->out,
        arena_printf(arena, "%s%s",
                     backward                     ? "B"
                     : step->kind == STEP_FORWARD ? "F"
                                                  : "G",
                     spans[step->span]),
        x, y, width, d->box, "stage %d: %s of %s %lld%s%s", step->stage, kind,
        page_slice(d->page->balance->plan->sched->pipe->graph), (Int)step->n,
        step->kind == STEP_WEIGHTS
            ? ""
            : arena_printf(arena, "\nreads the weights after %lld update%s", (Int)step->version, plural(step->version)),
        backward ? arena_printf(arena, "\n%lld update%s since its forward", (Int)step->age, plural(step->age)) : "");
    chart_text(d->out, "b m halo", x + width / 2, y + 14, "%c%lld", step_letter(step->kind), (Int)step->n);
    if (d->small || step->kind == STEP_WEIGHTS)
        return;
    chart_text(d->out, "small m halo ink", x + width / 2, y + 27, "v%lld", (Int)step->version);
    if (backward)
        chart_text(d->out, "small m halo ink", x + width / 2, y + 39, "age %lld", (Int)step->age);
}

static void diagram(const Page *page, Text *out)
{
    enum { MANY = 10, MOST_BOXES = 6000 };
    const Sched *sched = page->balance->plan->sched;
    const int n = sched->pipe->nstages;
    int warmup = 0;
    for (int s = 0; s < n; s++)
        warmup = sched->phase[0].stage[s].warmup > warmup ? sched->phase[0].stage[s].warmup : warmup;
    const int room = MOST_BOXES / (2 * n * (int)sched->pipe->graph->microbatches) + 1;
    const DrawRun run = draw_run(out->arena, sched, TIME_UNIT, 2 * warmup + 4 > room ? room : 0);
    Diagram d = {.page = page, .run = &run, .out = out, .small = pipe_rows(sched->pipe) > MANY};
    d.column = d.small ? 34 : 44;
    d.row = d.small ? 22 : 52;
    d.box = d.row - (d.small ? 3 : 7);
    const int units = (int)fmax(1, ceil(run.end - 1e-9)), fit = (PAGE_WIDTH - LEFT - 4) / d.column;
    d.bands = (units + fit - 1) / fit;
    d.per_band = (units + d.bands - 1) / d.bands;
    d.bands = (units + d.per_band - 1) / d.per_band;
    chart_open(out, "the schedule in space and time", LEFT + d.per_band * d.column + 4, band_top(&d, d.bands));
    for (int band = 0; band < d.bands; band++)
        band_frame(&d, band);
    for (int i = 0; i < run.nsteps; i++)
        diagram_box(&d, &run.step[i]);
    for (int i = 1; i < run.nsteps; i++) {
        const DrawStep *step = &run.step[i];
        if (step->stage != run.step[i - 1].stage || step->phase == run.step[i - 1].phase)
            continue;
        const int band = (int)fmin(floor(step->begin / d.per_band + 1e-9), d.bands - 1);
        const double x = LEFT + (step->begin - (double)band * d.per_band) * d.column;
        const double y = step_top(&d, band, step);
        chart_line(out, "switch", x, y - 2, x, y + d.box + 2);
    }
    chart_close(out);
    const LegendEntry entries[] = {
        {"F", arena_printf(out->arena, "F5: forward of %s 5", page_slice(sched->pipe->graph))},
        {"B", sched->pipe->graph->microbatches > 1 ? "B5: its backward" : "B5: its backward, then the update"},
        {"F warmup", "fills the pipe"},
        {"B drain", "drains it"},
        {"G", "W5: the weight part of that backward"}};
    html_legend(out, entries, COUNT(entries) - !sched_splits(sched));
    text_printf(out, "<p>");
    if (!d.small)
        html_printf(out,
                    "v counts the updates in the weights that a step reads, age the updates of the stage since the "
                    "forward of this %s: its staleness.",
                    page_slice(sched->pipe->graph));
    if (sched->nphases > 1)
        html_printf(out, " At a thick line a stage goes on with the next schedule.");
    if (2 * warmup + 4 > room)
        html_printf(out, " Only %d minibatches are drawn: the pipe is not full yet.", room);
    text_printf(out, "</p>\n");
}

/* ---- to scale ---- */

typedef struct {
    Text *out;
    const Pipe *pipe;
    const char *slice;
    double top, scale; /* pixels of a second */
} Strip;
enum { STRIP_ROW = 34, STRIP_BOX = 28, STRIP_HEAD = 24 };

static void strip_open(Strip *strip, const char *label, double seconds)
{
    Text *out = strip->out;
    const int rows = pipe_rows(strip->pipe);
    strip->top = STRIP_HEAD;
    strip->scale = (PAGE_WIDTH - LEFT - 10) / seconds;
    chart_open(out, label, PAGE_WIDTH, STRIP_HEAD + rows * STRIP_ROW + 4);
    const double step = chart_step(seconds, 8);
    for (int i = 0; i * step <= seconds * 1.0001; i++) {
        const double x = LEFT + i * step * strip->scale;
        chart_line(out, "grid", x, STRIP_HEAD - 6, x, STRIP_HEAD + rows * STRIP_ROW);
        chart_text(out, i * step * strip->scale > PAGE_WIDTH - LEFT - 40 ? "small e" : "small m", x, STRIP_HEAD - 10,
                   "%s", i ? human_seconds(out->arena, i * step) : "0");
    }
    for (int row = 0; row < rows; row++)
        chart_text(out, "b", 0, STRIP_HEAD + row * STRIP_ROW + 18, "%s", pipe_row_name(out->arena, strip->pipe, row));
}

static void strip_step(const Strip *strip, const TimedStep *step, double from, double to, double waited)
{
    Text *out = strip->out;
    const double begin = fmax(step->begin, from), end = fmin(step->end, to);
    const double x = LEFT + (begin - from) * strip->scale, width = (end - begin) * strip->scale;
    const double y = strip->top + pipe_row(strip->pipe, step->stage, step->kind == STEP_FORWARD) * STRIP_ROW;
    static const char *const words[STEP_KINDS] = {"forward", "backward", "weight part of the backward", "update"},
                             *const styles[STEP_KINDS] = {"F", "B", "G", "U"},
                             *const thin[STEP_KINDS] = {"F thin", "B thin", "G thin", "U thin"};
    const StepKind kind = step->kind;
    Arena *arena = out->arena;
    chart_box(out, (width < 6 ? thin : styles)[kind], x, y, width, STRIP_BOX, "stage %d: %s of %s %lld\n%s%s",
              step->stage, words[kind], kind == STEP_UPDATE ? "minibatch" : strip->slice, (Int)step->n,
              human_seconds(arena, step->end - step->begin),
              waited > 0 ? arena_printf(arena, ", %s of it waiting", human_seconds(arena, waited)) : "");
    const char *text = arena_printf(arena, "%c%lld", step_letter(kind), (Int)step->n);
    const double covered = 0.2; /* share of a box that waits may cover without hiding its text */
    if (chart_width(text, 13) < width - 2 && waited <= covered * (step->end - step->begin))
        chart_text(out, "b m halo", x + width / 2, y + 19, "%s", text);
}

static void predicted_strip(const Page *page, double seconds, Text *out)
{
    const Pipe *pipe = page->balance->plan->sched->pipe;
    Strip strip = {.out = out, .pipe = pipe, .slice = page_slice(pipe->graph)};
    strip_open(&strip, "the steady state, predicted", seconds);
    for (int i = 0; i < page->steps->nsteps; i++)
        strip_step(&strip, &page->steps->step[i], 0, page->steps->seconds, 0);
    chart_close(out);
}

static void measured_strip(const Page *page, double seconds, Text *out)
{
    const Trace *trace = page->trace;
    const Pipe *pipe = page->balance->plan->sched->pipe;
    Strip strip = {.out = out, .pipe = pipe, .slice = page_slice(pipe->graph)};
    strip_open(&strip, "a stretch of the run, measured", seconds);
    for (int s = 0; s < trace->nstages; s++) {
        const TraceStage *stage = &trace->stage[s];
        for (int i = 0; i < stage->nsteps; i++)
            if (stage->step[i].at.begin < trace->to && stage->step[i].at.end > trace->from)
                strip_step(&strip, &stage->step[i].at, trace->from, trace->to, stage->step[i].waited);
        for (int i = 0; i < stage->nwaits; i++) {
            const TraceWait *wait = &stage->wait[i];
            const double begin = fmax(wait->begin, trace->from), end = fmin(wait->end, trace->to);
            if ((end - begin) * strip.scale < 0.5)
                continue;
            chart_box(out, "W", LEFT + (begin - trace->from) * strip.scale,
                      strip.top + pipe_row(pipe, s, wait->forward) * STRIP_ROW + 2, (end - begin) * strip.scale,
                      STRIP_BOX - 4, "stage %d waits for %s: %s, %s %lld\n%s", s, wait->room ? "room" : "input",
                      wait->name, strip.slice, (Int)wait->minibatch,
                      human_seconds(out->arena, wait->end - wait->begin));
        }
    }
    chart_close(out);
}

void page_schedule(const Page *page, Text *out)
{
    static const LegendEntry entries[] = {
        {"F", "forward"}, {"B", "backward"}, {"U", "update"}, {"G", "weight part of a backward"}};
    const Sched *sched = page->balance->plan->sched;
    html_section(out, "schedule", "Schedule in space and time",
                 "Who works on which %s when, were a forward and a backward to take one unit each: a row a %s, "
                 "time to the right.",
                 page_slice(sched->pipe->graph), pipe_halved(sched->pipe) ? "worker" : "stage");
    for (int p = 0; p < sched->nphases; p++) {
        const PhaseChoice *choice = sched->phase[p].choice;
        text_printf(out, "<p>");
        html_printf(out, "%s%s (order %s, weights %s): %s; %s.", p ? "Then " : "", choice->preset, choice->order->name,
                    choice->rule->name, choice->order->doc, choice->rule->doc);
        text_printf(out, "</p>\n");
    }
    diagram(page, out);
    text_printf(out, "<h3>To scale: %d steps of the steady state, predicted</h3>\n", PAGE_UPDATES);
    predicted_strip(page, page->steps->seconds, out);
    html_legend(out, entries, COUNT(entries));
    html_section_end(out);
}

/* ---- measured ---- */

static const char *against(Arena *arena, double predicted, double measured)
{
    const double off = predicted > 0 ? 100 * (measured / predicted - 1) : 0;
    return predicted > 0 ? arena_printf(arena, "%s (%+.0f %%)", human_seconds(arena, measured), off == 0 ? 0.0 : off)
                         : human_seconds(arena, measured);
}

static void measured_table(const Page *page, Text *out)
{
    static const char *const columns[] = {"stage",  "forward",  "measured",        "backward",       "measured",
                                          "update", "measured", "waits for input", "waits for room", "had a core"};
    static const char *const styles[] = {NULL, "n", "n", "n", "n", "n", "n", "n", "n", "n"};
    Arena *arena = out->arena;
    const Trace *trace = page->trace;
    html_table(out, "predicted and measured times", columns, styles, COUNT(columns));
    for (int s = 0; s < trace->nstages; s++) {
        const StageTime *p = &page->balance->prediction->stage[s];
        const TraceStage *m = &trace->stage[s];
        text_printf(out, "<tr>");
        html_cell(out, NULL, "%d", s);
        html_cell(out, "n", "%s", human_seconds(arena, p->forward));
        html_cell(out, "n", "%s", against(arena, p->forward, m->forward));
        html_cell(out, "n", "%s", human_seconds(arena, p->backward));
        html_cell(out, "n", "%s", against(arena, p->backward, m->backward));
        html_cell(out, "n", "%s", human_seconds(arena, p->update));
        html_cell(out, "n", "%s", against(arena, p->update, m->update));
        html_cell(out, "n", "%s", human_seconds(arena, m->input));
        html_cell(out, "n", "%s", human_seconds(arena, m->room));
        html_cell(out, "n", "%.0f %%", 100 * m->core);
        text_printf(out, "</tr>\n");
    }
    html_table_end(out);
}

static void measured_bars(const Page *page, Text *out)
{
    static const LegendEntry entries[] = {
        {"F", "forward"}, {"B", "backward"}, {"U", "update"}, {"W", "waits for input or room"}};
    Arena *arena = out->arena;
    const Prediction *p = page->balance->prediction;
    double most = 1e-12;
    for (int s = 0; s < p->nstages; s++) {
        const TraceStage *m = &page->trace->stage[s];
        most = fmax(most, fmax(stage_time(&p->stage[s]), m->forward + m->backward + m->update + m->input + m->room));
    }
    for (int s = 0; s < p->nstages; s++) {
        const StageTime *t = &p->stage[s];
        const TraceStage *m = &page->trace->stage[s];
        const double times[2][4] = {{t->forward, t->backward, t->update, 0},
                                    {m->forward, m->backward, m->update, m->input + m->room}};
        for (int k = 0; k < 2; k++) {
            const char *word = k ? "measured" : "predicted";
            double at = 0;
            html_bars(out, arena_printf(arena, "stage %d, %s", s, word),
                      human_seconds(arena, times[k][0] + times[k][1] + times[k][2]));
            for (int i = 0; i < 4; i++) {
                if (times[k][i] > 0)
                    html_bar(out, entries[i].style, at, times[k][i] / most, "stage %d, %s: %s %s", s, word,
                             entries[i].word, human_seconds(arena, times[k][i]));
                at += times[k][i] / most;
            }
            html_bars_end(out);
        }
    }
    html_legend(out, entries, COUNT(entries));
}

void page_measured(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Trace *trace = page->trace;
    const Prediction *p = page->balance->prediction;
    const int n = p->nstages;
    html_section(
        out, "measured", "Predicted beside measured",
        "From a trace of %lld minibatches on target %s, transport %s: medians of minibatches %lld to %lld, waits "
        "as means.",
        (Int)trace->minibatches, trace->target, trace->transport, (Int)trace->first, (Int)trace->last);
    text_printf(out, "<p>");
    html_printf(out, "A step took %s (from %s to %s, but for a tenth below and above); predicted: %s.",
                human_seconds(arena, trace->step), human_seconds(arena, trace->low), human_seconds(arena, trace->high),
                human_seconds(arena, p->step));
    if (n > 1 && !strcmp(trace->transport, "serial"))
        html_printf(out,
                    " The serial transport runs all stages on one thread: its step is to be compared with one "
                    "worker, %s.",
                    human_seconds(arena, p->one_worker));
    double core = 1;
    for (int s = 0; s < n; s++)
        core = fmin(core, trace->stage[s].core);
    if (core < 0.9)
        html_printf(out,
                    " A worker had a core for only %.0f %% of its working time: others used it, and times are longer "
                    "by that.",
                    100 * core);
    if (trace->dropped > 0)
        html_printf(out, " %lld events had no room in the trace.", (Int)trace->dropped);
    text_printf(out, "</p>\n");
    measured_table(page, out);
    measured_bars(page, out);
    if (trace->updates) {
        const double seconds = fmax(trace->to - trace->from, page->steps->seconds);
        text_printf(out, "<h3>To scale: %d steps of the run, measured</h3>\n", trace->updates);
        measured_strip(page, seconds, out);
        text_printf(out, "<h3>The same as predicted, on the same scale</h3>\n");
        predicted_strip(page, seconds, out);
    }
    html_section_end(out);
}
