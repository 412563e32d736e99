/* verbs_loss.c: the verbs of the losses for target ref. A forward reports the minibatch's mean loss, a test the sum
 * over the samples of the batch that count. */
#include "ref/verbs.h"

static pn_op *loss_init(pn_stage *stage, const pn_loss_def *def)
{
    pn_op *op = ref_op_new(stage, def->name);
    op->loss.def = *def;
    op->loss.batch = def->x->dim[0];
    op->loss.size = pn_tensor_floats(def->x) / def->x->dim[0];
    op->loss.labels = def->target->rank == 1;
    ref_op_reads(op, def->x);
    ref_op_reads(op, def->target);
    return op;
}

pn_op *pn_softmax_cross_entropy_init(pn_stage *stage, const pn_loss_def *def)
{
    return loss_init(stage, def);
}

pn_op *pn_mse_init(pn_stage *stage, const pn_loss_def *def)
{
    return loss_init(stage, def);
}

static int64_t whole_batch(const pn_op *op)
{
    return pn_whole_batch(op->stage, op->loss.batch);
}

static void check(const pn_op *op, int64_t count, const float *x, const void *target)
{
    ref_op_check(op, op->loss.def.x, REF_VALUE, x);
    ref_op_check(op, op->loss.def.target, REF_VALUE, target);
    const int32_t *label = target;
    for (int64_t n = 0; op->loss.labels && n < count; n++)
        if (label[n] < 0 || label[n] >= op->loss.size)
            pn_fail(op->stage, "%s: label %d of sample %lld is not below %lld", op->name, label[n], (long long)n,
                    (long long)op->loss.size);
}

void pn_softmax_cross_entropy_forward(pn_op *op, int64_t minibatch, const float *x, const int32_t *label,
                                      float *probability)
{
    int64_t correct;
    check(op, op->loss.batch, x, label);
    const double loss = ref_softmax_cross_entropy(op->loss.batch, op->loss.size, x, label, probability, &correct);
    pn_report_loss(op->stage, minibatch, loss, correct, op->loss.batch);
}

void pn_softmax_cross_entropy_backward(pn_op *op, const float *probability, const int32_t *label, float *gx)
{
    ref_op_check(op, op->loss.def.x, REF_GRADIENT, gx);
    ref_softmax_cross_entropy_backward(op->loss.batch, whole_batch(op), op->loss.size, probability, label, gx);
}

void pn_softmax_cross_entropy_test(pn_op *op, int64_t n, const float *x, const int32_t *label)
{
    const int64_t count = pn_test_count(op->stage, n);
    int64_t correct;
    check(op, count, x, label);
    const double loss = ref_softmax_cross_entropy(count, op->loss.size, x, label, NULL, &correct);
    pn_report_test(op->stage, n, loss * (double)count, correct, count);
}

static double squares(const pn_op *op, int64_t count, const float *x, const void *target, int64_t *correct)
{
    check(op, count, x, target);
    return ref_mse(count, op->loss.size, x, op->loss.labels ? NULL : target, op->loss.labels ? target : NULL, correct);
}

void pn_mse_forward(pn_op *op, int64_t minibatch, const float *x, const void *target)
{
    int64_t correct;
    const double loss = squares(op, op->loss.batch, x, target, &correct);
    pn_report_loss(op->stage, minibatch, loss, correct, op->loss.batch);
}

void pn_mse_backward(pn_op *op, const float *x, const void *target, int input, float *gx)
{
    ref_op_check(op, op->loss.def.x, REF_VALUE, x);
    ref_op_check(op, input == 0 ? op->loss.def.x : op->loss.def.target, REF_GRADIENT, gx);
    ref_mse_backward(op->loss.batch, whole_batch(op), op->loss.size, x, op->loss.labels ? NULL : target,
                     op->loss.labels ? target : NULL, input == 0 ? 1.0f : -1.0f, gx);
}

void pn_mse_test(pn_op *op, int64_t n, const float *x, const void *target)
{
    const int64_t count = pn_test_count(op->stage, n);
    int64_t correct;
    const double loss = squares(op, count, x, target, &correct);
    pn_report_test(op->stage, n, loss * (double)count, correct, count);
}
