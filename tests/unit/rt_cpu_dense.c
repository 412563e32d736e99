/* rt_cpu_dense.c: convolution and linear layers of target cpu against the naive kernels: the same bits on small
 * integers, a tolerance on random values; inputs plain and blocked; ring slots and weight versions; two threads with a
 * stage each. */
#include <pthread.h>
#include <unistd.h>

#include "core/algorithms.h"
#include "rt_cpu_world.h"

/* ---- convolution ---- */
typedef struct {
    int64_t batch, in, height, width, out;
    int kernel, stride, pad, dilation, groups, block; /* block: of x's layout; 0: plain */
    bool bias, relu;
} conv_case;

/* Measures, then lets Winograd win wherever there is one. */
static int choose_winograd(world *w)
{
    int possible = 0;
    while (!pn_target_measure(&w->stage))
        ;
    for (cpu_choice *choice = ((cpu_stage *)w->stage.target)->choices; choice; choice = choice->next) {
        possible += cpu_call_runs(&choice->winograd);
        for (int i = 0; i < CPU_ROUNDS; i++) {
            assert_true(choice->seconds[PN_DIRECT][i] > 0);
            assert_true(!cpu_call_runs(&choice->winograd) || choice->seconds[PN_WINOGRAD][i] > 0);
            choice->seconds[PN_DIRECT][i] = 2;
            choice->seconds[PN_WINOGRAD][i] = 1;
        }
    }
    pn_target_settle(&w->stage);
    const struct pn_algorithms *all = w->run.algorithms;
    assert_int_equal(all->count, 3);
    for (int i = 0; i < all->count; i++)
        assert_string_equal(all->line[i].choice, all->line[i].possible ? "winograd" : "direct");
    return possible;
}

/* winograd: how many passes must be Winograd's, when it always wins; below 0: whatever there is; 0: nothing is
 * measured, small integers are done with --exact. */
static void conv_check_with(const conv_case *c, bool exact, int winograd)
{
    world *w = world_new();
    w->run.arithmetic.exact = exact;
    if (winograd != 0) {
        w->run.algorithms = pn_alloc(sizeof *w->run.algorithms);
        w->run.algorithms->measures = true;
    }
    const int64_t oh = ref_conv_size(c->height, c->kernel, c->stride, c->pad, c->dilation);
    const int64_t ow = ref_conv_size(c->width, c->kernel, c->stride, c->pad, c->dilation);
    const ref_conv r = {c->batch, c->in,     c->height, c->width,  c->out, oh,
                        ow,       c->groups, c->kernel, c->stride, c->pad, c->dilation};
    pn_tensor x = tensor("x", 4, c->batch, c->in, c->height, c->width);
    pn_tensor y = tensor("y", 4, c->batch, c->out, oh, ow);
    pn_param weight = param("weight", 4, c->out, c->in / c->groups, c->kernel, c->kernel, 0);
    pn_param bias = param("bias", 1, c->out, 0, 0, 0, BIAS_OFFSET);
    if (c->block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, c->block));
    pn_op *op = pn_conv_init(&w->stage, &(pn_conv_def){"conv", &x, &y, &weight, c->bias ? &bias : NULL, c->groups,
                                                       c->kernel, c->stride, c->pad, c->dilation, c->relu, true});
    world_ready(w);
    if (winograd != 0) {
        const int found = choose_winograd(w);
        assert_true(winograd < 0 || found == winograd);
    }

    const int64_t nx = elements(4, x.dim), ny = elements(4, y.dim), nw = elements(4, weight.dim);
    float *px = numbers(nx, exact, 1), *pw = numbers(nw, exact, 2), *pb = numbers(c->out, exact, 3);
    float *pgy = numbers(ny, exact, 4);
    float *ey = floats(ny), *egx = floats(nx), *egw = floats(nw), *egb = floats(c->out);
    ref_conv_forward(&r, px, pw, c->bias ? pb : NULL, ey);
    if (c->relu)
        ref_relu(ey, ny);
    float *masked = floats(ny);
    memcpy(masked, pgy, (size_t)ny * sizeof *masked);
    if (c->relu)
        ref_relu_mask(ey, masked, ny);
    ref_conv_backward_data(&r, masked, pw, egx);
    ref_conv_backward_weights(&r, px, masked, egw, c->bias ? egb : NULL);

    for (int k = 0; k < SLOTS; k++) { /* ring slots and weight versions in turn */
        float *weights = w->def.weights + (k % VERSIONS) * WEIGHT_FLOATS;
        pn_param_from_plain(&weight, pw, weights + weight.offset);
        pn_param_from_plain(&bias, pb, weights + bias.offset);
        dirty(&y.value);
        dirty(&x.gradient);
        memset(w->def.gradient, 0x41, WEIGHT_FLOATS * sizeof(float));
        float *sx = slot(&x.value, k), *sy = slot(&y.value, k), *gy = slot(&y.gradient, 0), *gx = slot(&x.gradient, 0);
        put(&x, px, sx);
        put(&y, pgy, gy);
        pn_conv_forward(op, sx, weights + weight.offset, c->bias ? weights + bias.offset : NULL, sy);
        same("y", ey, get(&y, sy), ny, exact);
        lanes_are_zero("y", &y, sy);
        if (c->relu)
            pn_relu_mask(&y, sy, gy);
        pn_conv_backward_data(op, gy, weights + weight.offset, gx);
        same("gx", egx, get(&x, gx), nx, exact);
        lanes_are_zero("gx", &x, gx);
        pn_conv_backward_weights(op, sx, gy, w->def.gradient + weight.offset,
                                 c->bias ? w->def.gradient + bias.offset : NULL);
        float *gw = floats(nw);
        pn_param_to_plain(&weight, w->def.gradient + weight.offset, gw);
        same("gw", egw, gw, nw, exact);
        if (c->bias)
            same("gb", egb, w->def.gradient + bias.offset, c->out, exact);
    }
}

static const conv_case conv_cases[] = {
    {4, 1, 28, 28, 6, 5, 1, 2, 1, 1, 0, true, true},   {4, 6, 14, 14, 16, 5, 1, 0, 1, 1, 16, true, true},
    {4, 6, 14, 14, 16, 5, 1, 0, 1, 1, 0, true, false}, {2, 3, 9, 11, 16, 3, 1, 1, 1, 1, 0, false, false},
    {2, 16, 8, 8, 16, 3, 1, 1, 1, 1, 16, false, true}, {2, 16, 9, 9, 32, 3, 2, 1, 1, 1, 16, true, false},
    {2, 32, 7, 7, 20, 1, 2, 0, 1, 1, 16, false, true}, {2, 20, 7, 7, 5, 3, 1, 2, 2, 1, 16, true, true},
    {2, 8, 10, 10, 12, 3, 1, 2, 2, 4, 0, true, false}, {2, 32, 6, 6, 32, 3, 1, 1, 1, 2, 16, true, true},
    {2, 16, 6, 6, 16, 3, 1, 1, 1, 16, 16, true, true}, {1, 5, 5, 4, 7, 2, 3, 1, 1, 1, 0, true, true},
    {3, 7, 12, 12, 9, 4, 2, 1, 1, 1, 16, true, false}, {2, 8, 9, 9, 8, 3, 1, 1, 1, 1, 8, true, true},
    {1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, true, false},    {2, 6, 5, 5, 6, 3, 2, 2, 2, 3, 0, false, true},
};

static void conv_check(const conv_case *c, bool exact)
{
    conv_check_with(c, exact, 0);
}

/* Every case, whatever there is for it. Where layouts are blocked by 16 the kernels of our own must be there; for other
 * channels the library, where it has any. */
static void test_winograd(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        conv_check_with(&conv_cases[i], false, -1);
    if (strncmp(dnn_isa(), "avx512_core", 11) == 0)
        conv_check_with(&(conv_case){4, 32, 16, 16, 32, 3, 1, 1, 1, 1, 16, true, true}, false, 3);
#if DNNL_VERSION_MAJOR == 2
    if (strncmp(dnn_isa(), "avx512_core", 11) == 0)
        conv_check_with(&(conv_case){4, 24, 16, 16, 24, 3, 1, 1, 1, 1, 16, true, true}, false, 3);
#endif
}

static void test_conv(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conv_cases / sizeof *conv_cases; i++)
        for (int exact = 0; exact < 2; exact++)
            conv_check(&conv_cases[i], exact);
}

/* ---- linear ---- */
static void linear_check(int rank, int64_t c, int64_t h, int64_t v, int64_t out, int block, bool relu, bool exact)
{
    world *w = world_new();
    const int64_t batch = 5, in = rank == 4 ? c * h * v : c;
    pn_tensor x = tensor("x", rank, batch, c, h, v), y = tensor("y", 2, batch, out, 0, 0);
    pn_param weight = param("weight", 2, out, in, 0, 0, 0), bias = param("bias", 1, out, 0, 0, 0, BIAS_OFFSET);
    if (block)
        cpu_choose(&w->stage, &x, dnn_blocked(x.dim, block));
    pn_op *op = pn_linear_init(&w->stage, &(pn_linear_def){"linear", &x, &y, &weight, &bias, relu, true});
    world_ready(w);

    float *px = numbers(batch * in, exact, 1), *pw = numbers(out * in, exact, 2), *pb = numbers(out, exact, 3);
    float *pgy = numbers(batch * out, exact, 4);
    float *ey = floats(batch * out), *egx = floats(batch * in), *egw = floats(out * in), *egb = floats(out);
    ref_linear_forward(batch, in, out, px, pw, pb, ey);
    if (relu) {
        ref_relu(ey, batch * out);
        ref_relu_mask(ey, pgy, batch * out);
    }
    ref_linear_backward_data(batch, in, out, pgy, pw, egx);
    ref_linear_backward_weights(batch, in, out, px, pgy, egw, egb);

    float *weights = w->def.weights + WEIGHT_FLOATS, *g = w->def.gradient; /* version 1 */
    pn_param_from_plain(&weight, pw, weights);
    pn_param_from_plain(&bias, pb, weights + bias.offset);
    float *sx = slot(&x.value, 2), *sy = slot(&y.test, 0), *gy = slot(&y.partial, 0), *gx = slot(&x.partial, 0);
    dirty(&x.partial);
    put(&x, px, sx);
    put(&y, pgy, gy);
    pn_linear_forward(op, sx, weights, weights + bias.offset, sy);
    same("y", ey, get(&y, sy), batch * out, exact);
    pn_linear_backward_data(op, gy, weights, gx);
    same("gx", egx, get(&x, gx), batch * in, exact);
    lanes_are_zero("gx", &x, gx);
    pn_linear_backward_weights(op, sx, gy, g, g + bias.offset);
    float *gw = floats(out * in);
    pn_param_to_plain(&weight, g, gw);
    same("gw", egw, gw, out * in, exact);
    same("gb", egb, g + bias.offset, out, exact);
}

static void test_linear(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        linear_check(2, 400, 0, 0, 120, 0, true, exact);
        linear_check(2, 84, 0, 0, 10, 0, false, exact);
        linear_check(2, 3, 0, 0, 1, 0, false, exact);
        linear_check(4, 16, 5, 5, 120, 16, true, exact);
        linear_check(4, 6, 5, 4, 11, 16, false, exact);
        linear_check(4, 6, 5, 4, 11, 0, false, exact);
        linear_check(4, 20, 3, 3, 7, 16, true, exact);
    }
}

/* ---- two stages on two threads: each with its own scratch, the results as on one ---- */
typedef struct {
    world *w;
    pn_op *op;
    pn_tensor x, y;
    pn_param weight;
    float *gradient;
} lane;

static void *turn(void *argument)
{
    lane *l = argument;
    pn_target_thread(&l->w->run);
    for (int i = 0; i < 50; i++) {
        pn_conv_forward(l->op, slot(&l->x.value, i % SLOTS), l->w->def.weights, NULL, slot(&l->y.value, i % SLOTS));
        pn_conv_backward_weights(l->op, slot(&l->x.value, i % SLOTS), slot(&l->y.gradient, 0), l->w->def.gradient,
                                 NULL);
        pn_conv_backward_data(l->op, slot(&l->y.gradient, 0), l->w->def.weights, slot(&l->x.gradient, 0));
    }
    memcpy(l->gradient, slot(&l->x.gradient, 0), (size_t)l->x.gradient.bytes);
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    static lane lanes[2];
    for (int i = 0; i < 2; i++) {
        lane *l = &lanes[i];
        l->w = world_new();
        l->x = tensor("x", 4, 8, 6, 14, 14);
        l->y = tensor("y", 4, 8, 16, 10, 10);
        l->weight = param("weight", 4, 16, 6, 5, 5, 0);
        cpu_choose(&l->w->stage, &l->x, dnn_blocked(l->x.dim, 16));
        l->op = pn_conv_init(&l->w->stage,
                             &(pn_conv_def){"conv", &l->x, &l->y, &l->weight, NULL, 1, 5, 1, 0, 1, false, true});
        world_ready(l->w);
        l->gradient = pn_alloc(l->x.gradient.bytes);
        for (int k = 0; k < SLOTS; k++)
            put(&l->x, numbers(elements(4, l->x.dim), false, (uint64_t)k), slot(&l->x.value, k));
        put(&l->y, numbers(elements(4, l->y.dim), false, 9), slot(&l->y.gradient, 0));
        pn_param_from_plain(&l->weight, numbers(16 * 6 * 25, false, 10), l->w->def.weights);
    }
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, turn, &lanes[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    float *first = pn_alloc(lanes[0].x.gradient.bytes);
    memcpy(first, lanes[0].gradient, (size_t)lanes[0].x.gradient.bytes);
    turn(&lanes[0]);
    assert_memory_equal(first, lanes[0].gradient, (size_t)lanes[0].x.gradient.bytes);
    assert_memory_equal(first, lanes[1].gradient, (size_t)lanes[0].x.gradient.bytes);
    assert_memory_equal(slot(&lanes[0].y.value, 1), slot(&lanes[1].y.value, 1), (size_t)lanes[0].y.value.bytes);
}

/* ---- a slow implementation is told, with the operation's name ---- */
static char *said_of(dnnl_primitive_desc_t descriptor)
{
    static char text[256];
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stderr);
    const int before = dup(2);
    dup2(fileno(file), 2);
    cpu_warn_if_slow("group2.conv7", "gradient of data", descriptor);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

static void test_slow(void **state)
{
    (void)state;
    world *w = world_new();
    const int64_t small[] = {2, 3, 8, 8}, large[] = {2, 16, 8, 8};
    const dnn_window window = {.kernel = {3, 3}, .stride = {1, 1}, .low = {1, 1}, .high = {1, 1}};
    const dnn_layout weights = dnn_any(4, (int64_t[]){16, 3, 3, 3});
    const dnnl_engine_t engine = cpu_open(&w->stage)->engine;
    dnnl_primitive_desc_t good = dnn_convolution(engine, DNN_FORWARD, dnnl_convolution_direct, dnn_any(4, small),
                                                 weights, NULL, dnn_any(4, large), &window, false, NULL);
    assert_string_equal(said_of(good), "");
    /* Blocks of 8 to blocks of 16: a mixture that no fast kernel reads. */
    dnnl_primitive_desc_t slow = dnn_convolution(engine, DNN_FORWARD, dnnl_convolution_direct, dnn_blocked(small, 8),
                                                 weights, NULL, dnn_plain(4, large), &window, false, NULL);
    assert_non_null(slow);
    if (!cpu_is_slow(slow)) {
        fprintf(stderr, "SKIPPED: this oneDNN has fast code (%s) for what others do slowly\n",
                dnn_implementation(slow));
        skip();
    }
    char expected[128];
    snprintf(expected, sizeof expected,
             "warning: group2.conv7: oneDNN has only its reference code for the gradient of data (%s): slow\n",
             dnn_implementation(slow));
    assert_string_equal(said_of(slow), expected);
    dnn_need(dnnl_primitive_desc_destroy(good), "descriptor");
    dnn_need(dnnl_primitive_desc_destroy(slow), "descriptor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),        cmocka_unit_test(test_winograd), cmocka_unit_test(test_linear),
        cmocka_unit_test(test_two_threads), cmocka_unit_test(test_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
