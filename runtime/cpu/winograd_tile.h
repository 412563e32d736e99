/* winograd_tile.h: what both halves of winograd.h share: vectors of 16 channels, tiles, and the transform of 6x6
 * pixels. A vector is one register with AVX-512; without it this is right, and slow. */
#ifndef PN_CPU_WINOGRAD_TILE_H
#define PN_CPU_WINOGRAD_TILE_H

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "winograd.h"

/* gcc warns that the way 64-byte vectors are passed depends on -march; here they are passed to inlined functions only.
 */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { LANES = WINOGRAD_LANES, POINTS = 36, SIDE = 6, STEP = 4 };
typedef float vector __attribute__((vector_size(64), aligned(64), may_alias));
#define INLINE     static inline __attribute__((always_inline))
#define AT(array)  (*(const vector *)(array))
#define PUT(array) (*(vector *)(array))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* a b + c, rounded once where there is an instruction for it. */
INLINE vector multiply_add(vector a, vector b, vector c)
{
#ifdef __AVX512F__
    return (vector)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#else
    return a * b + c;
#endif
}

INLINE vector all_of(float number)
{
    const float n = number;
    return (vector){n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n};
}

/* ---- where a tile lies ---- */
typedef struct {
    int64_t image, row, column; /* in tiles */
} tile;
INLINE void tile_next(tile *t, int64_t rows, int64_t columns)
{
    if (++t->column < columns)
        return;
    t->column = 0;
    if (++t->row < rows)
        return;
    t->row = 0;
    t->image++;
}

/* Where the pixels lie that a tile has alone (its lower right 4x4, of the first block of channels), by tile: those of
 * the next block of tiles are fetched into the caches while this one's products are calculated, which takes long
 * enough. Addresses outside of the arrays do no harm. */
INLINE void own_pixels(const float *images, int64_t image, int64_t width, int64_t offset, tile at, int64_t rows,
                       int64_t columns, int tiles, const float **own)
{
    for (int t = 0; t < tiles; t++, tile_next(&at, rows, columns))
        own[t] = images + at.image * image + ((at.row * STEP + offset) * width + at.column * STEP + offset) * LANES;
}
INLINE void fetch_pixels(const float *own, int64_t width, const bool to_write)
{
    for (int i = 0; i < STEP; i++)
        for (int j = 0; j < STEP; j++)
            if (to_write)
                __builtin_prefetch(own + (i * width + j) * LANES, 1, 2);
            else
                __builtin_prefetch(own + (i * width + j) * LANES, 0, 2);
}

/* The pixels of a tile of one block of channels: rows outside the image are a row of zeros, columns outside
 * [first, last) are not to be read. */
typedef struct {
    const float *row[SIDE];
    int first, last;
} pixels;

extern const float winograd_zeros[SIDE * WINOGRAD_LANES];

INLINE pixels pixels_of(const float *plane, int64_t height, int64_t width, int64_t top, int64_t left, int side)
{
    pixels p = {.first = left < 0 ? (int)-left : 0, .last = left + side > width ? (int)(width - left) : side};
    for (int i = 0; i < side; i++) {
        const bool inside = top + i >= 0 && top + i < height;
        p.row[i] = inside ? plane + ((top + i) * width + left) * LANES : winograd_zeros;
    }
    return p;
}

/* ---- B^T d B: a tile of 6x6 pixels into 36 points, `stride` floats apart ---- */
INLINE void points_of_line(const vector *d, float *to, int64_t stride)
{
    const vector four = all_of(4), two = all_of(2);
    const vector even = d[4] - d[2], odd = d[3] - d[1];
    const vector a = multiply_add(-four, d[2], d[4]), b = multiply_add(-four, d[1], d[3]);
    PUT(to) = multiply_add(four, d[0] - d[2], even);
    PUT(to + stride) = a + b;
    PUT(to + 2 * stride) = a - b;
    PUT(to + 3 * stride) = multiply_add(two, odd, even);
    PUT(to + 4 * stride) = multiply_add(-two, odd, even);
    PUT(to + 5 * stride) = multiply_add(-four, odd, d[5] - d[3]);
}

/* In two halves, which leaves registers for three lines each. first, last: constants where it must be fast. */
INLINE void points_of(const pixels *p, int first, int last, float *to, int64_t stride)
{
    const vector four = all_of(4), two = all_of(2), zero = {0};
#define PIXEL(i) (j < first || j >= last ? zero : AT(p->row[i] + j * LANES))
    vector line[3][SIDE];
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        const vector d0 = PIXEL(0), d1 = PIXEL(1), d2 = PIXEL(2), d3 = PIXEL(3), d4 = PIXEL(4);
        const vector even = d4 - d2, odd = d3 - d1;
        line[0][j] = multiply_add(four, d0 - d2, even);
        line[1][j] = multiply_add(two, odd, even);
        line[2][j] = multiply_add(-two, odd, even);
    }
    points_of_line(line[0], to, stride);
    points_of_line(line[1], to + 3 * SIDE * stride, stride);
    points_of_line(line[2], to + 4 * SIDE * stride, stride);
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        const vector d1 = PIXEL(1), d2 = PIXEL(2), d3 = PIXEL(3), d4 = PIXEL(4), d5 = PIXEL(5);
        const vector a = multiply_add(-four, d2, d4), b = multiply_add(-four, d1, d3);
        line[0][j] = a + b;
        line[1][j] = a - b;
        line[2][j] = multiply_add(-four, d3 - d1, d5 - d3);
    }
    points_of_line(line[0], to + 1 * SIDE * stride, stride);
    points_of_line(line[1], to + 2 * SIDE * stride, stride);
    points_of_line(line[2], to + 5 * SIDE * stride, stride);
#undef PIXEL
}

/* All channel blocks of a tile of an image [blocks][height][width][16] whose upper left pixel is (top, left): block b
 * goes to `to + b * block_stride`. */
INLINE void points_of_tile(const float *image, int64_t blocks, int64_t height, int64_t width, int64_t top, int64_t left,
                           float *to, int64_t block_stride, int64_t stride)
{
    for (int64_t b = 0; b < blocks; b++, to += block_stride) {
        const pixels p = pixels_of(image + b * height * width * LANES, height, width, top, left, SIDE);
        if (p.first == 0 && p.last == SIDE)
            points_of(&p, 0, SIDE, to, stride);
        else if (p.first == 1 && p.last == SIDE)
            points_of(&p, 1, SIDE, to, stride);
        else if (p.first == 0 && p.last == SIDE - 1)
            points_of(&p, 0, SIDE - 1, to, stride);
        else
            points_of(&p, p.first, p.last, to, stride);
    }
}

#endif
