/* cost.c: times of nodes by hand, from machines and from profiles; what a step takes under each schedule and link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "lowered.h"
#include "predict.h"

#define NET_OF(batch)                                                                                                  \
    "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"                                                \
    " a = image |> conv(8, kernel = 3, pad = 1) |> relu\n register\n"                                                  \
    " loss softmax_cross_entropy(linear(a, 3), label)\n}\n"                                                            \
    "train {\n data = raw(path = \"x\")\n batch = " #batch "\n lr = constant(0.1)\n steps = 5\n}\n"
#define NET   NET_OF(2)
#define STALE "pipeline { schedule = stale }\n"

static CostModel model_of(Lowered *l, int target)
{
    CostModel model = {.hardware = hardware_find(l->arena, l->diags, &l->sources, &l->settings, NULL),
                       .target = target_table[target],
                       .states = optimizer_states(&l->settings.train.optimizer)};
    if (!model.hardware) {
        diags_render(l->diags, stderr, false);
        fail_msg("the machine was refused");
    }
    return model;
}

static void near_to(double got, double wanted)
{
    if (!(got > wanted * (1 - 1e-9) - 1e-15 && got < wanted * (1 + 1e-9) + 1e-15))
        fail_msg("got %.12g, wanted %.12g", got, wanted);
}

static void machines_are_read_in_base_units(void **state)
{
    (void)state;
    Lowered *l = lowered(NET "machine m {\n device a {\n count = 2\n compute = 116 GFLOP/s\n bandwidth = 40 GB/s\n"
                             " memory = 2 GiB\n overhead = 10 us\n half_width = 7\n efficiency { linear = 0.5 }\n }\n"
                             " device b {\n compute = 1.5 TFLOP/s\n bandwidth = 800 Gbit/s\n }\n"
                             " link x {\n bandwidth = 10 Gbit/s\n latency = 3 us\n overlap = no\n }\n link y { }\n}\n");
    const Hardware *h = model_of(l, 0).hardware;
    assert_int_equal(h->ndevices, 2);
    assert_int_equal(h->workers, 3);
    assert_int_equal(h->nlinks, 2);
    near_to(h->device[0].compute, 116e9);
    near_to(h->device[0].bandwidth, 40e9);
    near_to(h->device[0].overhead, 10e-6);
    near_to(h->device[0].half_width, 7);
    assert_int_equal(h->device[0].memory, INT64_C(2) << 30);
    near_to(h->device[1].compute, 1.5e12);
    near_to(h->device[1].bandwidth, 100e9);
    for (int i = 0; i < op_count; i++)
        near_to(h->device[0].efficiency[i], strcmp(op_table[i]->name, "linear") ? 1 : 0.5);
    near_to(h->link[0].bandwidth, 1.25e9);
    assert_false(h->link[0].overlap);
    assert_true(h->link[1].overlap);
    near_to(cost_transfer(&h->link[0], 1250000), 3e-6 + 1e-3);
    near_to(cost_transfer(&h->link[1], 1250000), 0);
    assert_string_equal(hardware_link(h, 7).name, "y");
    const int kinds[] = {hardware_kind(h, 0), hardware_kind(h, 1), hardware_kind(h, 2)};
    assert_true(kinds[0] == 0 && kinds[1] == 0 && kinds[2] == 1);
    for (int s = 0; s < 6; s++) /* six stages share three workers in twos */
        assert_int_equal(hardware_worker(h, s, 6), s / 2);
    assert_int_equal(hardware_worker(h, 1, 3), 1);
    arena_free(l->arena);
}

/* By hand, two samples. conv: 9216 MACs a sample, 512 outputs with bias, weights 144 + 8. */
static void a_roofline_by_hand(void **state)
{
    (void)state;
    Lowered *l = lowered(NET "machine m {\n device a {\n compute = 1 GFLOP/s\n bandwidth = 1 GB/s\n overhead = 1 us\n"
                             " efficiency {\n conv = 0.5\n linear = 2\n }\n }\n}\n");
    const CostModel model = model_of(l, TARGET_ref);
    const NodeTime *time = cost_times(l->arena, &model, l->fused, l->backward, 0);
    const NodeTime *conv = &time[node_named(l->fused, "conv1")];
    const double flops = 2 * (2 * 9216 + 512);
    near_to(conv->forward, 1e-6 + flops / 0.5e9 + 4 * (144 + 8) / 1e9); /* weights are read behind no product */
    near_to(conv->backward_data, 0);                                    /* nobody wants the gradient of the image */
    near_to(conv->backward_weights, 1e-6 + flops / 0.5e9 + 8 * (144 + 8) / 1e9); /* lines are read, then written */
    /* weights, gradient and no state: read weight and gradient, write weight; momentum: state read and written */
    near_to(conv->update, 4 * (144 + 8) * (3 + 2.0 * model.states) / 1e9);
    /* linear: 1536 MACs a sample; weights 1536 + 3: bytes of the forward 2 * (512 + 3) * 4 > FLOPs / 2 */
    const NodeTime *linear = &time[node_named(l->fused, "linear1")];
    const double bytes = 4 * 2 * (512 + 3);
    assert_true(bytes / 1e9 > 2 * (2 * 1536 + 3) / 2e9);
    near_to(linear->forward, 1e-6 + bytes / 1e9 + 4 * 1539 / 1e9);
    arena_free(l->arena);
}

/* On the cpu 8 channels are stored, and computed, as 16. */
static void padding_costs(void **state)
{
    (void)state;
    Lowered *l = lowered(NET "machine m {\n device a {\n compute = 1 MFLOP/s\n bandwidth = 10000 TB/s\n"
                             " half_width = 16\n }\n}\n");
    const CostModel plain = model_of(l, TARGET_ref), padded = model_of(l, TARGET_cpu);
    const NodeId conv = node_named(l->fused, "conv1");
    const double flops = 2 * (2 * 9216 + 512);
    near_to(cost_times(l->arena, &plain, l->fused, l->backward, 0)[conv].forward, flops / 1e6 * (8 + 16) / 8);
    near_to(cost_times(l->arena, &padded, l->fused, l->backward, 0)[conv].forward, 2 * flops / 1e6 * (16 + 16) / 16);
    arena_free(l->arena);
}

/* The products of 36 points a tile, 40 tiles in three times 16, the transforms of both sides, the weights; direct where
 * the device has none. */
static void winograd_by_hand(void **state)
{
    (void)state;
    Lowered *l = lowered("network n {\n input image: f32[16, 8, 8]\n input label: class[3]\n"
                         " a = image |> conv(16, kernel = 3, pad = 1) |> conv(32, kernel = 3, pad = 1)\n"
                         " loss softmax_cross_entropy(linear(a, 3), label)\n}\n"
                         "train {\n data = raw(path = \"x\")\n batch = 10\n}\n"
                         "machine m {\n device a {\n compute = 2 GFLOP/s\n bandwidth = 1 GB/s\n overhead = 1 us\n"
                         " winograd = 0.5\n }\n device b {\n compute = 2 GFLOP/s\n bandwidth = 1 GB/s\n }\n}\n");
    const CostModel cpu = model_of(l, TARGET_cpu), ref = model_of(l, TARGET_ref);
    const NodeId first = node_named(l->fused, "conv1"), second = node_named(l->fused, "a");
    assert_false(cost_winograd(&cpu, l->fused, first, 0)); /* the network's inputs stay plain */
    assert_true(cost_winograd(&cpu, l->fused, second, 0));
    assert_false(cost_winograd(&cpu, l->fused, second, 1));
    assert_false(cost_winograd(&ref, l->fused, second, 0));
    const NodeTime *time = cost_times(l->arena, &cpu, l->fused, l->backward, 0);
    const double tiles = 48, products = 2.0 * 36 * 16 * 32 * tiles;
    const double bytes = 4 * ((16 + 32) * tiles * (16 + 36) + 16 * 32 * (9 + 3 * 36));
    const double wanted = 1e-6 + products / 1e9 + bytes / 1e9;
    near_to(time[second].forward, wanted);
    near_to(time[second].backward_data, wanted);
    near_to(time[second].backward_weights, wanted + 4 * 16 * 32 * (18 + 5 * 36 - (9 + 3 * 36)) / 1e9);
    assert_true(cost_times(l->arena, &ref, l->fused, l->backward, 0)[second].forward > wanted);
    Graph slice = *l->fused;
    slice.batch = 3; /* 12 tiles: too few */
    assert_false(cost_winograd(&cpu, &slice, second, 0));
    arena_free(l->arena);
}

/* ---- profiles ---- */

#define HEAD(network, graph, batch, target, machine, versions)                                                         \
    "pnet profile 1\nnetwork " network "\ngraph " graph "\n\nbatch " batch "\ntarget " target "\nmachine " machine     \
    "\nversions " versions "\n# node forward backward update\n"

static const Profile *read_text(Lowered *l, const char *text, const char *machine)
{
    const char *folder = getenv("TMPDIR");
    char *path = arena_printf(l->arena, "%s/pnetc-profile-XXXXXX", folder ? folder : "/tmp");
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    const Profile *profile =
        profile_read(l->arena, l->diags, &l->sources, path, l->graph, target_table[TARGET_ref], 1, machine);
    unlink(path);
    return profile;
}

static const char *head(Lowered *l)
{
    return arena_printf(l->arena, HEAD("n", "%s", "2", "ref", "m", "pnetc " PNETC_VERSION ", none"),
                        graph_hash(l->arena, l->graph));
}

static void profiles_give_times_and_fall_back(void **state)
{
    (void)state;
    Lowered *l =
        lowered(NET "machine m {\n device a {\n compute = 1 GFLOP/s\n bandwidth = 1 GB/s\n count = 2\n }\n}\n" STALE);
    CostModel model = model_of(l, TARGET_ref);
    model.profile = read_text(l, arena_printf(l->arena, "%sconv1 100 250.5 3\n", head(l)), "m");
    assert_non_null(model.profile);
    const NodeTime *time = cost_times(l->arena, &model, l->fused, l->backward, 0);
    const NodeTime *conv = &time[node_named(l->fused, "conv1")], *linear = &time[node_named(l->fused, "linear1")];
    assert_true(conv->measured && !linear->measured);
    near_to(conv->forward, 100e-6);
    near_to(conv->backward_data + conv->backward_weights, 250.5e-6);
    near_to(conv->update, 3e-6);
    assert_true(linear->forward > 0);
    const Sched *sched = schedule(l->arena, l->diags, l->pipe, &l->settings);
    const Prediction *p = predict(l->arena, sched, &model);
    assert_int_equal(p->timed, 3);
    assert_int_equal(p->measured, 1);
    arena_free(l->arena);
}

static void other_profiles_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says; /* HASH stands for the right one */
    } cases[] = {
        {"", ":1:1: error: this is no profile"},
        {"pnet profile 2\n", ":1:14: error: a profile of version 2"},
        {"pnet profile 1\n", ":2:1: error: the profile ends here, before its line 'network ...'"},
        {"pnet profile 1\nnetwork n\ngra", ":3:1: error: expected 'graph ...' here"},
        {HEAD("m", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION),
         ":2:9: error: the profile is of network m; this is network n"},
        {HEAD("n", "0123456789abcdef", "2", "ref", "m", "pnetc " PNETC_VERSION),
         ":3:7: error: the profile is of the graph"},
        {HEAD("n", "HASH", "20", "ref", "m", "pnetc " PNETC_VERSION),
         ":5:7: error: the profile is of batch 20; this is batch 2"},
        {HEAD("n", "HASH", "2", "cpu", "m", "pnetc " PNETC_VERSION), ":6:8: error: the profile is of target cpu"},
        {HEAD("n", "HASH", "2", "ref", "o", "pnetc " PNETC_VERSION), ":7:9: error: the profile is of machine o"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc 0.0.1"), ":8:10: error: the profile is of pnetc 0.0.1"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 2\n", ":10:1: error: expected a node"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 2 3",
         ":10:1: error: the profile is cut off in this line"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv2 1 2 3\n", "hint: did you mean conv1?"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 -2 3\n",
         "hint: the nearest possible is 0"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 0 2 1\n", ":10:7: error: conv1 takes 0 us"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 -2 1\n",
         ":10:9: error: conv1 takes -2 us"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 2 nan\n",
         ":10:11: error: expected a number"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1e30 2 1\n", "over an hour"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv9 1 2 1\n",
         ":10:1: error: n has no node conv9"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "conv1 1 2 1\n\nconv1 1 2 1\n",
         ":12:1: error: conv1 is timed twice"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION), ":10:1: error: the profile has no times"},
        {HEAD("n", "HASH", "2", "ref", "m", "pnetc " PNETC_VERSION) "handover -1\nconv1 1 2 1\n",
         ":10:10: error: handover takes -1 us"},
    };
    for (int i = 0; i < COUNT(cases); i++) {
        Lowered *l = lowered(NET STALE);
        Text text = text_new(l->arena);
        const char *hash = strstr(cases[i].text, "HASH");
        text_append(&text, cases[i].text, hash ? (size_t)(hash - cases[i].text) : strlen(cases[i].text));
        if (hash)
            text_printf(&text, "%s%s", graph_hash(l->arena, l->graph), hash + 4);
        assert_null(read_text(l, text.data, "m"));
        char *said = NULL;
        size_t length = 0;
        FILE *out = open_memstream(&said, &length);
        assert_non_null(out);
        diags_render(l->diags, out, false);
        assert_int_equal(fclose(out), 0);
        if (!strstr(said, cases[i].says) || diag_errors(l->diags) != 1)
            fail_msg("expected '%s' in:\n%s", cases[i].says, said);
        free(said);
        arena_free(l->arena);
    }
}

/* Any change of the network, and none of its registers, changes the hash. */
static void the_hash_is_of_the_network(void **state)
{
    (void)state;
    static const char *const other[] = {
        NET,
        "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"
        " a = image |> conv(8, kernel = 3, pad = 1) |> relu\n"
        " loss softmax_cross_entropy(linear(a, 3), label)\n}\ntrain {\n data = raw(path = \"x\")\n batch = 2\n}\n",
        "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"
        " a = image |> conv(8, kernel = 3, pad = 1, bias = no) |> relu\n"
        " loss softmax_cross_entropy(linear(a, 3), label)\n}\ntrain {\n data = raw(path = \"x\")\n batch = 2\n}\n",
        "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"
        " a = image |> conv(8, kernel = 3, pad = 1) |> tanh\n"
        " loss softmax_cross_entropy(linear(a, 3), label)\n}\ntrain {\n data = raw(path = \"x\")\n batch = 2\n}\n",
        "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"
        " a = image |> conv(8, kernel = 3, pad = 1) |> relu\n"
        " loss softmax_cross_entropy(linear(a, 3), label)\n}\ntrain {\n data = raw(path = \"x\")\n batch = 3\n}\n",
    };
    char hash[COUNT(other)][20];
    for (int i = 0; i < COUNT(other); i++) {
        Lowered *l = lowered(other[i]);
        snprintf(hash[i], sizeof hash[i], "%s", graph_hash(l->arena, l->graph));
        arena_free(l->arena);
    }
    assert_string_equal(hash[0], hash[1]);
    for (int i = 2; i < COUNT(other); i++)
        for (int k = 0; k < i; k++)
            if (k != 1 && !strcmp(hash[i], hash[k]))
                fail_msg("networks %d and %d have one hash", i, k);
}

/* ---- steps ---- */

/* us a microbatch: forward, backward, update. */
#define TIMES "conv1 100 200 1\nlinear1 150 250 2\nsoftmax_cross_entropy1 10 20 0\n"

static double step_of(const char *net, const char *pipeline, const char *machine, const char *times, double alone)
{
    Arena *arena = arena_new();
    Lowered *l = lowered(arena_printf(arena, "%s%s%s", net, pipeline, machine));
    CostModel model = model_of(l, TARGET_ref);
    model.profile = read_text(l, arena_printf(l->arena, "%s%s", head(l), times), NULL);
    if (!model.profile)
        diags_render(l->diags, stderr, false);
    assert_non_null(model.profile);
    const Sched *sched = schedule(l->arena, l->diags, l->pipe, &l->settings);
    assert_non_null(sched);
    const Prediction *p = predict(l->arena, sched, &model);
    near_to(p->one_worker, alone);
    near_to(p->speedup, alone / p->step);
    const double seconds = p->step;
    arena_free(l->arena);
    arena_free(arena);
    return seconds;
}

/* Stage 0 takes 100 + 200 us, stage 1 150 + 250 (linear) + 10 + 20 (loss); updates 1 and 2 us. The register holds 2 x 8
 * x 8 x 8 floats: 4096 B each way. */
static double step(const char *pipeline, const char *machine)
{
    return step_of(NET, pipeline, machine, TIMES, 733e-6);
}

#define MACHINE(count, link)                                                                                           \
    "machine m {\n device a {\n count = " #count "\n compute = 1 GFLOP/s\n bandwidth = 1 GB/s\n }\n" link "\n}\n"

static void steps_of_schedules_and_links(void **state)
{
    (void)state;
    const double slow = 432e-6, sum = 733e-6;
    near_to(step("pipeline { schedule = stale }\n", MACHINE(2, "")), slow);
    near_to(step("pipeline { schedule = stale_1f1b }\n", MACHINE(2, "")), slow);
    near_to(step("pipeline { schedule = pipedream }\n", MACHINE(2, "")), slow);
    near_to(step("pipeline { schedule = sequential }\n", MACHINE(1, "")), sum);
    near_to(step("pipeline { schedule = stale }\n", MACHINE(1, "")), sum); /* two stages share one worker */
    /* a link beside the work: 4096 B at 100 MB/s is 41 us each way, hidden; at 8 MB/s 1024 us there and back */
    near_to(step("pipeline { schedule = stale }\n", MACHINE(2, " link l { bandwidth = 100 MB/s }")), slow);
    near_to(step("pipeline { schedule = stale }\n", MACHINE(2, " link l { bandwidth = 8 MB/s }")), 1024e-6);
    /* a link that holds up both ends: its time is added to the slowest stage */
    near_to(step("pipeline { schedule = stale }\n",
                 MACHINE(2, " link l {\n bandwidth = 100 MB/s\n overlap = no\n latency = 5 us\n }")),
            slow + 2 * (4096 / 100e6 + 5e-6));
    /* one at a time: all the work but the update of stage 1, which runs beside the backward of stage 0 */
    const double sequential = step("pipeline { schedule = sequential }\n", MACHINE(2, ""));
    assert_true(sequential > sum - 3e-6 && sequential <= sum);
}

/* A link of zero copy takes as long as the profile says, another one as the machine:
 * there, and back. */
static void a_profile_knows_what_a_handover_takes(void **state)
{
    (void)state;
    static const char times[] = "handover 7\n" TIMES, once[] = "pipeline { schedule = sequential }\n";
    const double none = step_of(NET, once, MACHINE(2, ""), TIMES, 733e-6);
    near_to(step_of(NET, once, MACHINE(2, ""), times, 733e-6), none + 2 * 7e-6);
    near_to(step_of(NET, once, MACHINE(2, " link l { latency = 3 us }"), times, 733e-6), none + 2 * 7e-6);
    near_to(step_of(NET, once, MACHINE(2, " link l {\n latency = 3 us\n bandwidth = 4096 MB/s\n }"), times, 733e-6),
            none + 2 * (3e-6 + 1e-6));
}

/* Two microbatches: 152 and 1539 floats of gradients are read and written, then twice read and written, at 1 GB/s. */
static void microbatches_cost_the_mean_of_their_gradients(void **state)
{
    (void)state;
    const double first = 4 * 5 * 152e-9, second = 4 * 5 * 1539e-9, sum = 2 * 730e-6 + 3e-6 + first + second;
    const char *flush = "pipeline { schedule = pipedream_2bw(microbatches = 2) }\n";
    near_to(step_of(NET_OF(4), flush, MACHINE(1, ""), TIMES, sum), sum);
    near_to(step_of(NET_OF(4), flush, MACHINE(2, ""), TIMES, sum), 2 * 430e-6 + 2e-6 + second);
}

/* Stage 0: 70 + 30 us forward, 200 backward, 1 update; stage 1 160 + 240 + 2. The register has one slot, which stage 1
 * keeps to the end of its backward. Meanwhile stage 0 has done the first 70 of its next forward: the other 30 lie
 * between a backward of stage 1 and its next forward, with its update beside them. */
static void a_forward_waits_for_room_where_it_gives(void **state)
{
    (void)state;
    static const char net[] = "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n"
                              " a = image |> conv(8, kernel = 3, pad = 1) |> tanh |> maxpool(2)\n register\n"
                              " loss softmax_cross_entropy(linear(a, 3), label)\n}\n"
                              "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\n";
    static const char times[] = "conv1 50 100 1\ntanh1 20 70 0\na 30 30 0\nlinear1 150 220 2\n"
                                "softmax_cross_entropy1 10 20 0\n";
    near_to(step_of(net, "pipeline { schedule = features_replay }\n", MACHINE(2, ""), times, 703e-6), 430e-6);
}

/* One minibatch at a time: stage 0 computes its 100 us again while stage 1 does its 430, then 200 backward. */
static void what_is_computed_again_is_there_when_the_gradient_comes(void **state)
{
    (void)state;
    static const char once[] = "pipeline { schedule = pipedream_flush(microbatches = 1, recompute = yes) }\n";
    near_to(step_of(NET, once, MACHINE(2, ""), TIMES, 733e-6), 731e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_are_read_in_base_units),
        cmocka_unit_test(a_roofline_by_hand),
        cmocka_unit_test(padding_costs),
        cmocka_unit_test(winograd_by_hand),
        cmocka_unit_test(profiles_give_times_and_fall_back),
        cmocka_unit_test(other_profiles_are_refused),
        cmocka_unit_test(the_hash_is_of_the_network),
        cmocka_unit_test(steps_of_schedules_and_links),
        cmocka_unit_test(a_profile_knows_what_a_handover_takes),
        cmocka_unit_test(microbatches_cost_the_mean_of_their_gradients),
        cmocka_unit_test(a_forward_waits_for_room_where_it_gives),
        cmocka_unit_test(what_is_computed_again_is_there_when_the_gradient_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
