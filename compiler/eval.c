/* eval.c: the graph interpreter over op->eval, in program order; gradients in reverse program order, so a value read by
 * several nodes sums its gradient from the last reader to the first, as backward.h orders it. The numerical oracle. */
#include <string.h>

#include "op.h"
#include "ref/kernels.h"

enum { MAX_EVAL_INPUTS = 32 }; /* concat's most */

static int64_t elements(const Graph *graph, const Node *node)
{
    return graph->batch * shape_count(&node->shape);
}

static int64_t param_elements(const Param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

Eval *eval_new(Arena *arena, const Graph *graph)
{
    Eval *eval = arena_alloc(arena, sizeof *eval);
    const size_t nodes = (size_t)graph->nnodes + 1, params = (size_t)graph->nparams + 1;
    eval->graph = graph;
    eval->value = arena_alloc(arena, sizeof *eval->value * nodes);
    eval->gradient = arena_alloc(arena, sizeof *eval->gradient * nodes);
    eval->aux = arena_alloc(arena, sizeof *eval->aux * nodes);
    eval->param = arena_alloc(arena, sizeof *eval->param * params);
    eval->param_gradient = arena_alloc(arena, sizeof *eval->param_gradient * params);
    for (NodeId i = 0; i < graph->nnodes; i++) {
        const Node *node = &graph->node[i];
        const size_t bytes = sizeof(float) * (size_t)elements(graph, node);
        if (node->nin > MAX_EVAL_INPUTS)
            ICE("eval: %s has %d inputs", node->name, node->nin);
        eval->value[i] = arena_alloc(arena, bytes);
        eval->gradient[i] = arena_alloc(arena, bytes);
        if (node->op != NULL && node->op->aux != NULL)
            eval->aux[i] = arena_alloc(arena, (size_t)op_aux_bytes(graph, node));
    }
    for (int i = 0; i < graph->nparams; i++) {
        const size_t bytes = sizeof(float) * (size_t)param_elements(&graph->param[i]);
        eval->param[i] = arena_alloc(arena, bytes);
        eval->param_gradient[i] = arena_alloc(arena, bytes);
    }
    return eval;
}

/* The arrays that an EvalContext points into. */
typedef struct {
    const void *in[MAX_EVAL_INPUTS];
    float *grad_in[MAX_EVAL_INPUTS];
    const float *param[MAX_PARAMS];
    float *grad_param[MAX_PARAMS];
} Arrays;

static EvalContext context_of(Eval *eval, NodeId id, Arrays *arrays)
{
    const Graph *graph = eval->graph;
    const Node *node = &graph->node[id];
    for (int i = 0; i < node->nin; i++) {
        const bool label = graph->node[node->in[i]].shape.dtype == DTYPE_CLASS;
        arrays->in[i] = eval->value[node->in[i]];
        arrays->grad_in[i] = label ? NULL : eval->gradient[node->in[i]];
    }
    for (int i = 0; i < node->nparams; i++) {
        arrays->param[i] = eval->param[node->param[i]];
        arrays->grad_param[i] = eval->param_gradient[node->param[i]];
    }
    return (EvalContext){.graph = graph,
                         .node = node,
                         .batch = graph->batch,
                         .in = arrays->in,
                         .out = eval->value[id],
                         .aux = eval->aux[id],
                         .param = arrays->param,
                         .grad_out = eval->gradient[id],
                         .grad_in = arrays->grad_in,
                         .grad_param = arrays->grad_param};
}

void eval_forward(Eval *eval, bool training, uint64_t seed, int64_t minibatch)
{
    eval_forward_nodes(eval, 0, eval->graph->nnodes, training, seed, minibatch);
}

void eval_forward_nodes(Eval *eval, NodeId first, NodeId last, bool training, uint64_t seed, int64_t minibatch)
{
    const Graph *graph = eval->graph;
    for (NodeId i = first; i < last; i++) {
        const Node *node = &graph->node[i];
        if (node->op == NULL)
            continue;
        Arrays arrays;
        EvalContext c = context_of(eval, i, &arrays);
        c.training = training;
        c.seed = seed;
        c.minibatch = minibatch;
        c.correct = i == graph->loss ? &eval->correct : NULL;
        node->op->eval(&c);
        if (node->relu)
            ref_relu(c.out, elements(graph, node));
    }
}

static void clear(Eval *eval)
{
    const Graph *graph = eval->graph;
    for (NodeId i = 0; i < graph->nnodes; i++)
        memset(eval->gradient[i], 0, sizeof(float) * (size_t)elements(graph, &graph->node[i]));
    for (int i = 0; i < graph->nparams; i++)
        memset(eval->param_gradient[i], 0, sizeof(float) * (size_t)param_elements(&graph->param[i]));
}

void eval_backward(Eval *eval, uint64_t seed, int64_t minibatch)
{
    eval_backward_begin(eval);
    eval_backward_nodes(eval, 0, eval->graph->nnodes, seed, minibatch);
}

void eval_backward_begin(Eval *eval)
{
    clear(eval);
    eval->gradient[eval->graph->loss][0] = 1.0f;
}

/* A fused relu masks the node's own gradient in place, as generated code does. */
void eval_backward_nodes(Eval *eval, NodeId first, NodeId last, uint64_t seed, int64_t minibatch)
{
    const Graph *graph = eval->graph;
    for (NodeId i = (last <= graph->loss ? last - 1 : graph->loss); i >= first; i--) {
        const Node *node = &graph->node[i];
        if (node->op == NULL)
            continue;
        if (node->relu)
            ref_relu_mask(eval->value[i], eval->gradient[i], elements(graph, node));
        Arrays arrays;
        EvalContext c = context_of(eval, i, &arrays);
        c.training = true;
        c.seed = seed;
        c.minibatch = minibatch;
        node->op->eval_backward(&c);
    }
}
