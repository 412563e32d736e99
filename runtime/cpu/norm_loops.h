/* norm_loops.h: the loops of batch normalisation over blocks of 16 or 8 channels. What is known per lane is an array of
 * WIDTH, written twice for 8 lanes (norm_repeat); padded lanes hold zeros, which makes theirs of the results zero.
 *
 * Order of sums: f32 over at least CHUNK rows (FLOWS sums side by side, joined in order), then double, samples
 * ascending; those of threads, which have neighbouring samples, are joined in order: the last bits depend on how many
 * there are. On small integers the mean has the bits of the naive kernels, the variance and the gradients differ in the
 * last. */
#ifndef PN_CPU_NORM_LOOPS_H
#define PN_CPU_NORM_LOOPS_H

#include <stdbool.h>
#include <stdint.h>

enum { NORM_WIDTH = 16 };
typedef float norm_lanes[NORM_WIDTH] __attribute__((aligned(64)));

/* One block of channels of one sample is `rows` rows of `lanes` floats; samples are `sample` floats apart. */
typedef struct {
    int64_t batch, rows, sample;
    int lanes, threads; /* threads: they share the samples */
} norm_block;

/* Images or their gradients, all in blocks of the same channels; NULL: not there. */
typedef struct {
    const float *x, *skip, *y, *gy; /* y: behind a relu */
    float *gskip, *to;              /* to: y of a forward, gx of a backward */
} norm_images;
norm_images norm_images_at(const norm_images *all, int64_t at);

void norm_repeat(float *lane, int lanes);
void norm_statistics(const norm_block *b, const float *x, float *mean, float *variance);
/* to = (x - mean) factor + shift + skip, with relu its positive part */
void norm_apply(const norm_block *b, const norm_images *all, const float *mean, const float *factor, const float *shift,
                bool relu);
/* sum of g and of g (x - mean), g = gy where y > 0, or everywhere without y; gskip = g */
void norm_products(const norm_block *b, const norm_images *all, const float *mean, double *sum, double *product);
/* to = factor (g - level - (x - mean) slope); behind norm_products */
void norm_spread(const norm_block *b, const norm_images *all, const float *mean, const float *factor,
                 const float *level, const float *slope);

#endif
