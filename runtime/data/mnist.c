/* MNIST, and sets in its format (Fashion-MNIST, KMNIST): four IDX files in one folder, 28x28 grey, 10 classes. */
#include "data/data.h"

typedef struct {
    const char *images[3], *labels[3]; /* as published, as some archives spell it */
} split_files;
static const split_files train_files = {{"train-images-idx3-ubyte", "train-images.idx3-ubyte", NULL},
                                        {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte", NULL}};
static const split_files test_files = {{"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", NULL},
                                       {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte", NULL}};

static int64_t read_pair(const split_files *files, const char *folder, const uint8_t **pixels, const uint16_t **labels)
{
    static const char hint[] = "the folder of MNIST holds train-images-idx3-ubyte, train-labels-idx1-ubyte, "
                               "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte";
    char images_path[PN_PATH], labels_path[PN_PATH];
    pn_file_need(images_path, folder, files->images, hint);
    pn_file_need(labels_path, folder, files->labels, hint);
    pn_idx images = pn_idx_read(images_path, 3);
    if (images.dim[1] != 28 || images.dim[2] != 28)
        pn_fail(NULL, "%s: images of %lldx%lld; those of MNIST are 28x28", images_path, (long long)images.dim[1],
                (long long)images.dim[2]);
    pn_idx label = pn_idx_read(labels_path, 1);
    if (label.dim[0] != images.dim[0])
        pn_fail(NULL, "%s: %lld labels, but %s has %lld images", labels_path, (long long)label.dim[0], images_path,
                (long long)images.dim[0]);
    *pixels = images.items;
    uint16_t *number = pn_alloc(label.dim[0] * (int64_t)sizeof *number);
    pn_source_labels(labels_path, label.items, 1, label.dim[0], 10, number);
    pn_file_free(&label.file);
    *labels = number;
    return images.dim[0];
}

static void mnist_open(pn_dataset *data, const pn_program *program, const pn_choice *choice, const char *path,
                       uint64_t seed)
{
    (void)program, (void)seed;
    pn_source_need_path("mnist", path);
    data->train_count = read_pair(&train_files, path, &data->train_pixels, &data->train_labels);
    data->test_count = read_pair(&test_files, path, &data->test_pixels, &data->test_labels);
    data->channels = 1;
    data->height = data->width = 28;
    data->classes = 10;
    /* By default those of the 60000 training images. */
    pn_source_normalise(data, 0, pn_source_number(choice, "mean"), pn_source_number(choice, "deviation"));
    snprintf(data->what, sizeof data->what, "MNIST, %lld + %lld images of 28x28", (long long)data->train_count,
             (long long)data->test_count);
}

const pn_source pn_source_mnist = {.name = "mnist", .folder = "mnist", .open = mnist_open};
