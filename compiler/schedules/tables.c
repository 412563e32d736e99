/* tables.c: the tables of orders, weight rules, presets and corrections, from the .def files of this folder, their list
 * for people, and what an order is written with. */
#include "correction.h"
#include "order.h"

#include <string.h>

#define ORDER(name) extern const OrderDef order_##name;
#include "schedules/orders.def"
#undef ORDER
#define RULE(name) extern const RuleDef rule_##name;
#include "schedules/rules.def"
#undef RULE

const OrderDef *const order_table[] = {
#define ORDER(name) &order_##name,
#include "schedules/orders.def"
#undef ORDER
};
const int order_count = COUNT(order_table);

const RuleDef *const rule_table[] = {
#define RULE(name) &rule_##name,
#include "schedules/rules.def"
#undef RULE
};
const int rule_count = COUNT(rule_table);

const PresetDef preset_table[] = {
#define PRESET(name, order, rule, doc, source) {#name, order, rule, doc, source},
#include "schedules/presets.def"
#undef PRESET
};
const int preset_count = COUNT(preset_table);

#define CORRECTION(name) extern const CorrectionDef correction_##name;
#include "schedules/corrections.def"
#undef CORRECTION
const CorrectionDef *const correction_table[] = {
#define CORRECTION(name) &correction_##name,
#include "schedules/corrections.def"
#undef CORRECTION
};
const int correction_count = COUNT(correction_table);

void correction_list(Text *out)
{
    text_printf(out,
                "\ncorrections of staleness (cure = auto, none, NAME or (NAME, NAME, ...); stages with delay d)\n");
    for (int i = 0; i < correction_count; i++) {
        const CorrectionDef *def = correction_table[i];
        text_printf(out, "  %-17s  %s\n  %-17s  %s\n", def->name, def->doc, "", def->source);
        for (int k = 0; k < CORRECTION_ARGS && def->arg[k].key; k++)
            text_printf(out, "  %-17s  %s = %.15g: %s; %.15g to %.15g%s\n", "", def->arg[k].key, def->arg[k].preset,
                        def->arg[k].doc, def->arg[k].low, def->arg[k].high, def->whole ? ", whole" : "");
    }
}

static const char step_letters[STEP_KINDS + 1] = "FBWUT";

char step_letter(StepKind kind)
{
    return step_letters[kind];
}

StepKind step_kind(char letter)
{
    const char *at = letter ? strchr(step_letters, letter) : NULL;
    if (!at)
        ICE("an order with a step '%c'", letter);
    return (StepKind)(at - step_letters);
}

void order_add(StageOrder *order, int times, const char *letters)
{
    const size_t length = strlen(letters);
    size_t at = strlen(order->body);
    for (int i = 0; i < times; i++, at += length) {
        if (at + length > MAX_BODY)
            ICE("an order with a body of more than %d steps", MAX_BODY);
        memcpy(order->body + at, letters, length);
    }
    order->body[at] = '\0';
}

bool order_splits(const StageOrder *order)
{
    return strchr(order->body, step_letter(STEP_WEIGHTS)) != NULL;
}

void schedule_list(Text *out)
{
    text_printf(out, "schedules (schedule = NAME, NAME(microbatches = n), or hybrid(NAME, steps = n, then = NAME))\n");
    for (int i = 0; i < preset_count; i++) {
        const PresetDef *preset = &preset_table[i];
        text_printf(out, "  %-18s  %s\n", preset->name, preset->doc);
        text_printf(out, "  %-18s  = order %s, weights %s; %s\n", "", preset->order, preset->rule, preset->source);
    }
    text_printf(out, "\norders: in which sequence a stage works\n");
    for (int i = 0; i < order_count; i++)
        text_printf(out, "  %-18s  %s\n  %-18s  %s\n", order_table[i]->name, order_table[i]->doc, "",
                    order_table[i]->source);
    text_printf(out, "\nweight rules: which version of the weights a forward and a backward read\n");
    for (int i = 0; i < rule_count; i++)
        text_printf(out, "  %-18s  %s\n  %-18s  %s\n", rule_table[i]->name, rule_table[i]->doc, "",
                    rule_table[i]->source);
    correction_list(out);
}
