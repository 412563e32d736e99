/* slots.h: the slots of a channel in shared memory, for transports whose stages are in one process.
 *
 * A slot is free until the producer gives it and full until the consumer is done with it: that flag is all that two
 * stages share, and it orders everything else (release by who changes it, acquire by who finds it changed). Where the
 * stages have replicas, each giver and each taker whose slices of the batch meet have such a flag: a giver has room
 * when all flags of its own are free, a taker finds its slice when all of its own are full. `number`
 * says which minibatch the producer last put there; it stays after the consumer is done, so that the producer may read
 * its own slot again (pn_held) until it takes room for another. */
#ifndef PN_SLOTS_H
#define PN_SLOTS_H

#include <pthread.h>

#include "rt.h"

struct pn_link {
    atomic_int *full;   /* per slot, giver and taker; of those that do not meet: 0 */
    int givers, takers; /* replicas of the stages at its ends */
    bool all;           /* all givers meet all takers */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int sleepers; /* threads that wait for `changed`, or are about to */
    int spins;           /* looks at the flag before it sleeps */
};

void slots_open(pn_run *run, int spins); /* all slots free */
void slots_close(pn_run *run);
/* Has the stage, which gives to the channel, room for its part of minibatch n? Is the part that it takes there?
 * Acquires. */
bool slot_has_room(const pn_stage *stage, const pn_channel *channel, int64_t n);
bool slot_is_there(const pn_stage *stage, const pn_channel *channel, int64_t n);
/* The stage's part of the slot, once that is so. Another minibatch than n found stops the run. */
void *slot_begin(pn_stage *stage, pn_channel *channel, int64_t n);
void *slot_found(pn_stage *stage, pn_channel *channel, int64_t n);
/* The same for a transport that never waits: that it is so is its own business, and else an internal error. */
void *slot_room(pn_stage *stage, pn_channel *channel, int64_t n);
void *slot_take(pn_stage *stage, pn_channel *channel, int64_t n);
/* Publish, release: checked, then the flag changes. */
void slot_give(pn_stage *stage, pn_channel *channel, int64_t n);
void slot_done(pn_stage *stage, pn_channel *channel, int64_t n);

/* "minibatch 7 of pool1 from stage 0", "room for minibatch 7 of pool1 to stage 1": what `stage` waits for. */
const char *slot_describe(const pn_stage *stage, const pn_channel *channel, int64_t n, char *text, size_t size);

#endif
