#include "core/trace.h"

#include "core/file.h"
#include "core/order.h"

/* ---- recording ---- */

/* Events of one step: itself, and a wait and a give or take for each of its channels. */
static int64_t events(int takes, int gives)
{
    return 1 + 2 * ((int64_t)takes + gives);
}

static int64_t events_of_stage(const pn_run *run, const pn_stage_def *def)
{
    int64_t training = run->steps > run->first ? run->steps - run->first : 0;
    int64_t tests = 1 + (run->test_every > 0 ? training / run->test_every + 1 : 0);
    int64_t saves = 1 + (run->checkpoint_every > 0 ? training / run->checkpoint_every + 1 : 0);
    const int weights = def->weight_gradients != NULL; /* a step without channels */
    int64_t step = weights + events(def->ntakes, def->ngives) + events(def->ntakes_gradient, def->ngives_gradient) + 1;
    /* Sharing and summing gradients, and a wait in each of the three; a wait for the other half, in each step. */
    const int64_t update = def->replicas > 1 ? 6 : def->half != PN_WHOLE ? 2 : 1;
    step += 2 * (def->half != PN_WHOLE);
    return training * (pn_microbatches(run->program) * (step - 1) + update) + saves +
           tests * order_test_batches(run) * events(def->ntakes_test, def->ngives_test);
}

void trace_open_stage(pn_stage *stage, int64_t bytes)
{
    int64_t most = bytes / (int64_t)sizeof(TraceEvent), wanted = events_of_stage(stage->run, stage->def);
    struct pn_trace *trace = pn_alloc((int64_t)sizeof *trace);
    trace->room = wanted < most ? wanted : most;
    trace->event = pn_alloc((int64_t)sizeof *trace->event * trace->room);
    stage->trace = trace;
}

void trace_open(pn_run *run, int64_t bytes)
{
    for (int i = 0; i < run->program->nstages; i++)
        trace_open_stage(&run->stage[i], bytes / run->program->nstages);
}

void pn_trace_add(pn_stage *stage, pn_trace_kind kind, const pn_channel *channel, int64_t n, double begin, double end,
                  double work)
{
    struct pn_trace *trace = stage->trace;
    if (trace->count == trace->room) {
        trace->dropped++;
        return;
    }
    trace->event[trace->count++] = (TraceEvent){
        .begin = begin,
        .end = end,
        .work = work,
        .channel = channel,
        .n = n,
        .tested_after = stage->cursor->test_batch >= 0 ? stage->updates : -1,
        .kind = kind,
    };
}

int64_t trace_dropped(const pn_run *run)
{
    int64_t dropped = 0;
    for (int i = 0; i < run->program->nstages; i++)
        dropped += run->stage[i].trace->dropped;
    return dropped;
}

/* ---- writing ---- */

/* Names are identifiers of the source language with dots and blanks between: JSON escapes none of it. */
static double first_begin(const pn_run *run)
{
    double first = 0;
    bool found = false;
    for (int i = 0; i < run->program->nstages; i++) {
        const struct pn_trace *trace = run->stage[i].trace;
        for (int64_t k = 0; k < trace->count; k++)
            if (!found || trace->event[k].begin < first) {
                first = trace->event[k].begin;
                found = true;
            }
    }
    return first;
}

static const char *kind_name(pn_trace_kind kind)
{
    static const char *const name[] = {[PN_TRACE_FORWARD] = "forward",
                                       [PN_TRACE_BACKWARD] = "backward",
                                       [PN_TRACE_WEIGHTS] = "weight part",
                                       [PN_TRACE_SHARE] = "share gradients",
                                       [PN_TRACE_SUM] = "sum gradients",
                                       [PN_TRACE_HAND_OVER] = "take weights over",
                                       [PN_TRACE_UPDATE] = "update",
                                       [PN_TRACE_TEST] = "test",
                                       [PN_TRACE_CHECKPOINT] = "checkpoint",
                                       [PN_TRACE_WAIT_INPUT] = "wait for input",
                                       [PN_TRACE_WAIT_ROOM] = "wait for room",
                                       [PN_TRACE_GIVE] = "give",
                                       [PN_TRACE_TAKE] = "take"};
    return name[kind];
}

/* An arrow's id is the same at both ends and no other arrow's: the register, its stages, the minibatch, and for a test
 * batch the test. */
static void write_arrow(FILE *out, const TraceEvent *event, int track, double at)
{
    const pn_channel *channel = event->channel;
    fprintf(out, ",\n{\"ph\":\"%s\",%s\"cat\":\"register\",\"name\":\"%s\",\"id\":\"%s %d-%d %lld %lld\",",
            event->kind == PN_TRACE_GIVE ? "s" : "f", event->kind == PN_TRACE_GIVE ? "" : "\"bp\":\"e\",",
            channel->name, channel->name, channel->from, channel->to, (long long)event->n,
            (long long)event->tested_after);
    fprintf(out, "\"pid\":1,\"tid\":%d,\"ts\":%.3f}", track, at);
}

static void write_event(FILE *out, const TraceEvent *event, int track, double zero)
{
    double at = 1e6 * (event->begin - zero), took = 1e6 * (event->end - event->begin);
    bool waits = event->kind == PN_TRACE_WAIT_INPUT || event->kind == PN_TRACE_WAIT_ROOM;
    if (event->kind == PN_TRACE_GIVE || event->kind == PN_TRACE_TAKE) {
        write_arrow(out, event, track, at);
        return;
    }
    fprintf(out, ",\n{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,",
            waits ? "wait" : "step", kind_name(event->kind), track, at, took);
    if (waits)
        fprintf(out, "\"cname\":\"grey\",");
    fprintf(out, "\"args\":{\"%s\":%lld", event->tested_after < 0 ? "minibatch" : "test batch", (long long)event->n);
    if (event->tested_after >= 0)
        fprintf(out, ",\"after updates\":%lld", (long long)event->tested_after);
    fprintf(out, ",\"on a core us\":%.3f", 1e6 * event->work);
    if (waits)
        fprintf(out, ",\"register\":\"%s\"", event->channel->name);
    fprintf(out, "}}");
}

static void write_events(FILE *out, const pn_run *run)
{
    const pn_program *program = run->program;
    double zero = first_begin(run);
    fprintf(out, "{\"displayTimeUnit\":\"ms\",\n");
    fprintf(out,
            "\"otherData\":{\"network\":\"%s\",\"target\":\"%s\",\"transport\":\"%s\",\"stages\":%d,\"batch\":%lld,"
            "\"minibatches\":%lld,\"dropped\":%lld},\n",
            program->name, pn_target_name, run->transport->name, program->nstages, (long long)program->batch,
            (long long)(run->stage[0].updates - run->first), (long long)trace_dropped(run));
    fprintf(out, "\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"%s\"}}",
            program->name);
    for (int i = 0; i < program->nstages; i++) {
        fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"stage %d", i,
                run->stage[i].index);
        if (run->stage[i].replicas > 1)
            fprintf(out, ", replica %d", run->stage[i].replica);
        if (run->stage[i].halves)
            fprintf(out, ", %s", program->stage[i]->half == PN_FORWARD_HALF ? "forward" : "backward");
        fprintf(out, ": %s\"}}", program->stage[i]->what);
        fprintf(out,
                ",\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":1,\"tid\":%d,\"args\":{\"sort_index\":%d}}", i,
                i);
    }
    for (int i = 0; i < program->nstages; i++)
        for (int64_t k = 0; k < run->stage[i].trace->count; k++)
            write_event(out, &run->stage[i].trace->event[k], i, zero);
    fprintf(out, "\n]}\n");
}

const char *trace_write(const pn_run *run, const char *path)
{
    NewFile file;
    const char *error = file_begin(&file, path);
    if (error)
        return error;
    write_events(file.stream, run);
    return file_end(&file);
}
