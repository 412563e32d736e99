/* fuse.c: what merges and what must not, by name; and that random networks compute the same bits fused, unfused and
 * with other cuts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"

#define NETWORK(body)                                                                                                  \
    "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n" body "}\n"                                     \
    "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\n"

/* "conv1[relu1]:relu1 pool1 |" : ops in order with what they absorbed, the name of the value where it differs, cuts. */
static const char *form(Lowered *l)
{
    const Graph *g = l->fused;
    Text text = text_new(l->arena);
    for (NodeId i = 0, cut = 0; i < g->nnodes; i++) {
        const Node *node = &g->node[i];
        if (cut < g->ncuts && g->cut[cut].before == i && ++cut)
            text_printf(&text, " |");
        if (!node->op)
            continue;
        text_printf(&text, "%s%s", text.length ? " " : "", node->name);
        if (node->fused)
            text_printf(&text, "[%s]", node->fused);
        if (strcmp(node->name, node->value_name))
            text_printf(&text, ":%s", node->value_name);
        text_printf(&text, "%s", node->relu ? "+" : "");
        for (int k = 0; k < node->nchain; k++)
            text_printf(&text, ">%s", node->chain[k]->name);
    }
    return text.data;
}

static void check_form(const char *text, const char *expected)
{
    Lowered *l = lowered(text);
    assert_string_equal(form(l), expected);
    arena_free(l->arena);
}
#define IS(body, expected) check_form(NETWORK(body), expected)

static void relu_joins_its_producer(void **state)
{
    (void)state;
    IS("loss softmax_cross_entropy(image |> conv(2, kernel = 3) |> relu |> linear(3) |> relu, label)\n",
       "conv1[relu1]:relu1+ linear1[relu2]:relu2+ softmax_cross_entropy1");
    /* two readers of the conv, or a cut between: not */
    IS("c = image |> conv(2, kernel = 3)\n loss softmax_cross_entropy(linear(c + relu(c), 3), label)\n",
       "c relu1 add1 linear1 softmax_cross_entropy1");
    IS("c = image |> conv(2, kernel = 3)\n register\n loss softmax_cross_entropy(linear(relu(c), 3), label)\n",
       "c | relu1 linear1 softmax_cross_entropy1");
    /* the relu may have several readers */
    IS("c = image |> conv(2, kernel = 3) |> relu\n loss softmax_cross_entropy(linear(c + c, 3), label)\n",
       "conv1[c]:c+ add1 linear1 softmax_cross_entropy1");
    IS("a = image |> conv(2, kernel = 1)\n loss softmax_cross_entropy(linear(relu(relu(a + image)), 3), label)\n",
       "a add1[relu1 relu2]:relu2+ linear1 softmax_cross_entropy1");
}

static void relu_moves_behind_the_pool(void **state)
{
    (void)state;
    IS("loss softmax_cross_entropy(image |> conv(2, kernel = 3) |> relu |> maxpool(2) |> linear(3), label)\n",
       "conv1 maxpool1[relu1]+ linear1 softmax_cross_entropy1");
    IS("loss softmax_cross_entropy(image |> relu |> maxpool(2) |> linear(3), label)\n",
       "maxpool1[relu1]+ linear1 softmax_cross_entropy1");
    /* through two pools */
    IS("loss softmax_cross_entropy(image |> relu |> maxpool(2) |> relu |> maxpool(2) |> linear(3), label)\n",
       "maxpool1 maxpool2[relu1 relu2]+ linear1 softmax_cross_entropy1");
    IS("r = image |> conv(2, kernel = 3) |> relu\n register\n loss softmax_cross_entropy(r |> maxpool(2) |> linear(3), "
       "label)\n",
       "conv1[r]:r+ | maxpool1 linear1 softmax_cross_entropy1");
    IS("r = image |> conv(2, kernel = 3) |> relu\n loss softmax_cross_entropy(concat(flatten(maxpool(r, 2)), "
       "flatten(r)) |> "
       "linear(3), label)\n",
       "conv1[r]:r+ maxpool1 flatten1 flatten2 concat1 linear1 softmax_cross_entropy1");
    IS("loss softmax_cross_entropy(image |> relu |> avgpool(2) |> linear(3), label)\n",
       "relu1 avgpool1 linear1 softmax_cross_entropy1");
}

static void pointwise_ops_become_chains(void **state)
{
    (void)state;
    IS("loss softmax_cross_entropy(image |> conv(2, kernel = 3) |> tanh |> sigmoid |> relu |> linear(3), label)\n",
       "conv1 tanh1[sigmoid1 relu1]:relu1>sigmoid>relu linear1 softmax_cross_entropy1");
    IS("t = tanh(image)\n register\n loss softmax_cross_entropy(sigmoid(t) |> linear(3), label)\n",
       "t | sigmoid1 linear1 softmax_cross_entropy1");
    IS("t = tanh(image)\n loss softmax_cross_entropy(linear(t + sigmoid(t), 3), label)\n",
       "t sigmoid1 add1 linear1 softmax_cross_entropy1");
    IS("loss softmax_cross_entropy(image |> tanh |> dropout(probability = 0.5) |> sigmoid |> linear(3), label)\n",
       "tanh1 dropout1 sigmoid1 linear1 softmax_cross_entropy1");
}

static void long_chains_are_split(void **state)
{
    (void)state;
    Lowered *l = lowered(NETWORK("x = image\n for i in 0..40 { x = tanh(x) }\n"
                                 "loss softmax_cross_entropy(linear(x, 3), label)\n"));
    int pointwise = 0;
    for (NodeId i = 0; i < l->fused->nnodes; i++)
        if (l->fused->node[i].op && l->fused->node[i].op->flags & OP_POINTWISE)
            pointwise += 1 + l->fused->node[i].nchain;
    assert_int_equal(pointwise, 40);
    assert_true(l->fused->nnodes <= 7);
    arena_free(l->arena);
}

static void flatten_before_linear_goes(void **state)
{
    (void)state;
    Lowered *l = lowered(NETWORK("f = image |> conv(2, kernel = 3) |> flatten\n"
                                 "loss softmax_cross_entropy(linear(f, 3) + linear(f, 3), label)\n"));
    assert_string_equal(form(l), "conv1 linear1[f] linear2[f] add1 softmax_cross_entropy1");
    const Node *linear = &l->fused->node[node_named(l->fused, "linear1")];
    assert_int_equal(linear->in_shape.rank, 1);
    assert_int_equal(linear->in_shape.dim[0], 72);
    assert_int_equal(l->fused->node[linear->in[0]].shape.rank, 3);
    arena_free(l->arena);
    IS("f = flatten(image)\n loss softmax_cross_entropy(linear(concat(f, linear(f, 3)), 3), label)\n",
       "f linear1 concat1 linear2 softmax_cross_entropy1");
    /* a view is dropped across a cut as well, but leaves no stage empty */
    IS("c = image |> conv(2, kernel = 3) |> flatten\n register\n loss softmax_cross_entropy(linear(c, 3), label)\n",
       "conv1 | linear1[c] softmax_cross_entropy1");
    IS("f = flatten(image)\n register\n loss softmax_cross_entropy(linear(f, 3), label)\n",
       "f | linear1 softmax_cross_entropy1");
    /* x is read between the flatten and its linear: its gradient would be summed in another order */
    IS("x = image |> conv(2, kernel = 1)\n f = flatten(x)\n y = x + tanh(x)\n z = linear(f, 3)\n"
       "loss softmax_cross_entropy(linear(y, 3) + z, label)\n",
       "x f tanh1 y z linear1 add1 softmax_cross_entropy1");
}

/* Loss and the gradient of every parameter and input of one minibatch; the same random numbers whatever the graph. */
static Eval *evaluated(Arena *arena, const Graph *graph)
{
    Eval *eval = eval_new(arena, graph);
    for (int i = 0; i < graph->ninputs; i++) {
        const Node *node = &graph->node[graph->input[i]];
        const int64_t n = graph->batch * shape_count(&node->shape);
        for (int64_t k = 0; k < n; k++) {
            const double u = pn_uniform(pn_key(7, node->name), (uint64_t)k);
            if (node->shape.dtype == DTYPE_CLASS)
                ((int32_t *)eval->value[graph->input[i]])[k] = (int32_t)(u * (double)node->shape.classes);
            else
                eval->value[graph->input[i]][k] = (float)(2 * u - 1);
        }
    }
    for (int p = 0; p < graph->nparams; p++) {
        int64_t n = 1;
        for (int d = 0; d < graph->param[p].rank; d++)
            n *= graph->param[p].dim[d];
        for (int64_t k = 0; k < n; k++)
            eval->param[p][k] = (float)(pn_uniform(pn_key(8, graph->param[p].name), (uint64_t)k) - 0.5);
    }
    eval_forward(eval, true, 3, 1);
    eval_backward(eval, 3, 1);
    return eval;
}

static void assert_same_results(const Graph *a, const Eval *x, const Graph *b, const Eval *y)
{
    assert_true(x->value[a->loss][0] == y->value[b->loss][0]);
    assert_int_equal(a->nparams, b->nparams);
    int differ = 0;
    for (int p = 0; p < a->nparams; p++) {
        int64_t n = 1;
        for (int d = 0; d < a->param[p].rank; d++)
            n *= a->param[p].dim[d];
        for (int64_t k = 0; k < n; k++)
            differ += x->param_gradient[p][k] != y->param_gradient[p][k];
    }
    assert_int_equal(differ, 0);
}

static void random_networks_compute_the_same_bits(void **state)
{
    (void)state;
    int merged = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        Lowered *whole = lowered(random_net(arena, seed, 14, 0));
        const Eval *plain = evaluated(arena, whole->graph);
        const Eval *fused = evaluated(arena, whole->fused);
        assert_true(plain->value[whole->graph->loss][0] == plain->value[whole->graph->loss][0]); /* a number */
        assert_same_results(whole->graph, plain, whole->fused, fused);
        merged += whole->graph->nnodes - whole->fused->nnodes;

        /* the same network with every position cut: nothing merges, the order of sums stays */
        Graph *cut = arena_alloc(arena, sizeof *cut);
        *cut = *whole->graph;
        cut->cut = arena_alloc(arena, sizeof(Cut) * (size_t)cut->nnodes);
        cut->ncuts = 0;
        for (NodeId i = cut->ninputs + 1; i < cut->nnodes; i++)
            cut->cut[cut->ncuts++] = (Cut){i, {0}};
        const Graph *separate = fuse(arena, cut);
        assert_int_equal(separate->nnodes, cut->nnodes);
        assert_same_results(whole->graph, plain, separate, evaluated(arena, separate));
        arena_free(whole->arena);
        arena_free(arena);
    }
    assert_true(merged > 100);
}

static void identity_shortcut_before_add_goes(void **state)
{
    (void)state;
    IS("x = image |> conv(2, kernel = 1)\n y = x |> conv(2, kernel = 1)\n"
       "loss softmax_cross_entropy(relu(y + shortcut(x, 2)) |> linear(3), label)\n",
       "x y add1[relu1]:relu1+ linear1 softmax_cross_entropy1");
    /* with more channels, another reader, or x read in between, it is work of its own */
    IS("x = image |> conv(2, kernel = 1)\n y = x |> conv(3, kernel = 1)\n"
       "loss softmax_cross_entropy(y + shortcut(x, 3) |> linear(3), label)\n",
       "x y shortcut1 add1 linear1 softmax_cross_entropy1");
    IS("x = image |> conv(2, kernel = 1)\n loss softmax_cross_entropy(x |> shortcut(2) |> linear(3), label)\n",
       "x shortcut1 linear1 softmax_cross_entropy1");
    IS("x = image |> conv(2, kernel = 1)\n s = shortcut(x, 2)\n y = tanh(x)\n"
       "loss softmax_cross_entropy(linear(y + s, 3), label)\n",
       "x s y add1 linear1 softmax_cross_entropy1");
}

static void batch_norm_joins_add(void **state)
{
    (void)state;
    IS("x = image |> conv(2, kernel = 1)\n y = x |> conv(2, kernel = 1) |> batch_norm\n"
       "loss softmax_cross_entropy(relu(y + shortcut(x, 2)) |> linear(3), label)\n",
       "x conv1 y[relu1]:relu1+ linear1 softmax_cross_entropy1");
    /* x is read by others: the gradient of x would be summed in another order */
    IS("x = image |> conv(2, kernel = 1)\n y = tanh(x) + batch_norm(x)\n"
       "loss softmax_cross_entropy(linear(y, 3), label)\n",
       "x tanh1 batch_norm1 y linear1 softmax_cross_entropy1");
    /* both are batch_norms: the first, and it moves to where the add stands */
    Lowered *l = lowered(NETWORK("a = image |> batch_norm\n b = image |> batch_norm\n"
                                 "loss softmax_cross_entropy(linear(a + b, 3), label)\n"));
    assert_string_equal(form(l), "b a:add1 linear1 softmax_cross_entropy1");
    const NodeId merged = node_named(l->fused, "a");
    assert_string_equal(l->fused->node[merged].op->name, "batch_norm_add");
    for (int i = 0; i < 4; i++)
        assert_int_equal(l->fused->param[l->fused->node[merged].param[i]].node, merged);
    arena_free(l->arena);
    /* read elsewhere, behind a relu, or in another stage, it stays */
    IS("x = image |> batch_norm\n loss softmax_cross_entropy(linear(x + tanh(x), 3), label)\n",
       "x tanh1 add1 linear1 softmax_cross_entropy1");
    IS("x = image |> batch_norm\n register\n loss softmax_cross_entropy(linear(x + image, 3), label)\n",
       "x | add1 linear1 softmax_cross_entropy1");
    IS("x = image |> batch_norm |> relu\n loss softmax_cross_entropy(linear(x + image, 3), label)\n",
       "batch_norm1[x]:x+ add1 linear1 softmax_cross_entropy1");
}

static void relu_joins_batch_norm(void **state)
{
    (void)state;
    IS("loss softmax_cross_entropy(image |> conv(2, kernel = 1) |> batch_norm |> relu |> linear(3), label)\n",
       "conv1 batch_norm1[relu1]:relu1+ linear1 softmax_cross_entropy1");
    IS("loss softmax_cross_entropy(image |> conv(2, kernel = 1) |> batch_norm |> leaky_relu |> tanh |> linear(3), "
       "label)\n",
       "conv1 batch_norm1 leaky_relu1[tanh1]:tanh1>tanh linear1 softmax_cross_entropy1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relu_joins_its_producer),
        cmocka_unit_test(relu_moves_behind_the_pool),
        cmocka_unit_test(pointwise_ops_become_chains),
        cmocka_unit_test(long_chains_are_split),
        cmocka_unit_test(flatten_before_linear_goes),
        cmocka_unit_test(identity_shortcut_before_add_goes),
        cmocka_unit_test(relu_joins_batch_norm),
        cmocka_unit_test(batch_norm_joins_add),
        cmocka_unit_test(random_networks_compute_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
