/* report.h: what people read: the table of `pnetc check`, and --json of check and plan. */
#ifndef PNETC_REPORT_H
#define PNETC_REPORT_H

#include "balance.h"
#include "emit.h"
#include "json_text.h"

/* The tables of stages, memory and time, totals, verdict. `written` names the better cut. */
void report_check(const Balance *balance, const Graph *written, Text *out);
void report_check_json(const Balance *balance, const Graph *written,
                       Text *out); /* one JSON object; keys in grammar/REFERENCE.md and pnetc(1) */
/* on_device: as emit.h tells it; NULL: the target has no memory of its own */
void report_plan_json(const Plan *plan, const DeviceStage *on_device, Text *out);

/* report_cure.c: their parts of the stability numbers and of the cure. */
void report_cure(const Sched *sched, Text *out);
json_t *report_cure_json(const Cure *cure);

#endif
