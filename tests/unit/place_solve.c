/* place_solve.c: the solver equals brute force over all cuts and replicas, on random numbers under every kind of limit;
 * long chains are placed in time. Seeds are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "place_brute.h"
#include "rt.h"

/* The load. */
static int64_t expect_equal(const PlaceInput *in, uint64_t seed)
{
    int cut[MOST_STAGES] = {0}, replicas[MOST_STAGES] = {0};
    const int64_t load = place_solve(in, cut, replicas);
    const Best best = brute_force(in);
    if (load != best.load)
        fail_msg("seed %llu: load %lld, brute force %lld", (unsigned long long)seed, (long long)load,
                 (long long)best.load);
    assert_int_equal(place_possible(in), best.load >= 0);
    if (load < 0)
        return load;
    assert_int_equal(defined_load(in, cut, replicas), load);
    for (int i = 0; i + 1 < in->nstages; i++)
        if (cut[i] != best.cut[i])
            fail_msg("seed %llu: cut %d at %d, brute force %d", (unsigned long long)seed, i, cut[i], best.cut[i]);
    for (int s = 0; s < in->nstages; s++)
        if (replicas[s] != best.replicas[s])
            fail_msg("seed %llu: stage %d has %d replicas, brute force %d", (unsigned long long)seed, s, replicas[s],
                     best.replicas[s]);
    return load;
}

static int below(uint64_t seed, uint64_t *counter, int n)
{
    return (int)(pn_random(seed, (*counter)++) % (uint64_t)n);
}

enum { CHOICES = 4, MOST_WORKERS = 8 };

/* All that a problem points to. */
typedef struct {
    PlaceInput in;
    PlaceStage stage[MOST_STAGES];
    PlaceChoice choice[MOST_STAGES][CHOICES];
    const int64_t *works[MOST_STAGES][CHOICES][MOST_WORKERS];
    int64_t work[2][CHOICES][MOST_N + 1], transfer[2][MOST_N + 1];
    int64_t stale[MOST_N + 1], saved[MOST_N + 1], before[MOST_N + 1], weights[MOST_N + 1];
    bool pin[MOST_N + 1];
    PlaceBan ban[4];
} Numbers;

/* Up to n boundaries; with `workers` up to so many beyond one a stage. */
static void random_numbers(Numbers *r, uint64_t seed, int n, int workers)
{
    static const int replicas[CHOICES] = {1, 2, 3, 5};
    const uint64_t key = pn_key(seed, "place");
    uint64_t at = 0;
    *r = (Numbers){0};
    PlaceInput *in = &r->in;
    in->n = 1 + below(key, &at, n);
    in->nstages = 1 + below(key, &at, MOST_STAGES);
    in->workers = in->nstages + (workers ? below(key, &at, workers + 1) : 0);
    in->workers = in->workers < MOST_WORKERS ? in->workers : MOST_WORKERS;
    for (int b = 1; b <= in->n; b++) {
        for (int k = 0; k < 2; k++) {
            const int work = below(key, &at, 4) * below(key, &at, 30), sum = below(key, &at, 3);
            for (int c = 0; c < CHOICES; c++)
                r->work[k][c][b] = r->work[k][c][b - 1] + work / replicas[c] + (c ? sum : 0);
            r->transfer[k][b] = below(key, &at, 40);
        }
        r->stale[b] = r->stale[b - 1] + below(key, &at, 3) * below(key, &at, 10);
        r->saved[b] = r->saved[b - 1] + below(key, &at, 20);
        r->weights[b] = r->weights[b - 1] + below(key, &at, 10);
        r->before[b] = r->saved[b] + below(key, &at, 15);
        r->before[b] = r->before[b] > r->before[b - 1] ? r->before[b] : r->before[b - 1];
    }
    const bool capped = below(key, &at, 3) == 0, limited = below(key, &at, 3) == 0;
    int kind[MOST_WORKERS];
    for (int w = 0; w < MOST_WORKERS; w++)
        kind[w] = below(key, &at, 2);
    for (int s = 0; s < in->nstages; s++) {
        PlaceStage *stage = &r->stage[s];
        const int copies = 2 + below(key, &at, 3);
        const int64_t mean = r->work[0][0][in->n] / in->nstages, memory = 20 + below(key, &at, 400);
        *stage = (PlaceStage){.choice = r->choice[s],
                              .ring = 1 + 2 * (in->nstages - 1 - s),
                              .most_work = limited ? mean + below(key, &at, (int)mean + 1) : -1,
                              .transfer = r->transfer[below(key, &at, 2)],
                              .overlap = below(key, &at, 2)};
        for (int c = 0; c < CHOICES; c++) {
            if (c > 0 && (!workers || below(key, &at, 4) == 0))
                continue;
            const int i = stage->nchoices++;
            for (int w = 0; w + replicas[c] <= MOST_WORKERS; w++) { /* replicas are on workers of one kind */
                bool same = true;
                for (int k = 1; k < replicas[c]; k++)
                    same &= kind[w + k] == kind[w];
                r->works[s][i][w] = same || below(key, &at, 2) ? r->work[kind[w]][c] : NULL;
            }
            r->choice[s][i] = (PlaceChoice){.replicas = replicas[c],
                                            .work = r->works[s][i],
                                            .copies = copies + replicas[c] - 1,
                                            .memory = capped ? memory : -1};
        }
    }
    for (int i = below(key, &at, 3); i > 1 && in->n > 1; i--)
        r->pin[1 + below(key, &at, in->n - 1)] = true;
    in->stage = r->stage;
    in->stale = r->stale;
    in->most_stale = below(key, &at, 3) ? -1 : below(key, &at, (int)r->stale[in->n] + 1);
    in->pin = r->pin;
    in->saved = r->saved;
    in->saved_before = r->before;
    in->weights = r->weights;
    for (int i = below(key, &at, 5); i > 0; i--)
        r->ban[in->nbans++] = (PlaceBan){.stage = below(key, &at, in->nstages),
                                         .worker = below(key, &at, 2) ? -1 : below(key, &at, in->workers),
                                         .replicas = replicas[below(key, &at, workers ? 2 : 1)],
                                         .from = below(key, &at, in->n),
                                         .to = 1 + below(key, &at, in->n)};
    in->ban = r->ban;
}

static void random_numbers_equal_brute_force(void **state)
{
    (void)state;
    int possible = 0, impossible = 0, replicated = 0;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        Numbers r;
        random_numbers(&r, seed, seed % 50 == 0 ? MOST_N : 14, seed % 2 && seed % 50 ? 4 : 0);
        *(expect_equal(&r.in, seed) < 0 ? &impossible : &possible) += 1;
        int cut[MOST_STAGES], replicas[MOST_STAGES];
        if (place_solve(&r.in, cut, replicas) >= 0)
            for (int s = 0; s < r.in.nstages; s++)
                if (replicas[s] > 1) {
                    replicated++;
                    break;
                }
    }
    print_message("# %d possible, %d impossible problems, %d with replicas\n", possible, impossible, replicated);
    assert_true(possible > 1200 && impossible > 200 && replicated > 300);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void a_long_chain_is_placed_in_time(void **state)
{
    (void)state;
    double took[3];
    for (int i = 0; i < 3; i++) {
        const int n = 2500 << i, nstages = 64;
        int64_t *work = calloc((size_t)n + 1, sizeof *work), *nothing = calloc((size_t)n + 1, sizeof *nothing);
        PlaceStage stage[64];
        PlaceChoice choice = {.replicas = 1, .memory = -1};
        const int64_t *works[64];
        int cut[64], replicas[64];
        for (int b = 1; b <= n; b++)
            work[b] = work[b - 1] + (int64_t)(pn_random(7, (uint64_t)b) % 1000000000);
        for (int s = 0; s < nstages; s++) {
            works[s] = work;
            stage[s] = (PlaceStage){
                .choice = &choice, .nchoices = 1, .ring = 1, .most_work = -1, .transfer = nothing, .overlap = true};
        }
        choice.work = works;
        const PlaceInput in = {
            .n = n, .nstages = nstages, .workers = nstages, .stage = stage, .stale = nothing, .most_stale = -1};
        const double begin = seconds();
        const int64_t load = place_solve(&in, cut, replicas);
        took[i] = seconds() - begin;
        print_message("# %d layers, %d stages: %.0f ms\n", n, nstages, 1000 * took[i]);
        assert_true(load >= work[n] / nstages && load <= work[n] / nstages + 1000000000);
        free(work);
        free(nothing);
    }
    assert_true(took[2] < 1.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_numbers_equal_brute_force),
        cmocka_unit_test(a_long_chain_is_placed_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
