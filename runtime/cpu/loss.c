/* loss.c: dropout and the losses: defined in plain order, so they run the naive kernels of every target on plain copies
 * (which are the slots themselves where these are plain). Losses calculate in double. */
#include "cpu.h"
#include "ref/kernels.h"

/* ---- dropout ---- */
pn_op *pn_dropout_init(pn_stage *stage, const pn_dropout_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_dropout_def *d = &op->def.dropout;
    op->def.dropout = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    const pn_layout *y = cpu_choose(stage, d->y, x->stored);
    op->floats = cpu_elements(d->x);
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, 0, x->plain, false);
    cpu_call_port(&op->forward, &op->y, 0, x->plain, true);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->y, 0, x->plain, false);
    cpu_call_port(&op->backward_data, &op->x, 0, x->plain, true);
    cpu_call_close(&op->backward_data, NULL);
    cpu_transfer_init(&op->test, stage, d->name, &op->x, &op->y);
    return op;
}

/* Plain elements. */
typedef struct {
    bool makes_mask;
    double probability;
    int64_t first; /* place of the first in the whole minibatch */
    uint64_t key;
    const float *from;
    uint8_t *mask;
    float *to;
} elements;

static void drop_part(void *data, int64_t from, int64_t to)
{
    const elements *all = data;
    if (all->makes_mask)
        ref_dropout_mask(all->key, all->probability, all->first + from, to - from, all->mask + from);
    ref_dropout(all->probability, to - from, all->from + from, all->mask + from, all->to + from);
}

static void drop(const pn_op *op, const cpu_call *call, const float *from, elements all, float *to)
{
    const void *const pointer[] = {from, to};
    void *at[2];
    cpu_enter(call, pointer, at);
    all.probability = op->def.dropout.probability;
    all.from = at[0];
    all.to = at[1];
    pn_target_split(op->stage, op->floats, CPU_FLOATS, drop_part, &all);
    cpu_leave(call, pointer);
}

void pn_dropout_forward(pn_op *op, int64_t minibatch, const float *x, float *y, uint8_t *mask)
{
    const uint64_t key = pn_dropout_key(op->stage->run->seed, op->name, minibatch);
    const elements all = {.makes_mask = true, .first = pn_slice_begin(op->stage, op->floats), .key = key, .mask = mask};
    drop(op, &op->forward, x, all, y);
}

void pn_dropout_backward(pn_op *op, const float *gy, const uint8_t *mask, float *gx)
{
    drop(op, &op->backward_data, gy, (elements){.mask = (uint8_t *)mask}, gx);
}

void pn_dropout_test(pn_op *op, const float *x, float *y)
{
    cpu_transfer(&op->test, x, y);
}

/* ---- softmax cross entropy ---- */
static int64_t batch_of(const pn_op *op)
{
    return op->def.loss.x->dim[0];
}
static int64_t whole_batch(const pn_op *op)
{
    return pn_whole_batch(op->stage, batch_of(op));
}
static int64_t size_of(const pn_op *op)
{
    return op->floats / batch_of(op);
}

pn_op *pn_softmax_cross_entropy_init(pn_stage *stage, const pn_loss_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    op->def.loss = *def;
    const pn_layout *x = cpu_layout(stage, def->x);
    op->floats = cpu_elements(def->x);
    cpu_bank_tensor(&op->x, stage, "x", def->x, x->stored);
    cpu_call_open(&op->forward, stage, op->name);
    cpu_call_port(&op->forward, &op->x, 0, x->plain, false);
    cpu_call_close(&op->forward, NULL);
    cpu_call_open(&op->backward_data, stage, op->name);
    cpu_call_port(&op->backward_data, &op->x, 0, x->plain, true);
    cpu_call_close(&op->backward_data, NULL);
    return op;
}

static double cross_entropy(const pn_op *op, int64_t count, const float *x, const int32_t *label, float *probability,
                            int64_t *correct)
{
    const void *const pointer[] = {x};
    void *at[1];
    cpu_enter(&op->forward, pointer, at);
    return ref_softmax_cross_entropy(count, size_of(op), at[0], label, probability, correct);
}

void pn_softmax_cross_entropy_forward(pn_op *op, int64_t minibatch, const float *x, const int32_t *label,
                                      float *probability)
{
    int64_t correct = 0;
    const double loss = cross_entropy(op, batch_of(op), x, label, probability, &correct);
    pn_report_loss(op->stage, minibatch, loss, correct, batch_of(op));
}

void pn_softmax_cross_entropy_backward(pn_op *op, const float *probability, const int32_t *label, float *gx)
{
    const void *const pointer[] = {gx};
    void *at[1];
    cpu_enter(&op->backward_data, pointer, at);
    ref_softmax_cross_entropy_backward(batch_of(op), whole_batch(op), size_of(op), probability, label, at[0]);
    cpu_leave(&op->backward_data, pointer);
}

void pn_softmax_cross_entropy_test(pn_op *op, int64_t n, const float *x, const int32_t *label)
{
    const int64_t count = pn_test_count(op->stage, n);
    int64_t correct = 0;
    const double loss = cross_entropy(op, count, x, label, NULL, &correct);
    pn_report_test(op->stage, n, loss * (double)count, correct, count);
}

/* ---- mean squared error: calls forward, and backward of either input ---- */
static bool has_labels(const pn_op *op)
{
    return op->def.loss.target->rank == 1;
}

static void mse_ports(pn_op *op, cpu_call *call, const cpu_bank *gradient)
{
    const pn_loss_def *d = &op->def.loss;
    cpu_call_open(call, op->stage, op->name);
    cpu_call_port(call, &op->x, 0, d->x->layout->plain, false);
    if (!has_labels(op))
        cpu_call_port(call, &op->y, 0, d->target->layout->plain, false);
    if (gradient)
        cpu_call_port(call, gradient, 0, d->x->layout->plain, true);
    cpu_call_close(call, NULL);
}

pn_op *pn_mse_init(pn_stage *stage, const pn_loss_def *def)
{
    pn_op *op = cpu_op(stage, def->name);
    op->def.loss = *def;
    op->floats = cpu_elements(def->x);
    cpu_bank_tensor(&op->x, stage, "x", def->x, cpu_layout(stage, def->x)->stored);
    if (!has_labels(op))
        cpu_bank_tensor(&op->y, stage, "the target", def->target, cpu_layout(stage, def->target)->stored);
    mse_ports(op, &op->forward, NULL);
    mse_ports(op, &op->backward_data, &op->x);
    if (!has_labels(op))
        mse_ports(op, &op->backward_weights, &op->y);
    return op;
}

/* Plain x and target; one of target and label is NULL. */
typedef struct {
    const float *x, *target;
    const int32_t *label;
    void *gradient;
} mse_inputs;

static mse_inputs mse_enter(const pn_op *op, const cpu_call *call, const float *x, const void *target, float *gradient)
{
    void *at[3] = {NULL, NULL, NULL};
    if (has_labels(op)) {
        cpu_enter(call, (const void *const[]){x, gradient}, at);
        return (mse_inputs){at[0], NULL, target, at[1]};
    }
    cpu_enter(call, (const void *const[]){x, target, gradient}, at);
    return (mse_inputs){at[0], at[1], NULL, at[2]};
}

void pn_mse_forward(pn_op *op, int64_t minibatch, const float *x, const void *target)
{
    const mse_inputs in = mse_enter(op, &op->forward, x, target, NULL);
    int64_t correct = 0;
    const double loss = ref_mse(batch_of(op), size_of(op), in.x, in.target, in.label, &correct);
    pn_report_loss(op->stage, minibatch, loss, correct, batch_of(op));
}

void pn_mse_backward(pn_op *op, const float *x, const void *target, int input, float *gx)
{
    const cpu_call *call = input == 0 ? &op->backward_data : &op->backward_weights;
    const mse_inputs in = mse_enter(op, call, x, target, gx);
    ref_mse_backward(batch_of(op), whole_batch(op), size_of(op), in.x, in.target, in.label, input == 0 ? 1.0f : -1.0f,
                     in.gradient);
    if (has_labels(op))
        cpu_leave(call, (const void *const[]){x, gx});
    else
        cpu_leave(call, (const void *const[]){x, target, gx});
}

void pn_mse_test(pn_op *op, int64_t n, const float *x, const void *target)
{
    const int64_t count = pn_test_count(op->stage, n);
    const mse_inputs in = mse_enter(op, &op->forward, x, target, NULL);
    int64_t correct = 0;
    const double loss = ref_mse(count, size_of(op), in.x, in.target, in.label, &correct);
    pn_report_test(op->stage, n, loss * (double)count, correct, count);
}
