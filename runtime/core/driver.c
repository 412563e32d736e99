#include "core/driver.h"

#include <time.h>

#include "core/checkpoint.h"
#include "core/diverge.h"
#include "core/halves.h"
#include "core/replicas.h"
#include "core/stage.h"

static void weight_part(pn_stage *stage, int64_t n)
{
    const pn_stage_def *def = stage->def;
    def->weight_gradients(stage, n);
    stage_end_backward(stage, n, def->early_floats, def->weight_floats);
}

/* With what must be there again before it, and the sum of gradients behind it. */
static void backward(pn_stage *stage, int64_t n)
{
    const pn_stage_def *def = stage->def;
    if (def->recompute) {
        stage->recomputing = true;
        def->recompute(stage, n);
        stage->recomputing = false;
    }
    def->backward(stage, n);
    stage_end_backward(stage, n, 0, def->weight_gradients ? def->early_floats : def->weight_floats);
    if (def->weight_gradients && !stage->splits)
        weight_part(stage, n);
}

/* Both parts are done. */
static void end_backward(pn_stage *stage)
{
    halves_end_backward(stage, stage->weight_parts);
    stage->weight_parts++;
}

static void do_step(pn_stage *stage, Step step)
{
    const pn_stage_def *def = stage->def;
    switch (step.action) {
    case ACTION_FORWARD:
        halves_begin_forward(stage, step.n);
        order_advance(stage, step);
        stage_begin_forward(stage, step.n);
        pn_target_run(stage, PN_RUN_FORWARD, def->forward, step.n);
        stage->forwards++;
        halves_end_forward(stage, step.n);
        break;
    case ACTION_BACKWARD:
        halves_begin_backward(stage, step.n);
        order_advance(stage, step);
        stage_begin_backward(stage, step.n);
        pn_target_run(stage, PN_RUN_BACKWARD, backward, step.n);
        stage->backwards++;
        if (!stage->splits)
            end_backward(stage);
        break;
    case ACTION_WEIGHTS:
        order_advance(stage, step);
        pn_target_run(stage, PN_RUN_BACKWARD, weight_part, step.n);
        end_backward(stage);
        break;
    case ACTION_SHARE:
        replicas_share(stage);
        stage->cursor->shared++;
        break;
    case ACTION_SUM:
        replicas_sum(stage);
        stage->cursor->summed++;
        break;
    case ACTION_HAND_OVER:
        halves_hand_over(stage);
        order_pass(stage, step);
        break;
    case ACTION_UPDATE:
        order_advance(stage, step);
        (stage->group ? replicas_update : stage->halves ? halves_update : pn_update)(stage);
        break;
    case ACTION_TEST: {
        int64_t traffic = stage->traffic_bytes; /* of training only */
        if (step.n == 0)
            diverge_keep(stage);
        pn_target_run(stage, PN_RUN_TEST, def->test, step.n);
        stage->traffic_bytes = traffic;
        stage->cursor->test_batch++;
        break;
    }
    case ACTION_CHECKPOINT:
        checkpoint_stage(stage);
        stage->cursor->saved_after = step.n;
        break;
    case ACTION_END:
        break;
    }
}

double pn_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

double pn_work_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void trace_step(pn_stage *stage, Step step, double begin, double end, double work)
{
    static const pn_trace_kind kind[] = {[ACTION_FORWARD] = PN_TRACE_FORWARD,
                                         [ACTION_BACKWARD] = PN_TRACE_BACKWARD,
                                         [ACTION_WEIGHTS] = PN_TRACE_WEIGHTS,
                                         [ACTION_SHARE] = PN_TRACE_SHARE,
                                         [ACTION_SUM] = PN_TRACE_SUM,
                                         [ACTION_HAND_OVER] = PN_TRACE_HAND_OVER,
                                         [ACTION_UPDATE] = PN_TRACE_UPDATE,
                                         [ACTION_TEST] = PN_TRACE_TEST,
                                         [ACTION_CHECKPOINT] = PN_TRACE_CHECKPOINT};
    pn_trace_add(stage, kind[step.action], NULL, step.n, begin, end, work);
}

bool driver_step(pn_stage *stage)
{
    if (setjmp(stage->escape))
        return false;
    fail_check(stage);
    Step step = order_next(stage);
    if (step.action == ACTION_END)
        return false;
    double work = stage->trace ? pn_work_seconds() : 0;
    double begin = pn_seconds(), waited = stage->wait_seconds;
    do_step(stage, step);
    double end = pn_seconds();
    stage->busy_seconds += end - begin - (stage->wait_seconds - waited);
    if (stage->trace)
        trace_step(stage, step, begin, end, pn_work_seconds() - work);
    atomic_fetch_add_explicit(&stage->progress, 1, memory_order_relaxed);
    return true;
}

StepChannels driver_channels(const pn_stage *stage, Step step)
{
    const pn_stage_def *def = stage->def;
    StepChannels channels;
    if (halves_channels(stage, step, &channels))
        return channels;
    switch (step.action) {
    case ACTION_FORWARD:
        return (StepChannels){def->takes, def->gives, def->ntakes, def->ngives};
    case ACTION_BACKWARD:
        return (StepChannels){def->takes_gradient, def->gives_gradient, def->ntakes_gradient, def->ngives_gradient};
    case ACTION_TEST:
        return (StepChannels){def->takes_test, def->gives_test, def->ntakes_test, def->ngives_test};
    case ACTION_SHARE:
    case ACTION_SUM:
    case ACTION_UPDATE:
        return stage->group ? replicas_channels(stage, step) : (StepChannels){NULL, NULL, 0, 0};
    default:
        return (StepChannels){NULL, NULL, 0, 0};
    }
}

const char *driver_describe(Step step, char *text, size_t size)
{
    static const char *const format[] = {[ACTION_FORWARD] = "the forward of minibatch %lld",
                                         [ACTION_BACKWARD] = "the backward of minibatch %lld",
                                         [ACTION_WEIGHTS] = "the weight part of minibatch %lld",
                                         [ACTION_SHARE] = "the gradients for update %lld",
                                         [ACTION_SUM] = "the sum of the gradients for update %lld",
                                         [ACTION_HAND_OVER] = "the weights of update %lld",
                                         [ACTION_UPDATE] = "update %lld",
                                         [ACTION_TEST] = "test batch %lld",
                                         [ACTION_CHECKPOINT] = "the checkpoint of step %lld",
                                         [ACTION_END] = "nothing more (ended before step %lld)"};
    snprintf(text, size, format[step.action], (long long)step.n);
    return text;
}
