/* op.h: all there is to know about a layer type. One const OpDef at the bottom of its own file in ops/, one line in
 * ops/ops.def, one test in tests/ops/. */
#ifndef PNETC_OP_H
#define PNETC_OP_H

#include "graph.h"

typedef struct Emit Emit; /* emit.h; opaque here: no upward include */

typedef enum { ATTR_INT, ATTR_REAL, ATTR_BOOL, ATTR_INIT } AttrKind;
typedef struct {
    const char *name, *doc;
    AttrKind kind;
    bool required;    /* required attributes may also be given by position, in order */
    double fallback;  /* default of INT, REAL, BOOL */
    double low, high; /* inclusive bounds of INT, REAL */
    Init init;        /* default of INIT */
} AttrDef;

/* What the backward of an op reads besides the gradient of its output, its weights and its aux. */
enum { NEEDS_IN0 = 1, NEEDS_IN1 = 2, NEEDS_OUT = 4, NEEDS_AUX = 8 };

enum {
    OP_LOSS = 1,         /* the last input is the target (class label or tensor); the output is the scalar loss */
    OP_WEIGHTED = 2,     /* counts as a layer of the paper's placement vector (ppv) */
    OP_POINTWISE = 4,    /* unary, expr and derivative given; may join a chain */
    OP_RELU_FUSES = 8,   /* a relu behind it may become node->relu */
    OP_WEIGHT_PART = 32, /* its backward splits: hook `weights` */
    OP_KEEPS_ZERO = 16,  /* pointwise with f(0) = 0: may run over the zero lanes of a padded layout */
};

/* Work of one node for one sample. FLOP counts a multiply-add as 2. Bytes are f32 traffic with each operand read once
 * and each result written once; weights and their gradients are those of a minibatch (cost.h). (DESIGN 6; OptCNN's
 * per-layer cost) */
typedef struct {
    double macs;                                     /* forward multiply-adds, as papers quote */
    double forward, backward_data, backward_weights; /* FLOPs */
    double forward_bytes, backward_bytes;
} Cost;

/* What shape() sees. It reads node->attr and the input shapes, fills node->shape, declares parameters. */
typedef struct {
    Arena *arena;
    Diags *diags;
    Graph *graph;
    Node *node;
} ShapeContext;
/* For shape(): an error at the call (attr < 0) or at an attribute, with a note at the producer of input `in` ("pool1 is
 * f32[6,14,14]") unless in < 0. Always returns false. */
bool shape_error(ShapeContext *c, Code code, int attr, int in, const char *format, ...) PRINTF_LIKE(5, 6);
const Shape *shape_in(const ShapeContext *c, int i);
/* Declares a parameter named node.name + "." + suffix. */
void shape_param(ShapeContext *c, const char *suffix, Init init, int64_t fan_in, int64_t fan_out, int rank,
                 const int64_t *dim);
/* Declares a running statistic of `count` numbers, `initial` at first: Param.running. */
void shape_running(ShapeContext *c, const char *suffix, double initial, int64_t count);

/* The naive evaluator's view: plain layouts, batch leading, f32; labels as int32 in `in`. Backward ADDS into grad_in
 * and grad_param (the caller zeroed them); grad_in[i] NULL: not wanted. */
typedef struct {
    const Graph *graph;
    const Node *node;
    int64_t batch;
    bool training;
    uint64_t seed;     /* of the run: dropout */
    int64_t minibatch; /* number: dropout */
    const void **in;
    float *out;       /* a loss writes the mean loss to out[0] */
    int64_t *correct; /* loss, may be NULL: number of right top-1 answers */
    void *aux;        /* op_aux_bytes, at the ref layout */
    const float **param;
    const float *grad_out;
    float **grad_in, **grad_param;
} EvalContext;

/* Text of the generated code. Each hook prints lines through emit.h. NULL evaluate: the forward hook serves, with aux
 * printed as NULL. */
typedef struct {
    void (*init)(Emit *e, const Node *node);
    void (*forward)(Emit *e, const Node *node);
    void (*backward)(Emit *e, const Node *node);
    void (*weights)(Emit *e,
                    const Node *node); /* OP_WEIGHT_PART: gradients of all parameters, from what the forward and
                                                 * the backward of the same microbatch have left; NULL: backward does
                                                 * it */
    void (*evaluate)(Emit *e, const Node *node);
    void (*kernels)(Emit *e,
                    const Node *node); /* on targets with kernels of their own: emit_kernel for each; NULL: none */
} OpEmit;

typedef enum {
#define TARGET(name) TARGET_##name,
#include "targets/targets.def"
#undef TARGET
    TARGET_COUNT
} TargetId;

struct OpDef {
    const char *name, *doc; /* doc: one line */
    int min_in, max_in;     /* tensor inputs, positional, before attributes */
    AttrDef attr[MAX_ATTRS];
    int nattrs;
    unsigned flags, needs;
    /* pointwise: C expressions of one value. expr in x; derivative in y (the result) and g (the gradient); both may
     * read p, the value of the op's only attribute */
    const char *expr, *derivative;
    bool (*shape)(ShapeContext *c);
    Cost (*cost)(const Graph *graph, const Node *node);
    int64_t (*aux)(const Graph *graph, const Node *node); /* bytes per sample saved for backward; NULL: none */
    bool aux_of_minibatch;                                /* aux counts bytes of a whole minibatch */
    int aux_channels;                /* aux is an activation-shaped map: padded as its output (cpu) */
    const char *aux_name, *aux_type; /* in generated code: "argmax", "mask", "probability"; C type of its elements.
                                      * NULL: "aux", uint8_t */
    void (*eval)(const EvalContext *c);
    void (*eval_backward)(const EvalContext *c);
    const OpEmit *emit[TARGET_COUNT]; /* NULL: this target lacks the op: P0601 where it is used */
};

extern const OpDef *const op_table[];
extern const int op_count;
const OpDef *op_find(const char *name);                     /* NULL: unknown */
const char *op_nearest(const char *name);                   /* for hints; NULL: nothing near */
int64_t op_aux_bytes(const Graph *graph, const Node *node); /* of a minibatch; 0: none; INT64_MAX: too large */
const AttrDef *op_attr(const OpDef *op, const char *name);  /* NULL: unknown */
int64_t attr_int(const Node *node, const char *name);       /* ICE on unknown names */
double attr_real(const Node *node, const char *name);
Init attr_init(const Node *node, const char *name);
void init_print(Text *out, const Init *init);                /* as the language writes it */
void attr_print(Text *out, AttrKind kind, const Attr *attr); /* as the language writes it: "5", "true", "he" */
void op_list(Text *out); /* pnetc list ops: a table of name, inputs, attributes with defaults, doc */

/* eval.c: the graph interpreter over op->eval: the numerical oracle.
 * Values and gradients of all nodes of one minibatch; arrays owned by the Eval. */
typedef struct {
    const Graph *graph;
    float **value;    /* per node; inputs are set by the caller (class labels as int32) */
    float **gradient; /* per node */
    void **aux;
    float **param; /* per Graph.param; set by the caller */
    float **param_gradient;
    int64_t correct;
} Eval;
Eval *eval_new(Arena *arena, const Graph *graph);
void eval_forward(Eval *eval, bool training, uint64_t seed, int64_t minibatch);
void eval_backward(Eval *eval, uint64_t seed, int64_t minibatch); /* zeroes, then fills all gradients */
/* Nodes [first, last) alone. A backward begins once, then goes over all nodes, the last first. */
void eval_forward_nodes(Eval *eval, NodeId first, NodeId last, bool training, uint64_t seed, int64_t minibatch);
void eval_backward_begin(Eval *eval);
void eval_backward_nodes(Eval *eval, NodeId first, NodeId last, uint64_t seed, int64_t minibatch);

#endif
