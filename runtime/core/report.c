#include "core/report.h"

#include <math.h>
#include <stdlib.h>

#include <jansson.h>

#include "core/diverge.h"
#include "core/file.h"
#include "core/halves.h"

static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void list_reorder(void *to, const char *op, const char *what, int64_t bytes)
{
    json_array_append_new(to, json_pack("{s:s, s:s, s:I}", "op", op, "of", what, "bytes", (json_int_t)bytes));
}

/* Both halves of a stage have made all operations: the backward one tells. */
static json_t *reorders(const pn_stage *stage)
{
    json_t *list = json_array();
    if (stage->def->half != PN_FORWARD_HALF)
        pn_target_reorders(stage, list_reorder, list);
    return list;
}

static void list_algorithm(void *to, const char *op, const char *pass, const char *algorithm, const char *code)
{
    json_array_append_new(
        to, json_pack("{s:s, s:s, s:s, s:s}", "op", op, "pass", pass, "algorithm", algorithm, "code", code));
}

static json_t *algorithms(const pn_stage *stage)
{
    json_t *list = json_array();
    if (stage->def->half != PN_FORWARD_HALF)
        pn_target_algorithms(stage, list_algorithm, list);
    return list;
}

/* staleness: the most of the stage's own updates seen between a minibatch's forward and its backward. ring: the most
 * minibatches between them at a time. Of halves one knows the first, the other the second. */
static json_t *stage_report(const pn_stage *stage)
{
    static const char *const half[] = {
        [PN_WHOLE] = "whole", [PN_FORWARD_HALF] = "forward", [PN_BACKWARD_HALF] = "backward"};
    const pn_stage *back = halves_backward(stage), *there = halves_forward(stage);
    int64_t done = back->backwards - back->run->first * pn_microbatches(back->run->program);
    double mean = done > 0 ? (double)back->staleness_sum / (double)done : 0;
    return json_pack("{s:i, s:i, s:s, s:I, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "stage", stage->index,
                     "replica", stage->replica, "half", half[stage->def->half], "staleness",
                     (json_int_t)back->staleness_most, "staleness_mean", real(mean), "ring",
                     (json_int_t)there->most_in_flight, "static_bytes", (json_int_t)stage->def->static_bytes,
                     "scratch_bytes", (json_int_t)stage->scratch_bytes, "busy_seconds", real(stage->busy_seconds),
                     "wait_seconds", real(stage->wait_seconds), "data_wait_seconds", real(stage->data_seconds),
                     "reorders", reorders(stage), "algorithms", algorithms(stage));
}

static json_t *run_report(const pn_run *run, const pn_log *log)
{
    int64_t steps = run->stage[0].updates, done = steps - run->first, traffic = 0, bytes = 0;
    json_t *stages = json_array();
    for (int i = 0; i < run->program->nstages; i++) {
        json_array_append_new(stages, stage_report(&run->stage[i]));
        traffic += run->stage[i].traffic_bytes;
        bytes += run->stage[i].def->static_bytes;
    }
    return json_pack("{s:b, s:s, s:s, s:s, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "diverged",
                     diverge_happened(run), "network", run->program->name, "target", pn_target_name, "transport",
                     run->transport->name, "threads", run->threads, "stages", stages, "steps", (json_int_t)steps,
                     "first_step", (json_int_t)run->first, "traffic_bytes", (json_int_t)(done > 0 ? traffic / done : 0),
                     "static_bytes", (json_int_t)bytes, "loader_bytes", (json_int_t)run->loader_bytes, "seconds",
                     real(log_clock() - log->begun), "images_per_second", real(log->images_per_second), "test_accuracy",
                     log->result.accuracy < 0 ? json_null() : real(log->result.accuracy), "test_loss",
                     log->result.count > 0 ? real(log->result.loss) : json_null());
}

const char *report_write(const pn_run *run, const pn_log *log, const char *path)
{
    json_t *report = run_report(run, log);
    char *text = report ? json_dumps(report, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(report);
    if (!text)
        return "out of memory";
    NewFile file;
    const char *error = file_begin(&file, path);
    if (!error) {
        fprintf(file.stream, "%s\n", text);
        error = file_end(&file);
    }
    free(text);
    return error;
}
