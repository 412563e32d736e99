/* cpu.h: private to the oneDNN kernels.
 *
 * Layouts. Each pn_tensor gets one layout, for its value, gradient, partial and test copy: chosen by the op that writes
 * it (what the library likes best, if the planned areas hold it), plain otherwise. Padded lanes hold zeros, always. A
 * register carries its producer's layout to the next stage (pn_register). Choices depend on shapes only, never on the
 * cut.
 *
 * Banks and calls. Nothing is made in the loop: a bank holds a dnnl_memory for every slot a pointer may name, and a
 * call is a primitive with its ports. A port whose bank has another layout than the primitive wants goes through a copy
 * in the stage's scratch: a reorder before (reads) or after (writes). Calls without a primitive give hand-written
 * kernels the same ports; a kernel may also stand in a primitive's place. Scratch holds nothing between calls. */
#ifndef PN_CPU_CPU_H
#define PN_CPU_CPU_H

#include "dnn.h"
#include "maxpool16.h"
#include "rt.h"
#include "team.h"
#include "winograd.h"

typedef struct cpu_move cpu_move;
struct pn_layout {
    dnn_layout stored, plain; /* of the same logical dimensions */
    int64_t bytes, floats;    /* of stored */
    bool is_plain, padded;
    int threads;                     /* of the run */
    cpu_move *to_plain, *from_plain; /* of a parameter; NULL: it is plain */
};

/* stage->target */
typedef struct cpu_call cpu_call;
typedef struct cpu_choice cpu_choice;
typedef struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    cpu_call *calls;     /* all of the stage: their scratch is bound when it exists */
    cpu_choice *choices; /* those that are to be measured, the last one first */
    float *room;         /* while they are measured: memory for the ports of one call */
    int64_t room_bytes;
} cpu_stage;
/* Makes the state at the first call; every init begins with it. */
cpu_stage *cpu_open(pn_stage *stage);

/* ---- layout.c ---- */
/* Of a tensor that is read: what its writer chose, here or in the stage that gives the register; plain for
 * inputs. */
const pn_layout *cpu_layout(pn_stage *stage, pn_tensor *tensor);
/* Of a tensor that is written: `wanted` if the areas hold it, else plain. */
const pn_layout *cpu_choose(pn_stage *stage, pn_tensor *tensor, dnn_layout wanted);
/* The same for a parameter, whose logical dimensions the op knows (groups split, features as channels and rows). */
const pn_layout *cpu_choose_param(pn_stage *stage, pn_param *param, int rank, const int64_t *dim, dnn_layout wanted);
/* Makes what pn_param_to_plain and pn_param_from_plain need of a layout, for one thread at a time. */
void cpu_make_moves(pn_stage *stage, pn_layout *layout);
int64_t cpu_elements(const pn_tensor *tensor);

/* Threads share the work by team_split: the library's own primitives, and the hand-written loops by parts of at least
 * these floats, by images or by planes. Losses (a batch of a few classes), vectors under batch normalisation and copies
 * without a change of layout have one thread. */
enum { CPU_FLOATS = 4096 };

/* ---- call.c ---- */
enum { CPU_RANGES = 5, CPU_PORTS = 5 };
typedef struct {
    const char *what; /* "x": for messages */
    dnn_layout layout;
    int64_t bytes;
    int64_t slice; /* bytes of the whole tensor: of a replica's slice of a register */
    struct {
        char *base;
        int64_t stride;
        int count;
        dnnl_memory_t *memory; /* [count] */
    } range[CPU_RANGES];
    int nranges;
} cpu_bank;
void cpu_bank_add(cpu_bank *bank, pn_stage *stage, const pn_area *area);
/* All areas of a tensor, seen in `layout`. */
void cpu_bank_tensor(cpu_bank *bank, pn_stage *stage, const char *what, const pn_tensor *tensor, dnn_layout layout);
/* All versions of a parameter, what is read in their place, and its gradient. */
void cpu_bank_param(cpu_bank *bank, pn_stage *stage, const char *what, const pn_param *param, dnn_layout layout);

typedef struct {
    dnnl_primitive_desc_t descriptor; /* owns the layouts it was asked for */
    dnnl_primitive_t run;
    dnn_layout scratch;
    dnnl_memory_t scratchpad; /* NULL: needs none */
} cpu_primitive;
typedef struct {
    const cpu_bank *bank;
    int argument; /* DNNL_ARG_... */
    bool writes;
    cpu_primitive reorder; /* run NULL: the slot itself */
    dnn_layout wants;
    int64_t offset; /* of the copy in the scratch */
    void *at;
    dnnl_memory_t copy;
} cpu_port;
/* at: where to read and write, by port; room: scratch. */
typedef void cpu_kernel(const cpu_call *call, void *const *at, void *room);
struct cpu_call {
    pn_stage *stage;
    const char *name;
    const char *pass; /* of the operations that have algorithms; NULL: of none of them */
    pn_algorithm algorithm;
    cpu_primitive main; /* run NULL: none */
    cpu_kernel *kernel; /* NULL: none */
    const void *with;   /* the kernel's own */
    cpu_port port[CPU_PORTS];
    int nports;
    int64_t copies; /* bytes of all ports' copies; the scratchpad follows */
    bool transfers; /* from port 0 to port 1: main is a reorder */
    cpu_call *next;
};
void cpu_call_open(cpu_call *call, pn_stage *stage, const char *name);
void cpu_call_port(cpu_call *call, const cpu_bank *bank, int argument, dnn_layout wants, bool writes);
void cpu_call_close(cpu_call *call,
                    dnnl_primitive_desc_t descriptor); /* NULL: a hand-written kernel works on the ports */
void cpu_call_close_kernel(cpu_call *call, cpu_kernel *kernel, const void *with, int64_t room_bytes);
static inline bool cpu_call_runs(const cpu_call *call)
{
    return call->main.run || call->kernel;
}
/* Pointers in the order of the ports. */
void cpu_run(const cpu_call *call, const void *const *pointer);
/* The same on given memory objects, in the banks' layouts. */
void cpu_run_on(const cpu_call *call, const dnnl_memory_t *slot);
/* For hand-written kernels: where to read and write, `at` per port; cpu_leave moves what was written to its slot. A
 * NULL pointer is passed over. */
void cpu_enter(const cpu_call *call, const void *const *pointer, void **at);
void cpu_leave(const cpu_call *call, const void *const *pointer);

/* A transfer between two banks of the same logical dimensions: a copy or one reorder. */
void cpu_transfer_init(cpu_call *call, pn_stage *stage, const char *name, const cpu_bank *from, const cpu_bank *to);
void cpu_transfer(const cpu_call *call, const float *from, float *to);

/* ---- choose.c: passes with two algorithms ---- */
enum { CPU_ROUNDS = 9 };
struct cpu_choice {
    const char *op, *pass;
    cpu_call *call;    /* the op's: direct until it is settled */
    cpu_call winograd; /* runs nothing: there is none */
    int rounds;        /* done, the first of them unmeasured */
    double seconds[PN_ALGORITHMS][CPU_ROUNDS];
    const cpu_choice *twin; /* the same pass on the same shapes: measured once, chosen alike; NULL: none before it */
    cpu_choice *next;
};
/* A choice to be measured for `call`; its winograd is to be opened by the caller if there is one. */
cpu_choice *cpu_choice_new(cpu_call *call, const char *pass);

/* ---- conv_winograd.c: the passes of a convolution that winograd.h has kernels for ---- */
/* False: this one has other layouts or sizes than they are for. op's x, y and w have their layouts. */
bool cpu_winograd_of(winograd16 *p, const pn_conv_def *def, const pn_op *op);
/* Closes a call whose ports are those of the pass; p must live as long. */
void cpu_winograd_close(cpu_call *call, const winograd16 *p, dnn_pass pass);

/* Warns, once for an op and pass, of an implementation that nobody would choose. */
bool cpu_is_slow(dnnl_primitive_desc_t descriptor);
void cpu_warn_if_slow(const char *name, const char *pass, dnnl_primitive_desc_t descriptor);

/* ---- an initialised operation: which fields are used is each file's business ---- */
struct pn_op {
    pn_stage *stage;
    const char *name;
    union {
        pn_conv_def conv;
        pn_linear_def linear;
        pn_pool_def pool;
        pn_batch_norm_def batch_norm;
        pn_lrn_def lrn;
        pn_pointwise_def pointwise;
        pn_add_def add;
        pn_concat_def concat;
        pn_flatten_def flatten;
        pn_shortcut_def shortcut;
        pn_dropout_def dropout;
        pn_loss_def loss;
    } def;
    int64_t floats;              /* stored, of y */
    int lanes;                   /* batch_norm, shortcut: channels of a block; 0: plain */
    maxpool16 own;               /* planes 0: the library's pooling */
    winograd16 winograd;         /* conv: in 0: not for this one */
    dnnl_primitive_desc_t chose; /* conv: the descriptor whose layouts y and the weights have */
    cpu_bank x, y, w, b, argmax;
    cpu_call forward, test, backward_data, backward_weights;
    cpu_bank *part; /* concat: each input, and its place in y */
    cpu_call *put, *get;
};
pn_op *cpu_op(pn_stage *stage, const char *name);

#endif
