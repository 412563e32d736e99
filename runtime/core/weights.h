/* weights.h: all parameters of a program at once: their first values, and their way to and from a file. */
#ifndef PN_WEIGHTS_H
#define PN_WEIGHTS_H

#include "core/safetensors.h"
#include "rt.h"

/* The optimiser's state k of parameter p is called optimizer/k/p in files: no parameter's name has a slash. */
#define WEIGHTS_STATE "optimizer/"

/* Tensors in plain order, in one block, stage after stage: parameters and running statistics and, where wanted, the
 * optimiser's state of each parameter. */
typedef struct {
    NamedTensor *tensor;
    int count;
    struct Place *place; /* of each tensor: where it lies in its stage */
    float *values;
    char *names;
} Plain;
Plain plain_open(const pn_run *run, bool state); /* ends the program when memory is short */
void plain_close(Plain *plain);
/* Between the block and one stage, whose current version is meant: 0 before the first step, the last one after the run.
 * From a stage of another rank: what it has sent. */
void plain_from_stage(Plain *plain, const pn_stage *stage);
void plain_to_stage(const Plain *plain, pn_stage *stage);
/* All values of one stage, for another process: each parameter, in plain order, followed by its states. */
int64_t weights_floats(const pn_stage *stage);
void weights_values(const pn_stage *stage, float *to);

/* After the inits of all stages, which choose the layouts. */
void weights_initial(pn_run *run);
/* From a file of --save, or the weights of a checkpoint; ends the program when the file does not fit. */
void weights_load(pn_run *run, const char *path);
void weights_resume(pn_run *run, const char *path);      /* all of a checkpoint, likewise */
char *weights_save(const pn_run *run, const char *path); /* NULL, or a message */

#endif
