/* shortcut.c: option A of residual units over blocks of 16 or 8 channels, without a reorder: each row of lanes is
 * copied in runs of channels that stay neighbours. Images in another layout go through plain copies and the naive
 * kernels. */
#include "cpu.h"

#include <string.h>

#include "ref/kernels.h"

static ref_shortcut shape_of(const pn_shortcut_def *d)
{
    const int64_t *x = d->x->dim;
    return (ref_shortcut){x[0], x[1], x[2], x[3], d->y->dim[1], d->stride};
}

pn_op *pn_shortcut_init(pn_stage *stage, const pn_shortcut_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_shortcut_def *d = &op->def.shortcut;
    op->def.shortcut = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    for (int lanes = 16; lanes >= 8 && !op->lanes; lanes /= 2)
        if (dnn_same(x->stored, dnn_blocked(d->x->dim, lanes)))
            op->lanes = lanes;
    const dnn_layout work_y = op->lanes ? dnn_blocked(d->y->dim, op->lanes) : dnn_plain(4, d->y->dim);
    const dnn_layout work_x = op->lanes ? x->stored : x->plain;
    const pn_layout *y = cpu_choose(stage, d->y, work_y);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, work_x, false);
    cpu_call_port(&op->forward, &op->y, 0, work_y, true);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->y, 0, work_y, false);
    cpu_call_port(&op->backward_data, &op->x, 0, work_x, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

/* `count` lanes of every stride-th pixel of one plane of x, from or to the rows of one plane of y. */
static void copy_run(const ref_shortcut *s, float *restrict x, float *restrict y, int lanes, int64_t count,
                     bool forward)
{
    const int64_t rows = (s->height - 1) / s->stride + 1, columns = (s->width - 1) / s->stride + 1;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *a = x + (i * s->width + j) * s->stride * lanes, *b = y + (i * columns + j) * lanes;
            memcpy(forward ? b : a, forward ? a : b, sizeof *a * (size_t)count);
        }
}

/* All runs: channels of x that share a block of x and a block of y. */
static void copy_all(const ref_shortcut *s, float *x, float *y, int lanes, bool forward)
{
    const int64_t rows = (s->height - 1) / s->stride + 1, columns = (s->width - 1) / s->stride + 1;
    const int64_t x_plane = s->height * s->width, y_plane = rows * columns, before = ref_shortcut_before(s);
    const int64_t x_sample = (s->in + lanes - 1) / lanes * lanes * x_plane;
    const int64_t y_sample = (s->out + lanes - 1) / lanes * lanes * y_plane;
    int64_t count;
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t c = 0; c < s->in; c += count) {
            const int64_t at = before + c, in_x = lanes - c % lanes, in_y = lanes - at % lanes;
            count = in_x < in_y ? in_x : in_y;
            if (count > s->in - c)
                count = s->in - c;
            copy_run(s, x + n * x_sample + c / lanes * lanes * x_plane + c % lanes,
                     y + n * y_sample + at / lanes * lanes * y_plane + at % lanes, lanes, count, forward);
        }
}

/* Images of x and y, in the layouts that the kernels want. */
typedef struct {
    ref_shortcut shape;
    int lanes; /* 0: plain */
    float *x, *y;
    bool forward;
} images;

static void do_images(void *data, int64_t from, int64_t to)
{
    const images *all = data;
    ref_shortcut s = all->shape;
    const int lanes = all->lanes ? all->lanes : 1;
    const int64_t rows = (s.height - 1) / s.stride + 1, columns = (s.width - 1) / s.stride + 1;
    const int64_t x_sample = (s.in + lanes - 1) / lanes * lanes * s.height * s.width;
    const int64_t y_sample = (s.out + lanes - 1) / lanes * lanes * rows * columns;
    float *x = all->x + from * x_sample, *y = all->y + from * y_sample;
    s.batch = to - from;
    if (all->lanes) {
        memset(all->forward ? y : x, 0, sizeof *x * (size_t)(s.batch * (all->forward ? y_sample : x_sample)));
        copy_all(&s, x, y, lanes, all->forward);
    } else if (all->forward) {
        ref_shortcut_forward(&s, x, y);
    } else {
        ref_shortcut_backward(&s, y, x);
    }
}

void pn_shortcut_forward(pn_op *op, const float *x, float *y)
{
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    images all = {shape_of(&op->def.shortcut), op->lanes, at[0], at[1], true};
    pn_target_split(op->stage, all.shape.batch, 1, do_images, &all);
    cpu_leave(&op->forward, pointer);
}

void pn_shortcut_backward(pn_op *op, const float *gy, float *gx)
{
    const void *const pointer[] = {gy, gx};
    void *at[2];
    cpu_enter(&op->backward_data, pointer, at);
    images all = {shape_of(&op->def.shortcut), op->lanes, at[1], at[0], false};
    pn_target_split(op->stage, all.shape.batch, 1, do_images, &all);
    cpu_leave(&op->backward_data, pointer);
}
