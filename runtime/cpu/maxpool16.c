/* maxpool16.c: max pooling over layouts of 16-channel blocks, relu fused: about twice as fast as the library. The
 * record of winners is a byte for a stored output: the index in the window, in row order; the first of equal elements
 * wins, as in the naive kernel. Sums of the backward run over output rows, then columns. */
#include "maxpool16.h"

#include <string.h>

/* gcc warns that the way 64-byte vectors are passed depends on -march; here they are passed to inlined functions only.
 */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef float floats __attribute__((vector_size(64), aligned(64)));
typedef int32_t ints __attribute__((vector_size(64), aligned(64)));
enum { LANES = 16 };

#define INLINE static inline __attribute__((always_inline))

/* C has no ?: on vectors; mask lanes are all ones or all zeros. */
#define SELECT_INTS(mask, yes, no) (((mask) & (yes)) | (~(mask) & (no)))
#define SELECT(mask, yes, no)      ((floats)SELECT_INTS(mask, (ints)(yes), (ints)(no)))

/* The shape once more, with what a caller knows while compiling as constants: the loops over a window unroll. */
typedef struct {
    int64_t kernel_h, kernel_w;
    bool whole; /* every window lies inside the image */
} known;

/* Loops that the compilers turn into one instruction; gcc 12 takes __builtin_convertvector lane by lane. */
INLINE ints load_bytes(const uint8_t *from)
{
    union {
        int32_t lane[LANES];
        ints all;
    } wide;
    for (int i = 0; i < LANES; i++)
        wide.lane[i] = from[i];
    return wide.all;
}
INLINE void store_bytes(uint8_t *restrict to, const ints *all)
{
    int32_t lane[LANES];
    memcpy(lane, all, sizeof lane);
    for (int i = 0; i < LANES; i++)
        to[i] = (uint8_t)lane[i];
}

/* Window rows or columns [from, to) that lie inside the image. */
typedef struct {
    int64_t from, to;
} taps;
INLINE taps inside(const known *k, int64_t start, int64_t kernel, int64_t size)
{
    if (k->whole)
        return (taps){0, kernel};
    return (taps){start < 0 ? -start : 0, start + kernel > size ? size - start : kernel};
}

INLINE void forward(const maxpool16 *p, known k, const floats *in, floats *y, uint8_t *winner)
{
    const floats zero = {0};
    for (int64_t row = 0; row < p->out_height; row++) {
        const int64_t top = row * p->stride - p->pad;
        const taps rows = inside(&k, top, k.kernel_h, p->height);
        for (int64_t column = 0; column < p->out_width; column++) {
            const int64_t left = column * p->stride - p->pad;
            const taps columns = inside(&k, left, k.kernel_w, p->width);
            floats best = in[(top + rows.from) * p->width + left + columns.from];
            ints index = (ints){0} + (int32_t)(rows.from * k.kernel_w + columns.from);
            for (int64_t i = rows.from; i < rows.to; i++)
                for (int64_t j = columns.from; j < columns.to; j++) {
                    const floats value = in[(top + i) * p->width + left + j];
                    const ints greater = value > best;
                    best = SELECT(greater, value, best);
                    index = SELECT_INTS(greater, (ints){0} + (int32_t)(i * k.kernel_w + j), index);
                }
            *y++ = p->relu ? SELECT(best > zero, best, zero) : best;
            if (winner) {
                store_bytes(winner, &index);
                winner += LANES;
            }
        }
    }
}

INLINE void backward(const maxpool16 *p, known k, const floats *gy, const uint8_t *winner, floats *gx)
{
    const floats zero = {0};
    memset(gx, 0, (size_t)(p->height * p->width) * sizeof *gx); /* a plane stays in the cache; reads nothing before */
    for (int64_t row = 0; row < p->out_height; row++) {
        const int64_t top = row * p->stride - p->pad;
        const taps rows = inside(&k, top, k.kernel_h, p->height);
        for (int64_t column = 0; column < p->out_width; column++) {
            const int64_t left = column * p->stride - p->pad;
            const taps columns = inside(&k, left, k.kernel_w, p->width);
            const floats gradient = *gy++;
            const ints index = load_bytes(winner);
            winner += LANES;
            for (int64_t i = rows.from; i < rows.to; i++)
                for (int64_t j = columns.from; j < columns.to; j++) {
                    floats *at = &gx[(top + i) * p->width + left + j];
                    const ints won = index == (ints){0} + (int32_t)(i * k.kernel_w + j);
                    *at += SELECT(won, gradient, zero);
                }
        }
    }
}

static known known_of(const maxpool16 *p)
{
    const int64_t bottom = (p->out_height - 1) * p->stride + p->kernel_h,
                  right = (p->out_width - 1) * p->stride + p->kernel_w;
    return (known){p->kernel_h, p->kernel_w, p->pad == 0 && bottom <= p->height && right <= p->width};
}

void maxpool16_forward(const maxpool16 *p, const float *x, float *y, uint8_t *winner)
{
    const known k = known_of(p);
    const int64_t in = p->height * p->width, out = p->out_height * p->out_width;
    for (int64_t plane = 0; plane < p->planes; plane++) {
        const floats *from = (const floats *)x + plane * in;
        floats *to = (floats *)y + plane * out;
        uint8_t *record = winner ? winner + plane * out * LANES : NULL;
        if (k.whole && k.kernel_h == 2 && k.kernel_w == 2)
            forward(p, (known){2, 2, true}, from, to, record);
        else if (k.whole && k.kernel_h == 3 && k.kernel_w == 3)
            forward(p, (known){3, 3, true}, from, to, record);
        else
            forward(p, k, from, to, record);
    }
}

void maxpool16_backward(const maxpool16 *p, const float *gy, const uint8_t *winner, float *gx)
{
    const known k = known_of(p);
    const int64_t in = p->height * p->width, out = p->out_height * p->out_width;
    for (int64_t plane = 0; plane < p->planes; plane++) {
        const floats *from = (const floats *)gy + plane * out;
        floats *to = (floats *)gx + plane * in;
        const uint8_t *record = winner + plane * out * LANES;
        if (k.whole && k.kernel_h == 2 && k.kernel_w == 2)
            backward(p, (known){2, 2, true}, from, record, to);
        else if (k.whole && k.kernel_h == 3 && k.kernel_w == 3)
            backward(p, (known){3, 3, true}, from, record, to);
        else
            backward(p, k, from, record, to);
    }
}
