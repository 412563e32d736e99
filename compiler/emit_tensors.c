/* emit_tensors.c: the values of a stage as a table: shape, and where value, gradient and test copy lie. */
#include "emit_state.h"

typedef long long Int;

static int register_slots(const RegisterPlan *reg, BufferKind kind)
{
    return kind == BUFFER_TEST ? reg->test_slots : kind == BUFFER_GRADIENT ? reg->gradient_slots : reg->forward_slots;
}

/* Of a device only bytes and slots are known: place sets the addresses. */
static const char *ring_area(Emit *e, const char *name, int slots, bool sliced)
{
    return e->device ? arena_printf(e->arena, "PN_SLOTS(%s, %d)", name, slots)
                     : arena_printf(e->arena, "%s(%s)", sliced ? "PN_SLICES" : "PN_RING", name);
}

static const char *area_text(Emit *e, const StageValue *value, BufferKind kind)
{
    const Place place = kind == BUFFER_TEST ? value->test_place : value->place;
    const char *suffix = kind == BUFFER_TEST ? "test" : kind == BUFFER_GRADIENT ? "gradient" : "value";
    const bool crosses = place.kind == PLACE_REGISTER_IN || place.kind == PLACE_REGISTER_OUT;
    const Buffer *buffer = NULL;
    const char *name = NULL;
    switch (kind) {
    case BUFFER_VALUE:
        if (value->saved)
            return ring_area(e, value->name, value->saved->slots, false);
        buffer = value->transient, name = value->name;
        break;
    case BUFFER_GRADIENT:
        if (!value->gradient_name)
            return NULL;
        if (value->gradient && value->gradient->kind == BUFFER_KEPT)
            return ring_area(e, value->gradient_name, value->gradient->slots, false);
        buffer = value->in ? NULL : value->gradient, name = value->gradient_name;
        break;
    case BUFFER_PARTIAL:
        buffer = value->partial, name = value->partial_name;
        break;
    case BUFFER_TEST:
        buffer = value->test, name = value->test_name;
        break;
    default:
        break;
    }
    if (buffer && e->device)
        return arena_printf(e->arena, "PN_AT(NULL, %lld)", (Int)buffer->bytes);
    if (buffer)
        return arena_printf(e->arena, "PN_AT(%s + %s, %lld)",
                            buffer_area(buffer->kind, e->halves) == AREA_FORWARD ? "t_forward" : "t", name,
                            (Int)buffer->bytes);
    if (crosses && kind != BUFFER_PARTIAL)
        return ring_area(e, arena_printf(e->arena, "%s_%s", e->register_name[place.index], suffix),
                         register_slots(&e->plan->reg[place.index], kind),
                         pipe_sliced(e->pipe, &e->pipe->edge[place.index]));
    return NULL;
}

static void tensor_row(Emit *e, Text *out, const StageValue *value)
{
    static const struct {
        BufferKind kind;
        const char *field;
    } fields[] = {
        {BUFFER_VALUE, "value"}, {BUFFER_GRADIENT, "gradient"}, {BUFFER_PARTIAL, "partial"}, {BUFFER_TEST, "test"}};
    const Node *node = &e->graph->node[value->id];
    text_printf(out, "    .%s = {.name = %s, .rank = %d, .dim = {%lld", value->name, quoted(e->arena, node->value_name),
                node->shape.rank + 1, (Int)e->graph->batch);
    for (int i = 0; i < node->shape.rank; i++)
        text_printf(out, ", %lld", (Int)node->shape.dim[i]);
    text_printf(out, "},%s", element_field(e, value->id));
    VEC(const char *) words = {0};
    for (int i = 0; i < COUNT(fields); i++) {
        const char *area = area_text(e, value, fields[i].kind);
        if (area)
            *vec_push(e->arena, &words) = arena_printf(e->arena, ".%s = %s", fields[i].field, area);
    }
    if (value->again)
        *vec_push(e->arena, &words) = arena_printf(e->arena, ".again = %s", ring_area(e, value->again_name, 1, false));
    text_printf(out, "\n        ");
    text_wrapped(out, words.at, words.count, ", ", "        ", 8);
    text_printf(out, "},\n");
}

void emit_tensors(Emit *e, Text *out)
{
    VEC(const char *) names = {0}, ops = {0};
    for (int i = 0; i < e->touched.count; i++) {
        const StageValue *value = &e->value[e->touched.at[i]];
        if (value->id != e->graph->loss)
            *vec_push(e->arena, &names) = value->name;
        if (value->op_name)
            *vec_push(e->arena, &ops) = arena_printf(e->arena, "*%s", value->op_name);
    }
    text_printf(
        out, "\n/* Every value of this stage: shape and where it lies; layouts are chosen by init */\nstatic struct {\n"
             "    pn_tensor ");
    text_wrapped(out, names.at, names.count, ", ", "        ", 14);
    text_printf(out, ";\n} tensor = {\n");
    for (int i = 0; i < e->touched.count; i++)
        if (e->touched.at[i] != e->graph->loss)
            tensor_row(e, out, &e->value[e->touched.at[i]]);
    text_printf(out, "};\n\nstatic struct {\n    pn_op ");
    text_wrapped(out, ops.at, ops.count, ", ", "        ", 10);
    text_printf(out, e->halves ? ";\n} op, op_back; /* of the forward half, of the backward half */\n" : ";\n} op;\n");
}
