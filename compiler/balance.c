/* balance.c: judges a pipeline by predicted time, and warns where it leaves its limits. */
#include <math.h>

#include "balance.h"

/* A cut is called better from this on: less is within what a prediction can tell apart. */
static const double worth_telling = 0.97;

const char *human_seconds(Arena *arena, double seconds)
{
    static const struct {
        double least, factor;
        const char *unit;
    } units[] = {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
    int i = 0;
    if (seconds <= 0)
        return "0 s";
    while (i + 1 < COUNT(units) && seconds < units[i].least * 0.9995)
        i++;
    const double number = seconds * units[i].factor;
    return arena_printf(arena, "%.*f %s", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number, units[i].unit);
}

const char *prediction_source(Arena *arena, const Prediction *p)
{
    if (!p->model->profile)
        return p->model->threads > 1 ? "analytic, for one thread a stage" : "analytic";
    return arena_printf(arena, "profiled %d of %d nodes", p->measured, p->timed);
}

const char *balance_cuts_text(Arena *arena, const Graph *written, const Cut *cut, int ncuts)
{
    enum { SHOWN = 4 };
    Text text = text_new(arena);
    for (int i = 0; i < ncuts; i++)
        if (i < SHOWN || i + 1 == ncuts)
            text_printf(&text, "%s%s", i == 0 ? "" : i > SHOWN ? ", ..., " : ", ", cut_after(written, cut[i].before));
    return text.data;
}

static void look_for_better(Arena *arena, Balance *b, const Graph *written)
{
    const Settings *settings = b->plan->sched->settings;
    const Prediction *p = b->prediction;
    const AutoRegisters wishes = {.max_stale = settings->pipeline.max_stale, .memory = settings->pipeline.memory};
    Diags *unheard = diags_new(arena, (Sources *)written->sources);
    Placing *placing = placing_new(arena, unheard, written, settings, p->model, &wishes);
    const Placement placed = placing_solve(placing, p->nstages, p->nstages);
    b->within = placed;
    if (placed.ncuts < 0)
        return;
    const Outcome o = placing_outcome(placing, &placed);
    b->kept = o;
    if (placed.ncuts < 1 || !b->overlaps || !o.legal || o.step > worth_telling * p->step)
        return;
    b->ncuts = placed.ncuts;
    b->cut = placed.cut;
    b->better = o;
}

const Balance *balance_judge(Arena *arena, const Plan *plan, const Prediction *prediction, const Graph *written,
                             bool look)
{
    const Sched *sched = plan->sched;
    Balance *b = arena_alloc(arena, sizeof *b);
    *b = (Balance){.plan = plan, .prediction = prediction, .factor = 1, .ncuts = -1};
    for (int s = 0; s < prediction->nstages; s++)
        b->overlaps |= sched->ring[s] > 1;
    if (prediction->work > 0)
        b->factor = prediction->most * prediction->parts / prediction->work;
    const Pipeline *pipeline = &sched->settings->pipeline;
    b->over_stale = pipeline->max_stale >= 0 && sched->stale_fraction > pipeline->max_stale;
    for (int s = 0; s < prediction->nstages; s++)
        b->over_memory |= pipeline->memory > 0 && plan->stage[s].static_bytes > pipeline->memory;
    b->within = (Placement){.ncuts = -1, .least_stale = -1};
    b->unbalanced = b->overlaps && b->factor > sched->settings->pipeline.balance;
    /* Places are solved for stages of one worker. */
    if (((b->overlaps && (look || b->unbalanced)) || b->over_stale || b->over_memory) && !pipeline->automatic.wanted &&
        !pipe_halved(sched->pipe))
        look_for_better(arena, b, written);
    return b;
}

bool balance_gains(const Balance *b)
{
    return b->prediction->workers > 1 && b->prediction->speedup >= 1.02;
}

#define REPORT(diags, level, code, span, ...)                                                                          \
    ((level) == WARN_ERROR ? diag_error((diags), (code), (span), __VA_ARGS__)                                          \
                           : diag_warning((diags), (code), (span), __VA_ARGS__))

static void warn_balance(Arena *arena, Diags *diags, const Balance *b, const Graph *written, Warn level)
{
    const Prediction *p = b->prediction;
    const Graph *graph = b->plan->sched->pipe->graph;
    const int cut = p->slowest < graph->ncuts ? p->slowest : p->slowest - 1;
    REPORT(diags, level, P0506, graph->cut[cut].span, "%s takes %.2f x the mean time of the %s (%s), over balance = %g",
           prediction_slowest(arena, p), b->factor, p->parts > p->nstages ? "workers" : "stages",
           prediction_source(arena, p), b->plan->sched->settings->pipeline.balance);
    if (b->ncuts > 0)
        diag_hint(diags, "registers after %s: %.2f x the mean, a step of %s instead of %s",
                  balance_cuts_text(arena, written, b->cut, b->ncuts), b->better.balance,
                  human_seconds(arena, b->better.step), human_seconds(arena, p->step));
    else if (p->parts > p->nstages)
        diag_hint(
            diags,
            "fewer layers in that stage, or a higher `balance`; `pnetc place` knows places for mapping = joined only");
    else
        diag_hint(diags, "no other cut into %d stages is faster; fewer stages (`pnetc place`), or a higher `balance`",
                  p->nstages);
}

/* A cut that keeps the limits, or that there is none; `nearest` then: the least that can be had, NULL if not known. */
static void hint_within(Arena *arena, Diags *diags, const Balance *b, const Graph *written, const char *nearest)
{
    const int n = b->prediction->nstages;
    if (b->within.ncuts > 0 && b->kept.legal)
        diag_hint(diags, "registers after %s keep the limits: %.3g %% stale, %s in the largest stage, a step of %s",
                  balance_cuts_text(arena, written, b->within.cut, b->within.ncuts), 100 * b->kept.stale_fraction,
                  human_bytes(arena, b->kept.most_bytes), human_seconds(arena, b->kept.step));
    else if (nearest)
        diag_hint(diags, "no cut into %d stage%s keeps it; the nearest possible is %s", n, n == 1 ? "" : "s", nearest);
    else
        diag_hint(diags, "`pnetc place` and `pnetc plan --all-schedules` show what else can be had");
}

static void warn_memory(Arena *arena, Diags *diags, const Balance *b, const Graph *written, Warn level)
{
    const Pipeline *pipeline = &b->plan->sched->settings->pipeline;
    const Prediction *p = b->prediction;
    const Span nowhere = {0, 0};
    int64_t most = 0;
    int largest = 0;
    for (int s = 0; s < p->nstages; s++)
        if (b->plan->stage[s].static_bytes > most) {
            most = b->plan->stage[s].static_bytes;
            largest = s;
        }
    if (b->over_memory) {
        REPORT(diags, level, P0732, pipeline->memory_span, "stage %d needs %s, over memory = %s", largest,
               human_bytes(arena, most), human_bytes(arena, pipeline->memory));
        hint_within(arena, diags, b, written,
                    b->within.ncuts < 0 && b->within.least_memory > 0
                        ? arena_printf(arena, "memory = \"%lld B\" (%s)", (long long)b->within.least_memory,
                                       human_bytes(arena, b->within.least_memory))
                        : NULL);
    }
    int64_t *sum = arena_alloc(arena, sizeof *sum * MAX_STAGES);
    for (int s = 0; s < p->nstages; s++) {
        const StagePlan *stage = &b->plan->stage[s];
        const int all = stage->replicas, on = p->stage[s].workers;
        sum[p->stage[s].worker] += stage->forward_half_bytes;
        sum[p->stage[s].back_worker] += plan_worker_bytes(stage);
        for (int r = 1; r < all; r++) /* where replicas share workers, as neighbours do */
            sum[p->stage[s].worker + r * on / all] += stage->replica_bytes;
    }
    for (int s = 0; s < p->nstages; s++) {
        const int workers[] = {p->stage[s].worker, p->stage[s].back_worker};
        const int kinds[] = {p->stage[s].kind, p->stage[s].back_kind};
        for (int h = 0; h < COUNT(workers); h++) {
            const Device *device = &p->model->hardware->device[kinds[h]];
            const int64_t bytes = sum[workers[h]];
            if (device->memory <= 0 || bytes <= device->memory)
                continue;
            REPORT(diags, level, P0732, nowhere, "the stages of worker %d need %s, but %s has %s", workers[h],
                   human_bytes(arena, bytes), device->name, human_bytes(arena, device->memory));
            return;
        }
    }
}

void balance_warn(Arena *arena, Diags *diags, const Balance *b, const Graph *written, Warn balanced, Warn stale,
                  Warn memory)
{
    const Pipeline *pipeline = &b->plan->sched->settings->pipeline;
    if (balanced != WARN_OFF && b->unbalanced)
        warn_balance(arena, diags, b, written, balanced);
    const double fraction = b->plan->sched->stale_fraction;
    if (stale != WARN_OFF && b->over_stale) {
        const Graph *graph = b->plan->sched->pipe->graph;
        REPORT(diags, stale, P0731, pipeline->max_stale_span, "%.4g %% of the weights are stale, over max_stale = %g",
               100 * fraction, pipeline->max_stale);
        if (graph->ncuts && graph->cut[graph->ncuts - 1].span.at)
            diag_note(diags, graph->cut[graph->ncuts - 1].span, "all weights before the last register are stale");
        hint_within(arena, diags, b, written,
                    b->within.ncuts < 0 && b->within.least_stale >= 0
                        ? arena_printf(arena, "max_stale = %.4g", ceil(b->within.least_stale * 1e4) / 1e4)
                        : NULL);
    }
    if (memory != WARN_OFF)
        warn_memory(arena, diags, b, written, memory);
}
