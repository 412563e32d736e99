/* The step generator: which steps a stage does, in which order, for phases, warm-ups, drains, tests and interrupts. One
 * stage whose functions write down what they are asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/checkpoint.h"
#include "core/choices.h"
#include "core/driver.h"
#include "core/interrupt.h"
#include "core/stage.h"

static char trace[4096];

static void note(char what, int64_t n)
{
    size_t length = strlen(trace);
    snprintf(trace + length, sizeof trace - length, "%s%c%lld", length ? " " : "", what, (long long)n);
}

static void forward(pn_stage *stage, int64_t n)
{
    (void)stage;
    note('F', n);
}

static void backward(pn_stage *stage, int64_t n)
{
    (void)stage;
    note('B', n);
}

static void test(pn_stage *stage, int64_t n)
{
    note('T', n);
    assert_true(stage->updates * pn_microbatches(stage->run->program) == stage->backwards);
}

static const pn_stage_def def = {.forward = forward, .backward = backward, .test = test, .ring = 8, .versions = 1};
static const pn_stage_def *const defs[] = {&def};

typedef struct {
    pn_run run;
    pn_stage stage;
    pn_program program;
    pn_dataset data;
    pn_recipe recipe;
} World;

/* Two test batches. */
static void open_world(World *world, const pn_phase *phase, int nphases, int64_t steps, int64_t test_every)
{
    memset(world, 0, sizeof *world);
    trace[0] = 0;
    world->program = (pn_program){.batch = 10, .stage = defs, .nstages = 1, .phase = phase, .nphases = nphases};
    world->data.test_count = 15;
    world->run = (pn_run){.program = &world->program,
                          .threads = 1,
                          .stage = &world->stage,
                          .data = &world->data,
                          .recipe = &world->recipe,
                          .steps = steps,
                          .test_every = test_every};
    stage_open(&world->run, 0);
}

static const char *run_world(World *world)
{
    int64_t updates = world->stage.updates;
    while (driver_step(&world->stage))
        if (world->stage.updates != updates)
            note('U', updates = world->stage.updates);
    assert_string_equal(world->run.error, "");
    return trace;
}

static const int none[] = {0}, two[] = {2}, one[] = {1};
static const pn_order sequential = {0, "FBU"};
static const pn_order stale = {2, "FBU"};
static const pn_order backward_first = {1, "BUF"};
static const pn_phase plain[] = {{"sequential", 0, false, PN_READS_CURRENT, &sequential, none, 0, 0, NULL}};
static const pn_phase lagging[] = {{"stale", 0, false, PN_READS_CURRENT, &stale, two, 0, 0, NULL}};
static const pn_phase hybrid[] = {{"stale", 3, false, PN_READS_CURRENT, &stale, two, 0, 0, NULL},
                                  {"sequential", 0, false, PN_READS_CURRENT, &sequential, none, 0, 0, NULL}};

static void sequential_order(void **state)
{
    (void)state;
    World world;
    open_world(&world, plain, 1, 3, 0);
    assert_string_equal(run_world(&world), "F0 B0 U1 F1 B1 U2 F2 B2 U3 T0 T1");
    assert_int_equal(world.stage.most_in_flight, 1);
    assert_int_equal(world.stage.staleness_most, 0);
}

static void warmup_body_drain(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 5, 0);
    assert_string_equal(run_world(&world), "F0 F1 F2 B0 U1 F3 B1 U2 F4 B2 U3 B3 U4 B4 U5 T0 T1");
    assert_int_equal(world.stage.most_in_flight, 3);
    assert_int_equal(world.stage.staleness_most, 2);
}

static void fewer_minibatches_than_warmup(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 1, 0);
    assert_string_equal(run_world(&world), "F0 B0 U1 T0 T1");
    open_world(&world, lagging, 1, 2, 0);
    assert_string_equal(run_world(&world), "F0 F1 B0 U1 B1 U2 T0 T1");
}

static void backward_before_forward(void **state)
{
    (void)state;
    static const pn_phase phase[] = {{"lockstep_b", 0, false, PN_READS_CURRENT, &backward_first, one, 0, 0, NULL}};
    World world;
    open_world(&world, phase, 1, 3, 0);
    assert_string_equal(run_world(&world), "F0 B0 U1 F1 B1 U2 F2 B2 U3 T0 T1");
    assert_int_equal(world.stage.staleness_most, 0);
}

static void weight_gradients(pn_stage *stage, int64_t n)
{
    (void)stage;
    note('W', n);
}

/* A phase that splits its backwards, then one that does not, in a program that has weight parts. */
static void weight_parts(void **state)
{
    (void)state;
    static const pn_stage_def split = {.forward = forward,
                                       .backward = backward,
                                       .weight_gradients = weight_gradients,
                                       .test = test,
                                       .ring = 8,
                                       .versions = 1};
    static const pn_stage_def *const all[] = {&split};
    static const pn_order late = {0, "FFBFBWWBWU"};
    static const pn_phase phase[] = {{"split", 1, false, PN_READS_CURRENT, &late, none, 0, 0, NULL},
                                     {"sequential", 0, false, PN_READS_CURRENT, &sequential, none, 0, 0, NULL}};
    World world;
    open_world(&world, phase, 2, 2, 0);
    world.program.microbatches = 3;
    world.program.batch = 30;
    world.program.stage = all;
    stage_open(&world.run, 0);
    assert_string_equal(run_world(&world), "F0 F1 B0 F2 B1 W0 W1 B2 W2 U1 F3 B3 W3 F4 B4 W4 F5 B5 W5 U2 T0 T1");
    assert_int_equal(world.stage.most_in_flight, 3);
}

static void phases_drain_between(void **state)
{
    (void)state;
    World world;
    open_world(&world, hybrid, 2, 5, 0);
    assert_string_equal(run_world(&world), "F0 F1 F2 B0 U1 B1 U2 B2 U3 F3 B3 U4 F4 B4 U5 T0 T1");
    open_world(&world, hybrid, 2, 2, 0); /* ends within the first phase */
    assert_string_equal(run_world(&world), "F0 F1 B0 U1 B1 U2 T0 T1");
}

static void tests_follow_their_update(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 5, 2);
    assert_string_equal(run_world(&world), "F0 F1 F2 B0 U1 F3 B1 U2 T0 T1 F4 B2 U3 B3 U4 T0 T1 B4 U5 T0 T1");
    open_world(&world, plain, 1, 4, 2); /* the last one is not done twice */
    assert_string_equal(run_world(&world), "F0 B0 U1 F1 B1 U2 T0 T1 F2 B2 U3 F3 B3 U4 T0 T1");
}

static void no_steps_only_test(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 0, 2);
    assert_string_equal(run_world(&world), "T0 T1");
    open_world(&world, lagging, 1, 1, 0);
    world.data.test_count = 0;
    assert_string_equal(run_world(&world), "F0 B0 U1");
}

static void next_is_the_same_until_done(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 5, 1);
    for (int i = 0; i < 20; i++) {
        Step first = order_next(&world.stage), second = order_next(&world.stage);
        assert_true(first.action == second.action && first.n == second.n);
        assert_true(driver_step(&world.stage));
    }
}

static void interrupt_drains(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 100, 0);
    for (int i = 0; i < 4; i++) /* F0 F1 F2 B0 */
        assert_true(driver_step(&world.stage));
    interrupt_close(&world.run);
    trace[0] = 0;
    assert_string_equal(run_world(&world), "U1 B1 U2 B2 U3 T0 T1");
    assert_int_equal(interrupt_steps(&world.run), 3);
}

/* A stage that lags behind still does all that another one had begun. */
static void interrupt_is_agreed(void **state)
{
    (void)state;
    World world;
    open_world(&world, plain, 1, 100, 0);
    assert_true(interrupt_may_begin(&world.run, 0) && interrupt_may_begin(&world.run, 1)); /* another stage */
    interrupt_close(&world.run);
    assert_false(interrupt_may_begin(&world.run, 2));
    assert_string_equal(run_world(&world), "F0 B0 U1 F1 B1 U2 T0 T1");
}

/* What a rank says when it is asked, and the answer to all: further than it was itself. */
static void interrupt_is_agreed_between_ranks(void **state)
{
    (void)state;
    World world;
    open_world(&world, plain, 1, 100, 0);
    assert_true(interrupt_may_begin(&world.run, 0));
    assert_int_equal(interrupt_hold(&world.run), 1);
    assert_int_equal(interrupt_steps(&world.run), 100);
    assert_true(interrupt_may_begin(&world.run, 0)); /* another stage */
    interrupt_close_behind(&world.run, 2);
    assert_int_equal(interrupt_steps(&world.run), 2);
    assert_true(interrupt_may_begin(&world.run, 1));
    assert_false(interrupt_may_begin(&world.run, 2));
    assert_string_equal(run_world(&world), "F0 B0 U1 F1 B1 U2 T0 T1");
}

/* A run that goes on: behind its first minibatch, in the phase of that one, the warm-up done anew. */
static void open_resumed(World *world, const pn_phase *phase, int nphases, int64_t first, int64_t steps,
                         int64_t test_every)
{
    open_world(world, phase, nphases, steps, test_every);
    world->run.first = first;
    interrupt_open(&world->run, first);
    order_begin(&world->stage);
}

static void resumes_within_its_phase(void **state)
{
    (void)state;
    static const pn_phase three[] = {{"stale", 3, false, PN_READS_CURRENT, &stale, two, 0, 0, NULL},
                                     {"sequential", 2, false, PN_READS_CURRENT, &sequential, none, 0, 0, NULL},
                                     {"stale", 0, false, PN_READS_CURRENT, &stale, two, 0, 0, NULL}};
    World world;
    open_resumed(&world, plain, 1, 2, 4, 0);
    assert_string_equal(run_world(&world), "F2 B2 U3 F3 B3 U4 T0 T1");
    open_resumed(&world, lagging, 1, 2, 6, 0);
    assert_string_equal(run_world(&world), "F2 F3 F4 B2 U3 F5 B3 U4 B4 U5 B5 U6 T0 T1");
    open_resumed(&world, hybrid, 2, 1, 5, 0);
    assert_string_equal(run_world(&world), "F1 F2 B1 U2 B2 U3 F3 B3 U4 F4 B4 U5 T0 T1");
    open_resumed(&world, hybrid, 2, 3, 5, 0); /* at the switch */
    assert_string_equal(run_world(&world), "F3 B3 U4 F4 B4 U5 T0 T1");
    open_resumed(&world, three, 3, 4, 7, 0);
    assert_string_equal(run_world(&world), "F4 B4 U5 F5 F6 B5 U6 B6 U7 T0 T1");
    open_resumed(&world, three, 3, 6, 7, 0);
    assert_string_equal(run_world(&world), "F6 B6 U7 T0 T1");
}

static void resumes_without_repeating_a_test(void **state)
{
    (void)state;
    World world;
    open_resumed(&world, plain, 1, 2, 4, 2);
    assert_string_equal(run_world(&world), "F2 B2 U3 F3 B3 U4 T0 T1");
    open_resumed(&world, plain, 1, 4, 4, 2); /* nothing is left but a test */
    assert_string_equal(run_world(&world), "T0 T1");
    open_resumed(&world, plain, 1, 4, 0, 0);
    assert_string_equal(run_world(&world), "T0 T1");
}

static void count_forwards(int *seen)
{
    for (const char *at = trace; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (*at == 'F')
            seen[strtol(at + 1, NULL, 10)]++;
    }
}

/* Interrupted after any number of steps and resumed: every minibatch is done once. */
static void no_minibatch_is_lost_or_repeated(void **state)
{
    (void)state;
    static const struct {
        const pn_phase *phase;
        int nphases;
    } schedule[] = {{plain, 1}, {lagging, 1}, {hybrid, 2}};
    enum { MINIBATCHES = 9 };
    for (int k = 0; k < PN_COUNT(schedule); k++)
        for (int stop = 0; stop < 4 * MINIBATCHES; stop++) {
            int seen[MINIBATCHES] = {0};
            World world;
            open_world(&world, schedule[k].phase, schedule[k].nphases, MINIBATCHES, 0);
            for (int i = 0; i < stop && driver_step(&world.stage); i++)
                ;
            interrupt_close(&world.run);
            run_world(&world);
            int64_t done = world.stage.updates;
            assert_true(done == world.stage.forwards && done == interrupt_steps(&world.run));
            count_forwards(seen);
            open_resumed(&world, schedule[k].phase, schedule[k].nphases, done, MINIBATCHES, 0);
            run_world(&world);
            assert_int_equal(world.stage.updates, MINIBATCHES);
            count_forwards(seen);
            for (int n = 0; n < MINIBATCHES; n++)
                if (seen[n] != 1)
                    fail_msg("schedule %d, stopped at %d: minibatch %d was done %d times", k, (int)done, n, seen[n]);
        }
}

/* Behind their update and its test, whatever is in flight; not again where a run goes on. */
static void checkpoints_follow_their_update(void **state)
{
    (void)state;
    World world;
    open_world(&world, lagging, 1, 5, 2);
    world.run.checkpoint_every = 2;
    checkpoint_open(&world.run, "/dev/null", 2);
    int64_t saved[8], count = 0, tests = 0;
    for (;;) {
        Step step = order_next(&world.stage);
        if (step.action == ACTION_CHECKPOINT) {
            assert_true(step.n == world.stage.updates && step.n % 2 == 0);
            assert_int_equal(tests, step.n); /* two batches a test */
            saved[count++] = step.n;
        }
        tests += step.action == ACTION_TEST;
        if (!driver_step(&world.stage))
            break;
    }
    assert_int_equal(count, 2);
    assert_true(saved[0] == 2 && saved[1] == 4);
    assert_string_equal(trace, "F0 F1 F2 B0 F3 B1 T0 T1 F4 B2 B3 T0 T1 B4 T0 T1");
    open_resumed(&world, plain, 1, 4, 5, 0);
    world.run.checkpoint_every = 2;
    assert_string_equal(run_world(&world), "F4 B4 U5 T0 T1");
}

static void staleness_beyond_the_compiled_one_is_caught(void **state)
{
    (void)state;
    static const pn_phase wrong[] = {{"stale", 0, false, PN_READS_CURRENT, &stale, one, 0, 0, NULL}};
    World world;
    open_world(&world, wrong, 1, 5, 0);
    while (driver_step(&world.stage))
        ;
    assert_true(atomic_load(&world.run.stop));
    assert_string_equal(world.run.error, "internal error: staleness 2 at minibatch 2, compiled for 1");
}

static void ring_overflow_is_caught(void **state)
{
    (void)state;
    static const pn_order deep = {9, "FBU"};
    static const int nine[] = {9};
    static const pn_phase phase[] = {{"deep", 0, false, PN_READS_CURRENT, &deep, nine, 0, 0, NULL}};
    World world;
    open_world(&world, phase, 1, 20, 0);
    while (driver_step(&world.stage))
        ;
    assert_non_null(strstr(world.run.error, "9 minibatches in flight at minibatch 8, compiled for 8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_order),
        cmocka_unit_test(warmup_body_drain),
        cmocka_unit_test(fewer_minibatches_than_warmup),
        cmocka_unit_test(backward_before_forward),
        cmocka_unit_test(weight_parts),
        cmocka_unit_test(phases_drain_between),
        cmocka_unit_test(tests_follow_their_update),
        cmocka_unit_test(no_steps_only_test),
        cmocka_unit_test(next_is_the_same_until_done),
        cmocka_unit_test(interrupt_drains),
        cmocka_unit_test(interrupt_is_agreed),
        cmocka_unit_test(interrupt_is_agreed_between_ranks),
        cmocka_unit_test(resumes_within_its_phase),
        cmocka_unit_test(resumes_without_repeating_a_test),
        cmocka_unit_test(no_minibatch_is_lost_or_repeated),
        cmocka_unit_test(checkpoints_follow_their_update),
        cmocka_unit_test(staleness_beyond_the_compiled_one_is_caught),
        cmocka_unit_test(ring_overflow_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
