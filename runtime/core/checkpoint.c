#include "core/checkpoint.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/order.h"
#include "core/plateau.h"
#include "core/weights.h"
#include "world/world.h"

/* ---- writing ---- */
/* The state after one update, complete when all stages have copied their parts. */
typedef struct {
    Plain plain;
    int64_t step;
    int parts;
    char plateau[PLATEAU_TEXT];
} Snapshot;
struct pn_checkpoint {
    const char *path;
    int64_t every, written; /* written: the step of the file; -1: none yet */
    pthread_mutex_t lock;   /* of steps and parts */
    Snapshot *snapshot;     /* of step m: number m / every % count */
    int64_t count;
    int parts; /* of a snapshot: all stages, each replica, and of halves the one that has the weights */
};

void checkpoint_open(pn_run *run, const char *path, int64_t every)
{
    struct pn_checkpoint *checkpoint = pn_alloc((int64_t)sizeof *checkpoint);
    checkpoint->path = path;
    checkpoint->every = every;
    checkpoint->written = -1;
    for (int s = 0; s < run->program->nstages; s++)
        checkpoint->parts += run->program->stage[s]->half != PN_FORWARD_HALF;
    checkpoint->count = every > 0 ? order_most_apart(run->program) / every + 1 : 1;
    checkpoint->snapshot = pn_alloc((int64_t)sizeof *checkpoint->snapshot * checkpoint->count);
    for (int64_t i = 0; i < checkpoint->count; i++)
        checkpoint->snapshot[i].plain = plain_open(run, true);
    if (pthread_mutex_init(&checkpoint->lock, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of checkpoints");
    run->checkpoint_every = every;
    run->checkpoint = checkpoint;
}

static char *write_file(pn_run *run, const Snapshot *snapshot)
{
    char step[24], seed[24], batch[24];
    snprintf(step, sizeof step, "%lld", (long long)snapshot->step);
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
    snprintf(batch, sizeof batch, "%lld", (long long)run->program->batch);
    const Metadata about[] = {
        {"step", step},
        {"seed", seed},
        {"batch", batch},
        {"network", run->program->name},
        {"optimizer", run->program->optimizer.name},
        {"data", run->data ? run->data->what : ""},
        {"plateau", snapshot->plateau},
    };
    char *error = safetensors_write(run->checkpoint->path, snapshot->plain.tensor, snapshot->plain.count, about,
                                    PN_COUNT(about) - !*snapshot->plateau);
    if (!error)
        run->checkpoint->written = snapshot->step;
    return error;
}

/* The writer holds no lock. No other stage fills this snapshot again before the writer has passed its own later step,
 * and none writes another one. */
void checkpoint_stage(pn_stage *stage)
{
    pn_run *run = stage->run;
    struct pn_checkpoint *checkpoint = run->checkpoint;
    if (world_rank(run) > 0) {
        world_checkpoint(stage);
        return;
    }
    Snapshot *snapshot = &checkpoint->snapshot[stage->updates / checkpoint->every % checkpoint->count];
    pthread_mutex_lock(&checkpoint->lock);
    if (snapshot->parts == 0)
        snapshot->step = stage->updates;
    int64_t step = snapshot->step;
    pthread_mutex_unlock(&checkpoint->lock);
    if (step != stage->updates)
        pn_fail(stage, "internal error: checkpoint %lld is not complete at update %lld", (long long)step,
                (long long)stage->updates);
    if (stage->here)
        pn_target_finish(stage);
    plain_from_stage(&snapshot->plain, stage);
    if (stage->worker == run->program->nstages - 1)
        plateau_text(run, snapshot->plateau);
    pthread_mutex_lock(&checkpoint->lock);
    bool last = ++snapshot->parts == checkpoint->parts;
    pthread_mutex_unlock(&checkpoint->lock);
    if (!last)
        return;
    atomic_store(&run->writing, 1);
    char *error = write_file(run, snapshot);
    atomic_store(&run->writing, 0);
    if (error)
        fprintf(stderr, "warning: checkpoint of step %lld: %s; training goes on\n", (long long)step, error);
    free(error);
    pthread_mutex_lock(&checkpoint->lock);
    snapshot->parts = 0;
    pthread_mutex_unlock(&checkpoint->lock);
}

char *checkpoint_end(pn_run *run)
{
    Snapshot *snapshot = run->checkpoint->snapshot;
    snapshot->step = run->stage[0].updates;
    if (run->checkpoint->written == snapshot->step)
        return NULL;
    for (int s = 0; s < run->program->nstages; s++)
        plain_from_stage(&snapshot->plain, &run->stage[s]);
    plateau_text(run, snapshot->plateau);
    return write_file(run, snapshot);
}

/* ---- reading ---- */
static bool parse_number(const char *text, uint64_t most, uint64_t *to)
{
    char *end;
    errno = 0;
    unsigned long long value = text ? strtoull(text, &end, 10) : 0;
    if (!text || *text < '0' || *text > '9' || *end || errno || value > most)
        return false;
    *to = value;
    return true;
}

enum { STEP, SEED, BATCH, OPTIMIZER, DATA, TEXTS };

Resume resume_open(const char *path, const pn_program *program)
{
    Metadata about[TEXTS] = {
        [STEP] = {.key = "step"},
        [SEED] = {.key = "seed"},
        [BATCH] = {.key = "batch"},
        [OPTIMIZER] = {.key = "optimizer"},
        [DATA] = {.key = "data"}
    };
    char *error = safetensors_about(path, about, TEXTS);
    if (error)
        pn_fail(NULL, "%s", error);
    uint64_t step = 0, seed = 0, batch = 0;
    for (int i = 0; i < TEXTS; i++)
        if (!about[i].value)
            pn_fail(NULL, "%s is no checkpoint: it says nothing of its %s (--load reads weights alone)", path,
                    about[i].key);
    if (!parse_number(about[STEP].value, INT64_C(1000000000000000), &step) ||
        !parse_number(about[SEED].value, UINT64_MAX, &seed) || !parse_number(about[BATCH].value, INT64_MAX, &batch))
        pn_fail(NULL, "%s is no checkpoint: its step, seed or batch is no number", path);
    if (strcmp(about[OPTIMIZER].value, program->optimizer.name) != 0)
        pn_fail(
            NULL,
            "%s was written by a run with optimizer %s; this program trains with %s (--load takes its weights alone)",
            path, about[OPTIMIZER].value, program->optimizer.name);
    if (batch != (uint64_t)program->batch)
        pn_fail(NULL,
                "%s was written by a run with batch %llu; this program's is %lld (--load takes its weights alone)",
                path, (unsigned long long)batch, (long long)program->batch);
    Metadata plateau = {.key = "plateau"};
    error = safetensors_about(path, &plateau, 1);
    if (error)
        pn_fail(NULL, "%s", error);
    Resume resume = {.plateau = (char *)plateau.value,
                     .path = path,
                     .step = (int64_t)step,
                     .seed = seed,
                     .data = (char *)about[DATA].value};
    for (int i = 0; i < TEXTS; i++)
        if (i != DATA)
            free((char *)about[i].value);
    return resume;
}

void resume_check_data(const Resume *resume, const pn_dataset *data)
{
    if (strcmp(resume->data, data->what) != 0)
        pn_fail(NULL, "%s was written by a run on %s; these are %s (--load takes its weights alone)", resume->path,
                resume->data, data->what);
}

void resume_close(Resume *resume)
{
    free(resume->data);
    free(resume->plateau);
}
