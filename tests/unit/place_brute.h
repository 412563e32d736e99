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
        here->load = place_load(in, here->cut, here->replicas);
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
