/* kernels_map.c: naive element-by-element kernels. */
#include <string.h>

#include "ref/kernels.h"
#include "rt.h"

void ref_relu(float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = y[i] > 0.0f ? y[i] : 0.0f;
}

void ref_relu_mask(const float *y, float *gy, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        gy[i] = y[i] > 0.0f ? gy[i] : 0.0f;
}

void ref_add(const float *a, const float *b, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

void ref_accumulate(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

void ref_concat_put(int64_t batch, int64_t inner, int64_t outer, int64_t offset, const float *x, float *y)
{
    for (int64_t n = 0; n < batch; n++)
        memcpy(y + n * outer + offset, x + n * inner, sizeof *x * (size_t)inner);
}

void ref_concat_get(int64_t batch, int64_t inner, int64_t outer, int64_t offset, const float *y, float *x)
{
    for (int64_t n = 0; n < batch; n++)
        memcpy(x + n * inner, y + n * outer + offset, sizeof *x * (size_t)inner);
}

void ref_dropout_mask(uint64_t key, double probability, int64_t n, uint8_t *mask)
{
    for (int64_t i = 0; i < n; i++)
        mask[i] = pn_uniform(key, (uint64_t)i) >= probability;
}

void ref_dropout(double probability, int64_t n, const float *x, const uint8_t *mask, float *y)
{
    const float scale = (float)(1.0 / (1.0 - probability));
    for (int64_t i = 0; i < n; i++)
        y[i] = mask[i] ? x[i] * scale : 0.0f;
}
