/* emit_stage.c: stage<k>.c: its buffers and parameters as declarations, its tensors (emit_tensors.c), its functions, its
 * descriptor (emit_descriptor.c). */
#include "emit_state.h"

#include <string.h>

typedef long long Int;

/* ---- comments of buffers ---- */

/* The ops of this stage whose backward reads a value: "read back by conv1, conv2". */
static const char *backward_readers(Emit *e, NodeId id)
{
    const unsigned *needs = e->pipe->backward->needs;
    Text text = text_new(e->arena);
    int readers = 0;
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId reader = id; reader < stage->last && reader <= e->value[id].last_reader + 1; reader++) {
        const Node *node = &e->graph->node[reader];
        bool reads = reader == id && needs[reader] & NEEDS_OUT;
        for (int i = 0; i < node->nin && i < 2; i++)
            reads |= node->in[i] == id && needs[reader] & (i ? NEEDS_IN1 : NEEDS_IN0);
        if (reads && node->op && reader >= stage->first)
            text_printf(&text, "%s%s", readers++ ? ", " : "", node->name);
    }
    return text.length ? arena_printf(e->arena, ", read back by %s", text.data) : "";
}

/* "conv1" or "conv1's backward": a step of the stage's timeline (plan.h). */
static const char *step_text(Emit *e, int step)
{
    const Stage *stage = &e->pipe->stage[e->stage];
    const int nodes = stage->last - stage->first;
    const bool back = step >= nodes;
    const NodeId id = stage->first + (back ? 2 * nodes - 1 - step : step);
    if (id < stage->first || id >= stage->last)
        return "the ends";
    return arena_printf(e->arena, "%s%s", e->graph->node[id].name, back ? "'s backward" : "");
}

/* ---- declarations ---- */

/* A ring of slots: an array, or on a device the address of its first slot. */
static const char *ring_declared(Emit *e, const char *type, const char *name, int slots, int64_t items)
{
    if (e->device)
        return arena_printf(e->arena, "static %s (*%s)[%lld];", type, name, (Int)items);
    return arena_printf(e->arena, "static PN_BUFFER %s %s[%d][%lld];", type, name, slots, (Int)items);
}

/* "3 slots: "; "": the declaration says it. */
static const char *slots_text(Emit *e, const Buffer *buffer)
{
    return e->device ? arena_printf(e->arena, "%d slot%s: ", buffer->slots, buffer->slots == 1 ? "" : "s") : "";
}

static void saved_arrays(Emit *e, Text *out)
{
    VEC(Line) lines = {0};
    int width = 0;
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        const char *type = value_type(e, value->id);
        if (value->saved) {
            const char *code = ring_declared(e, type, value->name, value->saved->slots,
                                             value_items(e, value->id, value->saved->bytes));
            *vec_push(e->arena, &lines) =
                (Line){code, arena_printf(e->arena, "%s%s%s", slots_text(e, value->saved), values_text(e, value->id),
                                          backward_readers(e, value->id))};
        }
        if (value->again)
            *vec_push(e->arena, &lines) =
                (Line){ring_declared(e, type, value->again_name, 1, value_items(e, value->id, value->again->bytes)),
                       arena_printf(e->arena, "%s, for the backward of this stage", values_text(e, value->id))};
        if (value->gradient && value->gradient->kind == BUFFER_KEPT)
            *vec_push(e->arena, &lines) =
                (Line){ring_declared(e, type, value->gradient_name, value->gradient->slots,
                                     value_items(e, value->id, value->gradient->bytes)),
                       arena_printf(e->arena, "gradient %s, until the weight part", values_text(e, value->id))};
        if (value->aux) {
            const OpDef *op = e->graph->node[value->id].op;
            const bool bytes = !op->aux_type || !strcmp(op->aux_type, "uint8_t");
            const char *code = ring_declared(e, bytes ? "uint8_t" : op->aux_type, value->aux_name, value->aux->slots,
                                             value->aux->bytes / (bytes ? 1 : (Int)sizeof(float)));
            *vec_push(e->arena, &lines) =
                (Line){code, arena_printf(e->arena, "%sof %s for its backward", slots_text(e, value->aux),
                                          e->graph->node[value->id].name)};
        }
    }
    if (!lines.count)
        return;
    for (int i = 0; i < lines.count; i++)
        width = (int)strlen(lines.at[i].code) > width ? (int)strlen(lines.at[i].code) : width;
    if (e->device)
        text_printf(out, "\n/* On the device: addresses of slots that the backward reads back; `place` sets them */\n");
    else
        text_printf(out,
                    "\n/* Saved for the backward: [%s in flight][floats, with room for the layouts of the target] */\n",
                    slices_name(e));
    for (int i = 0; i < lines.count; i++)
        text_printf(out, "%-*s /* %s */\n", width, lines.at[i].code, lines.at[i].comment);
}

static void transient_row(Emit *e, Text *out, const Buffer *buffer, const char *name, const char *what)
{
    if (!buffer || !buffer_is_transient(buffer->kind))
        return;
    text_printf(out, "    %-28s /* %s%s%s, from %s",
                arena_printf(e->arena, "%s = %lld,", name, (Int)transient_items(e, buffer->offset)), what,
                *what ? " " : "", values_text(e, buffer->value), step_text(e, buffer->born));
    if (buffer->dies != buffer->born)
        text_printf(out, " to %s", step_text(e, buffer->dies));
    text_printf(out, " */\n");
}

/* An area of transients: `array`, with offsets that end in `size`. */
static void transient_area(Emit *e, Text *out, PlanArea area, const char *array, const char *size, int64_t bytes)
{
    if (!bytes)
        return;
    const bool forward = area == AREA_FORWARD;
    text_printf(out,
                "\n/* Transient%s: offsets in %s, in %s. What is never alive at the same time shares memory. */\n"
                "enum {\n",
                forward ? " of the forward half" : "", array,
                element_of_values(e->graph) == ELEMENT_F32 ? "floats" : "elements of 2 bytes");
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->transient && buffer_area(value->transient->kind, e->halves) == area)
            transient_row(e, out, value->transient, value->name, "");
        if (forward)
            continue;
        transient_row(e, out, value->gradient, value->gradient_name, "gradient");
        transient_row(e, out, value->partial, value->partial_name, "partial gradient");
    }
    for (int i = 0; !forward && i < e->touched.count; i++)
        transient_row(e, out, e->value[e->touched.at[i]].test, e->value[e->touched.at[i]].test_name, "test");
    text_printf(out, "    %s = %lld\n};\nstatic %s%s %s%s", size, (Int)transient_items(e, bytes),
                e->device ? "" : "PN_BUFFER ", transient_type(e), e->device ? "*" : "", array);
    text_printf(out, e->device ? ";\n" : "[%s];\n", size);
}

static void transient_areas(Emit *e, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    transient_area(e, out, AREA_FORWARD, "t_forward", "T_FORWARD", plan->forward_transient_bytes);
    transient_area(e, out, AREA_TRAIN, "t", "T", plan->transient_bytes);
}

static const char *init_fields(Emit *e, const Init *init)
{
    static const char *const kind[] = {[INIT_HE] = "PN_HE",
                                       [INIT_XAVIER] = "PN_XAVIER",
                                       [INIT_GAUSSIAN] = "PN_GAUSSIAN",
                                       [INIT_UNIFORM] = "PN_UNIFORM",
                                       [INIT_CONSTANT] = "PN_CONSTANT"};
    switch (init->kind) {
    case INIT_GAUSSIAN:
    case INIT_UNIFORM:
        return arena_printf(e->arena, "%s, .a = %s, .b = %s", kind[init->kind], number_text(e->arena, init->a),
                            number_text(e->arena, init->b));
    case INIT_CONSTANT:
        return arena_printf(e->arena, "%s, .a = %s", kind[init->kind], number_text(e->arena, init->a));
    case INIT_HE:
    case INIT_XAVIER:
        break;
    }
    return kind[init->kind];
}

static void param_row(Emit *e, Text *out, int index)
{
    const Param *param = &e->graph->param[index];
    text_printf(out, "    [%s] = {.name = %s, .rank = %d, .dim = {", e->index_name[index],
                quoted(e->arena, param->name), param->rank);
    for (int i = 0; i < param->rank; i++)
        text_printf(out, "%s%lld", i ? ", " : "", (Int)param->dim[i]);
    const ParamPlan *plan = &e->plan->param[index];
    const bool apart = !param->running && e->plan->stage[e->stage].masters; /* of a master, from where it is read */
    text_printf(out, "}, .offset = %s, .room = %lld,\n        ",
                apart ? arena_printf(e->arena, "%lld", (Int)plan->offset) : e->offset_name[index], (Int)plan->room);
    if (param->running)
        text_printf(out, ".init = %s, .running = true},\n", init_fields(e, &param->init));
    else
        text_printf(out, ".init = %s, .fan_in = %lld, .fan_out = %lld},\n", init_fields(e, &param->init),
                    (Int)param->fan_in, (Int)param->fan_out);
}

/* The parameters of the stage, ascending. */
static int *stage_params(Emit *e, int *count)
{
    VEC(int) params = {0};
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId id = stage->first; id < stage->last; id++)
        for (int i = 0; i < e->graph->node[id].nparams; i++)
            *vec_push(e->arena, &params) = e->graph->node[id].param[i];
    *count = params.count;
    return params.at;
}

/* An enum of where parameters, or running statistics, begin, and of their room. */
static void offsets(Emit *e, Text *out, bool running, const char *all, int64_t floats)
{
    int count;
    const int *param = stage_params(e, &count);
    VEC(const char *) words = {0};
    for (int i = 0; i < count; i++)
        if (e->graph->param[param[i]].running == running)
            *vec_push(e->arena, &words) =
                arena_printf(e->arena, "%s = %lld", e->offset_name[param[i]],
                             (Int)(running ? e->plan->param[param[i]].offset : e->plan->param[param[i]].read));
    *vec_push(e->arena, &words) = arena_printf(e->arena, "%s = %lld", all, (Int)floats);
    text_printf(out, "enum {\n    ");
    text_wrapped(out, words.at, words.count, ", ", "    ", 4);
    text_printf(out, "\n};\n");
}

static void weight_arrays(Emit *e, Text *out)
{
    const StagePlan *plan = &e->plan->stage[e->stage];
    int count;
    const int *param = stage_params(e, &count);
    if (!count)
        return;
    const char **word = arena_alloc(e->arena, (size_t)(count + 1) * sizeof *word);
    const char *version = plan->masters ? "VERSION" : "WEIGHTS";
    if (plan->masters) {
        text_printf(out,
                    "\n/* Weights as forward and backward read them, and their gradient: offsets in floats; two bf16 "
                    "in one float from BF16_AT on */\n");
        offsets(e, out, false, "VERSION", plan->version_floats);
        text_printf(out,
                    "enum { WEIGHTS = %lld, BF16_AT = %lld };\nstatic float *masters;            /* in f32: what "
                    "updates move */\n",
                    (Int)plan->weight_floats, (Int)plan->bf16_at);
    } else {
        text_printf(out, "\n/* Weights: offsets in floats, with room for the layouts of the target */\n");
        offsets(e, out, false, "WEIGHTS", plan->weight_floats);
    }
    if (e->device)
        text_printf(out,
                    "static float (*weights)[%s]; /* %d version%s */\n"
                    "static float *dw;                 /* their gradient */\n",
                    version, plan->versions, plan->versions == 1 ? "" : "s");
    else {
        if (e->replicas > 1)
            text_printf(out, "#if REPLICA == 0 /* shared by all replicas */\n");
        text_printf(out, "static PN_BUFFER float weights[%d][WEIGHTS]; /* [version] */\n", plan->versions);
        if (e->replicas > 1 && plan->states)
            text_printf(out, "static PN_BUFFER float state[%d][WEIGHTS];   /* of the optimiser */\n", plan->states);
        text_printf(out, "%sstatic PN_BUFFER float dw[WEIGHTS];         /* their gradient%s */\n",
                    e->replicas > 1 ? "#endif\n" : "", e->replicas > 1 ? ", of this slice of the minibatch" : "");
    }
    if (plan->sums)
        text_printf(out, "static %s; /* of the gradients of a minibatch's slices */\n",
                    e->device ? "float *gradient_sum" : "PN_BUFFER float gradient_sum[WEIGHTS]");
    if (plan->states && e->device)
        text_printf(out, "static float (*state)[WEIGHTS];   /* of the optimiser: %d */\n", plan->states);
    else if (plan->states && e->replicas == 1)
        text_printf(out, "static PN_BUFFER float state[%d][WEIGHTS];   /* of the optimiser */\n", plan->states);
    if (plan->ahead && e->device)
        text_printf(out, "static float (*ahead)[%s];   /* what forward or backward reads in their place: %d */\n",
                    version, plan->ahead);
    else if (plan->ahead)
        text_printf(
            out, "static PN_BUFFER float ahead[%d][WEIGHTS];   /* what forward or backward reads in their place */\n",
            plan->ahead);
    if (plan->running_floats) {
        text_printf(out, "\n/* Running statistics: not trained, one copy%s: they follow the backwards */\n",
                    e->replicas > 1 ? " a replica, the mean of all after an update" : "");
        offsets(e, out, true, "RUNNING", plan->running_floats);
        text_printf(out, "static %s;\n", e->device ? "float *running" : "PN_BUFFER float running[RUNNING]");
    }
    text_printf(out, "\nenum { ");
    for (int i = 0; i < count; i++)
        word[i] = e->index_name[param[i]];
    word[count] = "PARAMS";
    text_wrapped(out, word, count + 1, ", ", "       ", 7);
    text_printf(out, " };\nstatic pn_param param[PARAMS] = {\n");
    for (int i = 0; i < count; i++)
        param_row(e, out, param[i]);
    text_printf(out, "};\n");
}

/* ---- the file ---- */

void emit_stage_file(Emit *e, Text *out)
{
    Text functions = text_new(e->arena);
    emit_functions(e, &functions); /* first: what the hooks ask for decides about includes */
    emit_stage_head(e, out);
    if (e->function.count)
        text_printf(out, "#include <math.h>\n\n");
    text_printf(out, "#include \"%s.h\"\n", e->graph->name);
    if (e->replicas > 1)
        text_printf(out, "\n#ifndef REPLICA\n#define REPLICA 0 /* others: stage%d_replica<r>.c */\n#endif\n", e->stage);
    saved_arrays(e, out);
    transient_areas(e, out);
    weight_arrays(e, out);
    emit_tensors(e, out);
    if (e->device)
        emit_place(e, out);
    text_append(out, functions.data, functions.length);
    emit_descriptor(e, out);
}

void emit_replica_file(Emit *e, int replica, Text *out)
{
    const long long samples = (Int)e->graph->batch;
    text_printf(
        out,
        "/* %s, stage %d of %d, replica %d of %d: samples %lld to %lld of each minibatch, in buffers of its own\n"
        " * Generated by pnetc from %s. Edit that file, not this one. */\n"
        "#define REPLICA %d\n#include \"stage%d.c\"\n",
        e->net, e->stage, e->pipe->nstages, replica, e->replicas, replica * samples, (replica + 1) * samples - 1,
        e->source, replica, e->stage);
}
