/* plan.c: the memory of every stage, from what its steps touch and when.
 *
 * Per stage: what each value is used for (survey), a buffer for each use that a register does not serve, the transients
 * packed (plan_area.c), weights laid out in program order. Two timelines share the transient area: a training step and
 * a test pass; the area is as large as the larger one. One PARTIAL buffer serves all later contributions to one
 * gradient: each is added before the next is made. Time: linear in nodes and inputs, but for sorting and packing. */
#include "plan.h"

#include <stdlib.h>

#include "plan_area.h"

enum { ALIGN = 64, NEVER = -1 };

/* What a stage does with a value; steps of its timeline. */
typedef struct {
    int last_read; /* forward step; NEVER */
    bool backward_reads;
    int gradient;                    /* step that writes its gradient here; NEVER */
    int partial_first, partial_last; /* steps that add to it; NEVER */
} Use;

typedef struct {
    Arena *arena;
    Plan *plan;
    const Pipe *pipe;
    const Graph *graph; /* batch: of a whole minibatch */
    Graph slice;        /* batch: of the replicas of the stage at hand */
    const Backward *backward;
    const BackwardStep **step_of; /* per node; NULL: no backward */
    Use *use;                     /* per value, for the stage at hand */
    bool *listed;                 /* per value: among the values of the stage at hand */
    bool too_large;
} Planner;

typedef VEC(Buffer) Buffers;
typedef VEC(NodeId) Values;

static int64_t add_sizes(Planner *p, int64_t a, int64_t b)
{
    int64_t sum = TARGET_TOO_LARGE;
    if (!checked_add(a, b, &sum) || sum >= TARGET_TOO_LARGE)
        p->too_large = true;
    return sum < TARGET_TOO_LARGE ? sum : TARGET_TOO_LARGE;
}

static int64_t times(Planner *p, int64_t a, int64_t b)
{
    int64_t product = TARGET_TOO_LARGE;
    if (!checked_mul(a, b, &product) || product >= TARGET_TOO_LARGE)
        p->too_large = true;
    return product < TARGET_TOO_LARGE ? product : TARGET_TOO_LARGE;
}

/* Slot of a value, of an aux, rounded up. */
static int64_t slot_bytes(Planner *p, int64_t bytes)
{
    if (bytes >= TARGET_TOO_LARGE)
        p->too_large = true;
    return bytes >= TARGET_TOO_LARGE ? TARGET_TOO_LARGE : round_up(bytes, ALIGN);
}

static int64_t value_slot(Planner *p, const Graph *graph, NodeId value)
{
    return slot_bytes(p, p->plan->target->value_bytes(graph, value));
}

static void touch(Planner *p, Values *values, NodeId value)
{
    if (p->listed[value])
        return;
    p->listed[value] = true;
    p->use[value] = (Use){NEVER, false, NEVER, NEVER, NEVER};
    *vec_push(p->arena, values) = value;
}

static bool reads_backward(unsigned needs, int input)
{
    return (input == 0 && needs & NEEDS_IN0) || (input == 1 && needs & NEEDS_IN1);
}

/* Fills p->use for all values that the stage makes or reads; they come out in `values`. */
static void survey(Planner *p, int s, Values *values)
{
    const Stage *stage = &p->pipe->stage[s];
    const int n = stage->last - stage->first;
    for (NodeId i = stage->first; i < stage->last; i++) {
        const Node *node = &p->graph->node[i];
        if (!node->op)
            continue;
        touch(p, values, i);
        p->use[i].backward_reads |= (p->backward->needs[i] & NEEDS_OUT) != 0;
        for (int k = 0; k < node->nin; k++) {
            touch(p, values, node->in[k]);
            Use *use = &p->use[node->in[k]];
            use->last_read = i - stage->first;
            use->backward_reads |= reads_backward(p->backward->needs[i], k);
        }
    }
    for (NodeId i = stage->last - 1; i >= stage->first; i--) {
        const BackwardStep *step = p->step_of[i];
        const int when = 2 * n - 1 - (i - stage->first);
        for (int k = 0; step && k < p->graph->node[i].nin; k++) {
            Use *use = &p->use[p->graph->node[i].in[k]];
            if (step->in[k] == GRADIENT_WRITE)
                use->gradient = when;
            if (step->in[k] == GRADIENT_ADD) {
                use->partial_first = use->partial_first == NEVER ? when : use->partial_first;
                use->partial_last = when;
            }
        }
    }
}

/* What is done again: nodes whose output or aux a backward reads, and those that they read. */
static void choose_again(Planner *p, int s)
{
    const Stage *stage = &p->pipe->stage[s];
    bool *again = p->plan->again;
    for (NodeId i = stage->last - 1; p->plan->sched->recompute[s] && i >= stage->first; i--) {
        const Node *node = &p->graph->node[i];
        if (!node->op)
            continue;
        again[i] |= p->use[i].backward_reads || (p->backward->needs[i] & NEEDS_AUX) != 0;
        for (int k = 0; again[i] && k < node->nin; k++)
            again[node->in[k]] |= node->in[k] >= stage->first && p->graph->node[node->in[k]].op;
    }
}

/* A network input that a node reads again. */
static bool read_again(const Planner *p, int s, NodeId input)
{
    const Stage *stage = &p->pipe->stage[s];
    for (NodeId i = stage->first; i < stage->last; i++)
        for (int k = 0; p->plan->again[i] && k < p->graph->node[i].nin; k++)
            if (p->graph->node[i].in[k] == input)
                return true;
    return false;
}

static void add_buffer(Planner *p, Buffers *list, BufferKind kind, NodeId value, int64_t bytes, int slots, int born,
                       int dies)
{
    *vec_push(p->arena, list) = (Buffer){
        .kind = kind, .value = value, .bytes = bytes, .slots = slots, .offset = -1, .born = born, .dies = dies};
}

/* The weight part of the node, which the stage splits off, reads the gradient of its value. */
static bool waits(const Planner *p, int s, NodeId id)
{
    const Node *node = &p->graph->node[id];
    return p->plan->sched->late[s] > 0 && id >= p->pipe->stage[s].first && node->op &&
           node->op->flags & OP_WEIGHT_PART && p->step_of[id];
}

static void value_buffers(Planner *p, int s, NodeId v, Buffers *list)
{
    const Stage *stage = &p->pipe->stage[s];
    const Use *use = &p->use[v];
    const Node *node = &p->graph->node[v];
    const int n = stage->last - stage->first, ring = p->plan->sched->ring[s];
    const bool input = !node->op, loss = v == p->graph->loss, recomputes = p->plan->sched->recompute[s];
    const Edge *in = pipe_edge(p->pipe, v, s - 1), *out = pipe_edge(p->pipe, v, s);
    const int64_t bytes = loss ? 0 : value_slot(p, &p->slice, v);
    const int made = input ? 0 : v - stage->first; /* inputs of a test pass are read before its first step */
    const int last_read = use->last_read > made ? use->last_read : made;

    if (!loss && !in && !out) {
        if (input || use->backward_reads)
            add_buffer(p, list, BUFFER_SAVED, v, bytes,
                       input        ? (use->backward_reads || read_again(p, s, v) ? ring : 1)
                       : recomputes ? 1
                                    : ring,
                       0, 0);
        else
            add_buffer(p, list, BUFFER_VALUE, v, bytes, 1, made, last_read);
        add_buffer(p, list, BUFFER_TEST, v, bytes, 1, made, last_read);
    }
    if (!loss && !in && out && p->plan->again[v])
        add_buffer(p, list, BUFFER_AGAIN, v, bytes, 1, 0, 0);
    if (!input && !in && node->op->aux) {
        const int64_t aux = p->plan->target->aux_bytes(&p->slice, v);
        if (aux > 0)
            add_buffer(p, list, BUFFER_AUX, v, slot_bytes(p, aux),
                       p->backward->needs[v] & NEEDS_AUX && !recomputes ? ring : 1, 0, 0);
    }
    if (waits(p, s, v))
        add_buffer(p, list, BUFFER_KEPT, v, bytes, p->plan->sched->late[s], 0, 0);
    else if (!in && !(out && out->gradient) && use->gradient != NEVER)
        add_buffer(p, list, BUFFER_GRADIENT, v, bytes, 1, use->gradient, 2 * n - 1 - made);
    if (use->partial_first != NEVER)
        add_buffer(p, list, BUFFER_PARTIAL, v, bytes, 1, use->partial_first, use->partial_last);
}

/* Offsets of the transients that share memory; returns its size. */
static int64_t pack(Planner *p, StagePlan *stage, PlanArea area, bool halves)
{
    Block *block = arena_alloc(p->arena, sizeof *block * (size_t)(stage->nbuffers + 1));
    int count = 0;
    for (int b = 0; b < stage->nbuffers; b++) {
        const Buffer *buffer = &stage->buffer[b];
        if (buffer_area(buffer->kind, halves) == area)
            block[count++] = (Block){buffer->bytes, buffer->born, buffer->dies, b, 0};
    }
    const int64_t bytes = area_fit(p->arena, block, count);
    for (int i = 0; i < count; i++)
        stage->buffer[block[i].id].offset = block[i].offset;
    return bytes;
}

static void plan_buffers(Planner *p, int s)
{
    Values values = {0};
    Buffers list = {0};
    survey(p, s, &values);
    choose_again(p, s);
    for (int i = 0; i < values.count; i++) {
        value_buffers(p, s, values.at[i], &list);
        p->listed[values.at[i]] = false;
    }
    if (list.count)
        qsort(list.at, (size_t)list.count, sizeof *list.at, buffer_order);
    StagePlan *stage = &p->plan->stage[s];
    stage->buffer = list.at;
    stage->nbuffers = list.count;
    int64_t transients = 0; /* bounds the area: packing must not overflow */
    for (int b = 0; b < list.count; b++)
        if (buffer_is_transient(list.at[b].kind))
            transients = add_sizes(p, transients, list.at[b].bytes);
        else
            stage->saved_bytes = add_sizes(p, stage->saved_bytes, times(p, list.at[b].bytes, list.at[b].slots));
    if (p->too_large)
        return;
    const bool halves = p->pipe->stage[s].halves;
    const int64_t train = pack(p, stage, AREA_TRAIN, halves), test = pack(p, stage, AREA_TEST, halves);
    stage->transient_bytes = train > test ? train : test;
    stage->forward_transient_bytes = pack(p, stage, AREA_FORWARD, halves);
}

/* Parameters of one kind, in program order, behind those that are laid out already. */
static void lay_params(Planner *p, int s, bool late, Element element)
{
    const Stage *stage = &p->pipe->stage[s];
    StagePlan *plan = &p->plan->stage[s];
    for (NodeId i = stage->first; i < stage->last; i++)
        for (int k = 0; waits(p, s, i) == late && k < p->graph->node[i].nparams; k++) {
            const int param = p->graph->node[i].param[k];
            if (element_of_param(p->graph, param) != element)
                continue;
            const bool running = p->graph->param[param].running;
            const int64_t floats = p->plan->target->param_floats(p->graph, param),
                          unit = ALIGN / element_bytes(element);
            const int64_t room = floats < TARGET_TOO_LARGE ? round_up(floats, unit) : TARGET_TOO_LARGE;
            int64_t *floats_so_far = running ? &plan->running_floats : &plan->weight_floats;
            p->plan->param[param] = (ParamPlan){*floats_so_far, room, running ? 0 : plan->version_floats};
            *floats_so_far = add_sizes(p, *floats_so_far, room);
            if (!running)
                plan->version_floats = add_sizes(p, plan->version_floats, room * element_bytes(element) / 4);
        }
}

/* What weight parts make the gradients of has no bf16 before it: only they make those of what is bf16. */
static void plan_params(Planner *p, int s)
{
    StagePlan *plan = &p->plan->stage[s];
    lay_params(p, s, false, ELEMENT_F32);
    plan->bf16_at = plan->weight_floats;
    lay_params(p, s, false, ELEMENT_BF16);
    plan->early_floats = plan->weight_floats;
    lay_params(p, s, true, ELEMENT_F32);
    if (plan->bf16_at == plan->early_floats)
        plan->bf16_at = plan->weight_floats;
    lay_params(p, s, true, ELEMENT_BF16);
    plan->masters = plan->bf16_at < plan->weight_floats;
}

static void plan_registers(Planner *p)
{
    const Sched *sched = p->plan->sched;
    for (int e = 0; e < p->pipe->nedges; e++) {
        const Edge *edge = &p->pipe->edge[e];
        RegisterPlan *reg = &p->plan->reg[e];
        *reg = (RegisterPlan){value_slot(p, p->graph, edge->value), sched->forward_slots[e], sched->gradient_slots[e],
                              sched->test_slots[e]};
        StagePlan *from = &p->plan->stage[edge->from];
        const int slots = reg->forward_slots + reg->gradient_slots + reg->test_slots;
        from->register_bytes = add_sizes(p, from->register_bytes, times(p, reg->slot_bytes, slots));
        p->plan->traffic_bytes = add_sizes(
            p, p->plan->traffic_bytes, times(p, reg->slot_bytes, (edge->gradient ? 2 : 1) * p->graph->microbatches));
    }
}

static void add_up(Planner *p, int s, int states)
{
    StagePlan *stage = &p->plan->stage[s];
    stage->versions = p->plan->sched->versions[s];
    stage->states = states;
    stage->sums = p->graph->microbatches > 1 && stage->weight_floats > 0;
    for (int i = 0; i < p->plan->sched->nphases; i++) {
        const Cure *cure = &p->plan->sched->phase[i].cure[s];
        const bool each = p->pipe->stage[s].halves && cure->active && cure->forward != 0;
        const int ahead = cure_ahead_copies(cure) + (each ? stage->versions - 1 : 0);
        stage->ahead = ahead > stage->ahead ? ahead : stage->ahead;
    }
    const int64_t versions = times(p, times(p, stage->version_floats, 4), stage->versions + stage->ahead + 1);
    const int64_t arrays = times(p, times(p, stage->weight_floats, 4), stage->masters + stage->states + stage->sums);
    const int64_t weights = add_sizes(p, add_sizes(p, versions, arrays), times(p, stage->running_floats, 4));
    const int64_t buffers =
        add_sizes(p, stage->saved_bytes, add_sizes(p, stage->transient_bytes, stage->forward_transient_bytes));
    if (p->pipe->stage[s].halves)
        stage->forward_half_bytes =
            add_sizes(p, add_sizes(p, stage->saved_bytes, stage->forward_transient_bytes), stage->register_bytes);
    stage->replicas = p->pipe->stage[s].replicas;
    const int64_t gradients = add_sizes(p, stage->version_floats, times(p, stage->weight_floats, stage->sums));
    stage->replica_bytes = add_sizes(p, buffers, times(p, add_sizes(p, gradients, stage->running_floats), 4));
    stage->static_bytes = add_sizes(p, add_sizes(p, buffers, times(p, stage->replica_bytes, stage->replicas - 1)),
                                    add_sizes(p, weights, stage->register_bytes));
    p->plan->static_bytes = add_sizes(p, p->plan->static_bytes, stage->static_bytes);
}

/* A device runs a stage on one stream. */
static bool halves_run(const Planner *p, Diags *diags)
{
    const Span span = p->plan->sched->settings->pipeline.mapping_span;
    if (!pipe_halved(p->pipe) || !p->plan->target->device)
        return true;
    diag_error(diags, P0525, span, "target %s does not have mapping = split", p->plan->target->name);
    diag_hint(diags, "it is there on the targets cpu and ref");
    return false;
}

/* What replicas do not do. */
static bool replicas_hold(const Planner *p, Diags *diags, int s)
{
    const Span span = p->plan->sched->settings->pipeline.span;
    const StagePlan *stage = &p->plan->stage[s];
    if (stage->replicas > 1 && p->plan->target->device) {
        diag_error(diags, P0524, span, "stage %d has replicas, and target %s does not have them", s,
                   p->plan->target->name);
        diag_hint(diags, "replicas run on the targets cpu and ref");
        return false;
    }
    if (stage->replicas > 1 && stage->ahead) {
        diag_error(diags, P0524, span,
                   "stage %d has replicas, and they do not read weights ahead, as its corrections do", s);
        diag_hint(diags, "cure = none, or corrections without lookahead, discrepancy and predict");
        return false;
    }
    return true;
}

Plan *plan_memory(Arena *arena, Diags *diags, const Sched *sched, const TargetDef *target)
{
    const Pipe *pipe = sched->pipe;
    const Graph *graph = pipe->graph;
    const size_t nodes = (size_t)graph->nnodes + 1;
    Plan *plan = arena_alloc(arena, sizeof *plan);
    plan->sched = sched;
    plan->target = target;
    plan->stage = arena_alloc(arena, sizeof *plan->stage * (size_t)pipe->nstages);
    plan->reg = arena_alloc(arena, sizeof *plan->reg * (size_t)(pipe->nedges + 1));
    plan->param = arena_alloc(arena, sizeof *plan->param * (size_t)(graph->nparams + 1));
    plan->again = arena_alloc(arena, sizeof *plan->again * nodes);
    Planner p = {
        .arena = arena,
        .plan = plan,
        .pipe = pipe,
        .graph = graph,
        .backward = pipe->backward,
        .step_of = arena_alloc(arena, sizeof(BackwardStep *) * nodes),
        .use = arena_alloc(arena, sizeof(Use) * nodes),
        .listed = arena_alloc(arena, sizeof(bool) * nodes),
    };
    for (int b = 0; b < pipe->backward->nsteps; b++)
        p.step_of[pipe->backward->step[b].node] = &pipe->backward->step[b];
    if (!halves_run(&p, diags))
        return NULL;
    const int states = optimizer_states(&sched->settings->train.optimizer) + cure_states(sched->settings);
    plan_registers(&p);
    for (int s = 0; s < pipe->nstages; s++) {
        p.slice = pipe_slice(pipe, s);
        plan_buffers(&p, s);
        plan_params(&p, s);
        add_up(&p, s, states);
        if (!replicas_hold(&p, diags, s))
            return NULL;
        if (p.too_large) {
            NodeId first = pipe->stage[s].first;
            while (!graph->node[first].op)
                first++;
            diag_error(diags, P0504, graph->node[first].span,
                       "the memory of stage %d, which begins here, exceeds 2^56 bytes", s);
            diag_hint(diags, "the batch is %lld, and the stage keeps what its backward reads for %d %s in flight",
                      (long long)graph->batch, sched->ring[s],
                      graph->microbatches > 1 ? "microbatches" : "minibatches");
            return NULL;
        }
    }
    return plan;
}
