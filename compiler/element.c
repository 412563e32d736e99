#include "element.h"

#include <string.h>

Element element_of_values(const Graph *graph)
{
    return graph->precision == PRECISION_BF16 ? ELEMENT_BF16 : ELEMENT_F32;
}

Element element_of_value(const Graph *graph, NodeId value)
{
    return graph->node[value].shape.dtype == DTYPE_CLASS ? ELEMENT_I32 : element_of_values(graph);
}

Element element_of_param(const Graph *graph, int param)
{
    const Param *p = &graph->param[param];
    return graph->precision == PRECISION_BF16 && p->rank >= 2 && !p->running ? ELEMENT_BF16 : ELEMENT_F32;
}

int64_t element_bytes(Element element)
{
    return element == ELEMENT_BF16 ? 2 : 4;
}

const char *element_c(Element element)
{
    static const char *const type[] = {[ELEMENT_F32] = "float", [ELEMENT_BF16] = "pn_bf16", [ELEMENT_I32] = "int32_t"};
    return type[element];
}

const char *element_shape_text(Arena *arena, const Graph *graph, NodeId value)
{
    const char *text = shape_text_batch(arena, &graph->node[value].shape, graph->batch);
    if (element_of_value(graph, value) != ELEMENT_BF16)
        return text;
    return arena_printf(arena, "bf16%s", text + strlen("f32"));
}
