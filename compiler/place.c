/* place.c: registers = auto(...): solves for the numbers of a network, and lets the real plan have the last word on
 * memory. The solver knows a lower bound of a stage's memory; a stage that the plan finds too large is banned and the
 * problem is solved again. */
#include <math.h>

#include "place.h"

enum { MOST_BANS = 200 };

const char *cut_after(const Graph *written, NodeId before)
{
    return written->node[before - 1].name;
}

const char *placing_cut_text(Arena *arena, const Graph *written, NodeId before)
{
    return arena_printf(arena, "after %s, before %s", cut_after(written, before), written->node[before].name);
}

/* Per stage and cut, for nstages. */
typedef struct {
    PlaceInput in;
    const int64_t **work, **transfer;
    bool *overlap;
    int *ring, *copies;
    int64_t *memory, *most_work;
    VEC(PlaceBan) bans;
} Problem;

/* The mean of the stages is all work over their number where they run on devices of one kind, however it is cut; on
 * several kinds it is at most that of the slowest, and placing_solve looks at what came out. */
static void cap_work(const PlaceInput *in, int64_t *cap, double balance)
{
    int64_t all = 0;
    for (int s = 0; s < in->nstages; s++)
        all = in->work[s][in->n] > all ? in->work[s][in->n] : all;
    const double most = balance * (double)all / in->nstages * (1 + 1e-12);
    for (int s = 0; s < in->nstages; s++)
        cap[s] = most < (double)all ? (int64_t)most : all;
}

static double balance_of(const PlaceInput *in, const int *cut)
{
    int64_t most = 0, sum = 0;
    for (int s = 0; s < in->nstages; s++) {
        const int q = s ? cut[s - 1] : 0, p = s + 1 < in->nstages ? cut[s] : in->n;
        const int64_t work = in->work[s][p] - in->work[s][q];
        most = work > most ? work : most;
        sum += work;
    }
    return sum > 0 ? (double)most * in->nstages / (double)sum : 1;
}

static Problem *problem(Placing *p, int nstages)
{
    Arena *a = p->arena;
    const Hardware *hardware = p->model->hardware;
    const Pipeline *pipeline = &p->settings->pipeline;
    const size_t n = (size_t)nstages;
    Problem *made = arena_alloc(a, sizeof *made);
    made->work = arena_alloc(a, n * sizeof *made->work);
    made->transfer = arena_alloc(a, n * sizeof *made->transfer);
    made->overlap = arena_alloc(a, n * sizeof *made->overlap);
    made->ring = arena_alloc(a, n * sizeof *made->ring);
    made->copies = arena_alloc(a, n * sizeof *made->copies);
    made->memory = arena_alloc(a, n * sizeof *made->memory);
    const int64_t microbatches = p->graph->microbatches;
    Arena *scratch = arena_new();
    bool stale = false;
    int first_delay[COUNT(pipeline->phase)] = {0};
    for (int s = 0; s < nstages; s++) {
        const int kind = hardware_kind(hardware, hardware_worker(hardware, s, nstages));
        made->work[s] = p->work[kind];
        made->transfer[s] = p->transfer[s < hardware->nlinks ? s : hardware->nlinks > 0 ? hardware->nlinks - 1 : 0];
        made->overlap[s] = hardware_link(hardware, s).overlap;
        int versions = 1, ahead = 0;
        made->ring[s] = 1;
        for (int i = 0; i < pipeline->nphases; i++) {
            StageOrder order = {0}, first = {0};
            int staleness, in_flight;
            pipeline->phase[i].order->order((OrderPlace){s, nstages, (int)microbatches}, &order);
            pipeline->phase[i].order->order((OrderPlace){0, nstages, (int)microbatches}, &first);
            order_measure(scratch, &order, pipeline->phase[i].rule->forward_reads, &first, microbatches, &staleness,
                          &in_flight);
            const int copies = pipeline->phase[i].rule->versions(staleness);
            made->ring[s] = in_flight > made->ring[s] ? in_flight : made->ring[s];
            versions = copies > versions ? copies : versions;
            first_delay[i] = s == 0 ? staleness : first_delay[i];
            const Cure cure = cure_of(p->settings, &pipeline->phase[i], staleness, first_delay[i]);
            ahead = cure_ahead_copies(&cure) > ahead ? cure_ahead_copies(&cure) : ahead;
            stale |= i == 0 && staleness > 0;
        }
        made->copies[s] = 4 * (versions + ahead + 1 + (microbatches > 1) + p->model->states);
        const int64_t device = nstages <= hardware->workers ? hardware->device[kind].memory : 0;
        made->memory[s] = p->wishes.memory > 0 ? p->wishes.memory : -1;
        if (device > 0 && (made->memory[s] < 0 || device < made->memory[s]))
            made->memory[s] = device;
    }
    arena_free(scratch);
    made->in = (PlaceInput){
        .n = p->n,
        .nstages = nstages,
        .work = made->work,
        .transfer = made->transfer,
        .overlap = made->overlap,
        .stale = p->stale,
        .most_stale = stale && p->wishes.max_stale >= 0 ? (int64_t)(p->wishes.max_stale * (double)p->stale[p->n]) : -1,
        .pin = p->pin,
        .saved = p->saved,
        .saved_before = p->saved_before,
        .weights = p->weights,
        .ring = made->ring,
        .copies = made->copies,
        .memory = made->memory,
    };
    if (p->wishes.balance > 0) {
        made->most_work = arena_alloc(a, n * sizeof *made->most_work);
        cap_work(&made->in, made->most_work, p->wishes.balance);
        made->in.most_work = made->most_work;
    }
    return made;
}

static Cut *written_cuts(const Placing *p, const int *cut, int ncuts)
{
    Cut *cuts = arena_alloc(p->arena, sizeof *cuts * (size_t)(ncuts + 1));
    for (int i = 0; i < ncuts; i++)
        cuts[i] = (Cut){p->low[cut[i]], p->wishes.span};
    return cuts;
}

/* The first stage that the plan finds larger than its cap; -1: none. */
static int over_cap(const Placing *p, const Problem *problem, const Cut *cuts, int ncuts, int64_t *most)
{
    Arena *scratch = arena_new();
    Diags *diags = diags_new(scratch, (Sources *)p->written->sources);
    const Candidate c = candidate(scratch, diags, p->written, cuts, ncuts, p->settings, p->model);
    int over = c.plan ? -1 : 0;
    *most = c.plan ? 0 : TARGET_TOO_LARGE;
    for (int s = 0; c.plan && s <= ncuts; s++) {
        const int64_t bytes = c.plan->stage[s].static_bytes;
        *most = bytes > *most ? bytes : *most;
        if (over < 0 && problem->memory[s] >= 0 && bytes > problem->memory[s])
            over = s;
    }
    arena_free(scratch);
    return over;
}

static void set_cap(Problem *problem, int64_t cap)
{
    for (int s = 0; s < problem->in.nstages; s++)
        problem->memory[s] = cap;
}

static void ban(Placing *p, Problem *problem, int stage, const int *cut)
{
    *vec_push(p->arena, &problem->bans) =
        (PlaceBan){stage, stage ? cut[stage - 1] : 0, stage + 1 < problem->in.nstages ? cut[stage] : p->n};
    problem->in.ban = problem->bans.at;
    problem->in.nbans = problem->bans.count;
}

/* The placement whose largest stage is the smallest of those found: each round asks for less than the last one needed.
 * Ends with the proof that there is none, or after MOST_BANS stages that the plan found too large. */
static Placement least_memory(Placing *p, Problem *problem, int *cut, int64_t *bytes)
{
    const int ncuts = problem->in.nstages - 1;
    Placement best = {.ncuts = -1, .least_stale = -1};
    *bytes = 0;
    set_cap(problem, TARGET_TOO_LARGE);
    problem->bans.count = problem->in.nbans = 0;
    while (problem->bans.count < MOST_BANS) {
        const int64_t load = place_solve(&problem->in, cut);
        if (load < 0)
            break;
        Cut *cuts = written_cuts(p, cut, ncuts);
        int64_t most;
        const int over = over_cap(p, problem, cuts, ncuts, &most);
        if (over >= 0) {
            ban(p, problem, over, cut);
            continue;
        }
        best = (Placement){.ncuts = ncuts, .cut = cuts, .load = (double)load / p->scale, .least_stale = -1};
        *bytes = most;
        set_cap(problem, most - 1);
    }
    return best;
}

/* The least ratio under the other limits; false: there is none under these either. */
static bool explain_balance(const Problem *problem, Placement *out)
{
    PlaceInput other = problem->in;
    int64_t low = 0, high = 0, *cap = problem->most_work;
    for (int s = 0; s < other.nstages; s++)
        high = other.work[s][other.n] > high ? other.work[s][other.n] : high;
    const double mean = (double)high / other.nstages;
    const int64_t wished = cap[0];
    other.most_work = NULL;
    if (!place_possible(&other))
        return false;
    other.most_work = cap;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        for (int s = 0; s < other.nstages; s++)
            cap[s] = middle;
        if (place_possible(&other))
            high = middle;
        else
            low = middle + 1;
    }
    for (int s = 0; s < other.nstages; s++)
        cap[s] = wished;
    if (high <= wished)
        return false;
    out->least_balance = (double)high / mean;
    return true;
}

/* Why there is none: what could be had if the limit were another. */
static void explain(Placing *p, Problem *problem, int *cut, Placement *out)
{
    PlaceInput *in = &problem->in;
    in->nbans = 0;
    if (in->most_work && explain_balance(problem, out))
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
    least_memory(p, problem, cut, &out->least_memory);
}

Placement placing_solve(Placing *p, int nstages)
{
    Placement out = {.ncuts = -1, .least_stale = -1};
    if (nstages > p->n)
        return out;
    Problem *made = problem(p, nstages);
    int *cut = arena_alloc(p->arena, sizeof *cut * (size_t)(nstages + 1));
    bool capped = false;
    int64_t bytes;
    for (int s = 0; s < nstages; s++)
        capped |= made->memory[s] >= 0;
    if (p->wishes.least_memory && !capped)
        return least_memory(p, made, cut, &bytes);
    while (made->bans.count < MOST_BANS) {
        const int64_t load = place_solve(&made->in, cut);
        if (load < 0)
            break;
        Cut *cuts = written_cuts(p, cut, nstages - 1);
        const int over = capped ? over_cap(p, made, cuts, nstages - 1, &bytes) : -1;
        if (over < 0 && p->wishes.least_memory)
            return least_memory(p, made, cut, &bytes);
        if (over < 0 && made->in.most_work && balance_of(&made->in, cut) > p->wishes.balance * (1 + 1e-9)) {
            out.least_balance = balance_of(&made->in, cut); /* devices of several kinds: the nearest known */
            return out;
        }
        if (over < 0)
            return (Placement){.ncuts = nstages - 1, .cut = cuts, .load = (double)load / p->scale, .least_stale = -1};
        ban(p, made, over, cut);
    }
    explain(p, made, cut, &out);
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

void placing_refused(Arena *arena, Diags *diags, const Placing *p, const Placement *none, int nstages)
{
    const AutoRegisters *w = &p->wishes;
    if (nstages > p->n) {
        diag_error(diags, P0721, w->count_span, "%d stages are not possible: %s has room for %d at most", nstages,
                   p->written->name, p->n);
        diag_hint(diags, "registers stand between ops, not inside fused ones; stages = %d", p->n);
    } else if (none->least_stale >= 0) {
        diag_error(diags, P0721, w->max_stale_span, "no %d stages keep the stale weights to %.4g %%", nstages,
                   100 * w->max_stale);
        diag_hint(diags, "the nearest possible is max_stale = %.4g", ceil(none->least_stale * 1e4) / 1e4);
    } else if (none->least_balance > 0) {
        diag_error(diags, P0721, w->balance_span, "no %d stages keep the slowest to %g x their mean", nstages,
                   w->balance);
        diag_hint(diags, "the nearest possible is balance = %.4g", ceil(none->least_balance * 1e3) / 1e3);
    } else if (none->least_memory > 0) {
        diag_error(diags, P0721, w->memory > 0 ? w->memory_span : w->span, "no %d stages of at most %s each were found",
                   nstages, human_bytes(arena, w->memory > 0 ? w->memory : p->model->hardware->device[0].memory));
        diag_hint(diags, "the nearest possible is memory = \"%lld B\" (%s)", (long long)none->least_memory,
                  human_bytes(arena, none->least_memory));
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
    if (!enough_workers(diags, model->hardware, wishes->workers, wishes->count_span))
        return NULL;
    int least = wishes->stages ? wishes->stages : wishes->npin + 1;
    int most = wishes->stages ? wishes->stages : wishes->workers < p->n ? wishes->workers : p->n;
    Placement best = {.ncuts = -1, .least_stale = -1}, last = best;
    double best_step = 0;
    for (int n = least; n <= (most > least ? most : least); n++) {
        last = placing_solve(p, n);
        if (last.ncuts < 0)
            continue;
        const Outcome o = least == most ? (Outcome){.legal = true} : outcome(written, last.cut, n - 1, settings, model);
        const double judged = wishes->least_memory ? (double)o.most_bytes : o.step;
        if (o.legal && (best.ncuts < 0 || judged < best_step * (1 - 1e-6))) {
            best = last;
            best_step = judged;
        }
    }
    if (best.ncuts < 0) {
        placing_refused(arena, diags, p, &last, most > least ? most : least);
        return NULL;
    }
    Graph *placed = arena_alloc(arena, sizeof *placed);
    *placed = *written;
    placed->cut = best.cut;
    placed->ncuts = best.ncuts;
    return placed;
}
