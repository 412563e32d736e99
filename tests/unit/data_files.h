/* data_files.h: files that the tests of data sources make in a folder of their own, and a program to read them. */
#ifndef DATA_FILES_H
#define DATA_FILES_H

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "rt.h"

static char folder[64];

/* ---- making files ---- */
static inline const char *in_folder(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void write_file(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static inline void write_gzip(const char *name, const void *bytes, size_t count)
{
    gzFile file = gzopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, bytes, (unsigned)count), (int)count);
    assert_int_equal(gzclose(file), Z_OK);
}

/* Byte i of a file is a hash of i: no two stretches are equal. */
static inline uint8_t byte_at(int64_t i)
{
    return (uint8_t)pn_random(1, (uint64_t)i);
}

enum { IMAGE = 28 * 28, MNIST_TRAIN = 12, MNIST_TEST = 7 };

static inline size_t idx_images(uint8_t *to, int count)
{
    const uint8_t head[16] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)count, 0, 0, 0, 28, 0, 0, 0, 28};
    memcpy(to, head, 16);
    for (int i = 0; i < count * IMAGE; i++)
        to[16 + i] = byte_at(i);
    return 16 + (size_t)count * IMAGE;
}

static inline size_t idx_labels(uint8_t *to, int count)
{
    const uint8_t head[8] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)count};
    memcpy(to, head, 8);
    for (int i = 0; i < count; i++)
        to[8 + i] = (uint8_t)(i * 3 % 10);
    return 8 + (size_t)count;
}

static uint8_t buffer[1 << 16];

static inline void make_mnist(void)
{
    static uint8_t made[1 << 14];
    write_file("train-images-idx3-ubyte", made, idx_images(made, MNIST_TRAIN));
    write_file("train-labels-idx1-ubyte", made, idx_labels(made, MNIST_TRAIN));
    write_file("t10k-images-idx3-ubyte", made, idx_images(made, MNIST_TEST));
    write_file("t10k-labels-idx1-ubyte", made, idx_labels(made, MNIST_TEST));
}

static inline void empty_folder(void)
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

static inline void prepare(const char *source, const pn_input_def *input, int64_t batch)
{
    program = (pn_program){.name = "net", .batch = batch, .input = input, .ninputs = 2, .data = {.name = source}};
    run = (pn_run){.program = &program, .seed = 1};
    stage = (pn_stage){.run = &run, .samples = batch};
}

static inline void write_cifar(const char *name, int records, int label_bytes, int first, int classes)
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

/* Sample i is (i, -i), its label i. */
static inline void make_numbers(int train, int test)
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

static inline int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    unsetenv("PNET_DATA");
    snprintf(folder, sizeof folder, "%.40s/rt_data.XXXXXX", temporary ? temporary : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    empty_folder();
    return rmdir(folder);
}

#endif
