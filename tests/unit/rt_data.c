/* Data sources on files that this test makes: what is read, and how minibatches are made of it. */
#include "unit/data_files.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mnist),       cmocka_unit_test(test_mnist_gzip_and_other_names),
        cmocka_unit_test(test_data_option), cmocka_unit_test(test_cifar10),
        cmocka_unit_test(test_cifar100),    cmocka_unit_test(test_raw_bytes),
        cmocka_unit_test(test_shuffle),     cmocka_unit_test(test_ragged_test_batch),
        cmocka_unit_test(test_digits),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
