/* ops.c: every op: its descriptor is complete, its shapes and costs are the known ones, its errors have their codes,
 * and its gradients are those of central differences of its own forward, in the evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "net.h"
#include "ref/kernels.h"

/* ---- gradients against central differences ---- */

typedef struct {
    const char *op, *in[3], *attrs;
    int64_t batch;
    bool relu; /* as fuse would set it */
} Case;

/* Not a loss: followed by mse against a target that is one more input. */
static const Case cases[] = {
    {"conv", {"1,1,1"}, "out=1 kernel=1", 1, false},
    {"conv", {"2,5,5"}, "out=3 kernel=3", 2, false},
    {"conv", {"2,5,5"}, "out=3 kernel=1", 2, true},
    {"conv", {"1,6,7"}, "out=2 kernel=5 pad=2", 2, true},
    {"conv", {"2,7,6"}, "out=2 kernel=2 stride=3 pad=1", 1, false},
    {"conv", {"2,7,7"}, "out=2 kernel=3 stride=2 dilation=2 pad=2", 1, false},
    {"conv", {"4,4,4"}, "out=6 kernel=3 pad=1 groups=2", 1, false},
    {"conv", {"3,5,4"}, "out=3 kernel=3 pad=1 groups=3 bias=0", 2, true},
    {"conv", {"1,2,5"}, "out=2 kernel=1 pad=1 stride=2", 2, false},
    {"linear", {"7"}, "out=3", 3, false},
    {"linear", {"7"}, "out=3 bias=0", 1, true},
    {"linear", {"2,3,3"}, "out=5", 2, true},
    {"linear", {"1"}, "out=1", 1, false},
    {"maxpool", {"2,6,6"}, "kernel=2", 2, false},
    {"maxpool", {"2,5,7"}, "kernel=3 stride=2 pad=1", 1, true},
    {"maxpool", {"1,7,7"}, "kernel=2 stride=3", 2, false},
    {"maxpool", {"1,6,5"}, "kernel=3 stride=2 ceil=1", 2, false},
    {"maxpool", {"1,17,17"}, "kernel=17", 1, false}, /* winners do not fit into a byte */
    {"avgpool", {"2,6,6"}, "kernel=2", 2, false},
    {"avgpool", {"2,5,7"}, "kernel=3 stride=2 pad=1", 1, false},
    {"avgpool", {"2,5,7"}, "kernel=3 stride=2 pad=1 count_padding=1", 1, false},
    {"avgpool", {"1,7,7"}, "kernel=2 stride=3", 2, false},
    {"avgpool", {"1,6,5"}, "kernel=3 stride=2 ceil=1", 2, false},
    {"global_avgpool", {"3,4,5"}, "", 2, false},
    {"batch_norm", {"2,3,4"}, "", 3, false},
    {"batch_norm", {"3,2,3"}, "eps=0.1 momentum=0.5", 2, true},
    {"batch_norm", {"5"}, "", 6, false},
    {"batch_norm", {"1"}, "eps=0.01", 3, true},
    {"batch_norm_add", {"2,3,4", "2,3,4"}, "", 3, false},
    {"batch_norm_add", {"2,2,2", "2,2,2"}, "eps=0.1", 2, true},
    {"lrn", {"7,2,3"}, "alpha=2", 2, false},
    {"lrn", {"2,3,2"}, "size=3 alpha=0.5 beta=0.6 k=2", 2, false},
    {"lrn", {"4,9,9"}, "size=1 alpha=1", 1, false},
    {"relu", {"2,3,4"}, "", 2, false},
    {"relu", {"9"}, "", 2, false},
    {"leaky_relu", {"2,3,4"}, "", 2, false},
    {"leaky_relu", {"9"}, "slope=0.3", 2, false},
    {"tanh", {"2,3,4"}, "", 2, false},
    {"sigmoid", {"11"}, "", 2, false},
    {"add", {"2,3,4", "2,3,4"}, "", 2, false},
    {"add", {"5", "5"}, "", 3, true},
    {"shortcut", {"2,5,4"}, "channels=6 stride=2", 2, false},
    {"shortcut", {"1,3,3"}, "channels=4", 2, false},
    {"shortcut", {"2,3,3"}, "channels=2 stride=3", 1, false},
    {"concat", {"2,3,4", "1,3,4"}, "", 2, false},
    {"concat", {"2", "3", "1"}, "", 3, false},
    {"flatten", {"2,3,4"}, "", 2, false},
    {"dropout", {"2,3,4"}, "probability=0.4", 2, false},
    {"dropout", {"40"}, "", 2, false},
    {"softmax_cross_entropy", {"5", "class 5"}, "", 4, false},
    {"softmax_cross_entropy", {"2", "class 2"}, "", 1, false},
    {"mse", {"5", "5"}, "", 3, false},
    {"mse", {"2,3,2", "2,3,2"}, "", 2, false},
    {"mse", {"5", "class 5"}, "", 3, false},
};

static Net *net_of(const Case *test)
{
    Net *net = net_new(test->batch);
    NodeId in[3];
    int nin = 0;
    for (; nin < 3 && test->in[nin] != NULL; nin++)
        in[nin] = net_input(net, net_shape(test->in[nin]));
    const bool loss = (op_find(test->op)->flags & OP_LOSS) != 0;
    NodeId out = net_op(net, test->op, nin, in, test->attrs);
    assert_true(out >= 0);
    net->node[out].relu = test->relu;
    if (!loss) {
        const NodeId target = net_input(net, net->node[out].shape);
        assert_true(net_op(net, "mse", 2, (NodeId[]){out, target}, "") >= 0);
    }
    return net;
}

/* The loss in double, from what its node reads: the stored f32 would drown small differences. */
static double loss_of(Net *net, Eval *eval)
{
    eval_forward(eval, true, 1, 5);
    const Node *loss = &net->node[net->graph.loss];
    const Shape *x = &net->node[loss->in[0]].shape;
    const bool label = net->node[loss->in[1]].shape.dtype == DTYPE_CLASS;
    const void *target = eval->value[loss->in[1]];
    int64_t correct;
    if (strcmp(loss->op->name, "mse") == 0)
        return ref_mse(net->graph.batch, shape_count(x), eval->value[loss->in[0]], label ? NULL : target,
                       label ? target : NULL, &correct);
    return ref_softmax_cross_entropy(net->graph.batch, x->dim[0], eval->value[loss->in[0]], target, NULL, &correct);
}

/* Of 1 plus the largest gradient. The differences' own error: f32 rounding of the outputs over the step, the step
 * squared. */
static const double difference_tolerance = 2e-4;

static double compare(Net *net, Eval *eval, float *x, const float *gradient, int64_t n)
{
    double worst = 0, largest = 0;
    const float step = (float)fmin(0.01, 1.0 / (double)(n + 1));
    for (int64_t i = 0; i < n; i++) {
        const float kept = x[i];
        x[i] = kept + step;
        const double above = loss_of(net, eval), high = x[i];
        x[i] = kept - step;
        const double below = loss_of(net, eval), low = x[i];
        x[i] = kept;
        worst = fmax(worst, fabs((above - below) / (high - low) - gradient[i]));
        largest = fmax(largest, fabs(gradient[i]));
    }
    return worst / (1 + largest);
}

static void gradients(void **state)
{
    const Case *test = *state;
    Net *net = net_of(test);
    Eval *eval = net_eval(net, 42);
    loss_of(net, eval);
    eval_backward(eval, 1, 5);
    double worst = 0;
    for (int i = 0; i < net->graph.ninputs; i++) {
        const Node *input = &net->node[net->input[i]];
        const int64_t n = test->batch * shape_count(&input->shape);
        if (input->shape.dtype == DTYPE_F32)
            worst = fmax(worst, compare(net, eval, eval->value[net->input[i]], eval->gradient[net->input[i]], n));
    }
    for (int i = 0; i < net->graph.nparams; i++)
        worst = fmax(worst,
                     compare(net, eval, eval->param[i], eval->param_gradient[i], net_param_size(&net->graph.param[i])));
    print_message("# %s(%s): %.1e of %.0e\n", test->op, test->attrs, worst, difference_tolerance);
    assert_true(worst <= difference_tolerance);
    arena_free(net->arena);
}

/* ---- descriptors ---- */

static bool has_case(const char *name)
{
    for (int i = 0; i < COUNT(cases); i++)
        if (strcmp(cases[i].op, name) == 0)
            return true;
    return false;
}

static void complete(void **state)
{
    (void)state;
    for (int i = 0; i < op_count; i++) {
        const OpDef *op = op_table[i];
        assert_ptr_equal(op_find(op->name), op);
        if (!op->doc || !op->shape || !op->cost || !op->eval || !op->eval_backward || !has_case(op->name))
            fail_msg("op %s lacks a doc, shape, cost, evaluator or test", op->name);
        assert_true(op->min_in >= 1 && op->max_in >= op->min_in && op->nattrs <= MAX_ATTRS);
        assert_int_equal(op->aux != NULL, (op->needs & NEEDS_AUX) != 0);
        assert_int_equal((op->flags & OP_POINTWISE) != 0, op->expr != NULL && op->derivative != NULL);
        for (int k = 0; k < op->nattrs; k++) {
            assert_non_null(op->attr[k].name);
            assert_non_null(op->attr[k].doc);
            assert_ptr_equal(op_attr(op, op->attr[k].name), &op->attr[k]);
            assert_false(k > 0 && op->attr[k].required && !op->attr[k - 1].required); /* positions first */
        }
        for (int t = 0; t < TARGET_COUNT; t++) {
            const OpEmit *emit = op->emit[t];
            if (!emit || !emit->init || !emit->forward || !emit->backward)
                fail_msg("op %s has no code for target %d", op->name, t);
        }
    }
    assert_null(op_find("convolution"));
    assert_string_equal(op_nearest("maxpol"), "maxpool");
    assert_null(op_nearest("quantum_attention"));
    assert_null(op_attr(op_find("conv"), "strides"));
    Arena *arena = arena_new();
    Text list = text_new(arena);
    op_list(&list);
    assert_non_null(
        strstr(list.data, "conv(x, out, kernel, stride = 1, pad = 0, dilation = 1, groups = 1, bias = true, init = he, "
                          "bias_init = constant(0))"));
    assert_non_null(strstr(list.data, "softmax_cross_entropy(x, target)"));
    arena_free(arena);
}

/* ---- shapes ---- */

static void shapes(void **state)
{
    (void)state;
    static const struct {
        const char *op, *in[2], *attrs, *out;
    } table[] = {
        {"conv", {"1,28,28"}, "out=6 kernel=5 pad=2", "f32[6,28,28]"},
        {"conv", {"3,227,227"}, "out=96 kernel=11 stride=4", "f32[96,55,55]"},
        {"conv", {"3,224,224"}, "out=64 kernel=7 stride=2 pad=3", "f32[64,112,112]"},
        {"conv", {"4,9,9"}, "out=8 kernel=3 dilation=4 groups=4", "f32[8,1,1]"},
        {"linear", {"16,5,5"}, "out=120", "f32[120]"},
        {"maxpool", {"6,28,28"}, "kernel=2", "f32[6,14,14]"},
        {"maxpool", {"6,7,7"}, "kernel=2", "f32[6,3,3]"},
        {"maxpool", {"6,7,7"}, "kernel=2 ceil=1", "f32[6,4,4]"},
        {"maxpool", {"64,112,112"}, "kernel=3 stride=2 pad=1", "f32[64,56,56]"},
        {"maxpool", {"1,3,3"}, "kernel=2 stride=2 pad=1 ceil=1", "f32[1,2,2]"}, /* a third window would start outside */
        {"avgpool", {"6,8,8"}, "kernel=8", "f32[6,1,1]"},
        {"global_avgpool", {"64,8,9"}, "", "f32[64,1,1]"},
        {"batch_norm", {"2,3,4"}, "", "f32[2,3,4]"},
        {"batch_norm", {"7"}, "", "f32[7]"},
        {"batch_norm_add", {"2,3,4", "2,3,4"}, "", "f32[2,3,4]"},
        {"lrn", {"2,3,4"}, "", "f32[2,3,4]"},
        {"tanh", {"2,3,4"}, "", "f32[2,3,4]"},
        {"add", {"2,3,4", "2,3,4"}, "", "f32[2,3,4]"},
        {"shortcut", {"16,32,32"}, "channels=32 stride=2", "f32[32,16,16]"},
        {"shortcut", {"2,7,5"}, "channels=2 stride=3", "f32[2,3,2]"},
        {"concat", {"2,3,4", "5,3,4"}, "", "f32[7,3,4]"},
        {"flatten", {"2,3,4"}, "", "f32[24]"},
        {"dropout", {"2,3,4"}, "", "f32[2,3,4]"},
        {"softmax_cross_entropy", {"10", "class 10"}, "", "f32"},
    };
    for (int i = 0; i < COUNT(table); i++) {
        Net *net = net_new(4);
        NodeId in[2];
        int nin = 0;
        for (; nin < 2 && table[i].in[nin]; nin++)
            in[nin] = net_input(net, net_shape(table[i].in[nin]));
        const NodeId out = net_op(net, table[i].op, nin, in, table[i].attrs);
        assert_true(out >= 0);
        const Shape *shape = &net->node[out].shape;
        if (shape->rank > 0)
            assert_string_equal(shape_text(net->arena, shape), table[i].out);
        else
            assert_int_equal(shape_count(shape), 1);
        arena_free(net->arena);
    }
}

static void errors(void **state)
{
    (void)state;
    static const struct {
        const char *op, *in[2], *attrs, *code, *text;
    } table[] = {
        {"conv", {"1,4,4"}, "out=1 kernel=5", "[P0301]", "5x5 kernel does not fit into a 4x4 image"},
        {"conv", {"1,4,4"}, "out=1 kernel=3 dilation=2", "[P0301]", "5x5 kernel"},
        {"maxpool", {"1,1,4"}, "kernel=2", "[P0301]", "2x2 window does not fit into a 1x4 image"},
        {"conv", {"3,4,4"}, "out=4 kernel=1 groups=2", "[P0302]", "3 input channels"},
        {"conv", {"4,4,4"}, "out=3 kernel=1 groups=2", "[P0302]", "3 output channels"},
        {"conv", {"16"}, "out=3 kernel=1", "[P0303]", "reads an image f32[C,H,W], not f32[16]"},
        {"conv", {"class 10"}, "out=3 kernel=1", "[P0303]", "not class[10]"},
        {"maxpool", {"16"}, "kernel=2", "[P0303]", "an image"},
        {"global_avgpool", {"16"}, "", "[P0303]", "an image"},
        {"batch_norm", {"class 10"}, "", "[P0303]", "a tensor"},
        {"batch_norm", {"3,4"}, "", "[P0303]", "an image f32[C,H,W] or a vector f32[n], not f32[3,4]"},
        {"batch_norm_add", {"2,3,4", "2,3,5"}, "", "[P0304]", "f32[2,3,4] and f32[2,3,5] differ"},
        {"lrn", {"8"}, "", "[P0303]", "an image"},
        {"lrn", {"2,3,4"}, "size=4", "[P0310]", "no middle"},
        {"relu", {"class 10"}, "", "[P0303]", "a tensor"},
        {"linear", {"class 10"}, "out=2", "[P0303]", "a tensor"},
        {"flatten", {"class 10"}, "", "[P0303]", "a tensor"},
        {"dropout", {"class 10"}, "", "[P0303]", "a tensor"},
        {"add", {"2,3,4", "2,3,5"}, "", "[P0304]", "f32[2,3,4] and f32[2,3,5] differ"},
        {"add", {"12", "class 12"}, "", "[P0303]", "a tensor"},
        {"shortcut", {"5,3,4"}, "channels=4", "[P0309]", "4 channels cannot hold the 5"},
        {"shortcut", {"5"}, "channels=8", "[P0303]", "an image"},
        {"concat", {"2,3,4", "2,3,5"}, "", "[P0304]", "first dimension only"},
        {"concat", {"2,3,4", "24"}, "", "[P0304]", "first dimension only"},
        {"softmax_cross_entropy", {"12", "class 10"}, "", "[P0305]", "12 outputs for 10 classes"},
        {"softmax_cross_entropy", {"10,1,1", "class 10"}, "", "[P0303]", "flatten"},
        {"softmax_cross_entropy", {"10", "10"}, "", "[P0303]", "class labels"},
        {"mse", {"10", "class 9"}, "", "[P0305]", "10 outputs for 9 classes"},
        {"mse", {"10", "11"}, "", "[P0304]", "differ"},
        {"linear", {"1048576,1,1"}, "out=1073741824", "[P0306]", "more than 2^40 elements"},
        {"conv", {"1,4000,4000"}, "out=16777216 kernel=1", "[P0306]", "more than 2^40 elements"},
        {"conv", {"1048576,1,1"}, "out=1048576 kernel=3 pad=1", "[P0306]", "the parameter weight"},
        {"maxpool", {"1,4,4"}, "kernel=2 pad=2", "[P0307]", "smaller than the window"},
    };
    for (int i = 0; i < COUNT(table); i++) {
        Net *net = net_new(4);
        NodeId in[2];
        int nin = 0;
        for (; nin < 2 && table[i].in[nin]; nin++)
            in[nin] = net_input(net, net_shape(table[i].in[nin]));
        assert_int_equal(net_op(net, table[i].op, nin, in, table[i].attrs), -1);
        assert_int_equal(diag_errors(net->diags), 1);
        const char *rendered = net_errors(net);
        if (!strstr(rendered, table[i].code) || !strstr(rendered, table[i].text))
            fail_msg("%s(%s): wanted %s and \"%s\" in:\n%s", table[i].op, table[i].attrs, table[i].code, table[i].text,
                     rendered);
        arena_free(net->arena);
    }
}

/* ---- parameters and costs: LeNet-5's first layers, counted by hand ---- */

static void costs(void **state)
{
    (void)state;
    Net *net = net_new(100);
    const NodeId image = net_input(net, net_tensor(3, 1, 28, 28));
    const NodeId conv1 = net_op(net, "conv", 1, &image, "out=6 kernel=5 pad=2");
    const NodeId pool1 = net_op(net, "maxpool", 1, &conv1, "kernel=2");
    const NodeId conv2 = net_op(net, "conv", 1, &pool1, "out=16 kernel=5 groups=2");
    const NodeId fc = net_op(net, "linear", 1, &conv2, "out=120");
    const Graph *graph = &net->graph;
    const Cost first = net->node[conv1].op->cost(graph, &net->node[conv1]);
    assert_true(first.macs == 6 * 28 * 28 * 25.0);
    assert_true(first.forward == 2 * first.macs + 6 * 28 * 28);
    assert_true(first.backward_data == 2 * first.macs);
    assert_true(first.forward_bytes == 4 * (784 + 6 * 784));
    assert_true(net->node[conv2].op->cost(graph, &net->node[conv2]).macs == 16 * 10 * 10 * 3 * 25.0);
    assert_true(net->node[fc].op->cost(graph, &net->node[fc]).macs == 1600 * 120.0);
    assert_true(net->node[pool1].op->cost(graph, &net->node[pool1]).macs == 0);
    assert_true(net->node[pool1].op->cost(graph, &net->node[pool1]).forward == 6 * 14 * 14 * 4.0);
    assert_int_equal(net->node[pool1].op->aux(graph, &net->node[pool1]), 6 * 14 * 14);
    static const struct {
        const char *name;
        int rank;
        int64_t dim[4], fan_in, fan_out;
    } params[] = {
        {"conv1.weight", 4, {6, 1, 5, 5}, 25, 150},    {"conv1.bias", 1, {6}, 25, 150},
        {"conv3.weight", 4, {16, 3, 5, 5}, 75, 200},   {"conv3.bias", 1, {16}, 75, 200},
        {"linear4.weight", 2, {120, 1600}, 1600, 120}, {"linear4.bias", 1, {120}, 1600, 120},
    };
    assert_int_equal(graph->nparams, COUNT(params));
    for (int i = 0; i < COUNT(params); i++) {
        const Param *param = &graph->param[i];
        assert_string_equal(param->name, params[i].name);
        assert_int_equal(param->rank, params[i].rank);
        assert_memory_equal(param->dim, params[i].dim, sizeof param->dim);
        assert_int_equal(param->fan_in, params[i].fan_in);
        assert_int_equal(param->fan_out, params[i].fan_out);
        assert_int_equal(graph->node[param->node].param[i % 2], i);
    }
    assert_int_equal(graph->param[0].init.kind, INIT_HE);
    assert_int_equal(graph->param[1].init.kind, INIT_CONSTANT);
    assert_int_equal(attr_int(&net->node[pool1], "stride"), 2);
    arena_free(net->arena);
}

/* Running statistics belong to a node but are no trainable scalars; its statistics are one set for a minibatch. */
static void running(void **state)
{
    (void)state;
    Net *net = net_new(10);
    const NodeId x = net_input(net, net_tensor(3, 6, 4, 4));
    const NodeId norm = net_op(net, "batch_norm", 1, &x, "");
    const char *const names[] = {"batch_norm1.weight", "batch_norm1.bias", "batch_norm1.running_mean",
                                 "batch_norm1.running_var"};
    static const double initial[] = {1, 0, 0, 1};
    assert_int_equal(net->node[norm].nparams, COUNT(names));
    for (int i = 0; i < COUNT(names); i++) {
        const Param *param = &net->graph.param[net->node[norm].param[i]];
        assert_string_equal(param->name, names[i]);
        assert_int_equal(param->running, i >= 2);
        assert_int_equal(param->init.kind, INIT_CONSTANT);
        assert_true(param->init.a == initial[i] && param->rank == 1 && param->dim[0] == 6);
    }
    assert_int_equal(graph_param_count(&net->graph, norm), 12);
    assert_int_equal(op_aux_bytes(&net->graph, &net->node[norm]), 2 * 6 * 4);
    arena_free(net->arena);

    net = net_new(1);
    const NodeId alone = net_input(net, net_tensor(1, 6, 0, 0));
    assert_int_equal(net_op(net, "batch_norm", 1, &alone, ""), -1);
    assert_non_null(strstr(net_errors(net), "[P0308]"));
    arena_free(net->arena);
}

/* ---- what fuse may do to a node ---- */

/* A chain of pointwise ops in one node computes what the ops do one after another, bit for bit, gradients too. */
static void chain(void **state)
{
    (void)state;
    static const OpDef *links[5];
    static double attrs[5] = {[3] = 0.25, [4] = 0.5};
    links[0] = op_find("sigmoid");
    links[1] = op_find("relu");
    links[2] = op_find("tanh");
    links[3] = links[4] = op_find("leaky_relu");
    Net *net = net_new(3), *fused = net_new(3);
    const Shape shape = net_tensor(3, 2, 5, 4);
    NodeId value = net_input(net, shape);
    value = net_op(net, "tanh", 1, &value, "");
    for (int i = 0; i < 5; i++)
        value = net_op(net, links[i]->name, 1, &value, i == 3 ? "slope=0.25" : i == 4 ? "slope=0.5" : "");
    net_op(net, "mse", 2, (NodeId[]){value, net_input(net, shape)}, "");
    NodeId one = net_input(fused, shape);
    one = net_op(fused, "tanh", 1, &one, "");
    fused->node[one].chain = links;
    fused->node[one].chain_attr = attrs;
    fused->node[one].nchain = 5;
    net_op(fused, "mse", 2, (NodeId[]){one, net_input(fused, shape)}, "");
    Eval *a = net_eval(net, 7), *b = net_eval(fused, 7);
    eval_forward(a, true, 1, 0);
    eval_forward(b, true, 1, 0);
    eval_backward(a, 1, 0);
    eval_backward(b, 1, 0);
    const int64_t n = 3 * shape_count(&shape);
    assert_memory_equal(a->value[value], b->value[one], sizeof(float) * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        assert_true(a->gradient[0][i] == b->gradient[0][i]);
    arena_free(net->arena);
    arena_free(fused->arena);
}

/* node->relu is a relu behind. */
static void fused_relu(void **state)
{
    (void)state;
    Net *net = net_new(2), *fused = net_new(2);
    const NodeId x = net_input(net, net_tensor(3, 2, 6, 6)), y = net_input(fused, net_tensor(3, 2, 6, 6));
    NodeId a = net_op(net, "conv", 1, &x, "out=3 kernel=3");
    a = net_op(net, "relu", 1, &a, "");
    const NodeId b = net_op(fused, "conv", 1, &y, "out=3 kernel=3");
    fused->node[b].relu = true;
    net_op(net, "mse", 2, (NodeId[]){a, net_input(net, net->node[a].shape)}, "");
    net_op(fused, "mse", 2, (NodeId[]){b, net_input(fused, fused->node[b].shape)}, "");
    Eval *one = net_eval(net, 3), *two = net_eval(fused, 3);
    eval_forward(one, true, 1, 0);
    eval_forward(two, true, 1, 0);
    eval_backward(one, 1, 0);
    eval_backward(two, 1, 0);
    assert_memory_equal(one->value[a], two->value[b], sizeof(float) * 2 * 3 * 16);
    assert_memory_equal(one->param_gradient[0], two->param_gradient[0], sizeof(float) * 54);
    assert_memory_equal(one->gradient[x], two->gradient[y], sizeof(float) * 144);
    arena_free(net->arena);
    arena_free(fused->arena);
}

/* A value read several times, by one node too, sums its gradients. */
static void fan_out(void **state)
{
    (void)state;
    Net *net = net_new(1);
    const NodeId x = net_input(net, net_tensor(1, 4, 0, 0));
    const NodeId twice = net_op(net, "add", 2, (NodeId[]){x, x}, "");
    const NodeId four = net_op(net, "concat", 2, (NodeId[]){twice, x}, "");
    net_op(net, "mse", 2, (NodeId[]){four, net_input(net, net->node[four].shape)}, "");
    Eval *eval = net_eval(net, 5);
    eval_forward(eval, true, 1, 0);
    eval_backward(eval, 1, 0);
    for (int i = 0; i < 4; i++)
        assert_true(eval->gradient[x][i] ==
                    eval->gradient[four][4 + i] + eval->gradient[four][i] + eval->gradient[four][i]);
    arena_free(net->arena);
}

/* ---- dropout: its mask ---- */

static void dropout(void **state)
{
    (void)state;
    enum { BATCH = 50, SIZE = 200, N = BATCH * SIZE };
    Net *net = net_new(BATCH);
    const NodeId x = net_input(net, net_tensor(1, SIZE, 0, 0));
    const NodeId y = net_op(net, "dropout", 1, &x, "probability=0.25");
    Eval *eval = net_eval(net, 1);
    eval_forward(eval, true, 11, 3);
    const uint8_t *mask = eval->aux[y];
    int zeros = 0;
    for (int i = 0; i < N; i++) {
        zeros += !mask[i];
        assert_true(eval->value[y][i] == (mask[i] ? eval->value[x][i] * (float)(1 / 0.75) : 0.0f));
        assert_int_equal(mask[i], pn_uniform(pn_dropout_key(11, net->node[y].name, 3), (uint64_t)i) >= 0.25);
    }
    assert_true(abs(zeros - N / 4) < 4 * 44); /* 4 deviations of the binomial, sqrt(10000 * 3/16) = 43.3 */
    uint8_t before[N];
    memcpy(before, mask, N);
    eval_forward(eval, true, 11, 4);
    assert_memory_not_equal(before, mask, N); /* another minibatch, another mask */
    eval_forward(eval, true, 11, 3);
    assert_memory_equal(before, mask, N);
    eval_forward(eval, false, 11, 3);
    assert_memory_equal(eval->value[y], eval->value[x], sizeof(float) * N); /* testing: the identity */
    arena_free(net->arena);
}

/* The loss counts right answers, and does not overflow on large logits. */
static void losses(void **state)
{
    (void)state;
    Net *net = net_new(2);
    const NodeId x = net_input(net, net_tensor(1, 3, 0, 0)), label = net_input(net, net_shape("class 3"));
    const NodeId loss = net_op(net, "softmax_cross_entropy", 2, (NodeId[]){x, label}, "");
    Eval *eval = net_eval(net, 1);
    memcpy(eval->value[x], (float[]){1000, 0, -1000, 2, 2, 2}, sizeof(float) * 6);
    memcpy(eval->value[label], (int32_t[]){0, 1}, sizeof(int32_t) * 2);
    eval_forward(eval, true, 1, 0);
    assert_int_equal(eval->correct, 1); /* of equal logits the first one is the answer */
    assert_true(fabs(eval->value[loss][0] - log(3) / 2) < 1e-7);
    arena_free(net->arena);
}

int main(void)
{
    static char names[COUNT(cases)][96];
    static struct CMUnitTest tests[COUNT(cases) + 10];
    int count = 0;
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(complete);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(shapes);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(errors);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(running);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(costs);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(chain);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(fused_relu);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(fan_out);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(dropout);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(losses);
    for (int i = 0; i < COUNT(cases); i++) {
        snprintf(names[i], sizeof names[i], "gradients of %s(%s %s) %s", cases[i].op, cases[i].in[0], cases[i].attrs,
                 cases[i].relu ? "relu" : "");
        tests[count++] = (struct CMUnitTest){
            .name = names[i], .test_func = gradients, .initial_state = (void *)(uintptr_t)&cases[i]};
    }
    return _cmocka_run_group_tests("ops", tests, (size_t)count, NULL, NULL);
}
