/* The loader thread: what a stage reads is the same with and without it, in any order of asking, by several stages at
 * once; it keeps ahead; it ends soon, whatever it does. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "data/data.h"

enum { SIZE = 3 * 8 * 8, SAMPLES = 60, BATCH = 10, STEPS = 400, READERS = 3 };

static uint8_t bytes[SAMPLES * SIZE];
static uint16_t labels[SAMPLES];
static uint8_t room[READERS * SIZE];
static const pn_input_def inputs[] = {{.name = "image", .rank = 3, .dim = {3, 8, 8}},
                                      {.name = "label", .label = true, .classes = 10},
                                      {.name = "other", .rank = 1, .dim = {SIZE}}};
static const pn_program program = {.batch = BATCH, .input = inputs, .ninputs = 3};
static float expected[STEPS][BATCH * SIZE];

typedef struct {
    pn_dataset data;
    pn_run run;
    pn_stage stage[READERS];
} World;

static void open_world(World *world, int64_t first, int64_t steps)
{
    memset(world, 0, sizeof *world);
    for (int i = 0; i < SAMPLES * SIZE; i++)
        bytes[i] = (uint8_t)pn_random(4, (uint64_t)i);
    world->data = (pn_dataset){.train_count = SAMPLES,
                               .channels = 3,
                               .height = 8,
                               .width = 8,
                               .train_pixels = bytes,
                               .train_labels = labels,
                               .scale = {1, 2, 3},
                               .shift = {4, 5, 6},
                               .crop = 2,
                               .flip = true,
                               .moved = room};
    world->run = (pn_run){.program = &program, .seed = 5, .first = first, .steps = steps, .data = &world->data};
    for (int s = 0; s < READERS; s++)
        world->stage[s] = (pn_stage){.run = &world->run, .worker = s, .samples = BATCH};
}

static int gather_all(void **state)
{
    (void)state;
    World world;
    open_world(&world, 0, STEPS);
    for (int64_t n = 0; n < STEPS; n++)
        pn_input(&world.stage[0], n, 0, expected[n]);
    return world.stage[0].data_seconds > 0 ? 0 : -1;
}

static void check(pn_stage *stage, int64_t n, int input)
{
    float got[BATCH * SIZE];
    pn_input(stage, n, input, got);
    assert_memory_equal(got, expected[n], sizeof got);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){0, ms * 1000000L}, NULL);
}

static void same_samples(void **state)
{
    (void)state;
    World world;
    for (int64_t ahead = 0; ahead < 4; ahead++) {
        open_world(&world, 0, STEPS);
        pn_loader_open(&world.run, ahead);
        assert_true((world.run.loader != NULL) == (ahead > 0));
        pn_loader_start(&world.run);
        for (int64_t n = 0; n < STEPS; n++) {
            check(&world.stage[0], n, 0);
            if (n % 3 == 0)
                check(&world.stage[0], n, 2);
            if (n % 7 == 6) {
                check(&world.stage[0], n - 6, 0); /* long gone */
                check(&world.stage[0], n - 1, 0);
            }
        }
        pn_loader_stop(&world.run);
        assert_null(world.run.loader);
    }
}

/* A stage that takes its time never gathers but for its first minibatch; the first of a resumed run is ready, too. */
static void keeps_ahead(void **state)
{
    (void)state;
    World world;
    static const int64_t first[] = {0, 123};
    for (int i = 0; i < PN_COUNT(first); i++) {
        open_world(&world, first[i], STEPS);
        pn_loader_open(&world.run, 2);
        pn_loader_start(&world.run);
        int ready = 0;
        for (int64_t n = first[i]; n < first[i] + 30; n++) {
            sleep_ms(4);
            double before = world.stage[0].data_seconds;
            check(&world.stage[0], n, 0);
            ready += world.stage[0].data_seconds == before;
        }
        pn_loader_stop(&world.run);
        assert_in_range(ready, 20, 30); /* 30 but for a machine that is busy elsewhere */
    }
}

/* Cheap minibatches are not worth a thread, augmented ones are. */
static void only_where_it_pays(void **state)
{
    (void)state;
    World world;
    open_world(&world, 0, STEPS);
    pn_loader_open(&world.run, -1);
    assert_non_null(world.run.loader);
    open_world(&world, 0, STEPS);
    world.data.moved = NULL;
    pn_loader_open(&world.run, -1);
    assert_null(world.run.loader);
}

typedef struct {
    World *world;
    int reader;
    bool good;
} Reader;

/* Reader r lags 2 r minibatches behind reader 0 and reads the input r % 2 ? 2 : 0 of them. */
static void *read_all(void *argument)
{
    Reader *reader = argument;
    float got[BATCH * SIZE];
    reader->good = true;
    for (int64_t n = 0; n < STEPS; n++) {
        if (n % 16 == 2 * reader->reader)
            sleep_ms(1);
        pn_input(&reader->world->stage[reader->reader], n, reader->reader % 2 ? 2 : 0, got);
        reader->good = reader->good && memcmp(got, expected[n], sizeof got) == 0;
    }
    return NULL;
}

static void several_stages(void **state)
{
    (void)state;
    World world;
    for (int round = 0; round < 5; round++) {
        Reader reader[READERS];
        pthread_t thread[READERS];
        open_world(&world, 0, STEPS);
        pn_loader_open(&world.run, 1 + round);
        pn_loader_start(&world.run);
        for (int r = 0; r < READERS; r++) {
            reader[r] = (Reader){&world, r, false};
            assert_int_equal(pthread_create(&thread[r], NULL, read_all, &reader[r]), 0);
        }
        for (int r = 0; r < READERS; r++)
            pthread_join(thread[r], NULL);
        pn_loader_stop(&world.run);
        for (int r = 0; r < READERS; r++)
            assert_true(reader[r].good);
    }
}

/* With nothing asked, in the middle of its work, with no step to train: no hang. */
static void ends_soon(void **state)
{
    (void)state;
    World world;
    for (int round = 0; round < 200; round++) {
        open_world(&world, 0, round % 5);
        pn_loader_open(&world.run, 8);
        pn_loader_start(&world.run);
        for (int64_t n = 0; n < round % 4 && n < world.run.steps; n++)
            check(&world.stage[0], n, 0);
        pn_loader_stop(&world.run);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_samples),   cmocka_unit_test(keeps_ahead), cmocka_unit_test(only_where_it_pays),
        cmocka_unit_test(several_stages), cmocka_unit_test(ends_soon),
    };
    return cmocka_run_group_tests(tests, gather_all, NULL);
}
