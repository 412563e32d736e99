/* plan_dump.c: the memory map that people read, and the check that what must not overlap does not. */
#include <string.h>

#include "plan.h"
#include "plan_area.h"

typedef long long Int;

static const char *const kind_names[BUFFER_KINDS] = {"saved", "again",    "aux",     "kept",
                                                     "value", "gradient", "partial", "test"};

/* ---- check ---- */

static void check_area(const Plan *plan, Arena *arena, int s, PlanArea area)
{
    const StagePlan *stage = &plan->stage[s];
    Block *block = arena_alloc(arena, sizeof *block * (size_t)(stage->nbuffers + 1));
    int count = 0, a, b;
    for (int i = 0; i < stage->nbuffers; i++) {
        const Buffer *buffer = &stage->buffer[i];
        if (buffer_area(buffer->kind, plan->sched->pipe->stage[s].halves) == area)
            block[count++] = (Block){buffer->bytes, buffer->born, buffer->dies, i, buffer->offset};
    }
    if (area_overlap(arena, block, count, &a, &b)) {
        const Node *node = plan->sched->pipe->graph->node;
        ICE("plan: stage %d: %s %s and %s %s overlap", s, kind_names[stage->buffer[a].kind],
            node[stage->buffer[a].value].name, kind_names[stage->buffer[b].kind], node[stage->buffer[b].value].name);
    }
}

static int64_t area_bytes(const StagePlan *stage, PlanArea area)
{
    return area == AREA_FORWARD ? stage->forward_transient_bytes : stage->transient_bytes;
}

static void check_buffers(const Plan *plan, int s)
{
    const Graph *graph = plan->sched->pipe->graph;
    const Stage *cut = &plan->sched->pipe->stage[s];
    const StagePlan *stage = &plan->stage[s];
    const int last_step = 2 * (cut->last - cut->first) - 1;
    int64_t saved = 0;
    for (int i = 0; i < stage->nbuffers; i++) {
        const Buffer *buffer = &stage->buffer[i];
        const char *name = graph->node[buffer->value].name;
        if (buffer->bytes <= 0 || buffer->bytes % 64 || buffer->slots < 1)
            ICE("plan: stage %d: %s %s has %lld bytes, %d slots", s, kind_names[buffer->kind], name, (Int)buffer->bytes,
                buffer->slots);
        if (plan_buffer(plan, s, buffer->kind, buffer->value) != buffer)
            ICE("plan: stage %d: %s %s is not found, or twice", s, kind_names[buffer->kind], name);
        if (!buffer_is_transient(buffer->kind)) {
            saved += buffer->bytes * buffer->slots;
            if (buffer->offset != -1)
                ICE("plan: stage %d: %s has an offset", s, name);
        } else if (buffer->offset < 0 || buffer->offset % 64 ||
                   buffer->offset + buffer->bytes > area_bytes(stage, buffer_area(buffer->kind, cut->halves)) ||
                   buffer->born > buffer->dies || buffer->born < 0 || buffer->dies > last_step) {
            ICE("plan: stage %d: %s %s at %lld, steps %d..%d", s, kind_names[buffer->kind], name, (Int)buffer->offset,
                buffer->born, buffer->dies);
        }
    }
    if (saved != stage->saved_bytes)
        ICE("plan: stage %d: saved bytes do not add up", s);
}

/* Every value that a node reads or writes has a place, and so has every gradient. */
static void check_places(const Plan *plan, int s)
{
    const Pipe *pipe = plan->sched->pipe;
    const Graph *graph = pipe->graph;
    for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++) {
        const Node *node = &graph->node[i];
        if (!node->op)
            continue;
        if (i != graph->loss &&
            (plan_value(plan, s, i).kind == PLACE_NONE || plan_test_value(plan, s, i).kind == PLACE_NONE))
            ICE("plan: stage %d has no place for %s", s, node->name);
        for (int k = 0; k < node->nin; k++)
            if (plan_value(plan, s, node->in[k]).kind == PLACE_NONE ||
                plan_test_value(plan, s, node->in[k]).kind == PLACE_NONE)
                ICE("plan: stage %d has no place for %s, which %s reads", s, graph->node[node->in[k]].name, node->name);
        const Edge *out = pipe_edge(pipe, i, s);
        if (pipe->backward->wants[i] && !(out && out->gradient) && !plan_buffer(plan, s, BUFFER_GRADIENT, i) &&
            !plan_buffer(plan, s, BUFFER_KEPT, i))
            ICE("plan: stage %d has no place for the gradient of %s", s, node->name);
    }
}

static void check_params(const Plan *plan, int s)
{
    const Pipe *pipe = plan->sched->pipe;
    const StagePlan *stage = &plan->stage[s];
    int64_t next[3] = {0, 0, stage->early_floats}; /* weights, running statistics, weights of weight parts */
    int64_t bf16 = stage->bf16_at, read = stage->bf16_at;
    for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
        for (int k = 0; k < pipe->graph->node[i].nparams; k++) {
            const ParamPlan *param = &plan->param[pipe->graph->node[i].param[k]];
            const bool own = pipe->graph->param[pipe->graph->node[i].param[k]].running;
            if (element_of_param(pipe->graph, pipe->graph->node[i].param[k]) == ELEMENT_BF16) {
                if (param->offset != bf16 || param->read != read || param->room <= 0 || param->room % 32)
                    ICE("plan: stage %d: bf16 parameter %d of %s at %lld", s, k, pipe->graph->node[i].name,
                        (Int)param->offset);
                bf16 += param->room;
                read += param->room / 2;
                continue;
            }
            if (!own && param->read != param->offset)
                ICE("plan: stage %d: parameter %d of %s is read at %lld", s, k, pipe->graph->node[i].name,
                    (Int)param->read);
            const int running = own ? 1 : param->offset >= stage->early_floats ? 2 : 0;
            if (param->offset != next[running] || param->offset % 16 || param->room <= 0 || param->room % 16)
                ICE("plan: stage %d: parameter %d of %s at %lld", s, k, pipe->graph->node[i].name, (Int)param->offset);
            next[running] += param->room;
        }
    const bool early = stage->bf16_at < stage->early_floats;
    if (next[0] != (early ? stage->bf16_at : stage->early_floats) ||
        next[2] != (early ? stage->early_floats : stage->bf16_at) || bf16 != stage->weight_floats ||
        read != stage->version_floats || next[1] != stage->running_floats ||
        stage->masters != (stage->bf16_at < stage->weight_floats))
        ICE("plan: stage %d: weights do not add up", s);
}

void plan_check(const Plan *plan)
{
    const Pipe *pipe = plan->sched->pipe;
    int64_t all = 0, traffic = 0;
    Arena *arena = arena_new();
    int64_t *given = arena_alloc(arena, sizeof *given * (size_t)(pipe->nstages + 1));
    for (int e = 0; e < pipe->nedges; e++) {
        const RegisterPlan *reg = &plan->reg[e];
        if (reg->slot_bytes < pipe->edge[e].bytes || reg->slot_bytes % 64)
            ICE("plan: register %d has slots of %lld bytes", e, (Int)reg->slot_bytes);
        given[pipe->edge[e].from] += reg->slot_bytes * (reg->forward_slots + reg->gradient_slots + reg->test_slots);
        traffic += reg->slot_bytes * (pipe->edge[e].gradient ? 2 : 1) * pipe->graph->microbatches;
    }
    for (int s = 0; s < pipe->nstages; s++) {
        const StagePlan *stage = &plan->stage[s];
        check_buffers(plan, s);
        for (PlanArea area = AREA_TRAIN; area <= AREA_FORWARD; area++)
            check_area(plan, arena, s, area);
        check_places(plan, s);
        check_params(plan, s);
        const int64_t transients = stage->transient_bytes + stage->forward_transient_bytes;
        const int64_t sum = stage->saved_bytes + transients + stage->register_bytes + weight_bytes(stage) +
                            stage->running_floats * 4 + (stage->replicas - 1) * stage->replica_bytes;
        const int64_t copy = stage->saved_bytes + transients + gradient_bytes(stage) + 4 * stage->running_floats;
        if (stage->replicas != pipe->stage[s].replicas || copy != stage->replica_bytes)
            ICE("plan: stage %d: the replicas do not add up", s);
        const int64_t half = stage->saved_bytes + stage->forward_transient_bytes + stage->register_bytes;
        if (stage->forward_half_bytes != (pipe->stage[s].halves ? half : 0) ||
            (stage->forward_transient_bytes && !pipe->stage[s].halves))
            ICE("plan: stage %d: the halves do not add up", s);
        if (sum != stage->static_bytes || given[s] != stage->register_bytes)
            ICE("plan: stage %d: bytes do not add up", s);
        all += sum;
    }
    if (all != plan->static_bytes || traffic != plan->traffic_bytes)
        ICE("plan: totals do not add up");
    arena_free(arena);
}

/* ---- dump ---- */

static const char *place_text(Arena *arena, const Buffer *buffer)
{
    return arena_printf(arena, "[%lld, %lld)", (Int)buffer->offset, (Int)(buffer->offset + buffer->bytes));
}

/* The transients of the forward half of the stage, or all others. */
static void dump_transients(const Plan *plan, int s, bool forward, Text *out)
{
    const StagePlan *stage = &plan->stage[s];
    text_printf(out, "  transient%s: %lld bytes, shared in time\n", forward ? " of the forward half" : "",
                (Int)(forward ? stage->forward_transient_bytes : stage->transient_bytes));
    for (int i = 0; i < stage->nbuffers; i++) {
        const Buffer *buffer = &stage->buffer[i];
        const PlanArea area = buffer_area(buffer->kind, plan->sched->pipe->stage[s].halves);
        if (area == AREA_NONE || (area == AREA_FORWARD) != forward)
            continue;
        text_printf(out, "    %-8s %-36s %-26s steps %d..%d\n", kind_names[buffer->kind],
                    plan->sched->pipe->graph->node[buffer->value].value_name, place_text(out->arena, buffer),
                    buffer->born, buffer->dies);
    }
}

static void dump_buffers(const Plan *plan, int s, Text *out)
{
    const Graph slice = pipe_slice(plan->sched->pipe, s), *graph = &slice;
    const StagePlan *stage = &plan->stage[s];
    text_printf(out, "  saved for backward and inputs: %lld bytes\n", (Int)stage->saved_bytes);
    for (int i = 0; i < stage->nbuffers; i++) {
        const Buffer *buffer = &stage->buffer[i];
        const Node *node = &graph->node[buffer->value];
        if (buffer_is_transient(buffer->kind))
            continue;
        const char *aux = node->op && node->op->aux_name ? node->op->aux_name : "aux";
        if (buffer->kind == BUFFER_AUX)
            text_printf(out, "    %-36s %3d x %lld\n", arena_printf(out->arena, "%s of %s", aux, node->name),
                        buffer->slots, (Int)buffer->bytes);
        else
            text_printf(out, "    %-36s %3d x %-10lld %s\n",
                        buffer->kind == BUFFER_AGAIN  ? arena_printf(out->arena, "%s, again", node->value_name)
                        : buffer->kind == BUFFER_KEPT ? arena_printf(out->arena, "gradient of %s", node->value_name)
                                                      : node->value_name,
                        buffer->slots, (Int)buffer->bytes, element_shape_text(out->arena, graph, buffer->value));
    }
    if (plan->sched->pipe->stage[s].halves)
        dump_transients(plan, s, true, out);
    dump_transients(plan, s, false, out);
}

static void dump_params(const Plan *plan, int s, bool running, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    for (NodeId i = pipe->stage[s].first; i < pipe->stage[s].last; i++)
        for (int k = 0; k < pipe->graph->node[i].nparams; k++) {
            const Param *param = &pipe->graph->param[pipe->graph->node[i].param[k]];
            const ParamPlan *at = &plan->param[pipe->graph->node[i].param[k]];
            if (param->running != running)
                continue;
            const bool bf16 = element_of_param(pipe->graph, pipe->graph->node[i].param[k]) == ELEMENT_BF16;
            text_printf(out, "    %-36s at %-10lld room %-10lld %s[", param->name, (Int)at->offset, (Int)at->room,
                        bf16 ? "bf16" : "f32");
            for (int d = 0; d < param->rank; d++)
                text_printf(out, "%s%lld", d ? "," : "", (Int)param->dim[d]);
            text_printf(out, "]\n");
        }
}

static void dump_weights(const Plan *plan, int s, Text *out)
{
    const StagePlan *stage = &plan->stage[s];
    text_printf(out, "  weights: %lld floats x (%d version%s + gradient%s + %d optimiser state%s",
                (Int)stage->weight_floats, stage->versions, stage->versions == 1 ? "" : "s",
                stage->sums ? " + sum of gradients" : "", stage->states, stage->states == 1 ? "" : "s");
    if (stage->ahead)
        text_printf(out, " + %d looked ahead", stage->ahead);
    text_printf(out, ")\n");
    if (stage->masters)
        text_printf(out,
                    "  of them bf16 from %lld on in versions and gradient (%lld bytes each), which have f32 masters\n",
                    (Int)stage->bf16_at, (Int)version_bytes(stage));
    dump_params(plan, s, false, out);
    if (!stage->running_floats)
        return;
    text_printf(out, "  running statistics: %lld floats\n", (Int)stage->running_floats);
    dump_params(plan, s, true, out);
}

void plan_dump(const Plan *plan, Text *out)
{
    const Pipe *pipe = plan->sched->pipe;
    text_printf(out, "plan %s for %s: %lld bytes static, %lld bytes over registers a minibatch\n", pipe->graph->name,
                plan->target->name, (Int)plan->static_bytes, (Int)plan->traffic_bytes);
    int e = 0;
    for (int s = 0; s < pipe->nstages; s++) {
        const StagePlan *stage = &plan->stage[s];
        text_printf(out, "\nstage %d: %lld bytes; ring %d, staleness %d\n", s, (Int)stage->static_bytes,
                    plan->sched->ring[s], plan->sched->staleness[s]);
        if (stage->replicas > 1)
            text_printf(out,
                        "  %d replicas: below is the first; each further one has %lld bytes: saved, transient, "
                        "gradient%s\n",
                        stage->replicas, (Int)stage->replica_bytes,
                        stage->running_floats ? ", running statistics" : "");
        if (pipe->stage[s].halves)
            text_printf(out,
                        "  in halves: forward, with the rings and registers, %lld bytes; backward, with the weights, "
                        "%lld\n",
                        (Int)stage->forward_half_bytes, (Int)plan_worker_bytes(stage));
        dump_buffers(plan, s, out);
        dump_weights(plan, s, out);
        if (e < pipe->nedges && pipe->edge[e].from == s)
            text_printf(out, "  registers to stage %d: %lld bytes\n", s + 1, (Int)stage->register_bytes);
        for (; e < pipe->nedges && pipe->edge[e].from == s; e++)
            text_printf(out, "    %-36s slots of %lld: %d forward, %d gradient, %d test\n",
                        pipe->graph->node[pipe->edge[e].value].value_name, (Int)plan->reg[e].slot_bytes,
                        plan->reg[e].forward_slots, plan->reg[e].gradient_slots, plan->reg[e].test_slots);
    }
}
