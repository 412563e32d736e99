/* verbs.h: what the op verbs of target ref share. Private to runtime/ref.
 *
 * All layouts are plain. A verb checks that each pointer is a slot of the areas of its tensor, then calls one kernel.
 */
#ifndef PN_REF_VERBS_H
#define PN_REF_VERBS_H

#include "ref/kernels.h"
#include "rt.h"

struct pn_layout {
    const char *name;
};

/* One initialised operation: the stage, the definition it was made from, and what the kernel wants to know. */
struct pn_op {
    pn_stage *stage;
    const char *name;
    union {
        struct {
            pn_conv_def def;
            ref_conv shape;
        } conv;
        struct {
            pn_linear_def def;
            int64_t batch, in, out;
        } linear;
        struct {
            pn_pool_def def;
            ref_pool shape;
        } pool;
        struct {
            pn_batch_norm_def def;
            ref_channels shape;
        } norm;
        struct {
            pn_lrn_def def;
            ref_lrn shape;
        } lrn;
        pn_pointwise_def pointwise;
        pn_add_def add;
        struct {
            pn_concat_def def;
            int64_t inner[PN_MAX_CONCAT], offset[PN_MAX_CONCAT], outer;
        } concat;
        pn_flatten_def flatten;
        struct {
            pn_shortcut_def def;
            ref_shortcut shape;
        } shortcut;
        pn_dropout_def dropout;
        struct {
            pn_loss_def def;
            int64_t batch, size;
            bool labels;
        } loss;
    };
};

/* Before the first step only: a new op of `stage`; reads and writes check that the areas of a tensor hold a minibatch;
 * writes gives the tensor its (plain) layout. */
pn_op *ref_op_new(pn_stage *stage, const char *name);
void ref_op_reads(pn_op *op, const pn_tensor *x);
void ref_op_writes(pn_op *op, pn_tensor *y);

typedef enum { REF_VALUE, REF_GRADIENT } ref_role;
/* p must be a slot of the value or test area (REF_VALUE), or of the gradient or partial area (REF_GRADIENT) of t. */
void ref_op_check(const pn_op *op, const pn_tensor *t, ref_role role, const void *p);

#endif
