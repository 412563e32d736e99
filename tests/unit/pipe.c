/* pipe.c: stages, registers and delay lines of known networks, and on random ones against a naive definition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "lowered.h"

#define NETWORK(body)                                                                                                  \
    "network n {\n input image: f32[2, 8, 8]\n input label: class[3]\n" body "}\n"                                     \
    "train {\n data = raw(path = \"x\")\n batch = 2\n lr = constant(0.1)\n steps = 5\n}\n"

/* "0:x(gc) 1:x(-)": per register: from, value; g gradient, r read there, c kept by the consumer, p by the producer. */
static const char *edges_of(Lowered *l)
{
    Text text = text_new(l->arena);
    for (int e = 0; e < l->pipe->nedges; e++) {
        const Edge *edge = &l->pipe->edge[e];
        text_printf(&text, "%s%d:%s(%s%s%s%s)", e ? " " : "", edge->from, l->fused->node[edge->value].value_name,
                    edge->gradient ? "g" : "", edge->read_forward ? "r" : "", edge->kept_consumer ? "c" : "",
                    edge->kept_producer ? "p" : "");
    }
    return text.data;
}

static void check_edges(const char *text, const char *expected)
{
    Lowered *l = lowered(text);
    assert_string_equal(edges_of(l), expected);
    arena_free(l->arena);
}

static void registers_of_known_networks(void **state)
{
    (void)state;
    check_edges(NETWORK("loss softmax_cross_entropy(linear(image, 3), label)\n"), "");
    check_edges(NETWORK("x = image |> conv(2, kernel = 3) |> relu |> maxpool(2)\n register\n"
                        "loss softmax_cross_entropy(linear(x, 3), label)\n"),
                "0:x(grcp)");
    /* add reads nothing in its backward; the relu of the producer does */
    check_edges(NETWORK("x = image |> conv(2, kernel = 1) |> relu\n y = image |> conv(2, kernel = 1)\n register\n"
                        "loss softmax_cross_entropy(linear(x + y, 3), label)\n"),
                "0:x(grp) 0:y(gr)");
    /* read in the producer's stage as well: its backward needs it there */
    check_edges(NETWORK("x = image |> conv(2, kernel = 1)\n y = x |> conv(2, kernel = 1)\n register\n"
                        "loss softmax_cross_entropy(linear(x + y, 3), label)\n"),
                "0:x(grp) 0:y(gr)");
    /* before the first parameter nothing flows back */
    check_edges(NETWORK("x = tanh(image)\n register\n loss softmax_cross_entropy(linear(x, 3), label)\n"), "0:x(rc)");
}

static void delay_lines(void **state)
{
    (void)state;
    check_edges(
        NETWORK("x = image |> conv(2, kernel = 1)\n register\n y = tanh(image)\n register\n z = tanh(y)\n register\n"
                "loss softmax_cross_entropy(linear(x + z, 3), label)\n"),
        "0:x(g) 1:x(g) 1:y(r) 2:x(gr) 2:z(r)");
    /* the stage between reads it too */
    check_edges(NETWORK("x = image |> conv(2, kernel = 1)\n register\n y = conv(x, 2, kernel = 1)\n register\n"
                        "loss softmax_cross_entropy(linear(x + y, 3), label)\n"),
                "0:x(grc) 1:x(gr) 1:y(gr)");
}

static void stages_count_layers_and_work(void **state)
{
    (void)state;
    Lowered *l =
        lowered(NETWORK("x = image |> conv(2, kernel = 1)\n y = x |> conv(2, kernel = 3)\n register\n t = tanh(y)\n"
                        "register\n loss softmax_cross_entropy(linear(t, 3), label)\n"));
    const Stage *stage = l->pipe->stage;
    assert_int_equal(l->pipe->nstages, 3);
    assert_int_equal(stage[0].first_layer, 1);
    assert_int_equal(stage[0].last_layer, 2);
    assert_int_equal(stage[0].params, 2 * 2 + 2 + 2 * 2 * 9 + 2);
    assert_true(stage[0].cost.macs == 2 * 2 * 64 + 2 * 2 * 9 * 36);
    assert_true(stage[1].last_layer < stage[1].first_layer);
    assert_int_equal(stage[1].params, 0);
    assert_int_equal(stage[2].first_layer, 3);
    assert_int_equal(stage[2].last_layer, 3);
    assert_int_equal(pipe_stage_of(l->pipe, node_named(l->fused, "t")), 1);
    assert_int_equal(pipe_stage_of(l->pipe, node_named(l->fused, "image")), -1);
    assert_true(pipe_reads_input(l->pipe, 0, node_named(l->fused, "image")));
    assert_false(pipe_reads_input(l->pipe, 0, node_named(l->fused, "label")));
    assert_true(pipe_reads_input(l->pipe, 2, node_named(l->fused, "label")));
    assert_int_equal(pipe_edge(l->pipe, node_named(l->fused, "y"), 0)->bytes, 4 * 2 * 2 * 36);
    assert_null(pipe_edge(l->pipe, node_named(l->fused, "x"), 0));
    arena_free(l->arena);
}

/* Edges by definition: made at or before `from`, read behind it; quadratic. */
static void random_cuts(void **state)
{
    (void)state;
    int edges = 0, lines = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        Arena *arena = arena_new();
        Lowered *l = lowered(random_net(arena, seed, 20, 6));
        const Pipe *pipe = l->pipe;
        int expected = 0;
        for (int from = 0; from + 1 < pipe->nstages; from++)
            for (NodeId v = 0; v < l->fused->nnodes; v++) {
                const int made = pipe_stage_of(pipe, v);
                bool crosses = false, gradient = false, read_next = false;
                for (NodeId i = v + 1; i < l->fused->nnodes; i++)
                    for (int k = 0; k < l->fused->node[i].nin; k++)
                        if (l->fused->node[i].in[k] == v && pipe_stage_of(pipe, i) > from) {
                            crosses = true;
                            read_next |= pipe_stage_of(pipe, i) == from + 1;
                            gradient |= l->backward->wants[v];
                        }
                const Edge *edge = pipe_edge(pipe, v, from);
                const bool wanted = crosses && made >= 0 && made <= from;
                assert_int_equal(edge != NULL, wanted);
                if (!wanted)
                    continue;
                expected++;
                lines += !read_next;
                assert_int_equal(edge->gradient, gradient);
                assert_int_equal(edge->read_forward, read_next);
            }
        assert_int_equal(pipe->nedges, expected);
        edges += expected;
        arena_free(l->arena);
        arena_free(arena);
    }
    assert_true(edges > 100 && lines > 20);
}

/* Errors that lowering reports before, reached here with cuts made by hand. */
static void bad_cuts_are_errors(void **state)
{
    (void)state;
    Lowered *l = lowered(NETWORK("x = image |> conv(2, kernel = 1)\n y = tanh(x)\n"
                                 "loss softmax_cross_entropy(linear(y, 3), label)\n"));
    const NodeId first = node_named(l->graph, "x");
    const struct {
        int ncuts;
        Cut cut[2];
    } bad[] = {{1, {{first, {0}}}}, {2, {{first + 1, {0}}, {first + 1, {0}}}}, {1, {{l->graph->nnodes, {0}}}}};
    for (int i = 0; i < COUNT(bad); i++) {
        Graph *graph = arena_alloc(l->arena, sizeof *graph);
        *graph = *l->graph;
        graph->cut = (Cut *)bad[i].cut;
        graph->ncuts = bad[i].ncuts;
        Diags *diags = diags_new(l->arena, &l->sources);
        assert_null(pipe_cut(l->arena, diags, graph, backward(l->arena, graph)));
        assert_true(diag_errors(diags) > 0);
    }
    arena_free(l->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_of_known_networks),  cmocka_unit_test(delay_lines),
        cmocka_unit_test(stages_count_layers_and_work), cmocka_unit_test(random_cuts),
        cmocka_unit_test(bad_cuts_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
