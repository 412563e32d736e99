/* Data sources on files that this test makes: what is read, how minibatches are made of it, and what is said of bad
 * files. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "rt.h"

static char folder[64];

/* ---- making files ---- */
static const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void write_gzip(const char *name, const void *bytes, size_t count)
{
    gzFile file = gzopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)count), (int)count);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Byte i of a file is a hash of i: no two stretches are equal. */
static uint8_t byte_at(int64_t i)
{
    return (uint8_t)pn_random(1, (uint64_t)i);
}

enum { IMAGE = 28 * 28, MNIST_TRAIN = 12, MNIST_TEST = 7 };

static size_t idx_images(uint8_t *to, int count)
{
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)count, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(to, head, 16);
    for (int i = 0; i < count * IMAGE; i++)
        to[16 + i] = byte_at(i);
    return 16 + (size_t)count * IMAGE;
}

static size_t idx_labels(uint8_t *to, int count)
{
    const uint8_t head[8] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)count};
    memcpy(to, head, 8);
    for (int i = 0; i < count; i++)
        to[8 + i] = (uint8_t)(i * 3 % 10);
    return 8 + (size_t)count;
}

static uint8_t buffer[1 << 16];

static void make_mnist(void)
{
    static uint8_t made[1 << 14];
    write_file("train-images-idx3-ubyte", made, idx_images(made, MNIST_TRAIN));
    write_file("train-labels-idx1-ubyte", made, idx_labels(made, MNIST_TRAIN));
    write_file("t10k-images-idx3-ubyte", made, idx_images(made, MNIST_TEST));
    write_file("t10k-labels-idx1-ubyte", made, idx_labels(made, MNIST_TEST));
}

static void empty_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -f %s/*", folder);
    assert_int_equal(system(command), 0);
}

/* ---- a program that reads them ---- */
static const pn_input_def image_inputs[] = {{.name = "image", .rank = 3, .dim = {1, 28, 28}},
                                            {.name = "label", .label = true, .classes = 10}};
static const pn_input_def colour_inputs[] = {{.name = "image", .rank = 3, .dim = {3, 32, 32}},
                                             {.name = "label", .label = true, .classes = 100}};
static const pn_input_def number_inputs[] = {{.name = "x", .rank = 1, .dim = {2}},
                                             {.name = "label", .label = true, .classes = 256}};

static pn_program program;
static pn_run run;
static pn_stage stage;

static void prepare(const char *source, const pn_input_def *input, int64_t batch)
{
    program = (pn_program){.name = "net", .batch = batch, .input = input, .ninputs = 2, .data = {.name = source}};
    run = (pn_run){.program = &program, .seed = 1};
    stage = (pn_stage){.run = &run};
}

/* What was opened stays reachable: data sets live until the program ends. */
static void open_option(const char *option)
{
    static const pn_dataset *opened[32];
    static int nopened;
    assert_in_range(nopened, 0, 31);
    pn_data_open(&run, option);
    opened[nopened] = run.data;
    assert_non_null(opened[nopened++]);
}

static void open_data(const char *source, const pn_input_def *input, int64_t batch)
{
    prepare(source, input, batch);
    open_option(folder);
}

static void check_float(float got, double wanted)
{
    assert_true(got > wanted - 1e-5 && got < wanted + 1e-5);
}

static void check_mnist(void)
{
    float image[3 * IMAGE];
    int32_t label[3];
    open_data("mnist", image_inputs, 3);
    assert_int_equal(run.data->train_count, MNIST_TRAIN);
    assert_int_equal(run.data->test_count, MNIST_TEST);
    pn_test_input(&stage, 1, 0, image);
    pn_test_input(&stage, 1, 1, label);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(label[i], (3 + i) * 3 % 10);
        for (int p = 0; p < IMAGE; p++)
            check_float(image[i * IMAGE + p], (byte_at((3 + i) * IMAGE + p) / 255.0 - 0.1307) / 0.3081);
    }
}

static void test_mnist(void **state)
{
    (void)state;
    empty_folder();
    make_mnist();
    check_mnist();
}

static void test_mnist_gzip_and_other_names(void **state)
{
    (void)state;
    empty_folder();
    write_gzip("train-images-idx3-ubyte.gz", buffer, idx_images(buffer, MNIST_TRAIN));
    write_gzip("train-labels.idx1-ubyte.gz", buffer, idx_labels(buffer, MNIST_TRAIN));
    write_file("t10k-images.idx3-ubyte", buffer, idx_images(buffer, MNIST_TEST));
    write_gzip("t10k-labels-idx1-ubyte", buffer, idx_labels(buffer, MNIST_TEST)); /* gzip under a plain name */
    check_mnist();
}

static void test_data_option(void **state)
{
    (void)state;
    char option[128];
    empty_folder();
    make_mnist();
    prepare("digits", image_inputs, 3);
    snprintf(option, sizeof option, "mnist:%s", folder);
    open_option(option);
    assert_int_equal(run.data->train_count, MNIST_TRAIN);

    const pn_arg argument[] = {{.key = "path", .text = folder}};
    prepare("mnist", image_inputs, 3);
    program.data.arg = argument;
    program.data.nargs = 1;
    open_option(NULL);
    assert_int_equal(run.data->train_count, MNIST_TRAIN);
}

static void write_cifar(const char *name, int records, int label_bytes, int first, int classes)
{
    size_t at = 0;
    for (int i = 0; i < records; i++) {
        if (label_bytes == 2)
            buffer[at++] = 19; /* the coarse class */
        buffer[at++] = (uint8_t)((first + i) * 7 % classes);
        for (int p = 0; p < 3072; p++)
            buffer[at++] = byte_at((int64_t)(first + i) * 3072 + p);
    }
    write_file(name, buffer, at);
}

static void check_cifar(int64_t classes, const double *mean, const double *deviation)
{
    float image[2 * 3072];
    int32_t label[2];
    pn_test_input(&stage, 0, 0, image);
    pn_test_input(&stage, 0, 1, label);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(label[i], i * 7 % classes);
        for (int p = 0; p < 3072; p++)
            check_float(image[i * 3072 + p], (byte_at(i * 3072 + p) / 255.0 - mean[p / 1024]) / deviation[p / 1024]);
    }
}

static void test_cifar10(void **state)
{
    (void)state;
    empty_folder();
    for (int i = 0; i < 5; i++) {
        char name[] = "data_batch_1.bin";
        name[11] = (char)('1' + i);
        write_cifar(name, 2 + i, 1, 0, 10);
    }
    write_cifar("test_batch.bin", 3, 1, 0, 10);
    open_data("cifar10", colour_inputs, 2);
    assert_int_equal(run.data->train_count, 2 + 3 + 4 + 5 + 6);
    assert_int_equal(run.data->train_labels[2 + 3 + 2], 14 % 10); /* record 2 of the third file */
    assert_memory_equal(run.data->train_pixels + (2 + 3) * 3072, run.data->train_pixels, 3072);
    check_cifar(10, (const double[]){0.4914, 0.4822, 0.4465}, (const double[]){0.2470, 0.2435, 0.2616});
}

static void test_cifar100(void **state)
{
    (void)state;
    empty_folder();
    write_cifar("train.bin", 5, 2, 0, 100);
    write_cifar("test.bin", 3, 2, 0, 100);
    open_data("cifar100", colour_inputs, 2);
    assert_int_equal(run.data->train_count, 5);
    check_cifar(100, (const double[]){0.5071, 0.4865, 0.4409}, (const double[]){0.2673, 0.2564, 0.2762});
}

/* Sample i is (i, -i), its label i. */
static void make_numbers(int train, int test)
{
    const int count[] = {train, test};
    static const char *const split[] = {"train", "test"};
    for (int s = 0; s < 2; s++) {
        float value[512];
        uint8_t label[256];
        char name[32];
        for (int i = 0; i < count[s]; i++) {
            value[2 * i] = (float)i;
            value[2 * i + 1] = (float)-i;
            label[i] = (uint8_t)i;
        }
        snprintf(name, sizeof name, "%s.f32", split[s]);
        write_file(name, value, (size_t)count[s] * 2 * sizeof *value);
        snprintf(name, sizeof name, "%s.labels", split[s]);
        write_file(name, label, (size_t)count[s]);
    }
}

static void test_raw_bytes(void **state)
{
    (void)state;
    empty_folder();
    make_numbers(4, 4);
    unlink(in_folder("train.f32"));
    unlink(in_folder("test.f32"));
    write_file("train.u8", "\x00\x33\xff\x66\x01\x02\x03\x04", 8);
    write_file("test.u8", "\x00\x33\xff\x66\x01\x02\x03\x04", 8);
    open_data("raw", number_inputs, 2);
    float x[4];
    pn_test_input(&stage, 0, 0, x);
    check_float(x[0], 0.0);
    check_float(x[1], 0.2);
    check_float(x[2], 1.0);
    check_float(x[3], 0.4);
}

/* An epoch is a permutation without its ragged rest; image and label stay together; epochs and seeds differ. */
static void test_shuffle(void **state)
{
    (void)state;
    enum { COUNT = 103, BATCH = 10, BATCHES = COUNT / BATCH, EPOCHS = 4 };
    int order[2 * EPOCHS][BATCHES * BATCH];
    empty_folder();
    make_numbers(COUNT, 25);
    open_data("raw", number_inputs, BATCH);
    for (int e = 0; e < 2 * EPOCHS; e++) {
        bool seen[COUNT] = {false};
        run.seed = e < EPOCHS ? 1 : 2;
        for (int b = 0; b < BATCHES; b++) {
            float x[2 * BATCH];
            int32_t label[BATCH];
            const int64_t n = e % EPOCHS * BATCHES + b;
            pn_input(&stage, n, 0, x);
            pn_input(&stage, n, 1, label);
            for (int i = 0; i < BATCH; i++) {
                assert_in_range(label[i], 0, COUNT - 1);
                assert_true(x[2 * i] == (float)label[i] && x[2 * i + 1] == (float)-label[i]);
                assert_false(seen[label[i]]);
                seen[label[i]] = true;
                order[e][b * BATCH + i] = label[i];
            }
        }
        for (int before = 0; before < e; before++)
            assert_memory_not_equal(order[before], order[e], sizeof order[e]);
    }
}

static void test_ragged_test_batch(void **state)
{
    (void)state;
    empty_folder();
    make_numbers(30, 25);
    open_data("raw", number_inputs, 10);
    assert_int_equal(pn_test_count(&stage, 0), 10);
    assert_int_equal(pn_test_count(&stage, 2), 5);
    int32_t label[10];
    pn_test_input(&stage, 2, 1, label);
    for (int i = 0; i < 10; i++)
        assert_int_equal(label[i], i < 5 ? 20 + i : 0);
}

/* The same bytes on every machine: FNV-1a of the first images, as drawn when the test was written. */
static void test_digits(void **state)
{
    (void)state;
    const pn_arg argument[] = {{.key = "train", .number = 50}, {.key = "test", .number = 20}};
    prepare("digits", image_inputs, 10);
    program.data.arg = argument;
    program.data.nargs = 2;
    open_option(NULL);
    assert_int_equal(run.data->train_count, 50);
    assert_int_equal(run.data->test_count, 20);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < 20 * IMAGE; i++)
        hash = (hash ^ run.data->train_pixels[i]) * 0x100000001b3u;
    assert_true(hash == UINT64_C(0x198933793f3c804));
    const pn_dataset *first = run.data;
    run.seed = 2;
    open_option(NULL);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(first->train_labels[i], i % 10);
        assert_memory_not_equal(first->train_pixels + i * IMAGE, run.data->train_pixels + i * IMAGE, IMAGE);
    }
}

/* ---- bad files ---- */
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

static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    unsetenv("PNET_DATA");
    snprintf(folder, sizeof folder, "%.40s/rt_data.XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist),       cmocka_unit_test(test_mnist_gzip_and_other_names),
        cmocka_unit_test(test_data_option), cmocka_unit_test(test_cifar10),
        cmocka_unit_test(test_cifar100),    cmocka_unit_test(test_raw_bytes),
        cmocka_unit_test(test_shuffle),     cmocka_unit_test(test_ragged_test_batch),
        cmocka_unit_test(test_digits),      cmocka_unit_test(test_bad_mnist),
        cmocka_unit_test(test_bad_gzip),    cmocka_unit_test(test_bad_others),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
