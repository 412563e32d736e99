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

int64_t ref_shortcut_before(const ref_shortcut *s)
{
    return (s->out - s->in) / 2;
}

/* Between the planes of x and those of y that hold them. */
static void shortcut_planes(const ref_shortcut *s, float *x, float *y, bool forward)
{
    const int64_t rows = (s->height - 1) / s->stride + 1, columns = (s->width - 1) / s->stride + 1;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < s->in; c++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t j = 0; j < columns; j++) {
                    float *a = x + (((n * s->in + c) * s->height + i * s->stride) * s->width + j * s->stride);
                    float *b = y + (((n * s->out + ref_shortcut_before(s) + c) * rows + i) * columns + j);
                    if (forward)
                        *b = *a;
                    else
                        *a = *b;
                }
}

void ref_shortcut_forward(const ref_shortcut *s, const float *x, float *y)
{
    const int64_t rows = (s->height - 1) / s->stride + 1, columns = (s->width - 1) / s->stride + 1;
    memset(y, 0, sizeof *y * (size_t)(s->batch * s->out * rows * columns));
    shortcut_planes(s, (float *)x, y, true);
}

void ref_shortcut_backward(const ref_shortcut *s, const float *gy, float *gx)
{
    memset(gx, 0, sizeof *gx * (size_t)(s->batch * s->in * s->height * s->width));
    shortcut_planes(s, gx, (float *)gy, false);
}

void ref_dropout_mask(uint64_t key, double probability, int64_t first, int64_t n, uint8_t *mask)
{
    for (int64_t i = 0; i < n; i++)
        mask[i] = pn_uniform(key, (uint64_t)(first + i)) >= probability;
}

void ref_dropout(double probability, int64_t n, const float *x, const uint8_t *mask, float *y)
{
    const float scale = (float)(1.0 / (1.0 - probability));
    for (int64_t i = 0; i < n; i++)
        y[i] = mask[i] ? x[i] * scale : 0.0f;
}
