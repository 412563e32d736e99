/* place_solve.c: the exact placement, by a search for the least bottleneck with a linear test of each guess.
 *
 * Test of a bottleneck B: a row holds the boundaries where stage s can begin with w workers taken before it. For each
 * p, stage s with r replicas can end there if some q of its row before p gives load(q, p) <= B; then p is in the row of
 * stage s + 1 and w + r workers. Memory, balance and pins bound q from below by a limit that never falls with p; within
 * that window the best q is the one with the largest work[q] - transfer[q]: a queue of falling maxima gives it in
 * constant time (Lemire 2006). Only boundaries count that s + 1 stages can reach and the others can finish from, each
 * within B: near the least B these are few. So one test is O(n) at most for each stage, worker and choice of replicas,
 * and integers make the search end on the exact least B. */
#include <string.h>

#include "place.h"

typedef struct {
    unsigned char *reached; /* per boundary */
    int first, last;        /* boundaries that are reached lie between these; last -1: none is */
} Row;
typedef struct {
    const PlaceInput *in;
    Row *row;           /* [stage][workers before it]; no memory: so many can't be */
    int *fewest, *most; /* per stage: workers before it */
    int *queue;
    int *last_pin;  /* per boundary: the last pinned one before it; 0: none */
    int64_t *least; /* prefix sums of the work on the fastest device for each part, with the fastest choice */
} Solver;

/* A stage with its first worker and its replicas. */
typedef struct {
    int stage, worker;
    const PlaceChoice *choice;
    const int64_t *work; /* NULL: it cannot be */
} Part;

static Part part_of(const PlaceInput *in, int stage, int worker, const PlaceChoice *choice)
{
    const bool there = worker >= 0 && worker + choice->replicas <= in->workers;
    return (Part){stage, worker, choice, there ? choice->work[worker] : NULL};
}

/* What the cut before stage s adds to it at q, the cut behind it at p. */
static int64_t taking(const PlaceInput *in, int s, int q)
{
    return s > 0 && !in->stage[s - 1].overlap ? in->stage[s - 1].transfer[q] : 0;
}

static int64_t giving(const PlaceInput *in, int s, int p)
{
    return s + 1 < in->nstages && !in->stage[s].overlap ? in->stage[s].transfer[p] : 0;
}

static bool memory_fits(const PlaceInput *in, const Part *part, int q, int p)
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

static bool work_fits(const PlaceInput *in, const Part *part, int q, int p)
{
    const int64_t most = in->stage[part->stage].most_work;
    return most < 0 || part->work[p] - part->work[q] <= most;
}

static bool same_part(const PlaceBan *ban, const Part *part)
{
    return ban->stage == part->stage && ban->replicas == part->choice->replicas &&
           (ban->worker < 0 || ban->worker == part->worker);
}

static bool banned(const PlaceInput *in, const Part *part, int q, int p)
{
    for (int i = 0; i < in->nbans; i++)
        if (in->ban[i].from == q && in->ban[i].to == p && same_part(&in->ban[i], part))
            return true;
    return false;
}

static int64_t load_of(const PlaceInput *in, const Part *part, int q, int p)
{
    return part->work[p] - part->work[q] + taking(in, part->stage, q) + giving(in, part->stage, p);
}

static Row *row_of(const Solver *v, int stage, int used)
{
    return &v->row[(size_t)stage * ((size_t)v->in->workers + 1) + (size_t)used];
}

static bool any_ban(const PlaceInput *in, const Part *part, int p)
{
    for (int i = 0; i < in->nbans; i++)
        if (in->ban[i].to == p && same_part(&in->ban[i], part))
            return true;
    return false;
}

/* A register can stand at p behind stage s. */
static bool cut_fits(const PlaceInput *in, int s, int p, int64_t bottleneck)
{
    if (in->stage[s].overlap && in->stage[s].transfer[p] > bottleneck)
        return false;
    return s + 2 < in->nstages || in->most_stale < 0 || in->stale[p] <= in->most_stale;
}

static bool part_fits(const Solver *v, const Part *part, int q, int p, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    return q >= v->last_pin[p] && load_of(in, part, q, p) <= bottleneck && work_fits(in, part, q, p) &&
           memory_fits(in, part, q, p) && !banned(in, part, q, p);
}

/* n * bottleneck, as far as it counts. */
static int64_t budget(int n, int64_t bottleneck)
{
    int64_t product;
    return checked_mul(n, bottleneck, &product) ? product : INT64_MAX;
}

/* The first boundary behind which at most `work` is left; the last one before which at most `work` stands. */
static int first_from(const Solver *v, int64_t work)
{
    int low = 0, high = v->in->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (v->least[v->in->n] - v->least[middle] <= work)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int last_within(const Solver *v, int64_t work)
{
    int low = 0, high = v->in->n;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (v->least[middle] <= work)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Adds to the row behind what this part can reach from its own. */
static void advance(const Solver *v, const Part *part, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    const int s = part->stage;
    const Row *from = row_of(v, s, part->worker);
    Row *to = row_of(v, s + 1, part->worker + part->choice->replicas);
    const int rest = in->nstages - 1 - s; /* the last stage ends at the end */
    const int least_p = rest ? first_from(v, budget(rest, bottleneck)) : in->n;
    const int begin = least_p > from->first + 1 ? least_p : from->first + 1;
    const int end = last_within(v, budget(s + 1, bottleneck));
    int head = 0, tail = 0, low = from->first, next = from->first;
    for (int p = begin; p <= end; p++) {
        for (; next < p && next <= from->last; next++) {
            if (!from->reached[next])
                continue;
            const int64_t value = part->work[next] - taking(in, s, next);
            while (tail > head && part->work[v->queue[tail - 1]] - taking(in, s, v->queue[tail - 1]) <= value)
                tail--;
            v->queue[tail++] = next;
        }
        if (to->reached[p] || (s + 1 < in->nstages && !cut_fits(in, s, p, bottleneck)))
            continue;
        low = v->last_pin[p] > low ? v->last_pin[p] : low;
        while (low < p && !(work_fits(in, part, low, p) && memory_fits(in, part, low, p)))
            low++;
        while (head < tail && v->queue[head] < low)
            head++;
        if (head == tail)
            continue;
        bool fits = load_of(in, part, v->queue[head], p) <= bottleneck;
        if (fits && in->nbans && any_ban(in, part, p)) {
            fits = false;
            for (int q = low; q < p && q <= from->last && !fits; q++)
                fits = from->reached[q] && part_fits(v, part, q, p, bottleneck);
        }
        if (!fits)
            continue;
        to->reached[p] = 1;
        to->first = p < to->first ? p : to->first;
        to->last = p > to->last ? p : to->last;
    }
}

static bool feasible(const Solver *v, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    Row *begin = row_of(v, 0, 0);
    begin->reached[0] = 1;
    begin->first = begin->last = 0;
    for (int s = 0; s < in->nstages; s++) {
        bool any = false;
        for (int used = v->fewest[s + 1]; used <= v->most[s + 1]; used++) {
            Row *row = row_of(v, s + 1, used);
            memset(row->reached, 0, (size_t)in->n + 1);
            row->first = in->n + 1;
            row->last = -1;
        }
        for (int used = v->fewest[s]; used <= v->most[s]; used++)
            for (int c = 0; c < in->stage[s].nchoices && row_of(v, s, used)->last >= 0; c++) {
                const Part part = part_of(in, s, used, &in->stage[s].choice[c]);
                const int behind = used + part.choice->replicas;
                if (!part.work || behind < v->fewest[s + 1] || behind > v->most[s + 1])
                    continue;
                advance(v, &part, bottleneck);
                any |= row_of(v, s + 1, behind)->last >= 0;
            }
        if (!any)
            return false;
    }
    return true;
}

/* The lowest beginning of stage s that ends at p with `used` workers taken up to there, and its fewest replicas. */
static int lowest_beginning(const Solver *v, int s, int used, int p, int64_t bottleneck, int *replicas)
{
    const PlaceInput *in = v->in;
    int lowest = -1;
    for (int c = 0; c < in->stage[s].nchoices; c++) {
        const Part part = part_of(in, s, used - in->stage[s].choice[c].replicas, &in->stage[s].choice[c]);
        if (!part.work || part.worker < v->fewest[s] || part.worker > v->most[s])
            continue;
        const Row *from = row_of(v, s, part.worker);
        for (int q = from->first; q < p && q <= from->last && (lowest < 0 || q < lowest); q++)
            if (from->reached[q] && part_fits(v, &part, q, p, bottleneck)) {
                lowest = q;
                *replicas = part.choice->replicas;
            }
    }
    return lowest;
}

/* From the end: the last register as low as can be with any number of workers, then the fewest of them; then the
 * others. */
static void read_back(const Solver *v, int64_t bottleneck, int *cut, int *replicas)
{
    const PlaceInput *in = v->in;
    int p = in->n, used = -1, lowest = -1;
    for (int w = v->fewest[in->nstages]; w <= v->most[in->nstages]; w++) {
        int unused;
        const int q =
            row_of(v, in->nstages, w)->last == p ? lowest_beginning(v, in->nstages - 1, w, p, bottleneck, &unused) : -1;
        if (q < 0 || (lowest >= 0 && q >= lowest))
            continue;
        lowest = q;
        used = w;
    }
    for (int s = in->nstages - 1; s >= 0; s--) {
        const int q = lowest_beginning(v, s, used, p, bottleneck, &replicas[s]);
        if (q < 0)
            ICE("place: stage %d has no beginning", s);
        if (s > 0)
            cut[s - 1] = q;
        p = q;
        used -= replicas[s];
    }
}

/* Prefix sums of the least work of each part, over all that a stage may be. */
static void add_least(Solver *v, Arena *arena)
{
    const PlaceInput *in = v->in;
    VEC(const int64_t *) works = {0};
    for (int s = 0; s < in->nstages; s++)
        for (int c = 0; c < in->stage[s].nchoices; c++)
            for (int w = v->fewest[s]; w <= v->most[s]; w++) {
                const Part part = part_of(in, s, w, &in->stage[s].choice[c]);
                bool known = !part.work;
                for (int i = 0; i < works.count && !known; i++)
                    known = works.at[i] == part.work;
                if (!known)
                    *vec_push(arena, &works) = part.work;
            }
    for (int p = 1; p <= in->n; p++) {
        int64_t least = works.count ? INT64_MAX : 0;
        for (int i = 0; i < works.count; i++) {
            const int64_t work = works.at[i][p] - works.at[i][p - 1];
            least = work < least ? work : least;
        }
        v->least[p] = v->least[p - 1] + least;
    }
}

static Solver solver_new(Arena *arena, const PlaceInput *in)
{
    const size_t boundaries = (size_t)in->n + 1, stages = (size_t)in->nstages + 1;
    Solver v = {
        .in = in,
        .row = arena_alloc(arena, sizeof(Row) * stages * ((size_t)in->workers + 1)),
        .fewest = arena_alloc(arena, stages * sizeof(int)),
        .most = arena_alloc(arena, stages * sizeof(int)),
        .queue = arena_alloc(arena, boundaries * sizeof(int)),
        .last_pin = arena_alloc(arena, boundaries * sizeof(int)),
        .least = arena_alloc(arena, boundaries * sizeof(int64_t)),
    };
    int behind = 0; /* workers that the stages behind need at least */
    for (int s = 0; s < in->nstages; s++) {
        const PlaceStage *stage = &in->stage[s];
        v.fewest[s + 1] = v.fewest[s] + stage->choice[0].replicas;
        v.most[s + 1] = v.most[s] + stage->choice[stage->nchoices - 1].replicas;
    }
    for (int s = in->nstages; s >= 0; s--) {
        v.most[s] = v.most[s] < in->workers - behind ? v.most[s] : in->workers - behind;
        behind += s > 0 ? in->stage[s - 1].choice[0].replicas : 0;
        for (int used = v.fewest[s]; used <= v.most[s]; used++)
            *row_of(&v, s, used) = (Row){.reached = arena_alloc(arena, boundaries), .last = -1};
    }
    for (int p = 1; p <= in->n; p++)
        v.last_pin[p] = in->pin && p > 1 && in->pin[p - 1] ? p - 1 : v.last_pin[p - 1];
    add_least(&v, arena);
    return v;
}

/* No placement is slower. */
static int64_t largest_load(const PlaceInput *in)
{
    int64_t work = 0, transfer = 0;
    for (int s = 0; s < in->nstages; s++)
        for (int c = 0; c < in->stage[s].nchoices; c++)
            for (int w = 0; w < in->workers; w++) {
                const Part part = part_of(in, s, w, &in->stage[s].choice[c]);
                work = part.work && part.work[in->n] > work ? part.work[in->n] : work;
            }
    for (int s = 0; s + 1 < in->nstages; s++)
        for (int p = 0; p <= in->n; p++)
            transfer = in->stage[s].transfer[p] > transfer ? in->stage[s].transfer[p] : transfer;
    return work + 2 * transfer;
}

static bool enough(const Solver *v)
{
    return v->in->nstages <= v->in->n && v->fewest[v->in->nstages] <= v->in->workers;
}

bool place_possible(const PlaceInput *in)
{
    Arena *arena = arena_new();
    const Solver v = solver_new(arena, in);
    const bool possible = enough(&v) && feasible(&v, largest_load(in));
    arena_free(arena);
    return possible;
}

int64_t place_solve(const PlaceInput *in, int *cut, int *replicas)
{
    Arena *arena = arena_new();
    const Solver v = solver_new(arena, in);
    int64_t high = largest_load(in), low = 0, best = -1;
    if (enough(&v) && feasible(&v, high)) {
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (feasible(&v, middle))
                high = middle;
            else
                low = middle + 1;
        }
        best = high;
        if (!feasible(&v, best))
            ICE("place: the least bottleneck is not feasible");
        read_back(&v, best, cut, replicas);
    }
    arena_free(arena);
    return best;
}
