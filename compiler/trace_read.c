/* trace_read.c: a --trace file -> Trace: checked, sorted by stage and time. See trace.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json_text.h"
#include "trace.h"

typedef struct {
    Arena *arena;
    Diags *diags;
    const SourceFile *file;
    const Plan *plan;
    Trace *trace;
    /* Per track: a stage, or a half of one. */
    VEC(TraceStep) * step;
    VEC(TraceWait) * wait;
    VEC(double) * interruption; /* beginnings of tests and checkpoints */
} Reading;

/* Tracks are stages; of stages in halves there are two each, but of the last one. */
static int first_track(const Pipe *pipe, int stage)
{
    return pipe_halved(pipe) ? 2 * stage : stage;
}

static int track_stage(const Pipe *pipe, int track)
{
    return pipe_halved(pipe) ? track / 2 : track;
}

static bool wrong(Reading *r, Code code, size_t at, const char *text)
{
    const size_t last = r->file->length ? r->file->length - 1 : 0;
    const uint32_t place = r->file->base + (uint32_t)(at < last ? at : last);
    diag_error(r->diags, code, (Span){place, place + (r->file->length > 0)}, "%s", text);
    return false;
}

static int64_t integer_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The trace is one of the program of this plan. */
static bool read_head(Reading *r, const json_t *top)
{
    const json_t *head = json_object_get(top, "otherData");
    const Pipe *pipe = r->plan->sched->pipe;
    const char *network = text_of(head, "network");
    const int64_t stages = integer_of(head, "stages"), batch = integer_of(head, "batch");
    if (!json_is_object(head) || !*network || stages < 1 || batch < 1 ||
        !json_is_array(json_object_get(top, "traceEvents")))
        return wrong(r, P0740, 0,
                     "this is no trace of a program: it wants `traceEvents`, and `otherData` with network, stages and "
                     "batch");
    if (strcmp(network, pipe->graph->name))
        return wrong(r, P0741, 0,
                     arena_printf(r->arena, "this is a trace of network %.60s, not of %s", network, pipe->graph->name));
    if (stages != pipe_rows(pipe) || batch != pipe->graph->batch * pipe->graph->microbatches)
        return wrong(r, P0741, 0,
                     arena_printf(r->arena, "this trace has %lld %s and batch %lld; the program has %d and %lld",
                                  (long long)stages, pipe_halved(pipe) ? "workers" : "stages", (long long)batch,
                                  pipe_rows(pipe), (long long)(pipe->graph->batch * pipe->graph->microbatches)));
    r->trace->transport = arena_printf(r->arena, "%s", text_of(head, "transport"));
    r->trace->target = arena_printf(r->arena, "%s", text_of(head, "target"));
    r->trace->dropped = integer_of(head, "dropped");
    return true;
}

typedef enum {
    EVENT_FORWARD,
    EVENT_BACKWARD,
    EVENT_WEIGHTS,
    EVENT_UPDATE,
    EVENT_HAND_OVER, /* to a forward half: its wait is what counts */
    EVENT_OTHER,
    EVENT_INPUT,
    EVENT_ROOM,
    EVENTS
} EventKind;

/* Other tools may add events of their own: what is not ours is passed over. */
static EventKind event_kind(const json_t *event)
{
    static const char *const names[EVENTS] = {"forward",           "backward", "weight part",    "update",
                                              "take weights over", "",         "wait for input", "wait for room"};
    const char *name = text_of(event, "name"), *category = text_of(event, "cat");
    for (int i = 0; i < EVENTS; i++)
        if (!strcmp(name, names[i]) && !strcmp(category, i < EVENT_OTHER ? "step" : "wait"))
            return (EventKind)i;
    return !strcmp(category, "step") ? EVENT_OTHER : EVENTS;
}

static bool read_event(Reading *r, const json_t *event, size_t number)
{
    const EventKind kind = event_kind(event);
    if (strcmp(text_of(event, "ph"), "X") || kind == EVENTS)
        return true;
    const json_t *args = json_object_get(event, "args"), *on_core = json_object_get(args, "on a core us");
    const Pipe *pipe = r->plan->sched->pipe;
    const int tracks = pipe_rows(pipe);
    const int64_t track = integer_of(event, "tid"), minibatch = integer_of(args, "minibatch");
    const double begin = json_number_value(json_object_get(event, "ts")) * 1e-6;
    const double seconds = json_number_value(json_object_get(event, "dur")) * 1e-6, most = 1e9; /* seconds: 30 years */
    const bool timed = json_is_number(json_object_get(event, "ts")) && json_is_number(json_object_get(event, "dur"));
    if (track < 0 || track >= tracks || !timed || !(begin >= 0 && begin < most) || !(seconds >= 0 && seconds < most))
        return wrong(r, P0740, 0,
                     arena_printf(r->arena,
                                  "event %zu of traceEvents is none of a stage: it wants tid from 0 to %d, and "
                                  "ts and dur that are not negative",
                                  number, tracks - 1));
    if (kind == EVENT_HAND_OVER)
        return true;
    const int stage = track_stage(pipe, (int)track);
    if (minibatch < 0 || kind == EVENT_OTHER) { /* of a test, or a test itself */
        if (kind == EVENT_OTHER)
            *vec_push(r->arena, &r->interruption[track]) = begin;
        return true;
    }
    TraceStage *sum = &r->trace->stage[stage];
    const double core = json_is_number(on_core) ? json_number_value(on_core) * 1e-6 : seconds;
    if (kind == EVENT_INPUT || kind == EVENT_ROOM) {
        sum->core -= core;
        *vec_push(r->arena, &r->wait[track]) = (TraceWait){
            .room = kind == EVENT_ROOM,
            .forward = pipe->stage[stage].halves && track == first_track(pipe, stage),
            .name = arena_printf(r->arena, "%s", text_of(args, "register")),
            .stage = stage,
            .minibatch = minibatch,
            .begin = begin,
            .end = begin + seconds,
        };
        return true;
    }
    static const StepKind steps[] = {[EVENT_FORWARD] = STEP_FORWARD,
                                     [EVENT_BACKWARD] = STEP_BACKWARD,
                                     [EVENT_WEIGHTS] = STEP_WEIGHTS,
                                     [EVENT_UPDATE] = STEP_UPDATE};
    const TimedStep at = {steps[kind], stage, minibatch, begin, begin + seconds};
    *vec_push(r->arena, &r->step[track]) = (TraceStep){.at = at};
    sum->core += core;
    r->trace->minibatches += stage == 0 && kind == EVENT_UPDATE;
    return true;
}

static int by_begin(double a, double b)
{
    return (a > b) - (a < b);
}
static int steps_by_begin(const void *a, const void *b)
{
    const TraceStep *x = a, *y = b;
    return x->at.begin != y->at.begin ? by_begin(x->at.begin, y->at.begin) : by_begin(x->at.end, y->at.end);
}
static int waits_by_begin(const void *a, const void *b)
{
    return by_begin(((const TraceWait *)a)->begin, ((const TraceWait *)b)->begin);
}
static int numbers(const void *a, const void *b)
{
    return by_begin(*(const double *)a, *(const double *)b);
}

/* Sorts a track, and adds it to its stage. */
static void add_track(Reading *r, int track, TraceStage *stage)
{
    const int nsteps = r->step[track].count, nwaits = r->wait[track].count;
    TraceStep *step = arena_alloc(r->arena, sizeof *step * (size_t)(stage->nsteps + nsteps));
    TraceWait *wait = arena_alloc(r->arena, sizeof *wait * (size_t)(stage->nwaits + nwaits + 1));
    qsort(r->step[track].at, (size_t)nsteps, sizeof *step, steps_by_begin);
    if (nwaits)
        qsort(r->wait[track].at, (size_t)nwaits, sizeof *wait, waits_by_begin);
    stage->work += trace_waits(r->step[track].at, nsteps, r->wait[track].at, nwaits);
    for (int i = 0; i < stage->nsteps; i++)
        step[i] = stage->step[i];
    for (int i = 0; i < nsteps; i++)
        step[stage->nsteps + i] = r->step[track].at[i];
    for (int i = 0; i < stage->nwaits; i++)
        wait[i] = stage->wait[i];
    for (int i = 0; i < nwaits; i++)
        wait[stage->nwaits + i] = r->wait[track].at[i];
    stage->step = step;
    stage->nsteps += nsteps;
    stage->wait = wait;
    stage->nwaits += nwaits;
}

static bool read_events(Reading *r, const json_t *list, int updates)
{
    Trace *trace = r->trace;
    const Pipe *pipe = r->plan->sched->pipe;
    size_t i;
    const json_t *event;
    json_array_foreach(list, i, event) if (!read_event(r, event, i)) return false;
    const double **interruption = arena_alloc(r->arena, sizeof *interruption * (size_t)trace->nstages);
    int *ninterruptions = arena_alloc(r->arena, sizeof *ninterruptions * (size_t)trace->nstages);
    for (int track = 0; track < pipe_rows(pipe); track++) {
        const int s = track_stage(pipe, track);
        if (!r->step[track].count)
            return wrong(r, P0740, 0, arena_printf(r->arena, "there is no step of stage %d in this trace", s));
        add_track(r, track, &trace->stage[s]);
        interruption[s] = r->interruption[track].at; /* a backward half comes last: it does the tests */
        ninterruptions[s] = r->interruption[track].count;
        if (ninterruptions[s])
            qsort(r->interruption[track].at, (size_t)ninterruptions[s], sizeof(double), numbers);
    }
    return trace_measure(r->arena, trace, r->plan->sched, interruption, ninterruptions, updates) ||
           wrong(r, P0740, 0, "there is no update in this trace");
}

const Trace *trace_read(Arena *arena, Diags *diags, Sources *sources, const char *path, const Plan *plan, int updates)
{
    enum { MOST = (64 << 20) + 1 };
    Trace *trace = arena_alloc(arena, sizeof *trace);
    Reading r = {.arena = arena, .diags = diags, .plan = plan, .trace = trace};
    r.file = load_long_text(arena, diags, sources, path, MOST);
    if (!r.file)
        return NULL;
    if (r.file->length == MOST) {
        wrong(&r, P0740, 0, "this trace has more than 64 MiB: trace fewer steps");
        return NULL;
    }
    json_error_t error;
    json_t *top = json_loadb(r.file->text, r.file->length, 0, &error);
    bool good = false;
    if (!top) {
        wrong(&r, P0740, error.position > 0 ? (size_t)error.position - 1 : 0,
              arena_printf(arena, "this is not JSON: %s", error.text));
    } else {
        const size_t n = (size_t)plan->sched->pipe->nstages;
        trace->path = path;
        trace->nstages = (int)n;
        trace->stage = arena_alloc(arena, sizeof *trace->stage * n);
        const size_t tracks = (size_t)pipe_rows(plan->sched->pipe);
        r.step = arena_alloc(arena, sizeof *r.step * tracks);
        r.wait = arena_alloc(arena, sizeof *r.wait * tracks);
        r.interruption = arena_alloc(arena, sizeof *r.interruption * tracks);
        good = read_head(&r, top) && read_events(&r, json_object_get(top, "traceEvents"), updates);
    }
    json_decref(top);
    return good ? trace : NULL;
}
