/* place.c: registers = auto(...): solves for the numbers of a network, and lets the real plan have the last word on
 * memory. The solver knows a lower bound of a stage's memory; a stage that the plan finds too large is banned and the
 * problem is solved again. */
#include <math.h>

#include "place_problem.h"

enum { MOST_BANS = 200 };

const char *cut_after(const Graph *written, NodeId before)
{
    return written->node[before - 1].name;
}

const char *placing_cut_text(Arena *arena, const Graph *written, NodeId before)
{
    return arena_printf(arena, "after %s, before %s", cut_after(written, before), written->node[before].name);
}

Graph placing_graph(const Placing *p, const Placement *placed)
{
    Graph graph = *p->written;
    graph.cut = placed->cut;
    graph.ncuts = placed->ncuts;
    graph.replicas = placed->workers > placed->ncuts + 1 ? placed->replicas : NULL;
    graph.nreplicas = graph.replicas ? placed->ncuts + 1 : 0;
    return graph;
}

Outcome placing_outcome(const Placing *p, const Placement *placed)
{
    const Graph graph = placing_graph(p, placed);
    return outcome(&graph, placed->cut, placed->ncuts, p->settings, p->model);
}

static Placement placement(const Placing *p, const int *cut, const int *replicas, int nstages, int64_t load)
{
    Placement made = {.ncuts = nstages - 1,
                      .cut = arena_alloc(p->arena, sizeof(Cut) * (size_t)nstages),
                      .replicas = arena_alloc(p->arena, sizeof(int) * (size_t)nstages),
                      .load = (double)load / p->scale,
                      .least_stale = -1};
    for (int i = 0; i + 1 < nstages; i++)
        made.cut[i] = (Cut){p->low[cut[i]], p->wishes.span};
    for (int s = 0; s < nstages; s++) {
        made.replicas[s] = replicas[s];
        made.workers += replicas[s];
    }
    return made;
}

/* The first stage that the plan finds larger than its cap; -1: none. */
static int over_cap(const Placing *p, const Problem *problem, const Placement *placed, int64_t *most)
{
    Arena *scratch = arena_new();
    Diags *diags = diags_new(scratch, (Sources *)p->written->sources);
    const Graph graph = placing_graph(p, placed);
    const Candidate c = candidate(scratch, diags, &graph, placed->cut, placed->ncuts, p->settings, p->model);
    int over = c.plan ? -1 : 0, worker = 0;
    *most = c.plan ? 0 : TARGET_TOO_LARGE;
    for (int s = 0; c.plan && s <= placed->ncuts; s++) {
        const StagePlan *stage = &c.plan->stage[s];
        *most = stage->static_bytes > *most ? stage->static_bytes : *most;
        if (over < 0 && problem_over(problem, worker, stage->replicas, stage->static_bytes, plan_worker_bytes(stage)))
            over = s;
        worker += stage->replicas;
    }
    arena_free(scratch);
    return over;
}

static void set_cap(Problem *problem, int64_t cap)
{
    problem->cap = cap;
    for (int w = 0; w < problem->in.workers; w++)
        problem->device_cap[w] = -1;
    problem_caps(problem);
}

/* The placement whose largest stage is the smallest of those found: each round asks for less than the last one needed.
 * Ends with the proof that there is none, or after MOST_BANS stages that the plan found too large. */
static Placement least_memory(Placing *p, Problem *problem, int *cut, int *replicas, int64_t *bytes)
{
    Placement best = {.ncuts = -1, .least_stale = -1};
    *bytes = 0;
    set_cap(problem, TARGET_TOO_LARGE);
    problem->bans.count = problem->in.nbans = 0;
    while (problem->bans.count < MOST_BANS) {
        const int64_t load = place_solve(&problem->in, cut, replicas);
        if (load < 0)
            break;
        const Placement placed = placement(p, cut, replicas, problem->in.nstages, load);
        int64_t most;
        const int over = over_cap(p, problem, &placed, &most);
        if (over >= 0) {
            problem_ban(p->arena, problem, over, cut, replicas);
            continue;
        }
        best = placed;
        *bytes = most;
        set_cap(problem, most - 1);
    }
    return best;
}

static void cap_all_work(Problem *problem, int64_t cap)
{
    for (int s = 0; s < problem->in.nstages; s++)
        problem->stage[s].most_work = cap;
}

/* The least ratio under the other limits; false: there is none under these either. */
static bool explain_balance(Problem *problem, Placement *out)
{
    const PlaceInput *in = &problem->in;
    int64_t low = 0, high = 0;
    for (int s = 0; s < in->nstages; s++)
        high = problem->choice[s][0].work[s][in->n] > high ? problem->choice[s][0].work[s][in->n] : high;
    const double mean = (double)high / in->nstages;
    const int64_t wished = problem->stage[0].most_work;
    cap_all_work(problem, -1);
    const bool possible = place_possible(in);
    while (possible && low < high) {
        const int64_t middle = low + (high - low) / 2;
        cap_all_work(problem, middle);
        if (place_possible(in))
            high = middle;
        else
            low = middle + 1;
    }
    cap_all_work(problem, wished);
    if (!possible || high <= wished)
        return false;
    out->least_balance = (double)high / mean;
    return true;
}

/* Why there is none: what could be had if the limit were another. */
static void explain(Placing *p, Problem *problem, int *cut, int *replicas, Placement *out)
{
    PlaceInput *in = &problem->in;
    in->nbans = 0;
    if (problem->stage[0].most_work >= 0 && explain_balance(problem, out))
        return;
    if (in->most_stale >= 0) {
        PlaceInput other = *in;
        int64_t low = in->most_stale, high = p->stale[p->n];
        while (low < high) { /* the least limit that works, under the same memory */
            other.most_stale = low + (high - low) / 2;
            if (place_possible(&other))
                high = other.most_stale;
            else
                low = other.most_stale + 1;
        }
        other.most_stale = high;
        if (high > in->most_stale && place_possible(&other)) {
            out->least_stale = p->stale[p->n] > 0 ? (double)high / (double)p->stale[p->n] : 0;
            return;
        }
    }
    least_memory(p, problem, cut, replicas, &out->least_memory);
}

Placement placing_solve(Placing *p, int nstages, int workers)
{
    Placement out = {.ncuts = -1, .least_stale = -1};
    if (nstages > p->n)
        return out;
    Problem *made = problem_new(p, nstages, workers);
    int *cut = arena_alloc(p->arena, sizeof *cut * (size_t)nstages);
    int *replicas = arena_alloc(p->arena, sizeof *replicas * (size_t)nstages);
    const bool capped = problem_capped(made);
    int64_t bytes;
    if (p->wishes.least_memory && !capped)
        return least_memory(p, made, cut, replicas, &bytes);
    while (made->bans.count < MOST_BANS) {
        const int64_t load = place_solve(&made->in, cut, replicas);
        if (load < 0)
            break;
        const Placement placed = placement(p, cut, replicas, nstages, load);
        const int over = capped ? over_cap(p, made, &placed, &bytes) : -1;
        if (over < 0 && p->wishes.least_memory)
            return least_memory(p, made, cut, replicas, &bytes);
        const double ratio = over < 0 && made->stage[0].most_work >= 0 ? problem_balance(made, cut, replicas) : 1;
        if (ratio > p->wishes.balance * (1 + 1e-9) && made->stage[0].most_work >= 0) {
            out.least_balance = ratio; /* devices of several kinds: the nearest known */
            return out;
        }
        if (over < 0)
            return placed;
        problem_ban(p->arena, made, over, cut, replicas);
    }
    explain(p, made, cut, replicas, &out);
    return out;
}

/* ---- registers = auto(...) ---- */

bool enough_workers(Diags *diags, const Hardware *hardware, int workers, Span span)
{
    if (workers <= hardware->workers)
        return true;
    diag_error(diags, P0721, span, "%d workers, but the machine %s has %d", workers, hardware->name, hardware->workers);
    diag_hint(diags, "workers = %d, or stages = %d to let stages share workers", hardware->workers, workers);
    return false;
}

bool placing_nearer(const Placement *none, const Placement *than)
{
    if (none->least_stale >= 0 && than->least_stale >= 0)
        return none->least_stale < than->least_stale;
    return none->least_memory > 0 && than->least_memory > 0 && none->least_memory < than->least_memory;
}

static const char *in_stages(Arena *arena, const AutoRegisters *w, int nstages)
{
    return w->stages == nstages ? "" : arena_printf(arena, ", with %d stage%s", nstages, nstages == 1 ? "" : "s");
}

void placing_refused(Arena *arena, Diags *diags, const Placing *p, const Placement *none, int nstages)
{
    const AutoRegisters *w = &p->wishes;
    if (nstages > p->n) {
        diag_error(diags, P0721, w->count_span, "%d stages are not possible: %s has room for %d at most", nstages,
                   p->written->name, p->n);
        diag_hint(diags, "%s; the nearest possible is stages = %d",
                  w->limited || w->nforbid ? "allow and forbid leave no more positions"
                                           : "registers stand between ops, not inside fused ones",
                  p->n);
    } else if (none->least_stale >= 0) {
        diag_error(diags, P0721, w->max_stale_span, "no %d stages keep the stale weights to %.4g %%", nstages,
                   100 * w->max_stale);
        diag_hint(diags, "the nearest possible is max_stale = %.4g%s", ceil(none->least_stale * 1e4) / 1e4,
                  in_stages(arena, w, nstages));
    } else if (none->least_balance > 0) {
        diag_error(diags, P0721, w->balance_span, "no %d stages keep the slowest to %g x their mean", nstages,
                   w->balance);
        diag_hint(diags, "the nearest possible is balance = %.4g", ceil(none->least_balance * 1e3) / 1e3);
    } else if (none->least_memory > 0) {
        const int64_t cap = w->memory > 0 ? w->memory : p->model->hardware->device[0].memory;
        const char *text = human_bytes(arena, cap);
        if (nstages == 1)
            diag_error(diags, P0721, w->memory > 0 ? w->memory_span : w->span, "one stage needs more than %s", text);
        else
            diag_error(diags, P0721, w->memory > 0 ? w->memory_span : w->span,
                       "no %d stages of at most %s each were found", nstages, text);
        diag_hint(diags, "the nearest possible is memory = \"%lld B\" (%s)%s", (long long)none->least_memory,
                  human_bytes(arena, none->least_memory), in_stages(arena, w, nstages));
    } else {
        diag_error(diags, P0721, w->span, "no placement in %d stages meets allow, forbid and pin", nstages);
        diag_hint(diags, "%d positions are left", p->n - 1);
    }
}

Graph *place_registers(Arena *arena, Diags *diags, const Graph *written, const Settings *settings,
                       const CostModel *model)
{
    const AutoRegisters *wishes = &settings->pipeline.automatic;
    Placing *p = placing_new(arena, diags, written, settings, model, wishes);
    if (!p)
        return NULL;
    if (!enough_workers(diags, model->hardware, wishes->workers, wishes->workers_span))
        return NULL;
    const int least = wishes->stages ? wishes->stages : wishes->npin + 1;
    int most = wishes->stages ? wishes->stages : wishes->workers < p->n ? wishes->workers : p->n;
    most = most > least ? most : least;
    Placement best = {.ncuts = -1, .least_stale = -1}, none = best;
    double best_step = 0;
    int nearest = most;
    for (int n = least; n <= most; n++) {
        const Placement made = placing_solve(p, n, wishes->workers > n ? wishes->workers : n);
        if (made.ncuts < 0) {
            if (n == least || placing_nearer(&made, &none)) {
                none = made;
                nearest = n;
            }
            continue;
        }
        const Outcome o = least == most ? (Outcome){.legal = true} : placing_outcome(p, &made);
        const double judged = wishes->least_memory ? (double)o.most_bytes : o.step;
        if (o.legal && (best.ncuts < 0 || judged < best_step * (1 - 1e-6))) {
            best = made;
            best_step = judged;
        }
    }
    if (best.ncuts < 0) {
        placing_refused(arena, diags, p, &none, nearest);
        return NULL;
    }
    Graph *placed = arena_alloc(arena, sizeof *placed);
    *placed = placing_graph(p, &best);
    return placed;
}
