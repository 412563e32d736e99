/* IDX files of unsigned bytes: two zero bytes, the type (8), the rank, each dimension as 4 big-endian bytes, the items.
 * Source: Y. LeCun, C. Cortes, "The MNIST database of handwritten digits", file formats. */
#include "data/data.h"

static int64_t big_endian(const uint8_t *b)
{
    return (int64_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | (uint32_t)b[3]);
}

static const char *what_is(int rank)
{
    return rank == 1 ? "labels" : rank == 3 ? "images" : "something else";
}

pn_idx pn_idx_read(const char *path, int rank)
{
    pn_file file = pn_file_read(path);
    int64_t head = 4 + 4 * rank;
    if (file.count < 4)
        pn_fail(NULL, "%s: truncated: %lld bytes are too few for an IDX file", path, (long long)file.count);
    int64_t magic = big_endian(file.bytes);
    if (magic != 0x0800 + rank) {
        if (magic == 0x0801 || magic == 0x0803)
            pn_fail(NULL, "%s: this file holds %s, not %s: are the files swapped?", path, what_is((int)(magic & 0xff)),
                    what_is(rank));
        pn_fail(NULL, "%s: not an IDX file of %s: it starts with 0x%08llx, not 0x%08x", path, what_is(rank),
                (unsigned long long)magic, 0x0800u + (unsigned)rank);
    }
    if (file.count < head)
        pn_fail(NULL, "%s: truncated: the head of an IDX file of %s has %lld bytes, the file %lld", path, what_is(rank),
                (long long)head, (long long)file.count);
    pn_idx idx = {.file = file, .items = file.bytes + head, .dim = {1, 1, 1}};
    int64_t items = 1;
    for (int i = 0; i < rank; i++) {
        idx.dim[i] = big_endian(file.bytes + 4 + 4 * i);
        if (idx.dim[i] == 0)
            pn_fail(NULL, "%s: holds no %s: dimension %d is 0", path, what_is(rank), i);
        if (items > INT64_MAX / 2 / idx.dim[i])
            pn_fail(NULL, "%s: its dimensions are impossible", path);
        items *= idx.dim[i];
    }
    int64_t have = file.count - head;
    if (have != items)
        pn_fail(NULL, "%s: %s: its head promises %lld %s of %lldx%lld, %lld bytes; there are %lld", path,
                have < items ? "truncated" : "too long", (long long)idx.dim[0], what_is(rank), (long long)idx.dim[1],
                (long long)idx.dim[2], (long long)items, (long long)have);
    return idx;
}
