/* prove_say.c: what a proof has found, in words. */
#include "prove.h"

const char *proof_value_name(const Proof *p, const Queue *queue)
{
    const Pipe *pipe = p->sched->pipe;
    return pipe->graph->node[pipe->edge[queue->edge].value].value_name;
}

static void say_wait(const Proof *p, int stage, Half half, Step step, Text *out)
{
    const Wait wait = proof_wait(p, stage, half, step);
    const char *what = step.kind == STEP_BACKWARD ? "the gradient of " : "";
    text_printf(out, "stage %d waits for ", stage);
    if (!wait.queue) {
        text_printf(out,
                    half == HALF_FORWARD ? "its backward half at minibatch %lld" : "its forward half at minibatch %lld",
                    (long long)step.n);
        return;
    }
    const Edge *edge = &p->sched->pipe->edge[wait.queue->edge];
    if (wait.what == WAIT_VALUE)
        text_printf(out, "minibatch %lld of %s%s", (long long)step.n, what, proof_value_name(p, wait.queue));
    else
        text_printf(out, "room for minibatch %lld of %s%s to stage %d", (long long)step.n, what,
                    proof_value_name(p, wait.queue), edge->from == stage ? stage + 1 : stage - 1);
}

const char *proof_deadlock(const Proof *p)
{
    enum { NAMED = 4 };
    Text text = text_new(p->arena);
    int named = 0;
    for (int i = 0; i < p->nstages * HALVES; i++) {
        const int stage = i / HALVES;
        const Half half = i % HALVES == 0 ? HALF_FORWARD : HALF_BACKWARD;
        Step step;
        if ((half == HALF_FORWARD && !halved(p, stage)) || !proof_next(p, stage, half, &step))
            continue;
        if (named++ == NAMED) {
            text_printf(&text, "; and so on");
            break;
        }
        text_printf(&text, named == 1 ? "deadlock: " : "; ");
        say_wait(p, stage, half, step, &text);
    }
    return named ? text.data : NULL;
}

const char *proof_unfinished(const Proof *p)
{
    for (int s = 0; s < p->nstages; s++) {
        const Worker *w = &p->worker[s];
        const int64_t slices = p->minibatches * p->microbatches;
        const char *kind = w->forwards < slices          ? "forward"
                           : w->backwards < slices       ? "backward"
                           : w->weights < slices         ? "weight part"
                           : w->updates < p->minibatches ? "update"
                                                         : NULL;
        if (kind)
            return arena_printf(p->arena, "stage %d ends without the %s of minibatch %lld", s, kind,
                                (long long)(kind[0] == 'f'   ? w->forwards
                                            : kind[0] == 'b' ? w->backwards
                                            : kind[0] == 'w' ? w->weights
                                                             : w->updates));
    }
    return NULL;
}
