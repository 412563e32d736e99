/* kernels_pool.c: naive pooling. The window of output (o, p) starts at row o * stride - pad; its part inside the image
 * is never empty (pad < kernel, and ref_pool_size drops windows that start beyond the image). */
#include <string.h>

#include "ref/kernels.h"

int64_t ref_pool_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool ceil)
{
    const int64_t room = size + 2 * pad - kernel;
    if (room < 0)
        return 0;
    int64_t count = (ceil ? room + stride - 1 : room) / stride + 1;
    while (count > 1 && (count - 1) * stride - pad >= size)
        count--;
    return count;
}

int64_t ref_argmax_bytes(int64_t kernel_h, int64_t kernel_w)
{
    return kernel_h * kernel_w <= UINT8_MAX ? 1 : 4;
}

/* Part of one window inside the image: rows [top, bottom), columns [left, right). */
typedef struct {
    int64_t first_row, first_column, top, bottom, left, right;
} window;

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static window window_of(const ref_pool *p, int64_t o)
{
    window w = {.first_row = o / p->out_width * p->stride - p->pad,
                .first_column = o % p->out_width * p->stride - p->pad};
    w.top = most(w.first_row, 0);
    w.bottom = least(w.first_row + p->kernel_h, p->height);
    w.left = most(w.first_column, 0);
    w.right = least(w.first_column + p->kernel_w, p->width);
    return w;
}

/* Where in the image plane the largest element of a window is. */
static int64_t find_largest(const ref_pool *p, const window *w, const float *x)
{
    int64_t best = w->top * p->width + w->left;
    for (int64_t row = w->top; row < w->bottom; row++)
        for (int64_t column = w->left; column < w->right; column++)
            if (x[row * p->width + column] > x[best])
                best = row * p->width + column;
    return best;
}

void ref_maxpool_forward(const ref_pool *p, const float *x, float *y, void *argmax)
{
    const int64_t plane = p->height * p->width, outs = p->out_height * p->out_width;
    const bool narrow = ref_argmax_bytes(p->kernel_h, p->kernel_w) == 1;
    for (int64_t n = 0; n < p->planes; n++)
        for (int64_t o = 0; o < outs; o++) {
            const window w = window_of(p, o);
            const int64_t best = find_largest(p, &w, x + n * plane);
            y[n * outs + o] = x[n * plane + best];
            if (argmax == NULL)
                continue;
            const int64_t row = best / p->width - w.first_row, column = best % p->width - w.first_column;
            const int64_t winner = row * p->kernel_w + column;
            if (narrow)
                ((uint8_t *)argmax)[n * outs + o] = (uint8_t)winner;
            else
                ((int32_t *)argmax)[n * outs + o] = (int32_t)winner;
        }
}

void ref_maxpool_backward(const ref_pool *p, const float *gy, const void *argmax, float *gx)
{
    const int64_t plane = p->height * p->width, outs = p->out_height * p->out_width;
    const bool narrow = ref_argmax_bytes(p->kernel_h, p->kernel_w) == 1;
    memset(gx, 0, sizeof *gx * (size_t)(p->planes * plane));
    for (int64_t n = 0; n < p->planes; n++)
        for (int64_t o = 0; o < outs; o++) {
            const window w = window_of(p, o);
            const int64_t winner =
                narrow ? ((const uint8_t *)argmax)[n * outs + o] : ((const int32_t *)argmax)[n * outs + o];
            const int64_t row = w.first_row + winner / p->kernel_w, column = w.first_column + winner % p->kernel_w;
            gx[n * plane + row * p->width + column] += gy[n * outs + o];
        }
}

static float divisor(const ref_pool *p, const window *w)
{
    return (float)(p->count_padding ? p->kernel_h * p->kernel_w : (w->bottom - w->top) * (w->right - w->left));
}

void ref_avgpool_forward(const ref_pool *p, const float *x, float *y)
{
    const int64_t plane = p->height * p->width, outs = p->out_height * p->out_width;
    for (int64_t n = 0; n < p->planes; n++)
        for (int64_t o = 0; o < outs; o++) {
            const window w = window_of(p, o);
            float sum = 0.0f;
            for (int64_t row = w.top; row < w.bottom; row++)
                for (int64_t column = w.left; column < w.right; column++)
                    sum += x[n * plane + row * p->width + column];
            y[n * outs + o] = sum / divisor(p, &w);
        }
}

void ref_avgpool_backward(const ref_pool *p, const float *gy, float *gx)
{
    const int64_t plane = p->height * p->width, outs = p->out_height * p->out_width;
    memset(gx, 0, sizeof *gx * (size_t)(p->planes * plane));
    for (int64_t n = 0; n < p->planes; n++)
        for (int64_t o = 0; o < outs; o++) {
            const window w = window_of(p, o);
            const float share = gy[n * outs + o] / divisor(p, &w);
            for (int64_t row = w.top; row < w.bottom; row++)
                for (int64_t column = w.left; column < w.right; column++)
                    gx[n * plane + row * p->width + column] += share;
        }
}
