/* pn.h: all that a generated program may see: memory, registers, data, weights; of the operations pn_ops.h, of the
 * program itself pn_program.h. About forty verbs; no vendor API.
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

/* ---- memory ---- */
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

/* ---- registers: a channel is a ring of slots from one stage to another, in minibatch order ---- */
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

/* ---- data ---- */
/* Fills `to` with input `input` (index in the program's table) of training microbatch / test batch n (as large as a
 * microbatch): f32 normalised in plain layout, or int32 class labels. All stages that ask for the same n see the same
 * samples. */
void pn_input(pn_stage *stage, int64_t n, int input, void *to);
void pn_test_input(pn_stage *stage, int64_t n, int input, void *to);

/* ---- weights ---- */
/* forward: the version that the phase says (mostly the current one), or what the stage's pn_cure makes of it. backward:
 * what the phase's weight rule says (current, or the one its forward read), or likewise. */
const float *pn_forward_weights(pn_stage *stage, int64_t minibatch);
const float *pn_backward_weights(pn_stage *stage, int64_t minibatch);
const float *pn_test_weights(pn_stage *stage);
/* Applies the optimiser to the stage's weights, once per minibatch, with the mean gradient of its microbatches: a fused
 * loop over the contiguous arrays. */
void pn_update(pn_stage *stage);

#include "pn_ops.h"
#include "pn_program.h"
#ifdef PN_PROFILE
#include "pn_profile.h"
#endif

#endif
