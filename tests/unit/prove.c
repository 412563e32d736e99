/* prove.c: the errors that the proof of a schedule must find when they are planted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "scheduled.h"

static void assert_found(const char *wrong, const char *part)
{
    if (!wrong)
        fail_msg("nothing was found, expected: %s", part);
    if (!strstr(wrong, part))
        fail_msg("found '%s', expected: %s", wrong, part);
}

static Sched *planted(Bench *bench, int nstages)
{
    add_phase(bench, "lockstep", "stash", 0);
    Sched *sched = scheduled(bench, make_pipe(bench->arena, nstages, 0));
    assert_non_null(sched);
    return sched;
}

static void too_few_slots_are_a_deadlock(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    Sched *sched = planted(bench, 3);
    sched->forward_slots[1] = 0;
    assert_found(sched_prove(bench->arena, sched, 10, 0),
                 "deadlock: stage 0 waits for room for minibatch 4 of v0 to stage 1");
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 1 waits for room for minibatch 0 of v1 to stage 2");
    sched->forward_slots[1] = 2;
    sched->gradient_slots[0] = 0;
    assert_found(sched_prove(bench->arena, sched, 10, 0), "room for minibatch 0 of the gradient of v0 to stage 0");
    sched->gradient_slots[0] = 1;
    sched->forward_slots[0] = 2; /* the backward of stage 1 reads them: 3 are in flight there */
    assert_found(sched_prove(bench->arena, sched, 10, 0), "deadlock: stage 0 waits for room for minibatch 2 of v0");
    sched->forward_slots[0] = 4;
    assert_null(sched_prove(bench->arena, sched, 10, 0));
    sched->test_slots[0] = 0;
    assert_null(sched_prove(bench->arena, sched, 10, 0));
    assert_found(sched_prove(bench->arena, sched, 10, 4), "deadlock: stage 0 waits for room");
    arena_free(bench->arena);
}

/* One slot less than the ring never works. */
static void a_ring_too_small_is_an_overwrite(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    Sched *sched = planted(bench, 3);
    for (int s = 0; s < 3; s++) {
        if (sched->ring[s] == 1)
            continue;
        sched->ring[s]--;
        assert_found(sched_prove(bench->arena, sched, 10, 0), "overwrites the saved values of minibatch 0");
        sched->ring[s]++;
    }
    Edge *edge = &sched->pipe->edge[0];
    edge->kept_producer = true;
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 0 overwrites minibatch 0 in the register of v0");
    sched->forward_slots[0] = sched->ring[0];
    assert_null(sched_prove(bench->arena, sched, 10, 0));
    arena_free(bench->arena);
}

static void too_few_versions_are_found(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    Sched *sched = planted(bench, 3);
    sched->versions[1]--;
    assert_found(sched_prove(bench->arena, sched, 10, 0),
                 "stage 1 has overwritten the weights that the forward of minibatch");
    arena_free(bench->arena);
}

/* The steps of `sched` for ten minibatches, to be spoilt. */
static Step **all_steps(Bench *bench, const Sched *sched, int *count)
{
    Step **step = arena_alloc(bench->arena, sizeof *step * (size_t)sched->pipe->nstages);
    for (int s = 0; s < sched->pipe->nstages; s++)
        step[s] = sched_steps(bench->arena, sched, s, 10, &count[s]);
    return step;
}

static const char *prove_steps(Bench *bench, const Sched *sched, Step **step, const int *count)
{
    return sched_prove_steps(bench->arena, sched, (const Step *const *)step, count, 10, 0);
}

static void spoilt_steps_are_found(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    const Sched *sched = planted(bench, 3);
    int count[3];
    Step **step = all_steps(bench, sched, count);
    assert_null(prove_steps(bench, sched, step, count));

    /* stage 2 is F0 B0 U0 F1 B1 U1 ... */
    step[2][1].n = 1;
    assert_found(prove_steps(bench, sched, step, count),
                 "stage 2 does the backward of minibatch 1 where that of 0 is next");
    step[2][1] = (Step){STEP_UPDATE, 0};
    assert_found(prove_steps(bench, sched, step, count), "stage 2 updates with minibatch 0 before its backward");
    step[2][1] = (Step){STEP_FORWARD, 1};
    assert_found(prove_steps(bench, sched, step, count), "stage 2 overwrites the saved values of minibatch 0");

    step = all_steps(bench, sched, count);
    count[1]--;
    assert_found(prove_steps(bench, sched, step, count), "stage 1 ends without the update of minibatch 9");
    count[1]--;
    assert_found(prove_steps(bench, sched, step, count), "stage 0 waits for minibatch 9 of the gradient of v0");

    step = all_steps(bench, sched, count);
    step[2][0].n = 1;
    assert_found(prove_steps(bench, sched, step, count),
                 "stage 2 does the forward of minibatch 1 where that of 0 is next");
    step[2][0] = (Step){STEP_BACKWARD, 0};
    assert_found(prove_steps(bench, sched, step, count), "stage 2 goes back on minibatch 0 before its forward");
    arena_free(bench->arena);
}

static void spoilt_weight_parts_are_found(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    add_phase(bench, "zb_h1", "stale", 0);
    Pipe *pipe = make_pipe(bench->arena, 3, 0);
    ((Graph *)pipe->graph)->microbatches = 4;
    const Sched *sched = scheduled(bench, pipe);
    assert_non_null(sched);
    int count[3];
    for (int s = 0; s < 3; s++)
        sched_steps(bench->arena, sched, s, 10, &count[s]);
    Step **step = all_steps(bench, sched, count);
    assert_null(prove_steps(bench, sched, step, count));

    /* stage 2 is F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 U0 ... */
    step[2][6].n = 1;
    assert_found(prove_steps(bench, sched, step, count),
                 "stage 2 does the weight part of minibatch 1 where that of 0 is next");
    step = all_steps(bench, sched, count);
    step[2][1] = (Step){STEP_WEIGHTS, 0};
    assert_found(prove_steps(bench, sched, step, count),
                 "stage 2 does the weight part of minibatch 0 before its input part");
    step = all_steps(bench, sched, count);
    const Step early = step[2][12];
    step[2][12] = step[2][11];
    step[2][11] = early;
    assert_found(prove_steps(bench, sched, step, count), "stage 2 updates with minibatch 0 before its backward");
    step = all_steps(bench, sched, count);
    const Step late = step[2][6]; /* ... F2 B2 F3 B3 W0 W1 */
    step[2][6] = step[2][7];
    step[2][7] = step[2][8];
    step[2][8] = late;
    assert_found(prove_steps(bench, sched, step, count), "stage 2 overwrites the saved values of minibatch 0");
    ((Sched *)sched)->ring[2] = 4;
    assert_found(prove_steps(bench, sched, step, count), "stage 2 overwrites the gradients of minibatch 0");
    step = all_steps(bench, sched, count);
    count[1] -= 2;
    assert_found(prove_steps(bench, sched, step, count), "stage 1 ends without the weight part of minibatch 39");
    arena_free(bench->arena);
}

static void halves_need_two_versions(void **state)
{
    (void)state;
    Bench *bench = bench_new();
    add_phase(bench, "lockstep", "stale", 0);
    Pipe *pipe = make_pipe(bench->arena, 3, 0);
    halve(pipe);
    Sched *sched = scheduled(bench, pipe);
    assert_null(sched_prove(bench->arena, sched, 10, 0));
    sched->versions[1] = 1;
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 1 waits for its forward half at minibatch 0");
    sched->versions[1] = 2;
    sched->ring[0] = 0;
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 0 waits for its backward half at minibatch 0");
    sched->ring[0] =
        1; /* the forward half does not come to where it takes the weights of update 0, and update 1 waits */
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 0 waits for its forward half at minibatch 1");
    sched->versions[0] = 6; /* with more of them it is slow and legal: a forward waits for the backward before */
    assert_null(sched_prove(bench->arena, sched, 10, 0));
    sched->forward_slots[1] = 0;
    assert_found(sched_prove(bench->arena, sched, 10, 0), "stage 1 waits for room for minibatch 0 of v1 to stage 2");
    arena_free(bench->arena);
}

static void no_update(OrderPlace at, StageOrder *out)
{
    order_add(out, at.microbatches, "FB");
}

static void upside_down(OrderPlace at, StageOrder *out)
{
    out->warmup = at.stage;
    order_add(out, 1, "FBU");
}

static void faulty_orders_are_errors(void **state)
{
    (void)state;
    static void (*const faulty[])(OrderPlace, StageOrder *) = {no_update, upside_down};
    for (int i = 0; i < COUNT(faulty); i++) {
        Bench *bench = bench_new();
        const OrderDef order = {.name = "faulty", .doc = "", .source = "", .order = faulty[i]};
        add_phase(bench, "sequential", "stale", 0);
        bench->settings.pipeline.phase[0].order = &order;
        assert_null(schedule(bench->arena, bench->diags, make_pipe(bench->arena, 3, 0), &bench->settings));
        assert_int_equal(diag_errors(bench->diags), 1);
        arena_free(bench->arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_few_slots_are_a_deadlock),  cmocka_unit_test(a_ring_too_small_is_an_overwrite),
        cmocka_unit_test(too_few_versions_are_found),    cmocka_unit_test(spoilt_steps_are_found),
        cmocka_unit_test(spoilt_weight_parts_are_found), cmocka_unit_test(faulty_orders_are_errors),
        cmocka_unit_test(halves_need_two_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
