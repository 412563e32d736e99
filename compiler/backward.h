/* backward.h: the backward pass of a fused graph, as data.
 *
 * Steps run in reverse program order, so every gradient sum has one order, whatever the cuts: the last consumer writes,
 * earlier ones add. */
#ifndef PNETC_BACKWARD_H
#define PNETC_BACKWARD_H

#include "op.h"

typedef enum { GRADIENT_NONE, GRADIENT_WRITE, GRADIENT_ADD } GradientMode;
typedef struct {
    NodeId node;
    GradientMode *in; /* per input of the node */
} BackwardStep;
typedef struct {
    const Graph *graph;
    bool *wants;     /* per node: the gradient of its value is computed (a parameter lies at or before it) */
    unsigned *needs; /* per node: NEEDS_* its backward really reads (0 where no backward runs); relu fused: NEEDS_OUT;
                      * a chain: NEEDS_IN0 only, recomputed */
    BackwardStep *step; /* only nodes with a backward */
    int nsteps;
} Backward;

Backward *backward(Arena *arena, const Graph *graph);
void backward_check(const Backward *backward);
#endif
