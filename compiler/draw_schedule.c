/* draw_schedule.c: the space-time diagram of a schedule as SVG (figure 4 of Zhang and Abdelrahman 2021, for any order).
 *
 * A row a stage, or a half of one (pipe_row), time to the right. At most WIDTH pixels wide: a longer run goes on in
 * further bands below, as music does. A box says F or B and the minibatch, v: the updates in the weights it reads, and
 * at a backward the age, which is the staleness. Dashed boxes fill the pipe, dotted ones drain it. Every box has a
 * <title>, which viewers show as a tip. */
#include "draw.h"

#include <math.h>
#include <string.h>

enum {
    WIDTH = 1280,
    LEFT = 84,
    LEFT_OF_HALVES = 112, /* "FS10 BKS1" */
    RIGHT = 16,
    LEAST_COLUMN = 38, /* pixels of a unit: "age 12" must fit */
    MOST_COLUMN = 46,
    WEIGHTED_COLUMN = 64, /* half a turn: a forward is often a third of it */
    BOX = 46,
    ROW = 54,
    AXIS = 22,
    BAND_GAP = 18,
};

typedef struct {
    const Sched *sched;
    const DrawRun *run;
    Text *out;
    int column;   /* pixels of a unit */
    int per_band; /* units */
    int bands, head, left;
} Drawing;

static void xml(Text *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            text_printf(out, "&amp;");
            break;
        case '<':
            text_printf(out, "&lt;");
            break;
        case '>':
            text_printf(out, "&gt;");
            break;
        default:
            text_append(out, text, 1);
        }
}

static void line_of_text(Text *out, const char *style, double x, double y, const char *text)
{
    text_printf(out, "<text class=\"%s\" x=\"%g\" y=\"%g\">", style, x, y);
    xml(out, text);
    text_printf(out, "</text>\n");
}

static int band_top(const Drawing *d, int band)
{
    return d->head + band * (AXIS + pipe_rows(d->sched->pipe) * ROW + BAND_GAP);
}

static int row_top(const Drawing *d, int band, int row)
{
    return band_top(d, band) + AXIS + row * ROW;
}

static int step_top(const Drawing *d, int band, const DrawStep *step)
{
    return row_top(d, band, pipe_row(d->sched->pipe, step->stage, step->kind == STEP_FORWARD));
}

/* Pixels are rounded to hundredths: same bytes wherever this runs. */
static double pixel(const Drawing *d, int band, double time)
{
    return round((d->left + (time - (double)band * d->per_band) * d->column) * 100) / 100;
}

static const char *phase_text(Arena *arena, const Sched *sched, const DrawRun *run, int p)
{
    const PhaseChoice *choice = sched->phase[p].choice;
    Text text = text_new(arena);
    text_printf(&text, "%s%s: order %s, weights %s; %lld minibatches drawn", p ? "then " : "", choice->preset,
                choice->order->name, choice->rule->name, (long long)run->shown[p]);
    if (p + 1 < sched->nphases)
        text_printf(&text, " of %lld", (long long)choice->minibatches);
    if (sched->pipe->graph->microbatches > 1)
        text_printf(&text, ", of %lld microbatches each", (long long)sched->pipe->graph->microbatches);
    return text.data;
}

static const char *kind_text(StepKind kind)
{
    return kind == STEP_FORWARD ? "forward" : kind == STEP_BACKWARD ? "backward" : "weight part of the backward";
}

/* The head: what is drawn, and what the letters mean. Returns its height. */
static int head(const Sched *sched, const DrawRun *run, DrawTime time, Text *out)
{
    Arena *arena = out->arena;
    const int nstages = sched->pipe->nstages;
    int y = 26;
    line_of_text(out, "title", 16, y,
                 arena_printf(arena, "%s: %d stage%s%s in space and time", sched->pipe->graph->name, nstages,
                              nstages == 1 ? "" : "s",
                              pipe_halved(sched->pipe) ? arena_printf(arena, " on %d workers", 2 * nstages - 1) : ""));
    for (int p = 0; p < sched->nphases; p++) {
        line_of_text(out, "big", 16, y += 20, phase_text(arena, sched, run, p));
        line_of_text(
            out, "note", 16, y += 16,
            arena_printf(arena, "%s; %s", sched->phase[p].choice->order->doc, sched->phase[p].choice->rule->doc));
    }
    line_of_text(
        out, "note", 16, y += 18,
        arena_printf(arena, "%s; waits for values and free slots only. Busy %.0f %% of the time drawn.",
                     time == TIME_MACS
                         ? arena_printf(arena, "a column is the time of %s FLOPs (half a turn of the slowest stage)",
                                        human_count(arena, run->unit_flops))
                     : sched_splits(sched) ? "a forward and each part of a backward take a column"
                                           : "a forward and a backward take a column each",
                     run->end > 0 ? 100 * run->busy / (run->end * pipe_rows(sched->pipe)) : 0.0));
    return y + 10;
}

static const char *slice_name(const Drawing *d)
{
    return d->sched->pipe->graph->microbatches > 1 ? "microbatch" : "minibatch";
}

static void legend(const Drawing *d, int y)
{
    const bool sliced = d->sched->pipe->graph->microbatches > 1;
    const struct {
        const char *style, *letters, *text;
        int width;
    } entries[] = {
        {"F steady", "F5", sliced ? "forward of microbatch 5" : "forward of minibatch 5", 210},
        {"B steady", "B5", sliced ? "its backward" : "its backward, then the update", 250},
        {"F warmup", "F", "forwards that fill the pipe", 230},
        {"B drain", "B", "backwards that drain it", 220},
        {"W steady", "W5", "weight part of backward 5", 0},
    };
    const int shown = COUNT(entries) - !sched_splits(d->sched);
    int x = 16;
    for (int i = 0; i < shown; i++) {
        text_printf(d->out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"30\" height=\"20\"/>\n", entries[i].style, x,
                    y);
        line_of_text(d->out, "step", x + 15, y + 15, entries[i].letters);
        line_of_text(d->out, "note", x + 36, y + 14, entries[i].text);
        x += entries[i].width;
    }
    line_of_text(d->out, "note", 16, y += 40, "v: updates in the weights it reads");
    line_of_text(d->out, "note", 276, y,
                 arena_printf(d->out->arena, "age: updates of the stage since the forward of this %s, its staleness",
                              slice_name(d)));
    if (d->sched->nphases > 1) {
        text_printf(d->out, "<path class=\"switch\" d=\"M20 %dv20\"/>\n", y + 12);
        line_of_text(d->out, "note", 36, y + 27, "here a stage goes on with the next schedule");
    }
}

static void band_frame(const Drawing *d, int band)
{
    Arena *arena = d->out->arena;
    const double first = (double)band * d->per_band;
    double columns = ceil(d->run->end - 1e-9) - first;
    columns = columns > d->per_band ? d->per_band : columns;
    for (int i = 0; i < pipe_rows(d->sched->pipe); i++) {
        const int y = row_top(d, band, i), stale = d->sched->staleness[pipe_row_stage(d->sched->pipe, i)];
        line_of_text(d->out, "stage", 16, y + 20, pipe_row_name(arena, d->sched->pipe, i));
        line_of_text(d->out, "small left", 16, y + 35, arena_printf(arena, "staleness %d", stale));
        text_printf(d->out, "<rect class=\"idle\" x=\"%d\" y=\"%d\" width=\"%g\" height=\"%d\"/>\n", d->left, y,
                    columns * d->column, BOX);
    }
    for (int c = 0; c < (int)columns; c++)
        line_of_text(d->out, "small", d->left + (c + 0.5) * d->column, band_top(d, band) + AXIS - 6,
                     arena_printf(arena, "%.0f", first + c));
    line_of_text(d->out, "small left", 16, band_top(d, band) + AXIS - 6, "time");
}

/* As many lines as the width has room for; none without the first. */
static void box_text(const Drawing *d, const DrawStep *step, double x, double y, double width)
{
    Arena *arena = d->out->arena;
    const struct {
        const char *style, *text;
        double letter, below; /* pixels of a letter in the widest fonts in use; of the line from the top */
    } lines[] = {
        {"step", arena_printf(arena, "%c%lld", step_letter(step->kind), (long long)step->n), 9, 15},
        {"small", arena_printf(arena, "v%lld", (long long)step->version), 5.9, 28},
        {"small", arena_printf(arena, "age %lld", (long long)step->age), 5.9, 40},
    };
    const int shown = step->kind == STEP_BACKWARD ? 3 : step->kind == STEP_FORWARD ? 2 : 1;
    for (int i = 0; i < shown; i++) {
        if (lines[i].letter * (double)strlen(lines[i].text) > width)
            return;
        line_of_text(d->out, lines[i].style, x + width / 2, y + lines[i].below, lines[i].text);
    }
}

static void box(const Drawing *d, const DrawStep *step)
{
    enum { THIN = 8 }; /* pixels: no room for dashes */
    static const char *const spans[SPAN_KINDS] = {"warmup", "steady", "drain"};
    Arena *arena = d->out->arena;
    int most_in = -1; /* the band that holds the most of it gets the text */
    double most = 0;
    for (int band = 0; band < d->bands; band++) {
        const double begin = fmax(step->begin, (double)band * d->per_band);
        const double end = fmin(step->end, (double)(band + 1) * d->per_band);
        if (end - begin > most + 1e-9) {
            most = end - begin;
            most_in = band;
        }
    }
    for (int band = 0; band < d->bands; band++) {
        const double begin = fmax(step->begin, (double)band * d->per_band);
        const double end = fmin(step->end, (double)(band + 1) * d->per_band);
        if (end <= begin)
            continue;
        const double x = pixel(d, band, begin) + 1, y = step_top(d, band, step);
        const double width = fmax(0.5, round((pixel(d, band, end) - x - 1) * 100) / 100);
        text_printf(d->out, "<g><title>stage %d: %s of %s %lld", step->stage, kind_text(step->kind), slice_name(d),
                    (long long)step->n);
        if (step->kind != STEP_WEIGHTS)
            text_printf(d->out, " reads the weights after %lld updates", (long long)step->version);
        if (step->kind == STEP_BACKWARD)
            text_printf(d->out, "; %lld updates since its forward", (long long)step->age);
        text_printf(d->out, "; time %s to %s</title>\n", arena_printf(arena, "%.4g", step->begin),
                    arena_printf(arena, "%.4g", step->end));
        text_printf(d->out, "<rect class=\"%c %s%s\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%d\"/>\n",
                    step_letter(step->kind), spans[step->span], width < THIN ? " thin" : "", x, y, width, BOX);
        if (band == most_in)
            box_text(d, step, x, y, width);
        text_printf(d->out, "</g>\n");
    }
}

/* A thick line where a stage begins its next phase. */
static void switch_mark(const Drawing *d, const DrawStep *step)
{
    const int band = (int)fmin(floor(step->begin / d->per_band), d->bands - 1);
    text_printf(d->out, "<path class=\"switch\" d=\"M%g %dv%d\"/>\n", pixel(d, band, step->begin),
                step_top(d, band, step) - 4, BOX + 8);
}

static void style(Text *out)
{
    text_printf(out, "<style>\n"
                     "text { font-family: Helvetica, Arial, sans-serif; fill: #111; }\n"
                     ".title { font-size: 18px; font-weight: bold; }\n"
                     ".big { font-size: 14px; }\n"
                     ".note { font-size: 12px; }\n"
                     ".stage { font-size: 13px; font-weight: bold; }\n"
                     ".step { font-size: 13px; font-weight: bold; text-anchor: middle; }\n"
                     ".small { font-size: 10px; text-anchor: middle; }\n"
                     ".left { text-anchor: start; }\n"
                     ".idle { fill: #eee; }\n"
                     ".F { fill: #a9d4f0; stroke: #0b4f7d; }\n"
                     ".B { fill: #f6cf86; stroke: #7a4a00; }\n"
                     ".warmup { stroke-width: 1.6; stroke-dasharray: 5 3; fill-opacity: 0.55; }\n"
                     ".drain { stroke-width: 1.6; stroke-dasharray: 1.6 2.4; fill-opacity: 0.55; }\n"
                     ".thin { stroke-width: 0.8; stroke-dasharray: none; fill-opacity: 1; }\n"
                     ".switch { stroke: #b3003c; stroke-width: 4; fill: none; }\n"
                     "</style>\n");
}

void draw_schedule(const Sched *sched, DrawTime time, int minibatches, Text *out)
{
    Arena *arena = out->arena;
    const DrawRun run = draw_run(arena, sched, time, minibatches);
    const int left = pipe_halved(sched->pipe) ? LEFT_OF_HALVES : LEFT;
    const int room = WIDTH - left - RIGHT, units = (int)fmax(1, ceil(run.end - 1e-9));
    Drawing d = {.sched = sched, .run = &run, .left = left};
    const int least = time == TIME_MACS ? WEIGHTED_COLUMN : LEAST_COLUMN;
    const int most = time == TIME_MACS ? WEIGHTED_COLUMN : MOST_COLUMN;
    d.bands = (units * least + room - 1) / room;
    d.per_band = (units + d.bands - 1) / d.bands;
    d.bands = (units + d.per_band - 1) / d.per_band;
    d.column = room / d.per_band < most ? room / d.per_band : most;

    Text top = text_new(arena);
    d.head = head(sched, &run, time, &top);
    d.out = out;
    const int legend_top = band_top(&d, d.bands);
    const int height = legend_top + (sched->nphases > 1 ? 82 : 54);
    text_printf(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                WIDTH, height, WIDTH, height);
    style(out);
    if (sched_splits(sched))
        text_printf(out, "<style>.W { fill: #bfe3b4; stroke: #2d6a1e; }</style>\n");
    text_printf(out, "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n", WIDTH, height);
    text_append(out, top.data, top.length);
    for (int band = 0; band < d.bands; band++)
        band_frame(&d, band);
    for (int i = 0; i < run.nsteps; i++)
        box(&d, &run.step[i]);
    for (int i = 1; i < run.nsteps; i++)
        if (run.step[i].stage == run.step[i - 1].stage && run.step[i].phase != run.step[i - 1].phase)
            switch_mark(&d, &run.step[i]);
    legend(&d, legend_top);
    text_printf(out, "</svg>\n");
}
