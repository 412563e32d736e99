/* place_schedules.c: all presets side by side, for the registers that the network has. Times are predictions. */
#include <string.h>

#include "balance.h"
#include "json_text.h"
#include "place_report.h"

/* The settings with this preset as the only phase. */
static Settings with_preset(const Settings *settings, const PresetDef *preset)
{
    Settings made = *settings;
    PhaseChoice phase = {.preset = preset->name, .span = settings->pipeline.phase[0].span};
    for (int i = 0; i < order_count; i++)
        if (!strcmp(order_table[i]->name, preset->order))
            phase.order = order_table[i];
    for (int i = 0; i < rule_count; i++)
        if (!strcmp(rule_table[i]->name, preset->rule))
            phase.rule = rule_table[i];
    if (!phase.order || !phase.rule)
        ICE("preset %s names an unknown order or rule", preset->name);
    made.pipeline.phase[0] = phase;
    made.pipeline.nphases = 1;
    made.pipeline.recompute = phase.rule->recomputes;
    made.pipeline.recomputes = NULL;
    return made;
}

bool preset_lacks_slices(const Graph *written, const Settings *settings, const PresetDef *preset)
{
    return written->microbatches == 1 && with_preset(settings, preset).pipeline.phase[0].order->slices;
}

Outcome outcome_of_preset(const Graph *written, const Settings *settings, const CostModel *model,
                          const PresetDef *preset)
{
    const Settings with = with_preset(settings, preset);
    if (preset_lacks_slices(written, settings, preset))
        return (Outcome){0};
    return outcome(written, written->cut, written->ncuts, &with, model);
}

void report_schedules(const Graph *written, const Settings *settings, const CostModel *model, Text *out)
{
    static const char lines[] = "%-20s %9s %8s %7s %7s %6s %9s %9s %9s\n";
    Arena *arena = out->arena;
    bool unsliced = false;
    text_printf(out, "%s, %d stage%s", written->name, written->ncuts + 1, written->ncuts ? "s" : "");
    if (written->replicas && written->nreplicas == written->ncuts + 1)
        text_printf(out, ", replicas %s", replicas_text(arena, written->replicas, written->nreplicas));
    text_printf(out, ", machine %s, times %s", model->hardware->name, model->profile ? "profiled" : "analytic");
    if (written->microbatches > 1)
        text_printf(out, ", %lld microbatches of %lld", (long long)written->microbatches, (long long)written->batch);
    text_printf(out, "\n\n");
    text_printf(out, lines, "schedule", "step", "speed-up", "bubble", "stale", "by", "a stage", "all", "traffic");
    for (int i = 0; i < preset_count; i++) {
        const Outcome o = outcome_of_preset(written, settings, model, &preset_table[i]);
        if (!o.legal) {
            const bool slices = preset_lacks_slices(written, settings, &preset_table[i]);
            text_printf(out, "%-20s %s\n", preset_table[i].name,
                        slices ? "needs microbatches (*)" : "not possible here");
            unsliced |= slices;
            continue;
        }
        text_printf(out, lines, preset_table[i].name, human_seconds(arena, o.step),
                    arena_printf(arena, "%.2f", o.speedup), arena_printf(arena, "%.0f %%", 100 * o.bubble),
                    arena_printf(arena, "%.3g %%", 100 * o.stale_fraction), arena_printf(arena, "%d", o.most_stale),
                    human_bytes(arena, o.most_bytes), human_bytes(arena, o.static_bytes),
                    human_bytes(arena, o.traffic_bytes));
    }
    text_printf(out, "\nstep: of a minibatch, in the steady state.  bubble: mean share of time that workers wait\n");
    text_printf(out,
                "stale, by: share of the weights, by up to so many updates.  traffic: a minibatch, there and back\n");
    if (unsliced)
        text_printf(out, "(*): --set 'pipeline.schedule=gpipe(microbatches = 8)' shows all schedules with 8 of them\n");
}

void report_schedules_json(const Graph *written, const Settings *settings, const CostModel *model, Text *out)
{
    json_t *list = json_made(json_array());
    for (int i = 0; i < preset_count; i++) {
        const Outcome o = outcome_of_preset(written, settings, model, &preset_table[i]);
        json_t *row = json_made(json_pack("{s:s, s:b}", "schedule", preset_table[i].name, "possible", o.legal));
        if (o.legal) {
            json_put(row, "workers", json_integer(o.workers));
            json_put(row, "step_seconds", json_real(o.step));
            json_put(row, "speedup", json_real(o.speedup));
            json_put(row, "bubble", json_real(o.bubble));
            json_put(row, "stale_fraction", json_real(o.stale_fraction));
            json_put(row, "staleness", json_integer(o.most_stale));
            json_put(row, "largest_stage_bytes", json_integer(o.most_bytes));
            json_put(row, "static_bytes", json_integer(o.static_bytes));
            json_put(row, "traffic_bytes", json_integer(o.traffic_bytes));
        }
        json_push(list, row);
    }
    json_t *top =
        json_made(json_pack("{s:s, s:i, s:s, s:s}", "network", written->name, "stages", written->ncuts + 1, "machine",
                            model->hardware->name, "source", model->profile ? "profiled" : "analytic"));
    json_put(top, "schedules", list);
    json_print(top, out);
}
