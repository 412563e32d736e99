/* profile.c: the records behind pn_profile.h. Runs pn_main on a copy of the program whose stages tell when a forward or
 * a backward begins and ends, or its weight part, which counts as the backward's; a node's time in one minibatch is the
 * sum of its verbs in between. It is the processor time of the stage's thread: what another program takes of the core is
 * no cost of a node. Updates and hand-overs are read from the stage's trace, in real time.
 *
 * The file is text, for pnetc (compiler/measure.c), times in microseconds:
 *
 *     measured 1
 *     versions oneDNN 2.6.3
 *     steps 40
 *     node 0 conv1 MIDDLE LEAST MIDDLE LEAST MIDDLE LEAST     stage, name; forward, backward, update
 *     stage 0 MIDDLE LEAST MIDDLE LEAST MIDDLE LEAST          all of a step, looking out for registers included
 *     handover QUARTILE                                       give to take, where the taker had waited
 *
 * MIDDLE is the mean over the middle fifth of the minibatches, in the order of the time that all nodes of the stage took
 * together: medians of the nodes would not add up to the median of the stage. Of several microbatches it is the mean. An
 * update has the median; it is shared out to the nodes by the parameters they have. */
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/trace.h"
#include "pn_profile.h"

/* The verbs themselves, not their stopwatches; a definition in this file is of the function. */
#undef pn_relu_mask
#undef pn_accumulate
#undef pn_copy
#undef pn_input
#undef pn_main

enum { PASS_FORWARD, PASS_BACKWARD, PASSES };

typedef struct {
    const pn_op *op;
    const char *name;
    const pn_tensor *y;
    int64_t floats;
    double begun, sum;
    double *sample[PASSES]; /* a number a minibatch */
} Record;

typedef struct {
    const pn_stage_def *real;
    pn_stage_def shown; /* with the functions below */
    const pn_stage *stage;
    Record *record;
    int count, room;
    int last; /* record of the verb that ran last */
    double *sample[PASSES];
    int64_t done[PASSES];        /* microbatches */
    int64_t weight_parts;        /* done, where backwards are split: each is time of the backward that it belongs to */
    int64_t *chosen;             /* minibatches of the middle fifth */
    int64_t nchosen, first, end; /* first .. end: those that count */
} Profile;

/* A verb names no stage; the thread knows which one it runs. */
static _Thread_local Profile *current;
static _Thread_local bool testing;
static _Thread_local double input_time; /* of inputs read since the last verb */
static Profile *profiles;               /* of the program, by stage; set once, before the run */

/* ---- what the verbs call ---- */
pn_op *pn_profile_op(pn_stage *stage, pn_op *op, const char *name, const pn_tensor *y, int64_t floats)
{
    Profile *profile = &profiles[stage->worker];
    if (profile->count == profile->room) {
        int room = profile->room ? 2 * profile->room : 64;
        Record *record = pn_alloc((int64_t)sizeof *record * room);
        if (profile->count)
            memcpy(record, profile->record, sizeof *record * (size_t)profile->count);
        profile->record = record;
        profile->room = room;
    }
    Record *record = &profile->record[profile->count++];
    *record = (Record){.op = op, .name = name, .y = y, .floats = floats};
    for (int pass = 0; pass < PASSES; pass++)
        record->sample[pass] = pn_alloc((int64_t)sizeof(double) * (stage->run->steps + 1));
    return op;
}

/* Verbs run in program order or against it: the next one is near the last one. */
static Record *record_of(const pn_op *op)
{
    for (int away = 0; away < current->count; away++) {
        int after = (current->last + away) % current->count;
        int before = (current->last - away + current->count) % current->count;
        if (current->record[after].op == op) {
            current->last = after;
            break;
        }
        if (current->record[before].op == op) {
            current->last = before;
            break;
        }
    }
    return &current->record[current->last];
}

void pn_profile_begin(const pn_op *op)
{
    if (testing)
        return;
    Record *record = record_of(op);
    record->sum += input_time;
    input_time = 0;
    record->begun = pn_work_seconds();
}

void pn_profile_end(const pn_op *op)
{
    double now = pn_work_seconds();
    (void)op;
    if (testing)
        return;
    Record *record = &current->record[current->last];
    record->sum += now - record->begun;
}

void pn_profile_input(pn_stage *stage, int64_t n, int input, void *to)
{
    double begin = pn_work_seconds();
    pn_input(stage, n, input, to);
    input_time += pn_work_seconds() - begin;
}

/* The mask belongs to the node whose output it masks. */
void pn_profile_relu_mask(const pn_tensor *t, const float *y, float *gy)
{
    double begin = pn_work_seconds();
    pn_relu_mask(t, y, gy);
    double took = pn_work_seconds() - begin;
    for (int i = 0; i < current->count; i++)
        if (current->record[i].y == t)
            current->record[i].sum += took;
}

/* Behind the backward that wrote the contribution. */
void pn_profile_accumulate(const pn_tensor *t, float *to, const float *from)
{
    double begin = pn_work_seconds();
    pn_accumulate(t, to, from);
    current->record[current->last].sum += pn_work_seconds() - begin;
}

/* A value or a gradient handed on unchanged: the stage's time, no node's. */
void pn_profile_copy(const pn_tensor *t, float *to, const float *from)
{
    pn_copy(t, to, from);
}

/* ---- the stages of the copy ---- */
static void profiled_init(pn_stage *stage)
{
    Profile *profile = &profiles[stage->worker];
    pn_dataset *data = stage->run->data;
    if (data->test_count > pn_slice(stage->run->program)) /* nobody asks for the accuracy */
        data->test_count = pn_slice(stage->run->program);
    profile->stage = stage;
    for (int pass = 0; pass < PASSES; pass++)
        profile->sample[pass] = pn_alloc((int64_t)sizeof(double) * (stage->run->steps + 1));
    profile->chosen = pn_alloc((int64_t)sizeof *profile->chosen * (stage->run->steps + 1));
    profile->real->init(stage);
    trace_open_stage(stage, TRACE_BYTES / stage->run->program->nstages);
}

/* Adds what it takes to the samples of its minibatch, which are 0 at first. */
static void run_pass(pn_stage *stage, int64_t n, int pass, int64_t microbatch, void (*real)(pn_stage *stage, int64_t n))
{
    Profile *profile = current = &profiles[stage->worker];
    const int64_t step = microbatch / pn_microbatches(stage->run->program);
    testing = false;
    for (int i = 0; i < profile->count; i++)
        profile->record[i].sum = 0;
    double begin = pn_work_seconds();
    input_time = 0;
    real(stage, n);
    profile->sample[pass][step] += pn_work_seconds() - begin;
    for (int i = 0; i < profile->count; i++)
        profile->record[i].sample[pass][step] += profile->record[i].sum;
}

static void profiled_forward(pn_stage *stage, int64_t n)
{
    Profile *profile = &profiles[stage->worker];
    run_pass(stage, n, PASS_FORWARD, profile->done[PASS_FORWARD]++, profile->real->forward);
}

static void profiled_backward(pn_stage *stage, int64_t n)
{
    Profile *profile = &profiles[stage->worker];
    run_pass(stage, n, PASS_BACKWARD, profile->done[PASS_BACKWARD]++, profile->real->backward);
}

static void profiled_weight_gradients(pn_stage *stage, int64_t n)
{
    Profile *profile = &profiles[stage->worker];
    run_pass(stage, n, PASS_BACKWARD, profile->weight_parts++, profile->real->weight_gradients);
}

static void profiled_test(pn_stage *stage, int64_t n)
{
    current = &profiles[stage->worker];
    testing = true;
    current->real->test(stage, n);
    testing = false;
}

/* ---- what came out ---- */
static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    double middle, least; /* us */
} Times;

/* The first minibatches meet new pages and cold caches: they do not count, where there are enough others. */
static int64_t cold(int64_t count)
{
    enum { COLD = 4 };
    return count / 3 < COLD ? count / 3 : COLD;
}

/* Of samples in seconds, in the order of the updates, which is lost. */
static Times median_of(double *sample, int64_t count)
{
    sample += cold(count);
    count -= cold(count);
    if (count == 0)
        return (Times){0, 0};
    qsort(sample, (size_t)count, sizeof *sample, order);
    return (Times){1e6 * sample[count / 2], 1e6 * sample[0]};
}

static double work_of(const Profile *profile, int64_t minibatch)
{
    double sum = 0;
    for (int i = 0; i < profile->count; i++)
        sum += profile->record[i].sample[PASS_FORWARD][minibatch] + profile->record[i].sample[PASS_BACKWARD][minibatch];
    return sum;
}

/* The minibatches that count, and of them those in the middle: a fifth, and three at least. */
static void choose(Profile *profile, int64_t microbatches)
{
    const int64_t backwards = profile->weight_parts ? profile->weight_parts : profile->done[PASS_BACKWARD];
    profile->end = (backwards ? backwards : profile->done[PASS_FORWARD]) / microbatches; /* halves: one of them */
    profile->first = cold(profile->end);
    const int64_t count = profile->end - profile->first, few = count < 3 ? count : 3;
    profile->nchosen = count / 5 > few ? count / 5 : few;
    double *work = pn_alloc((int64_t)sizeof *work * (count + 1));
    for (int64_t i = 0; i < count; i++)
        work[i] = work_of(profile, profile->first + i);
    qsort(work, (size_t)count, sizeof *work, order);
    const int64_t from = (count - profile->nchosen) / 2;
    int64_t chosen = 0;
    for (int64_t n = profile->first; n < profile->end && chosen < profile->nchosen; n++) {
        const double mine = work_of(profile, n);
        if (mine >= work[from] && mine <= work[from + profile->nchosen - 1])
            profile->chosen[chosen++] = n;
    }
}

/* Of samples in seconds, of a microbatch. */
static Times times_of(const Profile *profile, const double *sample)
{
    const double microbatches = (double)pn_microbatches(profile->stage->run->program);
    double sum = 0, least = profile->nchosen > 0 ? sample[profile->first] : 0;
    for (int64_t i = 0; i < profile->nchosen; i++)
        sum += sample[profile->chosen[i]];
    for (int64_t n = profile->first; n < profile->end; n++)
        least = sample[n] < least ? sample[n] : least;
    const double mean = profile->nchosen > 0 ? sum / (double)profile->nchosen : 0;
    return (Times){1e6 * mean / microbatches, 1e6 * least / microbatches};
}

static void write_times(FILE *out, Times times, double share)
{
    fprintf(out, " %.3f %.3f", share * times.middle, share * times.least);
}

static Times update_times(const Profile *profile)
{
    const struct pn_trace *trace = profile->stage->trace;
    double *sample = pn_alloc((int64_t)sizeof *sample * (trace->count + 1));
    int64_t count = 0;
    for (int64_t i = 0; i < trace->count; i++)
        if (trace->event[i].kind == PN_TRACE_UPDATE)
            sample[count++] = trace->event[i].end - trace->event[i].begin;
    return median_of(sample, count);
}

static void write_stage(FILE *out, Profile *profile, int index)
{
    const Times update = update_times(profile);
    int64_t floats = 0;
    choose(profile, pn_microbatches(profile->stage->run->program));
    for (int i = 0; i < profile->count; i++)
        floats += profile->record[i].floats;
    for (int i = 0; i < profile->count; i++) {
        Record *record = &profile->record[i];
        fprintf(out, "node %d %s", index, record->name);
        for (int pass = 0; pass < PASSES; pass++)
            write_times(out, times_of(profile, record->sample[pass]), 1);
        write_times(out, update, floats > 0 ? (double)record->floats / (double)floats : 0);
        fprintf(out, "\n");
    }
    fprintf(out, "stage %d", index);
    for (int pass = 0; pass < PASSES; pass++)
        write_times(out, times_of(profile, profile->sample[pass]), 1);
    write_times(out, update, 1);
    fprintf(out, "\n");
}

static const TraceEvent *give_of(const pn_run *run, const TraceEvent *take)
{
    const struct pn_trace *trace = run->stage[take->channel->from].trace;
    for (int64_t i = 0; i < trace->count; i++) {
        const TraceEvent *event = &trace->event[i];
        if (event->kind == PN_TRACE_GIVE && event->channel == take->channel && event->n == take->n &&
            event->tested_after == take->tested_after)
            return event;
    }
    return NULL;
}

/* From a give to its take, where the taker was already waiting: what a hand-over costs. */
static void write_handover(FILE *out, const pn_run *run)
{
    enum { MOST = 10000 };
    double *sample = pn_alloc((int64_t)sizeof *sample * MOST);
    int64_t count = 0;
    for (int s = 0; s < run->program->nstages; s++) {
        const struct pn_trace *trace = run->stage[s].trace;
        for (int64_t i = 1; i < trace->count && count < MOST; i++) {
            const TraceEvent *take = &trace->event[i];
            if (take->kind != PN_TRACE_TAKE || trace->event[i - 1].kind != PN_TRACE_WAIT_INPUT)
                continue;
            const TraceEvent *give = give_of(run, take);
            if (give && trace->event[i - 1].begin < give->begin)
                sample[count++] = take->begin - give->begin;
        }
    }
    if (count > 0) {
        qsort(sample, (size_t)count, sizeof *sample, order);
        fprintf(out, "handover %.3f\n", 1e6 * sample[count / 4]);
    }
}

static const char *write_profile(const pn_program *program, const char *path)
{
    NewFile file;
    const char *error = file_begin(&file, path);
    if (error)
        return error;
    fprintf(file.stream, "measured 1\nversions %s\nsteps %lld\n", pn_target_version(),
            (long long)(profiles[0].done[PASS_FORWARD] / pn_microbatches(program)));
    for (int i = 0; i < program->nstages; i++)
        write_stage(file.stream, &profiles[i], i);
    write_handover(file.stream, profiles[0].stage->run);
    return file_end(&file);
}

int pn_profile_main(const pn_program *program, int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: %s FILE [options]: writes the times of its nodes to FILE\n", program->name);
        return 2;
    }
    const char *path = argv[1];
    argv[1] = argv[0];
    profiles = pn_alloc((int64_t)sizeof *profiles * program->nstages);
    const pn_stage_def **stage = pn_alloc((int64_t)sizeof *stage * program->nstages);
    for (int i = 0; i < program->nstages; i++) {
        Profile *profile = &profiles[i];
        profile->real = program->stage[i];
        profile->shown = *program->stage[i];
        profile->shown.init = profiled_init;
        profile->shown.forward = profiled_forward;
        profile->shown.backward = profiled_backward;
        if (profile->real->weight_gradients)
            profile->shown.weight_gradients = profiled_weight_gradients;
        profile->shown.test = profiled_test;
        stage[i] = &profile->shown;
    }
    pn_program shown = *program;
    shown.stage = stage;
    int status = pn_main(&shown, argc - 1, argv + 1);
    if (status || !profiles[0].stage || profiles[0].done[PASS_FORWARD] == 0)
        return status;
    const char *error = write_profile(&shown, path);
    if (!error)
        return 0;
    fprintf(stderr, "error: cannot write %s: %s\n", path, error);
    return 1;
}
