/* Minibatches: samples gathered from memory and normalised on their way into the caller's buffer, so that all stages
 * that ask for minibatch n see the same samples whatever else happens.
 *
 * Training: an epoch is a shuffled order of all samples, cut into whole minibatches; the ragged rest of an epoch is
 * dropped (other samples each time). Test: batches in order; a ragged last one is filled up with sample 0, which does
 * not count. */
#include <string.h>

#include "rt.h"

/* Samples of the same image planes: to[i] = from[i] * scale + shift, per channel. */
static void normalise_bytes(const pn_dataset *data, const uint8_t *restrict from, float *restrict to)
{
    const int64_t plane = data->height * data->width;
    for (int64_t c = 0; c < data->channels; c++) {
        const float scale = data->scale[c < 8 ? c : 0], shift = data->shift[c < 8 ? c : 0];
        for (int64_t i = 0; i < plane; i++)
            to[i] = (float)from[i] * scale + shift;
        from += plane;
        to += plane;
    }
}

static void normalise_values(const pn_dataset *data, const float *restrict from, float *restrict to)
{
    const int64_t plane = data->height * data->width;
    for (int64_t c = 0; c < data->channels; c++) {
        const float scale = data->scale[c < 8 ? c : 0], shift = data->shift[c < 8 ? c : 0];
        for (int64_t i = 0; i < plane; i++)
            to[i] = from[i] * scale + shift;
        from += plane;
        to += plane;
    }
}

/* Writes `sample` to place i of the minibatch at `to`. */
static void put(const pn_dataset *data, bool test, bool label, int64_t sample, int64_t i, void *to)
{
    const int64_t size = data->channels * data->height * data->width;
    const uint8_t *pixels = test ? data->test_pixels : data->train_pixels;
    const float *values = test ? data->test_values : data->train_values;
    const uint16_t *labels = test ? data->test_labels : data->train_labels;
    if (label)
        ((int32_t *)to)[i] = labels[sample];
    else if (pixels)
        normalise_bytes(data, pixels + sample * size, (float *)to + i * size);
    else
        normalise_values(data, values + sample * size, (float *)to + i * size);
}

void pn_input(pn_stage *stage, int64_t n, int input, void *to)
{
    const pn_program *program = stage->run->program;
    const pn_dataset *data = stage->run->data;
    const int64_t batch = program->batch, batches = data->train_count / batch;
    const int64_t epoch = n / batches, first = n % batches * batch;
    for (int64_t i = 0; i < batch; i++)
        put(data, false, program->input[input].label,
            pn_shuffled(stage->run->seed, epoch, first + i, data->train_count), i, to);
}

int64_t pn_test_count(pn_stage *stage, int64_t n)
{
    const int64_t batch = stage->run->program->batch;
    const int64_t left = stage->run->data->test_count - n * batch;
    return left < batch ? left : batch;
}

void pn_test_input(pn_stage *stage, int64_t n, int input, void *to)
{
    const pn_program *program = stage->run->program;
    const int64_t batch = program->batch, count = pn_test_count(stage, n);
    for (int64_t i = 0; i < batch; i++)
        put(stage->run->data, true, program->input[input].label, i < count ? n * batch + i : 0, i, to);
}
