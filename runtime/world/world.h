/* world.h: several processes, the ranks, that run one program together: each a contiguous group of its stages, on a
 * device of its own.
 *
 * Ranks are started by mpirun, srun or torchrun, or by hand with RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT
 * (launch.c). Rank r of R runs stages r S/R .. (r + 1) S/R - 1. Every rank keeps a TCP connection to rank 0; what
 * stages give each other goes another way (pn_target_exchange). Rank 0 prints, and writes all files: losses and weights
 * come to it.
 *
 * Its life:
 *   world_open    before the device is opened: all ranks have come, and run the same program with the same options
 *   world_meet    each knows its device: rank 0 prints the table of ranks; no two share a device
 *   world_ready   operations, plans and kernels are made, weights are set: now the ranks are connected (NCCL), and a thread
 *                 begins to watch over the connections
 *   world_end     this rank is done; returns when all are
 *
 * The first failure of any rank ends all of them: its message goes to all, what waits for others is aborted. So does a
 * rank that is gone (its connection ends), and a run of which no rank does a step in run->timeout seconds. */
#ifndef PN_WORLD_H
#define PN_WORLD_H

#include "core/log.h"
#include "core/options.h"
#include "rt.h"

enum { WORLD_TEXT = 192 }; /* of a message's part, with its 0 */

/* NULL in run->world: one process, or a target that knows no ranks. Takes from `options` what other ranks than 0 must
 * not do. Ends the program when the ranks do not come together. */
void world_open(pn_run *run, pn_options *options);
void world_meet(pn_run *run, bool quiet);
bool world_ready(pn_run *run); /* false: the run has been stopped */
bool world_end(pn_run *run);   /* likewise */

int world_rank(const pn_run *run);                   /* 0 without a world */
int world_size(const pn_run *run);                   /* 1 without a world */
int world_first(const pn_world *world, int rank);    /* its first stage */
int world_rank_of(const pn_world *world, int stage); /* which rank runs it */
int world_local(const pn_run *run);                  /* number of the device; 0 without a world */

/* This rank has failed (run->error): tells the others, once. Gives the exit status: that of the rank that failed
 * first. */
int world_failed(pn_run *run, int status);

/* Behind world_ready: from now on what run->begun says is meant, and an interrupt at any rank closes it on all of them
 * behind the same minibatch (core/interrupt.h). */
void world_begins(pn_run *run);
void world_interrupt(pn_run *run); /* from the signal handler */
bool world_agreed(pn_run *run);    /* waits until the ranks have agreed; false: the run has been stopped */

/* What the rank does, in a few words, for the watchdog's message. */
void world_doing(pn_run *run, const char *text);

/* To rank 0 and its log. */
void world_interval(pn_run *run, const Interval *interval, int phase);
void world_test(pn_run *run, const TestResult *result, double images_per_second);
/* To rank 0: the values of a stage, for the checkpoint of this step. */
void world_checkpoint(pn_stage *stage);

#endif
