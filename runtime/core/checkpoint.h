/* checkpoint.h: files from which a run goes on: weights, running statistics, the optimiser's state, and the step.
 *
 * A checkpoint of step m is the state after update m in every stage. Nothing is drained for it: each stage copies its
 * part behind its own update m (ACTION_CHECKPOINT of core/driver.h), the last one to do so writes the file, whole or
 * not at all. A run that goes on from it begins with minibatch m and an empty pipe: it equals the uninterrupted run bit
 * for bit where that one's pipe was empty after m, as it always is in a sequential phase, between two phases, and at
 * the end of a run. */
#ifndef PN_CHECKPOINT_H
#define PN_CHECKPOINT_H

#include "rt.h"

/* What a checkpoint says of the run that wrote it, to be freed with resume_close. */
typedef struct {
    const char *path;
    int64_t step;
    uint64_t seed;
    char *data;    /* pn_dataset.what */
    char *plateau; /* of plateau.h; NULL: nothing */
} Resume;
/* Reads it; ends the program when the file is no checkpoint, or of a run with another batch or optimiser. */
Resume resume_open(const char *path, const pn_program *program);
/* The data must be the same, too: the order of samples follows from their number. Ends the program otherwise. */
void resume_check_data(const Resume *resume, const pn_dataset *data);
void resume_close(Resume *resume);

/* Takes the memory; after the inits. every 0: only at the end. */
void checkpoint_open(pn_run *run, const char *path, int64_t every);
/* Behind update `stage->updates`, a multiple of `every`. A file that cannot be written is told, and the run goes on. */
void checkpoint_stage(pn_stage *stage);
/* After the run, unless its last update has been written: NULL, or a message to be freed. */
char *checkpoint_end(pn_run *run);

#endif
