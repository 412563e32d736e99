/* place_front.c: the best placement for each number of stages, as a table of speed-up against stale weights and memory.
 * Times are predictions. Lines are under 100 columns. */
#include <string.h>

#include "balance.h"
#include "json_text.h"
#include "place_problem.h"
#include "place_report.h"

/* Earlier rows win among equals: fewer stages, and those without replicas. */
static bool faster(const Front *front, int row, int than)
{
    const Outcome *o = &front->row[row].outcome;
    return o->legal && (than < 0 || o->step < front->row[than].outcome.step * (1 - 1e-6));
}

/* The fastest of one to workers - 1 stages, if it has replicas and takes all workers: else a row has it already. */
static void add_replicated(Front *front, Placing *p, int workers)
{
    FrontRow best = {.placed = {.ncuts = -1}};
    const int stages = p->wishes.stages;
    for (int n = stages ? stages : p->wishes.npin + 1; n < workers && n <= (stages ? stages : p->n); n++) {
        FrontRow row = {.placed = placing_solve(p, n, workers)};
        if (row.placed.ncuts < 0)
            continue;
        row.outcome = placing_outcome(p, &row.placed);
        if (row.outcome.legal && (best.placed.ncuts < 0 || row.outcome.step < best.outcome.step * (1 - 1e-6)))
            best = row;
    }
    if (best.placed.ncuts >= 0 && best.placed.workers == workers)
        front->row[front->nrows++] = best;
}

const Front *place_front(Arena *arena, Diags *diags, const Graph *written, const Settings *settings,
                         const CostModel *model, int most)
{
    AutoRegisters wishes = settings->pipeline.automatic;
    if (!wishes.wanted)
        wishes = (AutoRegisters){.max_stale = settings->pipeline.max_stale,
                                 .memory = settings->pipeline.memory,
                                 .max_stale_span = settings->pipeline.max_stale_span,
                                 .memory_span = settings->pipeline.memory_span};
    if (!wishes.stages && !enough_workers(diags, model->hardware, most, wishes.workers_span))
        return NULL;
    if (!wishes.wanted || wishes.workers)
        wishes.workers = most;
    Graph *single = arena_alloc(arena, sizeof *single); /* those of the file stand aside */
    *single = *written;
    single->nreplicas = 0;
    Placing *placing = placing_new(arena, diags, single, settings, model, &wishes);
    if (!placing)
        return NULL;
    Front *front = arena_alloc(arena, sizeof *front);
    front->placing = placing;
    front->nstraight = most < placing->n ? most : placing->n;
    front->row = arena_alloc(arena, sizeof *front->row * (size_t)(front->nstraight + most));
    front->best = front->fastest = -1;
    for (; front->nrows < front->nstraight; front->nrows++) {
        FrontRow *row = &front->row[front->nrows];
        row->placed = placing_solve(placing, front->nrows + 1, front->nrows + 1);
        if (row->placed.ncuts >= 0)
            row->outcome = placing_outcome(placing, &row->placed);
        if (faster(front, front->nrows, front->best))
            front->best = front->nrows;
    }
    for (int workers = 2; placing_replicates(placing) && workers <= most; workers++)
        add_replicated(front, placing, workers);
    for (int i = 0; i < front->nrows; i++)
        if (faster(front, i, front->fastest))
            front->fastest = i;
    return front;
}

int front_chosen(const Front *front, const AutoRegisters *wished, int workers)
{
    if (!wished->stages || (workers && !wished->workers))
        return wished->workers ? front->fastest : front->best;
    int chosen = -1;
    for (int i = 0; i < front->nrows; i++)
        if (front->row[i].placed.ncuts + 1 == wished->stages && faster(front, i, chosen))
            chosen = i;
    return chosen;
}

void place_refused(Arena *arena, Diags *diags, const Front *front, int asked)
{
    int nstages = asked;
    const Placement none = {.ncuts = -1, .least_stale = -1};
    for (int n = 1; !asked && n <= front->nstraight; n++)
        if (n == 1 || placing_nearer(&front->row[n - 1].placed, &front->row[nstages - 1].placed))
            nstages = n;
    placing_refused(arena, diags, front->placing, nstages <= front->nstraight ? &front->row[nstages - 1].placed : &none,
                    nstages);
}

const char *replicas_text(Arena *arena, const int *replicas, int nstages)
{
    Text text = text_new(arena);
    for (int s = 0; s < nstages; s++)
        text_printf(&text, "%s%d", s ? ", " : nstages > 1 ? "(" : "", replicas[s]);
    text_printf(&text, "%s", nstages > 1 ? ")" : "");
    return text.data;
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

static bool replicated(const Placement *placed)
{
    return placed->workers > placed->ncuts + 1;
}

/* "3", "2 on 4" with replicas */
static const char *stages_text(Arena *arena, const Front *front, int i)
{
    const Placement *placed = &front->row[i].placed;
    const char *count = replicated(placed) ? arena_printf(arena, "%d on %d", placed->ncuts + 1, placed->workers)
                                           : arena_printf(arena, "%d", placed->ncuts + 1);
    return arena_printf(arena, "%s%s%s", front_holds(front, i) ? "*" : "", count, i == front->fastest ? "!" : " ");
}

static void table(const Front *front, Text *out)
{
    enum { WIDTH = 32 };
    static const char lines[] = "%8s %9s %8s %7s %7s %9s %9s  %s\n";
    Arena *arena = out->arena;
    const Graph *written = front->placing->written;
    text_printf(out, lines, "stages", "step", "speed-up", "balance", "stale", "a stage", "all", "registers after");
    for (int i = 0; i < front->nrows; i++) {
        const FrontRow *row = &front->row[i];
        const Outcome *o = &row->outcome;
        if (!o->legal) {
            text_printf(out, "%7d  none under the limits\n", i + 1);
            continue;
        }
        const char *cuts = balance_cuts_text(arena, written, row->placed.cut, row->placed.ncuts);
        if (replicated(&row->placed))
            cuts = arena_printf(arena, "%s%s%s", replicas_text(arena, row->placed.replicas, row->placed.ncuts + 1),
                                *cuts ? " " : "", cuts);
        text_printf(out, lines, stages_text(arena, front, i), human_seconds(arena, o->step),
                    arena_printf(arena, "%.2f", o->speedup), arena_printf(arena, "%.2f", o->balance),
                    arena_printf(arena, "%.3g %%", 100 * o->stale_fraction), human_bytes(arena, o->most_bytes),
                    human_bytes(arena, o->static_bytes),
                    strlen(cuts) > WIDTH ? arena_printf(arena, "%.*s...", WIDTH - 3, cuts) : cuts);
    }
    text_printf(out, "*: no other row is as fast with as few stale weights and as little memory.  !: the fastest\n");
    text_printf(out, "balance: slowest stage over the mean.  a stage, all: static memory of the largest, of all\n");
    if (front->nrows > front->nstraight)
        text_printf(out, "2 on 4, (1, 3): two stages on four workers; replicas, which divide each minibatch\n");
}

/* Share of the work, and what it would be with the register one place before or behind. */
static void reasons(const Front *front, int chosen, Text *out)
{
    Arena *arena = out->arena;
    const Placing *p = front->placing;
    const FrontRow *row = &front->row[chosen];
    const Placement *placed = &row->placed;
    const int nstages = placed->ncuts + 1;
    const Problem *problem = problem_new(p, nstages, placed->workers);
    text_printf(out, "\n%d stage%s", nstages, nstages == 1 ? "" : "s");
    if (replicated(placed))
        text_printf(out, " on %d workers, replicas %s", placed->workers,
                    replicas_text(arena, placed->replicas, placed->ncuts + 1));
    text_printf(out, ": the slowest takes %s; no other %d stage%s%s %s a faster slowest one%s\n",
                human_seconds(arena, placed->load), nstages, nstages == 1 ? "" : "s",
                replicated(placed) ? " on as many" : "", nstages == 1 ? "has" : "have",
                p->wishes.max_stale >= 0 || p->wishes.memory > 0 || p->wishes.limited || p->wishes.npin ||
                        p->wishes.nforbid
                    ? " under the limits"
                    : "");
    int b = 0, from = 0, worker = 0;
    for (int i = 0; i < placed->ncuts; i++, from = b) {
        while (p->low[b] != placed->cut[i].before)
            b++;
        const int64_t *work = problem_work(problem, i, worker, placed->replicas[i]);
        const int64_t *transfer = problem->stage[i].transfer;
        worker += placed->replicas[i];
        text_printf(out, "register %d  %s\n", i + 1, placing_cut_text(arena, p->written, placed->cut[i].before));
        text_printf(out, "            stage %d takes %s", i,
                    human_seconds(arena, (double)(work[b] - work[from]) / p->scale));
        if (p->pin[b])
            text_printf(out, "; it is pinned here");
        else if (b + 1 < p->n)
            text_printf(out, ", and %s one place further",
                        human_seconds(arena, (double)(work[b + 1] - work[from]) / p->scale));
        text_printf(out, "; %s over the link\n", human_seconds(arena, (double)transfer[b] / p->scale));
        if (i + 1 == placed->ncuts) {
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

static void verdict(const Front *front, Text *out)
{
    if (front->fastest == 0) {
        text_printf(out, "verdict: one worker is the fastest: leave the registers out\n");
        return;
    }
    const char *device = front->placing->model->hardware->device[0].name;
    if (front->best > 0)
        text_printf(out, "verdict: %d workers are the fastest, %.2f x one, if each has its own %s\n", front->best + 1,
                    front->row[front->best].outcome.speedup, device);
    if (front->fastest < front->nstraight)
        return;
    const FrontRow *row = &front->row[front->fastest];
    text_printf(out,
                "verdict: with replicas %s, %d workers are the fastest, %.2f x one; auto(workers = %d) takes them\n",
                replicas_text(out->arena, row->placed.replicas, row->placed.ncuts + 1), row->placed.workers,
                row->outcome.speedup, row->placed.workers);
}

void report_front(const Front *front, int chosen, Text *out)
{
    const Placing *p = front->placing;
    text_printf(out, "%s on machine %s (%s), times %s, schedule %s, %d possible registers\n\n", p->written->name,
                p->model->hardware->name, p->model->hardware->source, source_text(out->arena, p),
                p->settings->pipeline.phase[0].preset, p->n - 1);
    table(front, out);
    if (chosen >= 0)
        reasons(front, chosen, out);
    verdict(front, out);
}

/* ---- JSON ---- */

static json_t *row_json(const Front *front, int i)
{
    const FrontRow *row = &front->row[i];
    const Outcome *o = &row->outcome;
    json_t *made =
        json_made(json_pack("{s:i, s:b}", "stages", o->legal ? row->placed.ncuts + 1 : i + 1, "possible", o->legal));
    if (!o->legal)
        return made;
    json_t *replicas = json_made(json_array());
    for (int s = 0; s <= row->placed.ncuts; s++)
        json_push(replicas, json_integer(row->placed.replicas[s]));
    json_put(made, "workers", json_integer(row->placed.workers));
    json_put(made, "replicas", replicas);
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
    json_t *top =
        json_made(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i}", "network", p->written->name, "machine",
                            p->model->hardware->name, "source", p->model->profile ? "profiled" : "analytic", "schedule",
                            p->settings->pipeline.phase[0].preset, "positions", p->n - 1, "fastest_stages",
                            front->best + 1, "chosen_stages", chosen < 0 ? 0 : front->row[chosen].placed.ncuts + 1));
    json_put(top, "fastest", json_integer(front->fastest));
    json_put(top, "chosen", json_integer(chosen));
    json_put(top, "placements", rows);
    json_print(top, out);
}
