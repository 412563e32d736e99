/* Microbatches: samples gathered from memory, augmented and normalised on their way into the caller's buffer, so that
 * all stages that ask for microbatch n see the same samples whatever else happens. The microbatches of a minibatch are
 * consecutive slices of it: together they see what it would see unsliced.
 *
 * A replica of a stage gets its slice of the minibatch.
 *
 * Training: an epoch is a shuffled order of all samples, cut into whole minibatches; the ragged rest of an epoch is
 * dropped (other samples each time). Test: batches in order; a ragged last one is filled up with sample 0, which does
 * not count; never augmented. */
#include <string.h>
#include <time.h>

#include "data/data.h"

/* to[i] = from[i] * scale + shift, per channel: one sample. */
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

/* Sample `sample` of raw data at `from` to place i of the minibatch at `to`. */
static void normalise(const pn_dataset *data, const void *from, int64_t sample, int64_t i, void *to)
{
    const int64_t size = data->channels * data->height * data->width;
    if (data->train_pixels)
        normalise_bytes(data, (const uint8_t *)from + sample * size, (float *)to + i * size);
    else
        normalise_values(data, (const float *)from + sample * size, (float *)to + i * size);
}

int64_t pn_raw_bytes(const pn_dataset *data)
{
    return data->channels * data->height * data->width * (data->train_pixels ? 1 : (int64_t)sizeof(float));
}

int64_t pn_place_of(const pn_run *run, int64_t n, int64_t i)
{
    return n % pn_microbatches(run->program) * pn_slice(run->program) + i;
}

int64_t pn_sample_of(const pn_run *run, int64_t n, int64_t i)
{
    const int64_t count = run->data->train_count, batch = run->program->batch, batches = count / batch;
    const int64_t minibatch = n / pn_microbatches(run->program);
    return pn_shuffled(run->seed, minibatch / batches, minibatch % batches * batch + pn_place_of(run, n, i), count);
}

/* ---- training ---- */
static void put_labels(const pn_stage *stage, int64_t n, int32_t *to)
{
    for (int64_t i = 0; i < stage->samples; i++)
        to[i] = stage->run->data->train_labels[pn_sample_of(stage->run, n, stage->first_sample + i)];
}

static void gather(pn_stage *stage, int64_t n, void *to)
{
    const pn_run *run = stage->run;
    const pn_dataset *data = run->data;
    const void *samples = data->train_pixels ? (const void *)data->train_pixels : data->train_values;
    for (int64_t i = 0; i < stage->samples; i++) {
        const int64_t place = stage->first_sample + i, sample = pn_sample_of(run, n, place);
        if (!data->moved) {
            normalise(data, samples, sample, i, to);
            continue;
        }
        void *moved = data->moved + stage->worker * pn_raw_bytes(data);
        pn_move_sample(data, pn_move_of(data, run->seed, n / pn_microbatches(run->program), pn_place_of(run, n, place)),
                       sample, moved);
        normalise(data, moved, 0, i, to);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void pn_input(pn_stage *stage, int64_t n, int input, void *to)
{
    const pn_program *program = stage->run->program;
    if (pn_target_input(stage, n, input, false, to))
        return;
    if (program->input[input].label) {
        put_labels(stage, n, to);
        return;
    }
    const void *ready = pn_ready(stage, n, input);
    if (!ready) {
        double begin = seconds();
        gather(stage, n, to);
        stage->data_seconds += seconds() - begin;
        return;
    }
    for (int64_t i = 0; i < stage->samples; i++)
        normalise(stage->run->data, ready, stage->first_sample + i, i, to);
    pn_ready_done(stage, n, input);
}

/* ---- test ---- */
int64_t pn_test_count(pn_stage *stage, int64_t n)
{
    const int64_t first = n * pn_slice(stage->run->program) + stage->first_sample;
    const int64_t left = stage->run->data->test_count - first;
    return left < 0 ? 0 : left < stage->samples ? left : stage->samples;
}

void pn_test_input(pn_stage *stage, int64_t n, int input, void *to)
{
    const pn_program *program = stage->run->program;
    const pn_dataset *data = stage->run->data;
    if (pn_target_input(stage, n, input, true, to))
        return;
    const void *samples = data->test_pixels ? (const void *)data->test_pixels : data->test_values;
    const int64_t first = n * pn_slice(program) + stage->first_sample, count = pn_test_count(stage, n);
    for (int64_t i = 0; i < stage->samples; i++) {
        int64_t sample = i < count ? first + i : 0;
        if (program->input[input].label)
            ((int32_t *)to)[i] = data->test_labels[sample];
        else
            normalise(data, samples, sample, i, to);
    }
}
