/* trace.h: what every stage did when, for --trace: JSON that Chrome (about:tracing) and Perfetto read.
 *
 * A track a stage: its steps, inside them the waits for input and for room, and an arrow for each register slot from
 * the give to the take. Events go to a buffer of the stage's own, allocated before the run; what does not fit is
 * counted and left out. The hooks are declared in rt.h. Format: "Trace Event Format" (Chromium project), events X, s,
 * f, M. */
#ifndef PN_TRACE_H
#define PN_TRACE_H

#include "rt.h"

typedef struct {
    double begin, end;         /* seconds, monotonic clock; end is begin for a give or a take */
    double work;               /* seconds of them that the thread had a core */
    const pn_channel *channel; /* of waits, gives and takes */
    int64_t n;                 /* minibatch; in a test: test batch */
    int64_t tested_after;      /* in a test: the updates done; -1: training */
    pn_trace_kind kind;
} TraceEvent;
struct pn_trace {
    TraceEvent *event;
    int64_t count, room, dropped;
};

/* Gives each stage a buffer for all that `run` will do, at most `bytes` over all stages. */
void trace_open(pn_run *run, int64_t bytes);
void trace_open_stage(pn_stage *stage, int64_t bytes);
enum { TRACE_BYTES = 256 << 20 };

/* After the run. NULL, or why the file could not be written, valid until the next call. */
const char *trace_write(const pn_run *run, const char *path);
/* The number of events of all stages that did not fit. */
int64_t trace_dropped(const pn_run *run);

#endif
