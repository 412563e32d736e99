/* place_solve.c: the exact placement, by a search for the least bottleneck with a linear test of each guess.
 *
 * Test of a bottleneck B: reach[s] holds the boundaries where stage s can begin. For each p, stage s can end there if
 * some q of reach[s] before p gives load(q, p) <= B. Memory, balance and pins bound q from below by a limit that never falls
 * with p; within that window the best q is the one with the largest work[q] - transfer[q]: a queue of falling maxima
 * gives it in constant time (Lemire 2006). Only boundaries count that s + 1 stages can reach and the others can finish
 * from, each within B: near the least B these are few. So one test is O(n S) at most, and integers make the search end
 * on the exact least B. */
#include "place.h"

typedef struct {
    const PlaceInput *in;
    unsigned char *reach; /* [stage][boundary]; what lies outside of first and last is not set */
    int *first, *last;    /* per stage: boundaries that are reached lie between these */
    int *queue;
    int *last_pin;  /* per boundary: the last pinned one before it; 0: none */
    int64_t *least; /* prefix sums of the work on the fastest device for each part */
} Solver;

/* What the cut before stage s adds to it at q, the cut behind it at p. */
static int64_t taking(const PlaceInput *in, int s, int q)
{
    return s > 0 && !in->overlap[s - 1] ? in->transfer[s - 1][q] : 0;
}

static int64_t giving(const PlaceInput *in, int s, int p)
{
    return s + 1 < in->nstages && !in->overlap[s] ? in->transfer[s][p] : 0;
}

static bool memory_fits(const PlaceInput *in, int s, int q, int p)
{
    if (!in->memory || in->memory[s] < 0)
        return true;
    const int64_t saved = in->saved[p] - in->saved_before[q], cap = in->memory[s];
    int64_t a = 0, b = 0, sum;
    if (saved > 0 && !checked_mul(saved, in->ring[s], &a))
        return false;
    return checked_mul(in->weights[p] - in->weights[q], in->copies[s], &b) && checked_add(a, b, &sum) && sum <= cap;
}

static bool work_fits(const PlaceInput *in, int s, int q, int p)
{
    return !in->most_work || in->work[s][p] - in->work[s][q] <= in->most_work[s];
}

static bool banned(const PlaceInput *in, int s, int q, int p)
{
    for (int i = 0; i < in->nbans; i++)
        if (in->ban[i].stage == s && in->ban[i].from == q && in->ban[i].to == p)
            return true;
    return false;
}

static bool any_ban(const PlaceInput *in, int s, int p)
{
    for (int i = 0; i < in->nbans; i++)
        if (in->ban[i].stage == s && in->ban[i].to == p)
            return true;
    return false;
}

/* A register can stand at p behind stage s. */
static bool cut_fits(const PlaceInput *in, int s, int p, int64_t bottleneck)
{
    if (in->overlap[s] && in->transfer[s][p] > bottleneck)
        return false;
    return s + 2 < in->nstages || in->most_stale < 0 || in->stale[p] <= in->most_stale;
}

static bool stage_fits(const Solver *v, int s, int q, int p, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    return q >= v->last_pin[p] && in->work[s][p] - in->work[s][q] + taking(in, s, q) + giving(in, s, p) <= bottleneck &&
           work_fits(in, s, q, p) && memory_fits(in, s, q, p) && !banned(in, s, q, p);
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

/* Fills reach[s + 1] from reach[s]. False if nothing is reached. */
static bool advance(const Solver *v, int s, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    const size_t row = (size_t)in->n + 1;
    const unsigned char *from = v->reach + row * (size_t)s;
    unsigned char *to = v->reach + row * (size_t)(s + 1);
    const int rest = in->nstages - 1 - s; /* the last stage ends at the end */
    const int least_p = rest ? first_from(v, budget(rest, bottleneck)) : in->n;
    const int begin = least_p > v->first[s] + 1 ? least_p : v->first[s] + 1;
    const int end = last_within(v, budget(s + 1, bottleneck));
    int head = 0, tail = 0, low = v->first[s], next = v->first[s];
    v->first[s + 1] = in->n + 1;
    v->last[s + 1] = -1;
    for (int p = begin; p <= end; p++) {
        for (; next < p && next <= v->last[s]; next++) {
            if (!from[next])
                continue;
            const int64_t value = in->work[s][next] - taking(in, s, next);
            while (tail > head && in->work[s][v->queue[tail - 1]] - taking(in, s, v->queue[tail - 1]) <= value)
                tail--;
            v->queue[tail++] = next;
        }
        to[p] = 0;
        if (s + 1 < in->nstages && !cut_fits(in, s, p, bottleneck))
            continue;
        low = v->last_pin[p] > low ? v->last_pin[p] : low;
        while (low < p && !(work_fits(in, s, low, p) && memory_fits(in, s, low, p)))
            low++;
        while (head < tail && v->queue[head] < low)
            head++;
        if (head == tail)
            continue;
        const int best = v->queue[head];
        bool fits = in->work[s][p] - in->work[s][best] + taking(in, s, best) + giving(in, s, p) <= bottleneck;
        if (fits && in->nbans && any_ban(in, s, p)) {
            fits = false;
            for (int q = low; q < p && q <= v->last[s] && !fits; q++)
                fits = from[q] && stage_fits(v, s, q, p, bottleneck);
        }
        to[p] = fits;
        if (fits) {
            v->first[s + 1] = p < v->first[s + 1] ? p : v->first[s + 1];
            v->last[s + 1] = p;
        }
    }
    return v->last[s + 1] >= 0;
}

static bool feasible(const Solver *v, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    v->reach[0] = 1;
    v->first[0] = v->last[0] = 0;
    for (int s = 0; s < in->nstages; s++)
        if (!advance(v, s, bottleneck))
            return false;
    return true;
}

/* From the end: the lowest beginning of each stage that the stages before it reach. */
static void read_back(const Solver *v, int64_t bottleneck, int *cut)
{
    const PlaceInput *in = v->in;
    int p = in->n;
    for (int s = in->nstages - 1; s > 0; s--) {
        const unsigned char *from = v->reach + ((size_t)in->n + 1) * (size_t)s;
        int q = v->first[s];
        while (q < p && q <= v->last[s] && !(from[q] && stage_fits(v, s, q, p, bottleneck)))
            q++;
        if (q == p || q > v->last[s])
            ICE("place: stage %d has no beginning", s);
        cut[s - 1] = p = q;
    }
}

static Solver solver_new(Arena *arena, const PlaceInput *in)
{
    const size_t row = (size_t)in->n + 1, stages = (size_t)in->nstages + 1;
    Solver v = {
        .in = in,
        .reach = arena_alloc(arena, row * stages),
        .first = arena_alloc(arena, stages * sizeof(int)),
        .last = arena_alloc(arena, stages * sizeof(int)),
        .queue = arena_alloc(arena, row * sizeof(int)),
        .last_pin = arena_alloc(arena, row * sizeof(int)),
        .least = arena_alloc(arena, row * sizeof(int64_t)),
    };
    for (int p = 1; p <= in->n; p++) {
        v.last_pin[p] = in->pin && p > 1 && in->pin[p - 1] ? p - 1 : v.last_pin[p - 1];
        int64_t least = INT64_MAX;
        for (int s = 0; s < in->nstages; s++)
            if (s == 0 || in->work[s] != in->work[s - 1])
                least = in->work[s][p] - in->work[s][p - 1] < least ? in->work[s][p] - in->work[s][p - 1] : least;
        v.least[p] = v.least[p - 1] + least;
    }
    return v;
}

/* No placement is slower. */
static int64_t largest_load(const PlaceInput *in)
{
    int64_t work = 0, transfer = 0;
    for (int s = 0; s < in->nstages; s++)
        work = in->work[s][in->n] > work ? in->work[s][in->n] : work;
    for (int c = 0; c + 1 < in->nstages; c++)
        for (int p = 0; p <= in->n; p++)
            transfer = in->transfer[c][p] > transfer ? in->transfer[c][p] : transfer;
    return work + 2 * transfer;
}

bool place_possible(const PlaceInput *in)
{
    Arena *arena = arena_new();
    const Solver v = solver_new(arena, in);
    const bool possible = in->nstages <= in->n && feasible(&v, largest_load(in));
    arena_free(arena);
    return possible;
}

int64_t place_solve(const PlaceInput *in, int *cut)
{
    Arena *arena = arena_new();
    const Solver v = solver_new(arena, in);
    int64_t high = largest_load(in), low = 0, best = -1;
    if (in->nstages <= in->n && feasible(&v, high)) {
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
        read_back(&v, best, cut);
    }
    arena_free(arena);
    return best;
}

int64_t place_load(const PlaceInput *in, const int *cut)
{
    int64_t most = 0;
    for (int s = 0; s < in->nstages; s++) {
        const int q = s ? cut[s - 1] : 0, p = s + 1 < in->nstages ? cut[s] : in->n;
        const int64_t load = in->work[s][p] - in->work[s][q] + taking(in, s, q) + giving(in, s, p);
        most = load > most ? load : most;
        if (p <= q || !work_fits(in, s, q, p) || !memory_fits(in, s, q, p) || banned(in, s, q, p))
            return -1;
        for (int b = q + 1; b < p; b++)
            if (in->pin && in->pin[b])
                return -1;
        if (s + 1 == in->nstages)
            continue;
        if (in->overlap[s] && in->transfer[s][p] > most)
            most = in->transfer[s][p];
        if (s + 2 == in->nstages && in->most_stale >= 0 && in->stale[p] > in->most_stale)
            return -1;
    }
    return most;
}
