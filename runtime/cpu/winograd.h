/* winograd.h: convolutions of 3x3 by hand, in Winograd's way: F(4x4, 3x3) of Lavin & Gray, Fast Algorithms for
 * Convolutional Neural Networks (2015), section 4.2: 36 products for 4x4 outputs instead of 144.
 *
 * Of what: stride 1, dilation 1, one group, channels in multiples of 16; images [n, c / 16, h, w, 16], weights
 * [out / 16, in / 16, 3, 3, 16 in, 16 out], which is what oneDNN's direct convolution likes; all arrays aligned to 64
 * bytes. Sizes need not be multiples of 4, padding is exact.
 *
 * How: tiles of 6x6 pixels at steps of 4 are gone through in blocks that stay in the caches. A block's tiles are
 * transformed (36 points each), at each point the channels are multiplied with the transformed weights, with all sums
 * in registers, and the results are transformed back into y. The gradient of x is the same convolution of gy with the
 * weights turned round. For the gradient of the weights, tiles of x and of gy (4x4 -> 36 points) are multiplied and
 * summed over all tiles; one transform at the end gives 3x3.
 *
 * Results are in f32 and differ from direct ones in the last bits, by about 1e-5 of the largest output; the same input
 * gives the same bytes. Images may be done in parts, by several threads, each with a room of its own: y and gx do not
 * depend on the parts; sums of the weights' gradient are added up in the order of the parts. */
#ifndef PN_CPU_WINOGRAD_H
#define PN_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stdint.h>

enum { WINOGRAD_LANES = 16 };
typedef struct {
    int64_t images;
    int64_t in, out; /* channels / 16 of x and of y */
    int64_t height, width, out_height, out_width;
    int pad; /* 0..2 */
    bool relu;
} winograd16;

/* Whether it is known to be faster than direct, to be taken without a measurement: built for AVX-512, at least half of
 * what the tiles cover is output (4x4 is, 2x2 and 5x5 are not), and the minibatch has 16 tiles, so that transforming
 * the weights pays. Measured on Zen 4 with 16 to 512 channels, 2x2 to 32x32 outputs. */
bool winograd_wins(const winograd16 *p);

/* ---- forward, and backward_data (from gy to gx): weights are transformed first, once ---- */
int64_t winograd_weights_floats(const winograd16 *p);
void winograd_weights(const winograd16 *p, bool backward, const float *w, float *transformed);
int64_t winograd_room_floats(const winograd16 *p, bool backward);
/* Images [first, last). bias NULL: none; it and relu are the forward's only. */
void winograd_convolve(const winograd16 *p, bool backward, const float *from, const float *transformed,
                       const float *bias, float *to, int64_t first, int64_t last, float *room);

/* ---- backward_weights ---- */
int64_t winograd_sums_floats(const winograd16 *p);
int64_t winograd_gradient_room_floats(const winograd16 *p);
/* sums = those of images [first, last). */
void winograd_gradient(const winograd16 *p, const float *x, const float *gy, int64_t first, int64_t last, float *sums,
                       float *room);
/* gw and gb (NULL: not wanted) from the sums of `parts` parts, one behind the other. */
void winograd_gradient_end(const winograd16 *p, float *sums, int parts, float *gw, float *gb);

#endif
