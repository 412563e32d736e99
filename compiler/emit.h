/* emit.h: Plan -> the files of a program. Emission takes a const Plan and can change nothing.
 *
 * Every generated line comes through here: one emitter, no op prints to a FILE. Same input, same bytes: no clock, path,
 * host, pointer or hash order. */
#ifndef PNETC_EMIT_H
#define PNETC_EMIT_H

#include "plan.h"

typedef struct {
    const char *name; /* "stage0.c" */
    const char *text;
    size_t length;
} File;
/* On a target with memory of its own: what a stage launches for a minibatch (or microbatch), and for an update. */
typedef struct {
    int kernels, library, copies; /* of this program; of cuDNN; of memory */
    int fusible;                  /* kernels that are not launched where the library does their work, too */
} Launches;
typedef struct {
    Launches forward, backward, update;
    int64_t bytes; /* beside its buffers, without the data set and what the library wants */
} DeviceStage;
typedef struct {
    File *file;
    int count;
    const DeviceStage *on_device; /* per stage; NULL: the target has no memory of its own */
} Files;

/* <net>.h, stage<k>.c, <net>.c, Makefile, plan.txt. Ops without code for the target are errors (P0601). */
Files emit(Arena *arena, Diags *diags, const Plan *plan);

void device_dump(const Plan *plan, const DeviceStage *stage, Text *out); /* the end of a memory map */

/* ---- for the emit hooks of ops; each returns text in the arena, valid for the current function ----
 *
 * In every function `stage` is the pn_stage *, and in forward, backward and test `n` is the number of the minibatch (or
 * test batch). A backward hook writes the gradients of its inputs in ascending order, each in one call; where a
 * gradient is a partial, the emitter adds it behind that call. */
const char *emit_op(Emit *e, const Node *node);                 /* "op.conv1": the pn_op *                */
const char *emit_tensor(Emit *e, NodeId value);                 /* "&tensor.relu1"                        */
const char *emit_param(Emit *e, const Node *node, int i);       /* "&param[CONV1_WEIGHT]"                 */
const char *emit_in(Emit *e, const Node *node, int i);          /* "image[k]", "pool1", "t + test_image"  */
const char *emit_out(Emit *e, const Node *node);                /* "relu1[k]"                             */
const char *emit_aux(Emit *e, const Node *node);                /* "pool1_argmax[k]"; "NULL" in a test pass */
const char *emit_aux_area(Emit *e, const Node *node);           /* "PN_RING(pool1_argmax)"; "{NULL, 0, 0}": no aux */
const char *emit_weight(Emit *e, const Node *node, int i);      /* "w + conv1_weight"                     */
const char *emit_running(Emit *e, const Node *node, int i);     /* "running + norm1_running_mean"        */
const char *emit_gradient_out(Emit *e, const Node *node);       /* "t + g_relu1": arriving gradient       */
const char *emit_gradient_in(Emit *e, const Node *node, int i); /* "g_pool1", a partial; NULL: not wanted */
const char *emit_gradient_weight(Emit *e, const Node *node, int i); /* "dw + conv1_weight"                    */
/* One line of the current function, ending in a comment with the source line of `node` and `remark` (NULL: none):
 *     pn_conv_forward(op.conv1, image[k], ...);        lenet5.pnet:6, relu fused     */
void emit_call(Emit *e, const Node *node, const char *remark, const char *format, ...) PRINTF_LIKE(4, 5);
void emit_line(Emit *e, const char *format, ...) PRINTF_LIKE(2, 3); /* without a comment */
/* A static function of the stage file, before its first use; `text` is whole lines. Same name twice is printed once. */
void emit_function(Emit *e, const char *name, const char *text);
Arena *emit_arena(Emit *e);
const Graph *emit_graph(Emit *e);
bool emit_on_device(const Emit *e);
/* For the kernels hook: what the verbs of `node` launch in `pass`: a kernel with these parameters, its body a statement
 * over a template of runtime/cuda/kernels.cuh. The same parameters and body are one kernel. */
void emit_kernel(Emit *e, const Node *node, const char *pass, int64_t blocks, const char *parameters, const char *body);
int64_t emit_blocks(int64_t items); /* with a thread an item */
/* A device function of kernels.cu, before its first use; the same name twice is printed once. */
void emit_device_function(Emit *e, const char *name, const char *text);
bool emit_testing(const Emit *e); /* printing the evaluate function */

/* ---- write.c: files to a folder, atomically each, only when they differ; all or nothing on error ---- */
bool write_files(Arena *arena, Diags *diags, const char *folder, const Files *files);
/* One file, replaced atomically (fmt --write). */
bool write_text(Arena *arena, Diags *diags, const char *path, const char *text, size_t length);

#endif
