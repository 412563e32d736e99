/* The end of a run that went wrong. The first error is kept and stops every stage; a stage that sees the stop, or fails
 * itself, unwinds to its step (core/driver.c), so no stage waits for one that is gone. */
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/driver.h"

void fail_record(pn_run *run, const char *format, ...)
{
    if (atomic_exchange(&run->failing, 1)) {
        while (!atomic_load(&run->stop))
            sched_yield();
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(run->error, sizeof run->error, format, arguments);
    va_end(arguments);
    atomic_store(&run->stop, 1);
}

void pn_fail(pn_stage *stage, const char *format, ...)
{
    char text[sizeof stage->run->error - 32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (!stage) {
        fflush(stdout);
        fprintf(stderr, "error: %s\n", text);
        exit(1);
    }
    char name[STAGE_NAME];
    if (stage->run->program->nstages > 1)
        fail_record(stage->run, "%s: %s", stage_name(stage, name, sizeof name), text);
    else
        fail_record(stage->run, "%s", text);
    fail_unwind(stage);
}

void fail_unwind(pn_stage *stage)
{
    longjmp(stage->escape, 1);
}

void fail_check(pn_stage *stage)
{
    if (atomic_load_explicit(&stage->run->stop, memory_order_relaxed))
        fail_unwind(stage);
}
