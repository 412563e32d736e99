/* report_html_choices.c: what else could be had: registers elsewhere, more or fewer stages, other schedules. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_html.h"

/* ---- placements ---- */

typedef struct {
    double x, y;
    int row; /* of the front */
    bool holds, labelled;
} Point;

/* "3", "(1, 2)" with replicas */
static const char *stages_text(Arena *arena, const Front *front, int row)
{
    return row < front->nstraight
               ? arena_printf(arena, "%d", row + 1)
               : replicas_text(arena, front->row[row].placed.replicas, front->row[row].placed.ncuts + 1);
}

enum { CHART_WIDTH = 620, CHART_HEIGHT = 330, LEFT = 72, RIGHT = 24, TOP = 20, BOTTOM = 46 };

static double x_of(double share, double most)
{
    return LEFT + (CHART_WIDTH - LEFT - RIGHT) * share / most;
}

static double y_of(double speedup, double most)
{
    return TOP + (CHART_HEIGHT - TOP - BOTTOM) * (1 - speedup / most);
}

static void scatter_axes(double most_x, double most_y, Text *out)
{
    enum { MARK = 16 }; /* pixels of a mark on the axis */
    const double step_x = chart_step(most_x, 6), step_y = chart_step(most_y, 6);
    for (int i = 0; i * step_x <= most_x * 1.0001; i++) {
        const double x = x_of(i * step_x, most_x);
        chart_line(out, "grid", x, TOP, x, CHART_HEIGHT - BOTTOM);
        chart_text(out, "small m", x, CHART_HEIGHT - BOTTOM + 16, "%.3g %%", 100 * i * step_x);
    }
    for (int i = 0; i * step_y <= most_y * 1.0001; i++) {
        const double y = y_of(i * step_y, most_y);
        chart_line(out, "grid", LEFT - MARK, y, CHART_WIDTH - RIGHT, y);
        chart_text(out, "small e", LEFT - MARK - 4, y + 4, "%.3g x", i * step_y);
    }
    chart_text(out, "small m", (LEFT + CHART_WIDTH - RIGHT) / 2.0, CHART_HEIGHT - 10, "stale weights");
    chart_text(out, "small", 4, 12, "speed-up over one worker");
}

/* What is taken already: labels go where nothing is. */
typedef struct {
    double left, top, right, bottom;
} Area;
typedef struct {
    Area *area;
    int count, room;
} Areas;

static bool free_area(const Areas *taken, Area a)
{
    bool free = a.left > LEFT - 10 && a.right < CHART_WIDTH && a.top > TOP - 6 && a.bottom < CHART_HEIGHT - BOTTOM + 2;
    for (int i = 0; i < taken->count; i++) {
        const Area *b = &taken->area[i];
        free &= a.right < b->left || b->right < a.left || a.bottom < b->top || b->bottom < a.top;
    }
    return free;
}

static void take_area(Arena *arena, Areas *taken, Area area)
{
    taken->area = arena_grow(arena, taken->area, sizeof area, taken->count, &taken->room);
    taken->area[taken->count++] = area;
}

/* Beside the mark at (x, y), which is `size` wide; nowhere if all places are taken: the mark tells it, too. */
static void put_label(Areas *taken, double x, double y, double size, const char *text, Text *out)
{
    enum { HEIGHT = 13 };
    const double width = chart_width(text, 12), off = size / 2 + 4;
    const Area places[] = {
        {x + off, y + 1, x + off + width, y + 1 + HEIGHT},
        {x + off, y - 1 - HEIGHT, x + off + width, y - 1},
        {x - off - width, y + 1, x - off, y + 1 + HEIGHT},
        {x - off - width, y - 1 - HEIGHT, x - off, y - 1},
        {x - width / 2, y + off, x + width / 2, y + off + HEIGHT},
        {x - width / 2, y - off - HEIGHT, x + width / 2, y - off},
    };
    for (int i = 0; i < COUNT(places); i++)
        if (free_area(taken, places[i])) {
            take_area(out->arena, taken, places[i]);
            chart_text(out, "b m halo", (places[i].left + places[i].right) / 2, places[i].bottom - 2, "%s", text);
            return;
        }
}

/* Points that fall together share a label: "3, 4, 5". */
static void labels(Areas *taken, const Front *front, Point *point, int count, Text *out)
{
    enum { NEAR = 15, MARK = 10 };
    for (int i = 0; i < count; i++)
        take_area(out->arena, taken, (Area){point[i].x - 5, point[i].y - 5, point[i].x + 5, point[i].y + 5});
    for (int i = 0; i < count; i++) {
        if (point[i].labelled)
            continue;
        const char *text = stages_text(out->arena, front, point[i].row);
        for (int k = i + 1; k < count; k++)
            if (!point[k].labelled && hypot(point[k].x - point[i].x, point[k].y - point[i].y) < NEAR) {
                point[k].labelled = true;
                text = arena_printf(out->arena, "%s, %s", text, stages_text(out->arena, front, point[k].row));
            }
        put_label(taken, point[i].x, point[i].y, MARK, text, out);
    }
}

/* By stale weights, then by speed. */
static int point_order(const void *x, const void *y)
{
    const Point *a = x, *b = y;
    if (a->x != b->x)
        return a->x < b->x ? -1 : 1;
    return (a->y < b->y) - (a->y > b->y);
}

static void scatter(const Page *page, Text *out)
{
    Arena *arena = out->arena;
    const Front *front = page->front;
    const Prediction *p = page->balance->prediction;
    const double here = page->balance->plan->sched->stale_fraction;
    double most_x = fmax(0.01, here), most_y = fmax(1, p->speedup);
    Point *point = arena_alloc(arena, sizeof *point * (size_t)front->nrows);
    int count = 0, on_front = 0;
    for (int i = 0; i < front->nrows; i++) {
        if (!front->row[i].outcome.legal)
            continue;
        most_x = fmax(most_x, front->row[i].outcome.stale_fraction);
        most_y = fmax(most_y, front->row[i].outcome.speedup);
    }
    most_x = fmin(1, most_x * 1.06);
    most_y *= 1.08;
    chart_open(out, "speed-up against stale weights, a point a number of stages", CHART_WIDTH, CHART_HEIGHT);
    scatter_axes(most_x, most_y, out);
    for (int i = 0; i < front->nrows; i++) {
        const Outcome *o = &front->row[i].outcome;
        if (o->legal)
            point[count++] =
                (Point){x_of(o->stale_fraction, most_x), y_of(o->speedup, most_y), i, front_holds(front, i), false};
    }
    qsort(point, (size_t)count, sizeof *point, point_order);
    text_printf(out, "<path class=\"front\" d=\"");
    for (int i = 0; i < count; i++)
        if (point[i].holds)
            text_printf(out, "%s%.2f %.2f", on_front++ ? "L" : "M", point[i].x, point[i].y);
    text_printf(out, "\"/>\n");
    for (int i = 0; i < count; i++) {
        const FrontRow *row = &front->row[point[i].row];
        const Outcome *o = &row->outcome;
        const int stages = row->placed.ncuts + 1;
        chart_box(out, point[i].holds ? "solid" : "hollow", point[i].x - 5, point[i].y - 5, 10, 10,
                  "%d stage%s%s: %.2f times one worker, a step of %s\n%.3g %% of the weights stale\nlargest stage %s%s",
                  stages, plural(stages),
                  point[i].row < front->nstraight
                      ? ""
                      : arena_printf(arena, " with %s replicas",
                                     replicas_text(arena, row->placed.replicas, row->placed.ncuts + 1)),
                  o->speedup, human_seconds(arena, o->step), 100 * o->stale_fraction, human_bytes(arena, o->most_bytes),
                  point[i].holds ? "" : "\nanother is as fast with as few stale weights and as little memory");
    }
    text_printf(out, "<circle class=\"ring\" cx=\"%.2f\" cy=\"%.2f\" r=\"11\"><title>", x_of(here, most_x),
                y_of(p->speedup, most_y));
    html_printf(out, "as the file has it: %d stage%s, %.2f times one worker, %.3g %% of the weights stale", p->nstages,
                plural(p->nstages), p->speedup, 100 * here);
    text_printf(out, "</title></circle>\n");
    Areas taken = {0};
    labels(&taken, front, point, count, out);
    put_label(&taken, x_of(here, most_x), y_of(p->speedup, most_y), 22, "this file", out);
    chart_close(out);
    static const LegendEntry entries[] = {{"solid", "on the front"}, {"hollow", "another is as good in all"}};
    html_legend(out, entries, COUNT(entries));
    text_printf(out, "<p class=\"legend\">A circle: the registers as the file has them. Numbers are stages, in "
                     "brackets the replicas of each.</p>\n");
}

static void placement_table(const Page *page, Text *out)
{
    static const char *const columns[] = {"stages", "step",          "speed-up", "slowest / mean",
                                          "stale",  "largest stage", "memory",   "registers after"};
    static const char *const styles[] = {"n", "n", "n", "n", "n", "n", "n", NULL};
    Arena *arena = out->arena;
    const Front *front = page->front;
    html_table(out, "placements", columns, styles, COUNT(columns));
    for (int i = 0; i < front->nrows; i++) {
        const FrontRow *row = &front->row[i];
        const Outcome *o = &row->outcome;
        text_printf(out, "<tr%s>", i == front->best ? " class=\"this\"" : "");
        html_cell(out, "n", "%s", stages_text(arena, front, i));
        if (o->legal) {
            html_cell(out, "n", "%s", human_seconds(arena, o->step));
            html_cell(out, "n", "%.2f", o->speedup);
            html_cell(out, "n", "%.2f", o->balance);
            html_cell(out, "n", "%.3g %%", 100 * o->stale_fraction);
            html_cell(out, "n", "%s", human_bytes(arena, o->most_bytes));
            html_cell(out, "n", "%s", human_bytes(arena, o->static_bytes));
            html_cell(out, "w", "%s",
                      row->placed.ncuts ? balance_cuts_text(arena, page->written, row->placed.cut, row->placed.ncuts)
                                        : "none");
        } else {
            text_printf(out, "<td colspan=\"7\">none under the limits</td>");
        }
        text_printf(out, "</tr>\n");
    }
    html_table_end(out);
}

static void placements(const Page *page, Text *out)
{
    html_section(
        out, "placements", "Other placements of the registers",
        "The fastest cut into each number of stages under the schedule and the limits of the file; more stages "
        "buy speed with stale weights and memory. Bold: the fastest without replicas, with the fewest stages among "
        "equals; in brackets the replicas of each stage.%s",
        page->written->halves ? " Stages have one worker here, as with mapping = joined." : "");
    scatter(page, out);
    placement_table(page, out);
    html_section_end(out);
}

/* ---- schedules ---- */

static bool in_use(const Page *page, const char *preset)
{
    const Sched *sched = page->balance->plan->sched;
    bool used = false;
    for (int p = 0; p < sched->nphases; p++)
        used |= !strcmp(sched->phase[p].choice->preset, preset);
    return used;
}

static void schedules(const Page *page, Text *out)
{
    static const char *const columns[] = {"schedule", "step",          "speed-up", "waits",   "stale",
                                          "by",       "largest stage", "memory",   "traffic", "what it is"};
    static const char *const styles[] = {NULL, "n", "n", "n", "n", "n", "n", "n", "n", NULL};
    Arena *arena = out->arena;
    html_section(
        out, "schedules", "Other schedules",
        "The same registers under every preset: by is the largest number of updates that weights are stale by, "
        "waits the mean share of time that workers wait. Bold: in use.");
    html_table(out, "schedules", columns, styles, COUNT(columns));
    for (int i = 0; i < preset_count; i++) {
        const PresetDef *preset = &preset_table[i];
        const Outcome o = outcome_of_preset(page->written, page->settings, page->balance->prediction->model, preset);
        text_printf(out, "<tr%s>", in_use(page, preset->name) ? " class=\"this\"" : "");
        html_cell(out, NULL, "%s", preset->name);
        if (o.legal) {
            html_cell(out, "n", "%s", human_seconds(arena, o.step));
            html_cell(out, "n", "%.2f", o.speedup);
            html_cell(out, "n", "%.0f %%", 100 * o.bubble);
            html_cell(out, "n", "%.3g %%", 100 * o.stale_fraction);
            html_cell(out, "n", "%d", o.most_stale);
            html_cell(out, "n", "%s", human_bytes(arena, o.most_bytes));
            html_cell(out, "n", "%s", human_bytes(arena, o.static_bytes));
            html_cell(out, "n", "%s", human_bytes(arena, o.traffic_bytes));
        } else {
            text_printf(out, "<td colspan=\"8\">%s</td>",
                        preset_lacks_slices(page->written, page->settings, preset) ? "needs microbatches"
                                                                                   : "not possible here");
        }
        html_cell(out, "w", "%s", preset->doc);
        text_printf(out, "</tr>\n");
    }
    html_table_end(out);
    html_section_end(out);
}

void page_choices(const Page *page, Text *out)
{
    if (page->front)
        placements(page, out);
    schedules(page, out);
}
