#include "core/stage.h"

#include "core/driver.h"
#include "core/update.h"

void stage_open(pn_run *run, int index)
{
    pn_stage *stage = &run->stage[index];
    stage->def = run->program->stage[index];
    stage->run = run;
    stage->index = index;
    stage->cursor = pn_alloc((int64_t)sizeof *stage->cursor);
    stage->read_version = pn_alloc((int64_t)sizeof(int64_t) * stage->def->ring);
    driver_begin(stage);
    update_begin(stage);
}

float *stage_version(const pn_stage *stage, int64_t version)
{
    return stage->def->weights + version % stage->def->versions * stage->def->weight_floats;
}

void stage_begin_forward(pn_stage *stage, int64_t minibatch)
{
    stage->in_flight++;
    if (stage->in_flight > stage->most_in_flight)
        stage->most_in_flight = stage->in_flight;
    if (stage->in_flight > stage->def->ring)
        pn_fail(stage, "internal error: %lld minibatches in flight at minibatch %lld, compiled for %d",
                (long long)stage->in_flight, (long long)minibatch, stage->def->ring);
    stage->read_version[minibatch % stage->def->ring] = stage->updates;
}

void stage_begin_backward(pn_stage *stage, int64_t minibatch)
{
    int64_t staleness = stage->updates - stage->read_version[minibatch % stage->def->ring];
    int planned = stage->phase->staleness[stage->index];
    if (staleness > stage->staleness_most)
        stage->staleness_most = staleness;
    stage->staleness_sum += staleness;
    if (staleness > planned)
        pn_fail(stage, "internal error: staleness %lld at minibatch %lld, compiled for %d", (long long)staleness,
                (long long)minibatch, planned);
}

const float *pn_forward_weights(pn_stage *stage, int64_t minibatch)
{
    stage->read_version[minibatch % stage->def->ring] = stage->updates;
    return update_forward(stage);
}

const float *pn_backward_weights(pn_stage *stage, int64_t minibatch)
{
    if (!stage->phase->stash)
        return update_backward(stage);
    int64_t version = stage->read_version[minibatch % stage->def->ring];
    if (stage->updates - version >= stage->def->versions)
        pn_fail(stage, "internal error: minibatch %lld wants weight version %lld; %d versions up to %lld are kept",
                (long long)minibatch, (long long)version, stage->def->versions, (long long)stage->updates);
    return stage_version(stage, version);
}

const float *pn_test_weights(pn_stage *stage)
{
    return stage_version(stage, stage->updates);
}
