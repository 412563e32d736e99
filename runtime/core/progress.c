/* What a person sees: the stage table, a bar with loss, accuracy, images/s and time left on a terminal, a line an
 * interval elsewhere, and the last line, which scripts may rely on. */
#include <string.h>

#include "core/driver.h"
#include "core/halves.h"
#include "core/interrupt.h"
#include "core/log.h"

static void format_bytes(int64_t bytes, char *text, size_t size)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    int u = 0;
    while (value >= 1024 && u < PN_COUNT(unit) - 1) {
        value /= 1024;
        u++;
    }
    snprintf(text, size, u ? "%.1f %s" : "%.0f %s", value, unit[u]);
}

static int64_t parameters(const pn_stage_def *def)
{
    int64_t sum = 0;
    for (int i = 0; i < def->nparams; i++) {
        int64_t count = !def->param[i].running;
        for (int d = 0; d < def->param[i].rank; d++)
            count *= def->param[i].dim[d];
        sum += count;
    }
    return sum;
}

/* The entries of the program that are one stage. */
static int entries_of(const pn_stage *stage)
{
    return stage->halves ? 2 : stage->replicas > 1 ? stage->replicas : 1;
}

static int64_t static_bytes(const pn_stage *stage)
{
    int64_t sum = 0;
    for (int r = 0; r < entries_of(stage); r++)
        sum += stage[r].def->static_bytes;
    return sum;
}

static int staleness(const pn_program *program, int stage)
{
    int most = 0;
    for (int i = 0; i < program->nphases; i++)
        if (program->phase[i].staleness[stage] > most)
            most = program->phase[i].staleness[stage];
    return most;
}

void progress_begin(pn_log *log)
{
    if (log->quiet)
        return;
    const pn_run *run = log->run;
    const pn_program *program = run->program;
    const int stages = run->stage[program->nstages - 1].index + 1;
    printf("%s: %d stage%s, target %s (%s), transport %s, schedule", program->name, stages, stages == 1 ? "" : "s",
           pn_target_name, pn_target_version(), run->transport->name);
    for (int i = 0; i < program->nphases; i++)
        printf("%s %s", i ? ", then" : "", program->phase[i].name);
    if (run->threads > 1)
        printf(", %d threads a stage", run->threads);
    printf("\ndata: %s; batch %lld, %lld steps, seed %llu\n", run->data ? run->data->what : "none",
           (long long)program->batch, (long long)run->steps, (unsigned long long)run->seed);
    if (run->first > 0)
        printf("goes on after step %lld\n", (long long)run->first);
    printf("  %-5s %10s %9s %4s %10s  %s\n", "stage", "parameters", "staleness", "ring", "memory", "layers");
    for (int i = 0; i < program->nstages; i += entries_of(&run->stage[i])) {
        const pn_stage *stage = &run->stage[i];
        const pn_stage_def *def = stage->def;
        char bytes[32];
        format_bytes(static_bytes(stage), bytes, sizeof bytes);
        printf("  %5d %10lld %9d %4d %10s  %s", stage->index, (long long)parameters(halves_backward(stage)->def),
               staleness(program, stage->index), def->ring, bytes, def->what);
        if (stage->replicas > 1)
            printf("   (%d replicas)", stage->replicas);
        if (stage->halves)
            printf("   (two workers)");
        printf("\n");
    }
    fflush(stdout);
}

static void print_numbers(const Interval *interval)
{
    printf("loss %.4f", interval->loss);
    if (interval->accuracy >= 0)
        printf("  accuracy %6.2f %%", 100 * interval->accuracy);
    if (interval->images_per_second > 0)
        printf("  %.0f images/s", interval->images_per_second);
}

static void print_time_left(const pn_log *log, const Interval *interval)
{
    if (interval->images_per_second <= 0)
        return;
    double left =
        (double)(log->run->steps - interval->step) * (double)log->run->program->batch / interval->images_per_second;
    long seconds = (long)(left + 0.5);
    if (seconds >= 3600)
        printf("  ETA %ld:%02ld:%02ld", seconds / 3600, seconds / 60 % 60, seconds % 60);
    else
        printf("  ETA %ld:%02ld", seconds / 60, seconds % 60);
}

void progress_clear(pn_log *log)
{
    if (log->bar_shown)
        printf("\r\033[K");
    log->bar_shown = false;
}

static void draw(pn_log *log, const Interval *interval)
{
    enum { WIDTH = 24 };
    char bar[WIDTH + 1];
    int filled = (int)(interval->step * WIDTH / log->run->steps);
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < filled ? '=' : i == filled ? '>' : ' ';
    bar[WIDTH] = 0;
    progress_clear(log);
    printf("[%s] %lld/%lld  ", bar, (long long)interval->step, (long long)log->run->steps);
    print_numbers(interval);
    print_time_left(log, interval);
    fflush(stdout);
    log->bar_shown = true;
    log->drawn = log_clock();
}

void progress_draw(pn_log *log, const Interval *interval)
{
    if (!log->quiet && log->terminal && log_clock() - log->drawn > 0.1)
        draw(log, interval);
}

void progress_interval(pn_log *log, const Interval *interval)
{
    if (log->quiet)
        return;
    if (log->terminal) {
        draw(log, interval);
        return;
    }
    int width = snprintf(NULL, 0, "%lld", (long long)log->run->steps);
    printf("step %*lld/%lld  epoch %.2f  ", width, (long long)interval->step, (long long)log->run->steps,
           interval->epoch);
    print_numbers(interval);
    printf("  lr %.4g", interval->rate);
    if (log->run->program->nphases > 1)
        printf("  %s", interval->phase);
    print_time_left(log, interval);
    printf("\n");
    fflush(stdout);
}

static void print_test(const TestResult *result)
{
    if (result->accuracy >= 0)
        printf("test accuracy %.2f %% (%lld images)\n", 100 * result->accuracy, (long long)result->count);
    else
        printf("test loss %.6g (%lld images)\n", result->loss, (long long)result->count);
}

/* The test at the very end is told by the last line alone. */
void progress_test(pn_log *log, const TestResult *result)
{
    if (log->quiet || result->step >= interrupt_steps(log->run))
        return;
    progress_clear(log);
    printf("step %lld  ", (long long)result->step);
    print_test(result);
    fflush(stdout);
}

void progress_data_wait(pn_log *log)
{
    const pn_run *run = log->run;
    char name[STAGE_NAME];
    int most = 0;
    for (int i = 1; i < run->program->nstages; i++)
        if (run->stage[i].data_seconds > run->stage[most].data_seconds)
            most = i;
    double part = run->stage[most].data_seconds / (log_clock() - log->begun);
    if (!log->quiet && part > 0.05)
        printf("%s spent %.1f %% of the run on training data that were not ready (--prefetch N reads ahead)\n",
               stage_name(&run->stage[most], name, sizeof name), 100 * part);
}

void progress_last_line(pn_log *log)
{
    if (log->result.count > 0)
        print_test(&log->result);
    else
        printf("test accuracy unknown (0 images)\n");
}
