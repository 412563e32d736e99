/* map.c: element by element: relu masks, sums, pointwise chains. They run over the stored floats, padded lanes
 * included, where those stay zero; else over plain copies. */
#include "cpu.h"

#include <string.h>

/* Unconditional loads: the compilers vectorise them. */
static void mask(const float *restrict y, float *restrict gy, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float g = gy[i];
        gy[i] = y[i] > 0.0f ? g : 0.0f;
    }
}

static void sum(const float *restrict a, const float *restrict b, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void sum_relu(const float *restrict a, const float *restrict b, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float s = a[i] + b[i];
        y[i] = s > 0.0f ? s : 0.0f;
    }
}

static void accumulate(const float *restrict from, float *restrict to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* ---- the same, shared by the threads ---- */
typedef void binary(const float *restrict a, float *restrict to, int64_t n);
typedef void ternary(const float *restrict a, const float *restrict b, float *restrict to, int64_t n);
typedef struct {
    binary *two;
    ternary *three; /* NULL: two */
    const float *a, *b;
    float *to;
} map;

static void map_part(void *data, int64_t from, int64_t to)
{
    const map *m = data;
    if (m->three)
        m->three(m->a + from, m->b + from, m->to + from, to - from);
    else
        m->two(m->a + from, m->to + from, to - from);
}

static void share(int threads, int64_t n, map m)
{
    team_split(threads, n, CPU_FLOATS, map_part, &m);
}

static int threads_of(const pn_tensor *t)
{
    return t->layout ? t->layout->threads : 1;
}

void pn_relu_mask(const pn_tensor *t, const float *y, float *gy)
{
    share(threads_of(t), pn_tensor_floats(t), (map){.two = mask, .a = y, .to = gy});
}

void pn_accumulate(const pn_tensor *t, float *to, const float *from)
{
    share(threads_of(t), pn_tensor_floats(t), (map){.two = accumulate, .a = from, .to = to});
}

void pn_copy(const pn_tensor *t, float *to, const float *from)
{
    memcpy(to, from, (size_t)pn_tensor_floats(t) * sizeof *to);
}

/* ---- pointwise chains of the generated code ---- */
pn_op *pn_pointwise_init(pn_stage *stage, const pn_pointwise_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_pointwise_def *d = &op->def.pointwise;
    op->def.pointwise = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    const bool as_stored = d->keeps_zero || !x->padded;
    const dnn_layout work = as_stored ? x->stored : x->plain;
    const pn_layout *y = cpu_choose(stage, d->y, work);
    op->floats = dnn_bytes(work) / (int64_t)sizeof(float);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, work, false);
    cpu_call_port(&op->forward, &op->y, 0, work, true);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, d->reads_x ? &op->x : &op->y, 0, work, false);
    cpu_call_port(&op->backward_data, &op->y, 0, work, false);
    cpu_call_port(&op->backward_data, &op->x, 0, work, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

void pn_pointwise_forward(pn_op *op, const float *x, float *y)
{
    const void *const pointer[] = {x, y};
    void *at[2];
    cpu_enter(&op->forward, pointer, at);
    share(op->stage->run->threads, op->floats, (map){.two = op->def.pointwise.forward, .a = at[0], .to = at[1]});
    cpu_leave(&op->forward, pointer);
}

void pn_pointwise_backward(pn_op *op, const float *saved, const float *gy, float *gx)
{
    const void *const pointer[] = {saved, gy, gx};
    void *at[3];
    cpu_enter(&op->backward_data, pointer, at);
    share(op->stage->run->threads, op->floats,
          (map){.three = op->def.pointwise.backward, .a = at[0], .b = at[1], .to = at[2]});
    cpu_leave(&op->backward_data, pointer);
}

/* ---- add: y takes the blocked one of two layouts ---- */
pn_op *pn_add_init(pn_stage *stage, const pn_add_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_add_def *d = &op->def.add;
    op->def.add = *def;
    const pn_layout *a = cpu_layout(stage, d->a), *b = cpu_layout(stage, d->b);
    const pn_layout *y = cpu_choose(stage, d->y, a->is_plain ? b->stored : a->stored);
    op->floats = y->floats;
    cpu_bank_tensor(&op->x, stage, "a", d->a, a->stored);
    cpu_bank_tensor(&op->w, stage, "b", d->b, b->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, y->stored, false);
    cpu_call_port(&op->forward, &op->w, 0, y->stored, false);
    cpu_call_port(&op->forward, &op->y, 0, y->stored, true);
    cpu_call_close(&op->forward, NULL);
    cpu_transfer_init(&op->backward_data, stage, d->name, &op->y, &op->x);
    cpu_transfer_init(&op->backward_weights, stage, d->name, &op->y, &op->w);
    return op;
}

void pn_add_forward(pn_op *op, const float *a, const float *b, float *y)
{
    const void *const pointer[] = {a, b, y};
    void *at[3];
    cpu_enter(&op->forward, pointer, at);
    share(op->stage->run->threads, op->floats,
          (map){.three = op->def.add.relu ? sum_relu : sum, .a = at[0], .b = at[1], .to = at[2]});
    cpu_leave(&op->forward, pointer);
}

void pn_add_backward(pn_op *op, int input, const float *gy, float *gx)
{
    cpu_transfer(input == 0 ? &op->backward_data : &op->backward_weights, gy, gx);
}
