#include "core/weights.h"

#include <stdlib.h>
#include <string.h>

#include "core/stage.h"

enum { WEIGHT = -1 };
struct Place {
    int worker; /* the only replica of a stage, or replica 0 */
    const pn_param *param;
    int state; /* WEIGHT, or the number of the optimiser's state */
};

static int64_t plain_floats(const pn_param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

/* How many tensors belong to a parameter. Running statistics are not trained: they have no state. */
static int copies(const pn_stage_def *def, const pn_param *param, bool state)
{
    return 1 + (state && !param->running ? def->states : 0);
}

enum { PREFIX_ROOM = sizeof WEIGHTS_STATE + 12 };

static const char *name_of(const struct Place *place, char **room)
{
    const char *name = place->param->name;
    if (place->state == WEIGHT)
        return name;
    char *text = *room;
    *room += sprintf(text, WEIGHTS_STATE "%d/%s", place->state, name) + 1;
    return text;
}

Plain plain_open(const pn_run *run, bool state)
{
    Plain plain = {0};
    size_t floats = 0, letters = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; run->stage[s].replica == 0 && i < run->stage[s].def->nparams; i++) {
            const pn_param *param = &run->stage[s].def->param[i];
            int count = copies(run->stage[s].def, param, state);
            plain.count += count;
            floats += (size_t)(plain_floats(param) * count);
            letters += (strlen(param->name) + PREFIX_ROOM) * (size_t)count;
        }
    plain.tensor = calloc((size_t)plain.count + 1, sizeof *plain.tensor);
    plain.place = calloc((size_t)plain.count + 1, sizeof *plain.place);
    plain.values = calloc(floats + 1, sizeof *plain.values);
    plain.names = calloc(letters + 1, 1);
    if (!plain.tensor || !plain.place || !plain.values || !plain.names)
        pn_fail(NULL, "out of memory: need %zu bytes for the weights", floats * sizeof *plain.values);
    float *at = plain.values;
    char *room = plain.names;
    int t = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; run->stage[s].replica == 0 && i < run->stage[s].def->nparams; i++) {
            const pn_param *param = &run->stage[s].def->param[i];
            for (int k = 0; k < copies(run->stage[s].def, param, state); k++, t++) {
                plain.place[t] = (struct Place){s, param, k - 1};
                plain.tensor[t] = (NamedTensor){name_of(&plain.place[t], &room), param->rank, param->dim, at};
                at += plain_floats(param);
            }
        }
    return plain;
}

void plain_close(Plain *plain)
{
    free(plain->tensor);
    free(plain->place);
    free(plain->values);
    free(plain->names);
}

static float *stored(const pn_stage *stage, const struct Place *place)
{
    const pn_stage_def *def = stage->def;
    if (place->state != WEIGHT)
        return def->state + place->state * def->weight_floats + place->param->offset;
    return (place->param->running ? def->running : stage_weights(stage, stage->updates)) + place->param->offset;
}

static int64_t values_of(const pn_stage_def *def, int param)
{
    return plain_floats(&def->param[param]) * copies(def, &def->param[param], true);
}

int64_t weights_floats(const pn_stage *stage)
{
    int64_t sum = 0;
    for (int i = 0; i < stage->def->nparams; i++)
        sum += values_of(stage->def, i);
    return sum;
}

void weights_values(const pn_stage *stage, float *to)
{
    const pn_stage_def *def = stage->def;
    for (int i = 0; i < def->nparams; i++)
        for (int k = 0; k < copies(def, &def->param[i], true); k++, to += plain_floats(&def->param[i])) {
            const struct Place place = {stage->worker, &def->param[i], k - 1};
            pn_param_to_plain(&def->param[i], stored(stage, &place), to);
        }
}

/* As another rank has sent it. */
static void plain_from_sent(Plain *plain, const pn_stage *stage)
{
    for (int t = 0; t < plain->count; t++) {
        const struct Place *place = &plain->place[t];
        if (place->worker != stage->worker)
            continue;
        const float *from = stage->sent;
        for (int i = 0; &stage->def->param[i] != place->param; i++)
            from += values_of(stage->def, i);
        const int64_t floats = plain_floats(place->param);
        memcpy(plain->tensor[t].values, from + (place->state + 1) * floats, (size_t)floats * sizeof *from);
    }
}

void plain_from_stage(Plain *plain, const pn_stage *stage)
{
    if (!stage->here) {
        plain_from_sent(plain, stage);
        return;
    }
    for (int t = 0; t < plain->count; t++)
        if (plain->place[t].worker == stage->worker)
            pn_param_to_plain(plain->place[t].param, stored(stage, &plain->place[t]), plain->tensor[t].values);
}

/* Each replica has running statistics of its own. */
void plain_to_stage(const Plain *plain, pn_stage *stage)
{
    for (int t = 0; t < plain->count; t++)
        if (plain->place[t].worker == stage->worker - stage->replica)
            pn_param_from_plain(plain->place[t].param, plain->tensor[t].values, stored(stage, &plain->place[t]));
    if (stage->def->masters)
        pn_target_copy(stage, stage_version(stage, stage->updates));
}

static void to_stages(const Plain *plain, pn_run *run)
{
    for (int s = 0; s < run->program->nstages; s++)
        if (run->stage[s].here)
            plain_to_stage(plain, &run->stage[s]);
}

void weights_initial(pn_run *run)
{
    Plain plain = plain_open(run, false);
    for (int t = 0; t < plain.count; t++)
        pn_param_initial(plain.place[t].param, run->seed, plain.tensor[t].values);
    to_stages(&plain, run);
    plain_close(&plain);
}

/* The message may be long: a line for each tensor that does not fit. */
static void read_into(const Plain *plain, pn_run *run, const char *path, const char *ignored)
{
    char *error = safetensors_read(path, plain->tensor, plain->count, ignored);
    if (error) {
        fflush(stdout);
        fprintf(stderr, "error: %s\n", error);
        exit(1);
    }
    to_stages(plain, run);
}

void weights_load(pn_run *run, const char *path)
{
    Plain plain = plain_open(run, false);
    read_into(&plain, run, path, WEIGHTS_STATE);
    plain_close(&plain);
}

void weights_resume(pn_run *run, const char *path)
{
    Plain plain = plain_open(run, true);
    read_into(&plain, run, path, NULL);
    plain_close(&plain);
}

char *weights_save(const pn_run *run, const char *path)
{
    Plain plain = plain_open(run, false);
    for (int s = 0; s < run->program->nstages; s++)
        plain_from_stage(&plain, &run->stage[s]);
    char *error = safetensors_write(path, plain.tensor, plain.count, NULL, 0);
    plain_close(&plain);
    return error;
}
