/* norm.c: batch normalisation of images in blocks of 16 or 8 channels by own loops; vectors [batch, n] by the naive
 * kernels. Why not the library's: its training forward with relu and each of its backwards want a workspace kept for
 * every minibatch in flight, and it reads x three times in the forward. Here the forward reads x twice: sums of x - k
 * and of (x - k)^2 in one pass, k an element of the channel, so that nothing cancels.
 *
 * Order of sums: rows of at most CHUNK in f32, chunks in double, samples ascending. On small integers the mean has the
 * bits of the naive kernels, the variance and gradients differ in the last. Padded lanes become zero. */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include "ref/kernels.h"

typedef float eight __attribute__((vector_size(32), may_alias));
typedef int32_t eight_masks __attribute__((vector_size(32), may_alias));
#define INLINE static inline __attribute__((always_inline))

enum { WIDTH = 8, MOST_LANES = 16, CHUNK = 1024 };

/* One block of channels of one sample is `rows` rows of `lanes` floats; samples are `sample` floats apart. */
typedef struct {
    int64_t batch, rows, sample;
    int lanes;
} block;

/* Per lane of a block; zero in padded lanes. */
typedef float lane_floats[MOST_LANES] __attribute__((aligned(64)));
typedef double lane_doubles[MOST_LANES];

static void add(double *to, const float *from, int lanes)
{
    for (int l = 0; l < lanes; l++)
        to[l] += from[l];
}

/* to += sum of (x - k), squares += sum of (x - k)^2, over rows */
INLINE void moments(const float *x, const float *k, int64_t rows, double *to, double *squares, const int lanes)
{
    const int vectors = lanes / WIDTH;
    eight sum[MOST_LANES / WIDTH] = {{0}}, square[MOST_LANES / WIDTH] = {{0}};
    for (const float *end = x + rows * lanes; x < end; x += lanes)
        for (int v = 0; v < vectors; v++) {
            const eight off = ((const eight *)x)[v] - ((const eight *)k)[v];
            sum[v] += off;
            square[v] += off * off;
        }
    add(to, (const float *)sum, lanes);
    add(squares, (const float *)square, lanes);
}

/* to += sum of gy, products += sum of gy (x - mean), over rows */
INLINE void products_of(const float *x, const float *gy, const float *mean, int64_t rows, double *to, double *products,
                        const int lanes)
{
    const int vectors = lanes / WIDTH;
    eight sum[MOST_LANES / WIDTH] = {{0}}, product[MOST_LANES / WIDTH] = {{0}};
    for (const float *end = x + rows * lanes; x < end; x += lanes, gy += lanes)
        for (int v = 0; v < vectors; v++) {
            const eight g = ((const eight *)gy)[v];
            sum[v] += g;
            product[v] += g * (((const eight *)x)[v] - ((const eight *)mean)[v]);
        }
    add(to, (const float *)sum, lanes);
    add(products, (const float *)product, lanes);
}

/* y = (x - mean) factor + shift, with relu its positive part */
INLINE void apply(const float *restrict x, float *restrict y, const float *mean, const float *factor,
                  const float *shift, int64_t rows, bool relu, const int lanes)
{
    const int vectors = lanes / WIDTH;
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * vectors + v;
            const eight result = (((const eight *)x)[at] - ((const eight *)mean)[v]) * ((const eight *)factor)[v] +
                                 ((const eight *)shift)[v];
            ((eight *)y)[at] = relu ? (eight)((eight_masks)result & (result > 0.0f)) : result;
        }
}

/* gx = factor (gy - level - (x - mean) slope) */
INLINE void spread(const float *restrict x, const float *restrict gy, float *restrict gx, const float *mean,
                   const float *factor, const float *level, const float *slope, int64_t rows, const int lanes)
{
    const int vectors = lanes / WIDTH;
    for (int64_t r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v++) {
            const int64_t at = r * vectors + v;
            ((eight *)gx)[at] = ((const eight *)factor)[v] *
                                (((const eight *)gy)[at] - ((const eight *)level)[v] -
                                 (((const eight *)x)[at] - ((const eight *)mean)[v]) * ((const eight *)slope)[v]);
        }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void block_statistics(const block *b, const float *x, float *mean, float *variance)
{
    const double m = (double)(b->batch * b->rows);
    lane_floats k;
    lane_doubles sum = {0}, square = {0};
    memcpy(k, x + b->rows / 2 * b->lanes, sizeof *k * (size_t)b->lanes);
    for (int64_t n = 0; n < b->batch; n++)
        for (int64_t r = 0; r < b->rows; r += CHUNK) {
            const float *from = x + n * b->sample + r * b->lanes;
            if (b->lanes == 16)
                moments(from, k, least(CHUNK, b->rows - r), sum, square, 16);
            else
                moments(from, k, least(CHUNK, b->rows - r), sum, square, 8);
        }
    for (int l = 0; l < b->lanes; l++) {
        const double off = sum[l] / m;
        mean[l] = (float)((sum[l] + k[l] * m) / m);
        variance[l] = (float)fmax(0, square[l] / m - off * off);
    }
}

static void block_products(const block *b, const float *x, const float *gy, const float *mean, double *sum,
                           double *product)
{
    for (int64_t n = 0; n < b->batch; n++)
        for (int64_t r = 0; r < b->rows; r += CHUNK) {
            const int64_t at = n * b->sample + r * b->lanes;
            if (b->lanes == 16)
                products_of(x + at, gy + at, mean, least(CHUNK, b->rows - r), sum, product, 16);
            else
                products_of(x + at, gy + at, mean, least(CHUNK, b->rows - r), sum, product, 8);
        }
}

/* ---- the op ---- */

static bool is_image(const pn_batch_norm_def *d)
{
    return d->x->rank == 4;
}

static ref_channels shape_of(const pn_batch_norm_def *d)
{
    const int64_t *x = d->x->dim;
    return (ref_channels){x[0], x[1], is_image(d) ? x[2] * x[3] : 1};
}

pn_op *pn_batch_norm_init(pn_stage *stage, const pn_batch_norm_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_batch_norm_def *d = &op->def.batch_norm;
    op->def.batch_norm = *def;
    const ref_channels all = shape_of(d);
    if (d->statistics.memory && d->statistics.bytes < 2 * all.channels * (int64_t)sizeof(float))
        pn_fail(NULL, "internal error: %s: %lld bytes were planned for the statistics of %lld channels", d->name,
                (long long)d->statistics.bytes, (long long)all.channels);
    const pn_layout *x = cpu_layout(stage, d->x);
    dnn_layout work = x->plain;
    if (is_image(d)) {
        op->lanes = dnn_same(x->stored, dnn_blocked(d->x->dim, 8)) ? 8 : 16;
        work = dnn_blocked(d->x->dim, op->lanes);
    }
    const pn_layout *y = cpu_choose(stage, d->y, work);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, work, false);
    cpu_call_port(&op->forward, &op->y, 0, work, true);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->x, 0, work, false);
    cpu_call_port(&op->backward_data, &op->y, 0, work, false);
    cpu_call_port(&op->backward_data, &op->x, 0, work, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

static block block_of(const pn_op *op)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    const int64_t blocks = (all.channels + op->lanes - 1) / op->lanes;
    return (block){all.batch, all.size, blocks * all.size * op->lanes, op->lanes};
}

static void normalise(const pn_op *op, const float *x, const float *scale, const float *shift, const float *mean,
                      const float *variance, float *y)
{
    const pn_batch_norm_def *d = &op->def.batch_norm;
    const ref_channels all = shape_of(d);
    if (!is_image(d)) {
        ref_norm_forward(&all, d->epsilon, x, scale, shift, mean, variance, y);
        if (d->relu)
            ref_relu(y, all.batch * all.channels);
        return;
    }
    const block b = block_of(op);
    for (int64_t c = 0; c < all.channels; c += b.lanes) {
        lane_floats middle = {0}, factor = {0}, level = {0};
        for (int64_t l = 0; l < least(b.lanes, all.channels - c); l++) {
            middle[l] = mean[c + l];
            factor[l] = scale[c + l] * ref_norm_inverse(variance[c + l], d->epsilon);
            level[l] = shift[c + l];
        }
        for (int64_t n = 0; n < b.batch; n++) {
            const int64_t at = n * b.sample + c * b.rows;
            if (b.lanes == 16)
                apply(x + at, y + at, middle, factor, level, b.rows, d->relu, 16);
            else
                apply(x + at, y + at, middle, factor, level, b.rows, d->relu, 8);
        }
    }
}

void pn_batch_norm_forward(pn_op *op, const float *x, const float *scale, const float *shift, float *statistics,
                           float *y)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    float *mean = statistics, *variance = statistics + all.channels;
    if (is_image(&op->def.batch_norm)) {
        const block b = block_of(op);
        for (int64_t c = 0; c < all.channels; c += b.lanes) {
            lane_floats of_block[2];
            const size_t bytes = sizeof(float) * (size_t)least(b.lanes, all.channels - c);
            block_statistics(&b, (const float *)at[0] + c * b.rows, of_block[0], of_block[1]);
            memcpy(mean + c, of_block[0], bytes);
            memcpy(variance + c, of_block[1], bytes);
        }
    } else {
        ref_norm_statistics(&all, at[0], mean, variance);
    }
    normalise(op, at[0], scale, shift, mean, variance, at[1]);
    cpu_leave(&op->forward, pointer);
}

static void block_backward(const pn_op *op, const block *b, int64_t c, const float *x, const float *gy,
                           const float *scale, const float *statistics, float *gx, float *gscale, float *gshift)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    const int64_t lanes = least(b->lanes, all.channels - c);
    const double m = (double)(b->batch * b->rows);
    lane_floats mean = {0}, factor = {0}, level = {0}, slope = {0};
    lane_doubles sum = {0}, product = {0};
    for (int64_t l = 0; l < lanes; l++)
        mean[l] = statistics[c + l];
    block_products(b, x, gy, mean, sum, product);
    for (int64_t l = 0; l < lanes; l++) {
        const float inverse = ref_norm_inverse(statistics[all.channels + c + l], op->def.batch_norm.epsilon);
        gshift[c + l] = (float)sum[l];
        gscale[c + l] = (float)(product[l] * inverse);
        factor[l] = scale[c + l] * inverse;
        level[l] = (float)(sum[l] / m);
        slope[l] = (float)(product[l] * inverse * inverse / m);
    }
    for (int64_t n = 0; gx && n < b->batch; n++) {
        const int64_t at = n * b->sample;
        if (b->lanes == 16)
            spread(x + at, gy + at, gx + at, mean, factor, level, slope, b->rows, 16);
        else
            spread(x + at, gy + at, gx + at, mean, factor, level, slope, b->rows, 8);
    }
}

void pn_batch_norm_backward(pn_op *op, const float *x, const float *gy, const float *scale, const float *statistics,
                            float *gx, float *gscale, float *gshift)
{
    const pn_batch_norm_def *d = &op->def.batch_norm;
    const ref_channels all = shape_of(d);
    const void *const pointer[] = {x, gy, gx};
    void *at[3];
    cpu_enter(&op->backward_data, pointer, at);
    if (is_image(d)) {
        const block b = block_of(op);
        for (int64_t c = 0; c < all.channels; c += b.lanes)
            block_backward(op, &b, c, (const float *)at[0] + c * b.rows, (const float *)at[1] + c * b.rows, scale,
                           statistics, gx ? (float *)at[2] + c * b.rows : NULL, gscale, gshift);
    } else {
        ref_norm_backward(&all, d->epsilon, at[0], at[1], scale, statistics, statistics + all.channels,
                          gx ? at[2] : NULL, gscale, gshift);
    }
    if (gx)
        cpu_leave(&op->backward_data, pointer);
}

void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    ref_norm_track(&all, op->def.batch_norm.momentum, statistics, statistics + all.channels, running_mean,
                   running_variance);
}

void pn_batch_norm_test(pn_op *op, const float *x, const float *scale, const float *shift, const float *running_mean,
                        const float *running_variance, float *y)
{
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    normalise(op, at[0], scale, shift, running_mean, running_variance, at[1]);
    cpu_leave(&op->forward, pointer);
}
