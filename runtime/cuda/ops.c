/* ops.c: what the verbs share: new ops, layouts, parameters to and from plain order, inputs, the optimiser. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    return pn_tensor_floats(t) * (int64_t)sizeof(float);
}

/* ---- element by element ---- */

static int64_t blocks_of(int64_t items)
{
    return (items + CUDA_THREADS - 1) / CUDA_THREADS;
}

void pn_relu_mask(const pn_tensor *t, const float *y, float *gy)
{
    pn_stage *stage = cuda_stage_at_work();
    int n = (int)pn_tensor_floats(t);
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->relu_mask, blocks_of(n), &gy, &y, &n);
}

void pn_accumulate(const pn_tensor *t, float *to, const float *from)
{
    pn_stage *stage = cuda_stage_at_work();
    int n = (int)pn_tensor_floats(t);
    CUDA_LAUNCH(stage, &cuda_stage_of(stage)->accumulate, blocks_of(n), &to, &from, &n);
}

void pn_copy(const pn_tensor *t, float *to, const float *from)
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

/* ---- optimisers: arguments and states in the order of core/choices.def ---- */

typedef struct {
    pn_stage *stage;
    const float *w, *g;
    float *next, *state;
    int n;
} Update;

static void sgd(Update u, const double *value, const pn_terms *terms)
{
    enum { WEIGHT_DECAY = 1 };
    float rate = (float)terms->rate, momentum = (float)terms->momentum, decay = (float)value[WEIGHT_DECAY];
    float on_velocity = (float)terms->on_velocity, on_gradient = (float)terms->on_gradient;
    CUDA_LAUNCH(u.stage, &cuda_stage_of(u.stage)->sgd, blocks_of(u.n), &u.next, &u.w, &u.g, &u.state, &rate, &momentum,
                &decay, &on_velocity, &on_gradient, &u.n);
}

static void adam(Update u, const double *value, const pn_terms *terms, bool decoupled)
{
    enum { BETA2 = 1, EPSILON, WEIGHT_DECAY };
    const double t = (double)(terms->t + 1);
    float step = (float)(terms->rate / (1 - pow(terms->momentum, t)));
    float scale = (float)(1 / sqrt(1 - pow(value[BETA2], t))), epsilon = (float)value[EPSILON];
    float keep = decoupled ? (float)(1 - terms->rate * value[WEIGHT_DECAY]) : 1;
    float decay = decoupled ? 0 : (float)value[WEIGHT_DECAY];
    float beta1 = (float)terms->momentum, beta2 = (float)value[BETA2], *square = u.state + u.n;
    CUDA_LAUNCH(u.stage, &cuda_stage_of(u.stage)->adam, blocks_of(u.n), &u.next, &u.w, &u.g, &u.state, &square, &step,
                &scale, &epsilon, &keep, &decay, &beta1, &beta2, &u.n);
}

/* The compiler lets nothing else through, and no cure (emit.c). */
bool pn_target_update(pn_stage *stage, const char *name, const double *value, const pn_terms *terms, const float *w,
                      float *next)
{
    const pn_stage_def *def = stage->def;
    const Update u = {stage, w, def->gradient, next, def->state, (int)def->weight_floats};
    if (def->cure)
        pn_fail(stage, "internal error: an update with a cure has no kernel");
    if (strcmp(name, "sgd") == 0)
        sgd(u, value, terms);
    else if (strcmp(name, "adam") == 0 || strcmp(name, "adamw") == 0)
        adam(u, value, terms, strcmp(name, "adamw") == 0);
    else
        pn_fail(stage, "internal error: optimizer %s has no kernel", name);
    return true;
}

/* ---- inputs ---- */

void cuda_picks_set(cuda_stage *cuda, int64_t n, bool test)
{
    pn_stage *stage = cuda->stage;
    const int64_t batch = stage->run->program->batch;
    if (cuda->picked == n && cuda->picked_test == test)
        return;
    for (int64_t first = 0; first < batch; first += CUDA_THREADS) {
        cuda_picks picks = {0};
        cuda_pick *to = cuda->picks + first;
        int count = (int)(batch - first < CUDA_THREADS ? batch - first : CUDA_THREADS);
        for (int i = 0; i < count; i++) {
            const pn_pick pick = pn_pick_of(stage->run, n, first + i, test);
            picks.pick[i] = (cuda_pick){(int32_t)pick.sample, (int16_t)pick.down, (int16_t)pick.right, pick.mirror};
        }
        CUDA_LAUNCH(stage, &cuda->set_picks, 1, &to, &picks, &count);
    }
    cuda->picked = n;
    cuda->picked_test = test;
}

bool pn_target_input(pn_stage *stage, int64_t n, int input, bool test, void *to)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    const pn_dataset *data = stage->run->data;
    const pn_input_def *def = &stage->run->program->input[input];
    cuda_pick *picks = cuda->picks;
    int batch = (int)stage->run->program->batch;
    cuda_graphs_inputs(cuda);
    cuda_picks_set(cuda, n, test);
    if (def->label) {
        void *labels = cuda->device->labels[test];
        CUDA_LAUNCH(stage, &cuda->gather_labels, blocks_of(batch), &to, &labels, &picks, &batch);
        return true;
    }
    void *samples = cuda->device->samples[test];
    cuda_images images = {batch, (int)data->channels, (int)data->height, (int)data->width, def->rank == 3, {0}, {0}};
    memcpy(images.scale, data->scale, sizeof images.scale);
    memcpy(images.shift, data->shift, sizeof images.shift);
    CUDA_LAUNCH(stage, &cuda->gather, blocks_of(batch * data->channels * data->height * data->width), &to, &samples,
                &picks, &images);
    return true;
}

/* ---- one way for everything: no algorithm to measure, no copy that changes a layout ---- */

/* The host has no part of a kernel's work to share. */
void pn_target_split(const pn_stage *stage, int64_t count, int64_t unit, pn_part_fn *work, void *data)
{
    (void)stage, (void)unit;
    if (count > 0)
        work(data, 0, count);
}

void pn_target_algorithms(const pn_stage *stage, pn_algorithm_fn *tell, void *to)
{
    (void)stage, (void)tell, (void)to;
}

bool pn_target_measure(pn_stage *stage)
{
    (void)stage;
    return true;
}

void pn_target_settle(pn_stage *stage)
{
    (void)stage;
}

void pn_target_reorders(const pn_stage *stage, pn_reorder_fn *tell, void *to)
{
    (void)stage;
    (void)tell;
    (void)to;
}
