/* JSON lines for --metrics: one for each interval and one for each test, written out at once. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "core/file.h"
#include "core/log.h"

/* Copies the lines up to the run's first step; a line that is none of ours, as the torn last one of a killed run, is
 * dropped. */
static void keep_lines(const pn_log *log, FILE *from, FILE *to)
{
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, from) > 0) {
        json_t *object = json_loads(line, 0, NULL), *step = json_object_get(object, "step");
        if (json_is_integer(step) && json_integer_value(step) <= log->run->first)
            fputs(line, to);
        json_decref(object);
    }
    free(line);
}

static void drop_later_lines(const pn_log *log)
{
    FILE *before = fopen(log->metrics_path, "r");
    if (!before)
        return;
    NewFile file;
    const char *error = file_begin(&file, log->metrics_path);
    if (!error) {
        keep_lines(log, before, file.stream);
        error = file_end(&file);
    }
    fclose(before);
    if (error)
        pn_fail(NULL, "cannot write %s: %s", log->metrics_path, error);
}

void metrics_open(pn_log *log)
{
    bool goes_on = log->run->first > 0;
    if (goes_on)
        drop_later_lines(log);
    log->metrics = fopen(log->metrics_path, goes_on ? "a" : "w");
    if (!log->metrics)
        pn_fail(NULL, "cannot write %s: %s", log->metrics_path, strerror(errno));
}

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
               json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "step", (json_int_t)interval->step, "epoch",
                         real(interval->epoch), "seconds", real(log_clock() - log->begun), "loss", real(interval->loss),
                         "accuracy", interval->accuracy < 0 ? json_null() : real(interval->accuracy), "lr",
                         real(interval->rate), "images_per_second", real(interval->images_per_second), "phase",
                         interval->phase));
}

void metrics_test(pn_log *log, const TestResult *result)
{
    if (!log->metrics)
        return;
    write_line(log, json_pack("{s:I, s:o, s:o, s:o, s:o, s:I}", "step", (json_int_t)result->step, "epoch",
                              real(result->epoch), "seconds", real(log_clock() - log->begun), "test_loss",
                              real(result->loss), "test_accuracy",
                              result->accuracy < 0 ? json_null() : real(result->accuracy), "test_images",
                              (json_int_t)result->count));
}
