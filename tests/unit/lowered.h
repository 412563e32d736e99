/* lowered.h: for tests of the middle of the compiler: graphs from source text, and random networks by seed. */
#ifndef TEST_LOWERED_H
#define TEST_LOWERED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ast.h"
#include "plan.h"
#include "rt.h"
#include "settings.h"

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Settings settings;
    const Graph *graph; /* as written */
    const Graph *fused;
    const Backward *backward;
    const Pipe *pipe;
} Lowered;

/* Through pipe_cut, with all checks. Ends the test program on errors. */
static inline Lowered *lowered(const char *text)
{
    Arena *arena = arena_new();
    Lowered *l = arena_alloc(arena, sizeof *l);
    l->arena = arena;
    l->diags = diags_new(arena, &l->sources);
    const SourceFile *file = source_add(arena, &l->sources, "test.pnet", text, strlen(text));
    const Ast *ast = parse(arena, l->diags, file);
    if (!diag_errors(l->diags))
        l->graph = lower(arena, l->diags, &l->sources, ast, NULL, NULL, 0, &l->settings);
    if (l->graph) {
        graph_check(l->graph);
        l->fused = fuse(arena, l->graph);
        graph_check(l->fused);
        l->backward = backward(arena, l->fused);
        backward_check(l->backward);
        l->pipe = pipe_cut(arena, l->diags, l->fused, l->backward);
    }
    if (!l->pipe) {
        fprintf(stderr, "%s\n", text);
        diags_render(l->diags, stderr, false);
        abort();
    }
    pipe_check(l->pipe);
    return l;
}

static inline NodeId node_named(const Graph *graph, const char *name)
{
    for (NodeId i = 0; i < graph->nnodes; i++)
        if (!strcmp(graph->node[i].name, name))
            return i;
    return -1;
}

/* ---- random networks ---- */

typedef struct {
    Text text;
    uint64_t seed, counter;
    int channels[64], sizes[64]; /* of x0, x1, ... */
    int count;
} RandomNet;

static inline int pick(RandomNet *net, int n)
{
    return (int)(pn_random(net->seed, net->counter++) % (uint64_t)n);
}

/* An earlier value of the same shape as the latest, or the latest. */
static inline int alike_value(RandomNet *net)
{
    const int last = net->count - 1;
    int found = last;
    for (int tries = 0; tries < 4 && found == last; tries++) {
        const int i = pick(net, net->count);
        if (net->channels[i] == net->channels[last] && net->sizes[i] == net->sizes[last])
            found = i;
    }
    return found;
}

static inline void random_op(RandomNet *net)
{
    const int x = net->count - 1, y = net->count;
    int channels = net->channels[x], size = net->sizes[x];
    Text *text = &net->text;
    switch (pick(net, 13)) {
    case 0:
    case 1:
        channels = 1 + pick(net, 4);
        text_printf(text, "    x%d = x%d |> conv(%d, kernel = 3, pad = 1)%s%s\n", y, x, channels,
                    pick(net, 2) ? " |> batch_norm" : "", pick(net, 2) ? " |> relu" : "");
        break;
    case 2:
        text_printf(text, "    x%d = x%d |> relu\n", y, x);
        break;
    case 3:
        text_printf(text, "    x%d = x%d |> tanh |> sigmoid%s\n", y, x, pick(net, 2) ? " |> leaky_relu(0.5)" : "");
        break;
    case 4:
        text_printf(text, "    x%d = relu(x%d + x%d)\n", y, x, alike_value(net));
        break;
    case 5:
        if (pick(net, 2)) {
            text_printf(text, "    x%d = (x%d%s) + x%d\n", y, x, pick(net, 2) ? " |> batch_norm" : "",
                        alike_value(net));
        } else {
            const int other = alike_value(net);
            text_printf(text, "    y%d = x%d |> conv(%d, kernel = 1) |> batch_norm\n", y, x, channels);
            text_printf(text, "    x%d = x%d + y%d\n", y, other, y);
        }
        break;
    case 6: {
        const int other = alike_value(net);
        channels = 2 * channels;
        text_printf(text, "    x%d = concat(x%d, x%d)\n", y, other, x);
        break;
    }
    case 7:
    case 8:
        text_printf(text, "    x%d = x%d%s |> maxpool(%d%s)\n", y, x, pick(net, 2) ? " |> relu" : "", size > 3 ? 2 : 1,
                    "");
        size = size > 3 ? size / 2 : size;
        break;
    case 9:
        text_printf(text, "    x%d = x%d |> dropout(probability = 0.25)\n", y, x);
        break;
    case 10: /* an identity, mostly dropped */
        text_printf(text, "    x%d = relu(x%d + shortcut(x%d, %d))\n", y, x, alike_value(net), channels);
        break;
    case 11:
        channels += pick(net, 3);
        size = (size + 1) / 2;
        text_printf(text, "    x%d = x%d |> shortcut(%d, stride = 2)\n", y, x, channels);
        break;
    default:
        text_printf(text, "    x%d = x%d |> tanh\n", y, x);
        break;
    }
    if (channels > 16) { /* keeps them small */
        text_printf(text, "    x%d = x%d |> conv(2, kernel = 1)\n", y + 1, y);
        net->channels[net->count] = channels;
        net->sizes[net->count++] = size;
        channels = 2;
    }
    net->channels[net->count] = channels;
    net->sizes[net->count++] = size;
}

/* A network of `ops` ops or a little more, each reading the latest value and perhaps an earlier one, with up to
 * `registers` registers between them, ending in linear layers behind a flatten with two readers. */
static inline const char *random_net(Arena *arena, uint64_t seed, int ops, int registers)
{
    RandomNet net = {.text = text_new(arena), .seed = pn_key(seed, "random net")};
    text_printf(&net.text, "network random {\n    input image: f32[2, 8, 8]\n    input label: class[3]\n");
    text_printf(&net.text, "    x0 = image |> conv(2, kernel = 3, pad = 1)\n");
    net.channels[0] = 2;
    net.sizes[0] = 8;
    net.count = 1;
    for (int i = 0; i < ops; i++) {
        random_op(&net);
        if (registers > 0 && pick(&net, ops) < 2 * registers) {
            text_printf(&net.text, "    register\n");
            registers--;
        }
    }
    const int last = net.count - 1;
    text_printf(&net.text,
                "    f = flatten(x%d)\n    a = f |> linear(5) |> tanh\n%s    b = f |> linear(5)\n"
                "    loss softmax_cross_entropy(linear(a + b, 3), label)\n}\n",
                last, registers > 0 ? "    register\n" : "");
    text_printf(&net.text,
                "train {\n    data = raw(path = \"x\")\n    batch = 2\n    lr = constant(0.1)\n    steps = 5\n}\n");
    return net.text.data;
}

#endif
