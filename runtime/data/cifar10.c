/* CIFAR-10, binary version: five training files and one test file of 3073-byte records. */
#include <string.h>

#include "data/cifar.h"

enum { IMAGE = 3 * 32 * 32, MOST_FILES = 8 };

int64_t pn_cifar_read(const char *folder, const char *const *files, int label_bytes, int64_t classes,
                      const uint8_t **pixels, const uint16_t **labels)
{
    char path[MOST_FILES][PN_PATH], hint[128];
    pn_file content[MOST_FILES];
    const int64_t record = label_bytes + IMAGE;
    int nfiles = 0;
    int64_t count = 0;
    snprintf(hint, sizeof hint, "the binary version of CIFAR-%lld is expected (.bin files)", (long long)classes);
    for (; nfiles < MOST_FILES && files[nfiles]; nfiles++) {
        const char *names[] = {files[nfiles], NULL};
        pn_file_need(path[nfiles], folder, names, hint);
        content[nfiles] = pn_file_read(path[nfiles]);
        if (content[nfiles].count % record != 0)
            pn_fail(NULL, "%s: truncated, or not CIFAR-%lld: %lld bytes are no whole number of records of %lld bytes",
                    path[nfiles], (long long)classes, (long long)content[nfiles].count, (long long)record);
        count += content[nfiles].count / record;
    }
    uint8_t *image = pn_alloc(count * IMAGE);
    uint16_t *label = pn_alloc(count * (int64_t)sizeof *label);
    int64_t at = 0;
    for (int f = 0; f < nfiles; f++) {
        int64_t records = content[f].count / record;
        pn_source_labels(path[f], content[f].bytes + label_bytes - 1, record, records, classes, label + at);
        for (int64_t i = 0; i < records; i++, at++)
            memcpy(image + at * IMAGE, content[f].bytes + i * record + label_bytes, IMAGE);
        pn_file_free(&content[f]);
    }
    *pixels = image;
    *labels = label;
    return count;
}

static void cifar10_open(pn_dataset *data, const pn_program *program, const pn_choice *choice, const char *path,
                         uint64_t seed)
{
    static const char *const train[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                        "data_batch_4.bin", "data_batch_5.bin", NULL};
    static const char *const test[] = {"test_batch.bin", NULL};
    (void)program, (void)choice, (void)seed;
    pn_source_need_path("cifar10", path);
    data->train_count = pn_cifar_read(path, train, 1, 10, &data->train_pixels, &data->train_labels);
    data->test_count = pn_cifar_read(path, test, 1, 10, &data->test_pixels, &data->test_labels);
    data->channels = 3;
    data->height = data->width = 32;
    data->classes = 10;
    pn_source_normalise(data, 0, 0.4914, 0.2470); /* of the 50000 training images */
    pn_source_normalise(data, 1, 0.4822, 0.2435);
    pn_source_normalise(data, 2, 0.4465, 0.2616);
    snprintf(data->what, sizeof data->what, "CIFAR-10, %lld + %lld images of 32x32", (long long)data->train_count,
             (long long)data->test_count);
}

const pn_source pn_source_cifar10 = {.name = "cifar10", .folder = "cifar-10-batches-bin", .open = cifar10_open};
