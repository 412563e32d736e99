#include "core/diverge.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/choices.h"
#include "core/driver.h"
#include "core/file.h"
#include "core/update.h"
#include "core/weights.h"

/* The weights of one test, complete when all stages have copied theirs. */
typedef struct {
    Plain plain;
    int64_t test, step; /* test: which of this run; -1: empty */
    int parts;
} Kept;

struct pn_diverge {
    char path[FILE_PATH]; /* "": weights are not kept */
    double first, last;   /* losses; below 0: none yet. Of the stage of the loss alone */
    int64_t good;         /* the last test with a finite loss; -1: none */
    bool happened;
    pthread_mutex_t lock; /* of kept, good */
    Kept *kept;           /* of test n: number n % count */
    int64_t count;
};

static void name_beside(char *to, size_t room, const char *beside)
{
    static const char suffix[] = ".safetensors";
    size_t length = strlen(beside), tail = sizeof suffix - 1;
    if (length > tail && strcmp(beside + length - tail, suffix) == 0)
        length -= tail;
    if (snprintf(to, room, "%.*s.last-good.safetensors", (int)length, beside) >= (int)room)
        pn_fail(NULL, "the name %s is too long", beside);
}

/* A stage can begin as many tests ahead of the end of one as fit into the minibatches between the stages. */
static int64_t tests_apart(const pn_run *run)
{
    return (run->test_every > 0 ? order_most_apart(run->program) / run->test_every : 0) + 3;
}

void diverge_open(pn_run *run, const char *beside)
{
    pn_diverge *diverge = pn_alloc((int64_t)sizeof *diverge);
    diverge->first = diverge->last = -1;
    diverge->good = -1;
    if (pthread_mutex_init(&diverge->lock, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of the last good weights");
    if (beside) {
        name_beside(diverge->path, sizeof diverge->path, beside);
        diverge->count = tests_apart(run);
        diverge->kept = pn_alloc((int64_t)sizeof *diverge->kept * diverge->count);
        for (int64_t i = 0; i < diverge->count; i++)
            diverge->kept[i] = (Kept){.plain = plain_open(run, false), .test = -1};
    }
    run->diverge = diverge;
}

void diverge_keep(pn_stage *stage)
{
    pn_diverge *diverge = stage->run->diverge;
    if (!diverge || !diverge->kept)
        return;
    int64_t test = stage->tests_begun - 1;
    Kept *kept = &diverge->kept[test % diverge->count];
    pthread_mutex_lock(&diverge->lock);
    if (kept->test != test)
        *kept = (Kept){.plain = kept->plain, .test = test, .step = stage->updates};
    pthread_mutex_unlock(&diverge->lock);
    pn_target_finish(stage);
    plain_from_stage(&kept->plain, stage);
    pthread_mutex_lock(&diverge->lock);
    kept->parts++;
    pthread_mutex_unlock(&diverge->lock);
}

/* ---- what to say ---- */

static const pn_stage *most_stale(const pn_stage *stage)
{
    const pn_stage *all = stage->run->stage, *most = all;
    for (int s = 1; s < stage->run->program->nstages; s++)
        if (stage->phase->staleness[all[s].index] > stage->phase->staleness[most->index])
            most = &all[s];
    return most;
}

/* The stability number lr/(1 - m) (d + 1/2) of pnetc check, with the highest rate of the policy; Adam has none. */
static const char *stability_text(const pn_run *run, int64_t delay, char *text, size_t room)
{
    const pn_recipe *recipe = run->recipe;
    pn_terms terms = recipe->optimizer->terms(recipe->optimizer_value, 0, 1);
    *text = '\0';
    if (!recipe->optimizer->averages)
        snprintf(text, room, ", G = lr/(1 - momentum) x (staleness + 1/2) = %.3g",
                 recipe->policy_value[0] / (1 - terms.momentum) * ((double)delay + 0.5));
    return text;
}

static void stop(pn_stage *stage, const char *what, int64_t n, double loss)
{
    pn_run *run = stage->run;
    pn_diverge *diverge = run->diverge;
    const pn_stage *worst = most_stale(stage);
    int delay = stage->phase->staleness[worst->index];
    bool cured = worst->def->cure && worst->def->cure[stage->phase - run->program->phase].active;
    char stability[128], last[64] = "";
    if (diverge->last >= 0)
        snprintf(last, sizeof last, " after %.4g", diverge->last);
    if (delay == 0)
        fail_record(run,
                    "training diverged: the loss of %s %lld is %.4g%s. No stage is stale; a smaller learning rate or a "
                    "longer warm-up helps",
                    what, (long long)n, loss, last);
    else
        fail_record(run,
                    "training diverged: the loss of %s %lld is %.4g%s. Stage %d is the most stale, by %d updates%s; "
                    "%sless delay (schedule = stale_1f1b, fewer stages), a smaller learning rate or a warm-up helps",
                    what, (long long)n, loss, last, worst->index, delay,
                    stability_text(run, delay, stability, sizeof stability), cured ? "" : "cure = auto, ");
    diverge->happened = true;
    fail_unwind(stage);
}

static bool exploded(const pn_diverge *diverge, double loss)
{
    return !isfinite(loss) || (diverge->first >= 0 && loss > 1000 * fmax(1, diverge->first));
}

void diverge_check_loss(pn_stage *stage, int64_t minibatch, double loss)
{
    pn_diverge *diverge = stage->run->diverge;
    if (!diverge)
        return;
    if (exploded(diverge, loss))
        stop(stage, "minibatch", minibatch, loss);
    if (diverge->first < 0)
        diverge->first = loss;
    diverge->last = loss;
}

/* A large loss is no divergence here: the running statistics of the first steps describe a deep network badly. */
void diverge_check_test(pn_stage *stage, double loss)
{
    pn_diverge *diverge = stage->run->diverge;
    if (!diverge)
        return;
    if (!isfinite(loss))
        stop(stage, "the test after step", stage->updates, loss);
    if (exploded(diverge, loss))
        return;
    pthread_mutex_lock(&diverge->lock);
    diverge->good = stage->tests_begun - 1;
    pthread_mutex_unlock(&diverge->lock);
}

/* ---- the end ---- */

bool diverge_happened(const pn_run *run)
{
    return run->diverge && run->diverge->happened;
}

void diverge_end(pn_run *run)
{
    const pn_diverge *diverge = run->diverge;
    if (!*diverge->path) {
        fprintf(stderr, "note: --save or --checkpoint keeps the weights of the last good test\n");
        return;
    }
    if (diverge->good < 0) {
        fprintf(stderr,
                "note: there was no good test before, so no weights are kept; --eval-every N tests more often\n");
        return;
    }
    const Kept *kept = &diverge->kept[diverge->good % diverge->count];
    char *error = safetensors_write(diverge->path, kept->plain.tensor, kept->plain.count, NULL, 0);
    if (error)
        fprintf(stderr, "error: %s\n", error);
    else
        fprintf(stderr, "note: the weights of the last good test, after step %lld, are in %s\n", (long long)kept->step,
                diverge->path);
    free(error);
}
