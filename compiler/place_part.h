/* place_part.h: one stage with its workers, between two boundaries: its load and its limits, as place.h defines them. */
#ifndef PNETC_PLACE_PART_H
#define PNETC_PLACE_PART_H

#include "place.h"

/* A stage with its first worker and its replicas. */
typedef struct {
    int stage, worker;
    const PlaceChoice *choice;
    const int64_t *work; /* NULL: it cannot be */
} Part;

static inline Part part_of(const PlaceInput *in, int stage, int worker, const PlaceChoice *choice)
{
    const bool there = worker >= 0 && worker + choice->replicas <= in->workers;
    return (Part){stage, worker, choice, there ? choice->work[worker] : NULL};
}

/* What the cut before stage s adds to it at q, the cut behind it at p. */
static inline int64_t taking(const PlaceInput *in, int s, int q)
{
    return s > 0 && !in->stage[s - 1].overlap ? in->stage[s - 1].transfer[q] : 0;
}

static inline int64_t giving(const PlaceInput *in, int s, int p)
{
    return s + 1 < in->nstages && !in->stage[s].overlap ? in->stage[s].transfer[p] : 0;
}

static inline bool memory_fits(const PlaceInput *in, const Part *part, int q, int p)
{
    const int64_t cap = part->choice->memory;
    if (cap < 0)
        return true;
    const int64_t saved = in->saved[p] - in->saved_before[q];
    int64_t a = 0, b = 0, sum;
    if (saved > 0 && !checked_mul(saved, in->stage[part->stage].ring, &a))
        return false;
    return checked_mul(in->weights[p] - in->weights[q], part->choice->copies, &b) && checked_add(a, b, &sum) &&
           sum <= cap;
}

static inline bool work_fits(const PlaceInput *in, const Part *part, int q, int p)
{
    const int64_t most = in->stage[part->stage].most_work;
    return most < 0 || part->work[p] - part->work[q] <= most;
}

static inline bool same_part(const PlaceBan *ban, const Part *part)
{
    return ban->stage == part->stage && ban->replicas == part->choice->replicas &&
           (ban->worker < 0 || ban->worker == part->worker);
}

static inline bool banned(const PlaceInput *in, const Part *part, int q, int p)
{
    for (int i = 0; i < in->nbans; i++)
        if (in->ban[i].from == q && in->ban[i].to == p && same_part(&in->ban[i], part))
            return true;
    return false;
}

static inline int64_t load_of(const PlaceInput *in, const Part *part, int q, int p)
{
    return part->work[p] - part->work[q] + taking(in, part->stage, q) + giving(in, part->stage, p);
}

#endif
