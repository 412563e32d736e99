/* cuda.h: private to runtime/cuda: the GPU of a run, what a stage has on it, launching kernels.
 *
 * A verb only puts work on the stream of its stage; stages share the GPU and are ordered among themselves by an event
 * for each register slot (order.c). Every call of the CUDA runtime and of cuDNN is checked: CU and DNN stop the run
 * with the operation's name. Activations of rank 4 lie with the channels last; weights of a convolution as
 * [out][kernel][kernel][in], of a dense layer that reads an image as [out][height][width][channel]. */
#ifndef PN_CUDA_H
#define PN_CUDA_H

#include <cuda_runtime_api.h>

#include "cuda/plan.h"
#define PN_DEVICE /* pn.h */
#include "rt.h"

/* ---- what kernels.cuh has, too ---- */
enum { CUDA_THREADS = 256, CUDA_ROWS = 512 };
typedef struct {
    int32_t sample;
    int16_t down, right;
    int32_t mirror;
} cuda_pick;
typedef struct {
    uint64_t shuffle, augment;
    int64_t count, batches;
    int32_t batch, slice, slices, half, crop, flip, moves, _;
} cuda_sampler;
typedef struct {
    float rate, keep, scale, scale_before, forward, backward;
} cuda_row;
typedef struct {
    uint64_t updates;
    cuda_row row[CUDA_ROWS];
} cuda_rates;
typedef struct {
    float momentum, add_momentum, square, add_square, decay, epsilon, on_velocity, on_gradient, memory, add_memory;
} cuda_rule;
typedef struct {
    int32_t batch, channels, height, width, channels_last;
    float scale[8], shift[8];
} cuda_images;

/* ---- the GPU (device.c) ---- */
typedef struct {
    int number, sm; /* 90: compute capability 9.0 */
    char name[256];
    cudaLibrary_t library; /* the program's kernels */
    char *arena;           /* buffers of all stages, in the order of the memory map */
    int64_t arena_bytes, placed;
    void *samples[2]; /* the data set: training, test */
    void *labels[2];
    struct cuda_ranks *ranks;           /* nccl.h; NULL: one process runs all stages */
    cudnnBackendDescriptor_t described; /* --plans: there is no GPU, nothing has memory, nothing is run; else NULL */
    char about[96], identity[160];      /* for the table of ranks */
    char measured[320];                 /* what measurements hold for */
} cuda_device;

enum { CUDA_AHEAD = 4 }; /* with several ranks: rounds that a host is ahead of its device at most */
typedef struct cuda_stage cuda_stage;
typedef struct cuda_exchange cuda_exchange;
typedef struct cuda_tuning cuda_tuning;
/* The loss of a step; count 0: it had none. */
typedef struct {
    int64_t n, count;
    bool test, classifies;
} cuda_loss;
typedef struct {
    const char *op, *name; /* as messages call it; in kernels.cu */
    const char *takes;     /* a letter a parameter: p pointer, i int, f float, d double, l 64 bits, or a struct: */
    int64_t blocks;        /* S cuda_sampler, I cuda_images, R cuda_rule */
    cudaKernel_t kernel;
} cuda_kernel;

/* What every stage has; stage->target. */
struct cuda_stage {
    pn_stage *stage;
    cuda_device *device;
    cudaStream_t stream;
    cudnnHandle_t dnn;
    void *workspace; /* of cuDNN: used by one operation after another */
    float *sums;     /* over rows, in chunks: likewise */
    int64_t workspace_bytes, sums_bytes;
    cuda_kernel gather, gather_labels, relu_mask, accumulate, loss_sum; /* of every program */
    cuda_loss loss;                                                     /* of the step at work */
    struct cuda_numbers *numbers;                                       /* input.c */
    struct cuda_updates *updates;                                       /* update.c */
    struct cuda_reports *reports;                                       /* report.c */
    struct cuda_graphs *graphs;                                         /* graph.c */
    pn_op *dense;                                                       /* those with plans, the last one first */
    /* with several ranks (exchange.c): */
    cuda_exchange *carries;                /* what goes with the next step; NULL: nothing */
    cudaEvent_t reached, pace[CUDA_AHEAD]; /* of the stream; of the last rounds */
};

cuda_stage *cuda_stage_of(pn_stage *stage);
/* Of the step that the calling thread does: for verbs that are not told. */
pn_stage *cuda_stage_at_work(void);
void cuda_order_open(pn_stage *stage); /* order.c */
/* An exchange and the slot that it sends or fills: before it the stream waits for the slot, behind it others may. */
void cuda_order_exchange(pn_stage *stage, const pn_transfer *part, bool before);

/* Memory of the device until the end of the process; stops the run with need and free bytes. */
void *cuda_alloc(pn_stage *stage, int64_t bytes, const char *what);
/* For inits: where plans are for. */
cuda_place cuda_plan_place(pn_stage *stage);
/* For inits: bytes of workspace that an operation wants of cuDNN; blocks of a kernel that sums over rows. */
void cuda_workspace_need(pn_stage *stage, int64_t bytes);
void cuda_sums_need(pn_stage *stage, int64_t blocks);
/* Names a buffer for the simulator of the tests, where that is loaded. */
void cuda_region(const void *start, int64_t bytes, const char *name);

/* ---- kernels (kernel.c) ---- */
void cuda_kernels_check(const pn_program *program); /* needs no GPU */
void cuda_kernels_load(cuda_device *device, const pn_program *program);
/* The kernel of an operation's pass; its parameters must be `takes`. */
cuda_kernel cuda_kernel_find(pn_stage *stage, const char *op, const char *pass, const char *takes);
cuda_kernel cuda_kernel_common(pn_stage *stage, const char *name, const char *takes);
/* blocks 0: those of the kernel. */
void cuda_launch(pn_stage *stage, const cuda_kernel *kernel, int64_t blocks, void **argument, int count);
#define CUDA_LAUNCH(stage, kernel, blocks, ...)                                                                        \
    cuda_launch(stage, kernel, blocks, (void *[]){__VA_ARGS__}, (int)(sizeof((void *[]){__VA_ARGS__}) / sizeof(void *)))

/* ---- checks ---- */
void cuda_check(pn_stage *stage, cudaError_t error, const char *op, const char *call);
void cuda_check_dnn(pn_stage *stage, cudnnStatus_t status, const char *op, const char *call);
#define CU(stage, op, call)  cuda_check(stage, call, op, #call)
#define DNN(stage, op, call) cuda_check_dnn(stage, call, op, #call)

/* ---- steps as graphs (graph.c) ---- */
void cuda_graphs_open(cuda_stage *cuda);
void cuda_graphs_run(cuda_stage *cuda, pn_run_kind kind, void (*step)(pn_stage *stage, int64_t n), int64_t n);
/* While a step runs for the first time: what it does that a graph cannot. */
void cuda_graphs_handover(cuda_stage *cuda, pn_channel *channel, pn_handover what);
bool cuda_graphs_wanted(const cuda_stage *cuda);

/* ---- the number of the minibatch, and its samples (input.c) ---- */
void cuda_numbers_open(cuda_stage *cuda);
/* A step begins to be launched, or captured. */
void cuda_numbers_begin(cuda_stage *cuda, int64_t n);
/* On the device: the number of the step's minibatch, from here on; of a forward, or of one that is done again. */
uint64_t *cuda_number(cuda_stage *cuda);
/* Which of the two the step has asked for; a graph that asks for them is launched for minibatch n. */
enum { CUDA_NUMBERS = 2 };
typedef struct {
    bool asked[CUDA_NUMBERS];
} cuda_asked;
cuda_asked cuda_numbers_asked(const cuda_stage *cuda);
void cuda_numbers_launch(cuda_stage *cuda, const cuda_asked *asked, int64_t n);

/* ---- updates (update.c) ---- */
void cuda_updates_open(cuda_stage *cuda);
/* Before a step: the rates of the next updates are on the device. */
void cuda_updates_cover(cuda_stage *cuda);
int64_t cuda_blocks(int64_t items); /* of CUDA_THREADS */

/* ---- several processes, a GPU each (nccl.c, exchange.c) ---- */
typedef struct cuda_ranks cuda_ranks;
void cuda_ranks_open(pn_run *run);              /* loads NCCL; ends the program without it */
int64_t cuda_received_bytes(const pn_run *run); /* of the arena: slots for what other ranks give */
void cuda_ranks_place(pn_stage *stage);         /* these slots */
void cuda_exchange_enqueue(pn_stage *stage, const cuda_exchange *exchange);
void cuda_exchange_before(pn_stage *stage, const cuda_exchange *exchange);
void cuda_exchange_behind(pn_stage *stage, const cuda_exchange *exchange);
void cuda_exchange_alone(pn_stage *stage, cuda_exchange *exchange); /* all three, as a graph if there are graphs */
/* It is of this round alone: no graph of a step may have it. */
bool cuda_exchange_passes(const pn_stage *stage, const cuda_exchange *exchange);
/* As cudaEventSynchronize and cudaStreamSynchronize; with several ranks it unwinds when the run is stopped. */
void cuda_wait(pn_stage *stage, cudaEvent_t event, const char *what);
void cuda_wait_stream(pn_stage *stage);

/* ---- losses on their way to the log (report.c) ---- */
void cuda_reports_open(cuda_stage *cuda);
/* In a step: sums the rows of a loss, and notes how the sums are to be reported. */
void cuda_report(pn_stage *stage, const float *rows, int64_t count, int64_t n, bool test, bool classifies);
/* Behind a step: fetches the sums, if it had a loss. */
void cuda_reports_send(cuda_stage *cuda);
/* Hands results to the log in their order: those that are there, or, if all, every one. */
void cuda_reports_collect(cuda_stage *cuda, bool all);

/* ---- engines of cuDNN (tune.c) ---- */
extern const char *const cuda_pass_name[CUDA_PASSES];
/* The plan of a pass. False: there is none; `why`. refuse: ends the run, with the line of --algorithms if it said so. */
bool cuda_tune_plan(pn_op *op, cuda_pass pass, const cuda_shape *shape, char *why, size_t size);
_Noreturn void cuda_tune_refuse(pn_op *op, cuda_pass pass, const char *why);

/* ---- ops ---- */
/* A value: its name only. A parameter: plain [..][channels][plane] is stored as [..][plane][channels]. */
struct pn_layout {
    const char *name;
    int64_t channels, plane;
};
struct pn_op {
    pn_stage *stage;
    const char *name;
    pn_op *next; /* of the stage's dense ones */
    union {
        struct {
            cuda_shape shape;
            cuda_plan plan[CUDA_PASSES];
            cuda_tuning *tuning[CUDA_PASSES]; /* NULL: nothing is measured */
            const pn_tensor *x, *y;
            const pn_param *w, *b; /* b NULL: none */
            cuda_kernel finish, bias_part, bias;
            bool has_bias, relu, fused; /* fused: the plan does both */
        } dense;
        struct {
            cuda_kernel forward, backward;
        } map;
        struct {
            cuda_kernel forward;
            int64_t bytes;
        } add;
        struct {
            cuda_kernel forward, backward;
            uint64_t key;
            int64_t bytes;
        } dropout;
        struct {
            cuda_kernel part, statistics, apply, gradient_part, gradient, backward, track;
            int64_t channels;
        } norm;
        struct {
            cuda_kernel forward[PN_MAX_CONCAT], backward[PN_MAX_CONCAT];
        } concat;
        struct {
            cuda_kernel forward, backward;
            float *rows;
            int64_t batch;
            bool labels;
        } loss;
    };
};
pn_op *cuda_op_new(pn_stage *stage, const char *name);
/* The tensor that an init writes: its layout follows from its rank. */
void cuda_op_writes(pn_tensor *y);
void cuda_param_layout(pn_param *param, int64_t channels, int64_t plane);
int64_t cuda_bytes(const pn_tensor *t);

#endif
