/* plan_area.h: blocks with lifetimes, packed into one piece of memory. */
#ifndef PNETC_PLAN_AREA_H
#define PNETC_PLAN_AREA_H

#include "base.h"

typedef struct {
    int64_t bytes;
    int born, dies; /* inclusive */
    int id;         /* the caller's; also breaks ties, so equal input gives equal offsets */
    int64_t offset; /* out */
} Block;

/* Sets the offsets; returns the bytes of the whole. Near the least possible, not always the least (the problem is
 * NP-hard). Blocks may come back in another order. */
int64_t area_fit(Arena *arena, Block *block, int count);
/* Two blocks that live at one time and overlap, as indices; false: none. May reorder. */
bool area_overlap(Arena *arena, Block *block, int count, int *a, int *b);

#endif
