/* CIFAR-10, binary version: five training files and one test file of 3073-byte records. */
#include "data/cifar.h"

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
