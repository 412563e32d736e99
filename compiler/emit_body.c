/* emit_body.c: init, forward, backward and test of a stage, as straight lines.
 *
 * Forward: values come in at their first use, and leave right behind the node that makes them. Values only passed on go
 * first: the next stage may start. Backward: gradients arrive before the first line that touches them, and leave behind
 * the last. One text for every schedule: the order of the steps is data of the program (<net>.c). */
#include "emit_state.h"

#include <string.h>

/* ---- a function: declarations that its lines need, lines, comments in one column ---- */

enum { INDENT = 4, RIGHT = 132, COLUMN_LEAST = 60 };

/* The column of the comments: as far right as the lines in front of it and the comments behind it allow. */
static int comment_column(const Line *line, int count)
{
    int column = 0;
    for (int limit = RIGHT; limit >= COLUMN_LEAST; limit -= 4) {
        int comment = 0;
        column = 0;
        for (int i = 0; i < count; i++) {
            const int width = (int)strlen(line[i].code);
            if (!line[i].comment)
                continue;
            comment = (int)strlen(line[i].comment) > comment ? (int)strlen(line[i].comment) : comment;
            if (width <= limit && width > column)
                column = width;
        }
        if (INDENT + column + 7 + comment <= RIGHT)
            break;
    }
    return column;
}

/* A call that reaches beyond the column goes on below its first argument. */
static void print_line(const Line *line, int column, Text *out)
{
    const char *code = line->code, *open = strchr(code, '(');
    int indent = INDENT;
    while (line->comment && open && (int)strlen(code) + indent - INDENT > column) {
        const char *fold = NULL;
        for (const char *c = strstr(code, ", "); c && (int)(c - code) + 1 + indent - INDENT <= column;
             c = strstr(c + 1, ", "))
            if (c > open)
                fold = c;
        if (!fold)
            break;
        text_printf(out, "%*s%.*s\n", indent, "", (int)(fold + 1 - code), code);
        indent = INDENT + (int)(strchr(line->code, '(') + 1 - line->code);
        code = fold + 2;
        open = code - 1; /* any comma may be the next fold */
    }
    if (line->comment)
        text_printf(out, "%*s%-*s /* %s */\n", indent, "", column - (indent - INDENT), code, line->comment);
    else
        text_printf(out, "%*s%s\n", indent, "", code);
}

/* Prints the function of the collected lines; `weights`: the call that gives this pass its weights. */
static void print_function(Emit *e, const char *name, const char *number, const char *weights, Text *out)
{
    VEC(Line) all = {0};
    if (number && emit_mentions(e, "k"))
        *vec_push(e->arena, &all) =
            (Line){arena_printf(e->arena, "const int k = (int)(%s %% %d);", number, e->sched->ring[e->stage]),
                   "the slot of this minibatch"};
    if (weights && emit_mentions(e, "w"))
        *vec_push(e->arena, &all) = (Line){arena_printf(e->arena, "const float *w = %s;", weights), NULL};
    for (int i = 0;
         (e->part == PART_BACKWARD || e->part == PART_AGAIN || e->part == PART_WEIGHTS) && i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->place.kind != PLACE_REGISTER_IN && value->place.kind != PLACE_REGISTER_OUT)
            continue;
        if (emit_mentions(e, value->name))
            *vec_push(e->arena, &all) =
                (Line){arena_printf(e->arena, "const %s *%s = pn_held(stage, &%s.forward, n);",
                                    value_type(e, value->id), value->name, e->register_name[value->place.index]),
                       values_text(e, value->id)};
    }
    for (int i = 0; i < e->lines.count; i++)
        *vec_push(e->arena, &all) = e->lines.at[i];

    const char **code = arena_alloc(e->arena, sizeof *code * (size_t)(all.count + 1));
    for (int i = 0; i < all.count; i++)
        code[i] = all.at[i].code;
    emit_count(e, code, all.count);

    bool uses_stage = false, uses_number = !number;
    for (int i = 0; i < all.count; i++) {
        uses_stage |= code_mentions(all.at[i].code, "stage");
        uses_number |= number && code_mentions(all.at[i].code, number);
    }
    text_printf(out, "\nstatic void %s(pn_stage *stage%s%s)\n{\n", name, number ? ", int64_t " : "",
                number ? number : "");
    if (!uses_stage)
        text_printf(out, "    (void)stage;\n");
    if (!uses_number)
        text_printf(out, "    (void)%s;\n", number);
    const int column = comment_column(all.at, all.count);
    for (int i = 0; i < all.count; i++)
        print_line(&all.at[i], column, out);
    text_printf(out, "}\n");
}

static void begin(Emit *e, Part part)
{
    e->part = part;
    e->lines.count = 0;
    e->partials.count = 0;
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        value->taken = value->arrived = value->roomed = false;
    }
}

/* "from stage 0" */
static const char *crossing(Emit *e, const char *preposition, int stage)
{
    return arena_printf(e->arena, "%s stage %d", preposition, stage);
}

/* ---- init ---- */

static void give_layout(Emit *e, const StageValue *value, const char *comment)
{
    const char *out = e->register_name[value->out_index];
    if (pipe_sliced(e->pipe, value->out))
        emit_commented(e, comment, "pn_give_layout(stage, &%s, &tensor.%s);", out, value->name);
    else
        emit_commented(e, comment, "%s.layout = tensor.%s.layout;", out, value->name);
}

/* Halves have operations of their own: each makes them all, and chooses the same layouts. */
static void print_init(Emit *e, const char *name, Text *out)
{
    begin(e, PART_INIT);
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (!value->in)
            continue;
        const char *in = e->register_name[value->in_index];
        const char *wrote = arena_printf(e->arena, "as stage %d wrote it", e->stage - 1);
        if (pipe_sliced(e->pipe, value->in))
            emit_commented(e, wrote, "pn_take_layout(stage, &tensor.%s, &%s);", value->name, in);
        else
            emit_commented(e, wrote, "tensor.%s.layout = %s.layout;", value->name, in);
        if (value->out)
            give_layout(e, value, "passed on");
    }
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId id = stage->first; id < stage->last; id++) {
        const Node *node = &e->graph->node[id];
        if (!node->op)
            continue;
        node->op->emit[e->plan->target->id]->init(e, node);
        const StageValue *value = &e->value[id];
        if (value->out)
            give_layout(e, value, arena_printf(e->arena, "stage %d reads it as it lies", e->stage + 1));
    }
    print_function(e, name, NULL, NULL, out);
}

/* ---- forward and test: the same lines over other channels and buffers ---- */

static const char *way(const Emit *e)
{
    return e->part == PART_TEST ? "test" : "forward";
}

static void take_inputs(Emit *e)
{
    for (int i = 0; i < e->graph->ninputs; i++) {
        const NodeId id = e->graph->input[i];
        if (!e->value[id].touched)
            continue;
        const char *to = value_ref(e, id);
        if (!strncmp(to, "(int32_t *)", 11)) /* the verb takes a void * */
            to = arena_printf(e->arena, "t + %s", e->part == PART_TEST ? e->value[id].test_name : e->value[id].name);
        emit_commented(e, values_text(e, id), "%s(stage, n, %s, %s);",
                       e->part == PART_TEST ? "pn_test_input" : "pn_input", e->input_name[id], to);
    }
}

static void take(Emit *e, StageValue *value)
{
    value->taken = true;
    emit_commented(e, crossing(e, "from", e->stage - 1), "const %s *%s = pn_take(stage, &%s.%s, n);",
                   value_type(e, value->id), value->name, e->register_name[value->in_index], way(e));
}

static void done(Emit *e, int edge, const char *channel)
{
    emit_line(e, "pn_done(stage, &%s.%s, n);", e->register_name[edge], channel);
}

static void pass_values_on(Emit *e)
{
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        if (!value->in || !value->out)
            continue;
        const char *out = e->register_name[value->out_index];
        take(e, value);
        emit_commented(e, crossing(e, "on to", e->stage + 1), "pn_copy(&tensor.%s, pn_room(stage, &%s.%s, n), %s);",
                       value->name, out, way(e), value->name);
        emit_line(e, "pn_give(stage, &%s.%s, n);", out, way(e));
        if (value->last_reader < 0)
            done(e, value->in_index, way(e));
    }
}

static void print_forward_node(Emit *e, NodeId id)
{
    const Node *node = &e->graph->node[id];
    const OpEmit *verbs = node->op->emit[e->plan->target->id];
    StageValue *value = &e->value[id];
    for (int i = 0; i < node->nin; i++) {
        StageValue *in = &e->value[node->in[i]];
        if (in->in && !in->taken)
            take(e, in);
    }
    if (value->out)
        emit_commented(e, crossing(e, "to", e->stage + 1), "%s *%s = pn_room(stage, &%s.%s, n);",
                       value_type(e, value->id), value->name, e->register_name[value->out_index], way(e));
    (e->part == PART_TEST && verbs->evaluate ? verbs->evaluate : verbs->forward)(e, node);
    if (value->out)
        emit_line(e, "pn_give(stage, &%s.%s, n);", e->register_name[value->out_index], way(e));
    for (int i = 0; i < node->nin; i++) {
        StageValue *in = &e->value[node->in[i]];
        const bool kept = e->part == PART_FORWARD && in->in && in->in->kept_consumer;
        if (in->in && in->last_reader == id && !kept && in->taken) {
            done(e, in->in_index, way(e));
            in->taken = false; /* the same value as two inputs: once */
        }
    }
}

static void print_forward(Emit *e, Part part, Text *out)
{
    begin(e, part);
    take_inputs(e);
    pass_values_on(e);
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId id = stage->first; id < stage->last; id++)
        if (e->graph->node[id].op)
            print_forward_node(e, id);
    if (part == PART_TEST)
        print_function(e, "test", "n", "pn_test_weights(stage)", out);
    else
        print_function(e, "forward", "n", "pn_forward_weights(stage, n)", out);
}

/* The values that the backward reads, from what the stage has taken. The loss is not told twice. */
static void print_again(Emit *e, Text *out)
{
    const Stage *stage = &e->pipe->stage[e->stage];
    if (!e->sched->recompute[e->stage])
        return;
    begin(e, PART_AGAIN);
    for (NodeId id = stage->first; id < stage->last; id++)
        if (e->plan->again[id])
            e->graph->node[id].op->emit[e->plan->target->id]->forward(e, &e->graph->node[id]);
    print_function(e, "recompute", "n", "pn_backward_weights(stage, n)", out);
}

/* ---- backward ---- */

/* The gradient register of a value that came in: a slot to sum in. */
static void room_gradient(Emit *e, StageValue *value)
{
    if (!value->in || !value->in->gradient || value->roomed)
        return;
    value->roomed = true;
    emit_commented(e, crossing(e, "to", e->stage - 1), "%s *%s = pn_room(stage, &%s.gradient, n);",
                   value_type(e, value->id), value->gradient_name, e->register_name[value->in_index]);
}

static void give_gradient(Emit *e, const StageValue *value)
{
    if (value->in && value->in->gradient)
        emit_line(e, "pn_give(stage, &%s.gradient, n);", e->register_name[value->in_index]);
}

/* The gradient that the next stage computed: used where it lies, or copied to where this stage goes on summing. */
static void arrive(Emit *e, StageValue *value)
{
    if (!value->out || !value->out->gradient || value->arrived)
        return;
    value->arrived = true;
    const char *out = e->register_name[value->out_index];
    const char *comment = crossing(e, "from", e->stage + 1);
    if (!value->gradient && !value->in) {
        emit_commented(e, comment, "%s *%s = pn_take(stage, &%s.gradient, n);", value_type(e, value->id),
                       value->gradient_name, out);
        return;
    }
    room_gradient(e, value);
    emit_commented(e, comment, "pn_copy(&tensor.%s, %s, pn_take(stage, &%s.gradient, n));", value->name,
                   gradient_ref(e, value->id), out);
    done(e, value->out_index, "gradient");
}

static void print_backward_node(Emit *e, const BackwardStep *step)
{
    const NodeId id = step->node;
    const Node *node = &e->graph->node[id];
    StageValue *value = &e->value[id];
    arrive(e, value);
    for (int i = 0; i < node->nin; i++)
        if (step->in[i] != GRADIENT_NONE) {
            arrive(e, &e->value[node->in[i]]);
            room_gradient(e, &e->value[node->in[i]]);
        }
    e->partials.count = 0;
    const OpEmit *verbs = node->op->emit[e->plan->target->id];
    verbs->backward(e, node);
    if (verbs->weights && !e->sched->late[e->stage])
        verbs->weights(e, node);
    if (value->out && value->out->gradient && !value->gradient)
        done(e, value->out_index, "gradient");
    for (int i = 0; i < node->nin; i++) {
        StageValue *in = &e->value[node->in[i]];
        if (step->in[i] != GRADIENT_NONE && in->first_contributor == id && in->roomed) {
            give_gradient(e, in);
            in->roomed = false;
        }
    }
}

/* What the stage has taken and kept for a backward. */
static void let_go(Emit *e)
{
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->in && value->in->kept_consumer)
            done(e, value->in_index, "forward");
    }
}

/* Where backwards are split: what they leave to a step of its own. */
static void print_weights(Emit *e, Text *out)
{
    const Stage *stage = &e->pipe->stage[e->stage];
    if (!e->sched->late[e->stage])
        return;
    begin(e, PART_WEIGHTS);
    for (NodeId id = stage->last - 1; id >= stage->first; id--) {
        const Node *node = &e->graph->node[id];
        if (e->step[id] && node->op->emit[e->plan->target->id]->weights)
            node->op->emit[e->plan->target->id]->weights(e, node);
    }
    let_go(e);
    print_function(e, "weight_gradients", "n", NULL, out);
}

static void print_backward(Emit *e, Text *out)
{
    begin(e, PART_BACKWARD);
    for (int i = 0; i < e->touched.count; i++) {
        StageValue *value = &e->value[e->touched.at[i]];
        if (!value->in || !value->out)
            continue;
        arrive(e, value);
        if (value->first_contributor < 0)
            give_gradient(e, value);
    }
    const Stage *stage = &e->pipe->stage[e->stage];
    for (NodeId id = stage->last - 1; id >= stage->first; id--)
        if (e->step[id])
            print_backward_node(e, e->step[id]);
    if (!e->sched->late[e->stage])
        let_go(e);
    print_function(e, "backward", "n", "pn_backward_weights(stage, n)", out);
}

void emit_functions(Emit *e, Text *out)
{
    Text functions = text_new(e->arena);
    e->forward_half = e->halves;
    print_init(e, e->halves ? "init_forward" : "init", &functions);
    e->forward_half = false;
    if (e->halves)
        print_init(e, "init_backward", &functions);
    print_forward(e, PART_FORWARD, &functions);
    print_again(e, &functions);
    print_backward(e, &functions);
    print_weights(e, &functions);
    print_forward(e, PART_TEST, &functions);
    text_append(out, e->functions.data, e->functions.length); /* of ops: known only now */
    text_append(out, functions.data, functions.length);
}
