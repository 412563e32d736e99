/* sched.c: staleness, ring depth, weight versions and register slots of any order, derived from its steps, then proved.
 *
 * "Ahead" of a stage is what it has in flight after a forward, less one: warmup of the orders with body F B U.
 * Slots of the register s -> s+1 follow from the two stages' ahead (largest over the phases):
 *   the reader lets go after its forward    ahead(s) - ahead(s+1), at least 1: what s gives before s+1 first goes back
 *   the reader's backward reads the slot    at least also ahead(s+1) + 1, and ahead(s)
 *   the giver's backward reads the slot     at least also ring(s)
 *   the pipe empties for each update        one more, two at least: else a stage waits for its reader while the pipe fills
 *   the reader splits its backwards         as many more as it has between their two parts
 *   a stage at its ends is in halves        at least 2: its forwards follow each other without a backward between
 * They are an assertion that prove.c then tests. */
#include "sched.h"

#include <string.h>

/* The steps of minibatches [first, first + n) of M microbatches under one order. */
static void phase_steps(Arena *arena, const StageOrder *order, int64_t first, int64_t n, int64_t microbatches,
                        Step **step, int *count, int *room)
{
    int64_t done[STEP_KINDS] = {0}; /* within the phase */
    const int nbody = (int)strlen(order->body);
    for (int64_t turn = 0;; turn++) {
        /* The first turn is the warm-up. */
        const int steps = turn == 0 ? order->warmup : nbody;
        bool moved = turn == 0;
        for (int i = 0; i < steps; i++) {
            const StepKind kind = turn == 0 ? STEP_FORWARD : step_kind(order->body[i]);
            const int64_t each = kind == STEP_UPDATE ? 1 : microbatches;
            if (kind >= STEP_TEST || done[kind] == n * each)
                continue;
            *step = arena_grow(arena, *step, sizeof **step, *count, room);
            (*step)[(*count)++] = (Step){kind, first * each + done[kind]++};
            moved = true;
        }
        if (!moved)
            return;
    }
}

Step *sched_steps(Arena *arena, const Sched *sched, int stage, int64_t minibatches, int *count)
{
    Step *step = NULL;
    int room = 0;
    int64_t first = 0;
    *count = 0;
    for (int p = 0; p < sched->nphases; p++) {
        const int64_t left = minibatches - first, wanted = sched->phase[p].choice->minibatches;
        const int64_t n = wanted == 0 || wanted > left || p + 1 == sched->nphases ? left : wanted;
        phase_steps(arena, &sched->phase[p].stage[stage], first, n, sched->pipe->graph->microbatches, &step, count,
                    &room);
        first += n;
    }
    return step;
}

/* By running the steps of the stage alone, and of the one whose versions it reads. */
OrderFacts order_measure(Arena *arena, const StageOrder *order, Reads reads, const StageOrder *first,
                         int64_t microbatches)
{
    const int64_t n = 2 * ((int64_t)order->warmup / microbatches) + 16;
    int64_t *updates_at = arena_alloc(arena, sizeof *updates_at * (size_t)(n * microbatches)); /* of the forwards */
    int64_t updates = 0, forwards = 0, backwards = 0, weights = 0, most_stale = 0, most = 1, ahead = 1, late = 0;
    const bool splits = order_splits(order);
    Step *step = NULL;
    int count = 0, room = 0;
    phase_steps(arena, reads == READS_FIRST ? first : order, 0, n, microbatches, &step, &count, &room);
    for (int i = 0; i < count; i++) {
        if (step[i].kind == STEP_FORWARD)
            updates_at[step[i].n] = reads != READS_BEFORE      ? updates
                                    : step[i].n < microbatches ? 0
                                                               : step[i].n / microbatches - 1;
        updates += step[i].kind == STEP_UPDATE;
    }
    count = 0;
    updates = 0;
    phase_steps(arena, order, 0, n, microbatches, &step, &count, &room);
    for (int i = 0; i < count; i++) {
        const int64_t m = step[i].n;
        if (step[i].kind == STEP_FORWARD) {
            forwards++;
            most = forwards - weights > most ? forwards - weights : most;
            ahead = forwards - backwards > ahead ? forwards - backwards : ahead;
        } else if (step[i].kind == STEP_BACKWARD) {
            backwards++;
            weights += !splits;
            late = backwards - weights > late ? backwards - weights : late;
            most_stale = updates - updates_at[m] > most_stale ? updates - updates_at[m] : most_stale;
        } else if (step[i].kind == STEP_WEIGHTS) {
            weights++;
        } else {
            updates++;
        }
    }
    return (OrderFacts){(int)most_stale, (int)most, (int)ahead, (int)late};
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

/* Raises the slots of every register to what one phase needs. */
static void raise_slots(Sched *sched, const Phase *phase)
{
    const Pipe *pipe = sched->pipe;
    const bool fills = phase->choice->order->slices && pipe->graph->microbatches > 1;
    for (int e = 0; e < pipe->nedges; e++) {
        const Edge *edge = &pipe->edge[e];
        const int from = edge->from, to = from + 1, giver = phase->ahead[from] - 1, reader = phase->ahead[to] - 1;
        int slots = most(fills ? 2 : 1, giver - reader);
        if (edge->kept_consumer)
            slots = most(slots, most(giver + (fills && giver > reader), reader + 1) + phase->late[to]);
        if (edge->kept_producer)
            slots = most(slots, most(phase->in_flight[from], reader + 1));
        if (pipe_halved(pipe))
            slots = most(slots, 2);
        sched->forward_slots[e] = most(sched->forward_slots[e], slots);
        if (edge->gradient)
            sched->gradient_slots[e] = most(sched->gradient_slots[e], giver > 0 || pipe_halved(pipe) ? 2 : 1);
        sched->test_slots[e] = 2;
    }
}

static void make_phase(Arena *arena, Sched *sched, int p)
{
    const int nstages = sched->pipe->nstages;
    const int64_t microbatches = sched->pipe->graph->microbatches;
    const PhaseChoice *choice = &sched->settings->pipeline.phase[p];
    Phase *phase = &sched->phase[p];
    phase->choice = choice;
    phase->stage = arena_alloc(arena, sizeof *phase->stage * (size_t)nstages);
    phase->staleness = arena_alloc(arena, sizeof(int) * (size_t)nstages);
    phase->in_flight = arena_alloc(arena, sizeof(int) * (size_t)nstages);
    phase->ahead = arena_alloc(arena, sizeof(int) * (size_t)nstages);
    phase->late = arena_alloc(arena, sizeof(int) * (size_t)nstages);
    Arena *scratch = arena_new();
    for (int s = 0; s < nstages; s++) {
        choice->order->order((OrderPlace){s, nstages, (int)microbatches}, &phase->stage[s]);
        const OrderFacts facts =
            order_measure(scratch, &phase->stage[s], choice->rule->forward_reads, &phase->stage[0], microbatches);
        phase->staleness[s] = facts.staleness;
        phase->in_flight[s] = facts.in_flight;
        phase->ahead[s] = facts.ahead;
        phase->late[s] = facts.late;
        sched->staleness[s] = most(sched->staleness[s], facts.staleness);
        sched->ring[s] = most(sched->ring[s], facts.in_flight);
        sched->late[s] = most(sched->late[s], facts.late);
        sched->versions[s] = most(sched->versions[s], choice->rule->versions(phase->staleness[s]));
        if (sched->pipe->stage[s].halves)
            sched->versions[s] = most(sched->versions[s], 2);
    }
    arena_free(scratch);
    phase->cure = arena_alloc(arena, sizeof *phase->cure * (size_t)nstages);
    for (int s = 0; s < nstages; s++)
        phase->cure[s] =
            cure_of(sched->settings, choice, phase->staleness[s], phase->staleness[0], pipe_normalises(sched->pipe, s));
}

/* A stage with one microbatch in flight has nothing to gain. One that recomputes keeps what it takes until its
 * backward, and what it gives no longer than the next stage wants it. */
static void choose_recomputation(Arena *arena, Sched *sched)
{
    const Pipeline *wanted = &sched->settings->pipeline;
    bool any = false;
    for (int s = 0; s < sched->pipe->nstages; s++) {
        const bool own = wanted->recomputes && s < wanted->nrecomputes && wanted->recomputes[s];
        any |= sched->recompute[s] = (wanted->recompute || own) && sched->ring[s] > 1;
    }
    if (!any)
        return;
    Pipe *pipe = arena_alloc(arena, sizeof *pipe);
    *pipe = *sched->pipe;
    pipe->edge = arena_alloc(arena, sizeof *pipe->edge * (size_t)(pipe->nedges + 1));
    for (int e = 0; e < pipe->nedges; e++) {
        Edge *edge = &pipe->edge[e];
        *edge = sched->pipe->edge[e];
        edge->kept_consumer |= edge->read_forward && sched->recompute[edge->from + 1];
        edge->kept_producer &= !sched->recompute[edge->from];
    }
    sched->pipe = pipe;
}

/* Updates between a forward and its backward, in the stage that has the most. */
static int most_updates_between(Arena *arena, const PhaseChoice *choice, int nstages, int64_t microbatches, int *stage)
{
    int worst = -1;
    for (int s = 0; s < nstages; s++) {
        StageOrder order = {0};
        choice->order->order((OrderPlace){s, nstages, (int)microbatches}, &order);
        const OrderFacts facts = order_measure(arena, &order, READS_CURRENT, NULL, microbatches);
        if (facts.staleness > worst) {
            worst = facts.staleness;
            *stage = s;
        }
    }
    return worst;
}

/* A rule with a limit is refused where a stage is staler, with the least number of microbatches that helps. */
static bool keeps_limit(Diags *diags, const Sched *sched, int p)
{
    const PhaseChoice *choice = sched->phase[p].choice;
    const int nstages = sched->pipe->nstages, limit = choice->rule->most_stale;
    const int64_t microbatches = sched->pipe->graph->microbatches, samples = sched->pipe->graph->batch * microbatches;
    Arena *scratch = arena_new();
    int stage = 0, unused;
    const int worst = limit ? most_updates_between(scratch, choice, nstages, microbatches, &stage) : 0;
    int64_t least = 1;
    while (worst > limit && least <= MAX_MICROBATCHES &&
           (samples % least || most_updates_between(scratch, choice, nstages, least, &unused) > limit))
        least++;
    arena_free(scratch);
    if (worst <= limit)
        return true;
    diag_error(diags, P0507, choice->span,
               "the weight rule %s allows for %d update between a forward and its backward, and stage %d makes %d",
               choice->rule->name, limit, stage, worst);
    if (least <= MAX_MICROBATCHES)
        diag_hint(diags, "microbatches = %lld is the least that does", (long long)least);
    else
        diag_hint(diags, "no number of microbatches that divides the batch does: fewer stages, or another weight rule");
    return false;
}

static bool names_every_stage(Diags *diags, const Sched *sched)
{
    const Pipeline *wanted = &sched->settings->pipeline;
    if (!wanted->recomputes || wanted->nrecomputes == sched->pipe->nstages)
        return true;
    diag_error(diags, P0509, wanted->recompute_span, "recompute tells of %d stages, and there are %d",
               wanted->nrecomputes, sched->pipe->nstages);
    diag_hint(diags, "a list has yes or no for each; recompute = yes is for all");
    return false;
}

/* The weight part reads what the forward has left; made again, that is there for the input part alone. */
static bool keeps_for_weights(Diags *diags, const Sched *sched)
{
    for (int p = 0; p < sched->nphases; p++)
        for (int s = 0; s < sched->pipe->nstages; s++) {
            if (!sched->phase[p].late[s] || !sched->recompute[s])
                continue;
            const PhaseChoice *choice = sched->phase[p].choice;
            diag_error(diags, P0508, choice->span,
                       "the order %s splits its backwards, and a stage that recomputes does not keep what weight parts "
                       "read",
                       choice->order->name);
            diag_hint(diags, "leave out recompute and replay, or take 1f1b_flush in place of zb_h1");
            return false;
        }
    return true;
}

static double stale_fraction(const Sched *sched)
{
    double stale = 0, all = 0;
    for (int s = 0; s < sched->pipe->nstages; s++) {
        const double params = (double)sched->pipe->stage[s].params;
        all += params;
        stale += sched->phase[0].staleness[s] > 0 ? params : 0;
    }
    return all > 0 ? stale / all : 0;
}

/* A phase that ends by a plateau ends one test behind the decision: no stage may have begun a later minibatch before it
 * sees that. Stages are apart by what is in flight and lies in registers (driver_most_apart of the runtime). */
static bool tests_far_enough(const Sched *sched, Diags *diags)
{
    const Pipe *pipe = sched->pipe;
    int64_t apart = 2 * (int64_t)pipe->nstages;
    for (int s = 0; s < pipe->nstages; s++)
        apart += sched->ring[s];
    for (int e = 0; e < pipe->nedges; e++)
        apart += sched->forward_slots[e];
    const int replicas = pipe->stage[pipe->nstages - 1].replicas;
    for (int p = 0; p < sched->nphases; p++) {
        const PhaseChoice *choice = sched->phase[p].choice;
        if (choice->plateau_tests && replicas > 1) {
            diag_error(diags, P0444, choice->span,
                       "a plateau is judged by the last stage alone, and that has %d replicas", replicas);
            diag_hint(diags, "replicas = (..., 1), or steps in place of when");
            return false;
        }
        if (!choice->plateau_tests || sched->settings->train.test_every >= apart)
            continue;
        diag_error(diags, P0444, choice->span,
                   "a plateau is judged by tests every %lld minibatches: too near for stages that can be %lld apart",
                   (long long)sched->settings->train.test_every, (long long)apart);
        diag_hint(diags, "train { test_every = %lld }, or more", (long long)apart);
        return false;
    }
    return true;
}

Sched *schedule(Arena *arena, Diags *diags, const Pipe *pipe, const Settings *settings)
{
    const size_t nstages = (size_t)pipe->nstages, nedges = (size_t)pipe->nedges + 1;
    Sched *sched = arena_alloc(arena, sizeof *sched);
    *sched = (Sched){
        .pipe = pipe,
        .settings = settings,
        .nphases = settings->pipeline.nphases,
        .phase = arena_alloc(arena, sizeof(Phase) * (size_t)settings->pipeline.nphases),
        .staleness = arena_alloc(arena, sizeof(int) * nstages),
        .ring = arena_alloc(arena, sizeof(int) * nstages),
        .versions = arena_alloc(arena, sizeof(int) * nstages),
        .late = arena_alloc(arena, sizeof(int) * nstages),
        .recompute = arena_alloc(arena, sizeof(bool) * nstages),
        .forward_slots = arena_alloc(arena, sizeof(int) * nedges),
        .gradient_slots = arena_alloc(arena, sizeof(int) * nedges),
        .test_slots = arena_alloc(arena, sizeof(int) * nedges),
    };
    if (sched->nphases < 1)
        ICE("schedule: no phase");
    for (int p = 0; p < sched->nphases; p++)
        make_phase(arena, sched, p);
    choose_recomputation(arena, sched);
    for (int p = 0; p < sched->nphases; p++)
        raise_slots(sched, &sched->phase[p]);
    sched->stale_fraction = stale_fraction(sched);
    for (int p = 0; p < sched->nphases; p++)
        if (!keeps_limit(diags, sched, p))
            return NULL;
    if (!names_every_stage(diags, sched) || !keeps_for_weights(diags, sched) || !halves_hold(diags, sched) ||
        !tests_far_enough(sched, diags))
        return NULL;
    const char *wrong = sched_prove_all(arena, sched);
    if (wrong) {
        const PhaseChoice *choice = &settings->pipeline.phase[sched->nphases - 1];
        diag_error(diags, P0505, choice->span, "the schedule %s cannot run: %s", choice->preset, wrong);
        return NULL;
    }
    return sched;
}

const char *phase_length(Arena *arena, const Sched *sched, int p)
{
    const PhaseChoice *choice = sched->phase[p].choice;
    if (choice->plateau_tests)
        return arena_printf(arena, "until the loss is no lower in %d test%s", choice->plateau_tests,
                            choice->plateau_tests == 1 ? "" : "s");
    return choice->minibatches > 0 ? arena_printf(arena, "%lld minibatches", (long long)choice->minibatches)
                                   : "the rest";
}

bool sched_splits(const Sched *sched)
{
    bool any = false;
    for (int s = 0; s < sched->pipe->nstages; s++)
        any |= sched->late[s] > 0;
    return any;
}
