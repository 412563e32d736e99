/* sched_check.c: what must hold of a Sched; its text. */
#include "sched.h"

void sched_check(const Sched *sched)
{
    const Pipe *pipe = sched->pipe;
    for (int s = 0; s < pipe->nstages; s++) {
        if (sched->ring[s] < 1 || sched->versions[s] < 1 || sched->staleness[s] < 0)
            ICE("sched: stage %d: ring %d, versions %d, staleness %d", s, sched->ring[s], sched->versions[s],
                sched->staleness[s]);
        for (int p = 0; p < sched->nphases; p++)
            if (sched->phase[p].staleness[s] > sched->staleness[s] ||
                sched->phase[p].stage[s].warmup >= sched->ring[s] + 1)
                ICE("sched: stage %d exceeds its ring in phase %d", s, p);
    }
    for (int e = 0; e < pipe->nedges; e++)
        if (sched->forward_slots[e] < 1 || sched->test_slots[e] < 1 ||
            (sched->gradient_slots[e] > 0) != pipe->edge[e].gradient)
            ICE("sched: register %d has %d, %d, %d slots", e, sched->forward_slots[e], sched->gradient_slots[e],
                sched->test_slots[e]);
}

static void dump_order(const StageOrder *order, Text *out)
{
    if (order->warmup > 0)
        text_printf(out, "%d F, then ", order->warmup);
    for (const char *letter = order->body; *letter; letter++)
        text_printf(out, "%s%c", letter > order->body ? " " : "", *letter);
}

void sched_dump(const Sched *sched, Text *out)
{
    const Pipe *pipe = sched->pipe;
    const int shown = pipe->graph->microbatches > 1 ? 2 : 6;
    text_printf(out, "sched %s: %d phase%s, stale fraction %.2f %%\n", pipe->graph->name, sched->nphases,
                sched->nphases == 1 ? "" : "s", 100 * sched->stale_fraction);
    for (int p = 0; p < sched->nphases; p++) {
        const Phase *phase = &sched->phase[p];
        text_printf(out, "phase %d: %s (order %s, weights %s), ", p, phase->choice->preset, phase->choice->order->name,
                    phase->choice->rule->name);
        text_printf(out, "%s\n", phase_length(out->arena, sched, p));
        for (int s = 0; s < pipe->nstages; s++) {
            text_printf(out, "  stage %d: ", s);
            dump_order(&phase->stage[s], out);
            text_printf(out, "; staleness %d\n", phase->staleness[s]);
            if (phase->cure[s].active)
                text_printf(out, "           %s\n", cure_text(out->arena, &phase->cure[s]));
        }
    }
    for (int s = 0; s < pipe->nstages; s++)
        text_printf(out, "stage %d: staleness %d, ring %d, %d version%s of the weights%s%s\n", s, sched->staleness[s],
                    sched->ring[s], sched->versions[s], sched->versions[s] == 1 ? "" : "s",
                    pipe->stage[s].halves ? ", in halves" : "",
                    sched->recompute[s] ? ", recomputes"
                    : sched->late[s]    ? arena_printf(out->arena, ", weight parts %d behind", sched->late[s] - 1)
                                        : "");
    for (int e = 0; e < pipe->nedges; e++)
        text_printf(out, "register %s, %d -> %d: slots %d forward, %d gradient, %d test\n",
                    pipe->graph->node[pipe->edge[e].value].value_name, pipe->edge[e].from, pipe->edge[e].from + 1,
                    sched->forward_slots[e], sched->gradient_slots[e], sched->test_slots[e]);
    text_printf(out, "a run of %d minibatches", shown);
    if (pipe->graph->microbatches > 1)
        text_printf(out, " of %lld microbatches", (long long)pipe->graph->microbatches);
    text_printf(out, ":\n");
    for (int s = 0; s < pipe->nstages; s++) {
        int count;
        const Step *step = sched_steps(out->arena, sched, s, shown, &count);
        text_printf(out, "  stage %d:", s);
        for (int i = 0; i < count; i++)
            text_printf(out, " %c%lld", step_letter(step[i].kind), (long long)step[i].n);
        text_printf(out, "\n");
    }
}
