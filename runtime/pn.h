/* pn.h: all that a generated program may see. About forty verbs; no vendor API.
 *
 * Layouts. A pn_tensor describes one value in one stage: its logical shape (batch first) and its memory. Targets choose
 * its physical layout at initialisation, within the planned bytes: `ref` is always plain, `cpu` may block channels. A
 * value, its gradient and its test copy share one layout. Registers carry the layout across stages. Inputs and labels
 * are plain.
 *
 * Errors. Verbs do not return on failure: they record the first error of the run, stop every stage, and unwind to the
 * stage driver. Nothing is allocated after a program's init has returned.
 *
 * Elements. Values are f32, or bf16 where their tensor says so; all is computed in f32. On a device, where the host cannot
 * read them, values are opaque (pn_value).
 *
 * Ownership. All buffers are static arrays of the generated code. pn_op objects belong to the runtime, live until exit.
 */
#ifndef PN_H
#define PN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PN_VERSION      "0.1.0"
#define PN_BUFFER       _Alignas(64)
#define PN_COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct pn_stage pn_stage;   /* one stage at run time; private to the runtime */
typedef struct pn_op pn_op;         /* one initialised operation of a target         */
typedef struct pn_layout pn_layout; /* a target's physical layout                    */

typedef enum { PN_F32, PN_BF16 } pn_element;
typedef uint16_t pn_bf16; /* the upper half of an f32 */
#ifdef PN_DEVICE
typedef void pn_value;
#else
typedef float pn_value;
#endif

/* ---- memory ---------------------------------------------------------------------------------------------------------
 */
/* `slots` buffers of `bytes` each, one after another; slot = minibatch % slots. */
typedef struct {
    void *memory;
    int64_t bytes;
    int slots;
    bool sliced; /* a replica of a stage works on its slice of each slot */
} pn_area;
#define PN_RING(array)                                                                                                 \
    {                                                                                                                  \
        (array), (int64_t)sizeof((array)[0]), PN_COUNT(array), false                                                   \
    } /* float x[slots][n] */
#define PN_SLICES(array)                                                                                               \
    {                                                                                                                  \
        (array), (int64_t)sizeof((array)[0]), PN_COUNT(array), true                                                    \
    } /* the same, of which a replica has a slice */
#define PN_AT(memory, bytes)                                                                                           \
    {                                                                                                                  \
        (memory), (bytes), 1, false                                                                                    \
    } /* one buffer        */
#define PN_SLOTS(address, slots)                                                                                       \
    {                                                                                                                  \
        NULL, (int64_t)sizeof *(address), (slots), false                                                               \
    } /* float (*x)[n] on a device: not placed yet */

typedef struct {
    const char *name;
    int rank;
    int64_t dim[4]; /* dim[0] is the batch */
    pn_element element;
    pn_area value;     /* during training: own ring, a transient, or the register's slots */
    pn_area gradient;  /* no memory: not computed here */
    pn_area partial;   /* later contributions to the gradient */
    pn_area test;      /* during a test pass */
    pn_area again;     /* of a value given to the next stage: made once more for the backward; no memory: is not */
    pn_layout *layout; /* chosen by the first op that writes it; NULL: not yet */
} pn_tensor;

/* For targets with memory of their own (cuda), in the function `place` of a stage, once, before its init: the address
 * of `slots` buffers of `bytes` each there. Places follow each other as they are asked for, multiples of 64 bytes
 * apart. */
void *pn_place(pn_stage *stage, const char *name, int64_t bytes, int slots);
typedef struct {
    float *weights, *masters, *gradient, *sum, *state, *ahead, *running; /* as in pn_stage_def */
} pn_weights;
void pn_place_weights(pn_stage *stage, const pn_weights *weights);

/* A trainable tensor: `room` floats at `offset` of its stage's weights; plain shape in dim. running: not trained, at
 * `offset` of the stage's running statistics. */
typedef enum { PN_HE, PN_XAVIER, PN_GAUSSIAN, PN_UNIFORM, PN_CONSTANT } pn_init;
typedef struct {
    const char *name; /* global name, the key of checkpoints */
    int rank;
    int64_t dim[4];
    int64_t offset, room;
    pn_init init;
    double a, b; /* gaussian mean, deviation; uniform low, high; constant value */
    int64_t fan_in, fan_out;
    bool running;
    pn_layout *layout; /* NULL: plain */
} pn_param;

/* ---- registers: a channel is a ring of slots from one stage to another, in minibatch order
 * --------------------------- */
typedef struct {
    const char *name;     /* "pool1", "gradient of pool1", "pool1 (test)": for messages */
    int from, to;         /* stages */
    bool held;            /* the backward of stage `to` still reads a slot: it frees it, not the forward */
    pn_element element;   /* of its values; labels: PN_F32, they are as large */
    pn_area area;         /* the static slots */
    int64_t *number;      /* per slot and replica of `from`: the minibatch it holds; -1: empty */
    int64_t sample_bytes; /* of one sample of a slot: where slices begin; 0: neither stage has replicas */
    struct pn_link *link; /* the transport's state */
    void *target;         /* the target's state */
} pn_channel;
typedef struct {
    pn_channel forward, gradient, test; /* gradient: slots 0 when none flows */
    pn_layout *layout; /* of the value: set by the init of stage `from`, read by the init of the next (inits run in
                        * stage order, one at a time) */
} pn_register;

/* Producer: room waits for a free slot, give publishes it. Consumer: take waits for minibatch n, done frees the slot.
 * held is the slot of a minibatch taken or given before: no wait; for the producer until room hands it out again, also
 * after the consumer's done. A slot that holds another minibatch
 * than asked for stops the run ("stage 1 asked for minibatch 7 of pool1 and found 8"). */
void *pn_room(pn_stage *stage, pn_channel *channel, int64_t n);
void pn_give(pn_stage *stage, pn_channel *channel, int64_t n);
void *pn_take(pn_stage *stage, pn_channel *channel, int64_t n);
void pn_done(pn_stage *stage, pn_channel *channel, int64_t n);
void *pn_held(pn_stage *stage, pn_channel *channel, int64_t n);

/* ---- replicas: copies of a stage that divide each minibatch. Replica i of r works on samples i B/r .. (i + 1) B/r - 1
 * of every slot: the verbs above give it its slice, and it waits only for the replicas whose slices meet its own. All
 * do the same steps in the same order. At an update their gradients are summed in replica order, replica 0 updates the
 * weights, which they share, and the running statistics become their mean in each of them (core/replicas.c).
 *
 * A stage file is compiled once for each replica: its buffers are its own; REPLICA is the number.
 *
 * Layouts where an end of a register has replicas: the same but for the size of the batch. */
#define PN_REPLICA_OF(name, replica)  PN_REPLICA_OF_(name, replica)
#define PN_REPLICA_OF_(name, replica) name##_##replica
void pn_take_layout(pn_stage *stage, pn_tensor *tensor, const pn_register *from); /* before the first op reads it */
void pn_give_layout(pn_stage *stage, pn_register *to, const pn_tensor *tensor);   /* when its op has chosen one */

/* ---- data
 * ------------------------------------------------------------------------------------------------------------ */
/* Fills `to` with input `input` (index in the program's table) of training microbatch / test batch n (as large as a
 * microbatch): f32 normalised in plain layout, or int32 class labels. All stages that ask for the same n see the same
 * samples. */
void pn_input(pn_stage *stage, int64_t n, int input, void *to);
void pn_test_input(pn_stage *stage, int64_t n, int input, void *to);

/* ---- weights
 * --------------------------------------------------------------------------------------------------------- */
/* forward: the version that the phase says (mostly the current one), or what the stage's pn_cure makes of it. backward:
 * what the phase's weight rule says (current, or the one its forward read), or likewise. */
const float *pn_forward_weights(pn_stage *stage, int64_t minibatch);
const float *pn_backward_weights(pn_stage *stage, int64_t minibatch);
const float *pn_test_weights(pn_stage *stage);
/* Applies the optimiser to the stage's weights, once per minibatch, with the mean gradient of its microbatches: a fused
 * loop over the contiguous arrays. */
void pn_update(pn_stage *stage);

/* ---- operations: *_init once, in program order; then forward and backward
 * --------------------------------------------- */
/* Every def: name, tensors x.. (inputs) and y (output). A backward reads gradients in the layout of their value.
 * Pointers given to the verbs must be slots of the areas of the def's tensors. */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    pn_param *w, *b; /* b NULL: no bias. w [out, in/groups, kernel, kernel] */
    int groups, kernel, stride, pad, dilation;
    bool relu;          /* y = max(0, conv): fused */
    bool data_gradient; /* the gradient of x is wanted */
} pn_conv_def;
pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def);
void pn_conv_forward(pn_op *op, const pn_value *x, const pn_value *w, const float *b, pn_value *y);
/* With relu, first masks gy in place by y > 0 (pn_relu_mask); these then read the masked gy. */
void pn_conv_backward_data(pn_op *op, const pn_value *gy, const pn_value *w, pn_value *gx); /* writes gx */
void pn_conv_backward_weights(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gw,
                              float *gb); /* writes gw, gb */

typedef struct {
    const char *name;
    pn_tensor *x, *y; /* x may have rank 4: it is read as [batch, c*h*w] in plain order */
    pn_param *w, *b;  /* w [out, features of x] */
    bool relu, data_gradient;
} pn_linear_def;
pn_op *pn_linear_init(pn_stage *stage, const pn_linear_def *def);
void pn_linear_forward(pn_op *op, const pn_value *x, const pn_value *w, const float *b, pn_value *y);
void pn_linear_backward_data(pn_op *op, const pn_value *gy, const pn_value *w, pn_value *gx);
void pn_linear_backward_weights(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gw, float *gb);

/* gy *= (y > 0), in place; y and gy in the layout of tensor t. */
void pn_relu_mask(const pn_tensor *t, const pn_value *y, pn_value *gy);

typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int kernel_h, kernel_w, stride, pad;
    bool relu;          /* maxpool: y = max(0, max of window) */
    bool count_padding; /* avgpool: padded zeros count in the divisor */
    pn_area argmax;     /* maxpool: the ring that forward's argmax points into; memory NULL: none (never a backward) */
} pn_pool_def;
/* argmax: opaque per-target record of the winners, as large as planned (op "maxpool", aux); NULL in a test pass. */
pn_op *pn_maxpool_init(pn_stage *stage, const pn_pool_def *def);
void pn_maxpool_forward(pn_op *op, const pn_value *x, pn_value *y, void *argmax);
void pn_maxpool_backward(pn_op *op, const pn_value *gy, const void *argmax, pn_value *gx);
pn_op *pn_avgpool_init(pn_stage *stage, const pn_pool_def *def);
void pn_avgpool_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_avgpool_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* y = scale (x - mean) / sqrt(variance + epsilon) + shift, per channel (dim[1]). In training mean and (biased) variance
 * are those of the minibatch: forward writes them to `statistics` (mean of each channel, then the variances), backward
 * reads them there. A test pass takes the running ones, which every backward moves: running = (1 - momentum) running +
 * momentum * the minibatch's, the variance unbiased (PyTorch's conventions): after update m they hold minibatches 1 ..
 * m, in any order. */
typedef struct {
    const char *name;
    pn_tensor *x, *y; /* of rank 2 or 4 */
    pn_tensor *skip;  /* added behind shift; NULL: nothing, and the verbs' skip and gskip are NULL */
    pn_param *scale, *shift, *mean, *variance; /* mean, variance: running */
    double epsilon, momentum;
    pn_area statistics; /* the ring that the verbs' statistics point into: 2 * channels floats a slot */
    bool relu;          /* y = max(0, ...), behind the sum with skip: fused */
} pn_batch_norm_def;
pn_op *pn_batch_norm_init(pn_stage *stage, const pn_batch_norm_def *def);
void pn_batch_norm_forward(pn_op *op, const pn_value *x, const pn_value *skip, const float *scale, const float *shift,
                           float *statistics, pn_value *y);
/* With relu, y is read, only gy where y > 0 counts, and gy may be left masked; else y may be NULL. gx, gskip NULL: not
 * wanted; gskip becomes the gy that counts. */
void pn_batch_norm_backward(pn_op *op, const pn_value *x, const pn_value *y, pn_value *gy, const float *scale,
                            const float *statistics, pn_value *gx, pn_value *gskip, float *gscale, float *gshift);
void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance);
void pn_batch_norm_test(pn_op *op, const pn_value *x, const pn_value *skip, const float *scale, const float *shift,
                        const float *running_mean, const float *running_variance, pn_value *y);

/* Pointwise chains are loops of the generated code; n elements. One of x, y is NULL in backward: what it does not read.
 */
typedef void pn_pointwise_forward_fn(const float *restrict x, float *restrict y, int64_t n);
typedef void pn_pointwise_backward_fn(const float *restrict saved, const float *restrict gy, float *restrict gx,
                                      int64_t n);
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    pn_pointwise_forward_fn *forward;
    pn_pointwise_backward_fn *backward;
    bool reads_x;    /* backward's `saved` is x; else y */
    bool keeps_zero; /* f(0) = 0: may run over padded lanes */
} pn_pointwise_def;
pn_op *pn_pointwise_init(pn_stage *stage, const pn_pointwise_def *def);
void pn_pointwise_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_pointwise_backward(pn_op *op, const pn_value *saved, const pn_value *gy, pn_value *gx);

typedef struct {
    const char *name;
    pn_tensor *a, *b, *y;
    bool relu;
} pn_add_def;
pn_op *pn_add_init(pn_stage *stage, const pn_add_def *def);
void pn_add_forward(pn_op *op, const pn_value *a, const pn_value *b, pn_value *y);
/* input 0: a, 1: b. Writes the gradient of that input (gy masked before, if relu). */
void pn_add_backward(pn_op *op, int input, const pn_value *gy, pn_value *gx);

enum { PN_MAX_CONCAT = 32 };
typedef struct {
    const char *name;
    pn_tensor *x[PN_MAX_CONCAT]; /* joined along dim[1] */
    int count;
    pn_tensor *y;
} pn_concat_def;
pn_op *pn_concat_init(pn_stage *stage, const pn_concat_def *def);
void pn_concat_forward(pn_op *op, int input, const pn_value *x, pn_value *y); /* copies one input into its place */
void pn_concat_backward(pn_op *op, int input, const pn_value *gy, pn_value *gx);

typedef struct {
    const char *name;
    pn_tensor *x, *y; /* y [batch, c*h*w], plain order */
} pn_flatten_def;
pn_op *pn_flatten_init(pn_stage *stage, const pn_flatten_def *def);
void pn_flatten_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_flatten_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* y = x / s^beta, s = k + alpha / size * the sum of x^2 over `size` channels around (Caffe's scaling). */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int size;
    double alpha, beta, k;
} pn_lrn_def;
pn_op *pn_lrn_init(pn_stage *stage, const pn_lrn_def *def);
void pn_lrn_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_lrn_backward(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gx);

/* y = every stride-th row and column of x, between channels of zeros: (channels of y - of x) / 2 before, the rest
 * behind. */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int stride;
} pn_shortcut_def;
pn_op *pn_shortcut_init(pn_stage *stage, const pn_shortcut_def *def);
void pn_shortcut_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_shortcut_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* Inverted dropout: y = x * mask / (1 - p); the mask is a function of (seed, name, minibatch, plain element index)
 * only. */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    double probability; /* of zero */
} pn_dropout_def;
pn_op *pn_dropout_init(pn_stage *stage, const pn_dropout_def *def);
void pn_dropout_forward(pn_op *op, int64_t minibatch, const pn_value *x, pn_value *y,
                        uint8_t *mask); /* mask: a byte an element */
void pn_dropout_backward(pn_op *op, const pn_value *gy, const uint8_t *mask, pn_value *gx);
void pn_dropout_test(pn_op *op, const pn_value *x, pn_value *y); /* y = x */

/* Losses: the mean over the minibatch, reported to the run by forward and test. */
typedef struct {
    const char *name;
    pn_tensor *x, *target; /* mse: target may be a tensor of x's shape, or labels (rank 1: one-hot) */
} pn_loss_def;
pn_op *pn_softmax_cross_entropy_init(pn_stage *stage, const pn_loss_def *def);
void pn_softmax_cross_entropy_forward(pn_op *op, int64_t minibatch, const pn_value *x, const int32_t *label,
                                      float *probability);
void pn_softmax_cross_entropy_backward(pn_op *op, const float *probability, const int32_t *label, pn_value *gx);
void pn_softmax_cross_entropy_test(pn_op *op, int64_t n, const pn_value *x, const int32_t *label);
pn_op *pn_mse_init(pn_stage *stage, const pn_loss_def *def);
/* 1/2 mean over the batch of the sum of squares over a sample's elements (Caffe's EuclideanLoss): gradient (x - t) /
 * batch */
void pn_mse_forward(pn_op *op, int64_t minibatch, const pn_value *x, const void *target);
void pn_mse_backward(pn_op *op, const pn_value *x, const void *target, int input,
                     pn_value *gx); /* input 0: x, 1: target tensor */
void pn_mse_test(pn_op *op, int64_t n, const pn_value *x, const void *target);

/* to += from, to = from: a gradient or value of tensor t, in its layout. */
void pn_accumulate(const pn_tensor *t, pn_value *to, const pn_value *from);
void pn_copy(const pn_tensor *t, pn_value *to, const pn_value *from);

/* ---- the program, as data
 * --------------------------------------------------------------------------------------------- */
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
 *     rate = lr(k) rate_factor delay^-(1 - min(k / K, 1)) min((k + 1) / W, 1)   K = reschedule steps, W = warmup steps
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
    int accumulate;            /* 0 or 1: not */
    double delay;              /* 0: no reschedule */
    double reschedule, warmup; /* parts of the run; 0: none */
} pn_cure;

/* ---- halves: a stage whose forwards have a worker of their own (mapping = split)
 * --------------------------------------------------------------------------------
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

#ifdef PN_PROFILE
#include "pn_profile.h"
#endif

#endif
