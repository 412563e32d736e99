/* records.h: what ranks send to rank 0 for its log, its checkpoints and its files. Private to world/. */
#ifndef PN_RECORDS_H
#define PN_RECORDS_H

#include "world/world.h"

void records_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes); /* by the watcher of rank 0 */
void records_send_stages(pn_run *run); /* what was measured, and, if they are wanted, the values of the rank's stages */

#endif
