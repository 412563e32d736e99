/* norm_loops.c: see norm_loops.h. Vectors of 16 floats: one register with AVX-512, two with AVX2. */
#include "norm_loops.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cpu/team.h"

/* A vector holds a row of 16 lanes or two rows of 8. */
enum { WIDTH = NORM_WIDTH, FLOWS = 4, CHUNK = 1024 };
typedef float vector __attribute__((vector_size(64), may_alias, aligned(4))); /* rows of 8 lanes may begin anywhere */
typedef int32_t vector_mask __attribute__((vector_size(64), may_alias));
#define AT(array)            (*(const vector *)(array))
#define WHERE_POSITIVE(x, y) ((vector)((vector_mask)(x) & ((y) > 0.0f))) /* x, or 0 where y <= 0 */
#define INLINE               static inline __attribute__((always_inline))

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Two sums per lane: f32 while few rows are in, then double. */
typedef struct {
    norm_lanes few[2];
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

void norm_repeat(float *lane, int lanes)
{
    for (int l = lanes; l < WIDTH; l++)
        lane[l] = lane[l - lanes];
}

norm_images norm_images_at(const norm_images *all, int64_t at)
{
    return (norm_images){.x = all->x + at,
                         .skip = all->skip ? all->skip + at : NULL,
                         .y = all->y ? all->y + at : NULL,
                         .gy = all->gy ? all->gy + at : NULL,
                         .gskip = all->gskip ? all->gskip + at : NULL,
                         .to = all->to ? all->to + at : NULL};
}

/* Products over all rows of samples of a block, or, in a forward, moments around `middle`. */
static void sum_samples(const norm_block *b, const norm_images *all, const float *middle, int64_t from, int64_t to,
                        sums *s)
{
    for (int64_t n = from; n < to; n++)
        for (int64_t r = 0; r < b->rows; r += CHUNK) {
            const norm_images i = norm_images_at(all, n * b->sample + r * b->lanes);
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

/* What threads do with the samples of one block. */
typedef struct {
    const norm_block *block;
    const norm_images *all;
    const float *mean, *factor, *level, *slope;
    bool relu;
    sums *part; /* of each thread */
} samples;

static void sum_parts(void *data, int64_t from, int64_t to)
{
    const samples *s = data;
    const norm_block *b = s->block;
    for (int64_t part = from; part < to; part++)
        sum_samples(b, s->all, s->mean, b->batch * part / b->threads, b->batch * (part + 1) / b->threads,
                    &s->part[part]);
}

static void sum_block(const norm_block *b, const norm_images *all, const float *middle, sums *total)
{
    sums part[TEAM_MOST];
    memset(part, 0, sizeof *part * (size_t)b->threads);
    samples s = {.block = b, .all = all, .mean = middle, .part = part};
    team_split(b->threads, b->threads, 1, sum_parts, &s);
    *total = part[0];
    for (int p = 1; p < b->threads; p++)
        for (int i = 0; i < 2; i++)
            for (int l = 0; l < WIDTH; l++)
                total->all[i][l] += part[p].all[i][l];
}

void norm_statistics(const norm_block *b, const float *x, float *mean, float *variance)
{
    const double m = (double)(b->batch * b->rows);
    norm_lanes k;
    sums s;
    memcpy(k, x + b->rows / 2 * b->lanes, sizeof *k * (size_t)b->lanes);
    norm_repeat(k, b->lanes);
    sum_block(b, &(norm_images){.x = x}, k, &s);
    for (int l = 0; l < b->lanes; l++) {
        const double off = s.all[0][l] / m;
        mean[l] = (float)((s.all[0][l] + k[l] * m) / m);
        variance[l] = (float)fmax(0, s.all[1][l] / m - off * off);
    }
}

/* Samples descend: what the sums read last is still in the cache. */
static void apply_samples(void *data, int64_t from, int64_t to)
{
    const samples *s = data;
    const int64_t floats = s->block->rows * s->block->lanes;
    for (int64_t n = to - 1; n >= from; n--) {
        const norm_images i = norm_images_at(s->all, n * s->block->sample);
        apply(i.x, i.skip, i.to, s->mean, s->factor, s->level, floats, s->relu);
    }
}

void norm_apply(const norm_block *b, const norm_images *all, const float *mean, const float *factor, const float *shift,
                bool relu)
{
    samples s = {.block = b, .all = all, .mean = mean, .factor = factor, .level = shift, .relu = relu};
    team_split(b->threads, b->batch, 1, apply_samples, &s);
}

void norm_products(const norm_block *b, const norm_images *all, const float *mean, double *sum, double *product)
{
    sums s;
    sum_block(b, all, mean, &s);
    memcpy(sum, s.all[0], sizeof s.all[0]);
    memcpy(product, s.all[1], sizeof s.all[1]);
}

static void spread_samples(void *data, int64_t from, int64_t to)
{
    const samples *s = data;
    const int64_t floats = s->block->rows * s->block->lanes;
    for (int64_t n = to - 1; n >= from; n--) {
        const norm_images i = norm_images_at(s->all, n * s->block->sample);
        if (i.gskip) /* what counts of gy */
            spread(i.x, NULL, i.gskip, i.to, s->mean, s->factor, s->level, s->slope, floats);
        else
            spread(i.x, i.y, i.gy, i.to, s->mean, s->factor, s->level, s->slope, floats);
    }
}

void norm_spread(const norm_block *b, const norm_images *all, const float *mean, const float *factor,
                 const float *level, const float *slope)
{
    samples s = {.block = b, .all = all, .mean = mean, .factor = factor, .level = level, .slope = slope};
    team_split(b->threads, b->batch, 1, spread_samples, &s);
}
