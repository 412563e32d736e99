/* emit_place.c: place(): for a target with memory of its own, the addresses of a stage's buffers, in the order of the
 * memory map (plan.txt), and the areas of its tensors and registers that refer to them. */
#include "emit_state.h"

static void place_ring(Emit *e, Text *out, const char *name, int slots)
{
    text_printf(out, "    %s = pn_place(stage, %s, sizeof *%s, %d);\n", name, quoted(e->arena, name), name, slots);
}

static void place_flat(Text *out, const char *name, const char *count)
{
    text_printf(out, "    %s = pn_place(stage, \"%s\", %s * sizeof *%s, 1);\n", name, name, count, name);
}

static void place_weights(Emit *e, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    const bool trained = plan->weight_floats > 0;
    if (!trained)
        return;
    place_ring(e, out, "weights", plan->versions);
    if (plan->masters)
        place_flat(out, "masters", "WEIGHTS");
    place_flat(out, "dw", plan->masters ? "VERSION" : "WEIGHTS");
    if (plan->sums)
        place_flat(out, "gradient_sum", "WEIGHTS");
    if (plan->states)
        place_ring(e, out, "state", plan->states);
    if (plan->ahead)
        place_ring(e, out, "ahead", plan->ahead);
    if (plan->running_floats)
        place_flat(out, "running", "RUNNING");
    text_printf(out, "    pn_place_weights(stage, &(pn_weights){weights[0], %s, dw, %s, %s, %s, %s});\n",
                plan->masters ? "masters" : "NULL", plan->sums ? "gradient_sum" : "NULL",
                plan->states ? "state[0]" : "NULL", plan->ahead ? "ahead[0]" : "NULL",
                plan->running_floats ? "running" : "NULL");
}

/* The slots of the registers that this stage gives, and the gradients that come back in them. */
static void place_registers(Emit *e, Text *out)
{
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (!value->out)
            continue;
        const char *name = e->register_name[value->out_index];
        const RegisterPlan *reg = &e->plan->reg[value->out_index];
        const struct {
            const char *channel, *array;
            int slots;
        } channels[] = {{"forward", "value", reg->forward_slots},
                        {"gradient", "gradient", value->out->gradient ? reg->gradient_slots : 0},
                        {"test", "test", reg->test_slots}};
        for (int c = 0; c < COUNT(channels); c++) {
            if (!channels[c].slots)
                continue;
            const char *array = arena_printf(e->arena, "%s_%s", name, channels[c].array);
            place_ring(e, out, array, channels[c].slots);
            text_printf(out, "    %s.%s.area.memory = %s;\n", name, channels[c].channel, array);
        }
    }
}

static void memory_row(Text *out, const char *tensor, const char *area, const char *address)
{
    text_printf(out, "    tensor.%s.%s.memory = %s;\n", tensor, area, address);
}

/* As area_text of emit_stage.c chooses them. */
static void tensor_rows(Emit *e, Text *out, const StageValue *value)
{
    const bool crosses = value->place.kind == PLACE_REGISTER_IN || value->place.kind == PLACE_REGISTER_OUT;
    const char *reg = crosses ? e->register_name[value->place.index] : NULL;
    if (value->saved)
        memory_row(out, value->name, "value", value->name);
    else if (value->transient)
        memory_row(out, value->name, "value", arena_printf(e->arena, "t + %s", value->name));
    else if (crosses)
        memory_row(out, value->name, "value", arena_printf(e->arena, "%s_value", reg));
    if (value->gradient_name && value->gradient && !value->in)
        memory_row(out, value->name, "gradient", arena_printf(e->arena, "t + %s", value->gradient_name));
    else if (value->gradient_name && crosses)
        memory_row(out, value->name, "gradient", arena_printf(e->arena, "%s_gradient", reg));
    if (value->again)
        memory_row(out, value->name, "again", value->again_name);
    if (value->partial)
        memory_row(out, value->name, "partial", arena_printf(e->arena, "t + %s", value->partial_name));
    if (value->test)
        memory_row(out, value->name, "test", arena_printf(e->arena, "t + %s", value->test_name));
    else if (value->test_place.kind == PLACE_REGISTER_IN || value->test_place.kind == PLACE_REGISTER_OUT)
        memory_row(out, value->name, "test",
                   arena_printf(e->arena, "%s_test", e->register_name[value->test_place.index]));
}

void emit_place(Emit *e, Text *out)
{
    text_printf(out, "\nstatic void place(pn_stage *stage)\n{\n");
    const size_t empty = out->length;
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->saved)
            place_ring(e, out, value->name, value->saved->slots);
        if (value->again)
            place_ring(e, out, value->again_name, 1);
        if (value->aux)
            place_ring(e, out, value->aux_name, value->aux->slots);
    }
    if (e->plan->stage[e->stage].transient_bytes)
        place_flat(out, "t", "T");
    place_weights(e, out);
    place_registers(e, out);
    if (out->length == empty)
        text_printf(out, "    (void)stage;\n");
    for (int i = 0; i < e->touched.count; i++)
        if (e->touched.at[i] != e->graph->loss)
            tensor_rows(e, out, &e->value[e->touched.at[i]]);
    text_printf(out, "}\n");
}
