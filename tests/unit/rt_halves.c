/* A stage in halves: who does which step of its order, which weights each forward finds, what is measured of it, and
 * that a half waits for the other one. No registers: a stage alone, whose functions write down what they are asked
 * for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/choices.h"
#include "core/driver.h"
#include "core/halves.h"
#include "core/stage.h"

static char said[4096];

static void note(char what, int64_t n)
{
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s%c%lld", length ? " " : "", what, (long long)n);
}

static void forward(pn_stage *stage, int64_t n)
{
    note('F', n);
    note('v', stage->updates);
}

static void backward(pn_stage *stage, int64_t n)
{
    (void)stage;
    note('B', n);
}

static void test(pn_stage *stage, int64_t n)
{
    note('T', n);
    assert_int_equal(stage->updates, stage->backwards);
}

static const pn_stage_def forward_half = {.half = PN_FORWARD_HALF, .forward = forward, .ring = 3, .versions = 2};
static const pn_stage_def backward_half = {
    .half = PN_BACKWARD_HALF, .backward = backward, .test = test, .ring = 3, .versions = 2};
static const pn_stage_def *const defs[] = {&forward_half, &backward_half};

typedef struct {
    pn_run run;
    pn_stage stage[2];
    pn_program program;
    pn_dataset data;
    pn_recipe recipe;
} World;

static void run_world(World *world, const pn_phase *phase, int nphases, int64_t steps, int64_t test_every)
{
    memset(world, 0, sizeof *world);
    said[0] = 0;
    world->program = (pn_program){.batch = 10, .stage = defs, .nstages = 2, .phase = phase, .nphases = nphases};
    world->data.test_count = 15; /* two batches */
    world->run = (pn_run){.program = &world->program,
                          .threads = 1,
                          .stage = world->stage,
                          .data = &world->data,
                          .recipe = &world->recipe,
                          .transport = pn_transport_find("serial"),
                          .steps = steps,
                          .test_every = test_every};
    for (int i = 0; i < 2; i++)
        stage_open(&world->run, i);
    world->run.transport->open(&world->run);
    world->run.transport->train(&world->run);
    world->run.transport->close(&world->run);
    assert_string_equal(world->run.error, "");
}

static const pn_order lockstep[] = {{.warmup = 2, .body = "FBU"}}, sequential[] = {{.warmup = 0, .body = "FBU"}};
static const pn_phase stale = {.name = "stale", .order = lockstep, .staleness = (const int[]){2}};

static void forwards_read_what_the_order_says(void **state)
{
    (void)state;
    World world;
    run_world(&world, &stale, 1, 5, 0);
    assert_string_equal(said, "F0 v0 B0 F1 v0 F2 v0 B1 F3 v1 B2 F4 v2 B3 B4 T0 T1");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world.stage[i].index, 0);
        assert_int_equal(world.stage[i].updates, 5);
    }
    assert_int_equal(halves_forward(&world.stage[1])->most_in_flight, 3);
    assert_int_equal(halves_backward(&world.stage[0])->staleness_most, 2);
    char name[STAGE_NAME];
    assert_string_equal(stage_name(&world.stage[0], name, sizeof name), "stage 0, forward");
    assert_string_equal(stage_name(&world.stage[1], name, sizeof name), "stage 0, backward");
}

/* The pipe is drained between phases: the first forward of the second has all updates of the first. */
static void a_phase_begins_with_all_updates(void **state)
{
    (void)state;
    World world;
    const pn_phase phases[] = {
        {.name = "stale", .minibatches = 3, .order = lockstep, .staleness = (const int[]){2}},
        {.name = "sequential", .order = sequential, .staleness = (const int[]){0}},
    };
    run_world(&world, phases, 2, 5, 0);
    assert_string_equal(said, "F0 v0 B0 F1 v0 F2 v0 B1 B2 F3 v3 B3 F4 v4 B4 T0 T1");
}

static void tests_are_of_the_backward_half(void **state)
{
    (void)state;
    World world;
    run_world(&world, &stale, 1, 4, 2);
    assert_string_equal(said, "F0 v0 B0 F1 v0 F2 v0 B1 F3 v1 T0 T1 B2 B3 T0 T1");
}

/* An update waits until the forward half has left the weights that it overwrites, a backward for its forward, a forward
 * for a slot. */
static void the_halves_wait_for_each_other(void **state)
{
    (void)state;
    World world;
    run_world(&world, &stale, 1, 0, 0);
    StepChannels channels;
    const struct pn_halves *halves = world.stage[0].halves;
    assert_true(halves_channels(&world.stage[0], (Step){ACTION_FORWARD, 0}, &channels));
    assert_ptr_equal(channels.gives[channels.ngives - 1], &halves->saved);
    assert_true(halves_channels(&world.stage[1], (Step){ACTION_BACKWARD, 0}, &channels));
    assert_ptr_equal(channels.takes[channels.ntakes - 1], &halves->saved);
    assert_true(halves_channels(&world.stage[1], (Step){ACTION_UPDATE, 0}, &channels));
    assert_ptr_equal(channels.gives[0], &halves->weights);
    assert_true(halves_channels(&world.stage[0], (Step){ACTION_HAND_OVER, 0}, &channels));
    assert_ptr_equal(channels.takes[0], &halves->weights);
    assert_false(halves_channels(&world.stage[1], (Step){ACTION_TEST, 0}, &channels));
    assert_int_equal(halves->saved.area.slots, 3);
    assert_int_equal(halves->weights.area.slots, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forwards_read_what_the_order_says),
        cmocka_unit_test(a_phase_begins_with_all_updates),
        cmocka_unit_test(tests_are_of_the_backward_half),
        cmocka_unit_test(the_halves_wait_for_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
