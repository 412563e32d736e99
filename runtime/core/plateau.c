#include "core/plateau.h"

#include <stdlib.h>
#include <string.h>

#include "core/order.h"

enum { PHASES = 4 };
struct pn_plateau {
    atomic_llong end[PHASES]; /* per phase; INT64_MAX: not decided */
    /* of the stage of the loss alone */
    int phase; /* that is judged */
    double lowest;
    int64_t tests, not_lower; /* seen; the last ones in a row that were not lower */
};

static void read_text(pn_run *run, const char *text)
{
    struct pn_plateau *p = run->plateau;
    char *at;
    p->phase = (int)strtol(text, &at, 10);
    p->lowest = strtod(at, &at);
    p->tests = strtoll(at, &at, 10);
    p->not_lower = strtoll(at, &at, 10);
    for (int i = 0; i < run->program->nphases; i++)
        atomic_store(&p->end[i], strtoll(at, &at, 10));
    if (*at || p->phase < 0 || p->phase >= run->program->nphases)
        pn_fail(NULL, "the checkpoint is torn: of the plateau it says '%s'", text);
}

void plateau_open(pn_run *run, const char *text)
{
    const pn_program *program = run->program;
    bool judged = false;
    for (int i = 0; i < program->nphases; i++)
        judged = judged || program->phase[i].plateau_tests > 0;
    if (!judged)
        return;
    if (program->nphases > PHASES)
        pn_fail(NULL, "internal error: %d phases", program->nphases);
    if (program->stage[program->nstages - 1]->replicas > 1)
        pn_fail(NULL, "a schedule that switches on a plateau wants the last stage without replicas");
    int64_t least = order_most_apart(program);
    if (run->test_every < least)
        pn_fail(NULL,
                "the schedule switches on a plateau of the test loss: tests at least every %lld steps are wanted, "
                "not every %lld (--eval-every)",
                (long long)least, (long long)run->test_every);
    run->plateau = pn_alloc((int64_t)sizeof *run->plateau);
    for (int i = 0; i < PHASES; i++)
        atomic_store(&run->plateau->end[i], INT64_MAX);
    if (text)
        read_text(run, text);
}

void plateau_test(pn_stage *stage, double loss)
{
    const pn_run *run = stage->run;
    struct pn_plateau *p = run->plateau;
    int number = (int)(stage->phase - run->program->phase);
    if (!p || stage->phase->plateau_tests == 0 || stage->updates % run->test_every != 0 ||
        atomic_load(&p->end[number]) != INT64_MAX)
        return;
    if (p->phase != number) {
        p->phase = number;
        p->tests = p->not_lower = 0;
    }
    if (p->tests == 0 || loss < p->lowest - stage->phase->plateau_least * p->lowest) {
        p->lowest = loss;
        p->not_lower = 0;
    } else {
        p->not_lower++;
    }
    p->tests++;
    if (p->not_lower >= stage->phase->plateau_tests)
        atomic_store(&p->end[number], stage->updates + run->test_every);
}

int64_t plateau_end(const pn_run *run, int phase)
{
    return atomic_load(&run->plateau->end[phase]);
}

void plateau_text(const pn_run *run, char text[PLATEAU_TEXT])
{
    const struct pn_plateau *p = run->plateau;
    *text = '\0';
    if (!p)
        return;
    int at = snprintf(text, PLATEAU_TEXT, "%d %.17g %lld %lld", p->phase, p->lowest, (long long)p->tests,
                      (long long)p->not_lower);
    for (int i = 0; i < run->program->nphases; i++)
        at += snprintf(text + at, (size_t)(PLATEAU_TEXT - at), " %lld", (long long)plateau_end(run, i));
}
