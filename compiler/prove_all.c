/* prove_all.c: which runs prove a schedule: short ones, in which the pipe fills, runs steadily and drains, with tests
 * in between. */
#include "sched.h"

/* Proofs of one run without a test, then with one after each of the given updates. */
static const char *prove_run(Arena *arena, const Sched *sched, int64_t minibatches, const int64_t *after, int nafter)
{
    const int nstages = sched->pipe->nstages;
    const Step **step = arena_alloc(arena, sizeof *step * (size_t)nstages);
    int *count = arena_alloc(arena, sizeof *count * (size_t)nstages);
    for (int s = 0; s < nstages; s++)
        step[s] = sched_steps(arena, sched, s, minibatches, &count[s]);
    const char *wrong = NULL;
    for (int i = 0; i < nafter && !wrong; i++)
        wrong = sched_prove_steps(arena, sched, step, count, minibatches, after[i]);
    return wrong;
}

const char *sched_prove(Arena *arena, const Sched *sched, int64_t minibatches, int64_t test_after)
{
    return prove_run(arena, sched, minibatches, &test_after, 1);
}

/* A copy whose phases are just long enough to fill, run steadily and drain; *minibatches: of all of them. */
static Sched *shortened(Arena *arena, const Sched *sched, int64_t *minibatches)
{
    enum { STEADY = 8 };
    const int64_t microbatches = sched->pipe->graph->microbatches;
    int64_t ring = 1;
    for (int s = 0; s < sched->pipe->nstages; s++)
        ring = sched->ring[s] > ring ? sched->ring[s] : ring;
    Sched *copy = arena_alloc(arena, sizeof *copy);
    *copy = *sched;
    copy->phase = arena_alloc(arena, sizeof *copy->phase * (size_t)sched->nphases);
    *minibatches = 0;
    for (int p = 0; p < sched->nphases; p++) {
        PhaseChoice *choice = arena_alloc(arena, sizeof *choice);
        *choice = *sched->phase[p].choice;
        const int64_t enough = (ring + microbatches - 1) / microbatches + (microbatches > 1 ? STEADY / 2 : STEADY);
        if (choice->minibatches == 0 || choice->minibatches > enough)
            choice->minibatches = enough;
        *minibatches += choice->minibatches;
        copy->phase[p] = sched->phase[p];
        copy->phase[p].choice = choice;
    }
    return copy;
}

const char *sched_prove_all(Arena *arena, const Sched *sched)
{
    /* Every update gets its test where that many steps suffice, else evenly chosen ones, the first and the last: the
     * steady state repeats with every minibatch. */
    enum { STEP_BUDGET = 60000 };
    Arena *scratch = arena_new();
    int64_t n;
    const Sched *brief = shortened(scratch, sched, &n);
    const int64_t affordable = STEP_BUDGET / (3 * n * sched->pipe->graph->microbatches * sched->pipe->nstages);
    const int64_t every = affordable >= n ? 1 : n / (affordable + 2) + 1;
    VEC(int64_t) after = {0};
    *vec_push(scratch, &after) = 0;
    for (int64_t m = 1; m <= n; m += every)
        *vec_push(scratch, &after) = m;
    *vec_push(scratch, &after) = n;

    const char *wrong = sched_prove(scratch, brief, 1, 1);
    if (!wrong)
        wrong = sched_prove(scratch, brief, n / 3 + 1, 0);
    if (!wrong)
        wrong = prove_run(scratch, brief, n, after.at, after.count);
    if (wrong) /* outlives the arena of the proof */
        wrong = arena_printf(arena, "%s", wrong);
    arena_free(scratch);
    return wrong;
}
