/* pn_main: the life of a generated program, from its options to its last line. */
#define _DEFAULT_SOURCE /* the number of cores */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/algorithms.h"
#include "core/checkpoint.h"
#include "core/choices.h"
#include "core/diverge.h"
#include "core/driver.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/options.h"
#include "core/plateau.h"
#include "core/report.h"
#include "core/stage.h"
#include "core/trace.h"
#include "core/weights.h"
#include "world/world.h"

static int64_t count_steps(const pn_run *run, const pn_options *options)
{
    const pn_program *program = run->program;
    if (options->steps >= 0)
        return options->steps;
    int64_t epochs = options->epochs >= 0 ? options->epochs : program->epochs;
    if (options->epochs < 0 && epochs == 0)
        return program->steps;
    int64_t batches = run->data->train_count / program->batch;
    if (epochs > INT64_MAX / 4 / batches)
        pn_fail(NULL, "%lld epochs are too many", (long long)epochs);
    return epochs * batches;
}

/* An error in a stage's code unwinds to here. */
static bool guarded(pn_stage *stage, void (*action)(pn_stage *stage))
{
    if (setjmp(stage->escape))
        return false;
    action(stage);
    return true;
}

/* Operations are created stage after stage: a register hands the layout of its value on to the next one. */
static bool init_stages(pn_run *run)
{
    for (int i = 0; i < run->program->nstages; i++) {
        stage_open(run, i);
        pn_stage *stage = &run->stage[i];
        if (!stage->here)
            continue;
        if (stage->def->place && !guarded(stage, stage->def->place))
            return false;
        if (!guarded(stage, stage->def->init))
            return false;
    }
    for (int i = 0; i < run->program->nstages && !run->gpu; i++) {
        pn_stage *stage = &run->stage[i];
        if (!stage->here)
            continue;
        if (stage->scratch_bytes > 0)
            stage->scratch = pn_alloc(stage->scratch_bytes);
        if (!guarded(stage, pn_target_prepare))
            return false;
    }
    return true;
}

/* What the file says must be what the inits asked for; without a file the choice is made here. */
static bool settle_algorithms(pn_run *run)
{
    if (!run->algorithms->measures) {
        algorithms_check(run);
        return true;
    }
    if (!run->transport->each(run, pn_target_measure))
        return false;
    for (int i = 0; i < run->program->nstages; i++)
        if (!guarded(&run->stage[i], pn_target_settle))
            return false;
    algorithms_write(run);
    return true;
}

/* More than there are cores is no error: the run is right, and slower than hoped. */
static int count_threads(const pn_program *program, int64_t wanted)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (wanted > pn_target_most_threads)
        pn_fail(NULL, "--threads %lld: target %s runs a stage on %d thread%s%s", (long long)wanted, pn_target_name,
                pn_target_most_threads, pn_target_most_threads == 1 ? "" : "s",
                pn_target_most_threads == 1 ? "" : " at most");
    if (wanted > 1 && wanted * program->nstages > cores)
        fprintf(stderr, "warning: %d stage%s of %lld threads want %lld cores, there are %ld: expect it to be slow\n",
                program->nstages, program->nstages == 1 ? "" : "s", (long long)wanted,
                (long long)wanted * program->nstages, cores);
    return (int)wanted;
}

static void count_reorder(void *to, const char *op, const char *what, int64_t bytes)
{
    (void)op;
    (void)what;
    (void)bytes;
    ++*(int *)to;
}

static void print_reorder(void *to, const char *op, const char *what, int64_t bytes)
{
    printf("  %5d %12lld  %-28s %s\n", ((const pn_stage *)to)->index, (long long)bytes, op, what);
}

/* Of stages in halves the backward one tells: both have made all operations. */
static void each_reorder(const pn_run *run, pn_reorder_fn *tell, void *to)
{
    for (int i = 0; i < run->program->nstages; i++)
        if (run->program->stage[i]->half != PN_FORWARD_HALF)
            pn_target_reorders(&run->stage[i], tell, to ? to : &run->stage[i]);
}

/* Layouts are chosen when operations are created: nothing else is needed to know them. */
static int tell_layouts(pn_run *run)
{
    int count = 0;
    each_reorder(run, count_reorder, &count);
    printf("layouts      target %s, %s: ", pn_target_name, pn_target_version());
    if (count == 0)
        printf("no copy changes one\n");
    else
        printf("%d cop%s of a training or test step change%s one\n  %5s %12s  %-28s %s\n", count,
               count == 1 ? "y" : "ies", count == 1 ? "s" : "", "stage", "bytes", "of", "what");
    each_reorder(run, print_reorder, NULL);
    return file_printed() ? 0 : 1;
}

typedef struct {
    int stage, count;
} PlanList;

static void print_plan(void *to, const char *op, const char *pass, const char *algorithm, const char *code)
{
    PlanList *list = to;
    (void)algorithm;
    printf("  %5d  %-24s %-16s %s\n", list->stage, op, pass, code);
    list->count++;
}

/* Engines are chosen when operations are created, too. */
static int tell_plans(pn_run *run)
{
    PlanList list = {0, 0};
    printf("plans        target %s, %s, for %s:\n  %5s  %-24s %-16s %s\n", pn_target_name, pn_target_version(),
           run->gpu, "stage", "of", "pass", "engine, its knobs; bias, relu: in the same plan");
    for (int i = 0; i < run->program->nstages; i++) {
        list.stage = i;
        pn_target_algorithms(&run->stage[i], print_plan, &list);
    }
    printf("%d plans\n", list.count);
    return file_printed() ? 0 : 1;
}

static void probe(const char *path)
{
    const char *error = path ? file_probe(path) : NULL;
    if (error)
        pn_fail(NULL, "cannot write %s: %s", path, error);
}

static bool train(pn_run *run)
{
    run->transport->open(run);
    pn_loader_start(run);
    if (!atomic_load(&run->stop))
        run->transport->train(run);
    for (int i = 0; i < run->program->nstages && !atomic_load(&run->stop); i++)
        if (run->stage[i].here && !guarded(&run->stage[i], pn_target_finish))
            break;
    if (run->world && !atomic_load(&run->stop))
        world_end(run);
    pn_loader_stop(run);
    interrupt_remove();
    run->transport->close(run);
    return !atomic_load(&run->stop);
}

static int failed(pn_run *run)
{
    if (run->log)
        progress_clear(run->log);
    fflush(stdout);
    if (run->world)
        fprintf(stderr, "error: rank %d ends: %s\n", world_rank(run), run->error);
    else
        fprintf(stderr, "error: %s\n", run->error);
    return world_failed(run, 1);
}

static bool write_trace(const pn_run *run, const pn_options *options)
{
    const char *error = trace_write(run, options->trace);
    int64_t dropped = trace_dropped(run);
    if (error)
        fprintf(stderr, "error: cannot write %s: %s\n", options->trace, error);
    else if (dropped > 0)
        fprintf(stderr, "warning: %s lacks the last %lld events: it holds at most %d MiB of them\n", options->trace,
                (long long)dropped, TRACE_BYTES >> 20);
    else if (!options->quiet)
        printf("wrote the trace to %s\n", options->trace);
    return !error;
}

/* After the run each file is tried, whatever became of the others. */
static bool write_files(pn_run *run, const pn_options *options)
{
    bool good = true;
    if (options->save) {
        char *error = weights_save(run, options->save);
        if (error)
            fprintf(stderr, "error: %s\n", error);
        else if (!options->quiet)
            printf("saved the weights after %lld steps to %s\n", (long long)run->stage[0].updates, options->save);
        good = good && !error;
        free(error);
    }
    if (options->checkpoint) {
        char *error = checkpoint_end(run);
        if (error)
            fprintf(stderr, "error: %s\n", error);
        else if (!options->quiet)
            printf("wrote the checkpoint of step %lld to %s\n", (long long)run->stage[0].updates, options->checkpoint);
        good = good && !error;
        free(error);
    }
    if (options->report) {
        const char *error = report_write(run, run->log, options->report);
        if (error)
            fprintf(stderr, "error: cannot write %s: %s\n", options->report, error);
        good = good && !error;
    }
    if (options->trace)
        good = write_trace(run, options) && good;
    return good;
}

static int finish(pn_run *run, const pn_options *options)
{
    progress_clear(run->log);
    if (run->stage[0].updates < run->steps && !options->quiet)
        printf("interrupted after %lld of %lld steps\n", (long long)run->stage[0].updates, (long long)run->steps);
    bool good = write_files(run, options);
    progress_data_wait(run->log);
    if (world_rank(run) == 0)
        progress_last_line(run->log);
    if (!file_printed())
        good = false;
    if (!log_close(run->log))
        good = false;
    return good ? 0 : 1;
}

/* What there is of the run is written, and what it had when it was good. */
static int diverged(pn_run *run, const pn_options *options)
{
    world_failed(run, 3);
    failed(run);
    if (!run->world)
        diverge_end(run);
    if (options->report) {
        const char *error = report_write(run, run->log, options->report);
        if (error)
            fprintf(stderr, "error: cannot write %s: %s\n", options->report, error);
    }
    log_close(run->log);
    return 3;
}

/* The data of the run, its seed, and its first and last minibatch. */
static void set_course(pn_run *run, const pn_options *options)
{
    Resume resume = {0};
    run->seed = options->seed;
    if (options->resume) {
        resume = resume_open(options->resume, run->program);
        if (options->seed_given && options->seed != resume.seed)
            pn_fail(NULL, "%s was written by a run with seed %llu, not %llu", options->resume,
                    (unsigned long long)resume.seed, (unsigned long long)options->seed);
        run->seed = resume.seed;
        run->first = resume.step;
    }
    pn_data_open(run, options->data);
    if (options->resume)
        resume_check_data(&resume, run->data);
    run->steps = count_steps(run, options);
    interrupt_open(run, run->first);
    plateau_open(run, resume.plateau);
    resume_close(&resume);
}

static void set_weights(pn_run *run, const pn_options *options)
{
    if (options->resume)
        weights_resume(run, options->resume);
    else if (options->load)
        weights_load(run, options->load);
    else
        weights_initial(run);
    if (options->checkpoint)
        checkpoint_open(run, options->checkpoint, options->checkpoint_every);
    else if (run->world)
        run->checkpoint_every = options->checkpoint_every;
    if (!options->allow_divergence)
        diverge_open(run, run->world ? NULL : options->save ? options->save : options->checkpoint);
}

int pn_main(const pn_program *program, int argc, char **argv)
{
    pn_options options;
    int code = options_parse(&options, program, argc, argv);
    if (code >= 0)
        return code;
    memory_advise_static();
    pn_run *run = pn_alloc((int64_t)sizeof *run);
    run->program = program;
    run->stage = pn_alloc((int64_t)sizeof *run->stage * program->nstages);
    run->transport = options.transport;
    run->test_every = options.test_every;
    run->timeout = options.timeout;
    run->threads = count_threads(program, options.threads);
    run->arithmetic = options.arithmetic;
    run->gpu = options.plans;
    if (!options.plans)
        world_open(run, &options);
    probe(options.save);
    probe(options.checkpoint);
    probe(options.report);
    probe(options.trace);

    pn_target_open(run);
    if (run->world)
        world_meet(run, options.quiet);
    const bool trains = !options.layouts && !options.plans;
    if (trains)
        set_course(run, &options);
    pn_recipe recipe;
    recipe_resolve(&recipe, program, run->steps);
    run->recipe = &recipe;
    pn_recipe *phase_recipe = pn_alloc((int64_t)sizeof *phase_recipe * program->nphases);
    for (int i = 0; i < program->nphases; i++)
        recipe_of_phase(&phase_recipe[i], &recipe, program->phase[i].lr);
    run->phase_recipe = phase_recipe;
    if (trains)
        pn_loader_open(run, pn_target_gathers ? 0 : options.prefetch);

    pn_target_thread(run);
    if (options.algorithms && !options.plans) {
        algorithms_open(run, options.algorithms);
        if (run->algorithms->measures && run->world)
            pn_fail(NULL, "%s is not there, and %d ranks measure nothing: let one process write it", options.algorithms,
                    world_size(run));
        if (run->algorithms->measures && !options.quiet)
            printf("measuring algorithms\n");
        fflush(stdout);
    }
    if (!init_stages(run) || (run->algorithms && !settle_algorithms(run)))
        return failed(run);
    if (options.plans)
        return tell_plans(run);
    if (options.layouts)
        return tell_layouts(run);
    if (options.algorithms && !options.quiet)
        algorithms_tell(run);
    set_weights(run, &options);

    pn_log log;
    log_open(&log, run, options.quiet, options.metrics);
    run->log = &log;
    if (options.trace)
        trace_open(run, TRACE_BYTES);
    interrupt_install(run);
    progress_begin(&log);
    if (train(run))
        return finish(run, &options);
    return diverge_happened(run) ? diverged(run, &options) : failed(run);
}
