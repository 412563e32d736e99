/* Raw arrays in a folder: train.f32 (little-endian floats, used as they are) or train.u8 (bytes, divided by 255),
 * test.* likewise, sample after sample, each with the shape of the program's tensor input. train.labels and test.labels
 * hold a byte a sample; they are read when the program has a label input. The number of samples follows from the length
 * of the file. */
#include <string.h>

#include "data/data.h"

static const pn_input_def *find_input(const pn_program *program, bool label)
{
    for (int i = 0; i < program->ninputs; i++)
        if (program->input[i].label == label)
            return &program->input[i];
    return NULL;
}

typedef struct {
    int64_t count;
    const uint8_t *pixels;
    const float *values;
    const uint16_t *labels;
} samples;

static samples read_part(const char *folder, const char *split, int64_t sample, const pn_input_def *label)
{
    static const char hint[] = "raw data are train.f32 or train.u8, train.labels, test.f32 or test.u8, test.labels";
    char path[PN_PATH], labels_path[PN_PATH], floats[32], bytes[32], labels[32];
    samples part = {0};
    snprintf(floats, sizeof floats, "%s.f32", split);
    snprintf(bytes, sizeof bytes, "%s.u8", split);
    snprintf(labels, sizeof labels, "%s.labels", split);
    const char *float_names[] = {floats, NULL}, *byte_names[] = {bytes, NULL}, *label_names[] = {labels, NULL};
    bool is_bytes = pn_file_find(path, folder, byte_names);
    if (is_bytes && pn_file_find(path, folder, float_names))
        pn_fail(NULL, "%s: both %s and %s are there; one is needed", folder, floats, bytes);
    pn_file_need(path, folder, is_bytes ? byte_names : float_names, hint);
    pn_file file = pn_file_read(path);
    int64_t record = sample * (is_bytes ? 1 : (int64_t)sizeof(float));
    if (file.count % record != 0)
        pn_fail(NULL, "%s: truncated, or another shape: %lld bytes are no whole number of samples of %lld bytes", path,
                (long long)file.count, (long long)record);
    part.count = file.count / record;
    if (is_bytes)
        part.pixels = file.bytes;
    else
        part.values = (const float *)(const void *)file.bytes; /* malloc's alignment suits floats */
    if (label) {
        pn_file_need(labels_path, folder, label_names, hint);
        file = pn_file_read(labels_path);
        if (file.count != part.count)
            pn_fail(NULL, "%s: %lld labels, but %s has %lld samples", labels_path, (long long)file.count, path,
                    (long long)part.count);
        uint16_t *number = pn_alloc(file.count * (int64_t)sizeof *number);
        pn_source_labels(labels_path, file.bytes, 1, file.count, label->classes, number);
        pn_file_free(&file);
        part.labels = number;
    }
    return part;
}

static void raw_open(pn_dataset *data, const pn_program *program, const pn_choice *choice, const char *path,
                     uint64_t seed)
{
    (void)choice, (void)seed;
    pn_source_need_path("raw", path);
    const pn_input_def *input = find_input(program, false), *label = find_input(program, true);
    if (!input)
        pn_fail(NULL, "raw data need a network with a tensor input");
    int64_t sample = 1;
    for (int i = 0; i < input->rank; i++)
        sample *= input->dim[i]; /* the compiler checked this product */
    samples train = read_part(path, "train", sample, label), test = read_part(path, "test", sample, label);
    data->train_count = train.count;
    data->test_count = test.count;
    data->channels = input->rank == 3 ? input->dim[0] : 1;
    data->height = input->rank == 3 ? input->dim[1] : 1;
    data->width = sample / data->channels / data->height;
    data->classes = label ? label->classes : 0;
    data->train_pixels = train.pixels;
    data->test_pixels = test.pixels;
    data->train_values = train.values;
    data->test_values = test.values;
    data->train_labels = train.labels;
    data->test_labels = test.labels;
    if ((train.pixels != NULL) != (test.pixels != NULL))
        pn_fail(NULL, "%s: train and test must both be .f32 or both .u8", path);
    for (int i = 0; i < 8; i++) {
        data->scale[i] = train.pixels ? 1.0f / 255.0f : 1.0f;
        data->shift[i] = 0.0f;
    }
    snprintf(data->what, sizeof data->what, "raw data, %lld + %lld samples of %lld numbers", (long long)train.count,
             (long long)test.count, (long long)sample);
}

const pn_source pn_source_raw = {.name = "raw", .open = raw_open};
