/* cost.h: how long each node of a network takes on a machine: by a roofline of its FLOPs and bytes, or as a profile
 * measured it.
 *
 * Times are of one minibatch, or microbatch. Roofline of a pass: max(FLOPs / (compute * efficiency of the op * filling),
 * bytes / bandwidth) + bytes of weights / bandwidth + overhead (Williams et al. 2009); filling = w / (w + half_width), w
 * the channels it makes: few channels leave vector units idle. FLOPs and bytes count the target's padding: 6 channels
 * stored as 16 cost as 16. Weights are used for the first time in the pass: reading them hides behind no product. A
 * gradient of weights is written where the caches don't hold it: each line is read first. An update reads and writes
 * weights, gradients and optimiser state once. A view (flatten) costs its bytes like any map.
 *
 * A convolution that the target does by Winograd's F(4x4, 3x3) (Lavin & Gray 2015, 4.2), on a device that states what
 * share of its compute the products get: for each tile and pair of channels 36 products instead of 144; and, one after
 * the other with these, transforms that read 16 floats and write 36 of each tile of what goes in, and the other way
 * round of what comes out. Of each pair of channels they read 9 floats of weights and write 36, which the products read;
 * the gradient of weights clears 36, adds to them, reads them and writes 9. (Lines to write are read first.) So few
 * channels cost by their transforms, many by their products, and few tiles by their weights.
 */
#ifndef PNETC_COST_H
#define PNETC_COST_H

#include "backward.h"
#include "machine.h"
#include "target.h"

typedef struct {
    double forward, backward_data, backward_weights, update; /* seconds */
    bool measured; /* the backward as a whole; its parts as the roofline has them */
} NodeTime;

/* A profile: lines of times by node. */
typedef struct {
    Name node;
    double forward, backward, update; /* seconds */
    Span span;
} ProfileLine;
typedef struct {
    const char *path, *machine;
    const char *versions;
    double handover;   /* seconds of a register's, to a stage that waits for it; < 0: not measured */
    ProfileLine *line; /* sorted by the pointers of their names */
    int nlines;
} Profile;

typedef struct {
    const Hardware *hardware;
    const TargetDef *target;
    const Profile *profile; /* NULL: analytic */
    int states;             /* of the optimiser */
    int threads;            /* of a stage: a profile measured as many; analytic times are those of one */
} CostModel;

/* The time of each node of a fused graph on a kind of device. A profile counts for the first kind. */
NodeTime *cost_times(Arena *arena, const CostModel *model, const Graph *graph, const Backward *backward, int kind);
/* The same of one of `replicas` replicas, of times of the graph that it sees (pipe_slice): measured times are of a
 * whole minibatch. */
NodeTime cost_slice(const NodeTime *time, int replicas);
/* Trainable floats of a node, as stored. */
int64_t cost_weight_floats(const CostModel *model, const Graph *graph, NodeId node);
/* What a replica does of the sum of the gradients: it reads its part of all of them and writes the sum. */
double cost_gradient_sum(const Device *device, int64_t floats, int replicas);
/* The mean of the gradients of a minibatch's microbatches: the first is copied, each further one read, and added to
 * what is read and written. */
double cost_gradient_mean(const Device *device, int64_t floats, int64_t microbatches);
double node_time_sum(const NodeTime *time);
/* A node's work of a minibatch, of its time for a microbatch: all of them, the mean of their gradients, the update. */
double cost_minibatch(const CostModel *model, const Graph *graph, const Device *device, NodeId node,
                      const NodeTime *time);
/* The analytic time of this node on a device of this kind is that of Winograd's algorithm. */
bool cost_winograd(const CostModel *model, const Graph *graph, NodeId node, int kind);
/* Slot bytes of a value in a register, as the plan has them. */
int64_t cost_register_bytes(const CostModel *model, const Graph *graph, NodeId value);
/* The link behind a cut. Where it is zero copy, a profile has its latency. */
Link cost_link(const CostModel *model, int cut);
/* One transfer over a link. */
double cost_transfer(const Link *link, int64_t bytes);

/* profile.c */
/* NULL after errors: each names its line. `written`: the graph as lower() gave it. `threads`: of a stage. `machine`:
 * that was asked for by name, or NULL. */
const Profile *profile_read(Arena *arena, Diags *diags, Sources *sources, const char *path, const Graph *written,
                            const TargetDef *target, int threads, const char *machine);
const ProfileLine *profile_find(const Profile *profile, Name node); /* NULL: not measured */
/* 16 hexadecimal digits: all that nodes compute, and with which shapes; independent of the cuts. */
const char *graph_hash(Arena *arena, const Graph *graph);

#endif
