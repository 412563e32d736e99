/* report.h: what was measured in a run, as JSON: to be held against what the compiler had predicted. */
#ifndef PN_REPORT_H
#define PN_REPORT_H

#include "core/log.h"

/* NULL, or why the file could not be written. */
const char *report_write(const pn_run *run, const pn_log *log, const char *path);

#endif
