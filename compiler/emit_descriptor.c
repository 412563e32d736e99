/* emit_descriptor.c: the end of stage<k>.c: the const pn_stage_def by which the runtime knows the stage. */
#include "emit_state.h"

#include <string.h>

typedef VEC(const char *) Words;

static void channel_row(Text *out, const char *field, const Words *channels)
{
    if (!channels->count)
        return;
    text_printf(out, "    .%s = (pn_channel *[]){", field);
    text_wrapped(out, channels->at, channels->count, ", ", "        ", 20 + (int)strlen(field));
    text_printf(out, "}, .n%s = %d,\n", field, channels->count);
}

/* What the def is of: a whole stage, or a half. */
typedef enum { OF_WHOLE, OF_FORWARD, OF_BACKWARD } Of;

static void channel_rows(Emit *e, Of of, Text *out)
{
    static const struct {
        const char *field, *channel;
        bool out;
    } rows[] = {{"takes", "forward", false},          {"gives", "forward", true},
                {"takes_gradient", "gradient", true}, {"gives_gradient", "gradient", false},
                {"takes_test", "test", false},        {"gives_test", "test", true}};
    for (int r = 0; r < COUNT(rows); r++) {
        if (of != OF_WHOLE && (of == OF_FORWARD) != !strcmp(rows[r].channel, "forward"))
            continue;
        Words channels = {0};
        for (int i = 0; i < e->touched.count; i++) {
            const StageValue *value = &e->value[e->touched.at[i]];
            const Edge *edge = rows[r].out ? value->out : value->in;
            if (edge && (strcmp(rows[r].channel, "gradient") || edge->gradient))
                *vec_push(e->arena, &channels) =
                    arena_printf(e->arena, "&%s.%s", e->register_name[rows[r].out ? value->out_index : value->in_index],
                                 rows[r].channel);
        }
        channel_row(out, rows[r].field, &channels);
    }
}

static bool has_params(const Emit *e)
{
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId id = stage->first; id < stage->last; id++)
        if (e->graph->node[id].nparams)
            return true;
    return false;
}

/* Adds the size of an array; of `slots` slots at an address on a device. */
static void add_size(Emit *e, Words *sizes, const char *name, int slots)
{
    *vec_push(e->arena, sizes) = !e->device   ? arena_printf(e->arena, "sizeof %s", name)
                                 : slots == 1 ? arena_printf(e->arena, "sizeof *%s", name)
                                              : arena_printf(e->arena, "%d * sizeof *%s", slots, name);
}

/* Adds the size of a flat array of floats. */
static void add_flat(Emit *e, Words *sizes, const char *name, const char *count)
{
    *vec_push(e->arena, sizes) =
        e->device ? arena_printf(e->arena, "%s * sizeof *%s", count, name) : arena_printf(e->arena, "sizeof %s", name);
}

static void register_sizes(Emit *e, Words *sizes)
{
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (!value->out)
            continue;
        const char *name = e->register_name[value->out_index];
        const RegisterPlan *reg = &e->plan->reg[value->out_index];
        add_size(e, sizes, arena_printf(e->arena, "%s_value", name), reg->forward_slots);
        if (value->out->gradient)
            add_size(e, sizes, arena_printf(e->arena, "%s_gradient", name), reg->gradient_slots);
        add_size(e, sizes, arena_printf(e->arena, "%s_test", name), reg->test_slots);
    }
}

/* sizeof of every buffer that the file declares and of the registers it gives: measured by the C compiler, to be held
 * against the plan. */
static void sizes_row(Text *out, Words *sizes)
{
    static const char field[] = "    .static_bytes = ";
    if (!sizes->count)
        *vec_push(out->arena, sizes) = "0";
    text_printf(out, "%s", field);
    text_wrapped(out, sizes->at, sizes->count, " + ", "        ", (int)strlen(field));
    text_printf(out, ",\n");
}

/* The buffers of this file that values have. */
static void value_sizes(Emit *e, Words *sizes)
{
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->saved)
            add_size(e, sizes, value->name, value->saved->slots);
        if (value->again)
            add_size(e, sizes, value->again_name, 1);
        if (value->gradient && value->gradient->kind == BUFFER_KEPT)
            add_size(e, sizes, value->gradient_name, value->gradient->slots);
        if (value->aux)
            add_size(e, sizes, value->aux_name, value->aux->slots);
    }
}

/* What only the first of several replicas has: `sizes`; what each has: `own`, too. */
static void weight_sizes(Emit *e, Words *sizes, Words *own)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    if (has_params(e)) {
        add_size(e, sizes, "weights", plan->versions);
        if (plan->masters)
            add_flat(e, sizes, "masters", "WEIGHTS");
        add_flat(e, sizes, "dw", plan->masters ? "VERSION" : "WEIGHTS");
        add_flat(e, own, "dw", "WEIGHTS");
        if (plan->sums) {
            add_flat(e, sizes, "gradient_sum", "WEIGHTS");
            add_flat(e, own, "gradient_sum", "WEIGHTS");
        }
        if (plan->states)
            add_size(e, sizes, "state", plan->states);
        if (plan->ahead)
            add_size(e, sizes, "ahead", plan->ahead);
    }
    if (plan->running_floats) {
        add_flat(e, sizes, "running", "RUNNING");
        add_flat(e, own, "running", "RUNNING");
    }
}

/* Weights and state, and sizeof of every array that the file declares and of the registers it gives: measured by the C
 * compiler, to be held against the plan. Replica 0 declares what the others share; of halves the forward one has rings
 * and registers, the backward one weights. */
static void memory_rows(Emit *e, Of of, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    const bool params = has_params(e);
    Words sizes = {0}, own = {0};
    if (of != OF_BACKWARD)
        value_sizes(e, &sizes);
    if (of == OF_FORWARD && plan->forward_transient_bytes)
        add_flat(e, &sizes, "t_forward", "T_FORWARD");
    if (of != OF_FORWARD && plan->transient_bytes)
        add_flat(e, &sizes, "t", "T");
    for (int i = 0; i < sizes.count; i++)
        *vec_push(e->arena, &own) = sizes.at[i];
    if (of != OF_FORWARD)
        weight_sizes(e, &sizes, &own);
    if (of != OF_BACKWARD)
        register_sizes(e, &sizes);
    if (e->replicas == 1) {
        sizes_row(out, &sizes);
        return;
    }
    text_printf(out, "#if REPLICA == 0\n");
    if (params)
        text_printf(out, "    .weights = weights[0],%s\n", plan->states ? " .state = state[0]," : "");
    if (params && cure_accumulates(e->sched->settings))
        text_printf(out, "    .gathered = state[%d],\n", optimizer_states(&e->sched->settings->train.optimizer));
    sizes_row(out, &sizes);
    text_printf(out, "#else\n");
    sizes_row(out, &own);
    text_printf(out, "#endif\n");
}

/* ---- what corrects for staleness: coefficients of cure.h, one row a phase ---- */

static bool cured(const Emit *e)
{
    for (int i = 0; i < e->sched->nphases; i++)
        if (e->sched->phase[i].cure[e->stage].active && has_params(e))
            return true;
    return false;
}

static void cures(Emit *e, Text *out)
{
    text_printf(out, "\n/* What corrects for staleness, per phase: known before the run */\n"
                     "static const pn_cure cure[] = {\n");
    for (int i = 0; i < e->sched->nphases; i++) {
        const Phase *phase = &e->sched->phase[i];
        const Cure *cure = &phase->cure[e->stage];
        Words words = {0};
        if (!cure->active) {
            text_printf(out, "    {.active = false}, /* %s */\n", phase->choice->preset);
            continue;
        }
        const struct {
            const char *field;
            double value, otherwise;
        } field[] = {
            {"momentum", cure->momentum, -1},
            {"rate_factor", cure->rate_factor, -1},
            {"on_velocity", cure->on_velocity, -1},
            {"on_gradient", cure->on_gradient, 0},
            {"forward", cure->forward, 0},
            {"backward", cure->backward, 0},
            {"memory", cure->memory, 0},
            {"back", cure->back, 0},
            {"accumulate", cure->accumulate, 0},
            {"divisor", cure->divisor, 0},
            {"reschedule", cure->reschedule, 0},
            {"reschedule_most", cure->reschedule_most, 0},
            {"warmup", cure->warmup, 0},
        };
        *vec_push(e->arena, &words) = ".active = true";
        for (int k = 0; k < COUNT(field); k++)
            if (field[k].value != field[k].otherwise)
                *vec_push(e->arena, &words) =
                    arena_printf(e->arena, ".%s = %s", field[k].field, number_text(e->arena, field[k].value));
        text_printf(out, "    {");
        text_wrapped(out, words.at, words.count, ", ", "     ", 5);
        text_printf(out, "}, /* %s */\n", phase->choice->preset);
    }
    text_printf(out, "};\n");
}

/* "conv1 pool1" */
static const char *what_text(Emit *e)
{
    enum { LONG = 60 };
    const Stage *stage = &e->pipe->stage[e->stage];
    Text what = text_new(e->arena);
    for (NodeId id = stage->first; id < stage->last && what.length < LONG; id++)
        if (e->graph->node[id].op)
            text_printf(&what, "%s%s", what.length ? " " : "", e->graph->node[id].name);
    if (what.length >= LONG)
        text_printf(&what, " ...");
    return what.data;
}

/* Weights, what trains them, what is kept beside them. */
static void weight_rows(Emit *e, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    const bool params = has_params(e);
    if (params && e->device)
        text_printf(out, "    .param = param, .nparams = PARAMS, .weight_floats = WEIGHTS,%s\n",
                    plan->masters ? " .version_floats = VERSION, .bf16_at = BF16_AT," : "");
    else if (params)
        text_printf(out,
                    "    .param = param, .nparams = PARAMS,\n    %s.weight_floats = WEIGHTS, .gradient = dw,%s%s\n",
                    e->replicas > 1 ? "" : ".weights = weights[0], ", plan->sums ? " .sum = gradient_sum," : "",
                    e->replicas == 1 && plan->states ? " .state = state[0]," : "");
    if (params && plan->ahead)
        text_printf(out, "    %s.aheads = %d,\n", e->device ? "" : ".ahead = ahead[0], ", plan->ahead);
    if (cured(e))
        text_printf(out, "    .cure = cure,\n");
    if (params && cure_accumulates(e->sched->settings) && !e->device && e->replicas == 1)
        text_printf(out, "    .gathered = state[%d],\n", optimizer_states(&e->sched->settings->train.optimizer));
    if (plan->running_floats && !e->device)
        text_printf(out, "    .running = running,%s\n", e->replicas > 1 ? " .running_floats = RUNNING," : "");
}

static void descriptor(Emit *e, Of of, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    const char *symbol = stage_symbol(e, e->stage, of == OF_BACKWARD);
    if (e->replicas > 1)
        symbol = arena_printf(e->arena, "PN_REPLICA_OF(%s_stage%d, REPLICA)", e->net, e->stage);
    text_printf(out, "\nconst pn_stage_def %s = {\n    .what = %s,\n", symbol, quoted(e->arena, what_text(e)));
    if (e->replicas > 1)
        text_printf(out, "    .replica = REPLICA, .replicas = %d,\n", e->replicas);
    if (of == OF_FORWARD)
        text_printf(out, "    .half = PN_FORWARD_HALF, .init = init_forward, .forward = forward,\n");
    else if (of == OF_BACKWARD)
        text_printf(out, "    .half = PN_BACKWARD_HALF, .init = init_backward, .backward = backward, .test = test,\n");
    else
        text_printf(out, "    .init = init, .forward = forward,%s .backward = backward, .test = test,\n",
                    e->sched->recompute[e->stage] ? " .recompute = recompute," : "");
    if (e->sched->late[e->stage] && of != OF_FORWARD)
        text_printf(out, "    .weight_gradients = weight_gradients, .early_floats = %lld,\n",
                    (long long)plan->early_floats);
    if (e->device)
        text_printf(out, "    .place = place,\n");
    if (of != OF_FORWARD)
        weight_rows(e, out);
    else if (has_params(e))
        text_printf(out, "    .weights = weights[0], .weight_floats = WEIGHTS,\n");
    if (of == OF_FORWARD && has_params(e) && plan->ahead)
        text_printf(out, "    .ahead = ahead[0], .aheads = %d, .gradient = dw,%s\n", plan->ahead,
                    plan->states ? " .state = state[0]," : "");
    if (of == OF_FORWARD && cured(e))
        text_printf(out, "    .cure = cure,\n");
    text_printf(out, "    .versions = %d, .states = %d, .ring = %d,\n", plan->versions, plan->states,
                e->sched->ring[e->stage]);
    channel_rows(e, of, out);
    memory_rows(e, of, out);
    text_printf(out, "};\n");
}

void emit_descriptor(Emit *e, Text *out)
{
    if (cured(e))
        cures(e, out);
    if (e->halves)
        descriptor(e, OF_FORWARD, out);
    descriptor(e, e->halves ? OF_BACKWARD : OF_WHOLE, out);
}
