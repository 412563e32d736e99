/* The trace: its buffers hold what a run does, to the event; what does not fit is counted and left out; the file is
 * JSON with the first events and the number of those that are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "core/choices.h"
#include "core/driver.h"
#include "core/stage.h"
#include "core/trace.h"

static void nothing(pn_stage *stage, int64_t n)
{
    (void)stage;
    (void)n;
}

static const pn_stage_def def = {
    .what = "conv1", .forward = nothing, .backward = nothing, .test = nothing, .ring = 1, .versions = 1};
static const pn_stage_def *const defs[] = {&def};
static const pn_order order[] = {{0, "FBU"}};
static const int staleness[] = {0};
static const pn_phase phase = {"sequential", 0, false, PN_READS_CURRENT, order, staleness, 0, 0, NULL};

typedef struct {
    pn_run run;
    pn_stage stage;
    pn_program program;
    pn_dataset data;
    pn_recipe recipe;
} World;

/* Two test batches, after each `test_every` updates and at the end. */
static void run(World *world, int64_t steps, int64_t test_every, int64_t bytes)
{
    memset(world, 0, sizeof *world);
    world->program =
        (pn_program){.name = "toy", .batch = 10, .stage = defs, .nstages = 1, .phase = &phase, .nphases = 1};
    world->data.test_count = 15;
    world->run = (pn_run){.program = &world->program,
                          .threads = 1,
                          .stage = &world->stage,
                          .transport = pn_transport_table[0],
                          .steps = steps,
                          .test_every = test_every,
                          .data = &world->data,
                          .recipe = &world->recipe};
    stage_open(&world->run, 0);
    trace_open(&world->run, bytes);
    while (driver_step(&world->stage))
        ;
    assert_false(atomic_load(&world->run.stop));
}

static json_t *written(const World *world)
{
    char path[] = "/tmp/rt_trace.XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_null(trace_write(&world->run, path));
    json_t *trace = json_load_file(path, 0, NULL);
    assert_int_equal(unlink(path), 0);
    assert_non_null(trace);
    return trace;
}

static json_int_t dropped(json_t *trace)
{
    return json_integer_value(json_object_get(json_object_get(trace, "otherData"), "dropped"));
}

static int steps_named(json_t *trace, const char *name)
{
    int count = 0;
    size_t i;
    json_t *event;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) count +=
        strcmp(json_string_value(json_object_get(event, "name")), name) == 0;
    return count;
}

static void holds_all(void **state)
{
    (void)state;
    World world;
    run(&world, 6, 2, TRACE_BYTES); /* tests after 2, 4 and 6 */
    assert_int_equal(world.stage.trace->count, 6 * 3 + 3 * 2);
    assert_true(world.stage.trace->room < 60); /* as large as the run, not as the bound */
    json_t *trace = written(&world);
    assert_int_equal(dropped(trace), 0);
    assert_int_equal(steps_named(trace, "forward"), 6);
    assert_int_equal(steps_named(trace, "backward"), 6);
    assert_int_equal(steps_named(trace, "update"), 6);
    assert_int_equal(steps_named(trace, "test"), 6);
    json_decref(trace);
}

static void says_what_it_dropped(void **state)
{
    (void)state;
    World world;
    run(&world, 6, 0, 5 * (int64_t)sizeof(TraceEvent)); /* 18 steps and a test of 2 */
    assert_int_equal(world.stage.trace->room, 5);
    assert_int_equal(trace_dropped(&world.run), 15);
    json_t *trace = written(&world);
    assert_int_equal(dropped(trace), 15);
    assert_int_equal(steps_named(trace, "forward"), 2);
    assert_int_equal(steps_named(trace, "update"), 1);
    json_decref(trace);
}

static void no_room_at_all(void **state)
{
    (void)state;
    World world;
    run(&world, 1, 0, 0);
    assert_int_equal(trace_dropped(&world.run), 5);
    json_t *trace = written(&world);
    assert_int_equal(steps_named(trace, "thread_name"), 1);
    json_decref(trace);
}

static void a_folder_is_no_file(void **state)
{
    (void)state;
    World world;
    run(&world, 1, 0, TRACE_BYTES);
    assert_non_null(trace_write(&world.run, "/tmp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holds_all),
        cmocka_unit_test(says_what_it_dropped),
        cmocka_unit_test(no_room_at_all),
        cmocka_unit_test(a_folder_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
