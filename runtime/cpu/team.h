/* team.h: the OpenMP threads of a stage: the library's and those of the hand-written kernels are the same ones.
 *
 * The library bakes their number into primitives at creation and reads it again, from the calling thread, when it runs
 * them; threads do not inherit it. So every thread that creates or runs anything says it first. */
#ifndef PN_CPU_TEAM_H
#define PN_CPU_TEAM_H

#include "rt.h"

enum { TEAM_MOST = 256 }; /* threads of a stage */
/* The number of OpenMP threads that the calling thread works with from now on. */
void team_set(int threads);
/* Ends the program if OpenMP gives the calling thread fewer of them, as OMP_THREAD_LIMIT makes it. */
void team_check(int threads);
/* pn_target_split of rt.h, for those who have no stage at hand. */
void team_split(int threads, int64_t count, int64_t unit, pn_part_fn *work, void *data);

#endif
