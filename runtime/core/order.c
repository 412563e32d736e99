#include "core/order.h"

#include <string.h>

#include "core/halves.h"
#include "core/interrupt.h"
#include "core/plateau.h"
#include "core/update.h"

int64_t order_test_batches(const pn_run *run)
{
    int64_t batch = pn_slice(run->program);
    return run->data ? (run->data->test_count + batch - 1) / batch : 0;
}

int64_t order_most_apart(const pn_program *program)
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
void order_begin(pn_stage *stage)
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
            if (cursor->test_batch < order_test_batches(stage->run))
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

Step order_next(pn_stage *stage)
{
    for (;;) {
        const Step step = next_of_stage(stage);
        if (!halves_leave(stage, step))
            return step;
        order_pass(stage, step);
    }
}

void order_advance(pn_stage *stage, Step step)
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

void order_pass(pn_stage *stage, Step step)
{
    switch (step.action) {
    case ACTION_FORWARD:
        order_advance(stage, step);
        stage->forwards++;
        break;
    case ACTION_BACKWARD:
        order_advance(stage, step);
        stage->backwards++;
        stage->weight_parts += !stage->splits;
        break;
    case ACTION_WEIGHTS:
        order_advance(stage, step);
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
        order_advance(stage, step);
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
