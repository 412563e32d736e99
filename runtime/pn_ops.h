/* pn_ops.h: the operations: *_init once, in program order; then forward and backward.
 *
 * Every def: name, tensors x.. (inputs) and y (output). A backward reads gradients in the layout of their value.
 * Pointers given to the verbs must be slots of the areas of the def's tensors. */
#ifndef PN_OPS_H
#define PN_OPS_H

#ifndef PN_H
#error "include pn.h, which includes this file"
#endif

typedef struct {
    const char *name;
    pn_tensor *x, *y;
    pn_param *w, *b; /* b NULL: no bias. w [out, in/groups, kernel, kernel] */
    int groups, kernel, stride, pad, dilation;
    bool relu;          /* y = max(0, conv): fused */
    bool data_gradient; /* the gradient of x is wanted */
} pn_conv_def;
pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def);
void pn_conv_forward(pn_op *op, const pn_value *x, const pn_value *w, const float *b, pn_value *y);
/* With relu, first masks gy in place by y > 0 (pn_relu_mask); these then read the masked gy. */
void pn_conv_backward_data(pn_op *op, const pn_value *gy, const pn_value *w, pn_value *gx); /* writes gx */
void pn_conv_backward_weights(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gw,
                              float *gb); /* writes gw, gb */

typedef struct {
    const char *name;
    pn_tensor *x, *y; /* x may have rank 4: it is read as [batch, c*h*w] in plain order */
    pn_param *w, *b;  /* w [out, features of x] */
    bool relu, data_gradient;
} pn_linear_def;
pn_op *pn_linear_init(pn_stage *stage, const pn_linear_def *def);
void pn_linear_forward(pn_op *op, const pn_value *x, const pn_value *w, const float *b, pn_value *y);
void pn_linear_backward_data(pn_op *op, const pn_value *gy, const pn_value *w, pn_value *gx);
void pn_linear_backward_weights(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gw, float *gb);

/* gy *= (y > 0), in place; y and gy in the layout of tensor t. */
void pn_relu_mask(const pn_tensor *t, const pn_value *y, pn_value *gy);

typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int kernel_h, kernel_w, stride, pad;
    bool relu;          /* maxpool: y = max(0, max of window) */
    bool count_padding; /* avgpool: padded zeros count in the divisor */
    pn_area argmax;     /* maxpool: the ring that forward's argmax points into; memory NULL: none (never a backward) */
} pn_pool_def;
/* argmax: opaque per-target record of the winners, as large as planned (op "maxpool", aux); NULL in a test pass. */
pn_op *pn_maxpool_init(pn_stage *stage, const pn_pool_def *def);
void pn_maxpool_forward(pn_op *op, const pn_value *x, pn_value *y, void *argmax);
void pn_maxpool_backward(pn_op *op, const pn_value *gy, const void *argmax, pn_value *gx);
pn_op *pn_avgpool_init(pn_stage *stage, const pn_pool_def *def);
void pn_avgpool_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_avgpool_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* y = scale (x - mean) / sqrt(variance + epsilon) + shift, per channel (dim[1]). In training mean and (biased) variance
 * are those of the minibatch: forward writes them to `statistics` (mean of each channel, then the variances), backward
 * reads them there. A test pass takes the running ones, which every backward moves: running = (1 - momentum) running +
 * momentum * the minibatch's, the variance unbiased (PyTorch's conventions): after update m they hold minibatches 1 ..
 * m, in any order. */
typedef struct {
    const char *name;
    pn_tensor *x, *y; /* of rank 2 or 4 */
    pn_tensor *skip;  /* added behind shift; NULL: nothing, and the verbs' skip and gskip are NULL */
    pn_param *scale, *shift, *mean, *variance; /* mean, variance: running */
    double epsilon, momentum;
    pn_area statistics; /* the ring that the verbs' statistics point into: 2 * channels floats a slot */
    bool relu;          /* y = max(0, ...), behind the sum with skip: fused */
} pn_batch_norm_def;
pn_op *pn_batch_norm_init(pn_stage *stage, const pn_batch_norm_def *def);
void pn_batch_norm_forward(pn_op *op, const pn_value *x, const pn_value *skip, const float *scale, const float *shift,
                           float *statistics, pn_value *y);
/* With relu, y is read, only gy where y > 0 counts, and gy may be left masked; else y may be NULL. gx, gskip NULL: not
 * wanted; gskip becomes the gy that counts. */
void pn_batch_norm_backward(pn_op *op, const pn_value *x, const pn_value *y, pn_value *gy, const float *scale,
                            const float *statistics, pn_value *gx, pn_value *gskip, float *gscale, float *gshift);
void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance);
void pn_batch_norm_test(pn_op *op, const pn_value *x, const pn_value *skip, const float *scale, const float *shift,
                        const float *running_mean, const float *running_variance, pn_value *y);

/* Pointwise chains are loops of the generated code; n elements. One of x, y is NULL in backward: what it does not read.
 */
typedef void pn_pointwise_forward_fn(const float *restrict x, float *restrict y, int64_t n);
typedef void pn_pointwise_backward_fn(const float *restrict saved, const float *restrict gy, float *restrict gx,
                                      int64_t n);
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    pn_pointwise_forward_fn *forward;
    pn_pointwise_backward_fn *backward;
    bool reads_x;    /* backward's `saved` is x; else y */
    bool keeps_zero; /* f(0) = 0: may run over padded lanes */
} pn_pointwise_def;
pn_op *pn_pointwise_init(pn_stage *stage, const pn_pointwise_def *def);
void pn_pointwise_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_pointwise_backward(pn_op *op, const pn_value *saved, const pn_value *gy, pn_value *gx);

typedef struct {
    const char *name;
    pn_tensor *a, *b, *y;
    bool relu;
} pn_add_def;
pn_op *pn_add_init(pn_stage *stage, const pn_add_def *def);
void pn_add_forward(pn_op *op, const pn_value *a, const pn_value *b, pn_value *y);
/* input 0: a, 1: b. Writes the gradient of that input (gy masked before, if relu). */
void pn_add_backward(pn_op *op, int input, const pn_value *gy, pn_value *gx);

enum { PN_MAX_CONCAT = 32 };
typedef struct {
    const char *name;
    pn_tensor *x[PN_MAX_CONCAT]; /* joined along dim[1] */
    int count;
    pn_tensor *y;
} pn_concat_def;
pn_op *pn_concat_init(pn_stage *stage, const pn_concat_def *def);
void pn_concat_forward(pn_op *op, int input, const pn_value *x, pn_value *y); /* copies one input into its place */
void pn_concat_backward(pn_op *op, int input, const pn_value *gy, pn_value *gx);

typedef struct {
    const char *name;
    pn_tensor *x, *y; /* y [batch, c*h*w], plain order */
} pn_flatten_def;
pn_op *pn_flatten_init(pn_stage *stage, const pn_flatten_def *def);
void pn_flatten_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_flatten_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* y = x / s^beta, s = k + alpha / size * the sum of x^2 over `size` channels around (Caffe's scaling). */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int size;
    double alpha, beta, k;
} pn_lrn_def;
pn_op *pn_lrn_init(pn_stage *stage, const pn_lrn_def *def);
void pn_lrn_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_lrn_backward(pn_op *op, const pn_value *x, const pn_value *gy, pn_value *gx);

/* y = every stride-th row and column of x, between channels of zeros: (channels of y - of x) / 2 before, the rest
 * behind. */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    int stride;
} pn_shortcut_def;
pn_op *pn_shortcut_init(pn_stage *stage, const pn_shortcut_def *def);
void pn_shortcut_forward(pn_op *op, const pn_value *x, pn_value *y);
void pn_shortcut_backward(pn_op *op, const pn_value *gy, pn_value *gx);

/* Inverted dropout: y = x * mask / (1 - p); the mask is a function of (seed, name, minibatch, plain element index)
 * only. */
typedef struct {
    const char *name;
    pn_tensor *x, *y;
    double probability; /* of zero */
} pn_dropout_def;
pn_op *pn_dropout_init(pn_stage *stage, const pn_dropout_def *def);
void pn_dropout_forward(pn_op *op, int64_t minibatch, const pn_value *x, pn_value *y,
                        uint8_t *mask); /* mask: a byte an element */
void pn_dropout_backward(pn_op *op, const pn_value *gy, const uint8_t *mask, pn_value *gx);
void pn_dropout_test(pn_op *op, const pn_value *x, pn_value *y); /* y = x */

/* Losses: the mean over the minibatch, reported to the run by forward and test. */
typedef struct {
    const char *name;
    pn_tensor *x, *target; /* mse: target may be a tensor of x's shape, or labels (rank 1: one-hot) */
} pn_loss_def;
pn_op *pn_softmax_cross_entropy_init(pn_stage *stage, const pn_loss_def *def);
void pn_softmax_cross_entropy_forward(pn_op *op, int64_t minibatch, const pn_value *x, const int32_t *label,
                                      float *probability);
void pn_softmax_cross_entropy_backward(pn_op *op, const float *probability, const int32_t *label, pn_value *gx);
void pn_softmax_cross_entropy_test(pn_op *op, int64_t n, const pn_value *x, const int32_t *label);
pn_op *pn_mse_init(pn_stage *stage, const pn_loss_def *def);
/* 1/2 mean over the batch of the sum of squares over a sample's elements (Caffe's EuclideanLoss): gradient (x - t) /
 * batch */
void pn_mse_forward(pn_op *op, int64_t minibatch, const pn_value *x, const void *target);
void pn_mse_backward(pn_op *op, const pn_value *x, const void *target, int input,
                     pn_value *gx); /* input 0: x, 1: target tensor */
void pn_mse_test(pn_op *op, int64_t n, const pn_value *x, const void *target);

/* to += from, to = from: a gradient or value of tensor t, in its layout. */
void pn_accumulate(const pn_tensor *t, pn_value *to, const pn_value *from);
void pn_copy(const pn_tensor *t, pn_value *to, const pn_value *from);

#endif
