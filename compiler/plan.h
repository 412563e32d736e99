/* plan.h: where every byte of every stage lives. Emission only reads this; a user reads plan_dump as the memory map.
 *
 * Saved values and aux (what a backward reads) are arrays of `slots` slots, slot = minibatch % slots. Transients
 * (values only a forward reads, gradients, everything of a test pass) share the stage's one transient area by liveness.
 * Where backwards are split, the gradients that weight parts read are arrays of slots, too, and the parameters whose
 * gradients an input part makes come before those that wait for the weight part: each part has its piece of the sums.
 * A stage in halves has two transient areas: the forward half one for the values that only its forward reads, the
 * backward half one for the rest. The forward half counts as the owner of rings and registers, the backward half of
 * weights.
 * Within each, parameters that are bf16 as read (element.h) come last, and a version has them at half their room.
 * A stage that recomputes keeps what it takes in such rings; what its backward reads besides has one slot.
 * Weights, gradients, optimiser state, weight versions and running statistics are contiguous per stage. A value that
 * crosses a cut lives in its register. Offsets are multiples of 64 bytes. The library's scratch is measured at start
 * and not part of the plan. */
#ifndef PNETC_PLAN_H
#define PNETC_PLAN_H

#include "sched.h"
#include "target.h"

typedef enum {
    BUFFER_SAVED,    /* a value some backward of this stage reads, or a network input it reads: `slots` slots */
    BUFFER_AGAIN,    /* a value of a register behind the stage, made once more for the backward: one slot */
    BUFFER_AUX,      /* argmax, mask, probabilities: `slots` slots */
    BUFFER_KEPT,     /* a gradient that a weight part reads, where backwards are split: `slots` slots */
    BUFFER_VALUE,    /* a value only the forward reads: transient */
    BUFFER_GRADIENT, /* gradient of a value produced in this stage: transient */
    BUFFER_PARTIAL,  /* a later contribution to a gradient, before it is added: transient */
    BUFFER_TEST,     /* a value (or network input) during a test pass: transient, own timeline */
    BUFFER_KINDS
} BufferKind;
typedef struct {
    BufferKind kind;
    NodeId value;
    int64_t bytes; /* of one slot, rounded up to 64 */
    int slots;
    int64_t offset; /* in the transient area; -1: an array of its own */
    int born,
        dies; /* transients: first and last step of the stage's timeline that touches it, inclusive. Forward of node
               * first+i is step i; its backward is step 2n-1-i (n = nodes of the stage). TEST: forward steps only */
} Buffer;

typedef struct {
    int64_t offset; /* floats into the stage's weights, or into its running statistics; a multiple of 16 */
    int64_t room;   /* floats, at least the plain size: room for the target's layouts */
    int64_t read;   /* floats into a version of the weights as forward and backward read them */
} ParamPlan;

typedef struct {
    Buffer *buffer;
    int nbuffers;
    int64_t saved_bytes, transient_bytes;
    int64_t forward_transient_bytes; /* of a stage in halves: the area of its forward half; else 0 */
    int64_t forward_half_bytes;      /* likewise: saved + forward transient + register bytes */
    int64_t weight_floats;           /* room of all weights, of the optimiser's state, of sums of gradients */
    int64_t bf16_at;        /* of these, bf16 as forward and backward read them: from here on; all f32: weight_floats */
    int64_t version_floats; /* room of a version as these read it, and of the gradient: 4 bytes a float; all f32:
                             * weight_floats */
    int masters;            /* 1: the weights that updates move lie besides their versions */
    int64_t running_floats; /* room of all running statistics: one copy, neither gradient nor state */
    int64_t early_floats;   /* of these, what the input part of a backward makes the gradients of: the first ones */
    int versions, states;   /* copies of the weights; optimiser state arrays of the same size (momentum: 1) */
    int sums;               /* 1: the gradients of microbatches are summed in a further array of that size */
    int ahead;              /* copies that forward and backward read in place of the stored weights (cure.h); where the
                             * stage is in halves, forwards have one of each version */
    int64_t register_bytes; /* of the registers this stage gives: forward, gradient and test slots of edges from it */
    int replicas;           /* all that is above is of replica 0 */
    int64_t replica_bytes;  /* of each further replica: saved + transient + gradient + running; weights are shared */
    int64_t static_bytes;   /* saved + transients + weight_bytes + running_floats * 4 + register_bytes +
                             * (replicas - 1) * replica_bytes */
} StagePlan;

typedef struct {
    int64_t slot_bytes;
    int forward_slots, gradient_slots, test_slots;
} RegisterPlan;

typedef struct {
    const Sched *sched;
    const TargetDef *target;
    StagePlan *stage;
    RegisterPlan *reg;     /* per edge of the pipe */
    ParamPlan *param;      /* per Graph.param */
    bool *again;           /* per node: in a stage that recomputes, its forward is done again before a backward */
    int64_t static_bytes;  /* all stages */
    int64_t traffic_bytes; /* over all registers per minibatch, forward and gradient, as stored (slot bytes) */
} Plan;

/* Where a stage finds a value during training. */
typedef enum { PLACE_NONE, PLACE_BUFFER, PLACE_REGISTER_IN, PLACE_REGISTER_OUT } PlaceKind;
typedef struct {
    PlaceKind kind;
    int index; /* of the buffer in the stage's list, or of the edge */
} Place;
int buffer_order(const void *x, const void *y); /* of a stage's buffers, for qsort and bsearch: by kind and value */
bool buffer_is_transient(BufferKind kind);      /* it shares a transient area */
/* Transients that share memory in time: of a training step, of a test pass; where the stage is in halves, of its
 * forwards apart from the rest of a training step. */
typedef enum { AREA_NONE, AREA_TRAIN, AREA_TEST, AREA_FORWARD } PlanArea;
PlanArea buffer_area(BufferKind kind, bool halves);
Place plan_value(const Plan *plan, int stage, NodeId value);
Place plan_test_value(const Plan *plan, int stage, NodeId value);
const Buffer *plan_buffer(const Plan *plan, int stage, BufferKind kind, NodeId value); /* NULL: none */

/* Bytes of one version as read, of the gradient with its sum over microbatches, of all that is as large as the weights:
 * versions, those read in their place, masters, gradients, states. */
int64_t version_bytes(const StagePlan *stage);
int64_t gradient_bytes(const StagePlan *stage);
int64_t weight_bytes(const StagePlan *stage);
int64_t plan_worker_bytes(const StagePlan *stage); /* of the first of its replicas, which has the most; or of its
                                                     * backward half */

Plan *plan_memory(Arena *arena, Diags *diags, const Sched *sched, const TargetDef *target);
void plan_check(const Plan *plan); /* no two live transients overlap, all aligned, sums agree */
void plan_dump(const Plan *plan, Text *out);

#endif
