/* pn_program.h: a program as data: its choices, phases and stages, and of a device its kernels. */
#ifndef PN_PROGRAM_H
#define PN_PROGRAM_H

#ifndef PN_H
#error "include pn.h, which includes this file"
#endif

/* A named choice with arguments, as `inv(0.01, gamma = 1e-4)`; the runtime's tables resolve it. */
typedef struct {
    const char *key, *text; /* text NULL: a number (or a list) */
    double number;
    const double *list;
    int nlist;
} pn_arg;
typedef struct {
    const char *name;
    const pn_arg *arg;
    int nargs;
} pn_choice;

/* A minibatch is what one update sees. It may be sliced into microbatches: then forward and backward are steps of a
 * microbatch, and all their numbers count microbatches (those of updates and phases count minibatches). */
typedef enum {
    PN_STEP_FORWARD = 'F',
    PN_STEP_BACKWARD = 'B',
    PN_STEP_WEIGHTS = 'W', /* the weight part of a backward, where a body has it; else B does that, too */
    PN_STEP_UPDATE = 'U'
} pn_step;
typedef struct {
    int warmup;       /* forwards before the body */
    const char *body; /* "FBU": repeated to the end */
} pn_order;
/* The version of the weights that a forward reads: the current one; the one that stage 0 had at its forward of the same
 * microbatch; the one without the last minibatch's update (in the first minibatch of a phase the current one). */
typedef enum { PN_READS_CURRENT, PN_READS_FIRST, PN_READS_BEFORE } pn_reads;
typedef struct {
    const char *name;      /* "stale" */
    int64_t minibatches;   /* 0: the rest, or as below */
    bool stash;            /* backward reads the version its forward read */
    pn_reads reads;        /* of a forward */
    const pn_order *order; /* per stage */
    const int *staleness;  /* per stage, as compiled: checked against the run */
    int plateau_tests;     /* the phase ends when so many tests in a row do not lower the loss; 0: not so */
    double plateau_least;  /* a loss is lower if it is so by more than this part */
    const pn_choice *lr;   /* of this phase, t counting from its beginning; NULL: the program's */
} pn_phase;

/* What corrects for staleness in one stage and phase: coefficients known before the run. Update k, with weights w,
 * gradient g (decay included), velocity v and learning rate lr(k):
 *
 *     rate = lr(k) rate_factor divisor^-(1 - min(k / K, 1)) min((k + 1) / W, 1)   K, W: below
 *     v = momentum v + g;  w -= rate (on_velocity v + on_gradient g)            sgd; others have their own direction
 *     delta = memory delta + (1 - memory) (w after - w before)                  where memory > 0
 *
 * With accumulate = a > 1 only every a-th update of the phase is one, g being the mean gradient since the last; the
 * others add to the sum. What is left at the end of the phase joins the first update of the next one that is one.
 *
 * A forward reads w - rate forward v; a backward what the weight rule says, w - rate backward v, or w - back delta. */
typedef struct {
    bool active; /* false: the optimiser alone */
    double momentum, rate_factor, on_velocity, on_gradient;
    double forward, backward;
    double memory, back;
    int accumulate;                     /* 0 or 1: not */
    double divisor;                     /* 0: no reschedule */
    double reschedule, reschedule_most; /* K: that part of the run's updates, so many at most */
    double warmup;                      /* W: that part of the run's updates; 0: none */
} pn_cure;

/* ---- halves: a stage whose forwards have a worker of their own (mapping = split)
 *
 * It has two entries in the program, the forward half first. They share values, weights and parameters, and have
 * operations and transients of their own. Both walk the stage's order: the forward half does the F, the backward half
 * all other steps and tests; where the order has a U, the forward half waits for those weights and goes on with them
 * (core/halves.c). So each forward reads the version that it would read in a stage of one worker. */
typedef enum { PN_WHOLE, PN_FORWARD_HALF, PN_BACKWARD_HALF } pn_half;

typedef struct {
    const char *what; /* "conv1 relu1 pool1" */
    pn_half half;
    int replica, replicas;          /* this is replica 0 .. replicas - 1; replicas 0: there is one */
    void (*place)(pn_stage *stage); /* NULL: buffers are static arrays */
    void (*init)(pn_stage *stage);
    void (*forward)(pn_stage *stage, int64_t minibatch);
    void (*backward)(pn_stage *stage, int64_t minibatch);
    /* The weight part of a backward: the gradients of all weights but the first early_floats, which `backward` makes.
     * NULL: backward does it all. */
    void (*weight_gradients)(pn_stage *stage, int64_t minibatch);
    int64_t early_floats;
    void (*recompute)(pn_stage *stage, int64_t minibatch); /* before a backward; NULL: nothing to do again */
    void (*test)(pn_stage *stage, int64_t n);
    pn_param *param;
    int nparams;
    float *weights; /* [versions][weight_floats]; of replica 0: the others share it */
    int versions, states;
    int64_t weight_floats, running_floats;
    /* Where weights are stored as bf16: their f32 masters, [weight_floats], which updates move and files hold; NULL:
     * there are none. Then versions, gradient and ahead are [version_floats]: weights from bf16_at on have half a float
     * in them. */
    float *masters;
    int64_t version_floats, bf16_at; /* 0 where there are none */
    float *gradient,
        *state;      /* [weight_floats], [states][weight_floats]; state: as weights; the last is delta, if any */
    float *sum;      /* of the gradients of a minibatch's microbatches so far; NULL: it is not sliced */
    float *gathered; /* of the states: sum of the gradients of minibatches; NULL: no phase accumulates */
    float *ahead;    /* [aheads][weight_floats]: forward's (of halves one a version), then backward's, as pn_cure wants;
                      * NULL: none */
    int aheads;
    const pn_cure *cure;         /* per phase; NULL: none in any */
    float *running;              /* running statistics: one copy, written by backward steps only */
    int ring;                    /* minibatches in flight it was sized for, weight parts included */
    pn_channel **takes, **gives; /* forward channels in and out: a forward step is ready when these are */
    int ntakes, ngives;
    pn_channel **takes_gradient, **gives_gradient; /* the same for a backward step */
    int ntakes_gradient, ngives_gradient;
    pn_channel **takes_test, **gives_test;
    int ntakes_test, ngives_test;
    int64_t static_bytes; /* sizeof of everything it declares, registers it gives included */
} pn_stage_def;

typedef struct {
    const char *name;
    bool label; /* int32 class labels */
    int rank;
    int64_t dim[3]; /* per sample */
    int64_t classes;
} pn_input_def;

/* A kernel of kernels.cu, as the verbs find it: by the operation (or input) and the pass it is for. takes: a letter a
 * parameter (runtime/cuda/cuda.h); blocks 0: as many as the call wants. */
typedef struct {
    const char *op, *pass, *kernel, *takes;
    int64_t blocks;
    int threads;
} pn_kernel;
/* kernels.cu as `pnetc kernels` compiled it: a cubin for each architecture (sm: 90 is sm_90), and PTX (sm: 0). */
typedef struct {
    int sm;
    const unsigned char *bytes;
    int64_t size;
} pn_binary;
typedef struct {
    const char *name;
    int parameters, bytes, registers; /* bytes: of all parameters */
} pn_kernel_fact;
typedef struct {
    const pn_binary *binary;
    int binaries;
    const pn_kernel_fact *fact; /* read back from the cubins */
    int facts;
} pn_kernel_image;
extern const pn_kernel_image pn_kernels; /* of the program, where its target has kernels */

typedef struct {
    const char *name, *source, *target; /* "lenet5", "lenet5.pnet", "cpu" */
    int64_t batch;                      /* samples of a minibatch */
    int64_t microbatches;               /* that it is sliced into, evenly; 0 or 1: not */
    const pn_input_def *input;
    int ninputs;
    const pn_stage_def *const *stage; /* in order; replicas of a stage one after another */
    int nstages;                      /* so many of these, replicas counted: each is run by a worker */
    pn_register **reg;                /* all registers */
    int nregisters;
    const pn_kernel *kernel; /* targets with kernels of their own (cuda) */
    int nkernels;
    const pn_kernel_image *image;
    const pn_phase *phase;
    int nphases;
    pn_choice data, optimizer, lr;
    int64_t warmup;                    /* steps over which the rate rises linearly; 0: none */
    int64_t steps, epochs, test_every; /* epochs 0: steps count; test_every 0: only at the end */
    uint64_t seed;
    int threads; /* of each stage; 0: 1 */
} pn_program;

/* Parses the options, trains, tests, saves. Exit code: 0 ok, 1 failed, 2 usage. */
int pn_main(const pn_program *program, int argc, char **argv);

#endif
