/* place_front.c: the best placement for each number of stages, as a table of speed-up against stale weights and memory.
 * Times are predictions. Lines are under 100 columns. */
#include <string.h>

#include "balance.h"
#include "json_text.h"
#include "place_report.h"

const Front *place_front(Arena *arena, Diags *diags, const Graph *written, const Settings *settings,
                         const CostModel *model, int most)
{
    AutoRegisters wishes = settings->pipeline.automatic;
    if (!wishes.wanted)
        wishes = (AutoRegisters){.max_stale = settings->pipeline.max_stale, .memory = settings->pipeline.memory};
    if (!wishes.stages && !enough_workers(diags, model->hardware, most, wishes.count_span))
        return NULL;
    Graph *single = arena_alloc(arena, sizeof *single); /* placement knows of no replicas */
    *single = *written;
    single->nreplicas = 0;
    Placing *placing = placing_new(arena, diags, single, settings, model, &wishes);
    if (!placing)
        return NULL;
    Front *front = arena_alloc(arena, sizeof *front);
    front->placing = placing;
    front->nrows = most < placing->n ? most : placing->n;
    front->row = arena_alloc(arena, sizeof *front->row * (size_t)front->nrows);
    for (int n = 1; n <= front->nrows; n++) {
        FrontRow *row = &front->row[n - 1];
        row->placed = placing_solve(placing, n);
        if (row->placed.ncuts >= 0)
            row->outcome = outcome(single, row->placed.cut, n - 1, settings, model);
        if (row->outcome.legal &&
            (!front->best || row->outcome.step < front->row[front->best - 1].outcome.step * (1 - 1e-6)))
            front->best = n;
    }
    return front;
}

void place_refused(Arena *arena, Diags *diags, const Front *front, int nstages)
{
    const Placement none = {.ncuts = -1, .least_stale = -1};
    placing_refused(arena, diags, front->placing, nstages <= front->nrows ? &front->row[nstages - 1].placed : &none,
                    nstages);
}

bool front_holds(const Front *front, int i)
{
    const Outcome *a = &front->row[i].outcome;
    for (int k = 0; k < front->nrows; k++) {
        const Outcome *b = &front->row[k].outcome;
        const double close = 1e-6; /* steps closer than this are equal */
        if (k == i || !b->legal || b->step > a->step * (1 + close) || b->stale_fraction > a->stale_fraction ||
            b->most_bytes > a->most_bytes)
            continue;
        if (b->step < a->step * (1 - close) || b->stale_fraction < a->stale_fraction || b->most_bytes < a->most_bytes)
            return false;
    }
    return true;
}

static void table(const Front *front, Text *out)
{
    static const char lines[] = "%6s %9s %8s %7s %7s %9s %9s  %s\n";
    Arena *arena = out->arena;
    const Graph *written = front->placing->written;
    text_printf(out, lines, "stages", "step", "speed-up", "balance", "stale", "a stage", "all", "registers after");
    for (int i = 0; i < front->nrows; i++) {
        const FrontRow *row = &front->row[i];
        const Outcome *o = &row->outcome;
        if (!o->legal) {
            text_printf(out, "%5d  none under the limits\n", i + 1);
            continue;
        }
        const char *cuts = balance_cuts_text(arena, written, row->placed.cut, row->placed.ncuts);
        text_printf(
            out, lines,
            arena_printf(arena, "%s%d%s", front_holds(front, i) ? "*" : "", i + 1, i + 1 == front->best ? "!" : " "),
            human_seconds(arena, o->step), arena_printf(arena, "%.2f", o->speedup),
            arena_printf(arena, "%.2f", o->balance), arena_printf(arena, "%.3g %%", 100 * o->stale_fraction),
            human_bytes(arena, o->most_bytes), human_bytes(arena, o->static_bytes),
            strlen(cuts) > 32 ? arena_printf(arena, "%.29s...", cuts) : cuts);
    }
    text_printf(out, "*: no other row is as fast with as few stale weights and as little memory.  !: the fastest\n");
    text_printf(out, "balance: slowest stage over the mean.  a stage, all: static memory of the largest, of all\n");
}

/* Share of the work, and what it would be with the register one place before or behind. */
static void reasons(const Front *front, int chosen, Text *out)
{
    Arena *arena = out->arena;
    const Placing *p = front->placing;
    const FrontRow *row = &front->row[chosen - 1];
    const Hardware *hardware = p->model->hardware;
    text_printf(out, "\n%d stage%s: the slowest takes %s", chosen, chosen == 1 ? "" : "s",
                human_seconds(arena, row->placed.load));
    text_printf(out, "; no other %d stages have a faster slowest one%s\n", chosen,
                p->wishes.max_stale >= 0 || p->wishes.memory > 0 || p->wishes.limited || p->wishes.npin ||
                        p->wishes.nforbid
                    ? " under the limits"
                    : "");
    int b = 0, from = 0;
    for (int i = 0; i < row->placed.ncuts; i++, from = b) {
        while (p->low[b] != row->placed.cut[i].before)
            b++;
        const int kind = hardware_kind(hardware, hardware_worker(hardware, i, chosen));
        const int64_t *work = p->work[kind], *transfer = p->transfer[i < hardware->nlinks       ? i
                                                                     : hardware->nlinks - 1 < 0 ? 0
                                                                                                : hardware->nlinks - 1];
        text_printf(out, "register %d  %s\n", i + 1, placing_cut_text(arena, p->written, row->placed.cut[i].before));
        text_printf(out, "            stage %d takes %s", i,
                    human_seconds(arena, (double)(work[b] - work[from]) / p->scale));
        if (p->pin[b])
            text_printf(out, "; it is pinned here");
        else if (b + 1 < p->n)
            text_printf(out, ", and %s one place further",
                        human_seconds(arena, (double)(work[b + 1] - work[from]) / p->scale));
        text_printf(out, "; %s over the link\n", human_seconds(arena, (double)transfer[b] / p->scale));
        if (i + 1 == row->placed.ncuts) {
            text_printf(out, "            weights before it: %.3g %%",
                        p->stale[p->n] > 0 ? 100.0 * (double)p->stale[b] / (double)p->stale[p->n] : 0.0);
            text_printf(out, "; with equal times a register stands as low as can be\n");
        }
    }
}

static const char *source_text(Arena *arena, const Placing *p)
{
    return p->model->profile ? arena_printf(arena, "profile %s", p->model->profile->path) : "analytic";
}

void report_front(const Front *front, int chosen, Text *out)
{
    const Placing *p = front->placing;
    text_printf(out, "%s on machine %s (%s), times %s, schedule %s, %d possible registers\n\n", p->written->name,
                p->model->hardware->name, p->model->hardware->source, source_text(out->arena, p),
                p->settings->pipeline.phase[0].preset, p->n - 1);
    table(front, out);
    if (chosen >= 1 && chosen <= front->nrows && front->row[chosen - 1].outcome.legal)
        reasons(front, chosen, out);
    if (front->best == 1)
        text_printf(out, "verdict: one worker is the fastest: leave the registers out\n");
    else if (front->best > 1)
        text_printf(out, "verdict: %d workers are the fastest, %.2f x one, if each has its own %s\n", front->best,
                    front->row[front->best - 1].outcome.speedup, p->model->hardware->device[0].name);
}

/* ---- JSON ---- */

static json_t *row_json(const Front *front, int i)
{
    const FrontRow *row = &front->row[i];
    const Outcome *o = &row->outcome;
    json_t *made = json_made(json_pack("{s:i, s:b}", "stages", i + 1, "possible", o->legal));
    if (!o->legal)
        return made;
    json_t *after = json_made(json_array());
    for (int c = 0; c < row->placed.ncuts; c++)
        json_push(after, json_string(cut_after(front->placing->written, row->placed.cut[c].before)));
    json_put(made, "registers_after", after);
    json_put(made, "step_seconds", json_real(o->step));
    json_put(made, "slowest_stage_seconds", json_real(row->placed.load));
    json_put(made, "speedup", json_real(o->speedup));
    json_put(made, "balance", json_real(o->balance));
    json_put(made, "stale_fraction", json_real(o->stale_fraction));
    json_put(made, "largest_stage_bytes", json_integer(o->most_bytes));
    json_put(made, "static_bytes", json_integer(o->static_bytes));
    json_put(made, "front", json_boolean(front_holds(front, i)));
    return made;
}

void report_front_json(const Front *front, int chosen, Text *out)
{
    const Placing *p = front->placing;
    json_t *rows = json_made(json_array());
    for (int i = 0; i < front->nrows; i++)
        json_push(rows, row_json(front, i));
    json_t *top = json_made(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i}", "network", p->written->name, "machine",
                                      p->model->hardware->name, "source", p->model->profile ? "profiled" : "analytic",
                                      "schedule", p->settings->pipeline.phase[0].preset, "positions", p->n - 1,
                                      "fastest_stages", front->best, "chosen_stages", chosen));
    json_put(top, "placements", rows);
    json_print(top, out);
}
