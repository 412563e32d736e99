/* emit_services.c: what the hooks of ops may ask for and print. See emit.h. */
#include "emit_state.h"

#include <ctype.h>
#include <string.h>

Arena *emit_arena(Emit *e)
{
    return e->arena;
}
const Graph *emit_graph(Emit *e)
{
    return e->graph;
}
bool emit_on_device(const Emit *e)
{
    return e->device;
}
bool emit_testing(const Emit *e)
{
    return e->part == PART_TEST;
}

bool on_forward_half(const Emit *e)
{
    return e->halves && (e->part == PART_INIT ? e->forward_half : e->part == PART_FORWARD);
}

static NodeId id_of(Emit *e, const Node *node)
{
    return (NodeId)(node - e->graph->node);
}

static const StageValue *value_of(Emit *e, NodeId id)
{
    const StageValue *value = &e->value[id];
    if (!value->touched)
        ICE("emit: stage %d has nothing to do with %s", e->stage, e->graph->node[id].name);
    return value;
}

/* A slot of a ring: minibatch % slots. */
static const char *slot(Emit *e, const char *name, int slots)
{
    if (slots == 1)
        return arena_printf(e->arena, "%s[0]", name);
    if (slots == e->sched->ring[e->stage])
        return arena_printf(e->arena, "%s[k]", name);
    return arena_printf(e->arena, "%s[n %% %d]", name, slots);
}

static const char *transient(Emit *e, NodeId id, const char *name)
{
    const bool label = e->graph->node[id].shape.dtype == DTYPE_CLASS;
    return arena_printf(e->arena, label ? "(int32_t *)(%s + %s)" : "%s + %s", on_forward_half(e) ? "t_forward" : "t",
                        name);
}

const char *value_ref(Emit *e, NodeId id)
{
    const StageValue *value = value_of(e, id);
    const Place place = e->part == PART_TEST ? value->test_place : value->place;
    if (value->again && (e->part == PART_AGAIN || e->part == PART_BACKWARD))
        return slot(e, value->again_name, 1);
    if (place.kind == PLACE_REGISTER_IN || place.kind == PLACE_REGISTER_OUT)
        return value->name;
    if (place.kind == PLACE_BUFFER && e->part == PART_TEST && value->test)
        return transient(e, id, value->test_name);
    if (place.kind == PLACE_BUFFER && e->part != PART_TEST && value->saved)
        return slot(e, value->name, value->saved->slots);
    if (place.kind == PLACE_BUFFER && e->part != PART_TEST && value->transient)
        return transient(e, id, value->name);
    ICE("emit: stage %d has no room for %s", e->stage, e->graph->node[id].name);
}

const char *gradient_ref(Emit *e, NodeId id)
{
    const StageValue *value = value_of(e, id);
    if (!value->gradient_name)
        ICE("emit: stage %d has no room for the gradient of %s", e->stage, e->graph->node[id].name);
    if (value->gradient && value->gradient->kind == BUFFER_KEPT)
        return slot(e, value->gradient_name, value->gradient->slots);
    if (value->gradient && !(value->in && value->in->gradient))
        return arena_printf(e->arena, "t + %s", value->gradient_name);
    return value->gradient_name;
}

const char *value_type(const Emit *e, NodeId value)
{
    return element_c(element_of_value(e->graph, value));
}

int64_t value_items(const Emit *e, NodeId value, int64_t bytes)
{
    return bytes / element_bytes(element_of_value(e->graph, value));
}

const char *element_field(const Emit *e, NodeId value)
{
    return element_of_value(e->graph, value) == ELEMENT_BF16 ? " .element = PN_BF16," : "";
}

const char *transient_type(const Emit *e)
{
    return element_c(element_of_values(e->graph));
}

int64_t transient_items(const Emit *e, int64_t bytes)
{
    return bytes / element_bytes(element_of_values(e->graph));
}

const char *slices_name(const Emit *e)
{
    return e->graph->microbatches > 1 ? "microbatches" : "minibatches";
}

const char *values_text(Emit *e, NodeId id)
{
    const Shape *shape = &e->graph->node[id].shape;
    if (shape->dtype == DTYPE_CLASS)
        return arena_printf(e->arena, "%lld labels of %lld classes", (long long)e->graph->batch,
                            (long long)shape->classes);
    return element_shape_text(e->arena, e->graph, id);
}

const char *emit_op(Emit *e, const Node *node)
{
    return arena_printf(e->arena, "%s.%s", e->halves && !on_forward_half(e) ? "op_back" : "op",
                        value_of(e, id_of(e, node))->op_name);
}

const char *emit_tensor(Emit *e, NodeId value)
{
    return arena_printf(e->arena, "&tensor.%s", value_of(e, value)->name);
}

const char *emit_param(Emit *e, const Node *node, int i)
{
    return arena_printf(e->arena, "&param[%s]", e->index_name[node->param[i]]);
}

const char *emit_in(Emit *e, const Node *node, int i)
{
    return value_ref(e, node->in[i]);
}
const char *emit_out(Emit *e, const Node *node)
{
    return value_ref(e, id_of(e, node));
}

const char *emit_aux(Emit *e, const Node *node)
{
    const StageValue *value = value_of(e, id_of(e, node));
    return e->part == PART_TEST || !value->aux ? "NULL" : slot(e, value->aux_name, value->aux->slots);
}

const char *emit_aux_area(Emit *e, const Node *node)
{
    const StageValue *value = value_of(e, id_of(e, node));
    if (value->aux && e->device)
        return arena_printf(e->arena, "{%s, sizeof *%s, %d, false}", value->aux_name, value->aux_name,
                            value->aux->slots);
    return value->aux ? arena_printf(e->arena, "PN_RING(%s)", value->aux_name) : "{NULL, 0, 0, false}";
}

const char *emit_weight(Emit *e, const Node *node, int i)
{
    return arena_printf(e->arena, "w + %s", e->offset_name[node->param[i]]);
}

const char *emit_gradient_weight(Emit *e, const Node *node, int i)
{
    return arena_printf(e->arena, "dw + %s", e->offset_name[node->param[i]]);
}

const char *emit_running(Emit *e, const Node *node, int i)
{
    return arena_printf(e->arena, "running + %s", e->offset_name[node->param[i]]);
}

const char *emit_gradient_out(Emit *e, const Node *node)
{
    return id_of(e, node) == e->graph->loss ? "NULL" : gradient_ref(e, id_of(e, node));
}

const char *emit_gradient_in(Emit *e, const Node *node, int i)
{
    const BackwardStep *step = e->step[id_of(e, node)];
    if (!step || step->in[i] == GRADIENT_NONE)
        return NULL;
    if (step->in[i] == GRADIENT_WRITE)
        return gradient_ref(e, node->in[i]);
    const StageValue *value = value_of(e, node->in[i]);
    if (!value->partial)
        ICE("emit: stage %d has no partial gradient of %s", e->stage, e->graph->node[node->in[i]].name);
    bool listed = false;
    for (int p = 0; p < e->partials.count; p++)
        listed |= e->partials.at[p] == value->id;
    if (!listed)
        *vec_push(e->arena, &e->partials) = value->id;
    return arena_printf(e->arena, "t + %s", value->partial_name);
}

bool code_mentions(const char *code, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = strstr(code, word); at; at = strstr(at + 1, word)) {
        const bool begins = at == code || !(isalnum((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '.');
        const bool ends = !(isalnum((unsigned char)at[length]) || at[length] == '_');
        if (begins && ends)
            return true;
    }
    return false;
}

bool emit_mentions(const Emit *e, const char *word)
{
    for (int i = 0; i < e->lines.count; i++)
        if (code_mentions(e->lines.at[i].code, word))
            return true;
    return false;
}

void emit_commented(Emit *e, const char *comment, const char *format, ...)
{
    Text text = text_new(e->arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    *vec_push(e->arena, &e->lines) = (Line){text.data, comment};
}

void emit_line(Emit *e, const char *format, ...)
{
    Text text = text_new(e->arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    *vec_push(e->arena, &e->lines) = (Line){text.data, NULL};
}

void emit_call(Emit *e, const Node *node, const char *remark, const char *format, ...)
{
    Text text = text_new(e->arena);
    va_list args;
    va_start(args, format);
    text_vprintf(&text, format, args);
    va_end(args);
    const char *line = e->line[id_of(e, node)];
    *vec_push(e->arena, &e->lines) = (Line){text.data, remark ? arena_printf(e->arena, "%s, %s", line, remark) : line};
    for (int p = 0; e->part == PART_BACKWARD && p < e->partials.count; p++) {
        const StageValue *value = value_of(e, e->partials.at[p]);
        if (code_mentions(text.data, value->partial_name))
            emit_line(e, "pn_accumulate(&tensor.%s, %s, t + %s);", value->name, gradient_ref(e, value->id),
                      value->partial_name);
    }
}

void emit_function(Emit *e, const char *name, const char *text)
{
    for (int i = 0; i < e->function.count; i++)
        if (!strcmp(e->function.at[i], name))
            return;
    *vec_push(e->arena, &e->function) = arena_text(e->arena, name, strlen(name));
    text_printf(&e->functions, "\n%s", text);
}
