/* target.h: what the compiler must know of a target: how much room its layouts take, and how to build for it.
 * One const TargetDef in targets/<name>.c, one line in targets/targets.def. */
#ifndef PNETC_TARGET_H
#define PNETC_TARGET_H

#include "element.h"
#include "op.h"
#include "settings.h"

/* Sizes stop here instead of overflowing; the plan refuses what reaches it. */
#define TARGET_TOO_LARGE (INT64_C(1) << 56)

typedef struct TargetDef {
    TargetId id;
    const char *name, *doc;
    const char *library; /* "pn_cpu": the runtime library of its kernels */
    const char *libs;    /* what that needs from the system when linked: "-ldnnl -lgomp"; ""; NULL: the CUDA toolkit */
    bool threads;        /* kernels can share their work among threads of a stage */
    bool bf16;           /* values and weights can be stored as bf16 (element.h) */
    bool device;         /* buffers are places in memory of a device, and kernels.cu is part of the program */
    /* Bytes of one minibatch, in the largest layout the runtime may choose. */
    int64_t (*value_bytes)(const Graph *graph, NodeId value);
    int64_t (*aux_bytes)(const Graph *graph, NodeId node);
    int64_t (*param_floats)(const Graph *graph, int param);
    /* Tiles of 4x4 outputs of one minibatch, those that only fill up its products too, where the runtime does this node
     * by Winograd's F(4x4, 3x3) on a machine that has it; 0: it does not. NULL: it never does. */
    int64_t (*winograd_tiles)(const Graph *graph, NodeId node);
} TargetDef;

extern const TargetDef *const target_table[TARGET_COUNT];
const TargetDef *target_find(const char *name); /* NULL: unknown */
void target_list(Text *out);                    /* pnetc list targets */
/* Reports the settings that the target cannot keep; false: there are some. */
bool target_check(const TargetDef *target, Diags *diags, const Settings *settings);

/* For the targets. Product of sizes, none negative, up to TARGET_TOO_LARGE. */
int64_t size_product(const int64_t *size, int count);
/* Exact sizes without any padding: of `ref`, and of what other targets keep plain. */
int64_t plain_value_bytes(const Graph *graph, NodeId value);
int64_t plain_aux_bytes(const Graph *graph, NodeId node);

#endif
