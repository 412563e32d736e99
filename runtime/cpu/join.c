/* join.c: concat and flatten: the same values in another arrangement, as one reorder each. */
#include "cpu.h"

/* Blocks of channels stay whole only when every input but none is ragged. */
static dnn_layout joined(pn_stage *stage, const pn_concat_def *d)
{
    const dnn_layout first = cpu_layout(stage, d->x[0])->stored;
    const dnn_layout plain = dnn_plain(d->y->rank, d->y->dim);
    if (d->y->rank != 4)
        return plain;
    for (int block = 16; block >= 8; block /= 2) {
        if (!dnn_same(first, dnn_blocked(d->x[0]->dim, block)))
            continue;
        for (int i = 0; i < d->count; i++)
            if (d->x[i]->dim[1] % block != 0)
                return plain;
        return dnn_blocked(d->y->dim, block);
    }
    return plain;
}

pn_op *pn_concat_init(pn_stage *stage, const pn_concat_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_concat_def *d = &op->def.concat;
    op->def.concat = *def;
    const pn_layout *y = cpu_choose(stage, d->y, joined(stage, d));
    op->part = pn_alloc(2 * d->count * (int64_t)sizeof *op->part);
    op->put = pn_alloc(d->count * (int64_t)sizeof *op->put);
    op->get = pn_alloc(d->count * (int64_t)sizeof *op->get);
    int64_t offset[4] = {0};
    for (int i = 0; i < d->count; i++) {
        const dnn_layout place = dnn_part(y->stored, d->x[i]->rank, d->x[i]->dim, offset);
        if (!place)
            pn_fail(NULL, "internal error: %s: input %d has no place in the layout of the result", d->name, i);
        cpu_bank *x = &op->part[2 * i], *in_y = &op->part[2 * i + 1];
        cpu_bank_tensor(x, stage, "x", d->x[i], cpu_layout(stage, d->x[i])->stored);
        cpu_bank_tensor(in_y, stage, "y", d->y, place);
        cpu_transfer_init(&op->put[i], stage, d->name, x, in_y);
        cpu_transfer_init(&op->get[i], stage, d->name, in_y, x);
        offset[1] += d->x[i]->dim[1];
    }
    return op;
}

void pn_concat_forward(pn_op *op, int input, const float *x, float *y)
{
    cpu_transfer(&op->put[input], x, y);
}
void pn_concat_backward(pn_op *op, int input, const float *gy, float *gx)
{
    cpu_transfer(&op->get[input], gy, gx);
}

pn_op *pn_flatten_init(pn_stage *stage, const pn_flatten_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_flatten_def *d = &op->def.flatten;
    op->def.flatten = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    cpu_choose(stage, d->y, dnn_plain(d->y->rank, d->y->dim));
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, x->plain); /* the same memory with the dimensions of x */
    cpu_transfer_init(&op->forward, stage, d->name, &op->x, &op->y);
    cpu_transfer_init(&op->backward_data, stage, d->name, &op->y, &op->x);
    return op;
}

void pn_flatten_forward(pn_op *op, const float *x, float *y)
{
    cpu_transfer(&op->forward, x, y);
}
void pn_flatten_backward(pn_op *op, const float *gy, float *gx)
{
    cpu_transfer(&op->backward_data, gy, gx);
}
