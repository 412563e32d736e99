#include "core/log.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/choices.h"
#include "core/diverge.h"
#include "core/order.h"
#include "core/plateau.h"
#include "core/update.h"
#include "world/world.h"

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
    int64_t most = 1, parts = 1;
    for (int i = 0; i < run->program->nstages; i++) {
        const pn_stage_def *def = run->program->stage[i];
        most = def->replicas > most ? def->replicas : most;
        parts = (int64_t)2 * def->replicas * def->ring > parts ? (int64_t)2 * def->replicas * def->ring : parts;
    }
    log->part = pn_alloc((int64_t)sizeof *log->part * parts);
    log->test = pn_alloc((int64_t)sizeof *log->test * most);
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
        .rate = update_policy_rate(stage, minibatch),
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

/* The loss may be at another rank than the log. */
static void tell_interval(pn_log *log, const pn_stage *stage, const Interval *interval)
{
    if (world_rank(log->run) > 0) {
        world_interval(log->run, interval, (int)(stage->phase - log->run->program->phase));
        return;
    }
    progress_interval(log, interval);
    metrics_interval(log, interval);
}

static void begin_interval(pn_log *log)
{
    log->loss_sum = 0;
    log->minibatches = log->correct = log->samples = 0;
    log->gap_seconds = 0;
    log->gap_images = 0;
}

/* The loss of a minibatch is the mean of its microbatches; n counts these. */
static void add_microbatch(pn_log *log, const pn_stage *stage, int64_t n, const Part *part)
{
    const int64_t slices = pn_microbatches(stage->run->program), minibatch = n / slices;
    const bool complete = (n + 1) % slices == 0;
    measure_rate(log, part->count);
    log->loss_sum += part->loss / (double)slices;
    log->minibatches += complete;
    log->correct = part->correct < 0 || log->correct < 0 ? -1 : log->correct + part->correct;
    log->samples += part->count;
    if (!complete)
        return;
    Interval interval = summary(log, stage, minibatch);
    if ((minibatch + 1) % log->every == 0 || minibatch + 1 == stage->run->steps) {
        tell_interval(log, stage, &interval);
        begin_interval(log);
    } else {
        progress_draw(log, &interval);
    }
}

/* Adds what a replica reports; false until all replicas have. Sums are in the order of the replicas; losses of parts
 * are means. */
static bool complete(const pn_stage *stage, Part *part, int64_t samples)
{
    Part sum = {0};
    for (int r = 0; r < stage->replicas; r++) {
        if (!part[r].there)
            return false;
        sum.loss += part[r].loss * ((double)part[r].count / (double)samples);
        sum.correct = part[r].correct < 0 ? -1 : sum.correct + part[r].correct;
        sum.count += part[r].count;
    }
    for (int r = 0; r < stage->replicas; r++)
        part[r].there = false;
    part[0] = sum;
    return true;
}

void pn_report_loss(pn_stage *stage, int64_t n, double loss, int64_t correct, int64_t count)
{
    if (stage->recomputing)
        return;
    pn_log *log = stage->run->log;
    Part one = {loss, correct, count, true}, *part = &one;
    pthread_mutex_lock(&log->lock);
    bool whole = stage->replicas <= 1;
    if (!whole) {
        part = log->part + n % (2 * stage->def->ring) * stage->replicas;
        part[stage->replica] = one;
        whole = complete(stage, part, pn_slice(stage->run->program));
    }
    if (whole)
        add_microbatch(log, stage, n, part);
    one = *part;
    pthread_mutex_unlock(&log->lock);
    const int64_t slices = pn_microbatches(stage->run->program);
    if (whole && (stage->replicas <= 1 || (n + 1) % slices == 0)) /* replicas meet between minibatches */
        diverge_check_loss(stage, n / slices, one.loss);
}

static void end_test(pn_log *log, const pn_stage *stage, const Part *sum)
{
    log->result = (TestResult){
        .step = stage->updates,
        .epoch = epoch_of(stage->run, stage->updates),
        .loss = sum->loss / (double)sum->count,
        .accuracy = sum->correct < 0 ? -1 : (double)sum->correct / (double)sum->count,
        .count = sum->count,
    };
    if (world_rank(log->run) > 0) {
        world_test(log->run, &log->result, log->images_per_second);
        return;
    }
    progress_test(log, &log->result);
    metrics_test(log, &log->result);
}

/* Each replica sums its slices of all test batches; the last one to end takes the sum of them. */
void pn_report_test(pn_stage *stage, int64_t n, double loss_sum, int64_t correct, int64_t count)
{
    pn_log *log = stage->run->log;
    pthread_mutex_lock(&log->lock);
    Part *sum = &log->test[stage->replica];
    if (n == 0)
        *sum = (Part){0};
    log->tested_since = true;
    if (count > 0) { /* a ragged last batch may have nothing for the last replicas */
        sum->loss += loss_sum;
        sum->correct = correct < 0 ? -1 : sum->correct + correct;
        sum->count += count;
    }
    Part all = {0};
    bool ended = n == order_test_batches(stage->run) - 1;
    if (ended) {
        sum->there = true;
        for (int r = 0; r == 0 || r < stage->replicas; r++) {
            ended &= log->test[r].there;
            all.loss += log->test[r].loss;
            all.correct = log->test[r].correct < 0 ? -1 : all.correct + log->test[r].correct;
            all.count += log->test[r].count;
        }
        for (int r = 0; ended && (r == 0 || r < stage->replicas); r++)
            log->test[r].there = false;
        if (ended)
            end_test(log, stage, &all);
    }
    pthread_mutex_unlock(&log->lock);
    if (ended) {
        diverge_check_test(stage, all.loss / (double)all.count);
        plateau_test(stage, all.loss / (double)all.count);
    }
}
