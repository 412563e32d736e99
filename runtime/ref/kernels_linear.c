/* kernels_linear.c: naive fully connected layer. */
#include <string.h>

#include "ref/kernels.h"

void ref_linear_forward(int64_t batch, int64_t in, int64_t out, const float *x, const float *w, const float *b,
                        float *y)
{
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++) {
            float sum = b != NULL ? b[o] : 0.0f;
            for (int64_t i = 0; i < in; i++)
                sum += x[n * in + i] * w[o * in + i];
            y[n * out + o] = sum;
        }
}

/* to[i] += factor * from[i] */
static void add_scaled(float *restrict to, const float *restrict from, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

void ref_linear_backward_data(int64_t batch, int64_t in, int64_t out, const float *gy, const float *w, float *gx)
{
    memset(gx, 0, sizeof *gx * (size_t)(batch * in));
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++)
            add_scaled(gx + n * in, w + o * in, gy[n * out + o], in);
}

void ref_linear_backward_weights(int64_t batch, int64_t in, int64_t out, const float *x, const float *gy, float *gw,
                                 float *gb)
{
    memset(gw, 0, sizeof *gw * (size_t)(out * in));
    for (int64_t n = 0; n < batch; n++)
        for (int64_t o = 0; o < out; o++)
            add_scaled(gw + o * in, x + n * in, gy[n * out + o], in);
    if (gb == NULL)
        return;
    memset(gb, 0, sizeof *gb * (size_t)out);
    for (int64_t n = 0; n < batch; n++)
        ref_accumulate(gb, gy + n * out, out);
}
