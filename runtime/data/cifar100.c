/* CIFAR-100, binary version: one training and one test file of 3074-byte records, coarse label first; fine labels are
 * used. */
#include "data/cifar.h"

static void cifar100_open(pn_dataset *data, const pn_program *program, const pn_choice *choice, const char *path,
                          uint64_t seed)
{
    static const char *const train[] = {"train.bin", NULL};
    static const char *const test[] = {"test.bin", NULL};
    (void)program, (void)choice, (void)seed;
    pn_source_need_path("cifar100", path);
    data->train_count = pn_cifar_read(path, train, 2, 100, &data->train_pixels, &data->train_labels);
    data->test_count = pn_cifar_read(path, test, 2, 100, &data->test_pixels, &data->test_labels);
    data->channels = 3;
    data->height = data->width = 32;
    data->classes = 100;
    pn_source_normalise(data, 0, 0.5071, 0.2673); /* of the 50000 training images, as published for this set */
    pn_source_normalise(data, 1, 0.4865, 0.2564);
    pn_source_normalise(data, 2, 0.4409, 0.2762);
    snprintf(data->what, sizeof data->what, "CIFAR-100, %lld + %lld images of 32x32", (long long)data->train_count,
             (long long)data->test_count);
}

const pn_source pn_source_cifar100 = {.name = "cifar100", .folder = "cifar-100-binary", .open = cifar100_open};
