/* backward.c: who wants a gradient, who writes and who adds, what a backward reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"

#define NETWORK(body)                                                                                                  \
    "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n" body "}\n"                                     \
    "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\n"

/* "loss(W-) add1(WA)": steps in order, per input W writes, A adds, - nothing. */
static const char *steps_of(Lowered *l)
{
    Text text = text_new(l->arena);
    for (int s = 0; s < l->backward->nsteps; s++) {
        const BackwardStep *step = &l->backward->step[s];
        const Node *node = &l->fused->node[step->node];
        text_printf(&text, "%s%s(", s ? " " : "", node->name);
        for (int k = 0; k < node->nin; k++)
            text_printf(&text, "%c", "-WA"[step->in[k]]);
        text_printf(&text, ")");
    }
    return text.data;
}

static void check_steps(const char *text, const char *expected)
{
    Lowered *l = lowered(text);
    assert_string_equal(steps_of(l), expected);
    arena_free(l->arena);
}

static void the_last_reader_writes(void **state)
{
    (void)state;
    check_steps(NETWORK("x = image |> conv(2, kernel = 1)\n a = tanh(x)\n b = sigmoid(x)\n"
                        "loss softmax_cross_entropy(linear(a + b + x, 3), label)\n"),
                "softmax_cross_entropy1(W-) linear1(W) add2(WW) add1(WW) b(A) a(A) x(-)");
}

static void one_value_read_twice_by_a_node(void **state)
{
    (void)state;
    check_steps(NETWORK("x = image |> conv(2, kernel = 1)\n loss softmax_cross_entropy(linear(x + x, 3), label)\n"),
                "softmax_cross_entropy1(W-) linear1(W) add1(WA) x(-)");
}

static void nothing_behind_the_first_parameter(void **state)
{
    (void)state;
    Lowered *l = lowered(NETWORK("a = avgpool(image, 2)\n t = tanh(a)\n x = conv(t, 2, kernel = 1)\n"
                                 "loss softmax_cross_entropy(linear(x + t, 3), label)\n"));
    assert_string_equal(steps_of(l), "softmax_cross_entropy1(W-) linear1(W) add1(W-) x(-)");
    assert_false(l->backward->wants[node_named(l->fused, "t")]);
    assert_false(l->backward->wants[node_named(l->fused, "image")]);
    assert_false(l->backward->wants[l->fused->loss]);
    assert_int_equal(l->backward->needs[node_named(l->fused, "t")], 0);
    arena_free(l->arena);
}

static void needs_follow_fusion(void **state)
{
    (void)state;
    Lowered *l =
        lowered(NETWORK("c = conv(image, 2, kernel = 1)\n p = c |> relu |> maxpool(2)\n"
                        "t = p |> conv(2, kernel = 1) |> tanh\n u = t |> conv(2, kernel = 1) |> tanh |> sigmoid\n"
                        "loss softmax_cross_entropy(linear(t + u, 3), label)\n"));
    const Backward *b = l->backward;
    assert_int_equal(b->needs[node_named(l->fused, "c")], NEEDS_IN0);
    assert_int_equal(b->needs[node_named(l->fused, "p")], NEEDS_AUX | NEEDS_OUT);
    assert_int_equal(b->needs[node_named(l->fused, "t")], NEEDS_OUT);     /* tanh alone: from its output */
    assert_int_equal(b->needs[node_named(l->fused, "tanh1")], NEEDS_IN0); /* a chain: recomputed */
    arena_free(l->arena);
}

static void mse_has_gradients_for_both(void **state)
{
    (void)state;
    check_steps("network n {\n input image: f32[4]\n a = linear(image, 3)\n b = linear(image, 3)\n loss mse(a, b)\n}\n"
                "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\n",
                "mse1(WW) b(-) a(-)");
}

static void random_networks_are_sound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 20, 3)); /* runs the checks */
        int with_params = 0, steps_with_params = 0;
        for (NodeId i = 0; i < l->fused->nnodes; i++)
            with_params += l->fused->node[i].nparams > 0;
        for (int s = 0; s < l->backward->nsteps; s++)
            steps_with_params += l->fused->node[l->backward->step[s].node].nparams > 0;
        assert_int_equal(with_params, steps_with_params);
        arena_free(l->arena);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_reader_writes),
        cmocka_unit_test(one_value_read_twice_by_a_node),
        cmocka_unit_test(nothing_behind_the_first_parameter),
        cmocka_unit_test(needs_follow_fusion),
        cmocka_unit_test(mse_has_gradients_for_both),
        cmocka_unit_test(random_networks_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
