/* place_solve.c: the exact placement, by a search for the least bottleneck with a linear test of each guess.
 *
 * Test of a bottleneck B: reach[s] holds the boundaries where stage s can begin. For each p, stage s can end there if
 * some q of reach[s] before p gives load(q, p) <= B. Memory and pins bound q from below by a limit that never falls
 * with p; within that window the best q is the one with the largest work[q] - transfer[q]: a queue of falling maxima
 * gives it in constant time (Lemire 2006). So one test is O(n S), and integers make the search end on the exact least
 * B. */
#include <stdlib.h>
#include <string.h>

#include "place.h"

typedef struct {
    const PlaceInput *in;
    unsigned char *reach; /* [stage][boundary] */
    int *queue;
    int *last_pin; /* per boundary: the last pinned one before it; 0: none */
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
           memory_fits(in, s, q, p) && !banned(in, s, q, p);
}

/* Fills reach[s + 1] from reach[s]. False if nothing is reached. */
static bool advance(const Solver *v, int s, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    const size_t row = (size_t)in->n + 1;
    const unsigned char *from = v->reach + row * (size_t)s;
    unsigned char *to = v->reach + row * (size_t)(s + 1);
    const bool last = s + 1 == in->nstages;
    int head = 0, tail = 0, low = 0;
    bool any = false;
    memset(to, 0, row);
    for (int p = 1; p <= in->n; p++) {
        const int newest = p - 1;
        if (from[newest]) {
            const int64_t value = in->work[s][newest] - taking(in, s, newest);
            while (tail > head && in->work[s][v->queue[tail - 1]] - taking(in, s, v->queue[tail - 1]) <= value)
                tail--;
            v->queue[tail++] = newest;
        }
        if (last ? p < in->n : !cut_fits(in, s, p, bottleneck))
            continue;
        low = v->last_pin[p] > low ? v->last_pin[p] : low;
        while (low < p && !memory_fits(in, s, low, p))
            low++;
        while (head < tail && v->queue[head] < low)
            head++;
        if (head == tail)
            continue;
        const int best = v->queue[head];
        bool fits = in->work[s][p] - in->work[s][best] + taking(in, s, best) + giving(in, s, p) <= bottleneck;
        if (fits && in->nbans && any_ban(in, s, p)) {
            fits = false;
            for (int q = low; q < p && !fits; q++)
                fits = from[q] && stage_fits(v, s, q, p, bottleneck);
        }
        to[p] = fits;
        any |= fits;
    }
    return any;
}

static bool feasible(const Solver *v, int64_t bottleneck)
{
    const PlaceInput *in = v->in;
    memset(v->reach, 0, (size_t)in->n + 1);
    v->reach[0] = 1;
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
        int q = v->last_pin[p];
        while (q < p && !(from[q] && stage_fits(v, s, q, p, bottleneck)))
            q++;
        if (q == p)
            ICE("place: stage %d has no beginning", s);
        cut[s - 1] = p = q;
    }
}

static Solver solver_new(Arena *arena, const PlaceInput *in)
{
    const size_t row = (size_t)in->n + 1;
    Solver v = {in, arena_alloc(arena, row * (size_t)(in->nstages + 1)), arena_alloc(arena, row * sizeof(int)),
                arena_alloc(arena, row * sizeof(int))};
    for (int p = 1; p <= in->n; p++)
        v.last_pin[p] = in->pin && p > 1 && in->pin[p - 1] ? p - 1 : v.last_pin[p - 1];
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
        if (p <= q || !memory_fits(in, s, q, p) || banned(in, s, q, p))
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
