/* The table of data sources, what they share, and the checks of a data set against the program that will read it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/data.h"

#define SOURCE(name, doc, channels, height, width, classes) extern const pn_source pn_source_##name;
#define ARG(source, key, kind, preset, low, high, doc)
#include "data/sources.def"
#undef SOURCE
#undef ARG

static const pn_source *const table[] = {
#define SOURCE(name, doc, channels, height, width, classes) &pn_source_##name,
#define ARG(source, key, kind, preset, low, high, doc)
#include "data/sources.def"
#undef SOURCE
#undef ARG
};

static const struct {
    const char *source, *key;
    double preset;
} arguments[] = {
#define SOURCE(name, doc, channels, height, width, classes)
#define ARG(source, key, kind, preset, low, high, doc) {#source, #key, preset},
#include "data/sources.def"
#undef SOURCE
#undef ARG
};

const pn_source *pn_source_find(const char *name)
{
    for (int i = 0; i < PN_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

/* Given by name, or without one at the argument's place. */
static const pn_arg *find_argument(const pn_choice *choice, const char *key)
{
    int place = 0;
    for (int row = 0; row < PN_COUNT(arguments); row++) {
        if (strcmp(arguments[row].source, choice->name) != 0)
            continue;
        if (strcmp(arguments[row].key, key) == 0)
            break;
        place++;
    }
    for (int i = 0; i < choice->nargs; i++)
        if (choice->arg[i].key ? strcmp(choice->arg[i].key, key) == 0 : i == place)
            return &choice->arg[i];
    return NULL;
}

double pn_source_number(const pn_choice *choice, const char *key)
{
    const pn_arg *given = find_argument(choice, key);
    if (given)
        return given->number;
    for (int i = 0; i < PN_COUNT(arguments); i++)
        if (strcmp(arguments[i].source, choice->name) == 0 && strcmp(arguments[i].key, key) == 0)
            return arguments[i].preset;
    pn_fail(NULL, "internal error: source %s has no argument %s", choice->name, key);
}

void pn_source_labels(const char *path, const uint8_t *bytes, int64_t stride, int64_t count, int64_t classes,
                      uint16_t *label)
{
    for (int64_t i = 0; i < count; i++) {
        label[i] = bytes[i * stride];
        if (label[i] >= classes)
            pn_fail(NULL, "%s: label %d of sample %lld is out of range: there are %lld classes", path, label[i],
                    (long long)i, (long long)classes);
    }
}

void pn_source_normalise(pn_dataset *data, int channel, double mean, double deviation)
{
    data->scale[channel] = (float)(1.0 / (255.0 * deviation));
    data->shift[channel] = (float)(-mean / deviation);
}

void pn_source_need_path(const char *source, const char *path)
{
    if (!path)
        pn_fail(NULL, "%s: which folder? say --data DIR, or data = %s(path = \"DIR\") in the train block", source,
                source);
}

/* ---- opening ---- */
/* Every tensor input gets the image, every class input its label. */
static void check_inputs(const pn_program *program, const pn_dataset *data)
{
    int64_t pixels = data->channels * data->height * data->width;
    for (int i = 0; i < program->ninputs; i++) {
        const pn_input_def *input = &program->input[i];
        if (input->label) {
            if (!data->train_labels || data->classes > input->classes)
                pn_fail(NULL, "%s: %lld classes, but input %s of %s has %lld", data->what, (long long)data->classes,
                        input->name, program->name, (long long)input->classes);
            continue;
        }
        int64_t size = 1;
        for (int d = 0; d < input->rank; d++)
            size *= input->dim[d];
        bool same = size == pixels;
        if (input->rank == 3)
            same = input->dim[0] == data->channels && input->dim[1] == data->height && input->dim[2] == data->width;
        if (!same)
            pn_fail(NULL, "%s: a sample is %lldx%lldx%lld, which does not fit input %s of %s: %lld numbers%s",
                    data->what, (long long)data->channels, (long long)data->height, (long long)data->width, input->name,
                    program->name, (long long)size, size == pixels ? " in another order" : "");
    }
}

/* Every source has both arguments. */
static void set_augmentation(pn_dataset *data, const pn_choice *choice, int nstages)
{
    double crop = pn_source_number(choice, "crop");
    data->flip = pn_source_number(choice, "flip") != 0;
    data->crop = (int64_t)crop;
    if (crop == 0 && !data->flip)
        return;
    if (data->height == 1)
        pn_fail(NULL, "%s: crop and flip are for images, not for rows of numbers", choice->name);
    if ((double)data->crop != crop || data->crop > data->width || data->crop > data->height)
        pn_fail(NULL, "%s: crop wants a whole number of pixels, not more than the %lldx%lld of an image", choice->name,
                (long long)data->height, (long long)data->width);
    data->moved = pn_alloc(pn_raw_bytes(data) * (nstages > 0 ? nstages : 1));
}

static bool takes_path(const char *source)
{
    for (int i = 0; i < PN_COUNT(arguments); i++)
        if (strcmp(arguments[i].source, source) == 0 && strcmp(arguments[i].key, "path") == 0)
            return true;
    return false;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* `--data mnist:DIR` and `--data mnist` name a source, the latter unless there is a folder of that name. */
static const pn_source *named_source(const char *option, const char **path)
{
    for (int i = 0; i < PN_COUNT(table); i++) {
        size_t length = strlen(table[i]->name);
        if (strncmp(option, table[i]->name, length) != 0)
            continue;
        if (option[length] == ':' || (option[length] == 0 && !is_folder(option))) {
            *path = option[length] == ':' ? option + length + 1 : NULL;
            return table[i];
        }
    }
    return NULL;
}

void pn_data_open(pn_run *run, const char *option)
{
    const pn_program *program = run->program;
    pn_choice choice = program->data;
    const char *path = NULL;
    const pn_source *source = option ? named_source(option, &path) : NULL;
    if (source) {
        if (strcmp(source->name, choice.name) != 0)
            choice = (pn_choice){.name = source->name};
    } else {
        source = pn_source_find(choice.name);
        if (!source)
            pn_fail(NULL, "%s: this runtime has no data source of that name", choice.name);
        path = option;
    }
    if (path && !takes_path(source->name))
        pn_fail(NULL, "--data %s: %s reads no files; name the source too, as --data mnist:%s", option, source->name,
                path);
    const pn_arg *argument = find_argument(&choice, "path");
    if (!path && argument)
        path = argument->text;
    char folder[PN_PATH];
    const char *root = getenv("PNET_DATA");
    if (!path && source->folder && root && *root) {
        int length = snprintf(folder, sizeof folder, "%s/%s", root, source->folder);
        if (length < 0 || length >= PN_PATH)
            pn_fail(NULL, "PNET_DATA: the name of the folder is too long");
        path = folder;
    }
    pn_dataset *data = pn_alloc((int64_t)sizeof *data);
    source->open(data, program, &choice, path, run->seed);
    check_inputs(program, data);
    set_augmentation(data, &choice, program->nstages);
    if (data->train_count < program->batch)
        pn_fail(NULL, "%s: a batch of %lld needs more training samples", data->what, (long long)program->batch);
    run->data = data;
}
