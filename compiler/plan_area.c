/* plan_area.c: packing of blocks with lifetimes. Three heuristics, the best result is taken:
 *
 *   forward in time, best fit       good where blocks shrink (a forward pass)
 *   backward in time, best fit      good where blocks grow (a backward pass)
 *   largest first, lowest gap       good for tangled lifetimes; quadratic, so only for few blocks
 *
 * (greedy by size: Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference".) The first to
 * reach the largest sum of live blocks, which no layout can beat, ends the search. Sweeps take count x live blocks. */
#include "plan_area.h"

#include <stdlib.h>

enum { MOST_BY_SIZE = 512 };

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_birth(const void *x, const void *y)
{
    const Block *a = x, *b = y;
    int order = sign(a->born, b->born);
    if (!order)
        order = sign(b->bytes, a->bytes);
    return order ? order : sign(a->id, b->id);
}

static int by_death(const void *x, const void *y)
{
    const Block *a = x, *b = y;
    int order = sign(b->dies, a->dies);
    if (!order)
        order = sign(b->bytes, a->bytes);
    return order ? order : sign(a->id, b->id);
}

static int by_size(const void *x, const void *y)
{
    const Block *a = x, *b = y;
    const int order = sign(b->bytes, a->bytes);
    return order ? order : by_birth(x, y);
}

static int by_id(const void *x, const void *y)
{
    return sign(((const Block *)x)->id, ((const Block *)y)->id);
}

static bool meet(const Block *a, const Block *b)
{
    return a->born <= b->dies && b->born <= a->dies;
}

/* Blocks in place, ascending by offset. */
typedef struct {
    const Block **at;
    int count;
} Row;

static void row_insert(Row *row, const Block *block)
{
    int i = row->count++;
    for (; i > 0 && row->at[i - 1]->offset > block->offset; i--)
        row->at[i] = row->at[i - 1];
    row->at[i] = block;
}

/* The smallest gap between the blocks of the row (or between the last of them and `top`) that holds `bytes`; else the
 * end. Blocks of the row may overlap one another. */
static int64_t best_gap(const Row *row, int64_t bytes, int64_t top)
{
    int64_t end = 0, best = -1, best_size = INT64_MAX;
    for (int i = 0; i <= row->count; i++) {
        const int64_t start = i < row->count ? row->at[i]->offset : top;
        if (start - end >= bytes && start - end < best_size) {
            best = end;
            best_size = start - end;
        }
        if (i < row->count && row->at[i]->offset + row->at[i]->bytes > end)
            end = row->at[i]->offset + row->at[i]->bytes;
    }
    return best >= 0 ? best : end;
}

static int64_t place(Block *block, const Row *row, int64_t top)
{
    block->offset = best_gap(row, block->bytes, top);
    return block->offset + block->bytes > top ? block->offset + block->bytes : top;
}

static int64_t fit_sweep(Row *row, Block *block, int count, bool backward)
{
    int64_t top = 0;
    qsort(block, (size_t)count, sizeof *block, backward ? by_death : by_birth);
    row->count = 0;
    for (int i = 0; i < count; i++) {
        int live = 0;
        for (int k = 0; k < row->count; k++)
            if (meet(row->at[k], &block[i]))
                row->at[live++] = row->at[k];
        row->count = live;
        top = place(&block[i], row, top);
        row_insert(row, &block[i]);
    }
    return top;
}

static int64_t fit_by_size(Row *row, Block *block, int count)
{
    int64_t top = 0;
    qsort(block, (size_t)count, sizeof *block, by_size);
    for (int i = 0; i < count; i++) {
        row->count = 0;
        for (int k = 0; k < i; k++)
            if (meet(&block[k], &block[i]))
                row_insert(row, &block[k]);
        top = place(&block[i], row, top);
    }
    return top;
}

/* The largest sum of bytes that live at one time. */
static int64_t most_live(Row *row, Block *block, int count)
{
    int64_t most = 0, sum = 0;
    qsort(block, (size_t)count, sizeof *block, by_birth);
    row->count = 0;
    for (int i = 0; i < count; i++) {
        int live = 0;
        for (int k = 0; k < row->count; k++)
            if (row->at[k]->dies >= block[i].born)
                row->at[live++] = row->at[k];
            else
                sum -= row->at[k]->bytes;
        row->count = live;
        row->at[row->count++] = &block[i];
        sum += block[i].bytes;
        most = sum > most ? sum : most;
    }
    return most;
}

int64_t area_fit(Arena *arena, Block *block, int count)
{
    const size_t room = (size_t)count + 1;
    Row row = {arena_alloc(arena, room * sizeof *row.at), 0};
    int64_t *best = arena_alloc(arena, room * sizeof *best);
    const int64_t least = most_live(&row, block, count);
    int64_t best_top = INT64_MAX;
    for (int way = 0; way < 3 && best_top > least; way++) {
        if (way == 2 && count > MOST_BY_SIZE)
            break;
        const int64_t top = way == 2 ? fit_by_size(&row, block, count) : fit_sweep(&row, block, count, way == 1);
        if (top >= best_top)
            continue;
        best_top = top;
        qsort(block, (size_t)count, sizeof *block, by_id);
        for (int i = 0; i < count; i++)
            best[i] = block[i].offset;
    }
    qsort(block, (size_t)count, sizeof *block, by_id);
    for (int i = 0; i < count; i++)
        block[i].offset = best[i];
    return count ? best_top : 0;
}

bool area_overlap(Arena *arena, Block *block, int count, int *a, int *b)
{
    Row row = {arena_alloc(arena, ((size_t)count + 1) * sizeof *row.at), 0};
    qsort(block, (size_t)count, sizeof *block, by_birth);
    for (int i = 0; i < count; i++) {
        int live = 0;
        for (int k = 0; k < row.count; k++)
            if (row.at[k]->dies >= block[i].born)
                row.at[live++] = row.at[k];
        row.count = live;
        for (int k = 0; k < row.count; k++)
            if (row.at[k]->offset < block[i].offset + block[i].bytes &&
                block[i].offset < row.at[k]->offset + row.at[k]->bytes) {
                *a = row.at[k]->id;
                *b = block[i].id;
                return true;
            }
        row.at[row.count++] = &block[i];
    }
    return false;
}
