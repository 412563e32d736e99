/* Weights files: round trips, the format's bytes, and strict reading of files that are wrong in every way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/safetensors.h"

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rt_safetensors.XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/w.safetensors", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder); /* fails if a file is left over */
}

static float a_value[6] = {1, 2, 3, 4, 5, 6}, b_value[2] = {-1, 0.5f};
static const int64_t a_dim[] = {2, 3}, b_dim[] = {2};

static void assert_ok(char *error)
{
    if (error)
        fail_msg("%s", error);
}

static void assert_says(char *error, const char *expected)
{
    assert_non_null(error);
    if (!strstr(error, expected))
        fail_msg("'%s' does not say '%s'", error, expected);
    free(error);
}

static void write_bytes(const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* A file of this header and so many bytes of data. */
static void write_header(const char *header, size_t data)
{
    static char bytes[4096];
    uint64_t length = strlen(header);
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, length);
    write_bytes(bytes, 8 + length + data);
}

static char *read_ab(float a[6], float b[2])
{
    const NamedTensor tensor[] = {{"a", 2, a_dim, a}, {"b", 1, b_dim, b}};
    return safetensors_read(path, tensor, 2, NULL);
}

static char *read_any(void)
{
    float a[6], b[2];
    return read_ab(a, b);
}

static void write_ab(void)
{
    const NamedTensor tensor[] = {{"b", 1, b_dim, b_value}, {"a", 2, a_dim, a_value}};
    assert_ok(safetensors_write(path, tensor, 2, NULL, 0));
}

static void round_trip(void **state)
{
    (void)state;
    float a[6] = {0}, b[2] = {0};
    write_ab();
    assert_ok(read_ab(a, b));
    assert_memory_equal(a, a_value, sizeof a);
    assert_memory_equal(b, b_value, sizeof b);
}

static void bytes_are_the_formats(void **state)
{
    (void)state;
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                 "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    char bytes[1024];
    uint64_t length;
    write_ab();
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    memcpy(&length, bytes, 8);
    assert_int_equal(length % 8, 0);
    assert_int_equal(count, 8 + length + 32);
    assert_memory_equal(bytes + 8, header, strlen(header));
    for (size_t i = strlen(header); i < length; i++)
        assert_int_equal(bytes[8 + i], ' ');
    assert_memory_equal(bytes + 8 + length, a_value, 24);
    assert_memory_equal(bytes + 8 + length + 24, b_value, 8);
}

static void every_truncation_is_told(void **state)
{
    (void)state;
    char bytes[1024];
    write_ab();
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t length = 0; length < count; length++) {
        write_bytes(bytes, length);
        float a[6] = {7}, b[2] = {7};
        char *error = read_ab(a, b);
        assert_non_null(error);
        free(error);
        assert_true(a[0] == 7 && b[0] == 7); /* nothing was changed */
    }
    bytes[count] = 0;
    write_bytes(bytes, count + 1);
    assert_says(read_any(), "data: 33 bytes, its tensors have 32");
}

static void garbage_is_told(void **state)
{
    (void)state;
    write_bytes("not a safetensors file at all", 29);
    assert_says(read_any(), "truncated or no safetensors file");
    write_header("{\"a\":", 0);
    assert_says(read_any(), "its header is no JSON object");
    write_header("[1, 2]", 0);
    assert_says(read_any(), "its header is no JSON object");
    write_header("{\"a\": 5, \"b\": null}", 32);
    assert_says(read_any(), "type: a is of no type");
    unlink(path);
    assert_says(read_any(), "No such file");
}

static void every_difference_is_named(void **state)
{
    (void)state;
    write_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[3,2],\"data_offsets\":[0,24]},"
                 "\"c\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[24,28]},"
                 "\"d\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[28,32]}}",
                 32);
    char *error = read_any();
    char expected[512];
    snprintf(expected, sizeof expected,
             "%s does not fit this network:\n  shape: a is [3,2] in the file, the network wants [2,3]"
             "\n  missing: b [2]\n  extra: c [1]\n  extra: d []",
             path);
    assert_string_equal(error, expected);
    free(error);
}

static void other_types_and_places_are_told(void **state)
{
    (void)state;
    static const char b[] = "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[24,32]}}";
    static const struct {
        const char *a, *says;
    } wrong[] = {
        {"\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,24]", "type: a is F16 in the file"},
        {"\"dtype\":\"F32\",\"data_offsets\":[0,24]", "shape: a is without a shape"},
        {"\"dtype\":\"F32\",\"shape\":[2,3]", "data: a lies outside"},
        {"\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,20]", "data: a lies outside"},
        {"\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[-4,20]", "data: a lies outside"},
        {"\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[24,0]", "data: a lies outside"},
        {"\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[9223372036854775800,9223372036854775807]",
         "data: a lies outside"},
        {"\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":\"here\"", "data: a lies outside"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char header[512];
        snprintf(header, sizeof header, "{\"a\":{%s},%s", wrong[i].a, b);
        write_header(header, 32);
        assert_says(read_any(), wrong[i].says);
    }
    write_header("{\"a\":{},\"a\":{}}", 0);
    assert_says(read_any(), "duplicate");
}

static void texts_about_the_tensors(void **state)
{
    (void)state;
    static const Metadata written[] = {{"step", "120"}, {"data", "\"quoted\" \xc3\xa4"}};
    const NamedTensor tensor[] = {{"b", 1, b_dim, b_value}, {"a", 2, a_dim, a_value}};
    Metadata read[] = {{"data", NULL}, {"none", NULL}, {"step", NULL}, {"format", NULL}};
    assert_ok(safetensors_write(path, tensor, 2, written, 2));
    assert_ok(read_any());
    assert_ok(safetensors_about(path, read, 4));
    assert_string_equal(read[0].value, written[1].value);
    assert_null(read[1].value);
    assert_string_equal(read[2].value, "120");
    assert_string_equal(read[3].value, "pt");
    for (int i = 0; i < 4; i++)
        free((char *)read[i].value);
    write_bytes("nothing", 7);
    assert_says(safetensors_about(path, read, 1), "no safetensors file");
}

static void tensors_may_be_ignored(void **state)
{
    (void)state;
    float a[6] = {0}, b[2] = {0};
    const NamedTensor tensor[] = {{"b", 1, b_dim, b}, {"a", 2, a_dim, a}};
    float other[6] = {0};
    const NamedTensor all[] = {
        {"b", 1, b_dim, b_value}, {"a", 2, a_dim, a_value}, {"more/a", 2, a_dim, other}, {"mor", 1, b_dim, b_value}};
    assert_ok(safetensors_write(path, all, 3, NULL, 0));
    assert_ok(safetensors_read(path, tensor, 2, "more/"));
    assert_memory_equal(a, a_value, sizeof a);
    assert_says(safetensors_read(path, tensor, 2, NULL), "extra: more/a [2,3]");
    assert_ok(safetensors_write(path, all, 4, NULL, 0));
    assert_says(safetensors_read(path, tensor, 2, "more/"), "extra: mor [2]");
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    const NamedTensor tensor[] = {{"a", 2, a_dim, a_value}};
    assert_says(safetensors_write("/dev/full", tensor, 1, NULL, 0), "cannot write /dev/full: No space left on device");
    struct stat status;
    assert_int_equal(stat("/dev/full", &status), 0);
    assert_true(S_ISCHR(status.st_mode)); /* not renamed over */
}

static void a_failed_write_keeps_the_old_file(void **state)
{
    (void)state;
    const NamedTensor tensor[] = {{"a", 2, a_dim, a_value}};
    assert_says(safetensors_write("/nowhere/at/all", tensor, 1, NULL, 0), "cannot write /nowhere/at/all: No such file");
    assert_says(safetensors_write(folder, tensor, 1, NULL, 0), "Is a directory");
    write_ab();
    assert_ok(read_any());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(bytes_are_the_formats),
        cmocka_unit_test(every_truncation_is_told),
        cmocka_unit_test(garbage_is_told),
        cmocka_unit_test(every_difference_is_named),
        cmocka_unit_test(other_types_and_places_are_told),
        cmocka_unit_test(texts_about_the_tensors),
        cmocka_unit_test(tensors_may_be_ignored),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(a_failed_write_keeps_the_old_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
