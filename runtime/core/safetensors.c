#include "core/safetensors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/file.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors data is little-endian: this machine needs a byte swap here"
#endif

enum { LENGTH_BYTES = 8 };

__attribute__((format(printf, 1, 2))) static char *message(const char *format, ...)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return strdup("out of memory");
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stream, format, arguments);
    va_end(arguments);
    if (fclose(stream) != 0)
        return strdup("out of memory");
    return text;
}

static int64_t bytes_of(const NamedTensor *tensor)
{
    int64_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= tensor->dim[i];
    return count * (int64_t)sizeof(float);
}

/* ---- writing ---- */
static int by_name(const void *a, const void *b)
{
    const NamedTensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static char *header_of(const NamedTensor *const *sorted, int count, const Metadata *about, int nabout)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    json_t *texts = json_object_get(header, "__metadata__");
    for (int i = 0; header && i < nabout; i++)
        json_object_set_new(texts, about[i].key, json_string(about[i].value));
    int64_t at = 0;
    for (int i = 0; header && i < count; i++) {
        json_t *shape = json_array();
        for (int d = 0; d < sorted[i]->rank; d++)
            json_array_append_new(shape, json_integer(sorted[i]->dim[d]));
        int64_t end = at + bytes_of(sorted[i]);
        json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                                  (json_int_t)at, (json_int_t)end);
        json_object_set_new(header, sorted[i]->name, entry);
        at = end;
    }
    char *text = header ? json_dumps(header, JSON_COMPACT) : NULL;
    json_decref(header);
    return text;
}

/* The header is padded with spaces, so that the data is aligned. */
static void write_all(NewFile *file, const char *header, const NamedTensor *const *sorted, int count)
{
    static const char blanks[LENGTH_BYTES] = "        ";
    uint64_t length = strlen(header), padded = (length + 7) / 8 * 8;
    file_write(file, &padded, LENGTH_BYTES);
    file_write(file, header, length);
    file_write(file, blanks, padded - length);
    for (int i = 0; i < count; i++)
        file_write(file, sorted[i]->values, (size_t)bytes_of(sorted[i]));
}

char *safetensors_write(const char *path, const NamedTensor *tensor, int count, const Metadata *about, int nabout)
{
    const NamedTensor **sorted = malloc(sizeof *sorted * ((size_t)count + 1));
    if (!sorted)
        return message("out of memory for %s", path);
    for (int i = 0; i < count; i++)
        sorted[i] = &tensor[i];
    qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    char *header = header_of(sorted, count, about, nabout), *error = NULL;
    NewFile file;
    const char *reason = header ? file_begin(&file, path) : "out of memory";
    if (!reason) {
        write_all(&file, header, sorted, count);
        reason = file_end(&file);
    }
    if (reason)
        error = message("cannot write %s: %s", path, reason);
    free(header);
    free(sorted);
    return error;
}

/* ---- reading ---- */
typedef struct {
    const char *path;
    uint8_t *bytes;
    int64_t size; /* of the file */
    json_t *header;
    const uint8_t *data;
    int64_t data_size;
} Loaded;

/* Reads the file, or as much of it as the header needs. */
static char *read_bytes(Loaded *file, bool header_only)
{
    FILE *stream = fopen(file->path, "rb");
    if (!stream)
        return message("cannot read %s: %s", file->path, strerror(errno));
    int64_t room = 0;
    for (;;) {
        if (file->size == room) {
            room = room ? 2 * room : 1 << 16;
            uint8_t *larger = realloc(file->bytes, (size_t)room);
            if (!larger) {
                fclose(stream);
                return message("cannot read %s: out of memory", file->path);
            }
            file->bytes = larger;
        }
        size_t got = fread(file->bytes + file->size, 1, (size_t)(room - file->size), stream);
        file->size += (int64_t)got;
        uint64_t length;
        if (header_only && file->size >= LENGTH_BYTES) {
            memcpy(&length, file->bytes, LENGTH_BYTES);
            if (length <= (uint64_t)(file->size - LENGTH_BYTES))
                break;
        }
        if (got == 0)
            break;
    }
    char *error = ferror(stream) ? message("cannot read %s: %s", file->path, strerror(errno)) : NULL;
    fclose(stream);
    return error;
}

static char *parse_header(Loaded *file)
{
    uint64_t length;
    if (file->size < LENGTH_BYTES)
        return message("%s is no safetensors file: it has %lld bytes", file->path, (long long)file->size);
    memcpy(&length, file->bytes, LENGTH_BYTES);
    if (length > (uint64_t)(file->size - LENGTH_BYTES))
        return message("%s is truncated or no safetensors file: its header should have %llu bytes, the file has %lld",
                       file->path, (unsigned long long)length, (long long)file->size);
    json_error_t where;
    file->header = json_loadb((const char *)file->bytes + LENGTH_BYTES, (size_t)length, JSON_REJECT_DUPLICATES, &where);
    if (!file->header || !json_is_object(file->header))
        return message("%s is no safetensors file: its header is no JSON object%s%s", file->path,
                       file->header ? "" : ": ", file->header ? "" : where.text);
    file->data = file->bytes + LENGTH_BYTES + length;
    file->data_size = file->size - LENGTH_BYTES - (int64_t)length;
    return NULL;
}

/* An entry's place in the data; false: not one that the format allows in this file. */
static bool entry_range(const Loaded *file, json_t *entry, int64_t *begin, int64_t *end)
{
    json_t *offsets = json_object_get(entry, "data_offsets");
    json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second))
        return false;
    *begin = json_integer_value(first);
    *end = json_integer_value(second);
    return 0 <= *begin && *begin <= *end && *end <= file->data_size;
}

static bool same_shape(json_t *shape, const NamedTensor *tensor)
{
    if (!json_is_array(shape) || json_array_size(shape) != (size_t)tensor->rank)
        return false;
    for (int d = 0; d < tensor->rank; d++) {
        json_t *size = json_array_get(shape, (size_t)d);
        if (!json_is_integer(size) || json_integer_value(size) != tensor->dim[d])
            return false;
    }
    return true;
}

static void print_shape(FILE *out, const NamedTensor *tensor)
{
    fputc('[', out);
    for (int d = 0; d < tensor->rank; d++)
        fprintf(out, "%s%lld", d ? "," : "", (long long)tensor->dim[d]);
    fputc(']', out);
}

/* Prints what is wrong with the file's entry for `tensor`, if anything. */
static bool check_entry(FILE *out, const Loaded *file, json_t *entry, const NamedTensor *tensor)
{
    json_t *shape = json_object_get(entry, "shape");
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    int64_t begin, end;
    if (!type || strcmp(type, "F32") != 0) {
        fprintf(out, "\n  type: %s is %s in the file, the network wants F32", tensor->name, type ? type : "of no type");
        return false;
    }
    if (!same_shape(shape, tensor)) {
        char *text = shape ? json_dumps(shape, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
        fprintf(out, "\n  shape: %s is %s in the file, the network wants ", tensor->name,
                text ? text : "without a shape");
        print_shape(out, tensor);
        free(text);
        return false;
    }
    if (!entry_range(file, entry, &begin, &end) || end - begin != bytes_of(tensor)) {
        fprintf(out, "\n  data: %s lies outside the file's %lld bytes of data or has the wrong size: truncated?",
                tensor->name, (long long)file->data_size);
        return false;
    }
    return true;
}

static bool begins(const char *name, const char *with)
{
    return with && strncmp(name, with, strlen(with)) == 0;
}

/* Every difference, a line each; returns how many. */
static int compare(FILE *out, const Loaded *file, const NamedTensor *tensor, int count, const char *ignored)
{
    int wrong = 0;
    int64_t used = 0;
    for (int i = 0; i < count; i++) {
        json_t *entry = json_object_get(file->header, tensor[i].name);
        used += bytes_of(&tensor[i]);
        if (!entry) {
            fprintf(out, "\n  missing: %s ", tensor[i].name);
            print_shape(out, &tensor[i]);
            wrong++;
        } else if (!check_entry(out, file, entry, &tensor[i])) {
            wrong++;
        }
    }
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        bool known = strcmp(name, "__metadata__") == 0;
        for (int i = 0; i < count && !known; i++)
            known = strcmp(name, tensor[i].name) == 0;
        int64_t begin, end;
        if (!known && begins(name, ignored) && entry_range(file, entry, &begin, &end)) {
            used += end - begin;
            known = true;
        }
        if (known)
            continue;
        char *shape = json_dumps(json_object_get(entry, "shape"), JSON_COMPACT | JSON_ENCODE_ANY);
        fprintf(out, "\n  extra: %s %s", name, shape ? shape : "");
        free(shape);
        wrong++;
    }
    if (!wrong && used != file->data_size) {
        fprintf(out, "\n  data: %lld bytes, its tensors have %lld", (long long)file->data_size, (long long)used);
        wrong++;
    }
    return wrong;
}

static char *check_all(const Loaded *file, const NamedTensor *tensor, int count, const char *ignored)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return message("cannot read %s: out of memory", file->path);
    fprintf(out, "%s does not fit this network:", file->path);
    int wrong = compare(out, file, tensor, count, ignored);
    if (fclose(out) != 0)
        return message("cannot read %s: out of memory", file->path);
    if (wrong)
        return text;
    free(text);
    return NULL;
}

static void copy_values(const Loaded *file, const NamedTensor *tensor, int count)
{
    for (int i = 0; i < count; i++) {
        int64_t begin = 0, end = 0;
        entry_range(file, json_object_get(file->header, tensor[i].name), &begin, &end);
        memcpy(tensor[i].values, file->data + begin, (size_t)(end - begin));
    }
}

char *safetensors_read(const char *path, const NamedTensor *tensor, int count, const char *ignored)
{
    Loaded file = {.path = path};
    char *error = read_bytes(&file, false);
    if (!error)
        error = parse_header(&file);
    if (!error)
        error = check_all(&file, tensor, count, ignored);
    if (!error)
        copy_values(&file, tensor, count);
    json_decref(file.header);
    free(file.bytes);
    return error;
}

char *safetensors_about(const char *path, Metadata *about, int nabout)
{
    Loaded file = {.path = path};
    char *error = read_bytes(&file, true);
    if (!error)
        error = parse_header(&file);
    for (int i = 0; i < nabout; i++) {
        const char *value =
            json_string_value(json_object_get(json_object_get(file.header, "__metadata__"), about[i].key));
        about[i].value = value ? strdup(value) : NULL;
        if (value && !about[i].value && !error)
            error = message("cannot read %s: out of memory", path);
    }
    json_decref(file.header);
    free(file.bytes);
    return error;
}
