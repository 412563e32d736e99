/* place_brute.h: for tests of placement: the best of all cuts and replicas, by trying them all. */
#ifndef TEST_PLACE_BRUTE_H
#define TEST_PLACE_BRUTE_H

#include <stdlib.h>
#include <string.h>

#include "place_problem.h"

enum { MOST_N = 24, MOST_STAGES = 5 };

typedef struct {
    int64_t load;
    int cut[MOST_STAGES], replicas[MOST_STAGES], workers;
} Best;

/* Most of a sum of products a1 b1 + a2 b2 is `cap`; < 0: there is no limit. */
static inline bool within(int64_t cap, int64_t a1, int64_t b1, int64_t a2, int64_t b2)
{
    int64_t one, two, sum;
    return cap < 0 ||
           (checked_mul(a1, b1, &one) && checked_mul(a2, b2, &two) && checked_add(one, two, &sum) && sum <= cap);
}

/* The load of given cuts and replicas by the definitions of place.h, with nothing of the solver; -1: they break a
 * limit. */
static inline int64_t defined_load(const PlaceInput *in, const int *cut, const int *replicas)
{
    int64_t most = 0;
    int worker = 0;
    for (int s = 0; s < in->nstages; s++) {
        const PlaceStage *stage = &in->stage[s], *before = s ? stage - 1 : NULL;
        const bool last = s + 1 == in->nstages;
        const int from = s ? cut[s - 1] : 0, to = last ? in->n : cut[s];
        const PlaceChoice *choice = NULL;
        for (int c = 0; c < stage->nchoices; c++)
            if (stage->choice[c].replicas == replicas[s])
                choice = &stage->choice[c];
        if (!choice || to <= from || worker + replicas[s] > in->workers || !choice->work[worker])
            return -1;
        const int64_t saved = in->saved[to] - in->saved_before[from];
        const int64_t own = choice->work[worker][to] - choice->work[worker][from];
        if (!within(choice->memory, stage->ring, saved > 0 ? saved : 0, choice->copies,
                    in->weights[to] - in->weights[from]) ||
            (stage->most_work >= 0 && own > stage->most_work))
            return -1;
        for (int i = 0; i < in->nbans; i++) {
            const PlaceBan *ban = &in->ban[i];
            if (ban->stage == s && ban->from == from && ban->to == to && ban->replicas == replicas[s] &&
                (ban->worker < 0 || ban->worker == worker))
                return -1;
        }
        for (int b = from + 1; b < to; b++)
            if (in->pin && in->pin[b])
                return -1;
        int64_t load = own;
        if (before && !before->overlap)
            load += before->transfer[from];
        if (!last && !stage->overlap)
            load += stage->transfer[to];
        most = load > most ? load : most;
        if (!last && stage->overlap && stage->transfer[to] > most)
            most = stage->transfer[to];
        if (s + 2 == in->nstages && in->most_stale >= 0 && in->stale[to] > in->most_stale)
            return -1;
        worker += replicas[s];
    }
    return most;
}

/* A lower last register, so fewer stale weights; then fewer workers; then fewer replicas of the last stage, a lower
 * register before it, fewer replicas of the stage before it, ... */
static inline bool better(const PlaceInput *in, const Best *a, const Best *b)
{
    const int last = in->nstages - 1;
    if (last > 0 && a->cut[last - 1] != b->cut[last - 1])
        return a->cut[last - 1] < b->cut[last - 1];
    if (a->workers != b->workers)
        return a->workers < b->workers;
    for (int s = last; s >= 0; s--) {
        if (s > 0 && a->cut[s - 1] != b->cut[s - 1])
            return a->cut[s - 1] < b->cut[s - 1];
        if (a->replicas[s] != b->replicas[s])
            return a->replicas[s] < b->replicas[s];
    }
    return false;
}

static inline void try_replicas(const PlaceInput *in, Best *here, int stage, Best *best)
{
    if (stage == in->nstages) {
        here->load = defined_load(in, here->cut, here->replicas);
        if (here->load >= 0 &&
            (best->load < 0 || here->load < best->load || (here->load == best->load && better(in, here, best))))
            *best = *here;
        return;
    }
    for (int c = 0; c < in->stage[stage].nchoices; c++) {
        here->replicas[stage] = in->stage[stage].choice[c].replicas;
        here->workers += here->replicas[stage];
        if (here->workers <= in->workers)
            try_replicas(in, here, stage + 1, best);
        here->workers -= here->replicas[stage];
    }
}

static inline void try_all(const PlaceInput *in, Best *here, int next, Best *best)
{
    if (next == in->nstages - 1) {
        try_replicas(in, here, 0, best);
        return;
    }
    for (int p = next ? here->cut[next - 1] + 1 : 1; p < in->n; p++) {
        here->cut[next] = p;
        try_all(in, here, next + 1, best);
    }
}

static inline Best brute_force(const PlaceInput *in)
{
    Best best = {.load = -1}, here = {.load = -1};
    try_all(in, &here, 0, &best);
    return best;
}

/* Two or more stages of a network, on at most so many workers: of all cuts and replicas the one that is found. */
static inline void expect_placed(Placing *p, int nstages, int workers, uint64_t seed)
{
    const Placement placed = placing_solve(p, nstages, workers);
    const Best best = brute_force(&problem_new(p, nstages, workers)->in);
    assert_int_equal(placed.ncuts, best.load < 0 ? -1 : nstages - 1);
    if (best.load < 0)
        return;
    if (llabs(best.load - (int64_t)(placed.load * p->scale + 0.5)) > 1)
        fail_msg("%s, seed %llu, %d stages: %.9g s, brute force %.9g s", p->written->name, (unsigned long long)seed,
                 nstages, placed.load, (double)best.load / p->scale);
    for (int i = 0; i < placed.ncuts; i++)
        if (placed.cut[i].before != p->low[best.cut[i]])
            fail_msg("%s, seed %llu, %d stages: register %d before %d, brute force %d", p->written->name,
                     (unsigned long long)seed, nstages, i, placed.cut[i].before, p->low[best.cut[i]]);
    for (int s = 0; s < nstages; s++)
        assert_int_equal(placed.replicas[s], best.replicas[s]);
}

#endif
