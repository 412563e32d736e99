/* algorithms.h: the choice of an algorithm for each pass of the operations that have one, kept in a file so that a run
 * repeats: another choice sums in another order. Without --algorithms a target's own rule of shapes says what is known
 * to be faster, the same in every run; with --exact everything is direct.
 *
 * The file is text, times in microseconds of processor time, an op line for each pass, in the order of the program
 * (passes of the same shapes in a stage are measured once and chosen alike):
 *
 *     algorithms 1
 *     program resnet
 *     batch 128
 *     library oneDNN 2.6.3
 *     isa avx512_core_bf16
 *     op conv2 backward_data winograd 5400.2 5150.9     name, pass, choice; direct, winograd (-: there is none)
 *
 * On a GPU (target cuda) the choice is an engine of cuDNN with its settings (cuda/plan.h), the times, those of the GPU,
 * are of the engine that cuDNN lists first and of the best other one; isa tells the GPU, what values are stored as
 * (bf16; else f32) and how convolutions may compute:
 *
 *     isa sm_90 NVIDIA H200, tf32
 *     op conv2 forward 39:1=4:13=0 12.1 9.8
 *
 * A file of another program, batch, library or machine is refused, and one that lacks a line or has one too many: what
 * is wrong is said with the number of the line. Lines may be edited by hand. */
#ifndef PN_ALGORITHMS_H
#define PN_ALGORITHMS_H

#include "rt.h"

/* Another way's results differ from the first one's in the last bits: it must win something. */
#define ALGORITHMS_GAIN 0.03

typedef struct {
    const char *op, *pass, *choice;
    double microseconds[PN_ALGORITHMS]; /* of the first way and of the other */
    bool possible;                      /* there is another */
    int line;                           /* of the file */
    bool claimed;                       /* by an init */
} AlgorithmLine;

struct pn_algorithms {
    const char *path;
    bool measures; /* there was no file */
    bool engines;  /* choices are engines */
    AlgorithmLine *line;
    int count, room;
};

/* Before the inits: reads the file, or finds that it can be written. Ends the program with a message. */
void algorithms_open(pn_run *run, const char *path);
void algorithms_check(const pn_run *run); /* after the inits: every line was asked for, maybe by other ranks */
void algorithms_write(const pn_run *run); /* after the measurement */
void algorithms_tell(const pn_run *run);  /* one line on stdout */

#endif
