#include "core/weights.h"

#include <stdlib.h>

#include "core/safetensors.h"
#include "core/stage.h"

static int64_t plain_floats(const pn_param *param)
{
    int64_t count = 1;
    for (int i = 0; i < param->rank; i++)
        count *= param->dim[i];
    return count;
}

/* All parameters in plain order, in one block, stage after stage. */
typedef struct {
    NamedTensor *tensor;
    float *values;
    int count;
} Plain;

static Plain plain_open(const pn_run *run)
{
    Plain all = {0};
    int64_t floats = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; i < run->stage[s].def->nparams; i++, all.count++)
            floats += plain_floats(&run->stage[s].def->param[i]);
    all.tensor = calloc((size_t)all.count + 1, sizeof *all.tensor);
    all.values = calloc((size_t)floats + 1, sizeof *all.values);
    if (!all.tensor || !all.values)
        pn_fail(NULL, "out of memory: need %lld bytes for the weights", (long long)floats * 4);
    float *at = all.values;
    int t = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; i < run->stage[s].def->nparams; i++) {
            const pn_param *param = &run->stage[s].def->param[i];
            all.tensor[t++] = (NamedTensor){param->name, param->rank, param->dim, at};
            at += plain_floats(param);
        }
    return all;
}

static void plain_close(Plain *all)
{
    free(all->tensor);
    free(all->values);
}

/* The version of this moment: 0 before the first step, the last one after the run. */
static float *stored(const pn_stage *stage, const pn_param *param)
{
    return (param->running ? stage->def->running : stage_version(stage, stage->updates)) + param->offset;
}

static void plain_to_stages(const pn_run *run, const Plain *all)
{
    int t = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; i < run->stage[s].def->nparams; i++) {
            const pn_param *param = &run->stage[s].def->param[i];
            pn_param_from_plain(param, all->tensor[t++].values, stored(&run->stage[s], param));
        }
}

void weights_initial(pn_run *run)
{
    Plain all = plain_open(run);
    int t = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; i < run->stage[s].def->nparams; i++)
            pn_param_initial(&run->stage[s].def->param[i], run->seed, all.tensor[t++].values);
    plain_to_stages(run, &all);
    plain_close(&all);
}

void weights_load(pn_run *run, const char *path)
{
    Plain all = plain_open(run);
    char *error = safetensors_read(path, all.tensor, all.count);
    if (error) {
        fflush(stdout);
        fprintf(stderr, "error: %s\n", error);
        exit(1);
    }
    plain_to_stages(run, &all);
    plain_close(&all);
}

char *weights_save(const pn_run *run, const char *path)
{
    Plain all = plain_open(run);
    int t = 0;
    for (int s = 0; s < run->program->nstages; s++)
        for (int i = 0; i < run->stage[s].def->nparams; i++) {
            const pn_param *param = &run->stage[s].def->param[i];
            pn_param_to_plain(param, stored(&run->stage[s], param), all.tensor[t++].values);
        }
    char *error = safetensors_write(path, all.tensor, all.count);
    plain_close(&all);
    return error;
}
