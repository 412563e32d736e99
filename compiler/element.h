/* element.h: which type the elements of every buffer have: the one place that decides it. With train.precision = bf16:
 *
 *     bf16   values, their gradients, registers; weights of rank 2 and more as forward and backward read them, and
 *            their gradients
 *     f32    the masters of these weights, which updates move; biases, scale and shift of norms, with their gradients;
 *            the optimiser's state; sums of gradients over microbatches; running statistics; losses
 *     i32    labels; an aux is what its op says (op.h)
 *
 * else all of it is f32. Targets with `bf16` (target.h) can have that; they compute in f32. */
#ifndef PNETC_ELEMENT_H
#define PNETC_ELEMENT_H

#include "graph.h"

typedef enum { ELEMENT_F32, ELEMENT_BF16, ELEMENT_I32 } Element;

Element element_of_values(const Graph *graph);              /* of all but labels */
Element element_of_value(const Graph *graph, NodeId value); /* its gradient, too */
Element element_of_param(const Graph *graph, int param);    /* as forward and backward read it; its gradient, too */
int64_t element_bytes(Element element);
const char *element_c(Element element); /* "float", "pn_bf16", "int32_t" */
/* "bf16[100,6,28,28]", "class[10]": of a batch. */
const char *element_shape_text(Arena *arena, const Graph *graph, NodeId value);

#endif
