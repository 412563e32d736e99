/* report.h: what people read: the table of `pnetc check`, and --json of check and plan. */
#ifndef PNETC_REPORT_H
#define PNETC_REPORT_H

#include "plan.h"

void report_check(const Plan *plan, Text *out);      /* the stage table, totals, verdict */
void report_check_json(const Plan *plan, Text *out); /* one JSON object; keys in grammar/REFERENCE.md and pnetc(1) */
void report_plan_json(const Plan *plan, Text *out);

#endif
