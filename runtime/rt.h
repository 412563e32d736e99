/* rt.h: private to the runtime. What core, data, transport and the kernels of a target share.
 *
 * Rooms: core/ (program, driver, optimisers, checkpoints), data/ (sources), transport/ (channels), ref/ and cpu/
 * (kernels of a target; exactly one is linked into a program). Kernels see pn.h and this file only. */
#ifndef PN_RT_H
#define PN_RT_H

#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>

#include "pn.h"

typedef struct pn_run pn_run;
typedef struct pn_transport pn_transport;
typedef struct pn_world pn_world;

/* ---- one stage at run time (core/stage.c) ---- */
struct pn_stage {
    const pn_stage_def *def;
    pn_run *run;
    int index;             /* in the pipeline */
    int worker;            /* in run->stage */
    bool here;             /* this process runs it; of another rank's only the description is known */
    float *sent;           /* of another rank's, on rank 0: its values, as weights_values gives them; NULL: none yet */
    int replica, replicas; /* 0 of 1: the only one */
    int64_t first_sample;  /* its slice of each microbatch ... */
    int64_t samples;       /* ... and how many that are */
    struct pn_replicas *group; /* what the replicas of this stage share; NULL: there is one (core/replicas.h) */
    struct pn_halves *halves;  /* what the halves of this stage share; NULL: it is whole (core/halves.h) */
    int64_t updates;           /* done so far: the number of the current weight version */
    const pn_phase *phase;     /* the current one */
    int64_t phase_first;       /* first microbatch of the phase; of a run that was resumed within it: of the run */
    int64_t phase_begin;       /* first microbatch of the phase */
    int64_t phase_end;         /* the first of the next phase; INT64_MAX: none */
    int64_t ahead_version;     /* of the weights that def->ahead was made from for a forward; -1: none */
    int64_t left_over;         /* gradients that the phases before have left in def->gathered */
    double velocity_rate;      /* rate_factor of the updates that the velocity stands for (core/update.c) */
    bool splits;               /* the order of the phase has weight parts as steps of their own */
    bool recomputing;          /* a forward is done again: its loss has been told */
    int64_t *read_version;     /* [ring]: version read by the forward of microbatch n, at n % ring */
    jmp_buf escape;            /* where pn_fail unwinds to */
    /* for the watchdog, read by other threads: finished steps, and what the stage waits for (NULL: it computes) */
    atomic_llong progress;
    _Atomic(const pn_channel *) waits_for;
    atomic_llong waits_number;
    struct pn_cursor *cursor; /* where it stands in its order (core/order.h) */
    struct pn_trace *trace;   /* NULL: nothing is recorded (core/trace.c) */
    void *scratch;            /* one block for library scratchpads and reorders; allocated after all inits */
    int64_t scratch_bytes;    /* the largest need registered by inits */
    void *target;             /* the kernels' own state of this stage; NULL until their first init */
    bool captures;       /* the target records a step whose slots it has taken: channel verbs only say where they are */
    int64_t tests_begun; /* of this run */
    /* measured, for --report */
    int64_t weight_parts;                        /* backwards done with their weight part: microbatches */
    int64_t forwards, backwards, most_in_flight; /* microbatches */
    int64_t staleness_most, staleness_sum, traffic_bytes;
    double busy_seconds, wait_seconds;
    double data_seconds; /* of the busy ones: gathering minibatches that were not ready */
};

/* Samples of a whole minibatch, of which the stage works on `samples`: all of them, or its replica's slice. */
static inline int64_t pn_whole_batch(const pn_stage *stage, int64_t samples)
{
    return samples * (stage->replicas > 1 ? stage->replicas : 1);
}
/* The same of floats, or bytes: where a slice of `size` begins. */
static inline int64_t pn_slice_begin(const pn_stage *stage, int64_t size)
{
    return stage->replica * size;
}

/* ---- what the replicas of a stage share (core/replicas.h) ---- */
struct pn_replicas {
    pn_stage *stage; /* replica 0; the others stand behind it */
    int count;
    /* From all to all: my gradient is there. From all to replica 0: my part is summed. From replica 0 to all: the
     * weights are new. */
    pn_channel gradients, sums, weights;
    pn_channel *to_share[1], *to_sum[1], *to_update[1]; /* the same, as lists */
    struct pn_replicas *next;
};

/* ---- what the halves of a stage share (core/halves.h) ---- */
struct pn_halves {
    pn_stage *forward, *backward;
    pn_channel saved; /* from the forward half: microbatch n is in the ring. Done: its slot is free */
    pn_channel
        weights; /* from the backward half: update n is done. Done: the forward half has left the version before */
    pn_channel **gives, **takes_gradient, *to_hand[1]; /* lists of steps: the stage's registers, and these */
    struct pn_halves *next;
};

/* ---- how convolutions may compute: false is the default ---- */
typedef struct {
    bool exact;            /* --exact: directly, no Winograd */
    bool tf32;             /* --tf32: what is multiplied may be rounded to TF32 */
    bool nondeterministic; /* --nondeterministic: sums in an order that varies */
} pn_arithmetic;

/* ---- one run of a program ---- */
struct pn_run {
    const pn_program *program;
    pn_stage *stage;              /* one a worker: as program->stage */
    struct pn_replicas *replicas; /* of all stages that have several; NULL: none (core/replicas.h) */
    struct pn_halves *halves;     /* of all stages that are in halves; NULL: none (core/halves.h) */
    const pn_transport *transport;
    pn_world *world; /* NULL: one process runs all stages (world/world.h) */
    uint64_t seed;
    int64_t first; /* minibatch of this run: 0, or where a checkpoint ended */
    int64_t steps; /* minibatches to train, those before the first included */
    int64_t test_every, checkpoint_every;
    struct pn_checkpoint *checkpoint; /* NULL: none is wanted (core/checkpoint.h) */
    atomic_int writing;               /* 1: a stage writes one, and takes as long as the disk does */
    int threads;                      /* that a stage's kernels share their work among; 1 where the target knows none */
    struct pn_dataset *data;
    struct pn_loader *loader;         /* NULL: stages gather minibatches themselves (data/loader.c) */
    int64_t loader_bytes;             /* of its rings */
    struct pn_algorithms *algorithms; /* NULL: --algorithms was not given (core/algorithms.h) */
    pn_arithmetic arithmetic;         /* what is asked of convolutions */
    const char *gpu;    /* --plans: the file that describes the GPU: there is none, inits are all that runs */
    atomic_int failing; /* 1: somebody writes, or has written, `error` (core/fail.c) */
    atomic_int stop;    /* 1: `error` is there, and every stage ends */
    atomic_llong begun; /* minibatches begun by any stage, and whether more may be (core/interrupt.c) */
    const struct pn_recipe *recipe;       /* optimiser and learning rate (core/choices.h) */
    const struct pn_recipe *phase_recipe; /* per phase; policy NULL: that of the run */
    struct pn_plateau *plateau;           /* NULL: no phase ends by one (core/plateau.h) */
    struct pn_diverge *diverge;           /* NULL: whatever the loss is, the run goes on (core/diverge.h) */
    struct pn_log *log;                   /* losses, progress, metrics (core/log.h) */
    char error[1024];                     /* the first error */
    void *target;                         /* the kernels' own state of the run */
    double timeout;                       /* seconds without progress until the watchdog speaks */
};

/* Of a minibatch; samples of one, and of a test batch. */
static inline int64_t pn_microbatches(const pn_program *program)
{
    return program->microbatches > 1 ? program->microbatches : 1;
}
static inline int64_t pn_slice(const pn_program *program)
{
    return program->batch / pn_microbatches(program);
}

/* Records the first error ("stage 1: conv2: ..."), stops every stage, unwinds. stage NULL: before or after the run:
 * prints and exits 1. */
_Noreturn void pn_fail(pn_stage *stage, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fail_check(pn_stage *stage); /* unwinds if the run has been stopped */

/* Losses report here, each replica for its slice: of a microbatch, mean loss over `count` samples and how many top-1
 * answers were right (correct < 0: not a classifier). */
void pn_report_loss(pn_stage *stage, int64_t n, double loss, int64_t correct, int64_t count);
void pn_report_test(pn_stage *stage, int64_t n, double loss_sum, int64_t correct, int64_t count);
/* How many samples of the stage's slice of test batch n count (the last one may be ragged). */
int64_t pn_test_count(pn_stage *stage, int64_t n);

/* ---- tracing (core/trace.c): called only where stage->trace is not NULL ---- */
typedef enum {
    PN_TRACE_FORWARD,
    PN_TRACE_BACKWARD,
    PN_TRACE_WEIGHTS,
    PN_TRACE_SHARE,
    PN_TRACE_SUM,
    PN_TRACE_HAND_OVER,
    PN_TRACE_UPDATE,
    PN_TRACE_TEST,
    PN_TRACE_CHECKPOINT,
    PN_TRACE_WAIT_INPUT,
    PN_TRACE_WAIT_ROOM,
    PN_TRACE_GIVE, /* just before the slot is published */
    PN_TRACE_TAKE  /* just after it was found */
} pn_trace_kind;
/* begin, end: pn_seconds; work: pn_work_seconds that passed between them. */
void pn_trace_add(pn_stage *stage, pn_trace_kind kind, const pn_channel *channel, int64_t n, double begin, double end,
                  double work);
double pn_seconds(void);      /* of the monotonic clock */
double pn_work_seconds(void); /* that the calling thread had a core */

/* ---- memory before the run ---- */
void *pn_alloc(int64_t bytes); /* zeroed, 64-byte aligned (2 MiB and huge pages from 2 MiB on), never NULL: exits with
                                  need in bytes */
void pn_scratch_need(pn_stage *stage,
                     int64_t bytes); /* inits register; stage->scratch is valid from the first step on */

/* ---- numbers ---- */
/* Counter-based random numbers: a function of (key, counter), the same on every machine (core/rng.c; splitmix64
 * finaliser). */
uint64_t pn_random(uint64_t key, uint64_t counter);
double pn_uniform(uint64_t key, uint64_t counter); /* [0, 1) */
double pn_normal(uint64_t key, uint64_t counter);  /* mean 0, deviation 1 */
uint64_t pn_key(uint64_t seed, const char *name);  /* hash of a name under a seed */
/* Dropout, the one formula of every target: element `index` (plain order, over the whole minibatch) is kept when
 * pn_uniform(pn_dropout_key(seed, name of the op, minibatch), index) >= probability. */
static inline uint64_t pn_dropout_key(uint64_t seed, const char *name, int64_t minibatch)
{
    return pn_random(pn_key(seed, name), (uint64_t)minibatch);
}
/* Position `index` of epoch `epoch` in a shuffled order of n samples: a permutation for each (seed, epoch), no tables.
 */
int64_t pn_shuffled(uint64_t seed, int64_t epoch, int64_t index, int64_t n);
/* Bits of half a position in such an order. */
int pn_shuffle_half(int64_t n);

/* Fills `plain` (product of dim floats) with the initial values of a parameter (core/init.c). */
void pn_param_initial(const pn_param *param, uint64_t seed, float *plain);

/* ---- algorithms (core/algorithms.c): passes of operations that a target can do in more than one way ---- */
typedef enum { PN_DIRECT, PN_WINOGRAD, PN_ALGORITHMS } pn_algorithm;
/* For inits: how to do this pass ("forward") of an operation. PN_ALGORITHMS: it will be measured, then said by
 * pn_algorithm_measured. possible: there is PN_WINOGRAD for it; known_to_win: it is taken where nobody asks for a
 * measurement, a rule of shapes that gives the same in every run. */
pn_algorithm pn_algorithm_of(pn_stage *stage, const char *op, const char *pass, bool possible, bool known_to_win);
const char *pn_algorithm_name(pn_algorithm algorithm); /* "direct", "winograd" */
/* Notes the seconds of each (the second one only if possible); gives the choice. */
pn_algorithm pn_algorithm_measured(pn_stage *stage, const char *op, const char *pass, bool possible,
                                   const double *seconds);
/* For targets whose library has engines, named by a word: the one of this pass; NULL: as the library has it; "": it will
 * be measured, then said by pn_engine_measured. refuse: the library has not got it; ends the program. */
const char *pn_engine_of(pn_stage *stage, const char *op, const char *pass);
_Noreturn void pn_engine_refuse(pn_stage *stage, const char *op, const char *pass, const char *why);
/* Notes the seconds of the library's first engine and of the best of the others (NULL: there is none); true: the other
 * one is taken. */
bool pn_engine_measured(pn_stage *stage, const char *op, const char *pass, const char *first, const char *other,
                        const double *seconds);

/* ---- what a target's kernels provide besides the verbs (ref/, cpu/) ---- */
extern const char *const pn_target_name;  /* "ref", "cpu" */
const char *pn_target_version(void);      /* "oneDNN 2.6.3", "naive C" */
extern const int pn_target_most_threads;  /* that a stage can have */
void pn_target_thread(const pn_run *run); /* called on every thread that creates or runs operations, first */
/* Calls work(data, from, to) for parts of 0 .. count, side by side on the threads of the stage, and returns when all
 * are done. Parts begin at multiples of `unit` and depend on nothing but these and the number of threads; `work` must
 * not fail. */
typedef void pn_part_fn(void *data, int64_t from, int64_t to);
void pn_target_split(const pn_stage *stage, int64_t count, int64_t unit, pn_part_fn *work, void *data);
void pn_target_prepare(pn_stage *stage); /* after all inits and the scratch allocation */

/* Targets whose memory is the host's share runtime/ref/host.c for the following; on a GPU a step of a stage is begun by
 * the host, and ended later. */
extern const bool pn_target_gathers;    /* pn_target_input gathers the inputs: there is no loader */
void pn_target_open(pn_run *run);       /* before anything else; ends the program when there is no device */
void pn_target_finish(pn_stage *stage); /* waits until all that the stage has begun is done */
typedef enum { PN_RUN_FORWARD, PN_RUN_BACKWARD, PN_RUN_TEST } pn_run_kind;
void pn_target_run(pn_stage *stage, pn_run_kind kind, void (*step)(pn_stage *stage, int64_t n), int64_t n);
/* What an update is made of, but for the optimiser's own arguments. */
typedef struct {
    int64_t t;   /* updates done before */
    double rate; /* of this update, all factors included */
    double momentum, on_velocity, on_gradient;
} pn_terms;
/* All that an update needs; core knows it (core/update.c). */
typedef struct {
    const char *optimizer;
    const double *value; /* its arguments, in the order of core/choices.def */
    const pn_cure *cure; /* NULL: none */
    pn_terms terms;      /* of update t */
    double reach;        /* times cure->forward and backward: how far update t looks ahead */
} pn_update_rule;
/* The stored weights that pn_backward_weights gives, or makes something of. */
const float *pn_backward_version(pn_stage *stage, int64_t minibatch);
pn_update_rule pn_update_rule_of(const pn_stage *stage, int64_t t);
/* What core does with arrays of weights, where they are out of its reach (the stage's def has them); false: core does
 * it. update: makes `next` of the weights w, the gradient and the state, `version` of next (NULL: next is one), and what
 * the next forward reads ahead of them. Where weights have masters, w and next are these; copy: makes a version of them.
 * ahead: `to` becomes w followed along the velocity, as a forward or a backward wants; back: less so many mean steps.
 * scale: of the velocity. sum: the gradient of microbatch `slice` is there (core/stage.c). */
bool pn_target_update(pn_stage *stage, const float *w, float *next, float *version);
bool pn_target_ahead(pn_stage *stage, const float *w, bool backward, float *to);
bool pn_target_back(pn_stage *stage, const float *w, double times, float *to);
bool pn_target_scale(pn_stage *stage, double factor);
bool pn_target_sum(pn_stage *stage, int64_t slice, int64_t slices);
void pn_target_copy(pn_stage *stage, float *version);
/* Fills `to` as pn_input and pn_test_input say; false: this target leaves it to them. */
bool pn_target_input(pn_stage *stage, int64_t n, int input, bool test, void *to);
/* A slot changes hands: just after room and take have found it, just before give and done let it go. */
typedef enum { PN_AT_ROOM, PN_AT_GIVE, PN_AT_TAKE, PN_AT_DONE } pn_handover;
void pn_target_channel(pn_stage *stage, pn_channel *channel, int64_t n, pn_handover what);
/* Several processes, the ranks, a device each (world/world.h). A target without them: pn_target_ranks is false, and the
 * rest is never called. make_id: on rank 0, what connects all ranks, 128 bytes; connect: false: the run has been
 * stopped. */
extern const bool pn_target_ranks;
void pn_target_describe(const pn_run *run, const char **device, const char **identity); /* world_meet */
void pn_target_make_id(pn_run *run, char *id);
bool pn_target_connect(pn_run *run, const char *id, int rank, int size);
/* What crosses between ranks in a round, in one exchange: minibatch n of a channel, to or from another rank. With the
 * next forward or backward of the stage, behind it, or at once. */
typedef struct {
    pn_channel *channel;
    int64_t n;
    int peer;
    bool sends;
} pn_transfer;
void pn_target_exchange(pn_stage *stage, const pn_transfer *transfer, int count, bool with_next);
void pn_target_pace(pn_stage *stage, int64_t round); /* waits while the device is too many rounds behind */
void pn_target_abort(pn_run *run);                   /* any thread: ends what waits for other ranks */
extern const bool pn_target_engines;                 /* its library has engines: --tf32, --nondeterministic, --plans */
/* Instructions that its kernels use, or the GPU: what measurements hold for; "unknown". */
const char *pn_target_isa(const pn_run *run);
/* Between prepare and the first step, if algorithms are to be measured: one round over those of the stage, on the
 * thread that will run it; true: it has seen enough. Then, for all stages on one thread: takes what was chosen, or
 * measures here what wants the device for itself. */
bool pn_target_measure(pn_stage *stage);
void pn_target_settle(pn_stage *stage);
/* Tells of every copy in a step that changes the layout of something: of which operation, what, its bytes. */
typedef void pn_reorder_fn(void *to, const char *op, const char *what, int64_t bytes);
void pn_target_reorders(const pn_stage *stage, pn_reorder_fn *tell, void *to);
/* Tells of every pass that a target has algorithms for: which one it takes, and the name of the code that does it. */
typedef void pn_algorithm_fn(void *to, const char *op, const char *pass, const char *algorithm, const char *code);
void pn_target_algorithms(const pn_stage *stage, pn_algorithm_fn *tell, void *to);
/* Between a parameter's stored form (room floats, its layout) and plain order. */
void pn_param_to_plain(const pn_param *param, const float *stored, float *plain);
void pn_param_from_plain(const pn_param *param, const float *plain, float *stored);
int64_t pn_tensor_floats(const pn_tensor *t); /* physical elements in its layout */
/* The layout of a register for a tensor that has another batch, else the same dimensions. */
pn_layout *pn_layout_of_batch(pn_stage *stage, pn_layout *layout, const pn_tensor *tensor);

/* ---- transports: one const struct in transport/<name>.c, one line in transport/transports.def ---- */
struct pn_transport {
    const char *name, *doc;
    void (*open)(pn_run *run);  /* before the first step */
    void (*train)(pn_run *run); /* runs all stages to the end (stage_step of core/driver.h) */
    void (*close)(pn_run *run);
    /* Calls `round` for every stage on a thread like the one that will run it, at the same time where that is how
     * stages run, until it has been true for all. False: one failed. Not between open and close. */
    bool (*each)(pn_run *run, bool (*round)(pn_stage *stage));
    void *(*room)(pn_stage *, pn_channel *, int64_t n);
    void (*give)(pn_stage *, pn_channel *, int64_t n);
    void *(*take)(pn_stage *, pn_channel *, int64_t n);
    void (*done)(pn_stage *, pn_channel *, int64_t n);
};
extern const pn_transport pn_transport_ranks; /* what several processes use; nobody asks for it by name */
extern const pn_transport *const pn_transport_table[];
extern const int pn_transport_count;
const pn_transport *pn_transport_find(const char *name); /* NULL: unknown */

/* ---- data sources: one const struct in data/<name>.c, one line in data/sources.def ---- */
typedef struct pn_dataset {
    int64_t train_count, test_count;
    int64_t channels, height, width, classes;
    const uint8_t *train_pixels, *test_pixels; /* [count][c][h][w]; NULL when floats are given */
    const float *train_values, *test_values;   /* raw f32 data, NULL otherwise */
    const uint16_t *train_labels, *test_labels;
    float scale[8], shift[8]; /* per channel: x * scale + shift; channels over 8 use [0] */
    int64_t crop;             /* augmentation of training samples (data/augment.c): padding in pixels */
    bool flip;
    uint8_t *moved; /* room for one sample a stage; NULL: no augmentation */
    char what[128]; /* "MNIST, 60000 + 10000 images of 28x28" */
} pn_dataset;
typedef struct {
    const char *name, *folder; /* folder: where $PNET_DATA keeps it; NULL: nowhere */
    /* Reads everything into memory or ends the program with a clear message that names the file. `path` is the folder
     * given with --data or as the path argument; NULL: neither. `choice` holds the arguments; `program` the inputs'
     * shapes (raw). */
    void (*open)(pn_dataset *data, const pn_program *program, const pn_choice *choice, const char *path, uint64_t seed);
} pn_source;
const pn_source *pn_source_find(const char *name);
/* Opens the data of a run, checks it against the program's inputs and batch, sets run->data (needs program and seed;
 * core calls it once, before the first step). `option` is the text of --data, NULL: not given: a folder, SOURCE or
 * SOURCE:FOLDER. */
void pn_data_open(pn_run *run, const char *option);
/* Minibatches made ready ahead, on a thread of their own, `ahead` of them (below 0: as many as pay, 0: none). open
 * takes the memory and needs run->data, first and steps; the thread runs between start and stop. */
void pn_loader_open(pn_run *run, int64_t ahead);
void pn_loader_start(pn_run *run);
void pn_loader_stop(pn_run *run);

#endif
