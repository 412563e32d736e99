/* input.c: the number of a step's minibatch, which the device counts by itself, and its samples, which it picks and
 * gathers from the data set that lies there. The host only says where counting begins. Test batches are told from the
 * host. */
#include <string.h>

#include "cuda/cuda.h"

enum { FORWARD, AGAIN };
struct cuda_numbers {
    uint64_t *number;         /* on the device: [CUDA_NUMBERS] */
    int64_t at[CUDA_NUMBERS]; /* what that will be behind all that was launched */
    int64_t n;                /* of the step at work */
    cuda_asked asked;         /* by it so far */
    bool picked;
    cuda_pick *picks; /* on the device: of the step */
    cuda_sampler sampler;
    cuda_kernel set, next, pick, in_order;
};

/* Formulas: pn_sample_of and pn_move_of (data/). */
static cuda_sampler sampler_of(const pn_run *run)
{
    const pn_program *program = run->program;
    const pn_dataset *data = run->data;
    cuda_sampler s = {.batch = (int32_t)program->batch,
                      .slice = (int32_t)pn_slice(program),
                      .slices = (int32_t)pn_microbatches(program)};
    if (!data)
        return s;
    s.shuffle = pn_key(run->seed, "shuffle");
    s.augment = pn_key(run->seed, "augment");
    s.count = data->train_count;
    s.batches = data->train_count / program->batch;
    s.half = pn_shuffle_half(data->train_count);
    s.crop = (int32_t)data->crop;
    s.flip = data->flip;
    s.moves = data->moved != NULL;
    return s;
}

void cuda_numbers_open(cuda_stage *cuda)
{
    pn_stage *stage = cuda->stage;
    struct cuda_numbers *c = pn_alloc(sizeof *c);
    c->number = cuda_alloc(stage, CUDA_NUMBERS * (int64_t)sizeof *c->number, "the number of the minibatch");
    c->picks = cuda_alloc(stage, pn_slice(stage->run->program) * (int64_t)sizeof *c->picks, "which samples");
    c->at[FORWARD] = c->at[AGAIN] = -2; /* in front of no minibatch */
    c->sampler = sampler_of(stage->run);
    c->set = cuda_kernel_common(stage, "set_number", "pl");
    c->next = cuda_kernel_common(stage, "next_number", "p");
    c->pick = cuda_kernel_common(stage, "pick_samples", "ppS");
    c->in_order = cuda_kernel_common(stage, "pick_in_order", "piii");
    cuda->numbers = c;
}

void cuda_numbers_begin(cuda_stage *cuda, int64_t n)
{
    struct cuda_numbers *c = cuda->numbers;
    c->n = n;
    c->asked = (cuda_asked){{false, false}};
    c->picked = false;
}

cuda_asked cuda_numbers_asked(const cuda_stage *cuda)
{
    return cuda->numbers->asked;
}

void cuda_numbers_launch(cuda_stage *cuda, const cuda_asked *asked, int64_t n)
{
    struct cuda_numbers *c = cuda->numbers;
    for (int which = 0; which < CUDA_NUMBERS; which++) {
        if (!asked->asked[which])
            continue;
        if (c->at[which] != n - 1) {
            uint64_t *to = c->number + which, before = (uint64_t)n - 1;
            CUDA_LAUNCH(cuda->stage, &c->set, 1, &to, &before);
        }
        c->at[which] = n;
    }
}

uint64_t *cuda_number(cuda_stage *cuda)
{
    struct cuda_numbers *c = cuda->numbers;
    const int which = cuda->stage->recomputing ? AGAIN : FORWARD;
    uint64_t *number = c->number + which;
    if (c->asked.asked[which])
        return number;
    cuda_asked only = {{false, false}};
    c->asked.asked[which] = only.asked[which] = true;
    if (!cuda->stage->captures)
        cuda_numbers_launch(cuda, &only, c->n);
    CUDA_LAUNCH(cuda->stage, &c->next, 1, &number);
    return number;
}

/* ---- samples ---- */

/* Once for all inputs of a step. */
static void pick(cuda_stage *cuda, int64_t n, bool test)
{
    struct cuda_numbers *c = cuda->numbers;
    int slice = c->sampler.slice;
    if (c->picked)
        return;
    if (test) {
        int first = (int)(n * slice), count = (int)cuda->stage->run->data->test_count;
        CUDA_LAUNCH(cuda->stage, &c->in_order, cuda_blocks(slice), &c->picks, &first, &count, &slice);
    } else {
        uint64_t *number = cuda_number(cuda);
        CUDA_LAUNCH(cuda->stage, &c->pick, cuda_blocks(slice), &c->picks, &number, &c->sampler);
    }
    c->picked = true;
}

bool pn_target_input(pn_stage *stage, int64_t n, int input, bool test, void *to)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    const pn_dataset *data = stage->run->data;
    const pn_input_def *def = &stage->run->program->input[input];
    cuda_pick *picks = cuda->numbers->picks;
    int batch = cuda->numbers->sampler.slice;
    pick(cuda, n, test);
    if (def->label) {
        void *labels = cuda->device->labels[test];
        CUDA_LAUNCH(stage, &cuda->gather_labels, cuda_blocks(batch), &to, &labels, &picks, &batch);
        return true;
    }
    void *samples = cuda->device->samples[test];
    cuda_images images = {batch, (int)data->channels, (int)data->height, (int)data->width, def->rank == 3, {0}, {0}};
    memcpy(images.scale, data->scale, sizeof images.scale);
    memcpy(images.shift, data->shift, sizeof images.shift);
    CUDA_LAUNCH(stage, &cuda->gather, cuda_blocks(batch * data->channels * data->height * data->width), &to, &samples,
                &picks, &images);
    return true;
}
