/* prove.c: runs every stage's steps under the planned slots and finds what goes wrong.
 *
 * Registers are bounded queues with one giver and one reader, and a stage does its steps in a fixed order. Such a
 * network of processes ends in the same state however the stages are interleaved (Kahn 1974; Parks 1995 for bounded
 * queues), so one interleaving proves all of them. A step is taken whole: all it takes is there and all it gives has
 * room. Waiting in the midst of a step, as the program does, can block no other stage: a queue has no second giver or
 * reader.
 *
 * Time: stages x steps x kinds of registers. Registers of one cut that behave alike are run once. */
#include "sched.h"

typedef struct {
    int edge;                /* one of those that behave alike */
    int64_t given, released; /* forward */
    int64_t back_given, back_released;
    int64_t test_given, test_released;
} Queue;

typedef struct {
    Queue *queue; /* of the cut behind this stage */
    int nqueues;
    int at;                                               /* next step */
    int64_t forwards, backwards, weights, updates, tests; /* weights: backwards with their weight part */
    int64_t *version;                                     /* per microbatch: updates at its forward */
    bool waiting;                                         /* stands in the list of stages to look at */
} Worker;

typedef struct {
    Arena *arena;
    const Sched *sched;
    const Step *const *step;
    const int *count;
    int64_t minibatches, microbatches, test_after; /* microbatches: of a minibatch */
    int nstages;
    Worker *worker;
    const char *wrong;
} Proof;

static const char *value_name(const Proof *p, const Queue *queue)
{
    const Pipe *pipe = p->sched->pipe;
    return pipe->graph->node[pipe->edge[queue->edge].value].value_name;
}

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

/* What a step waits for. */
typedef struct {
    const Queue *queue;
    enum { WAIT_NOTHING, WAIT_VALUE, WAIT_ROOM } what;
} Wait;

static Wait wait_of(const Proof *p, int stage, Step step)
{
    const Sched *sched = p->sched;
    Worker *w = &p->worker[stage], *before = stage > 0 ? w - 1 : NULL;
    const int64_t m = step.n;
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
    return p->worker[stage].updates;
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
    if (step.kind == STEP_FORWARD && version_read(p, stage, m) > w->updates)
        return arena_printf(p->arena, "stage %d has not made the weights that the forward of minibatch %lld reads",
                            stage, (long long)m);
    for (int i = 0; step.kind == STEP_FORWARD && i < w->nqueues; i++) {
        const Queue *q = &w->queue[i];
        const int slots = sched->forward_slots[q->edge];
        if (sched->pipe->edge[q->edge].kept_producer && m - w->weights >= slots)
            return arena_printf(p->arena,
                                "stage %d overwrites minibatch %lld in the register of %s before its own backward has "
                                "read it: %d slots",
                                stage, (long long)(m - slots), value_name(p, q), slots);
    }
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

/* The next step of a stage: a test as soon as it is due. False: it has done all. */
static bool next_step(const Proof *p, int stage, Step *step)
{
    enum { TEST_BATCHES = 3 }; /* more than a register has test slots */
    const Worker *w = &p->worker[stage];
    if (p->test_after > 0 && w->updates == p->test_after && w->tests < TEST_BATCHES) {
        *step = (Step){STEP_TEST, w->tests};
        return true;
    }
    if (w->at == p->count[stage])
        return false;
    *step = p->step[stage][w->at];
    return true;
}

/* As far as a stage can go alone; whether it moved. */
static bool advance(Proof *p, int stage)
{
    Worker *w = &p->worker[stage];
    bool moved = false;
    for (Step step; next_step(p, stage, &step); moved = true) {
        p->wrong = step_error(p, stage, step);
        if (p->wrong || wait_of(p, stage, step).what != WAIT_NOTHING)
            break;
        take_step(p, stage, step);
        w->at += step.kind != STEP_TEST;
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

static const char *deadlock(const Proof *p)
{
    enum { NAMED = 4 };
    Text text = text_new(p->arena);
    int named = 0;
    for (int s = 0; s < p->nstages; s++) {
        Step step;
        if (!next_step(p, s, &step))
            continue;
        const Wait wait = wait_of(p, s, step);
        const Edge *edge = &p->sched->pipe->edge[wait.queue->edge];
        const char *what = step.kind == STEP_BACKWARD ? "the gradient of " : "";
        if (named++ == NAMED) {
            text_printf(&text, "; and so on");
            break;
        }
        text_printf(&text, "%sstage %d waits for ", named == 1 ? "deadlock: " : "; ", s);
        if (wait.what == WAIT_VALUE)
            text_printf(&text, "minibatch %lld of %s%s", (long long)step.n, what, value_name(p, wait.queue));
        else
            text_printf(&text, "room for minibatch %lld of %s%s to stage %d", (long long)step.n, what,
                        value_name(p, wait.queue), edge->from == s ? s + 1 : s - 1);
    }
    return named ? text.data : NULL;
}

static const char *unfinished(const Proof *p)
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
        p.wrong = deadlock(&p);
    return p.wrong ? p.wrong : unfinished(&p);
}
