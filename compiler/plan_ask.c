/* plan_ask.c: what a plan and its buffers can be asked; plan.h says what the answers mean. */
#include "plan.h"

#include <stdlib.h>

int buffer_order(const void *x, const void *y)
{
    const Buffer *a = x, *b = y;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return (a->value > b->value) - (a->value < b->value);
}

bool buffer_is_transient(BufferKind kind)
{
    return kind != BUFFER_SAVED && kind != BUFFER_AGAIN && kind != BUFFER_AUX && kind != BUFFER_KEPT;
}

PlanArea buffer_area(BufferKind kind, bool halves)
{
    return !buffer_is_transient(kind)       ? AREA_NONE
           : kind == BUFFER_TEST            ? AREA_TEST
           : halves && kind == BUFFER_VALUE ? AREA_FORWARD
                                            : AREA_TRAIN;
}

int64_t version_bytes(const StagePlan *stage)
{
    return 4 * stage->version_floats;
}

int64_t gradient_bytes(const StagePlan *stage)
{
    return version_bytes(stage) + 4 * stage->weight_floats * stage->sums;
}

int64_t weight_bytes(const StagePlan *stage)
{
    return version_bytes(stage) * (stage->versions + stage->ahead) + gradient_bytes(stage) +
           4 * stage->weight_floats * (stage->masters + stage->states);
}

int64_t plan_worker_bytes(const StagePlan *stage)
{
    return stage->static_bytes - (stage->replicas - 1) * stage->replica_bytes - stage->forward_half_bytes;
}

const Buffer *plan_buffer(const Plan *plan, int stage, BufferKind kind, NodeId value)
{
    const Buffer wanted = {.kind = kind, .value = value};
    const StagePlan *s = &plan->stage[stage];
    return s->nbuffers ? bsearch(&wanted, s->buffer, (size_t)s->nbuffers, sizeof wanted, buffer_order) : NULL;
}

static Place find(const Plan *plan, int stage, NodeId value, bool test)
{
    const Pipe *pipe = plan->sched->pipe;
    const Edge *in = pipe_edge(pipe, value, stage - 1), *out = pipe_edge(pipe, value, stage);
    if (in)
        return (Place){PLACE_REGISTER_IN, (int)(in - pipe->edge)};
    if (out)
        return (Place){PLACE_REGISTER_OUT, (int)(out - pipe->edge)};
    const Buffer *buffer = plan_buffer(plan, stage, test ? BUFFER_TEST : BUFFER_SAVED, value);
    if (!buffer && !test)
        buffer = plan_buffer(plan, stage, BUFFER_VALUE, value);
    return buffer ? (Place){PLACE_BUFFER, (int)(buffer - plan->stage[stage].buffer)} : (Place){PLACE_NONE, 0};
}

Place plan_value(const Plan *plan, int stage, NodeId value)
{
    return find(plan, stage, value, false);
}

Place plan_test_value(const Plan *plan, int stage, NodeId value)
{
    return find(plan, stage, value, true);
}
