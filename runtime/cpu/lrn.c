/* lrn.c: local response normalisation: the naive kernels, which run over pixels, on plain copies; x and y keep one
 * layout. (The library's wants a workspace as large as x for every minibatch in flight.) */
#include "cpu.h"

#include "ref/kernels.h"

static ref_lrn shape_of(const pn_lrn_def *d)
{
    const int64_t *x = d->x->dim;
    return (ref_lrn){{x[0], x[1], x[2] * x[3]}, d->size, d->alpha, d->beta, d->k};
}

pn_op *pn_lrn_init(pn_stage *stage, const pn_lrn_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_lrn_def *d = &op->def.lrn;
    op->def.lrn = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    const pn_layout *y = cpu_choose(stage, d->y, x->stored);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, x->plain, false);
    cpu_call_port(&op->forward, &op->y, 0, x->plain, true);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->x, 0, x->plain, false);
    cpu_call_port(&op->backward_data, &op->y, 0, x->plain, false);
    cpu_call_port(&op->backward_data, &op->x, 0, x->plain, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

/* Plain images; gy NULL: forward. */
typedef struct {
    ref_lrn shape;
    const float *x, *gy;
    float *to;
} images;

static void do_images(void *data, int64_t from, int64_t to)
{
    const images *all = data;
    ref_lrn l = all->shape;
    const int64_t at = from * l.all.channels * l.all.size;
    l.all.batch = to - from;
    if (all->gy)
        ref_lrn_backward(&l, all->x + at, all->gy + at, all->to + at);
    else
        ref_lrn_forward(&l, all->x + at, all->to + at);
}

void pn_lrn_forward(pn_op *op, const float *x, float *y)
{
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    images all = {shape_of(&op->def.lrn), at[0], NULL, at[1]};
    pn_target_split(op->stage, all.shape.all.batch, 1, do_images, &all);
    cpu_leave(&op->forward, pointer);
}

void pn_lrn_backward(pn_op *op, const float *x, const float *gy, float *gx)
{
    const void *const pointer[] = {x, gy, gx};
    void *at[3];
    cpu_enter(&op->backward_data, pointer, at);
    images all = {shape_of(&op->def.lrn), at[0], at[1], at[2]};
    pn_target_split(op->stage, all.shape.all.batch, 1, do_images, &all);
    cpu_leave(&op->backward_data, pointer);
}
