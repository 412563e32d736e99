/* kernels_conv.c: naive 2-d convolution, forward and both backwards. The innermost loops run over independent sums:
 * fast enough for tests without changing the order of any sum. */
#include <string.h>

#include "ref/kernels.h"

int64_t ref_conv_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation)
{
    const int64_t spread = dilation * (kernel - 1) + 1, padded = size + 2 * pad;
    return padded < spread ? 0 : (padded - spread) / stride + 1;
}

typedef struct {
    int64_t from, to;
} range;

/* The i in [0, count) whose i * step + shift lies inside [0, size). */
static range inside(int64_t shift, int64_t step, int64_t size, int64_t count)
{
    range r;
    r.from = shift >= 0 ? 0 : (-shift + step - 1) / step;
    r.to = shift >= size ? 0 : (size - 1 - shift) / step + 1;
    if (r.to > count)
        r.to = count;
    return r;
}

/* What one kernel element (row, column) connects: output rows and columns, and where their inputs are. */
typedef struct {
    range rows, columns;
    int64_t down, right;
} window;

static window window_of(const ref_conv *c, int64_t row, int64_t column)
{
    window w = {.down = row * c->dilation - c->pad, .right = column * c->dilation - c->pad};
    w.rows = inside(w.down, c->stride, c->height, c->out_height);
    w.columns = inside(w.right, c->stride, c->width, c->out_width);
    return w;
}

/* One input plane to one output plane, all kernel elements in order. */
static void forward_plane(const ref_conv *c, const float *restrict x, const float *restrict w, float *restrict y)
{
    for (int64_t k = 0; k < c->kernel * c->kernel; k++) {
        const window at = window_of(c, k / c->kernel, k % c->kernel);
        for (int64_t o = at.rows.from; o < at.rows.to; o++) {
            const float *from = x + (o * c->stride + at.down) * c->width;
            float *to = y + o * c->out_width;
            for (int64_t p = at.columns.from; p < at.columns.to; p++)
                to[p] += w[k] * from[p * c->stride + at.right];
        }
    }
}

void ref_conv_forward(const ref_conv *c, const float *x, const float *w, const float *b, float *y)
{
    const int64_t in = c->in / c->groups, out = c->out / c->groups, window_size = c->kernel * c->kernel;
    const int64_t x_plane = c->height * c->width, y_plane = c->out_height * c->out_width;
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t o = 0; o < c->out; o++) {
            float *plane = y + (n * c->out + o) * y_plane;
            for (int64_t p = 0; p < y_plane; p++)
                plane[p] = b != NULL ? b[o] : 0.0f;
            for (int64_t i = 0; i < in; i++)
                forward_plane(c, x + (n * c->in + o / out * in + i) * x_plane, w + (o * in + i) * window_size, plane);
        }
}

static void backward_plane(const ref_conv *c, const float *restrict gy, const float *restrict w, float *restrict gx)
{
    for (int64_t k = 0; k < c->kernel * c->kernel; k++) {
        const window at = window_of(c, k / c->kernel, k % c->kernel);
        for (int64_t o = at.rows.from; o < at.rows.to; o++) {
            const float *from = gy + o * c->out_width;
            float *to = gx + (o * c->stride + at.down) * c->width;
            for (int64_t p = at.columns.from; p < at.columns.to; p++)
                to[p * c->stride + at.right] += w[k] * from[p];
        }
    }
}

void ref_conv_backward_data(const ref_conv *c, const float *gy, const float *w, float *gx)
{
    const int64_t in = c->in / c->groups, out = c->out / c->groups, window_size = c->kernel * c->kernel;
    const int64_t x_plane = c->height * c->width, y_plane = c->out_height * c->out_width;
    memset(gx, 0, sizeof *gx * (size_t)(c->batch * c->in * x_plane));
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t i = 0; i < c->in; i++)
            for (int64_t o = i / in * out; o < (i / in + 1) * out; o++)
                backward_plane(c, gy + (n * c->out + o) * y_plane, w + (o * in + i % in) * window_size,
                               gx + (n * c->in + i) * x_plane);
}

/* One pair of planes: each output element in order adds to all kernel elements that it saw. */
static void weights_plane(const ref_conv *c, const float *restrict x, const float *restrict gy, float *restrict gw)
{
    for (int64_t o = 0; o < c->out_height; o++) {
        const int64_t top = o * c->stride - c->pad;
        const range rows = inside(top, c->dilation, c->height, c->kernel);
        for (int64_t p = 0; p < c->out_width; p++) {
            const int64_t left = p * c->stride - c->pad;
            const range columns = inside(left, c->dilation, c->width, c->kernel);
            const float g = gy[o * c->out_width + p];
            for (int64_t k = rows.from; k < rows.to; k++) {
                const float *from = x + (top + k * c->dilation) * c->width + left;
                for (int64_t l = columns.from; l < columns.to; l++)
                    gw[k * c->kernel + l] += g * from[l * c->dilation];
            }
        }
    }
}

void ref_conv_backward_weights(const ref_conv *c, const float *x, const float *gy, float *gw, float *gb)
{
    const int64_t in = c->in / c->groups, out = c->out / c->groups, window_size = c->kernel * c->kernel;
    const int64_t x_plane = c->height * c->width, y_plane = c->out_height * c->out_width;
    memset(gw, 0, sizeof *gw * (size_t)(c->out * in * window_size));
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t o = 0; o < c->out; o++)
            for (int64_t i = 0; i < in; i++)
                weights_plane(c, x + (n * c->in + o / out * in + i) * x_plane, gy + (n * c->out + o) * y_plane,
                              gw + (o * in + i) * window_size);
    for (int64_t o = 0; gb != NULL && o < c->out; o++) {
        gb[o] = 0.0f;
        for (int64_t n = 0; n < c->batch; n++)
            for (int64_t p = 0; p < y_plane; p++)
                gb[o] += gy[(n * c->out + o) * y_plane + p];
    }
}
