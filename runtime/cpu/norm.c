/* norm.c: batch normalisation of images in blocks of 16 or 8 channels by own loops; vectors [batch, n] by the naive
 * kernels. Why not the library's: with a fused relu it wants a workspace kept for every minibatch in flight, and it
 * reads x three times in the forward. Here the forward reads x twice: sums of x - k and of (x - k)^2 in one pass, k an
 * element of the channel, so that little cancels. (Measured on 128 samples of 32 and 64 channels in cache, AVX-512:
 * forward with relu 0.7 of the library's time without, backward 1.2 of it.)
 *
 * Order of sums: f32 over at least CHUNK rows (FLOWS sums side by side, joined in order), then double, samples
 * ascending. On small integers the mean has the bits of the naive kernels, the variance and gradients differ in the
 * last. Padded lanes become zero. */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include "ref/kernels.h"

/* A vector holds a row of 16 lanes or two rows of 8: what is known per lane is written twice for 8. */
enum { WIDTH = 16, FLOWS = 4, CHUNK = 1024 };
typedef float vector __attribute__((vector_size(64), may_alias, aligned(4))); /* rows of 8 lanes may begin anywhere */
typedef int32_t vector_mask __attribute__((vector_size(64), may_alias));
typedef float per_lane[WIDTH] __attribute__((aligned(64)));
#define AT(array)            (*(const vector *)(array))
#define WHERE_POSITIVE(x, y) ((vector)((vector_mask)(x) & ((y) > 0.0f))) /* x, or 0 where y <= 0 */
#define INLINE               static inline __attribute__((always_inline))

/* One block of channels of one sample is `rows` rows of `lanes` floats; samples are `sample` floats apart. */
typedef struct {
    int64_t batch, rows, sample;
    int lanes;
} block;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Two sums per lane: f32 while few rows are in, then double. */
typedef struct {
    per_lane few[2];
    double all[2][WIDTH];
    int64_t rows;
} sums;

static void flush(sums *s)
{
    for (int i = 0; i < 2; i++)
        for (int l = 0; l < WIDTH; l++) {
            s->all[i][l] += s->few[i][l];
            s->few[i][l] = 0;
        }
    s->rows = 0;
}

/* Behind the last row: lanes that were written twice come together. */
static void join(sums *s, int lanes)
{
    flush(s);
    for (int i = 0; i < 2 && lanes < WIDTH; i++)
        for (int l = 0; l < lanes; l++)
            s->all[i][l] += s->all[i][l + lanes];
}

static void add_flows(float *to, vector *flow)
{
    const vector sum = (flow[0] + flow[1]) + (flow[2] + flow[3]);
    *(vector *)to += sum;
}

/* few[0] += sum of (x - k), few[1] += sum of (x - k)^2 over n floats */
static void moments(const float *x, const float *k, int64_t n, sums *s)
{
    vector sum[FLOWS] = {{0}}, square[FLOWS] = {{0}};
    const vector origin = AT(k);
    int64_t i = 0;
    for (; i + FLOWS * WIDTH <= n; i += FLOWS * WIDTH)
        for (int f = 0; f < FLOWS; f++) {
            const vector off = AT(x + i + f * WIDTH) - origin;
            sum[f] += off;
            square[f] += off * off;
        }
    add_flows(s->few[0], sum);
    add_flows(s->few[1], square);
    for (; i < n; i++) {
        const float off = x[i] - k[i % WIDTH];
        s->few[0][i % WIDTH] += off;
        s->few[1][i % WIDTH] += off * off;
    }
}

/* few[0] += sum of g, few[1] += sum of g (x - mean) over n floats, g = gy where y > 0 (relu) or everywhere; g goes to
 * gskip, if that is given. */
INLINE void products_of(const float *restrict x, const float *restrict y, const float *restrict gy,
                        float *restrict gskip, const float *mean, int64_t n, sums *s, const bool relu, const bool skip)
{
    vector sum[FLOWS] = {{0}}, product[FLOWS] = {{0}};
    const vector middle = AT(mean);
    int64_t i = 0;
    for (; i + FLOWS * WIDTH <= n; i += FLOWS * WIDTH)
        for (int f = 0; f < FLOWS; f++) {
            const int64_t at = i + f * WIDTH;
            const vector g = relu ? WHERE_POSITIVE(AT(gy + at), AT(y + at)) : AT(gy + at);
            if (skip)
                *(vector *)(gskip + at) = g;
            sum[f] += g;
            product[f] += g * (AT(x + at) - middle);
        }
    add_flows(s->few[0], sum);
    add_flows(s->few[1], product);
    for (; i < n; i++) {
        const float g = !relu || y[i] > 0.0f ? gy[i] : 0.0f;
        if (skip)
            gskip[i] = g;
        s->few[0][i % WIDTH] += g;
        s->few[1][i % WIDTH] += g * (x[i] - mean[i % WIDTH]);
    }
}

static void products(const float *x, const float *y, const float *gy, float *gskip, const float *mean, int64_t n,
                     sums *s)
{
    if (y && gskip)
        products_of(x, y, gy, gskip, mean, n, s, true, true);
    else if (y)
        products_of(x, y, gy, gskip, mean, n, s, true, false);
    else if (gskip)
        products_of(x, y, gy, gskip, mean, n, s, false, true);
    else
        products_of(x, y, gy, gskip, mean, n, s, false, false);
}

/* y = (x - mean) factor + shift + skip, with relu its positive part */
INLINE void apply_as(const float *restrict x, const float *restrict add, float *restrict y, const float *mean,
                     const float *factor, const float *shift, int64_t n, const bool relu, const bool skip)
{
    const vector middle = AT(mean), slope = AT(factor), level = AT(shift);
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        vector result = (AT(x + i) - middle) * slope + level;
        if (skip)
            result += AT(add + i);
        *(vector *)(y + i) = relu ? WHERE_POSITIVE(result, result) : result;
    }
    for (; i < n; i++) {
        float result = (x[i] - mean[i % WIDTH]) * factor[i % WIDTH] + shift[i % WIDTH];
        if (skip)
            result += add[i];
        y[i] = !relu || result > 0.0f ? result : 0.0f;
    }
}

static void apply(const float *x, const float *skip, float *y, const float *mean, const float *factor,
                  const float *shift, int64_t n, bool relu)
{
    if (skip && relu)
        apply_as(x, skip, y, mean, factor, shift, n, true, true);
    else if (skip)
        apply_as(x, skip, y, mean, factor, shift, n, false, true);
    else if (relu)
        apply_as(x, skip, y, mean, factor, shift, n, true, false);
    else
        apply_as(x, skip, y, mean, factor, shift, n, false, false);
}

/* gx = factor (g - level - (x - mean) slope), g = gy where y > 0 (relu) or everywhere */
INLINE void spread_as(const float *restrict x, const float *restrict y, const float *restrict gy, float *restrict gx,
                      const float *mean, const float *factor, const float *level, const float *slope, int64_t n,
                      const bool relu)
{
    const vector middle = AT(mean), by = AT(factor), from = AT(level), down = AT(slope);
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        const vector g = relu ? WHERE_POSITIVE(AT(gy + i), AT(y + i)) : AT(gy + i);
        *(vector *)(gx + i) = by * (g - from - (AT(x + i) - middle) * down);
    }
    for (; i < n; i++) {
        const float g = !relu || y[i] > 0.0f ? gy[i] : 0.0f;
        gx[i] = factor[i % WIDTH] * (g - level[i % WIDTH] - (x[i] - mean[i % WIDTH]) * slope[i % WIDTH]);
    }
}

static void spread(const float *x, const float *y, const float *gy, float *gx, const float *mean, const float *factor,
                   const float *level, const float *slope, int64_t n)
{
    if (y)
        spread_as(x, y, gy, gx, mean, factor, level, slope, n, true);
    else
        spread_as(x, y, gy, gx, mean, factor, level, slope, n, false);
}

static void repeat(float *lane, int lanes)
{
    for (int l = lanes; l < WIDTH; l++)
        lane[l] = lane[l - lanes];
}

/* Images or their gradients, all in blocks of the same channels; NULL: not there. */
typedef struct {
    const float *x, *skip, *y, *gy;
    float *gskip, *to; /* to: y of a forward, gx of a backward */
} images;

static images images_at(const images *all, int64_t at)
{
    return (images){.x = all->x + at,
                    .skip = all->skip ? all->skip + at : NULL,
                    .y = all->y ? all->y + at : NULL,
                    .gy = all->gy ? all->gy + at : NULL,
                    .gskip = all->gskip ? all->gskip + at : NULL,
                    .to = all->to ? all->to + at : NULL};
}

/* Products over all rows of a block, or, in a forward, moments around `middle`. */
static void sum_block(const block *b, const images *all, const float *middle, sums *s)
{
    for (int64_t n = 0; n < b->batch; n++)
        for (int64_t r = 0; r < b->rows; r += CHUNK) {
            const images i = images_at(all, n * b->sample + r * b->lanes);
            const int64_t rows = least(CHUNK, b->rows - r);
            if (i.gy)
                products(i.x, i.y, i.gy, i.gskip, middle, rows * b->lanes, s);
            else
                moments(i.x, middle, rows * b->lanes, s);
            s->rows += rows;
            if (s->rows >= CHUNK)
                flush(s);
        }
    join(s, b->lanes);
}

static void block_statistics(const block *b, const float *x, float *mean, float *variance)
{
    const double m = (double)(b->batch * b->rows);
    per_lane k;
    sums s = {.rows = 0};
    memcpy(k, x + b->rows / 2 * b->lanes, sizeof *k * (size_t)b->lanes);
    repeat(k, b->lanes);
    sum_block(b, &(images){.x = x}, k, &s);
    for (int l = 0; l < b->lanes; l++) {
        const double off = s.all[0][l] / m;
        mean[l] = (float)((s.all[0][l] + k[l] * m) / m);
        variance[l] = (float)fmax(0, s.all[1][l] / m - off * off);
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
    const pn_layout *skip = d->skip ? cpu_layout(stage, d->skip) : NULL;
    const pn_layout *y = cpu_choose(stage, d->y, work);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    if (d->skip)
        cpu_bank_tensor(&op->w, stage, "skip", d->skip, skip->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, work, false);
    cpu_call_port(&op->forward, &op->y, 0, work, true);
    if (d->skip)
        cpu_call_port(&op->forward, &op->w, 0, work, false);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->x, 0, work, false);
    cpu_call_port(&op->backward_data, &op->y, 0, work, false);
    cpu_call_port(&op->backward_data, &op->y, 0, work, false);
    cpu_call_port(&op->backward_data, &op->x, 0, work, true);
    if (d->skip)
        cpu_call_port(&op->backward_data, &op->w, 0, work, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

static block block_of(const pn_op *op)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    const int64_t blocks = (all.channels + op->lanes - 1) / op->lanes;
    return (block){all.batch, all.size, blocks * all.size * op->lanes, op->lanes};
}

/* Of a forward or a test: `all` holds x, skip and to. */
static void normalise(const pn_op *op, const images *all, const float *scale, const float *shift, const float *mean,
                      const float *variance)
{
    const pn_batch_norm_def *d = &op->def.batch_norm;
    const ref_channels size = shape_of(d);
    if (!is_image(d)) {
        ref_norm_forward(&size, d->epsilon, all->x, scale, shift, mean, variance, all->to);
        if (all->skip)
            ref_accumulate(all->to, all->skip, size.batch * size.channels);
        if (d->relu)
            ref_relu(all->to, size.batch * size.channels);
        return;
    }
    const block b = block_of(op);
    for (int64_t c = 0; c < size.channels; c += b.lanes) {
        per_lane middle = {0}, factor = {0}, level = {0};
        for (int64_t l = 0; l < least(b.lanes, size.channels - c); l++) {
            middle[l] = mean[c + l];
            factor[l] = scale[c + l] * ref_norm_inverse(variance[c + l], d->epsilon);
            level[l] = shift[c + l];
        }
        repeat(middle, b.lanes);
        repeat(factor, b.lanes);
        repeat(level, b.lanes);
        for (int64_t n = b.batch - 1; n >= 0; n--) { /* what the sums read last is still in the cache */
            const images i = images_at(all, n * b.sample + c * b.rows);
            apply(i.x, i.skip, i.to, middle, factor, level, b.rows * b.lanes, d->relu);
        }
    }
}

void pn_batch_norm_forward(pn_op *op, const float *x, const float *skip, const float *scale, const float *shift,
                           float *statistics, float *y)
{
    const ref_channels size = shape_of(&op->def.batch_norm);
    const void *const pointer[] = {x, y, skip};
    void *at[3] = {NULL};
    cpu_enter(&op->forward, pointer, at);
    float *mean = statistics, *variance = statistics + size.channels;
    if (is_image(&op->def.batch_norm)) {
        const block b = block_of(op);
        for (int64_t c = 0; c < size.channels; c += b.lanes) {
            per_lane of_block[2];
            const size_t bytes = sizeof(float) * (size_t)least(b.lanes, size.channels - c);
            block_statistics(&b, (const float *)at[0] + c * b.rows, of_block[0], of_block[1]);
            memcpy(mean + c, of_block[0], bytes);
            memcpy(variance + c, of_block[1], bytes);
        }
    } else {
        ref_norm_statistics(&size, at[0], mean, variance);
    }
    normalise(op, &(images){.x = at[0], .skip = at[2], .to = at[1]}, scale, shift, mean, variance);
    cpu_leave(&op->forward, pointer);
}

/* The block of channels that begins at c; `all` holds x, y behind a relu, gy, gskip and to. */
static void block_backward(const pn_op *op, const block *b, int64_t c, const images *all, const float *scale,
                           const float *statistics, float *gscale, float *gshift)
{
    const ref_channels size = shape_of(&op->def.batch_norm);
    const int64_t lanes = least(b->lanes, size.channels - c);
    const double m = (double)(b->batch * b->rows);
    per_lane mean = {0}, factor = {0}, level = {0}, slope = {0};
    sums s = {.rows = 0};
    for (int64_t l = 0; l < lanes; l++)
        mean[l] = statistics[c + l];
    repeat(mean, b->lanes);
    sum_block(b, all, mean, &s);
    for (int64_t l = 0; l < lanes; l++) {
        const float inverse = ref_norm_inverse(statistics[size.channels + c + l], op->def.batch_norm.epsilon);
        gshift[c + l] = (float)s.all[0][l];
        gscale[c + l] = (float)(s.all[1][l] * inverse);
        factor[l] = scale[c + l] * inverse;
        level[l] = (float)(s.all[0][l] / m);
        slope[l] = (float)(s.all[1][l] * inverse * inverse / m);
    }
    repeat(factor, b->lanes);
    repeat(level, b->lanes);
    repeat(slope, b->lanes);
    for (int64_t n = b->batch - 1; all->to && n >= 0; n--) {
        const images i = images_at(all, n * b->sample);
        if (i.gskip) /* what counts of gy */
            spread(i.x, NULL, i.gskip, i.to, mean, factor, level, slope, b->rows * b->lanes);
        else
            spread(i.x, i.y, i.gy, i.to, mean, factor, level, slope, b->rows * b->lanes);
    }
}

void pn_batch_norm_backward(pn_op *op, const float *x, const float *y, float *gy, const float *scale,
                            const float *statistics, float *gx, float *gskip, float *gscale, float *gshift)
{
    const pn_batch_norm_def *d = &op->def.batch_norm;
    const ref_channels size = shape_of(d);
    const void *const pointer[] = {x, d->relu ? y : NULL, gy, gx, gskip};
    void *at[5] = {NULL};
    cpu_enter(&op->backward_data, pointer, at);
    const images all = {
        .x = at[0], .y = d->relu ? at[1] : NULL, .gy = at[2], .to = gx ? at[3] : NULL, .gskip = gskip ? at[4] : NULL};
    if (is_image(d)) {
        const block b = block_of(op);
        for (int64_t c = 0; c < size.channels; c += b.lanes) {
            const images i = images_at(&all, c * b.rows);
            block_backward(op, &b, c, &i, scale, statistics, gscale, gshift);
        }
    } else {
        if (all.y)
            ref_relu_mask(all.y, at[2], size.batch * size.channels);
        if (all.gskip)
            memcpy(all.gskip, all.gy, sizeof(float) * (size_t)(size.batch * size.channels));
        ref_norm_backward(&size, d->epsilon, all.x, all.gy, scale, statistics, statistics + size.channels, all.to,
                          gscale, gshift);
    }
    cpu_leave(&op->backward_data, pointer);
}

void pn_batch_norm_track(pn_op *op, const float *statistics, float *running_mean, float *running_variance)
{
    const ref_channels all = shape_of(&op->def.batch_norm);
    ref_norm_track(&all, op->def.batch_norm.momentum, statistics, statistics + all.channels, running_mean,
                   running_variance);
}

void pn_batch_norm_test(pn_op *op, const float *x, const float *skip, const float *scale, const float *shift,
                        const float *running_mean, const float *running_variance, float *y)
{
    const void *const pointer[] = {x, y, skip};
    void *at[3] = {NULL};
    cpu_enter(&op->forward, pointer, at);
    normalise(op, &(images){.x = at[0], .skip = at[2], .to = at[1]}, scale, shift, running_mean, running_variance);
    cpu_leave(&op->forward, pointer);
}
