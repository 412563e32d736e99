/* JSON lines for --metrics: one for each interval and one for each test, written out at once. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/log.h"

/* JSON has no NaN and no infinity: a training that has diverged says null. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* The run goes on when the disk is full: weights are worth more than metrics. log_close reports it, since the stream
 * keeps the error; here it is said at once, once. */
static void write_line(pn_log *log, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (!text)
        pn_fail(NULL, "out of memory for a line of metrics");
    if (!ferror(log->metrics) && (fprintf(log->metrics, "%s\n", text) < 0 || fflush(log->metrics) != 0))
        fprintf(stderr, "warning: cannot write %s: %s\n", log->metrics_path, strerror(errno));
    free(text);
    json_decref(line);
}

void metrics_interval(pn_log *log, const Interval *interval)
{
    if (!log->metrics)
        return;
    write_line(log,
               json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:s}", "step", (json_int_t)interval->step, "epoch",
                         real(interval->epoch), "loss", real(interval->loss), "accuracy",
                         interval->accuracy < 0 ? json_null() : real(interval->accuracy), "lr", real(interval->rate),
                         "images_per_second", real(interval->images_per_second), "phase", interval->phase));
}

void metrics_test(pn_log *log, const TestResult *result)
{
    if (!log->metrics)
        return;
    write_line(log, json_pack("{s:I, s:o, s:o, s:o, s:I}", "step", (json_int_t)result->step, "epoch",
                              real(result->epoch), "test_loss", real(result->loss), "test_accuracy",
                              result->accuracy < 0 ? json_null() : real(result->accuracy), "test_images",
                              (json_int_t)result->count));
}
