#include "core/driver.h"

#include <string.h>
#include <time.h>

#include "core/checkpoint.h"
#include "core/diverge.h"
#include "core/halves.h"
#include "core/interrupt.h"
#include "core/plateau.h"
#include "core/replicas.h"
#include "core/stage.h"
#include "core/update.h"

int64_t driver_test_batches(const pn_run *run)
{
    int64_t batch = pn_slice(run->program);
    return run->data ? (run->data->test_count + batch - 1) / batch : 0;
}

int64_t driver_most_apart(const pn_program *program)
{
    int64_t sum = 0;
    for (int s = 0; s < program->nstages; s++)
        sum += program->stage[s]->half == PN_FORWARD_HALF ? 0 : 2 + program->stage[s]->ring;
    for (int r = 0; r < program->nregisters; r++)
        sum += program->reg[r]->forward.area.slots;
    return sum;
}

/* The last phase, and one without a number, takes all that is left. */
static void enter_phase(pn_stage *stage, int number, int64_t begin)
{
    const pn_program *program = stage->run->program;
    if (number == 0)
        stage->left_over = 0;
    else
        update_leave(stage, begin);
    stage->phase = &program->phase[number];
    stage->phase_begin = begin;
    stage->phase_first = stage->forwards;
    stage->ahead_version = -1;
    stage->splits = strchr(stage->phase->order[stage->index].body, PN_STEP_WEIGHTS) != NULL;
    bool rest = number == program->nphases - 1 || stage->phase->minibatches == 0;
    stage->phase_end = rest ? INT64_MAX : begin + stage->phase->minibatches * pn_microbatches(program);
    stage->cursor->phase = number;
    stage->cursor->position = 0;
}

/* In forwards, as they are numbered; may be known only shortly before it comes. */
static int64_t phase_end(const pn_stage *stage)
{
    if (stage->phase->plateau_tests == 0)
        return stage->phase_end;
    int64_t end = plateau_end(stage->run, stage->cursor->phase);
    return end == INT64_MAX ? end : end * pn_microbatches(stage->run->program);
}

/* A test that the run before had done is not repeated, unless it is all that is left to do. */
void driver_begin(pn_stage *stage)
{
    int64_t first = stage->run->first;
    bool trains = first > 0 && first < stage->run->steps;
    *stage->cursor = (struct pn_cursor){
        .tested_after = trains ? first : -1, .test_batch = -1, .saved_after = first, .shared = first, .summed = first};
    stage->updates = first;
    stage->forwards = stage->backwards = stage->weight_parts = first * pn_microbatches(stage->run->program);
    enter_phase(stage, 0, 0);
    while (phase_end(stage) <= stage->forwards)
        enter_phase(stage, stage->cursor->phase + 1, phase_end(stage));
}

/* May the stage begin another forward in this phase? Asked only when the forward would be the next step: a minibatch
 * once allowed is done, with all its microbatches and by all stages. */
static bool may_forward(pn_stage *stage)
{
    return stage->forwards < phase_end(stage) &&
           interrupt_may_begin(stage->run, stage->forwards / pn_microbatches(stage->run->program));
}

static bool test_is_due(const pn_stage *stage)
{
    int64_t every = stage->run->test_every, done = stage->updates;
    return every > 0 && done > 0 && done % every == 0 && stage->cursor->tested_after != done;
}

static bool checkpoint_is_due(const pn_stage *stage)
{
    int64_t every = stage->run->checkpoint_every, done = stage->updates;
    return every > 0 && done > 0 && done % every == 0 && stage->cursor->saved_after != done;
}

static void begin_test(pn_stage *stage)
{
    stage->cursor->test_batch = 0;
    stage->tests_begun++;
}

static Step next_of_update(const pn_stage *stage)
{
    const struct pn_cursor *cursor = stage->cursor;
    const int64_t n = stage->updates;
    if (stage->def->half == PN_FORWARD_HALF)
        return (Step){ACTION_HAND_OVER, n};
    const Action action = !stage->group         ? ACTION_UPDATE
                          : cursor->shared == n ? ACTION_SHARE
                          : cursor->summed == n ? ACTION_SUM
                                                : ACTION_UPDATE;
    return (Step){action, n};
}

/* The next part of the body that can be done; the caller knows that there is one. */
static Step next_of_body(pn_stage *stage)
{
    const pn_order *order = &stage->phase->order[stage->index];
    if (stage->forwards < stage->phase_first + order->warmup && may_forward(stage))
        return (Step){ACTION_FORWARD, stage->forwards};
    const int64_t slices = pn_microbatches(stage->run->program);
    const int length = (int)strlen(order->body);
    for (int tried = 0; tried < length; tried++) {
        switch (order->body[stage->cursor->position]) {
        case PN_STEP_FORWARD:
            if (may_forward(stage))
                return (Step){ACTION_FORWARD, stage->forwards};
            break;
        case PN_STEP_BACKWARD:
            if (stage->backwards < stage->forwards)
                return (Step){ACTION_BACKWARD, stage->backwards};
            break;
        case PN_STEP_WEIGHTS:
            if (stage->weight_parts < stage->backwards)
                return (Step){ACTION_WEIGHTS, stage->weight_parts};
            break;
        case PN_STEP_UPDATE:
            if ((stage->updates + 1) * slices <= stage->weight_parts)
                return next_of_update(stage);
            break;
        }
        stage->cursor->position = (stage->cursor->position + 1) % length;
    }
    pn_fail(stage, "internal error: the order of phase %s has no way on", stage->phase->name);
}

/* Of the stage's order, whoever of its halves does it. */
static Step next_of_stage(pn_stage *stage)
{
    struct pn_cursor *cursor = stage->cursor;
    const pn_program *program = stage->run->program;
    for (;;) {
        if (cursor->test_batch >= 0) {
            if (cursor->test_batch < driver_test_batches(stage->run))
                return (Step){ACTION_TEST, cursor->test_batch};
            cursor->test_batch = -1;
            cursor->tested_after = stage->updates;
        }
        if (test_is_due(stage)) {
            begin_test(stage);
            continue;
        }
        if (checkpoint_is_due(stage))
            return (Step){ACTION_CHECKPOINT, stage->updates};
        if (stage->updates * pn_microbatches(program) < stage->forwards || may_forward(stage))
            return next_of_body(stage);
        if (cursor->phase + 1 < program->nphases) {
            enter_phase(stage, cursor->phase + 1, stage->forwards);
            continue;
        }
        if (cursor->tested_after != stage->updates) {
            begin_test(stage);
            continue;
        }
        return (Step){ACTION_END, 0};
    }
}

Step driver_next(pn_stage *stage)
{
    for (;;) {
        const Step step = next_of_stage(stage);
        if (!halves_leave(stage, step))
            return step;
        driver_pass(stage, step);
    }
}

/* Leaves the body's position behind the step; a warm-up forward is not part of the body. */
static void pass(pn_stage *stage, Step step)
{
    static const char kind[] = {[ACTION_FORWARD] = PN_STEP_FORWARD,
                                [ACTION_BACKWARD] = PN_STEP_BACKWARD,
                                [ACTION_WEIGHTS] = PN_STEP_WEIGHTS,
                                [ACTION_HAND_OVER] = PN_STEP_UPDATE,
                                [ACTION_UPDATE] = PN_STEP_UPDATE};
    const pn_order *order = &stage->phase->order[stage->index];
    bool warming = step.action == ACTION_FORWARD && step.n < stage->phase_first + order->warmup;
    if (!warming && order->body[stage->cursor->position] == kind[step.action])
        stage->cursor->position = (stage->cursor->position + 1) % (int)strlen(order->body);
}

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

void driver_pass(pn_stage *stage, Step step)
{
    switch (step.action) {
    case ACTION_FORWARD:
        pass(stage, step);
        stage->forwards++;
        break;
    case ACTION_BACKWARD:
        pass(stage, step);
        stage->backwards++;
        stage->weight_parts += !stage->splits;
        break;
    case ACTION_WEIGHTS:
        pass(stage, step);
        stage->weight_parts++;
        break;
    case ACTION_SHARE:
        stage->cursor->shared++;
        break;
    case ACTION_SUM:
        stage->cursor->summed++;
        break;
    case ACTION_HAND_OVER:
    case ACTION_UPDATE:
        pass(stage, step);
        stage->updates++;
        break;
    case ACTION_TEST:
        stage->cursor->test_batch++;
        break;
    case ACTION_CHECKPOINT:
        stage->cursor->saved_after = step.n;
        break;
    case ACTION_END:
        break;
    }
}

static void do_step(pn_stage *stage, Step step)
{
    const pn_stage_def *def = stage->def;
    switch (step.action) {
    case ACTION_FORWARD:
        halves_begin_forward(stage, step.n);
        pass(stage, step);
        stage_begin_forward(stage, step.n);
        pn_target_run(stage, PN_RUN_FORWARD, def->forward, step.n);
        stage->forwards++;
        halves_end_forward(stage, step.n);
        break;
    case ACTION_BACKWARD:
        halves_begin_backward(stage, step.n);
        pass(stage, step);
        stage_begin_backward(stage, step.n);
        pn_target_run(stage, PN_RUN_BACKWARD, backward, step.n);
        stage->backwards++;
        if (!stage->splits)
            end_backward(stage);
        break;
    case ACTION_WEIGHTS:
        pass(stage, step);
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
        driver_pass(stage, step);
        break;
    case ACTION_UPDATE:
        pass(stage, step);
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
    Step step = driver_next(stage);
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
