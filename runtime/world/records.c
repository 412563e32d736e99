/* records.c: see records.h. */
#include "world/records.h"

#include <string.h>

#include "core/checkpoint.h"
#include "core/driver.h"
#include "core/weights.h"

typedef struct {
    Interval interval; /* phase: as below */
    int32_t phase;
} IntervalFrame;
typedef struct {
    TestResult result;
    double images_per_second;
} TestFrame;
/* Then the values, `floats` of them. */
typedef struct {
    int32_t stage;
    int64_t floats, step;
    int64_t forwards, backwards, most_in_flight, staleness_most, staleness_sum, traffic_bytes, scratch_bytes;
    double busy_seconds, wait_seconds;
} StageFrame;

static int64_t stage_bytes(const pn_stage *stage, bool values)
{
    return (int64_t)sizeof(StageFrame) + (values ? weights_floats(stage) * (int64_t)sizeof(float) : 0);
}

int64_t records_open(pn_world *world)
{
    const bool leads = world->launch.rank == 0;
    int64_t most = sizeof(FailFrame);
    for (int s = 0; s < world->run->program->nstages; s++) {
        pn_stage *stage = &world->run->stage[s];
        const int64_t bytes = stage_bytes(stage, world->wants_values);
        most = stage->here != leads && bytes > most ? bytes : most;
        if (leads && !stage->here && world->wants_values)
            stage->sent = pn_alloc(weights_floats(stage) * (int64_t)sizeof(float));
    }
    if (!leads)
        world->outgoing = pn_alloc(most);
    return leads ? most : (int64_t)sizeof(FailFrame);
}

/* ---- sending ---- */

void world_interval(pn_run *run, const Interval *interval, int phase)
{
    const IntervalFrame frame = {*interval, phase};
    world_send(run->world, 0, WORLD_INTERVAL, &frame, sizeof frame);
}

void world_test(pn_run *run, const TestResult *result, double images_per_second)
{
    const TestFrame frame = {*result, images_per_second};
    world_send(run->world, 0, WORLD_TEST, &frame, sizeof frame);
}

static void send_stage(pn_stage *stage, WorldKind kind, bool values)
{
    StageFrame *frame = stage->run->world->outgoing;
    *frame = (StageFrame){.stage = stage->index,
                          .floats = values ? weights_floats(stage) : 0,
                          .step = stage->updates,
                          .forwards = stage->forwards,
                          .backwards = stage->backwards,
                          .most_in_flight = stage->most_in_flight,
                          .staleness_most = stage->staleness_most,
                          .staleness_sum = stage->staleness_sum,
                          .traffic_bytes = stage->traffic_bytes,
                          .scratch_bytes = stage->scratch_bytes,
                          .busy_seconds = stage->busy_seconds,
                          .wait_seconds = stage->wait_seconds};
    if (values)
        weights_values(stage, (float *)(frame + 1));
    world_send(stage->run->world, 0, kind, frame, stage_bytes(stage, values));
}

void world_checkpoint(pn_stage *stage)
{
    pn_target_finish(stage);
    send_stage(stage, WORLD_CHECKPOINT, true);
}

void records_send_stages(pn_run *run)
{
    for (int s = 0; s < run->program->nstages; s++)
        if (run->stage[s].here)
            send_stage(&run->stage[s], WORLD_STAGE, run->world->wants_values);
}

/* ---- on rank 0 ---- */

static void take_interval(pn_run *run, const IntervalFrame *frame)
{
    Interval interval = frame->interval;
    pn_log *log = run->log;
    interval.phase =
        frame->phase >= 0 && frame->phase < run->program->nphases ? run->program->phase[frame->phase].name : "";
    pthread_mutex_lock(&log->lock);
    progress_interval(log, &interval);
    metrics_interval(log, &interval);
    pthread_mutex_unlock(&log->lock);
}

static void take_test(pn_run *run, const TestFrame *frame)
{
    pn_log *log = run->log;
    pthread_mutex_lock(&log->lock);
    log->result = frame->result;
    log->images_per_second = frame->images_per_second;
    progress_test(log, &log->result);
    metrics_test(log, &log->result);
    pthread_mutex_unlock(&log->lock);
}

static void take_stage(pn_run *run, const StageFrame *frame, bool checkpoint)
{
    pn_stage *stage = &run->stage[frame->stage];
    if (frame->floats > 0) /* they stay until the stage sends others */
        memcpy(stage->sent, frame + 1, (size_t)frame->floats * sizeof(float));
    stage->updates = frame->step;
    stage->forwards = frame->forwards;
    stage->backwards = frame->backwards;
    stage->most_in_flight = frame->most_in_flight;
    stage->staleness_most = frame->staleness_most;
    stage->staleness_sum = frame->staleness_sum;
    stage->traffic_bytes = frame->traffic_bytes;
    stage->scratch_bytes = frame->scratch_bytes;
    stage->busy_seconds = frame->busy_seconds;
    stage->wait_seconds = frame->wait_seconds;
    if (checkpoint && !setjmp(stage->escape))
        checkpoint_stage(stage);
}

static bool is_stage(const pn_run *run, const StageFrame *frame, int64_t bytes)
{
    if (bytes < (int64_t)sizeof *frame || frame->stage < 0 || frame->stage >= run->program->nstages)
        return false;
    const pn_stage *stage = &run->stage[frame->stage];
    return !stage->here && (frame->floats == 0 || (stage->sent && frame->floats == weights_floats(stage))) &&
           bytes == (int64_t)sizeof *frame + frame->floats * (int64_t)sizeof(float);
}

void records_take(pn_world *world, WorldKind kind, const void *data, int64_t bytes)
{
    pn_run *run = world->run;
    if (world->launch.rank != 0)
        return;
    if (kind == WORLD_INTERVAL && bytes == sizeof(IntervalFrame))
        take_interval(run, data);
    else if (kind == WORLD_TEST && bytes == sizeof(TestFrame))
        take_test(run, data);
    else if ((kind == WORLD_CHECKPOINT || kind == WORLD_STAGE) && is_stage(run, data, bytes))
        take_stage(run, data, kind == WORLD_CHECKPOINT);
}
