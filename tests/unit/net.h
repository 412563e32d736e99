/* net.h: small graphs made by hand, for tests of ops: inputs, one op after another with attributes as text
 * ("out=4 kernel=3 pad=1"), each through the op's own shape(). */
#ifndef TEST_NET_H
#define TEST_NET_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "op.h"
#include "rt.h"

enum { NET_NODES = 32, NET_INPUTS = 8 };

typedef struct {
    Arena *arena;
    Sources sources;
    Diags *diags;
    Graph graph;
    Node node[NET_NODES];
    NodeId input[NET_INPUTS];
} Net;

static inline Net *net_new(int64_t batch)
{
    Arena *arena = arena_new();
    Net *net = arena_alloc(arena, sizeof *net);
    net->arena = arena;
    net->diags = diags_new(arena, &net->sources);
    net->graph = (Graph){.name = name_of(arena, "test"), .batch = batch, .node = net->node, .input = net->input};
    return net;
}

static inline NodeId net_input(Net *net, Shape shape)
{
    const NodeId id = net->graph.nnodes++;
    const Name name = name_of(net->arena, arena_printf(net->arena, "in%d", net->graph.ninputs));
    net->node[id] = (Node){.name = name, .value_name = name, .shape = shape};
    net->input[net->graph.ninputs++] = id;
    return id;
}

static inline Shape net_tensor(int rank, int64_t a, int64_t b, int64_t c)
{
    return (Shape){.dtype = DTYPE_F32, .rank = rank, .dim = {a, b, c}};
}

/* "2,5,5" or "class 10" */
static inline Shape net_shape(const char *text)
{
    Shape shape = {.dtype = DTYPE_F32};
    if (sscanf(text, "class %lld", (long long *)&shape.classes) == 1) {
        shape.dtype = DTYPE_CLASS;
        return shape;
    }
    for (char *end; shape.rank < MAX_RANK; text = end + 1) {
        shape.dim[shape.rank++] = strtoll(text, &end, 10);
        if (*end != ',')
            break;
    }
    return shape;
}

/* Returns -1 after an error of shape(); the diagnostics have it. */
static inline NodeId net_op(Net *net, const char *op_name, int nin, const NodeId *in, const char *attrs)
{
    const OpDef *op = op_find(op_name);
    const NodeId id = net->graph.nnodes;
    Node *node = &net->node[id];
    if (op == NULL || id == NET_NODES) {
        fprintf(stderr, "net_op: no op %s\n", op_name);
        abort();
    }
    const Name name = name_of(net->arena, arena_printf(net->arena, "%s%d", op_name, (int)id));
    *node = (Node){.op = op, .name = name, .value_name = name, .nin = nin};
    node->in = arena_alloc(net->arena, sizeof *node->in * (size_t)(nin + 1));
    memcpy(node->in, in, sizeof *in * (size_t)nin);
    for (int i = 0; i < op->nattrs; i++)
        node->attr[i] = (Attr){.i = (int64_t)op->attr[i].fallback, .f = op->attr[i].fallback, .init = op->attr[i].init};
    char key[32];
    double value;
    for (int used; sscanf(attrs, " %31[a-z_]=%lf%n", key, &value, &used) == 2; attrs += used) {
        const AttrDef *def = op_attr(op, key);
        if (def == NULL) {
            fprintf(stderr, "net_op: %s has no %s\n", op_name, key);
            abort();
        }
        node->attr[def - op->attr] = (Attr){.i = (int64_t)value, .f = value, .given = true};
    }
    net->graph.nnodes++;
    ShapeContext context = {net->arena, net->diags, &net->graph, node};
    if (!op->shape(&context)) {
        net->graph.nnodes--;
        return -1;
    }
    net->graph.loss = id;
    return id;
}

/* The rendered diagnostics. */
static inline const char *net_errors(Net *net)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    diags_render(net->diags, out, false);
    fclose(out);
    const char *copy = arena_text(net->arena, text, length);
    free(text);
    return copy;
}

static inline int64_t net_param_size(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

/* n different values in (-2, 2), none near 0 or near another, shuffled by the key: maxima and signs do not change when
 * one moves by less than 1 / n. */
static inline void net_fill(float *to, int64_t n, uint64_t key)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)(4.0 * ((double)i + 0.5 + (n % 2 != 0 ? 0.5 : 0)) / (double)n - 2.0);
    for (int64_t i = n - 1; i > 0; i--) {
        const int64_t j = (int64_t)(pn_random(key, (uint64_t)i) % (uint64_t)(i + 1));
        const float swap = to[i];
        to[i] = to[j];
        to[j] = swap;
    }
}

/* Random values for every input and parameter. */
static inline Eval *net_eval(Net *net, uint64_t seed)
{
    Eval *eval = eval_new(net->arena, &net->graph);
    for (int i = 0; i < net->graph.ninputs; i++) {
        const NodeId id = net->input[i];
        const Shape *shape = &net->node[id].shape;
        const int64_t n = net->graph.batch * shape_count(shape);
        if (shape->dtype == DTYPE_CLASS)
            for (int64_t k = 0; k < n; k++)
                ((int32_t *)eval->value[id])[k] =
                    (int32_t)(pn_random(seed + 17, (uint64_t)k) % (uint64_t)shape->classes);
        else
            net_fill(eval->value[id], n, seed + (uint64_t)i);
    }
    for (int i = 0; i < net->graph.nparams; i++)
        net_fill(eval->param[i], net_param_size(&net->graph.param[i]), seed + 100 + (uint64_t)i);
    return eval;
}

#endif
