/* common.h: what the files of this folder share: checks of shapes, the pieces of the cost formulas, scratch for the
 * evaluator's backward (kernels write, the evaluator adds), and the emit helpers. Private to compiler/ops. */
#ifndef PNETC_OPS_COMMON_H
#define PNETC_OPS_COMMON_H

#include "emit.h"
#include "ref/kernels.h"

enum {
    MAX_ELEMENTS_LOG2 = 40
}; /* of a value of a minibatch, or of a parameter: all products of sizes stay far from 2^63 */

/* ---- shapes ---- */
/* Input `in` must be an f32 tensor of `rank`, or of any rank from 1 when rank is 0: else P0303. */
bool shape_need(ShapeContext *c, int in, int rank);
/* Sets node->shape to f32 of these dimensions; P0306 when a minibatch of it is too large. */
bool shape_set(ShapeContext *c, int rank, const int64_t *dim);
/* shape_param, after a check of its size: P0306. */
bool shape_weight(ShapeContext *c, const char *suffix, Init init, int64_t fan_in, int64_t fan_out, int rank,
                  const int64_t *dim);

/* ---- cost ---- */
const Shape *graph_in_shape(const Graph *graph, const Node *node, int i);
double count_in(const Graph *graph, const Node *node, int i); /* elements per sample */
double count_out(const Node *node);
/* Cost of an op that moves each element once and does `forward` and `backward` FLOPs per output element. */
Cost cost_map(const Graph *graph, const Node *node, double forward, double backward);

/* ---- evaluator ---- */
const Shape *eval_shape(const EvalContext *c, int i); /* of input i */
/* n floats for a kernel to write, then added to `to` (exact for the first contribution: 0 + x) and released. */
float *eval_scratch(int64_t n);
void eval_add(float *to, float *scratch, int64_t n);

/* ---- emission ---- */
NodeId node_id(Emit *e, const Node *node);
const char *emit_tensor_in(Emit *e, const Node *node, int i);
const char *emit_tensor_out(Emit *e, const Node *node);
/* ", .relu = true" for a field of a definition that is set; "": false is what C gives it. */
const char *emit_flag(Emit *e, const char *field, bool value);
/* A real attribute in C: the shortest text that reads back as the same number. */
const char *attr_text(Arena *arena, double number);
/* Behind a fused relu: masks the arriving gradient in place. */
void emit_relu_mask(Emit *e, const Node *node);
const char *remark_relu(const Node *node); /* "relu fused"; NULL: none */

/* ---- kernels (target cuda) ---- */
/* Elements of a minibatch of the output, of input i. */
int64_t kernel_items(Emit *e, const Node *node);
int64_t kernel_items_in(Emit *e, const Node *node, int i);
/* "Rows<rows, channels, ...>": a value of a minibatch as rows of channels, and how sums over the rows are cut in
 * chunks; *blocks: of a kernel that sums the chunks. The totals of all channels need kernel_total_blocks. */
const char *kernel_rows(Emit *e, const Shape *shape, int64_t *blocks);
int64_t kernel_total_blocks(const Shape *shape);
/* "CHANNELS, HEIGHT, WIDTH" of a value; a flat one has a plane of one element. */
const char *kernel_plane(Emit *e, const Shape *shape);
/* A float in the text of a kernel: "1e-05f". */
const char *kernel_number(Arena *arena, double number);
/* Behind conv and linear: bias and relu, and the gradient of the bias. */
void kernel_bias(Emit *e, const Node *node, bool bias);

#endif
