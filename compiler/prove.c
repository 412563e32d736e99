/* prove.c: runs every stage's steps under the planned slots and finds what goes wrong.
 *
 * Registers are bounded queues with one giver and one reader, and a stage does its steps in a fixed order. Such a
 * network of processes ends in the same state however the stages are interleaved (Kahn 1974; Parks 1995 for bounded
 * queues), so one interleaving proves all of them. A step is taken whole: all it takes is there and all it gives has
 * room. Waiting in the midst of a step, as the program does, can block no other stage: a queue has no second giver or
 * reader.
 *
 * A stage in halves is two such processes over the same steps: the forward half does the forwards and takes over each
 * update, the backward half does the others. Between them are two more queues: minibatches whose values are in the
 * ring, and updates whose weights are there.
 *
 * Time: stages x steps x kinds of registers. Registers of one cut that behave alike are run once. */
#include "prove.h"

static bool alike(const Sched *sched, int a, int b)
{
    const Edge *x = &sched->pipe->edge[a], *y = &sched->pipe->edge[b];
    return x->gradient == y->gradient && x->kept_consumer == y->kept_consumer && x->kept_producer == y->kept_producer &&
           sched->forward_slots[a] == sched->forward_slots[b] && sched->gradient_slots[a] == sched->gradient_slots[b] &&
           sched->test_slots[a] == sched->test_slots[b];
}

static void make_queues(Proof *p)
{
    const Pipe *pipe = p->sched->pipe;
    for (int e = 0, next; e < pipe->nedges; e = next) {
        for (next = e; next < pipe->nedges && pipe->edge[next].from == pipe->edge[e].from; next++)
            ;
        Worker *worker = &p->worker[pipe->edge[e].from];
        worker->queue = arena_alloc(p->arena, sizeof(Queue) * (size_t)(next - e));
        for (int i = e; i < next; i++) {
            int known = 0;
            while (known < worker->nqueues && !alike(p->sched, worker->queue[known].edge, i))
                known++;
            if (known == worker->nqueues)
                worker->queue[worker->nqueues++] = (Queue){.edge = i};
        }
    }
}

/* Updates in the weights that a forward of the stage finds. */
static int64_t newest(const Proof *p, int stage)
{
    return halved(p, stage) ? p->worker[stage].taken : p->worker[stage].updates;
}

/* The half waits for the other one. */
static bool waits_inside(const Proof *p, int stage, Half half, Step step)
{
    const Worker *w = &p->worker[stage];
    if (!halved(p, stage))
        return false;
    switch (step.kind) {
    case STEP_FORWARD:
        return step.n - w->weights >= p->sched->ring[stage];
    case STEP_BACKWARD:
        return step.n >= w->forwards;
    case STEP_UPDATE:
        return half == HALF_FORWARD ? step.n >= w->updates : step.n - w->taken >= p->sched->versions[stage] - 1;
    default:
        return false;
    }
}

Wait proof_wait(const Proof *p, int stage, Half half, Step step)
{
    const Sched *sched = p->sched;
    Worker *w = &p->worker[stage], *before = stage > 0 ? w - 1 : NULL;
    const int64_t m = step.n;
    if (waits_inside(p, stage, half, step))
        return (Wait){NULL, WAIT_VALUE};
    if (step.kind == STEP_UPDATE || step.kind == STEP_WEIGHTS)
        return (Wait){0};
    for (int i = 0; before && i < before->nqueues; i++) {
        const Queue *q = &before->queue[i];
        if ((step.kind == STEP_FORWARD && q->given <= m) || (step.kind == STEP_TEST && q->test_given <= m))
            return (Wait){q, WAIT_VALUE};
        if (step.kind == STEP_BACKWARD && sched->pipe->edge[q->edge].gradient &&
            q->back_given - q->back_released >= sched->gradient_slots[q->edge])
            return (Wait){q, WAIT_ROOM};
    }
    for (int i = 0; i < w->nqueues; i++) {
        const Queue *q = &w->queue[i];
        if (step.kind == STEP_BACKWARD && sched->pipe->edge[q->edge].gradient && q->back_given <= m)
            return (Wait){q, WAIT_VALUE};
        if ((step.kind == STEP_FORWARD && q->given - q->released >= sched->forward_slots[q->edge]) ||
            (step.kind == STEP_TEST && q->test_given - q->test_released >= sched->test_slots[q->edge]))
            return (Wait){q, WAIT_ROOM};
    }
    return (Wait){0};
}

static int phase_of(const Proof *p, int64_t n)
{
    int64_t end = 0;
    int phase = 0;
    while (phase + 1 < p->sched->nphases && (end += p->sched->phase[phase].choice->minibatches * p->microbatches) <= n)
        phase++;
    return phase;
}

/* The version of the weights that the forward of a microbatch reads. */
static int64_t version_read(const Proof *p, int stage, int64_t n)
{
    int64_t begin = 0; /* of the phase, in minibatches */
    const int phase = phase_of(p, n);
    for (int i = 0; i < phase; i++)
        begin += p->sched->phase[i].choice->minibatches;
    const Reads reads = p->sched->phase[phase].choice->rule->forward_reads;
    if (reads == READS_FIRST && stage > 0)
        return p->worker[0].version[n];
    if (reads == READS_BEFORE)
        return n / p->microbatches > begin ? n / p->microbatches - 1 : begin;
    return newest(p, stage);
}

static bool splits(const Proof *p, int stage, int64_t n)
{
    return p->sched->phase[phase_of(p, n)].late[stage] > 0;
}

/* What is wrong with a step whatever the other stages do; NULL: nothing. */
static const char *step_error(const Proof *p, int stage, Step step)
{
    static const char *const kinds[STEP_KINDS] = {"forward", "backward", "weight part", "update", "test"};
    const Sched *sched = p->sched;
    const Worker *w = &p->worker[stage];
    const int64_t done[STEP_KINDS] = {w->forwards, w->backwards, w->weights, w->updates, w->tests}, m = step.n;
    const int64_t count = p->minibatches * (step.kind == STEP_UPDATE ? 1 : p->microbatches);
    if (m != done[step.kind])
        return arena_printf(p->arena, "stage %d does the %s of minibatch %lld where that of %lld is next", stage,
                            kinds[step.kind], (long long)m, (long long)done[step.kind]);
    if (m >= count && step.kind != STEP_TEST)
        return arena_printf(p->arena, "stage %d goes on to minibatch %lld of %lld", stage, (long long)m,
                            (long long)count);
    if (step.kind == STEP_BACKWARD && m >= w->forwards)
        return arena_printf(p->arena, "stage %d goes back on minibatch %lld before its forward", stage, (long long)m);
    if (step.kind == STEP_WEIGHTS && m >= w->backwards)
        return arena_printf(p->arena, "stage %d does the weight part of minibatch %lld before its input part", stage,
                            (long long)m);
    if (step.kind == STEP_UPDATE && (m + 1) * p->microbatches > w->weights)
        return arena_printf(p->arena, "stage %d updates with minibatch %lld before its backward", stage, (long long)m);
    if ((step.kind == STEP_BACKWARD || step.kind == STEP_WEIGHTS) && m / p->microbatches > w->updates)
        return arena_printf(p->arena,
                            "stage %d overwrites the weight gradients of minibatch %lld with those of %lld before its "
                            "update",
                            stage, (long long)(m - 1), (long long)m);
    if (step.kind == STEP_BACKWARD && splits(p, stage, m) && m - w->weights >= sched->late[stage])
        return arena_printf(p->arena,
                            "stage %d overwrites the gradients of minibatch %lld with those of %lld before its weight "
                            "part: there are %d slots",
                            stage, (long long)(m - sched->late[stage]), (long long)m, sched->late[stage]);
    if (step.kind == STEP_FORWARD && m - w->weights >= sched->ring[stage])
        return arena_printf(p->arena,
                            "stage %d overwrites the saved values of minibatch %lld with those of %lld before its "
                            "backward: its ring has %d slots",
                            stage, (long long)(m - sched->ring[stage]), (long long)m, sched->ring[stage]);
    if (step.kind == STEP_FORWARD && version_read(p, stage, m) > newest(p, stage))
        return arena_printf(p->arena, "stage %d has not made the weights that the forward of minibatch %lld reads",
                            stage, (long long)m);
    for (int i = 0; step.kind == STEP_FORWARD && i < w->nqueues; i++) {
        const Queue *q = &w->queue[i];
        const int slots = sched->forward_slots[q->edge];
        if (sched->pipe->edge[q->edge].kept_producer && m - w->weights >= slots)
            return arena_printf(p->arena,
                                "stage %d overwrites minibatch %lld in the register of %s before its own backward has "
                                "read it: %d slots",
                                stage, (long long)(m - slots), proof_value_name(p, q), slots);
    }
    if (step.kind == STEP_UPDATE && halved(p, stage) && m + 1 - w->taken >= sched->versions[stage])
        return arena_printf(p->arena, "stage %d overwrites the weights that its forwards read: %d versions", stage,
                            sched->versions[stage]);
    if (step.kind == STEP_BACKWARD && w->updates - w->version[m] >= sched->versions[stage]) {
        if (sched->phase[phase_of(p, m)].choice->rule->backward_reads_own)
            return arena_printf(p->arena,
                                "stage %d has overwritten the weights that the forward of minibatch %lld read: %d "
                                "versions",
                                stage, (long long)m, sched->versions[stage]);
    }
    return NULL;
}

/* All of a backward is done: what the stage has kept for it is free. */
static void end_backward(Proof *p, int stage)
{
    Worker *w = &p->worker[stage], *before = stage > 0 ? w - 1 : NULL;
    w->weights++;
    for (int i = 0; before && i < before->nqueues; i++)
        before->queue[i].released += p->sched->pipe->edge[before->queue[i].edge].kept_consumer;
}

static void take_step(Proof *p, int stage, Step step)
{
    Worker *w = &p->worker[stage], *before = stage > 0 ? w - 1 : NULL;
    const Edge *edge = p->sched->pipe->edge;
    switch (step.kind) {
    case STEP_FORWARD:
        w->version[w->forwards] = version_read(p, stage, step.n);
        w->forwards++;
        for (int i = 0; i < w->nqueues; i++)
            w->queue[i].given++;
        for (int i = 0; before && i < before->nqueues; i++)
            before->queue[i].released += !edge[before->queue[i].edge].kept_consumer;
        break;
    case STEP_BACKWARD:
        w->backwards++;
        for (int i = 0; i < w->nqueues; i++)
            w->queue[i].back_released += edge[w->queue[i].edge].gradient;
        for (int i = 0; before && i < before->nqueues; i++)
            before->queue[i].back_given += edge[before->queue[i].edge].gradient;
        if (!splits(p, stage, step.n))
            end_backward(p, stage);
        break;
    case STEP_WEIGHTS:
        end_backward(p, stage);
        break;
    case STEP_UPDATE:
        w->updates++;
        break;
    case STEP_TEST:
        w->tests++;
        for (int i = 0; i < w->nqueues; i++)
            w->queue[i].test_given++;
        for (int i = 0; before && i < before->nqueues; i++)
            before->queue[i].test_released++;
        break;
    }
}

/* The other half does it. */
static bool leaves(const Proof *p, int stage, Half half, StepKind kind)
{
    return halved(p, stage) &&
           (half == HALF_FORWARD ? kind != STEP_FORWARD && kind != STEP_UPDATE : kind == STEP_FORWARD);
}

/* The next step of a half: a test as soon as it is due. False: it has done all. */
bool proof_next(const Proof *p, int stage, Half half, Step *step)
{
    enum { TEST_BATCHES = 3 }; /* more than a register has test slots */
    Worker *w = &p->worker[stage];
    if (half == HALF_BACKWARD && p->test_after > 0 && w->updates == p->test_after && w->tests < TEST_BATCHES) {
        *step = (Step){STEP_TEST, w->tests};
        return true;
    }
    while (w->at[half] < p->count[stage] && leaves(p, stage, half, p->step[stage][w->at[half]].kind))
        w->at[half]++;
    if (w->at[half] == p->count[stage])
        return false;
    *step = p->step[stage][w->at[half]];
    return true;
}

/* As far as a half can go alone; whether it moved. */
static bool advance_half(Proof *p, int stage, Half half)
{
    Worker *w = &p->worker[stage];
    bool moved = false;
    for (Step step; proof_next(p, stage, half, &step); moved = true) {
        const bool takes_over = half == HALF_FORWARD && step.kind == STEP_UPDATE;
        if (waits_inside(p, stage, half, step))
            break;
        p->wrong = takes_over ? NULL : step_error(p, stage, step);
        if (p->wrong || proof_wait(p, stage, half, step).what != WAIT_NOTHING)
            break;
        if (takes_over)
            w->taken++;
        else
            take_step(p, stage, step);
        w->at[half] += step.kind != STEP_TEST;
    }
    return moved;
}

static bool advance(Proof *p, int stage)
{
    bool moved = advance_half(p, stage, HALF_BACKWARD);
    for (bool more = halved(p, stage); more && !p->wrong; moved |= more) {
        more = advance_half(p, stage, HALF_FORWARD);
        more |= !p->wrong && advance_half(p, stage, HALF_BACKWARD);
    }
    return moved;
}

static void run(Proof *p)
{
    int *list = arena_alloc(p->arena, sizeof(int) * (size_t)p->nstages); /* a ring of at most nstages entries */
    int first = 0, length = p->nstages;
    for (int s = 0; s < p->nstages; s++) {
        list[s] = s;
        p->worker[s].waiting = true;
    }
    while (length > 0 && !p->wrong) {
        const int stage = list[first];
        first = (first + 1) % p->nstages;
        length--;
        p->worker[stage].waiting = false;
        if (!advance(p, stage))
            continue;
        for (int s = stage - 1; s <= stage + 1; s += 2)
            if (s >= 0 && s < p->nstages && !p->worker[s].waiting) {
                list[(first + length++) % p->nstages] = s;
                p->worker[s].waiting = true;
            }
    }
}

const char *sched_prove_steps(Arena *arena, const Sched *sched, const Step *const *step, const int *count,
                              int64_t minibatches, int64_t test_after)
{
    Proof p = {
        .arena = arena,
        .sched = sched,
        .step = step,
        .count = count,
        .minibatches = minibatches,
        .microbatches = sched->pipe->graph->microbatches,
        .test_after = test_after,
        .nstages = sched->pipe->nstages,
        .worker = arena_alloc(arena, sizeof(Worker) * (size_t)sched->pipe->nstages),
    };
    for (int s = 0; s < p.nstages; s++)
        p.worker[s].version = arena_alloc(arena, sizeof(int64_t) * (size_t)(minibatches * p.microbatches + 1));
    make_queues(&p);
    run(&p);
    if (!p.wrong)
        p.wrong = proof_deadlock(&p);
    return p.wrong ? p.wrong : proof_unfinished(&p);
}
