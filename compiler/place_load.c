/* place_load.c: what given cuts and replicas come to; the limits are checked here one by one, independently of the
 * solver's search. */
#include "place_part.h"

int64_t place_load(const PlaceInput *in, const int *cut, const int *replicas)
{
    int64_t most = 0;
    int worker = 0;
    for (int s = 0; s < in->nstages; s++) {
        const int q = s ? cut[s - 1] : 0, p = s + 1 < in->nstages ? cut[s] : in->n;
        const PlaceStage *stage = &in->stage[s];
        int c = 0;
        while (c < stage->nchoices && stage->choice[c].replicas != replicas[s])
            c++;
        if (c == stage->nchoices || p <= q)
            return -1;
        const Part part = part_of(in, s, worker, &stage->choice[c]);
        worker += replicas[s];
        if (!part.work || !work_fits(in, &part, q, p) || !memory_fits(in, &part, q, p) || banned(in, &part, q, p))
            return -1;
        const int64_t load = load_of(in, &part, q, p);
        most = load > most ? load : most;
        for (int b = q + 1; b < p; b++)
            if (in->pin && in->pin[b])
                return -1;
        if (s + 1 == in->nstages)
            continue;
        if (stage->overlap && stage->transfer[p] > most)
            most = stage->transfer[p];
        if (s + 2 == in->nstages && in->most_stale >= 0 && in->stale[p] > in->most_stale)
            return -1;
    }
    return most;
}
