#include "core/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/choices.h"
#include "core/diverge.h"
#include "core/driver.h"

double log_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* 1, 2 or 5 times a power of ten: at most about 30 intervals a run. */
static int64_t interval_of(int64_t steps)
{
    static const int64_t factor[] = {1, 2, 5};
    for (int64_t ten = 1;; ten *= 10)
        for (int i = 0; i < PN_COUNT(factor); i++)
            if (ten * factor[i] * 30 >= steps)
                return ten * factor[i];
}

void log_open(pn_log *log, pn_run *run, bool quiet, const char *metrics_path)
{
    memset(log, 0, sizeof *log);
    log->run = run;
    log->quiet = quiet;
    log->terminal = isatty(STDOUT_FILENO) == 1;
    log->every = interval_of(run->steps);
    log->result.accuracy = -1;
    log->metrics_path = metrics_path;
    log->begun = log_clock();
    if (pthread_mutex_init(&log->lock, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of the log");
    if (metrics_path)
        metrics_open(log);
}

bool log_close(pn_log *log)
{
    pthread_mutex_destroy(&log->lock);
    if (!log->metrics)
        return true;
    bool good = !ferror(log->metrics);
    if (fclose(log->metrics) != 0)
        good = false;
    if (!good)
        fprintf(stderr, "error: %s is not complete\n", log->metrics_path);
    log->metrics = NULL;
    return good;
}

static double epoch_of(const pn_run *run, int64_t step)
{
    int64_t batches = run->data && run->program->batch > 0 ? run->data->train_count / run->program->batch : 0;
    return batches > 0 ? (double)step / (double)batches : 0;
}

static Interval summary(const pn_log *log, const pn_stage *stage, int64_t minibatch)
{
    return (Interval){
        .step = minibatch + 1,
        .epoch = epoch_of(log->run, minibatch + 1),
        .loss = log->loss_sum / (double)log->minibatches,
        .accuracy = log->correct < 0 ? -1 : (double)log->correct / (double)log->samples,
        .rate = recipe_rate(log->run->recipe, minibatch),
        .images_per_second = log->gap_seconds > 0 ? (double)log->gap_images / log->gap_seconds : 0,
        .phase = stage->phase->name,
    };
}

static void measure_rate(pn_log *log, int64_t count)
{
    double now = log_clock();
    if (log->last_report > 0 && !log->tested_since) {
        log->gap_seconds += now - log->last_report;
        log->gap_images += count;
        log->all_seconds += now - log->last_report;
        log->all_images += count;
        log->images_per_second = log->all_seconds > 0 ? (double)log->all_images / log->all_seconds : 0;
    }
    log->last_report = now;
    log->tested_since = false;
}

static void begin_interval(pn_log *log)
{
    log->loss_sum = 0;
    log->minibatches = log->correct = log->samples = 0;
    log->gap_seconds = 0;
    log->gap_images = 0;
}

/* The loss of a minibatch is the mean of its microbatches. */
void pn_report_loss(pn_stage *stage, int64_t n, double loss, int64_t correct, int64_t count)
{
    const int64_t slices = pn_microbatches(stage->run->program), minibatch = n / slices;
    const bool complete = (n + 1) % slices == 0;
    pn_log *log = stage->run->log;
    diverge_check_loss(stage, minibatch, loss);
    pthread_mutex_lock(&log->lock);
    measure_rate(log, count);
    log->loss_sum += loss / (double)slices;
    log->minibatches += complete;
    log->correct = correct < 0 || log->correct < 0 ? -1 : log->correct + correct;
    log->samples += count;
    if (!complete) {
        pthread_mutex_unlock(&log->lock);
        return;
    }
    Interval interval = summary(log, stage, minibatch);
    if ((minibatch + 1) % log->every == 0 || minibatch + 1 == stage->run->steps) {
        progress_interval(log, &interval);
        metrics_interval(log, &interval);
        begin_interval(log);
    } else {
        progress_draw(log, &interval);
    }
    pthread_mutex_unlock(&log->lock);
}

void pn_report_test(pn_stage *stage, int64_t n, double loss_sum, int64_t correct, int64_t count)
{
    pn_log *log = stage->run->log;
    pthread_mutex_lock(&log->lock);
    if (n == 0) {
        log->test_loss = 0;
        log->test_correct = log->test_samples = 0;
    }
    log->tested_since = true;
    log->test_loss += loss_sum;
    log->test_correct = correct < 0 ? -1 : log->test_correct + correct;
    log->test_samples += count;
    bool ends = n == driver_test_batches(stage->run) - 1;
    double loss = log->test_loss / (double)log->test_samples;
    if (ends) {
        log->result = (TestResult){
            .step = stage->updates,
            .epoch = epoch_of(stage->run, stage->updates),
            .loss = loss,
            .accuracy = log->test_correct < 0 ? -1 : (double)log->test_correct / (double)log->test_samples,
            .count = log->test_samples,
        };
        progress_test(log, &log->result);
        metrics_test(log, &log->result);
    }
    pthread_mutex_unlock(&log->lock);
    if (ends)
        diverge_check_test(stage, loss);
}
