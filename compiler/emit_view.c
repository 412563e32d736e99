/* emit_view.c: the present stage as names: every value it touches, where it lives, who reads it last. */
#include "emit_state.h"

#include <stdlib.h>
#include <string.h>

/* What emit_stage.c declares, and locals of the functions that ops print. */
/* clang-format off */
static const char *const file_words[] = {
    "PARAMS", "WEIGHTS", "RUNNING", "REPLICA", "T", "op", "tensor", "t", "w", "dw", "weights", "state", "running", "param", "init",
    "place", "forward", "backward", "test", "stage", "k", "n", "x", "y", "g", "gx", "gy", "i", "v", "p", "saved", "main",
    "gradient_sum", "recompute", "weight_gradients", "T_FORWARD", "t_forward", "op_back", "init_forward",
    "init_backward", "masters", "VERSION", "BF16_AT",
};
/* clang-format on */

/* A name free of the names of functions of ops: tanh_value, tanh_slope, relu_tanh_forward, and of their locals v0, v1.
 */
static const char *value_name(Emit *e, Name name)
{
    static const char *const endings[] = {"_value", "_slope", "_forward", "_backward"};
    const char *base = c_name(e->arena, name);
    const size_t length = strlen(base);
    bool clash = base[0] == 'v' && base[1] && strspn(base + 1, "0123456789") == length - 1;
    for (int i = 0; i < COUNT(endings); i++)
        clash |= length > strlen(endings[i]) && !strcmp(base + length - strlen(endings[i]), endings[i]);
    return names_take(e->names, clash ? arena_printf(e->arena, "%s_", base) : base);
}

static StageValue *touch(Emit *e, NodeId id)
{
    StageValue *value = &e->value[id];
    if (!value->touched) {
        *value = (StageValue){.id = id, .in_index = -1, .out_index = -1, .last_reader = -1, .first_contributor = -1};
        value->touched = true;
        *vec_push(e->arena, &e->touched) = id;
    }
    return value;
}

static void touch_nodes(Emit *e, const Stage *stage)
{
    for (NodeId id = stage->first; id < stage->last; id++) {
        const Node *node = &e->graph->node[id];
        if (!node->op)
            continue;
        touch(e, id);
        for (int i = 0; i < node->nin; i++)
            touch(e, node->in[i])->last_reader = id;
        const BackwardStep *step = e->step[id];
        for (int i = 0; step && i < node->nin; i++) {
            StageValue *in = touch(e, node->in[i]);
            if (step->in[i] != GRADIENT_NONE && in->first_contributor < 0)
                in->first_contributor = id;
        }
    }
}

static void touch_edges(Emit *e)
{
    for (int i = 0; i < e->pipe->nedges; i++) {
        const Edge *edge = &e->pipe->edge[i];
        if (edge->from == e->stage - 1) {
            StageValue *value = touch(e, edge->value);
            value->in = edge;
            value->in_index = i;
        } else if (edge->from == e->stage) {
            StageValue *value = touch(e, edge->value);
            value->out = edge;
            value->out_index = i;
        }
    }
}

static void touch_buffers(Emit *e)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    for (int i = 0; i < plan->nbuffers; i++) {
        const Buffer *buffer = &plan->buffer[i];
        StageValue *value = touch(e, buffer->value);
        const Buffer **field = NULL;
        switch (buffer->kind) {
        case BUFFER_SAVED:
            field = &value->saved;
            break;
        case BUFFER_AGAIN:
            field = &value->again;
            break;
        case BUFFER_AUX:
            field = &value->aux;
            break;
        case BUFFER_VALUE:
            field = &value->transient;
            break;
        case BUFFER_KEPT:
        case BUFFER_GRADIENT:
            field = &value->gradient;
            break;
        case BUFFER_PARTIAL:
            field = &value->partial;
            break;
        case BUFFER_TEST:
            field = &value->test;
            break;
        case BUFFER_KINDS:
            break;
        }
        if (!field || *field)
            ICE("emit: buffer %d of stage %d is one too many", i, e->stage);
        *field = buffer;
    }
}

static int compare_ids(const void *a, const void *b)
{
    const NodeId x = *(const NodeId *)a, y = *(const NodeId *)b;
    return (x > y) - (x < y);
}

/* Identifiers: values first, so that they keep their own names. */
static void name_values(Emit *e)
{
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        value->name = value_name(e, e->graph->node[value->id].value_name);
    }
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        const Node *node = &e->graph->node[value->id];
        const Edge *back = value->in ? value->in : value->out;
        if (value->gradient || (back && back->gradient))
            value->gradient_name = names_take(e->names, arena_printf(e->arena, "g_%s", value->name));
        if (value->partial)
            value->partial_name = names_take(e->names, arena_printf(e->arena, "part_%s", value->name));
        if (value->again)
            value->again_name = names_take(e->names, arena_printf(e->arena, "%s_again", value->name));
        if (value->test)
            value->test_name = names_take(e->names, arena_printf(e->arena, "test_%s", value->name));
        if (value->aux)
            value->aux_name = names_take(e->names, arena_printf(e->arena, "%s_%s", c_name(e->arena, node->name),
                                                                node->op->aux_name ? node->op->aux_name : "aux"));
        if (node->op && e->pipe->stage[e->stage].first <= value->id && value->id < e->pipe->stage[e->stage].last)
            value->op_name = names_take(e->op_names, c_name(e->arena, node->name));
    }
}

static void name_params(Emit *e, const Stage *stage)
{
    for (NodeId id = stage->first; id < stage->last; id++)
        for (int i = 0; i < e->graph->node[id].nparams; i++) {
            const int param = e->graph->node[id].param[i];
            const char *name = c_name(e->arena, e->graph->param[param].name);
            e->offset_name[param] = names_take(e->names, name);
            e->index_name[param] = names_take(e->names, upper(e->arena, name));
        }
}

void stage_view(Emit *e, int stage)
{
    for (int i = 0; i < e->touched.count; i++)
        e->value[e->touched.at[i]].touched = false;
    e->touched.count = 0;
    e->stage = stage;
    e->replicas = e->pipe->stage[stage].replicas;
    e->halves = e->pipe->stage[stage].halves;
    e->names = names_new(e->arena, e->shared);
    e->op_names = names_new(e->arena, NULL);
    e->functions = text_new(e->arena);
    e->function.count = 0;
    for (int i = 0; i < COUNT(file_words); i++)
        names_take(e->names, file_words[i]);

    touch_nodes(e, &e->pipe->stage[stage]);
    touch_edges(e);
    touch_buffers(e);
    qsort(e->touched.at, (size_t)e->touched.count, sizeof *e->touched.at, compare_ids);
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        value->place = plan_value(e->plan, stage, value->id);
        value->test_place = plan_test_value(e->plan, stage, value->id);
    }
    name_values(e);
    name_params(e, &e->pipe->stage[stage]);
}
