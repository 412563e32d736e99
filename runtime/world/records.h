/* records.h: what the watcher (control.c) hands on: what ranks send to rank 0 for its log, its checkpoints and its
 * files, and their agreement on an interrupt. Private to world/. */
#ifndef PN_RECORDS_H
#define PN_RECORDS_H

#include "world/peers.h"

/* Makes room for all that is sent and kept while ranks train. Gives the bytes of the largest frame that comes here. */
int64_t records_open(pn_world *world);
void records_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes); /* by the watcher of rank 0 */
void records_send_stages(pn_run *run); /* what was measured, and, if they are wanted, the values of the rank's stages */

/* agree.c, likewise: at each of its ticks; false: the frame is another one's. */
void agree_tick(pn_world *world);
bool agree_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes);

#endif
