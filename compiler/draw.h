/* draw.h: pictures for people: the network, its schedule in space and time, curves of runs.
 *
 * All are text made here (DOT, SVG, a gnuplot script); graphviz and gnuplot turn two of them into SVG where they are
 * installed. Same input, same bytes, but for what those programs write. Nothing is carried by colour alone. */
#ifndef PNETC_DRAW_H
#define PNETC_DRAW_H

#include "ast.h"
#include "plan.h"

/* The fused network as DOT: a box a stage, the registers between them, skips and delay lines as they run. */
void draw_network(const Plan *plan, Text *out);

typedef enum { TIME_UNIT, TIME_MACS } DrawTime;
/* The space-time diagram as SVG: a row a stage, time to the right, a box a step. `minibatches` of each phase are drawn;
 * 0: as many as show warm-up, the steady state and the drain. */
void draw_schedule(const Sched *sched, DrawTime time, int minibatches, Text *out);
enum { DRAW_MOST_MINIBATCHES = 200 };

/* "conv(16, kernel = 5)": a node as the user wrote it. */
void draw_call(const Node *node, Text *out);

/* DOT -> SVG by graphviz, script -> SVG by gnuplot; false after an error (P0607). The script sets no output. */
bool draw_by_graphviz(Arena *arena, Diags *diags, const Text *dot, Text *out);
bool draw_by_gnuplot(Arena *arena, Diags *diags, const Text *script, Text *out);

/* plot.c: curves of runs from their --metrics files, as a gnuplot script. Each argument is FILE or NAME=FILE; `x` is
 * step, epoch or seconds; `smooth` intervals are averaged (1: none). False after errors: unreadable files, lines that
 * are no metrics (P0608). A last line that was cut off is left out with a warning. */
bool plot_script(Arena *arena, Diags *diags, Sources *sources, const char *const *argument, int arguments,
                 const char *x, int smooth, Text *out);

/* ---- for draw_*.c ---- */

/* A step of a stage in ideal time. */
typedef enum { SPAN_WARMUP, SPAN_STEADY, SPAN_DRAIN, SPAN_KINDS } SpanKind;
typedef struct {
    StepKind kind; /* forward, backward, or weight part of one */
    SpanKind span;
    int stage, phase;
    int64_t n; /* microbatch */
    double begin, end;
    int64_t version; /* updates in the weights it reads */
    int64_t age;     /* not of a forward: updates of the stage since that of this microbatch: its staleness */
} DrawStep;
typedef struct {
    DrawStep *step; /* by stage, forward half first, then by time */
    int nsteps;
    int64_t minibatches; /* in all phases */
    int64_t *shown;      /* per phase */
    double end, busy;    /* of the last step; sum of all durations */
    double unit_flops;   /* TIME_MACS: FLOPs of a microbatch that take one unit */
} DrawRun;
/* draw_time.c: every step begins as soon as its stage is free, what it takes is there and what it gives has a slot; an
 * update takes no time, nor what goes between halves of a stage. TIME_UNIT: a forward, a backward and, where it is
 * split, its weight part take one unit each. TIME_MACS: FLOPs over those of half a turn of the slowest stage. */
DrawRun draw_run(Arena *arena, const Sched *sched, DrawTime time, int minibatches);

#endif
