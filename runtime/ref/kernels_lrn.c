/* kernels_lrn.c: local response normalisation across channels. The inner loops run over pixels: vectors without
 * changing the order of any sum. */
#include "ref/kernels.h"

#include <math.h>

enum { PIXELS = 64 };

/* s^-beta; three quarters, the usual exponent, by roots. */
static inline float power(float s, double beta)
{
    return beta == 0.75 ? 1.0f / (sqrtf(s) * sqrtf(sqrtf(s))) : powf(s, (float)-beta);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Channels [from, to) of the window around `channel`. */
typedef struct {
    int64_t from, to;
} window;

static window around(const ref_lrn *l, int64_t channel)
{
    const int64_t reach = l->window / 2;
    return (window){channel < reach ? 0 : channel - reach, least(l->all.channels, channel + reach + 1)};
}

/* s of `count` pixels of a channel; x points to the first of them in channel 0. */
static void scales(const ref_lrn *l, int64_t channel, const float *restrict x, int64_t count, float *restrict s)
{
    const window w = around(l, channel);
    const float factor = (float)(l->alpha / (double)l->window), offset = (float)l->k;
    for (int64_t p = 0; p < count; p++)
        s[p] = 0;
    for (int64_t c = w.from; c < w.to; c++)
        for (int64_t p = 0; p < count; p++)
            s[p] += x[c * l->all.size + p] * x[c * l->all.size + p];
    for (int64_t p = 0; p < count; p++)
        s[p] = offset + factor * s[p];
}

void ref_lrn_forward(const ref_lrn *l, const float *x, float *y)
{
    float s[PIXELS];
    for (int64_t n = 0; n < l->all.batch; n++)
        for (int64_t p = 0; p < l->all.size; p += PIXELS) {
            const int64_t count = least(PIXELS, l->all.size - p), at = n * l->all.channels * l->all.size + p;
            for (int64_t c = 0; c < l->all.channels; c++) {
                scales(l, c, x + at, count, s);
                for (int64_t i = 0; i < count; i++)
                    y[at + c * l->all.size + i] = x[at + c * l->all.size + i] * power(s[i], l->beta);
            }
        }
}

/* What the backward of PIXELS pixels keeps of the channels in a window, at channel % REF_LRN_MOST. */
typedef struct {
    float slope[REF_LRN_MOST][PIXELS]; /* s^-beta */
    float share[REF_LRN_MOST][PIXELS]; /* gy y / s */
} kept;

static void keep(const ref_lrn *l, int64_t c, const float *x, const float *gy, int64_t count, kept *k)
{
    float s[PIXELS];
    scales(l, c, x, count, s);
    for (int64_t i = 0; i < count; i++) {
        const float slope = power(s[i], l->beta);
        k->slope[c % REF_LRN_MOST][i] = slope;
        k->share[c % REF_LRN_MOST][i] = gy[c * l->all.size + i] * (x[c * l->all.size + i] * slope) / s[i];
    }
}

void ref_lrn_backward(const ref_lrn *l, const float *x, const float *gy, float *gx)
{
    kept k;
    float sum[PIXELS];
    const float factor = (float)(2 * l->alpha * l->beta / (double)l->window);
    for (int64_t n = 0; n < l->all.batch; n++)
        for (int64_t p = 0; p < l->all.size; p += PIXELS) {
            const int64_t count = least(PIXELS, l->all.size - p), at = n * l->all.channels * l->all.size + p;
            int64_t next = 0; /* the first channel not kept yet */
            for (int64_t c = 0; c < l->all.channels; c++) {
                const window w = around(l, c);
                for (; next < w.to; next++)
                    keep(l, next, x + at, gy + at, count, &k);
                for (int64_t i = 0; i < count; i++)
                    sum[i] = 0;
                for (int64_t j = w.from; j < w.to; j++)
                    for (int64_t i = 0; i < count; i++)
                        sum[i] += k.share[j % REF_LRN_MOST][i];
                for (int64_t i = 0; i < count; i++) {
                    const int64_t here = at + c * l->all.size + i;
                    gx[here] = gy[here] * k.slope[c % REF_LRN_MOST][i] - factor * x[here] * sum[i];
                }
            }
        }
}
