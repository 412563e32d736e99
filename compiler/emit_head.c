/* emit_head.c: the comment at the top of a stage file: what, where, when, how big, how much work. */
#include "emit_state.h"

#include <string.h>

typedef VEC(const char *) Words;

static Words layer_words(Emit *e)
{
    enum { MOST = 40 };
    const Stage *stage = &e->pipe->stage[e->stage];
    Words words = {0};
    int nodes = 0;
    for (NodeId id = stage->first; id < stage->last; id++) {
        const Node *node = &e->graph->node[id];
        if (!node->op)
            continue;
        nodes++;
        *vec_push(e->arena, &words) =
            node->fused ? arena_printf(e->arena, "%s %s", node->name, node->fused) : node->name;
    }
    if (nodes > MOST) { /* too many to read: both ends */
        const char *last = words.at[nodes - 1];
        words.count = 3;
        *vec_push(e->arena, &words) = "...";
        *vec_push(e->arena, &words) = last;
        *vec_push(e->arena, &words) = arena_printf(e->arena, "(%d ops)", nodes);
    }
    return words;
}

static void row(Text *out, const char *label, const char *text)
{
    text_printf(out, "\n *   %-9s %s", label, text);
}

static void schedule_rows(Emit *e, Text *out)
{
    for (int i = 0; i < e->sched->nphases; i++) {
        const Phase *phase = &e->sched->phase[i];
        const PhaseChoice *choice = phase->choice;
        const int stale = phase->staleness[e->stage];
        Text text = text_new(e->arena);
        if (choice->plateau_tests)
            text_printf(&text, "%s ", phase_length(e->arena, e->sched, i));
        else if (e->sched->nphases > 1 && choice->minibatches)
            text_printf(&text, "for %lld minibatches ", (long long)choice->minibatches);
        else if (e->sched->nphases > 1)
            text_printf(&text, "then ");
        text_printf(&text, "%s: order %s, weights %s; ", choice->preset, choice->order->name, choice->rule->name);
        if (stale)
            text_printf(&text, "backward %d update%s after its forward%s", stale, stale == 1 ? "" : "s",
                        choice->rule->backward_reads_own ? ", with the weights that forward read" : "");
        else
            text_printf(&text, "no staleness");
        if (e->sched->recompute[e->stage] && i + 1 == e->sched->nphases)
            text_printf(&text, "; keeps what it takes, and computes the rest again");
        row(out, i ? "" : "schedule", text.data);
        if (phase->cure[e->stage].active)
            row(out, "cure", cure_text(e->arena, &phase->cure[e->stage]));
    }
}

static void register_rows(Emit *e, Text *out)
{
    const char *takes = "takes", *gives = "gives";
    for (int i = 0; i < e->graph->ninputs; i++) {
        const NodeId id = e->graph->input[i];
        if (!e->value[id].touched)
            continue;
        row(out, takes, arena_printf(e->arena, "%s %s from the data", e->value[id].name, values_text(e, id)));
        takes = "";
    }
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < e->touched.count; i++) {
            const StageValue *value = &e->value[e->touched.at[i]];
            const Edge *edge = side ? value->out : value->in;
            if (!edge)
                continue;
            const RegisterPlan *reg = &e->plan->reg[side ? value->out_index : value->in_index];
            Text text = text_new(e->arena);
            text_printf(&text, "%s %s %s stage %d: %d slot%s of %lld B", value->name, values_text(e, value->id),
                        side ? "to" : "from", e->stage + (side ? 1 : -1), reg->forward_slots,
                        reg->forward_slots == 1 ? "" : "s", (long long)reg->slot_bytes);
            if (edge->gradient)
                text_printf(&text, "; its gradient %s: %d", side ? "comes back" : "goes back", reg->gradient_slots);
            if (value->in && value->out)
                text_printf(&text, "; %s", value->last_reader < 0 ? "only passed on" : "read and passed on");
            row(out, side ? gives : takes, text.data);
            *(side ? &gives : &takes) = "";
        }
}

static double flops(const Cost *cost, bool backward)
{
    return backward ? cost->backward_data + cost->backward_weights : cost->forward;
}

static void cost_row(Emit *e, Text *out)
{
    double all = 0;
    for (int s = 0; s < e->pipe->nstages; s++)
        all += flops(&e->pipe->stage[s].cost, false) + flops(&e->pipe->stage[s].cost, true);
    const Cost *cost = &e->pipe->stage[e->stage].cost;
    const double batch = (double)(e->graph->batch * e->graph->microbatches),
                 mine = flops(cost, false) + flops(cost, true);
    Text text = text_new(e->arena);
    text_printf(&text, "%sFLOP forward, %sFLOP backward a minibatch", human_count(e->arena, batch * flops(cost, false)),
                human_count(e->arena, batch * flops(cost, true)));
    if (e->pipe->nstages > 1 && all > 0)
        text_printf(&text, ": %.0f %% of the network", 100 * mine / all);
    row(out, "cost", text.data);
}

static void replica_row(Emit *e, Text *out)
{
    if (e->replicas > 1)
        row(out, "replicas",
            arena_printf(e->arena,
                         "%d, each for %lld of the %lld samples of a minibatch (below: of one); weights are shared, "
                         "gradients summed",
                         e->replicas, (long long)e->graph->batch, (long long)e->pipe->graph->batch));
}

static void halves_row(Emit *e, Text *out)
{
    if (e->halves)
        row(out, "halves",
            arena_printf(e->arena, "FS%d and BKS%d have a worker each: one does `forward`, the other all else",
                         e->stage + 1, e->pipe->nstages - e->stage));
}

static void memory_row(Emit *e, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    Text text = text_new(e->arena);
    text_printf(&text, "rings %lld B (%d in flight), transient %lld B", (long long)plan->saved_bytes,
                e->sched->ring[e->stage], (long long)plan->transient_bytes);
    if (e->halves)
        text_printf(&text, " + %lld B forward", (long long)plan->forward_transient_bytes);
    if (plan->weight_floats)
        text_printf(&text, ", weights %lld x (%s%d version%s, gradient%s, %d state%s%s)",
                    (long long)plan->weight_floats, plan->masters ? "f32 masters, " : "", plan->versions,
                    plan->versions == 1 ? "" : "s", plan->sums ? ", sum" : "", plan->states,
                    plan->states == 1 ? "" : "s",
                    plan->ahead ? arena_printf(e->arena, ", %d looked ahead", plan->ahead) : "");
    if (plan->running_floats)
        text_printf(&text, ", running statistics %lld", (long long)plan->running_floats);
    row(out, "memory", text.data);
}

void emit_stage_head(Emit *e, Text *out)
{
    Text title = text_new(e->arena);
    text_printf(&title, "/* %s, stage %d of %d: ", e->graph->name, e->stage, e->pipe->nstages);
    text_append(out, title.data, title.length);
    const Words words = layer_words(e);
    text_wrapped(out, words.at, words.count, " ", " *     ", (int)title.length);
    if (e->pipe->nstages > 1)
        text_printf(out, "   (FS%d and BKS%d of the paper)", e->stage + 1, e->pipe->nstages - e->stage);
    text_printf(out, "\n * Generated by pnetc from %s. Edit that file, not this one.\n *", e->source);
    schedule_rows(e, out);
    replica_row(e, out);
    halves_row(e, out);
    register_rows(e, out);
    cost_row(e, out);
    memory_row(e, out);
    text_printf(out, " */\n");
}
