/* loss.c: losses: a kernel gives each sample's loss and whether its label has the largest value; report.c does the
 * rest. */
#include "cuda/cuda.h"

static pn_op *open(pn_stage *stage, const pn_loss_def *def, const char *forward, const char *backward)
{
    pn_op *op = cuda_op_new(stage, def->name);
    op->loss.batch = def->x->dim[0];
    op->loss.labels = def->target->rank == 1;
    op->loss.rows = cuda_alloc(stage, op->loss.batch * 2 * (int64_t)sizeof(float), "the losses of the samples");
    op->loss.forward = cuda_kernel_find(stage, def->name, "forward", forward);
    op->loss.backward = cuda_kernel_find(stage, def->name, "backward", backward);
    return op;
}

pn_op *pn_softmax_cross_entropy_init(pn_stage *stage, const pn_loss_def *def)
{
    return open(stage, def, "pppp", "ppp");
}

void pn_softmax_cross_entropy_forward(pn_op *op, int64_t minibatch, const void *x, const int32_t *label,
                                      float *probability)
{
    CUDA_LAUNCH(op->stage, &op->loss.forward, 0, &op->loss.rows, &probability, &x, &label);
    cuda_report(op->stage, op->loss.rows, op->loss.batch, minibatch, false, true);
}

void pn_softmax_cross_entropy_backward(pn_op *op, const float *probability, const int32_t *label, void *gx)
{
    CUDA_LAUNCH(op->stage, &op->loss.backward, 0, &gx, &probability, &label);
}

void pn_softmax_cross_entropy_test(pn_op *op, int64_t n, const void *x, const int32_t *label)
{
    float *none = NULL;
    CUDA_LAUNCH(op->stage, &op->loss.forward, 0, &op->loss.rows, &none, &x, &label);
    cuda_report(op->stage, op->loss.rows, pn_test_count(op->stage, n), n, true, true);
}

pn_op *pn_mse_init(pn_stage *stage, const pn_loss_def *def)
{
    return open(stage, def, "ppp", "pppf");
}

void pn_mse_forward(pn_op *op, int64_t minibatch, const void *x, const void *target)
{
    CUDA_LAUNCH(op->stage, &op->loss.forward, 0, &op->loss.rows, &x, &target);
    cuda_report(op->stage, op->loss.rows, op->loss.batch, minibatch, false, op->loss.labels);
}

void pn_mse_backward(pn_op *op, const void *x, const void *target, int input, void *gx)
{
    float sign = input == 0 ? 1.0f : -1.0f;
    CUDA_LAUNCH(op->stage, &op->loss.backward, 0, &gx, &x, &target, &sign);
}

void pn_mse_test(pn_op *op, int64_t n, const void *x, const void *target)
{
    CUDA_LAUNCH(op->stage, &op->loss.forward, 0, &op->loss.rows, &x, &target);
    cuda_report(op->stage, op->loss.rows, pn_test_count(op->stage, n), n, true, op->loss.labels);
}
