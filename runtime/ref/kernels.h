/* kernels.h: the naive C kernels: pure functions over plain layouts, the numerical oracle of every target.
 *
 * Plain layout: batch leads, then channels, rows, columns; all f32; labels int32. Outputs never alias inputs unless
 * said. Every kernel WRITES its results (callers that add, add afterwards), and has one summation order, written at the
 * kernel. All sums are f32 without contraction (build with -ffp-contract=off), so results are the same bits on every
 * machine, and on small-integer data the same bits as any other order. Losses and softmax calculate in double.
 *
 * Linked twice: into the compiler (its evaluator) and into the runtime library of target ref. */
#ifndef PN_REF_KERNELS_H
#define PN_REF_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

/* ---- kernels_conv.c ---- */
typedef struct {
    int64_t batch, in, height, width, out, out_height, out_width;
    int64_t groups, kernel, stride, pad, dilation;
} ref_conv;
/* Output rows (or columns) of a window over `size`; 0: the window does not fit. */
int64_t ref_conv_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation);
/* y = b + sum over (input channel, kernel row, kernel column); b NULL: from 0. w [out][in/groups][kernel][kernel] */
void ref_conv_forward(const ref_conv *c, const float *x, const float *w, const float *b, float *y);
/* gx = sum over (output channel of the group, kernel row, kernel column) */
void ref_conv_backward_data(const ref_conv *c, const float *gy, const float *w, float *gx);
/* gw, gb = sum over (sample, output row, output column); gb NULL: no bias */
void ref_conv_backward_weights(const ref_conv *c, const float *x, const float *gy, float *gw, float *gb);

/* ---- kernels_linear.c: x [batch][in], w [out][in], y [batch][out] ---- */
/* y = b + sum over in */
void ref_linear_forward(int64_t batch, int64_t in, int64_t out, const float *x, const float *w, const float *b,
                        float *y);
/* gx = sum over out */
void ref_linear_backward_data(int64_t batch, int64_t in, int64_t out, const float *gy, const float *w, float *gx);
/* gw, gb = sum over batch; gb NULL: no bias */
void ref_linear_backward_weights(int64_t batch, int64_t in, int64_t out, const float *x, const float *gy, float *gw,
                                 float *gb);

/* ---- kernels_pool.c ---- */
typedef struct {
    int64_t planes, height, width, out_height, out_width; /* planes: batch * channels */
    int64_t kernel_h, kernel_w, stride, pad;
    bool count_padding; /* avgpool divides by kernel_h * kernel_w always; else by the window's real elements */
} ref_pool;
/* Output rows of a pooling window over `size`; ceil: a last ragged window counts if it starts inside the image or its
 * left padding (PyTorch's and Caffe's rule). 0: the window does not fit. */
int64_t ref_pool_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool ceil);
/* Bytes of the record of one winner: its index in the window in row order, uint8 up to 255 elements, else int32. */
int64_t ref_argmax_bytes(int64_t kernel_h, int64_t kernel_w);
/* The first of equal elements wins. argmax NULL: not recorded. */
void ref_maxpool_forward(const ref_pool *p, const float *x, float *y, void *argmax);
/* gx = sum over (output row, output column) */
void ref_maxpool_backward(const ref_pool *p, const float *gy, const void *argmax, float *gx);
/* y = (sum over (window row, column)) / divisor */
void ref_avgpool_forward(const ref_pool *p, const float *x, float *y);
/* gx = sum over (output row, output column) of gy / divisor */
void ref_avgpool_backward(const ref_pool *p, const float *gy, float *gx);

/* ---- kernels_map.c: element by element ---- */
void ref_relu(float *y, int64_t n);                       /* in place */
void ref_relu_mask(const float *y, float *gy, int64_t n); /* gy = 0 where y <= 0 */
void ref_add(const float *a, const float *b, float *y, int64_t n);
void ref_accumulate(float *to, const float *from, int64_t n); /* to += from */
/* Copies [batch][inner] between a tensor and columns [offset, offset + inner) of a [batch][outer] one. */
void ref_concat_put(int64_t batch, int64_t inner, int64_t outer, int64_t offset, const float *x, float *y);
void ref_concat_get(int64_t batch, int64_t inner, int64_t outer, int64_t offset, const float *y, float *x);
typedef struct {
    int64_t batch, in, height, width, out, stride;
} ref_shortcut;
/* Channels of zeros before the input's; as many, or one more, follow. */
int64_t ref_shortcut_before(const ref_shortcut *s);
/* y = every stride-th row and column of x, between channels of zeros */
void ref_shortcut_forward(const ref_shortcut *s, const float *x, float *y);
void ref_shortcut_backward(const ref_shortcut *s, const float *gy, float *gx);
/* mask[i] = 1: element first + i is kept, as rt.h's pn_dropout_key says. */
void ref_dropout_mask(uint64_t key, double probability, int64_t first, int64_t n, uint8_t *mask);
/* y = mask ? x / (1 - probability) : 0; the backward is the same map. */
void ref_dropout(double probability, int64_t n, const float *x, const uint8_t *mask, float *y);

/* ---- kernels_norm.c: [batch][channels][size]; statistics per channel, over batch and size; sums in double ---- */
typedef struct {
    int64_t batch, channels, size;
} ref_channels;
/* 1 / sqrt(variance + epsilon) */
float ref_norm_inverse(float variance, double epsilon);
/* The variance is biased. */
void ref_norm_statistics(const ref_channels *c, const float *x, float *mean, float *variance);
/* y = (x - mean) * (scale * inverse) + shift */
void ref_norm_forward(const ref_channels *c, double epsilon, const float *x, const float *scale, const float *shift,
                      const float *mean, const float *variance, float *y);
/* gshift = sum of gy, gscale = inverse * sum of gy (x - mean),
 * gx = scale * inverse * (gy - gshift / m - (x - mean) * inverse * gscale / m), m = batch * size; gx NULL: not wanted
 */
void ref_norm_backward(const ref_channels *c, double epsilon, const float *x, const float *gy, const float *scale,
                       const float *mean, const float *variance, float *gx, float *gscale, float *gshift);
/* running = (1 - momentum) running + momentum * this, the variance unbiased */
void ref_norm_track(const ref_channels *c, double momentum, const float *mean, const float *variance,
                    float *running_mean, float *running_variance);

/* ---- kernels_lrn.c: y = x / s^beta, s = k + alpha / window * sum of x^2 over `window` channels around ---- */
enum { REF_LRN_MOST = 31 }; /* channels of a window */
typedef struct {
    ref_channels all;
    int64_t window;
    double alpha, beta, k;
} ref_lrn;
void ref_lrn_forward(const ref_lrn *l, const float *x, float *y);
/* gx = gy / s^beta - 2 alpha beta / window * x * sum of gy y / s over the same channels */
void ref_lrn_backward(const ref_lrn *l, const float *x, const float *gy, float *gx);

/* ---- kernels_loss.c: the mean loss over `count` samples of [count][classes] ---- */
/* Index of the first largest value. */
int64_t ref_argmax(const float *x, int64_t n);
/* -log softmax(x)[label], mean; probability NULL: not stored. correct: how many labels have the largest x. */
double ref_softmax_cross_entropy(int64_t count, int64_t classes, const float *x, const int32_t *label,
                                 float *probability, int64_t *correct);
/* gx = (probability - [label]) / batch; batch: samples of the minibatch, of which these may be a replica's slice. */
void ref_softmax_cross_entropy_backward(int64_t count, int64_t batch, int64_t classes, const float *probability,
                                        const int32_t *label, float *gx);
/* 1/2 mean over the samples of the sum of squares; exactly one of target and label (one-hot) is given. correct: -1
 * without labels. */
double ref_mse(int64_t count, int64_t size, const float *x, const float *target, const int32_t *label,
               int64_t *correct);
/* gx = sign (x - target) / batch, as above; sign -1 gives the gradient of the target. */
void ref_mse_backward(int64_t count, int64_t batch, int64_t size, const float *x, const float *target,
                      const int32_t *label, float sign, float *gx);

#endif
