/* Bad data files: what is said of them. Each ends the program with exit code 1 and one line that names the file. */
#include <sys/wait.h>

#include "unit/data_files.h"

static const pn_arg *arguments; /* of the source, when one is set */

/* Opens in a child: it must exit 1, and its first line say `wanted`. */
static void check_fails(const char *source, const pn_input_def *input, const char *option, const char *wanted)
{
    int pipe_end[2], status;
    char said[2048] = {0};
    assert_int_equal(pipe(pipe_end), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipe_end[1], STDERR_FILENO);
        prepare(source, input, 3);
        program.data.arg = arguments;
        program.data.nargs = arguments ? 1 : 0;
        pn_data_open(&run, option);
        _exit(0);
    }
    close(pipe_end[1]);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof said - 1 && (got = read(pipe_end[0], said + length, sizeof said - 1 - length)) > 0)
        length += (size_t)got;
    close(pipe_end[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    char *end = strchr(said, '\n');
    assert_non_null(end);
    *end = 0; /* a leak checker may speak after the message */
    if (!strstr(said, wanted))
        fail_msg("said: %s wanted: %s", said, wanted);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 1);
}

static void spoil(const char *name, const void *bytes, size_t count, const char *wanted)
{
    make_mnist();
    write_file(name, bytes, count);
    char says[512];
    snprintf(says, sizeof says, "%s/%s: %s", folder, name, wanted);
    check_fails("mnist", image_inputs, folder, says);
}

static void test_bad_mnist(void **state)
{
    (void)state;
    static const char images[] = "train-images-idx3-ubyte", labels[] = "train-labels-idx1-ubyte";
    empty_folder();
    spoil(images, "", 0, "the file is empty");
    spoil(images, "\0\0", 2, "truncated: 2 bytes are too few");
    spoil(images, "\0\0\x08\x03\0\0\0", 7, "truncated: the head");
    spoil(images, "PK\x03\x04 a zip file", 14, "not an IDX file of images: it starts with 0x504b0304");
    size_t count = idx_images(buffer, MNIST_TRAIN);
    spoil(images, buffer, count - 1, "truncated: its head promises 12 images of 28x28, 9408 bytes; there are 9407");
    spoil(images, buffer, count + 1, "too long");
    buffer[11] = 29;
    spoil(images, buffer, count + 12 * 28, "images of 29x28");
    memset(buffer + 4, 255, 12);
    spoil(images, buffer, count, "its dimensions are impossible");
    memset(buffer + 4, 0, 4);
    spoil(images, buffer, count, "holds no images");
    count = idx_labels(buffer, MNIST_TRAIN);
    spoil(images, buffer, count, "this file holds labels, not images: are the files swapped?");
    buffer[8 + 5] = 10;
    spoil(labels, buffer, count, "label 10 of sample 5 is out of range");
    count = idx_labels(buffer, MNIST_TEST);
    spoil(labels, buffer, count, "7 labels, but");
    count = idx_images(buffer, MNIST_TRAIN);
    spoil(labels, buffer, count, "this file holds images, not labels: are the files swapped?");

    make_mnist();
    unlink(in_folder(labels));
    check_fails("mnist", image_inputs, folder, "no train-labels-idx1-ubyte in it");
    make_mnist();
    check_fails("mnist", image_inputs, in_folder(labels), "not a folder");
    check_fails("mnist", image_inputs, "/nonexistent/folder", "/nonexistent/folder: No such file or directory");
    check_fails("mnist", image_inputs, NULL, "--data DIR");
    check_fails("mnist", colour_inputs, folder, "a sample is 1x28x28, which does not fit input image of net");
    check_fails("digits", image_inputs, folder, "digits reads no files");
}

static void test_bad_gzip(void **state)
{
    (void)state;
    static const char name[] = "train-images-idx3-ubyte";
    static uint8_t packed[1 << 16];
    empty_folder();
    write_gzip(name, buffer, idx_images(buffer, MNIST_TRAIN));
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    size_t count = fread(packed, 1, sizeof packed, file);
    fclose(file);
    assert_in_range(count, 1000, sizeof packed - 1);
    spoil(name, packed, count / 2, "truncated: the gzip data end early");
    spoil(name, packed, count - 3, "truncated: the gzip data end early");
    packed[count - 6] ^= 1; /* in the CRC */
    spoil(name, packed, count, "incorrect data check");
}

static void test_bad_others(void **state)
{
    (void)state;
    empty_folder();
    write_cifar("train.bin", 5, 2, 0, 100);
    write_cifar("test.bin", 3, 2, 0, 100);
    check_fails("cifar10", colour_inputs, folder, "no data_batch_1.bin in it");
    write_cifar("test.bin", 3, 1, 0, 10);
    check_fails("cifar100", colour_inputs, folder, "no whole number of records of 3074 bytes");
    write_cifar("test.bin", 3, 2, 0, 256);
    write_cifar("train.bin", 16, 2, 0, 256);
    check_fails("cifar100", colour_inputs, folder, "label 105 of sample 15 is out of range");

    empty_folder();
    make_numbers(5, 4);
    write_file("test.labels", "abc", 3);
    check_fails("raw", number_inputs, folder, "3 labels, but");
    write_file("test.f32", "abcde", 5);
    check_fails("raw", number_inputs, folder, "5 bytes are no whole number of samples of 8 bytes");
    write_file("train.u8", "abcd", 4);
    check_fails("raw", number_inputs, folder, "both train.f32 and train.u8");
    empty_folder();
    make_numbers(2, 4);
    check_fails("raw", number_inputs, folder, "a batch of 3 needs more training samples");
}

static void test_bad_augmentation(void **state)
{
    (void)state;
    static const pn_arg half = {.key = "crop", .number = 2.5}, large = {.key = "crop", .number = 29},
                        flip = {.key = "flip", .number = 1};
    empty_folder();
    make_mnist();
    arguments = &half;
    check_fails("mnist", image_inputs, folder, "mnist: crop wants a whole number of pixels");
    arguments = &large;
    check_fails("mnist", image_inputs, folder, "not more than the 28x28 of an image");
    empty_folder();
    make_numbers(4, 3);
    arguments = &flip;
    check_fails("raw", number_inputs, folder, "raw: crop and flip are for images");
    arguments = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_mnist),
        cmocka_unit_test(test_bad_gzip),
        cmocka_unit_test(test_bad_others),
        cmocka_unit_test(test_bad_augmentation),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
