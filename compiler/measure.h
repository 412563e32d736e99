/* measure.h: times of nodes, measured by the program itself: built with -DPN_PROFILE (runtime/pn_profile.h), it runs
 * its own code in its own buffers and layouts for some steps and says how long each node took. */
#ifndef PNETC_MEASURE_H
#define PNETC_MEASURE_H

#include "cost.h"
#include "plan.h"

enum { PASS_FORWARD, PASS_BACKWARD, PASS_UPDATE, PASSES };
typedef struct {
    double middle, least; /* us a minibatch: of those in the middle, of the fastest */
} Microseconds;
typedef struct {
    const char *name;
    int stage;
    Microseconds pass[PASSES];
} MeasuredNode;
typedef struct {
    const char *library; /* "oneDNN 2.6.3" */
    int64_t steps;
    MeasuredNode *node; /* by stage, in program order */
    int nnodes;
    Microseconds (*stage)[PASSES]; /* a stage's whole steps but its waits */
    int nstages;
    double handover; /* us from a give to the take of one who waits, lower quartile; < 0: nobody waited */
} Measurement;

/* Builds the program of `plan` with stopwatches in a fresh folder, which the caller removes; NULL after errors. */
char *measure_build(Arena *arena, Diags *diags, const char *self, const Plan *plan);
/* Runs it. busy: a thread a stage, all at work; else one stage at a time. `options` of the program may follow (NULL:
 * none). NULL after errors. */
const Measurement *measure_run(Arena *arena, Diags *diags, const char *folder, const Plan *plan, bool busy, int steps,
                               char **options);

/* Builds the program, and appends what it says of the layouts that its target chooses on this machine; an error if that
 * fails. */
void measure_layouts(Arena *arena, Diags *diags, const char *self, const Plan *plan, Text *out);
/* The profile of these measurements, as profile_read wants it: its lines are those of `busy`, or with idle_lines those
 * of `idle`; the others stand in comments. `written`: as lower() gave it. busy may be NULL. */
void profile_write(Text *out, const Graph *written, const Plan *plan, const char *machine, const Measurement *idle,
                   const Measurement *busy, bool idle_lines);

/* A name for the machine that this runs on, from its processor: "amd_epyc_7r13". */
const char *machine_name(Arena *arena);
const char *date_today(Arena *arena); /* "2026-11-29" */

#endif
