/* cost.c: times of nodes, by roofline or profile. */
#include "cost.h"

typedef struct {
    const CostModel *model;
    const Graph *graph;
    const Device *device;
} Costing;

static double plain_bytes(const Graph *graph, NodeId value)
{
    const Shape *shape = &graph->node[value].shape;
    return 4.0 * (double)graph->batch * (double)(shape->dtype == DTYPE_CLASS ? 1 : shape_count(shape));
}

/* What a value takes as stored, over what it takes plainly: 16/6 for six channels in a block of sixteen. */
static double padding(const Costing *c, NodeId value)
{
    const double plain = plain_bytes(c->graph, value);
    return plain > 0 ? (double)c->model->target->value_bytes(c->graph, value) / plain : 1;
}

static double efficiency(const Costing *c, const OpDef *op)
{
    for (int i = 0; i < op_count; i++)
        if (op_table[i] == op)
            return c->device->efficiency[i];
    return 1;
}

/* Channels of a value as stored: what a kernel works on side by side. */
static double width(const Costing *c, NodeId value)
{
    const Shape *shape = &c->graph->node[value].shape;
    return shape->rank > 0 ? (double)shape->dim[0] * padding(c, value) : 1;
}

/* Reads weights that no pass before has left in a cache; `written`: writes as many, whose lines are read first. */
static double weights_time(const Costing *c, NodeId id, bool written)
{
    return (written ? 2 : 1) * 4.0 * (double)cost_weight_floats(c->model, c->graph, id) / c->device->bandwidth;
}

/* `wide`: the value whose channels the pass makes. */
static double roofline(const Costing *c, const OpDef *op, NodeId wide, double flops, double bytes)
{
    const double w = width(c, wide), filled = w / (w + c->device->half_width);
    const double compute = flops / (c->device->compute * efficiency(c, op) * filled),
                 memory = bytes / c->device->bandwidth;
    return (compute > memory ? compute : memory) + c->device->overhead;
}

/* Bytes of all operands as stored, over their plain bytes. */
static double traffic_padding(const Costing *c, NodeId id)
{
    const Node *node = &c->graph->node[id];
    double plain = plain_bytes(c->graph, id), stored = (double)c->model->target->value_bytes(c->graph, id);
    for (int k = 0; k < node->nin; k++) {
        plain += plain_bytes(c->graph, node->in[k]);
        stored += (double)c->model->target->value_bytes(c->graph, node->in[k]);
    }
    return plain > 0 ? stored / plain : 1;
}

int64_t cost_weight_floats(const CostModel *model, const Graph *graph, NodeId id)
{
    const Node *node = &graph->node[id];
    int64_t floats = 0;
    for (int k = 0; k < node->nparams; k++)
        if (!graph->param[node->param[k]].running)
            floats += model->target->param_floats(graph, node->param[k]);
    return floats;
}

double cost_gradient_sum(const Device *device, int64_t floats, int replicas)
{
    return 4.0 * (double)floats * (replicas + 1) / replicas / device->bandwidth;
}

double cost_gradient_mean(const Device *device, int64_t floats, int64_t microbatches)
{
    return microbatches > 1 ? 4.0 * (double)floats * (double)(3 * microbatches - 1) / device->bandwidth : 0;
}

NodeTime cost_slice(const NodeTime *time, int replicas)
{
    NodeTime slice = *time;
    if (time->measured) {
        slice.forward /= replicas;
        slice.backward_data /= replicas;
        slice.backward_weights /= replicas;
    }
    return slice;
}

static double update_bytes(const Costing *c, NodeId id)
{
    const double floats = (double)cost_weight_floats(c->model, c->graph, id);
    return 4 * floats * (3 + 2 * c->model->states); /* weight twice, gradient, each state twice */
}

static int64_t winograd_tiles(const Costing *c, NodeId id)
{
    const TargetDef *target = c->model->target;
    return c->device->winograd > 0 && target->winograd_tiles ? target->winograd_tiles(c->graph, id) : 0;
}

static double winograd_time(const Costing *c, NodeId id, int64_t tiles, bool gradient)
{
    enum { POINTS = 36, PIXELS = 16, TAPS = 9, WEIGHTS = TAPS + 3 * POINTS, GRADIENT = 2 * TAPS + 5 * POINTS };
    const Node *node = &c->graph->node[id];
    const double in = (double)c->graph->node[node->in[0]].shape.dim[0], out = (double)node->shape.dim[0];
    const double products = 2 * POINTS * in * out * (double)tiles;
    const double bytes =
        4 * ((in + out) * (double)tiles * (PIXELS + POINTS) + in * out * (gradient ? GRADIENT : WEIGHTS));
    return products / (c->device->compute * c->device->winograd) + bytes / c->device->bandwidth + c->device->overhead;
}

/* `step` NULL: no backward runs. */
static NodeTime analytic(const Costing *c, NodeId id, const BackwardStep *step)
{
    const Graph *g = c->graph;
    const Node *node = &g->node[id];
    const Cost cost = node->op->cost ? node->op->cost(g, node) : (Cost){0};
    const double batch = (double)g->batch, traffic = traffic_padding(c, id);
    const NodeId in = node->nin > 0 ? node->in[0] : id;
    /* The lanes that a pass makes are padded, those that it sums over are not. */
    const double out_lanes = padding(c, id), in_lanes = cost.macs > 0 ? padding(c, in) : 1;
    NodeTime time = {
        .forward = roofline(c, node->op, id, batch * cost.forward * out_lanes, batch * cost.forward_bytes * traffic) +
                   weights_time(c, id, false)};
    const int64_t tiles = winograd_tiles(c, id);
    const double by_winograd = tiles > 0 ? winograd_time(c, id, tiles, false) : 0;
    if (tiles > 0)
        time.forward = by_winograd;
    if (!step)
        return time;
    bool data = false;
    double added = 0; /* bytes of sums of gradients */
    for (int k = 0; k < node->nin; k++) {
        data |= step->in[k] != GRADIENT_NONE;
        if (step->in[k] == GRADIENT_ADD)
            added += 3 * (double)c->model->target->value_bytes(g, node->in[k]);
    }
    const bool weights = cost.backward_weights > 0;
    const double bytes = batch * cost.backward_bytes * traffic / (weights ? 2 : 1);
    if (data || !weights)
        time.backward_data = (tiles > 0 ? by_winograd
                                        : roofline(c, node->op, in, batch * cost.backward_data * in_lanes, bytes) +
                                              weights_time(c, id, false)) +
                             added / c->device->bandwidth;
    if (weights)
        time.backward_weights =
            tiles > 0 ? winograd_time(c, id, tiles, true)
                      : roofline(c, node->op, id, batch * cost.backward_weights * out_lanes * in_lanes, bytes) +
                            weights_time(c, id, true);
    time.update = update_bytes(c, id) / c->device->bandwidth;
    return time;
}

static NodeTime measured(const ProfileLine *line, const NodeTime *own)
{
    const double whole = own->backward_data + own->backward_weights;
    const double weights = whole > 0 ? line->backward * (own->backward_weights / whole) : 0;
    return (NodeTime){line->forward, line->backward - weights, weights, line->update, true};
}

NodeTime *cost_times(Arena *arena, const CostModel *model, const Graph *graph, const Backward *backward, int kind)
{
    const Costing c = {model, graph, &model->hardware->device[kind]};
    NodeTime *time = arena_alloc(arena, sizeof *time * (size_t)(graph->nnodes + 1));
    const BackwardStep **step = arena_alloc(arena, sizeof *step * (size_t)(graph->nnodes + 1));
    for (int b = 0; b < backward->nsteps; b++)
        step[backward->step[b].node] = &backward->step[b];
    for (NodeId i = 0; i < graph->nnodes; i++) {
        const Node *node = &graph->node[i];
        if (!node->op)
            continue;
        const ProfileLine *line = model->profile && kind == 0 ? profile_find(model->profile, node->name) : NULL;
        const NodeTime own = analytic(&c, i, step[i]);
        time[i] = line ? measured(line, &own) : own;
    }
    return time;
}

bool cost_winograd(const CostModel *model, const Graph *graph, NodeId node, int kind)
{
    return winograd_tiles(&(Costing){model, graph, &model->hardware->device[kind]}, node) > 0;
}

double node_time_sum(const NodeTime *time)
{
    return time->forward + time->backward_data + time->backward_weights + time->update;
}

int64_t cost_register_bytes(const CostModel *model, const Graph *graph, NodeId value)
{
    const int64_t bytes = model->target->value_bytes(graph, value);
    return bytes < TARGET_TOO_LARGE ? round_up(bytes, 64) : TARGET_TOO_LARGE;
}

Link cost_link(const CostModel *model, int cut)
{
    Link link = hardware_link(model->hardware, cut);
    if (model->profile && model->profile->handover >= 0 && !(link.bandwidth > 0))
        link.latency = model->profile->handover;
    return link;
}

double cost_transfer(const Link *link, int64_t bytes)
{
    return link->latency + (link->bandwidth > 0 ? (double)bytes / link->bandwidth : 0);
}

double cost_minibatch(const CostModel *model, const Graph *graph, const Device *device, NodeId node,
                      const NodeTime *time)
{
    return (double)graph->microbatches * (node_time_sum(time) - time->update) + time->update +
           cost_gradient_mean(device, cost_weight_floats(model, graph, node), graph->microbatches);
}
