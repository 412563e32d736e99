/* place_schedules.c: all presets side by side, for the registers that the network has. Times are predictions. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "balance.h"
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
    return made;
}

static Outcome try_preset(const Graph *written, const Settings *settings, const CostModel *model,
                          const PresetDef *preset)
{
    const Settings with = with_preset(settings, preset);
    return outcome(written, written->cut, written->ncuts, &with, model);
}

void report_schedules(const Graph *written, const Settings *settings, const CostModel *model, Text *out)
{
    static const char lines[] = "%-20s %9s %8s %7s %7s %6s %9s %9s %9s\n";
    Arena *arena = out->arena;
    text_printf(out, "%s, %d stage%s, machine %s, times %s\n\n", written->name, written->ncuts + 1,
                written->ncuts ? "s" : "", model->hardware->name, model->profile ? "profiled" : "analytic");
    text_printf(out, lines, "schedule", "step", "speed-up", "bubble", "stale", "by", "a stage", "all", "traffic");
    for (int i = 0; i < preset_count; i++) {
        const Outcome o = try_preset(written, settings, model, &preset_table[i]);
        if (!o.legal) {
            text_printf(out, "%-20s not possible here\n", preset_table[i].name);
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
}

static json_t *made(json_t *value)
{
    if (!value) {
        fprintf(stderr, "pnetc: error: out of memory (JSON)\n");
        exit(1);
    }
    return value;
}

void report_schedules_json(const Graph *written, const Settings *settings, const CostModel *model, Text *out)
{
    json_t *list = made(json_array());
    for (int i = 0; i < preset_count; i++) {
        const Outcome o = try_preset(written, settings, model, &preset_table[i]);
        json_t *row = made(json_pack("{s:s, s:b}", "schedule", preset_table[i].name, "possible", o.legal));
        if (o.legal &&
            json_object_update_new(row, json_pack("{s:f, s:f, s:f, s:f, s:i, s:I, s:I, s:I}", "step_seconds", o.step,
                                                  "speedup", o.speedup, "bubble", o.bubble, "stale_fraction",
                                                  o.stale_fraction, "staleness", o.most_stale, "largest_stage_bytes",
                                                  (json_int_t)o.most_bytes, "static_bytes", (json_int_t)o.static_bytes,
                                                  "traffic_bytes", (json_int_t)o.traffic_bytes)))
            made(NULL);
        if (json_array_append_new(list, row))
            made(NULL);
    }
    json_t *top =
        made(json_pack("{s:s, s:i, s:s, s:s, s:o}", "network", written->name, "stages", written->ncuts + 1, "machine",
                       model->hardware->name, "source", model->profile ? "profiled" : "analytic", "schedules", list));
    char *text = json_dumps(top, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
    if (!text)
        made(NULL);
    text_printf(out, "%s\n", text);
    free(text);
    json_decref(top);
}
