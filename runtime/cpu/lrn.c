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

void pn_lrn_forward(pn_op *op, const float *x, float *y)
{
    const ref_lrn l = shape_of(&op->def.lrn);
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    ref_lrn_forward(&l, at[0], at[1]);
    cpu_leave(&op->forward, pointer);
}

void pn_lrn_backward(pn_op *op, const float *x, const float *gy, float *gx)
{
    const ref_lrn l = shape_of(&op->def.lrn);
    const void *const pointer[] = {x, gy, gx};
    void *at[3];
    cpu_enter(&op->backward_data, pointer, at);
    ref_lrn_backward(&l, at[0], at[1], at[2]);
    cpu_leave(&op->backward_data, pointer);
}
