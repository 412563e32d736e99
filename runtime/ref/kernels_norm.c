/* kernels_norm.c: naive batch normalisation (Ioffe and Szegedy, "Batch normalization", 2015, algorithm 1; backward: the
 * chain rule in its section 3). Sums over samples, then rows, in double: statistics of a million elements keep 24 bits.
 */
#include "ref/kernels.h"

#include <math.h>
#include <stddef.h>

float ref_norm_inverse(float variance, double epsilon)
{
    return (float)(1.0 / sqrt(variance + epsilon));
}

static const float *plane(const ref_channels *c, const float *x, int64_t n, int64_t channel)
{
    return x + (n * c->channels + channel) * c->size;
}

void ref_norm_statistics(const ref_channels *c, const float *x, float *mean, float *variance)
{
    const double m = (double)(c->batch * c->size);
    for (int64_t k = 0; k < c->channels; k++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < c->batch; n++)
            for (int64_t i = 0; i < c->size; i++)
                sum += plane(c, x, n, k)[i];
        const double middle = sum / m;
        for (int64_t n = 0; n < c->batch; n++)
            for (int64_t i = 0; i < c->size; i++) {
                const double off = plane(c, x, n, k)[i] - middle;
                squares += off * off;
            }
        mean[k] = (float)middle;
        variance[k] = (float)(squares / m);
    }
}

void ref_norm_forward(const ref_channels *c, double epsilon, const float *x, const float *scale, const float *shift,
                      const float *mean, const float *variance, float *y)
{
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t k = 0; k < c->channels; k++) {
            const float *from = plane(c, x, n, k), factor = scale[k] * ref_norm_inverse(variance[k], epsilon);
            float *to = y + (from - x);
            for (int64_t i = 0; i < c->size; i++)
                to[i] = (from[i] - mean[k]) * factor + shift[k];
        }
}

void ref_norm_backward(const ref_channels *c, double epsilon, const float *x, const float *gy, const float *scale,
                       const float *mean, const float *variance, float *gx, float *gscale, float *gshift)
{
    const double m = (double)(c->batch * c->size);
    for (int64_t k = 0; k < c->channels; k++) {
        const float inverse = ref_norm_inverse(variance[k], epsilon);
        double sum = 0, product = 0;
        for (int64_t n = 0; n < c->batch; n++)
            for (int64_t i = 0; i < c->size; i++) {
                const float g = plane(c, gy, n, k)[i], off = plane(c, x, n, k)[i] - mean[k];
                sum += g;
                product += (double)g * off;
            }
        gshift[k] = (float)sum;
        gscale[k] = (float)(product * inverse);
        if (gx == NULL)
            continue;
        const float level = (float)(sum / m), slope = (float)(product * inverse * inverse / m);
        for (int64_t n = 0; n < c->batch; n++) {
            const float *from = plane(c, x, n, k), *g = plane(c, gy, n, k);
            float *to = gx + (from - x);
            for (int64_t i = 0; i < c->size; i++)
                to[i] = scale[k] * inverse * (g[i] - level - (from[i] - mean[k]) * slope);
        }
    }
}

void ref_norm_track(const ref_channels *c, double momentum, const float *mean, const float *variance,
                    float *running_mean, float *running_variance)
{
    const double m = (double)(c->batch * c->size), unbiased = m / (m - 1);
    for (int64_t k = 0; k < c->channels; k++) {
        running_mean[k] = (float)((1 - momentum) * running_mean[k] + momentum * mean[k]);
        running_variance[k] = (float)((1 - momentum) * running_variance[k] + momentum * (variance[k] * unbiased));
    }
}
