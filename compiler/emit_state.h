/* emit_state.h: what the files of emission share: identifiers, the present stage as names, the function being printed.
 * Private to emit*.c. */
#ifndef PNETC_EMIT_STATE_H
#define PNETC_EMIT_STATE_H

#include "emit.h"

/* ---- emit_names.c ---- */
/* Identifiers taken in one scope. A scope sees its outer scope's names as taken, too. */
typedef struct Names Names;
Names *names_new(Arena *arena, const Names *outer);
/* `wanted`, or wanted_2, wanted_3, ... where that is taken; taken from now on. */
const char *names_take(Names *names, const char *wanted);

const char *quoted(Arena *arena, const char *text);       /* a C string literal */
const char *comment_safe(Arena *arena, const char *text); /* text that cannot end or open a comment, on one line */
const char *upper(Arena *arena, const char *text);
const char *number_text(Arena *arena, double number); /* shortest that reads back exactly */
/* Words joined by `between`, broken before column 118; each further line begins with `indent`. `column`: where it
 * begins. */
void text_wrapped(Text *out, const char *const *word, int count, const char *between, const char *indent, int column);
const char *padded(Arena *arena, const char *text, int width);

/* ---- the present stage ---- */
/* A value the stage reads, writes or passes on. */
typedef struct {
    NodeId id;
    Place place, test_place;
    const Edge *in, *out;            /* crossing the cut before, after this stage; NULL: does not */
    int in_index, out_index;         /* of the edges */
    const Buffer *saved, *transient; /* BUFFER_SAVED, BUFFER_VALUE */
    const Buffer *again, *aux, *gradient, *partial, *test; /* gradient: BUFFER_GRADIENT or BUFFER_KEPT */
    const char *name;          /* array, offset in t, or local pointer; also the member of `tensor` */
    const char *gradient_name; /* offset in t, or local pointer */
    const char *partial_name, *test_name, *aux_name, *again_name;
    const char *op_name; /* member of `op`, when the stage computes the value */
    NodeId last_reader;  /* the last node of the stage that reads it in forward; -1: none */
    NodeId
        first_contributor; /* the first node of the stage that adds to its gradient: the last in backward; -1: none */
    bool touched, taken, arrived, roomed;
} StageValue;

typedef enum { PART_INIT, PART_FORWARD, PART_AGAIN, PART_BACKWARD, PART_WEIGHTS, PART_TEST } Part;
typedef struct {
    const char *code, *comment; /* comment NULL: none */
} Line;

struct Emit {
    Arena *arena;
    Diags *diags;
    const Plan *plan;
    const Sched *sched;
    const Pipe *pipe;
    const Graph *graph;         /* batch: of a minibatch; in stage files, of a replica's slice */
    bool device;                /* buffers are places in device memory: pointers, not arrays */
    const char *net;            /* c_name of the network: prefix of what its files share */
    const char *source;         /* comment-safe name of the source file */
    const char **line;          /* per node: "lenet5.pnet:6" */
    const BackwardStep **step;  /* per node; NULL: no backward */
    Names *shared;              /* identifiers of <net>.h */
    const char **register_name; /* per edge: "pool1_0to1" */
    const char **input_name;    /* per node, inputs only: "INPUT_IMAGE" */

    int stage, replicas; /* the present stage, its replicas */
    bool halves;         /* it is in halves, which share all but operations and transients ... */
    bool forward_half;   /* ... and init is printed for the forward half */
    Names *names, *op_names;
    StageValue *value;                      /* per node */
    VEC(NodeId) touched;                    /* ascending */
    const char **offset_name, **index_name; /* per parameter: "conv1_weight", "CONV1_WEIGHT" */
    Text functions;
    VEC(const char *) function;

    Part part;
    VEC(Line) lines;
    struct Kernels *kernels; /* of the program: emit_kernels.c */
    DeviceStage *on_device;  /* per stage: emit_launches.c */
    VEC(NodeId) partials;    /* values whose partial gradient the node being printed was given */
};

/* emit_view.c: fills the fields of the present stage. */
void stage_view(Emit *e, int stage);
/* emit_names.c: "stage1", "stage1_replica1"; "lenet5_stage1", where there are several workers "lenet5_stage1_0" or
 * "lenet5_stage1_forward". */
const char *stage_file(Emit *e, int stage, int replica);
const char *stage_symbol(Emit *e, int stage, int worker);

/* emit_services.c: besides the hooks of emit.h */
bool on_forward_half(const Emit *e);             /* of the function being printed */
const char *value_ref(Emit *e, NodeId value);    /* as emit_in and emit_out */
const char *gradient_ref(Emit *e, NodeId value); /* where the gradient of a value is summed */
const char *values_text(Emit *e, NodeId value);  /* "f32[100,6,14,14]", "bf16[...]" */
/* What the slots of a value are arrays of, and how many of them. */
const char *value_type(const Emit *e, NodeId value);
int64_t value_items(const Emit *e, NodeId value, int64_t bytes);
const char *element_field(const Emit *e, NodeId value); /* " .element = PN_BF16,"; "" where it is f32 or a label */
/* The same of the transient area. */
const char *transient_type(const Emit *e);
int64_t transient_items(const Emit *e, int64_t bytes);
const char *slices_name(const Emit *e); /* "minibatches", or "microbatches" where they are sliced */
/* A line with a comment that is not a place in the source. */
void emit_commented(Emit *e, const char *comment, const char *format, ...) PRINTF_LIKE(3, 4);
bool code_mentions(const char *code, const char *word); /* the identifier occurs in a line of code */
bool emit_mentions(const Emit *e, const char *word);    /* ... in the lines of the function so far */

/* emit_tensors.c: `tensor`, the values of the present stage, and `op`, its operations. */
void emit_tensors(Emit *e, Text *out);

/* emit_body.c: init, forward, backward and test of the present stage. */
void emit_functions(Emit *e, Text *out);

/* emit_place.c: for a device: the function that gives the buffers of a stage their places. */
void emit_place(Emit *e, Text *out);

/* emit_kernels.c: for a device: kernels.cu, and the table of its kernels for <net>.c. */
void emit_kernels(Emit *e, Text *file);
void emit_kernel_table(Emit *e, Text *out);
int emit_kernel_uses(const Emit *e, const char *op, const char *pass); /* kernels that it launches there: 0 or 1 */
int64_t emit_sum_blocks(const Emit *e, const char *op);                /* chunks of its sums over rows; 0: none */

/* emit_launches.c: for a device; after emit_kernels. */
void emit_count(Emit *e, const char *const *code, int count); /* the lines of a function of the present stage */
void emit_launches(Emit *e);                                  /* behind all stages: the rest of on_device */

/* emit_head.c: the comment at the top of a stage file. */
void emit_stage_head(Emit *e, Text *out);

/* emit_descriptor.c: the pn_stage_def at its end. */
void emit_descriptor(Emit *e, Text *out);

/* emit_stage.c, emit_program.c: whole files. */
void emit_stage_file(Emit *e, Text *out);
void emit_replica_file(Emit *e, int replica, Text *out); /* compiles the stage file once more */
void emit_header_file(Emit *e, Text *out);
void emit_program_file(Emit *e, Text *out);
void emit_makefile(Emit *e, Text *out);

#endif
