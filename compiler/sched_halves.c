/* sched_halves.c: what stages in halves do not do: the forward half has the version of the weights that was handed over
 * last, and nothing is made again beside it. */
#include "sched.h"

static bool refused(Diags *diags, const Sched *sched, Span span)
{
    const Span mapping = sched->settings->pipeline.mapping_span;
    if (span.at != mapping.at)
        diag_note(diags, mapping, "the mapping is set here");
    return false;
}

/* NULL: it goes with it. */
static const char *why_not(const RuleDef *rule)
{
    return rule->recomputes                       ? "makes the values of a forward again"
           : rule->forward_reads != READS_CURRENT ? "reads older weights in a forward than the newest"
                                                  : NULL;
}

bool halves_hold(Diags *diags, const Sched *sched)
{
    const Pipe *pipe = sched->pipe;
    const Pipeline *pipeline = &sched->settings->pipeline;
    for (int p = 0; pipe_halved(pipe) && p < sched->nphases; p++) {
        const PhaseChoice *choice = sched->phase[p].choice;
        const char *why = why_not(choice->rule);
        if (!why)
            continue;
        diag_error(diags, P0525, choice->span, "mapping = split does not go with the weight rule %s, which %s",
                   choice->rule->name, why);
        diag_hint(diags,
                  "it goes with the rules stale, stash and predict: stale, stale_1f1b, pipedream, spectrain, ...");
        return refused(diags, sched, choice->span);
    }
    for (int s = 0; s < pipe->nstages; s++) {
        if (!pipe->stage[s].halves)
            continue;
        if (sched->recompute[s]) {
            const Span span = pipeline->recomputes ? pipeline->recompute_span : pipeline->mapping_span;
            diag_error(diags, P0525, span,
                       "mapping = split does not go with recompute: the halves of stage %d would make the same values "
                       "side by side",
                       s);
            diag_hint(diags, "leave recompute out, or take mapping = joined");
            return refused(diags, sched, span);
        }
    }
    return true;
}
