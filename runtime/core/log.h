/* log.h: what a run tells while it trains: losses and accuracy gathered from the stage that has the loss, a progress
 * bar or a line an interval (progress.c), JSON lines (metrics.c). */
#ifndef PN_LOG_H
#define PN_LOG_H

#include <pthread.h>

#include "rt.h"

/* What an interval of training came to. */
typedef struct {
    int64_t step;             /* minibatches done */
    double epoch, loss, rate; /* rate: of learning */
    double accuracy;          /* part of 1; below 0: not a classifier */
    double images_per_second; /* 0: not known yet */
    const char *phase;
} Interval;
typedef struct {
    int64_t step; /* updates done */
    double epoch, loss, accuracy;
    int64_t count;
} TestResult;

/* What one replica, or all of them, came to. */
typedef struct {
    double loss; /* mean of a minibatch, sum of a test */
    int64_t correct, count;
    bool there;
} Part;

typedef struct pn_log pn_log;
struct pn_log {
    pn_run *run;
    bool quiet, terminal, bar_shown;
    FILE *metrics;
    const char *metrics_path;
    pthread_mutex_t lock;
    int64_t every; /* minibatches an interval */
    double begun, drawn;
    /* the interval so far */
    double loss_sum;
    int64_t minibatches, correct, samples;
    Part *part; /* of minibatches that not all replicas have done, by number % twice the ring, and replica */
    /* the rate: gaps between reports, but for those with a test in them */
    double last_report, gap_seconds;
    int64_t gap_images;
    bool tested_since;
    /* the test so far, and the last one finished */
    Part *test; /* per replica of the stage with the loss */
    TestResult result;
    double images_per_second; /* of the whole run, tests left out */
    double all_seconds;
    int64_t all_images;
};

/* log.c */
void log_open(pn_log *log, pn_run *run, bool quiet, const char *metrics_path);
bool log_close(pn_log *log); /* false: a line of metrics could not be written, and that has been said */
double log_clock(void);      /* seconds, monotonic */

/* progress.c */
void progress_begin(pn_log *log); /* the stage table */
void progress_interval(pn_log *log, const Interval *interval);
void progress_draw(pn_log *log, const Interval *interval); /* the bar on a terminal */
void progress_test(pn_log *log, const TestResult *result);
void progress_clear(pn_log *log);     /* before another line is printed */
void progress_data_wait(pn_log *log); /* a line, when stages spent over 5 % of the run on data that were not ready */
void progress_last_line(pn_log *log);

/* metrics.c */
void metrics_open(pn_log *log); /* a run that goes on keeps the lines up to its first step, where the file has some */
void metrics_interval(pn_log *log, const Interval *interval);
void metrics_test(pn_log *log, const TestResult *result);

#endif
