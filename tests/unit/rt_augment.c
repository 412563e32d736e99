/* Augmentation: what a crop and a mirror image are, that all draws are used evenly, and that they depend on the seed,
 * the minibatch and the place in it only. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "data/data.h"

enum { CHANNELS = 3, HEIGHT = 5, WIDTH = 4, SIZE = CHANNELS * HEIGHT * WIDTH, SAMPLES = 12, BATCH = 4, CROP = 2 };

static uint8_t bytes[SAMPLES * SIZE];
static float values[SAMPLES * SIZE];
static uint16_t labels[SAMPLES];
static uint8_t room[2 * SIZE * sizeof(float)];
static const pn_input_def inputs[] = {{.name = "image", .rank = 3, .dim = {CHANNELS, HEIGHT, WIDTH}},
                                      {.name = "label", .label = true, .classes = 10},
                                      {.name = "again", .rank = 1, .dim = {SIZE}}};
static const pn_program program = {.batch = BATCH, .input = inputs, .ninputs = 3};

typedef struct {
    pn_dataset data;
    pn_run run;
    pn_stage stage;
} World;

static void open_world(World *world, bool floats, int64_t crop, bool flip)
{
    for (int i = 0; i < SAMPLES * SIZE; i++) {
        bytes[i] = (uint8_t)(1 + pn_random(3, (uint64_t)i) % 255); /* never black */
        values[i] = (float)bytes[i];
    }
    for (int i = 0; i < SAMPLES; i++)
        labels[i] = (uint16_t)i;
    world->data = (pn_dataset){.train_count = SAMPLES,
                               .test_count = SAMPLES,
                               .channels = CHANNELS,
                               .height = HEIGHT,
                               .width = WIDTH,
                               .train_pixels = floats ? NULL : bytes,
                               .test_pixels = floats ? NULL : bytes,
                               .train_values = floats ? values : NULL,
                               .test_values = floats ? values : NULL,
                               .train_labels = labels,
                               .test_labels = labels,
                               .scale = {2, 3, 4},
                               .shift = {-1, -2, -3},
                               .crop = crop,
                               .flip = flip,
                               .moved = crop || flip ? room : NULL};
    world->run = (pn_run){.program = &program, .seed = 7, .steps = 100, .data = &world->data};
    world->stage = (pn_stage){.run = &world->run, .samples = BATCH};
}

/* The image laid into a larger black one, cut, mirrored: one pixel of it. */
static float wanted(int sample, pn_move move, int c, int y, int x)
{
    static const float scale[] = {2, 3, 4}, shift[] = {-1, -2, -3};
    static uint8_t large[HEIGHT + 2 * CROP][WIDTH + 2 * CROP];
    memset(large, 0, sizeof large);
    for (int row = 0; row < HEIGHT; row++)
        memcpy(&large[row + CROP][CROP], &bytes[((sample * CHANNELS + c) * HEIGHT + row) * WIDTH], WIDTH);
    int column = move.mirror ? WIDTH - 1 - x : x;
    return (float)large[y + CROP + move.down][column + CROP + move.right] * scale[c] + shift[c];
}

static void check_minibatch(World *world, int64_t n)
{
    float image[BATCH * SIZE];
    int32_t label[BATCH];
    pn_input(&world->stage, n, 0, image);
    pn_input(&world->stage, n, 1, label);
    for (int i = 0; i < BATCH; i++) {
        pn_move move = pn_move_of(&world->data, world->run.seed, n, i);
        assert_in_range(move.down + CROP, 0, 2 * CROP);
        assert_in_range(move.right + CROP, 0, 2 * CROP);
        for (int at = 0; at < SIZE; at++) {
            int c = at / (HEIGHT * WIDTH), y = at / WIDTH % HEIGHT, x = at % WIDTH;
            if (image[i * SIZE + at] != wanted(label[i], move, c, y, x))
                fail_msg("minibatch %d, sample %d, channel %d, row %d, column %d", (int)n, i, c, y, x);
        }
    }
}

static void crops_and_mirrors(void **state)
{
    (void)state;
    static const struct {
        int64_t crop;
        bool flip;
    } ways[] = {{0, false}, {CROP, false}, {0, true}, {CROP, true}};
    World world;
    for (int way = 0; way < PN_COUNT(ways); way++)
        for (int floats = 0; floats < 2; floats++) {
            open_world(&world, floats, ways[way].crop, ways[way].flip);
            for (int64_t n = 0; n < 300; n++)
                check_minibatch(&world, n);
        }
}

/* Each place and both sides, as often as chance has it: 40000 draws, five standard deviations. */
static void draws_are_even(void **state)
{
    (void)state;
    enum { DRAWS = 40000, PLACES = 2 * CROP + 1, CELLS = PLACES * PLACES * 2 };
    World world;
    open_world(&world, false, CROP, true);
    int seen[CELLS] = {0};
    for (int64_t k = 0; k < DRAWS; k++) {
        pn_move move = pn_move_of(&world.data, 1, k / 128, k % 128);
        seen[((move.down + CROP) * PLACES + move.right + CROP) * 2 + move.mirror]++;
    }
    for (int i = 0; i < CELLS; i++)
        assert_in_range(seen[i], DRAWS / CELLS - 141, DRAWS / CELLS + 141);
}

static void only_seed_minibatch_and_place_count(void **state)
{
    (void)state;
    World world, other;
    float image[BATCH * SIZE], again[BATCH * SIZE];
    open_world(&world, false, CROP, true);
    open_world(&other, false, CROP, true);
    for (int64_t n = 0; n < 20; n++)
        pn_input(&other.stage, 19 - n, 0, again); /* another order */
    other.stage.index = 1;
    for (int64_t n = 0; n < 20; n++) {
        pn_input(&world.stage, n, 0, image);
        pn_input(&other.stage, n, 0, again);
        assert_memory_equal(image, again, sizeof image);
        pn_input(&world.stage, n, 2, again); /* another input of the same samples */
        assert_memory_equal(image, again, sizeof image);
    }
    int same = 0;
    for (int64_t n = 0; n < 20; n++)
        for (int64_t i = 0; i < BATCH; i++) {
            pn_move a = pn_move_of(&world.data, 1, n, i), b = pn_move_of(&world.data, 2, n, i);
            same += a.down == b.down && a.right == b.right && a.mirror == b.mirror;
        }
    assert_in_range(same, 0, 10); /* of 80, where 1.6 are expected */
}

static void tests_are_not_augmented(void **state)
{
    (void)state;
    World world;
    float image[BATCH * SIZE];
    open_world(&world, false, CROP, true);
    for (int64_t n = 0; n < SAMPLES / BATCH; n++) {
        pn_test_input(&world.stage, n, 0, image);
        for (int i = 0; i < BATCH; i++)
            for (int at = 0; at < SIZE; at++)
                assert_true(image[i * SIZE + at] == wanted((int)n * BATCH + i, (pn_move){0, 0, false},
                                                           at / (HEIGHT * WIDTH), at / WIDTH % HEIGHT, at % WIDTH));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_and_mirrors),
        cmocka_unit_test(draws_are_even),
        cmocka_unit_test(only_seed_minibatch_and_place_count),
        cmocka_unit_test(tests_are_not_augmented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
