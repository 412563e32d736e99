#include "core/stage.h"

#include <string.h>

#include "core/driver.h"
#include "core/halves.h"
#include "core/replicas.h"
#include "core/update.h"
#include "world/world.h"

void stage_open(pn_run *run, int worker)
{
    pn_stage *stage = &run->stage[worker];
    stage->def = run->program->stage[worker];
    stage->run = run;
    stage->worker = worker;
    stage->here = !run->world || world_rank_of(run->world, worker) == world_rank(run);
    const bool begins = stage->def->replica == 0 && stage->def->half != PN_BACKWARD_HALF;
    stage->index = worker == 0 ? 0 : stage[-1].index + begins;
    replicas_join(stage);
    halves_join(stage);
    stage->cursor = pn_alloc((int64_t)sizeof *stage->cursor);
    stage->read_version = stage->def->half == PN_BACKWARD_HALF ? stage[-1].read_version
                                                               : pn_alloc((int64_t)sizeof(int64_t) * stage->def->ring);
    order_begin(stage);
    update_begin(stage);
}

const char *stage_name(const pn_stage *stage, char *text, size_t size)
{
    if (stage->replicas > 1)
        snprintf(text, size, "stage %d, replica %d", stage->index, stage->replica);
    else if (stage->halves)
        snprintf(text, size, "stage %d, %s", stage->index,
                 stage->def->half == PN_FORWARD_HALF ? "forward" : "backward");
    else
        snprintf(text, size, "stage %d", stage->index);
    return text;
}

float *stage_version(const pn_stage *stage, int64_t version)
{
    return stage->def->weights + version % stage->def->versions * stage_version_floats(stage);
}

float *stage_weights(const pn_stage *stage, int64_t version)
{
    return stage->def->masters ? stage->def->masters : stage_version(stage, version);
}

int64_t stage_version_floats(const pn_stage *stage)
{
    return stage->def->masters ? stage->def->version_floats : stage->def->weight_floats;
}

/* Updates that stage 0 has done before its forward of microbatch n: so many as its order has before it. */
static int64_t first_version(const pn_stage *stage, int64_t n)
{
    const pn_order *order = &stage->phase->order[0];
    int64_t before = stage->phase_first / pn_microbatches(stage->run->program);
    int64_t left = n - stage->phase_first - order->warmup; /* forwards of the body before it */
    int64_t forwards = 0, updates = 0;
    if (left < 0)
        return before;
    for (const char *step = order->body; *step; step++) {
        forwards += *step == PN_STEP_FORWARD;
        updates += *step == PN_STEP_UPDATE;
    }
    before += left / forwards * updates;
    left %= forwards;
    for (const char *step = order->body; left > 0 || *step != PN_STEP_FORWARD; step++) {
        left -= *step == PN_STEP_FORWARD;
        before += *step == PN_STEP_UPDATE;
    }
    return before;
}

static int64_t version_read(const pn_stage *stage, int64_t n)
{
    const int64_t slices = pn_microbatches(stage->run->program), begin = stage->phase_first / slices;
    switch (stage->phase->reads) {
    case PN_READS_FIRST:
        return first_version(stage, n);
    case PN_READS_BEFORE:
        return n / slices > begin ? n / slices - 1 : begin;
    case PN_READS_CURRENT:
        break;
    }
    return stage->updates;
}

void stage_begin_forward(pn_stage *stage, int64_t minibatch)
{
    const int64_t in_flight = stage->forwards + 1 - stage->weight_parts;
    if (in_flight > stage->most_in_flight)
        stage->most_in_flight = in_flight;
    if (in_flight > stage->def->ring)
        pn_fail(stage, "internal error: %lld minibatches in flight at minibatch %lld, compiled for %d",
                (long long)in_flight, (long long)minibatch, stage->def->ring);
    stage->read_version[minibatch % stage->def->ring] = version_read(stage, minibatch);
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

/* In ascending order, as the microbatches come: the first writes the sum. */
void stage_end_backward(pn_stage *stage, int64_t n, int64_t from, int64_t to)
{
    const pn_stage_def *def = stage->def;
    const int64_t slices = pn_microbatches(stage->run->program), slice = n % slices;
    float *restrict sum = def->sum, *restrict gradient = def->gradient;
    if (slices == 1 || from == to || pn_target_sum(stage, slice, slices))
        return;
    if (slice == 0) {
        memcpy(sum + from, gradient + from, sizeof *sum * (size_t)(to - from));
    } else if (slice < slices - 1) {
        for (int64_t i = from; i < to; i++)
            sum[i] += gradient[i];
    } else {
        for (int64_t i = from; i < to; i++)
            gradient[i] = (sum[i] + gradient[i]) / (float)slices;
    }
}

static const float *version_kept(pn_stage *stage, int64_t minibatch, int64_t version)
{
    if (stage->updates - version >= stage->def->versions)
        pn_fail(stage, "internal error: minibatch %lld wants weight version %lld; %d versions up to %lld are kept",
                (long long)minibatch, (long long)version, stage->def->versions, (long long)stage->updates);
    return stage_version(stage, version);
}

const float *pn_forward_weights(pn_stage *stage, int64_t minibatch)
{
    int64_t version = version_read(stage, minibatch);
    stage->read_version[minibatch % stage->def->ring] = version;
    return version == stage->updates ? update_forward(stage) : version_kept(stage, minibatch, version);
}

const float *pn_backward_version(pn_stage *stage, int64_t minibatch)
{
    if (!stage->phase->stash)
        return stage_version(stage, stage->updates);
    return version_kept(stage, minibatch, stage->read_version[minibatch % stage->def->ring]);
}

const float *pn_backward_weights(pn_stage *stage, int64_t minibatch)
{
    return stage->phase->stash ? pn_backward_version(stage, minibatch) : update_backward(stage);
}

const float *pn_test_weights(pn_stage *stage)
{
    return stage_version(stage, stage->updates);
}
