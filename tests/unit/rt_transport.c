/* Transports on a program of three stages: threads give the bits of serial under every schedule, 10 of 10; wrong
 * schedules, failing stages and deadlocks end in a message, soon. */
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include "rt_toy.h"

#include <cmocka.h>

#include "core/choices.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/stage.h"
#include "core/weights.h"

static const int lockstep[] = {4, 2, 0}, one_f_one_b[] = {2, 1, 0}, sequential[] = {0, 0, 0};

typedef struct {
    pn_run run;
    pn_stage stage[STAGES];
    pn_dataset data;
    pn_recipe recipe;
    pn_log log;
} World;

enum { TRAIN = 52, TEST = 10 };
static uint8_t pixels[TRAIN * PIXELS];
static uint16_t labels[TRAIN];

/* Runs the toy as it is set; its weights are then in `weights`, its measurements in world->stage. True: no error. */
static bool run_toy(World *world, const char *by, int64_t steps, int64_t test_every)
{
    memset(world, 0, sizeof *world);
    for (int i = 0; i < TRAIN * PIXELS; i++)
        pixels[i] = (uint8_t)pn_random(9, (uint64_t)i);
    for (int i = 0; i < TRAIN; i++)
        labels[i] = (uint16_t)(pn_random(8, (uint64_t)i) % 10);
    world->data = (pn_dataset){.train_count = TRAIN,
                               .test_count = TEST,
                               .channels = 1,
                               .height = 28,
                               .width = 28,
                               .classes = 10,
                               .train_pixels = pixels,
                               .test_pixels = pixels,
                               .train_labels = labels,
                               .test_labels = labels,
                               .scale = {1 / 128.0f},
                               .shift = {-1}};
    pn_run *run = &world->run;
    *run = (pn_run){.program = &toy_program,
                    .threads = 1,
                    .stage = world->stage,
                    .transport = pn_transport_find(by),
                    .seed = 1,
                    .steps = steps,
                    .test_every = test_every,
                    .data = &world->data,
                    .recipe = &world->recipe,
                    .log = &world->log,
                    .timeout = 20};
    recipe_resolve(&world->recipe, &toy_program, steps);
    for (int s = 0; s < STAGES; s++)
        stage_open(run, s);
    weights_initial(run);
    log_open(&world->log, run, true, NULL);
    const char *limit = getenv("TOY_TIMEOUT");
    if (limit)
        run->timeout = strtod(limit, NULL);
    run->transport->open(run);
    run->transport->train(run);
    run->transport->close(run);
    log_close(&world->log);
    return !atomic_load(&run->stop);
}

static void final_weights(const World *world, float to[STAGES][WIDTH])
{
    for (int s = 0; s < STAGES; s++)
        memcpy(to[s], stage_version(&world->stage[s], world->stage[s].updates), sizeof to[s]);
}

static void threads_equal_serial(const int warmup[STAGES], bool stash, int slots)
{
    World world;
    float serial[STAGES][WIDTH], threads[STAGES][WIDTH];
    slow_microseconds = 0;
    toy_set(warmup, stash, slots);
    if (!run_toy(&world, "serial", 60, 0))
        fail_msg("%s", world.run.error);
    final_weights(&world, serial);
    slow_microseconds = 60;
    for (int i = 0; i < 10; i++) {
        toy_set(warmup, stash, slots);
        if (!run_toy(&world, "threads", 60, i % 2 ? 7 : 0)) /* also: tests change nothing */
            fail_msg("%s", world.run.error);
        final_weights(&world, threads);
        assert_memory_equal(serial, threads, sizeof serial);
        for (int s = 0; s < STAGES; s++) {
            assert_int_equal(world.stage[s].staleness_most, warmup[s]);
            assert_int_equal(world.stage[s].most_in_flight, warmup[s] + 1);
        }
        assert_int_equal(world.stage[0].traffic_bytes, 60 * VALUES * sizeof(float));
        assert_int_equal(world.stage[1].traffic_bytes, 60 * 2 * VALUES * sizeof(float));
    }
    slow_microseconds = 0;
}

static void sequential_schedule(void **state)
{
    (void)state;
    threads_equal_serial(sequential, false, 1);
}

static void stale_lockstep(void **state)
{
    (void)state;
    threads_equal_serial(lockstep, false, 3);
}

static void stale_1f1b(void **state)
{
    (void)state;
    threads_equal_serial(one_f_one_b, false, 2);
}

static void pipedream(void **state)
{
    (void)state;
    threads_equal_serial(one_f_one_b, true, 2);
}

static void schedules_differ(void **state)
{
    (void)state;
    World world;
    float a[STAGES][WIDTH], b[STAGES][WIDTH], c[STAGES][WIDTH];
    toy_set(sequential, false, 4);
    assert_true(run_toy(&world, "serial", 60, 0));
    final_weights(&world, a);
    toy_set(lockstep, false, 4);
    assert_true(run_toy(&world, "serial", 60, 0));
    final_weights(&world, b);
    toy_set(lockstep, true, 4);
    assert_true(run_toy(&world, "serial", 60, 0));
    final_weights(&world, c);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(b, c, sizeof b);
}

/* Plain SGD, written out: what the sequential schedule must come to, bit for bit. */
static void sequential_is_plain_sgd(void **state)
{
    (void)state;
    World world;
    float pipelined[STAGES][WIDTH], w[STAGES][WIDTH], v[STAGES][WIDTH] = {{0}}, g[STAGES][WIDTH];
    float x[STAGES + 1][VALUES], gy[VALUES], gx[VALUES];
    int32_t wanted[BATCH];
    int64_t correct;
    toy_set(sequential, false, 1);
    assert_true(run_toy(&world, "threads", 20, 0));
    final_weights(&world, pipelined);
    for (int s = 0; s < STAGES; s++)
        pn_param_initial(&param[s], 1, w[s]);
    for (int64_t n = 0; n < 20; n++) {
        pn_input(&world.stage[0], n, 0, image);
        pn_input(&world.stage[0], n, 1, wanted);
        pick(x[0]);
        for (int s = 0; s < STAGES; s++)
            scale_forward(x[s], w[s], x[s + 1]);
        toy_loss(x[STAGES], wanted, gy, &correct);
        for (int s = STAGES - 1; s >= 0; s--) {
            scale_backward(x[s], w[s], gy, gx, g[s]);
            memcpy(gy, gx, sizeof gy);
        }
        for (int s = 0; s < STAGES; s++)
            for (int i = 0; i < WIDTH; i++) {
                v[s][i] = 0.9f * v[s][i] + (g[s][i] + 0.0f * w[s][i]);
                w[s][i] -= 0.05f * v[s][i];
            }
    }
    assert_memory_equal(pipelined, w, sizeof w);
}

static void wrong_minibatch_in_a_slot_is_caught(void **state)
{
    (void)state;
    static const char *const name[] = {"serial", "threads"};
    World world;
    for (int i = 0; i < 2; i++) {
        skip_minibatch = 7;
        toy_set(one_f_one_b, false, RING);
        assert_false(run_toy(&world, name[i], 60, 0));
        assert_string_equal(world.run.error, "stage 1: internal error: asked for minibatch 7 of y0 and found 15");
    }
    skip_minibatch = -1;
}

static void failing_stage_stops_all(void **state)
{
    (void)state;
    World world;
    for (fail_stage = 0; fail_stage < STAGES; fail_stage++) {
        toy_set(lockstep, false, 3);
        double begin = log_clock();
        assert_false(run_toy(&world, "threads", 1000000, 0));
        assert_true(log_clock() - begin < 2);
        char expected[64];
        snprintf(expected, sizeof expected, "stage %d: it was told to", fail_stage);
        assert_string_equal(world.run.error, expected);
    }
    fail_stage = -1;
}

/* One slot is too few for the lockstep order of this toy: stage 0 wants to be 4 ahead, but stage 1 takes no more
 * than 2. */
static void deadlock_is_told(void **state)
{
    (void)state;
    static const int too_far[] = {7, 0, 0};
    World world;
    toy_set(too_far, false, 1);
    assert_false(run_toy(&world, "serial", 60, 0));
    assert_string_equal(
        world.run.error,
        "internal error: no stage can go on"
        "\n  stage 0: the forward of minibatch 3 waits for room for minibatch 3 of y0 to stage 1"
        "\n  stage 1: the backward of minibatch 1 waits for room for minibatch 1 of gradient of y0 to stage 0"
        "\n  stage 2: the forward of minibatch 2 waits for minibatch 2 of y1 from stage 1");
    setenv("TOY_TIMEOUT", "0.3", 1);
    toy_set(too_far, false, 1);
    double begin = log_clock();
    assert_false(run_toy(&world, "threads", 60, 0));
    assert_true(log_clock() - begin < 3);
    unsetenv("TOY_TIMEOUT");
    assert_non_null(strstr(world.run.error, "no stage has finished a step in 0.3 seconds"));
    assert_non_null(strstr(world.run.error, "stage 0 waits for room for minibatch 3 of y0 to stage 1"));
}

/* ---- rounds before the run ---- */
static atomic_int rounds[STAGES], ready;
static int bad_stage;
static bool together; /* the last stage needs as long as it takes until stage 0 goes on though it has enough */

/* Stage s has seen enough after 3 (s + 1) rounds. */
static bool count_round(pn_stage *stage)
{
    const int wanted = 3 * (stage->index + 1), round = atomic_fetch_add(&rounds[stage->index], 1) + 1;
    const struct timespec a_while = {0, 1000000};
    nanosleep(&a_while, NULL);
    if (stage->index == bad_stage && round == 2)
        pn_fail(stage, "round %d is bad", round);
    if (round == wanted)
        atomic_fetch_add(&ready, 1);
    if (together && stage->index == STAGES - 1 && atomic_load(&rounds[0]) <= 3)
        return round > 10000;
    return round >= wanted;
}

static bool go_rounds(World *world, const char *by, int bad)
{
    memset(world, 0, sizeof *world);
    world->run =
        (pn_run){.program = &toy_program, .threads = 1, .stage = world->stage, .transport = pn_transport_find(by)};
    for (int s = 0; s < STAGES; s++) {
        world->stage[s] = (pn_stage){.run = &world->run, .index = s};
        atomic_store(&rounds[s], 0);
    }
    atomic_store(&ready, 0);
    bad_stage = bad;
    together = strcmp(by, "threads") == 0;
    return world->run.transport->each(&world->run, count_round);
}

static void rounds_until_all_have_enough(void **state)
{
    (void)state;
    World world;
    toy_set(sequential, false, 1);
    assert_true(go_rounds(&world, "serial", -1));
    for (int s = 0; s < STAGES; s++)
        assert_int_equal(atomic_load(&rounds[s]), 3 * (s + 1));
    assert_true(go_rounds(&world, "threads", -1));
    assert_int_equal(atomic_load(&ready), STAGES);
    for (int s = 0; s < STAGES; s++)
        assert_true(atomic_load(&rounds[s]) >= 3 * (s + 1));
    assert_true(atomic_load(&rounds[0]) > 3); /* goes on while stage 2 needs more */
    for (int by = 0; by < 2; by++) {
        assert_false(go_rounds(&world, by ? "threads" : "serial", 1));
        assert_string_equal(world.run.error, "stage 1: round 2 is bad");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_schedule),
        cmocka_unit_test(stale_lockstep),
        cmocka_unit_test(stale_1f1b),
        cmocka_unit_test(pipedream),
        cmocka_unit_test(schedules_differ),
        cmocka_unit_test(sequential_is_plain_sgd),
        cmocka_unit_test(wrong_minibatch_in_a_slot_is_caught),
        cmocka_unit_test(failing_stage_stops_all),
        cmocka_unit_test(deadlock_is_told),
        cmocka_unit_test(rounds_until_all_have_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
