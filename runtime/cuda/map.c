/* map.c: the verbs that are one kernel a pass: pools and everything element by element. */
#include "cuda/cuda.h"

static pn_op *open(pn_stage *stage, const char *name, pn_tensor *y, const char *forward, const char *backward)
{
    pn_op *op = cuda_op_new(stage, name);
    cuda_op_writes(y);
    op->map.forward = cuda_kernel_find(stage, name, "forward", forward);
    op->map.backward = cuda_kernel_find(stage, name, "backward", backward);
    return op;
}

static void two(pn_op *op, const cuda_kernel *kernel, void *to, const void *from)
{
    CUDA_LAUNCH(op->stage, kernel, 0, &to, &from);
}

/* ---- pools ---- */

pn_op *pn_maxpool_init(pn_stage *stage, const pn_pool_def *def)
{
    return open(stage, def->name, def->y, "ppp", "ppp");
}

void pn_maxpool_forward(pn_op *op, const void *x, void *y, void *argmax)
{
    CUDA_LAUNCH(op->stage, &op->map.forward, 0, &y, &argmax, &x);
}

void pn_maxpool_backward(pn_op *op, const void *gy, const void *argmax, void *gx)
{
    CUDA_LAUNCH(op->stage, &op->map.backward, 0, &gx, &gy, &argmax);
}

pn_op *pn_avgpool_init(pn_stage *stage, const pn_pool_def *def)
{
    return open(stage, def->name, def->y, "pp", "pp");
}

void pn_avgpool_forward(pn_op *op, const void *x, void *y)
{
    two(op, &op->map.forward, y, x);
}

void pn_avgpool_backward(pn_op *op, const void *gy, void *gx)
{
    two(op, &op->map.backward, gx, gy);
}

/* ---- element by element ---- */

pn_op *pn_pointwise_init(pn_stage *stage, const pn_pointwise_def *def)
{
    return open(stage, def->name, def->y, "pp", "ppp");
}

void pn_pointwise_forward(pn_op *op, const void *x, void *y)
{
    two(op, &op->map.forward, y, x);
}

void pn_pointwise_backward(pn_op *op, const void *saved, const void *gy, void *gx)
{
    CUDA_LAUNCH(op->stage, &op->map.backward, 0, &gx, &saved, &gy);
}

pn_op *pn_lrn_init(pn_stage *stage, const pn_lrn_def *def)
{
    return open(stage, def->name, def->y, "pp", "ppp");
}

void pn_lrn_forward(pn_op *op, const void *x, void *y)
{
    two(op, &op->map.forward, y, x);
}

void pn_lrn_backward(pn_op *op, const void *x, const void *gy, void *gx)
{
    CUDA_LAUNCH(op->stage, &op->map.backward, 0, &gx, &x, &gy);
}

pn_op *pn_flatten_init(pn_stage *stage, const pn_flatten_def *def)
{
    return open(stage, def->name, def->y, "pp", "pp");
}

void pn_flatten_forward(pn_op *op, const void *x, void *y)
{
    two(op, &op->map.forward, y, x);
}

void pn_flatten_backward(pn_op *op, const void *gy, void *gx)
{
    two(op, &op->map.backward, gx, gy);
}

pn_op *pn_shortcut_init(pn_stage *stage, const pn_shortcut_def *def)
{
    return open(stage, def->name, def->y, "pp", "pp");
}

void pn_shortcut_forward(pn_op *op, const void *x, void *y)
{
    two(op, &op->map.forward, y, x);
}

void pn_shortcut_backward(pn_op *op, const void *gy, void *gx)
{
    two(op, &op->map.backward, gx, gy);
}

static void copy(pn_op *op, int64_t bytes, void *to, const void *from)
{
    CU(op->stage, op->name,
       cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, cuda_stage_of(op->stage)->stream));
}

pn_op *pn_add_init(pn_stage *stage, const pn_add_def *def)
{
    pn_op *op = cuda_op_new(stage, def->name);
    cuda_op_writes(def->y);
    op->add.forward = cuda_kernel_find(stage, def->name, "forward", "ppp");
    op->add.bytes = cuda_bytes(def->y);
    return op;
}

void pn_add_forward(pn_op *op, const void *a, const void *b, void *y)
{
    CUDA_LAUNCH(op->stage, &op->add.forward, 0, &y, &a, &b);
}

void pn_add_backward(pn_op *op, int input, const void *gy, void *gx)
{
    (void)input;
    copy(op, op->add.bytes, gx, gy);
}

pn_op *pn_concat_init(pn_stage *stage, const pn_concat_def *def)
{
    pn_op *op = cuda_op_new(stage, def->name);
    cuda_op_writes(def->y);
    for (int i = 0; i < def->count; i++) {
        char pass[32];
        snprintf(pass, sizeof pass, "forward%d", i);
        op->concat.forward[i] = cuda_kernel_find(stage, def->name, pass, "pp");
        snprintf(pass, sizeof pass, "backward%d", i);
        op->concat.backward[i] = cuda_kernel_find(stage, def->name, pass, "pp");
    }
    return op;
}

void pn_concat_forward(pn_op *op, int input, const void *x, void *y)
{
    two(op, &op->concat.forward[input], y, x);
}

void pn_concat_backward(pn_op *op, int input, const void *gy, void *gx)
{
    two(op, &op->concat.backward[input], gx, gy);
}

/* ---- dropout: the number of the minibatch is read on the device ---- */

pn_op *pn_dropout_init(pn_stage *stage, const pn_dropout_def *def)
{
    pn_op *op = cuda_op_new(stage, def->name);
    cuda_op_writes(def->y);
    op->dropout.forward = cuda_kernel_find(stage, def->name, "forward", "ppppl");
    op->dropout.backward = cuda_kernel_find(stage, def->name, "backward", "ppp");
    op->dropout.key = pn_key(stage->run->seed, def->name);
    op->dropout.bytes = cuda_bytes(def->y);
    return op;
}

void pn_dropout_forward(pn_op *op, int64_t minibatch, const void *x, void *y, uint8_t *mask)
{
    (void)minibatch;
    uint64_t *number = cuda_number(cuda_stage_of(op->stage));
    CUDA_LAUNCH(op->stage, &op->dropout.forward, 0, &y, &mask, &x, &number, &op->dropout.key);
}

void pn_dropout_backward(pn_op *op, const void *gy, const uint8_t *mask, void *gx)
{
    CUDA_LAUNCH(op->stage, &op->dropout.backward, 0, &gx, &gy, &mask);
}

void pn_dropout_test(pn_op *op, const void *x, void *y)
{
    copy(op, op->dropout.bytes, y, x);
}
