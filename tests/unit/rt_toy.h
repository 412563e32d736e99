/* rt_toy.h: a program of three stages written by hand against pn.h, as a generated one would be, but its operations are
 * plain C: y = w x / (1 + |x|), 16 numbers a sample. Order, rings and slots are set by the test. */
#ifndef RT_TOY_H
#define RT_TOY_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rt.h"

enum { STAGES = 3, BATCH = 4, WIDTH = 16, VALUES = BATCH * WIDTH, RING = 8, VERSIONS = 8, PIXELS = 28 * 28 };

/* ---- what the generated files would declare ---- */
static PN_BUFFER float saved[STAGES][RING][VALUES];
static PN_BUFFER float image[BATCH * PIXELS];
static PN_BUFFER int32_t label[RING][BATCH];
static PN_BUFFER float weights[STAGES][VERSIONS][WIDTH], weight_gradient[STAGES][WIDTH], velocity[STAGES][WIDTH];
static PN_BUFFER float forward_slots[STAGES - 1][RING][VALUES], gradient_slots[STAGES - 1][RING][VALUES];
static PN_BUFFER float test_slots[STAGES - 1][RING][VALUES];
static int64_t forward_number[STAGES - 1][RING], gradient_number[STAGES - 1][RING], test_number[STAGES - 1][RING];

static pn_register reg[STAGES - 1];
static pn_register *regs[STAGES - 1];
static pn_channel *forward_channel[STAGES - 1], *gradient_channel[STAGES - 1], *test_channel[STAGES - 1];
static pn_param param[STAGES];
static pn_stage_def stage_def[STAGES];
static const pn_stage_def *stages[STAGES];
static pn_order order[STAGES];
static int staleness[STAGES];
static pn_phase phase[1];

/* What a test may break on purpose. */
static int fail_stage = -1; /* this stage fails in the forward of minibatch fail_at */
static int fail_at = 5;
static int skip_minibatch = -1;   /* stage 0 gives the next number in place of this one */
static int slow_microseconds = 0; /* the most that a step dawdles */

/* Uneven speeds, so that waits fall elsewhere in each run. */
static void dawdle(void)
{
    if (slow_microseconds <= 0)
        return;
    struct timespec now, delay;
    clock_gettime(CLOCK_MONOTONIC, &now);
    delay = (struct timespec){0, now.tv_nsec % slow_microseconds * 1000L};
    nanosleep(&delay, NULL);
}

/* ---- operations ---- */
static void scale_forward(const float *x, const float *w, float *y)
{
    for (int i = 0; i < VALUES; i++)
        y[i] = w[i % WIDTH] * x[i] / (1 + fabsf(x[i]));
}

static void scale_backward(const float *x, const float *w, const float *gy, float *gx, float *gw)
{
    memset(gw, 0, sizeof(float) * WIDTH);
    for (int i = 0; i < VALUES; i++) {
        float one = 1 + fabsf(x[i]);
        gw[i % WIDTH] += gy[i] * x[i] / one;
        if (gx)
            gx[i] = gy[i] * w[i % WIDTH] / (one * one);
    }
}

static void pick(float *x)
{
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < WIDTH; i++)
            x[b * WIDTH + i] = image[b * PIXELS + i * (PIXELS / WIDTH)];
}

/* Half the squared distance of every output from label / 10. */
static double toy_loss(const float *y, const int32_t *wanted, float *gy, int64_t *correct)
{
    double sum = 0;
    *correct = 0;
    for (int b = 0; b < BATCH; b++) {
        for (int i = 0; i < WIDTH; i++) {
            float d = y[b * WIDTH + i] - (float)wanted[b] / 10;
            sum += 0.5 * (double)d * (double)d;
            gy[b * WIDTH + i] = d / BATCH;
        }
        *correct += fabsf(y[b * WIDTH] - (float)wanted[b] / 10) < 0.1f;
    }
    return sum / BATCH;
}

/* ---- the steps of a stage ---- */
static void toy_init(pn_stage *stage)
{
    (void)stage;
}

static void toy_forward(pn_stage *stage, int64_t n)
{
    int s = stage->index;
    float *x = saved[s][n % RING];
    dawdle();
    if (s == fail_stage && n == fail_at)
        pn_fail(stage, "it was told to");
    if (s == 0) {
        pn_input(stage, n, 0, image);
        pick(x);
    } else {
        memcpy(x, pn_take(stage, forward_channel[s - 1], n), sizeof saved[0][0]);
        pn_done(stage, forward_channel[s - 1], n);
    }
    const float *w = pn_forward_weights(stage, n);
    if (s < STAGES - 1) {
        int64_t given = s == 0 && n == skip_minibatch ? n + RING : n;
        scale_forward(x, w, pn_room(stage, forward_channel[s], given));
        pn_give(stage, forward_channel[s], given);
        return;
    }
    float y[VALUES], unused[VALUES];
    int64_t correct;
    pn_input(stage, n, 1, label[n % RING]);
    scale_forward(x, w, y);
    double loss = toy_loss(y, label[n % RING], unused, &correct);
    pn_report_loss(stage, n, loss, correct, BATCH);
}

static void toy_backward(pn_stage *stage, int64_t n)
{
    int s = stage->index;
    const float *x = saved[s][n % RING], *w = pn_backward_weights(stage, n), *gy;
    float y[VALUES], g[VALUES];
    int64_t correct;
    dawdle();
    if (s < STAGES - 1) {
        gy = pn_take(stage, gradient_channel[s], n);
    } else {
        scale_forward(x, w, y);
        toy_loss(y, label[n % RING], g, &correct);
        gy = g;
    }
    scale_backward(x, w, gy, s > 0 ? pn_room(stage, gradient_channel[s - 1], n) : NULL, weight_gradient[s]);
    if (s > 0)
        pn_give(stage, gradient_channel[s - 1], n);
    if (s < STAGES - 1)
        pn_done(stage, gradient_channel[s], n);
}

static void toy_test(pn_stage *stage, int64_t n)
{
    int s = stage->index;
    float x[VALUES], y[VALUES], unused[VALUES];
    int32_t wanted[BATCH];
    int64_t correct;
    if (s == 0) {
        pn_test_input(stage, n, 0, image);
        pick(x);
    } else {
        memcpy(x, pn_take(stage, test_channel[s - 1], n), sizeof x);
        pn_done(stage, test_channel[s - 1], n);
    }
    if (s < STAGES - 1) {
        scale_forward(x, pn_test_weights(stage), pn_room(stage, test_channel[s], n));
        pn_give(stage, test_channel[s], n);
        return;
    }
    pn_test_input(stage, n, 1, wanted);
    scale_forward(x, pn_test_weights(stage), y);
    double loss = toy_loss(y, wanted, unused, &correct);
    pn_report_test(stage, n, loss * (double)pn_test_count(stage, n), correct, pn_test_count(stage, n));
}

/* ---- the program ---- */
static const pn_input_def toy_input[] = {{.name = "image", .rank = 3, .dim = {1, 28, 28}},
                                         {.name = "label", .label = true, .classes = 10}};
static const pn_arg toy_rate = {.number = 0.05}, toy_momentum = {.key = "momentum", .number = 0.9};
static const pn_arg toy_data[] = {{.key = "train", .number = 200}, {.key = "test", .number = 30}};
static const pn_program toy_program = {
    .name = "toy",
    .source = "toy.pnet",
    .target = "none",
    .batch = BATCH,
    .input = toy_input,
    .ninputs = 2,
    .stage = stages,
    .nstages = STAGES,
    .reg = regs,
    .nregisters = STAGES - 1,
    .phase = phase,
    .nphases = 1,
    .data = {"digits", toy_data, 2},
    .optimizer = {"sgd", &toy_momentum, 1},
    .lr = {"constant", &toy_rate, 1},
    .steps = 60,
    .seed = 1,
};

static pn_channel channel(const char *name, int from, int to, float slot[][VALUES], int64_t *number, int slots)
{
    return (pn_channel){
        .name = name, .from = from, .to = to, .area = {slot, (int64_t)sizeof slot[0], slots, false}, .number = number};
}

/* Stage s runs warmup[s] forwards ahead and then F B U; its staleness is its warm-up. */
static void toy_set(const int warmup[STAGES], bool stash, int slots)
{
    static const char *const name[] = {"y0", "y1"}, *const gradient_name[] = {"gradient of y0", "gradient of y1"},
                             *const test_name[] = {"y0 (test)", "y1 (test)"};
    static const char *const parameter[] = {"a.weight", "b.weight", "c.weight"};
    memset(velocity, 0, sizeof velocity);
    memset(weights, 0, sizeof weights);
    for (int s = 0; s < STAGES; s++) {
        bool first = s == 0, last = s == STAGES - 1;
        if (!last) {
            reg[s].forward = channel(name[s], s, s + 1, forward_slots[s], forward_number[s], slots);
            reg[s].gradient = channel(gradient_name[s], s + 1, s, gradient_slots[s], gradient_number[s], slots);
            reg[s].test = channel(test_name[s], s, s + 1, test_slots[s], test_number[s], 2);
            regs[s] = &reg[s];
            forward_channel[s] = &reg[s].forward;
            gradient_channel[s] = &reg[s].gradient;
            test_channel[s] = &reg[s].test;
        }
        order[s] = (pn_order){warmup[s], "FBU"};
        staleness[s] = warmup[s];
        param[s] = (pn_param){
            .name = parameter[s], .rank = 1, .dim = {WIDTH}, .room = WIDTH, .init = PN_UNIFORM, .a = 0.5, .b = 1.5};
        stage_def[s] = (pn_stage_def){
            .what = parameter[s],
            .init = toy_init,
            .forward = toy_forward,
            .backward = toy_backward,
            .test = toy_test,
            .param = &param[s],
            .nparams = 1,
            .weights = weights[s][0],
            .versions = stash ? warmup[s] + 1 : 1,
            .states = 1,
            .weight_floats = WIDTH,
            .gradient = weight_gradient[s],
            .state = velocity[s],
            .ring = warmup[s] + 1,
            .takes = first ? NULL : &forward_channel[s - 1],
            .ntakes = !first,
            .gives = &forward_channel[s],
            .ngives = !last,
            .takes_gradient = &gradient_channel[s],
            .ntakes_gradient = !last,
            .gives_gradient = first ? NULL : &gradient_channel[s - 1],
            .ngives_gradient = !first,
            .takes_test = first ? NULL : &test_channel[s - 1],
            .ntakes_test = !first,
            .gives_test = &test_channel[s],
            .ngives_test = !last,
            .static_bytes = 1000 * (s + 1),
        };
        stages[s] = &stage_def[s];
    }
    phase[0] = (pn_phase){stash ? "stash" : "stale", 0, stash, PN_READS_CURRENT, order, staleness, 0, 0, NULL};
}

#endif
