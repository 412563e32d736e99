/* ops.c: what the verbs share: new ops, layouts, parameters to and from plain order. */
#include <stdlib.h>

#include "cuda/cuda.h"

static pn_layout channels_last = {.name = "channels last"}, plain = {.name = "plain"};

pn_op *cuda_op_new(pn_stage *stage, const char *name)
{
    pn_op *op = pn_alloc(sizeof *op);
    op->stage = stage;
    op->name = name;
    (void)cuda_stage_of(stage);
    return op;
}

void cuda_op_writes(pn_tensor *y)
{
    y->layout = y->rank == 4 ? &channels_last : &plain;
}

/* Replicas are refused by the compiler. */
pn_layout *pn_layout_of_batch(pn_stage *stage, pn_layout *layout, const pn_tensor *tensor)
{
    (void)layout;
    pn_fail(stage, "internal error: %s is a slice of a register", tensor->name);
}

int64_t pn_tensor_floats(const pn_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

int64_t cuda_bytes(const pn_tensor *t)
{
    return pn_tensor_floats(t) * (int64_t)(t->element == PN_BF16 ? sizeof(pn_bf16) : sizeof(float));
}

/* ---- element by element ---- */

int64_t cuda_blocks(int64_t items)
{
    return (items + CUDA_THREADS - 1) / CUDA_THREADS;
}

void pn_relu_mask(const pn_tensor *t, const void *y, void *gy)
{
    pn_stage *stage = cuda_stage_at_work();
    int n = (int)pn_tensor_floats(t);
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->relu_mask, cuda_blocks(n), &gy, &y, &n);
}

void pn_accumulate(const pn_tensor *t, void *to, const void *from)
{
    pn_stage *stage = cuda_stage_at_work();
    int n = (int)pn_tensor_floats(t);
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->accumulate, cuda_blocks(n), &to, &from, &n);
}

void pn_copy(const pn_tensor *t, void *to, const void *from)
{
    pn_stage *stage = cuda_stage_at_work();
    CU(stage, t->name,
       cudaMemcpyAsync(to, from, (size_t)cuda_bytes(t), cudaMemcpyDeviceToDevice, cuda_stage_of(stage)->stream));
}

/* ---- parameters: by the host, before the run, between steps and after it ---- */

void cuda_param_layout(pn_param *param, int64_t channels, int64_t plane)
{
    pn_layout *layout = pn_alloc(sizeof *layout);
    *layout = (pn_layout){"channels last", channels, plane};
    param->layout = layout;
}

static int64_t floats_of(const pn_param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

/* Index in plain order of element i as it is stored. */
static int64_t plain_place(const pn_param *param, int64_t i)
{
    const pn_layout *l = param->layout;
    if (!l)
        return i;
    const int64_t block = l->channels * l->plane, inner = i % block;
    return i - inner + inner % l->channels * l->plane + inner / l->channels;
}

static float *room_for(const pn_param *param)
{
    float *room = malloc(sizeof *room * (size_t)floats_of(param) + 1);
    if (!room)
        pn_fail(NULL, "out of memory: need %lld bytes for %s", (long long)floats_of(param) * 4, param->name);
    return room;
}

void pn_param_to_plain(const pn_param *param, const float *stored, float *plain_values)
{
    float *room = room_for(param);
    CU(NULL, param->name, cudaMemcpy(room, stored, sizeof *room * (size_t)floats_of(param), cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < floats_of(param); i++)
        plain_values[plain_place(param, i)] = room[i];
    free(room);
}

void pn_param_from_plain(const pn_param *param, const float *plain_values, float *stored)
{
    float *room = room_for(param);
    for (int64_t i = 0; i < floats_of(param); i++)
        room[i] = plain_values[plain_place(param, i)];
    CU(NULL, param->name, cudaMemcpy(stored, room, sizeof *room * (size_t)floats_of(param), cudaMemcpyHostToDevice));
    CU(NULL, param->name, cudaDeviceSynchronize()); /* streams of stages do not wait for a copy by the default one */
    free(room);
}

/* ---- what there is nothing of: threads of the host, copies that change a layout ---- */

/* The host has no part of a kernel's work to share. */
void pn_target_split(const pn_stage *stage, int64_t count, int64_t unit, pn_part_fn *work, void *data)
{
    (void)stage, (void)unit;
    if (count > 0)
        work(data, 0, count);
}

void pn_target_reorders(const pn_stage *stage, pn_reorder_fn *tell, void *to)
{
    (void)stage;
    (void)tell;
    (void)to;
}
