/* target.c: the table of targets, and the sizes they share. */
#include <string.h>

#include "target.h"

#define TARGET(name) extern const TargetDef target_##name;
#include "targets/targets.def"
#undef TARGET

const TargetDef *const target_table[TARGET_COUNT] = {
#define TARGET(name) [TARGET_##name] = &target_##name,
#include "targets/targets.def"
#undef TARGET
};

const TargetDef *target_find(const char *name)
{
    for (int i = 0; i < TARGET_COUNT; i++)
        if (!strcmp(target_table[i]->name, name))
            return target_table[i];
    return NULL;
}

void target_list(Text *out)
{
    for (int i = 0; i < TARGET_COUNT; i++)
        text_printf(out, "%-8s %s%s\n", target_table[i]->name, target_table[i]->doc, i == 0 ? " (default)" : "");
}

static bool threads_fit(const TargetDef *target, Diags *diags, const Pipeline *pipeline)
{
    if (target->threads || pipeline->threads == 1)
        return true;
    diag_error(diags, P0420, pipeline->threads_span, "target %s runs each stage on one thread", target->name);
    diag_hint(diags, "leave threads out, or choose another target: `pnetc list targets`");
    return false;
}

static bool precision_fits(const TargetDef *target, Diags *diags, const Train *train)
{
    if (target->bf16 || train->precision == PRECISION_F32)
        return true;
    diag_error(diags, P0421, train->precision_span, "target %s stores everything as f32", target->name);
    diag_hint(diags, "leave precision out, or choose a target that has bf16: --target=cuda");
    return false;
}

bool target_check(const TargetDef *target, Diags *diags, const Settings *settings)
{
    const bool threads = threads_fit(target, diags, &settings->pipeline);
    return precision_fits(target, diags, &settings->train) && threads;
}

int64_t size_product(const int64_t *size, int count)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++)
        if (!checked_mul(product, size[i], &product) || product > TARGET_TOO_LARGE)
            return TARGET_TOO_LARGE;
    return product;
}

int64_t plain_value_bytes(const Graph *graph, NodeId value)
{
    const Shape *shape = &graph->node[value].shape;
    const int64_t entry = element_bytes(element_of_value(graph, value));
    return size_product((const int64_t[]){graph->batch, size_product(shape->dim, shape->rank), entry}, 3);
}

int64_t plain_aux_bytes(const Graph *graph, NodeId node)
{
    const Node *n = &graph->node[node];
    if (!n->op || !n->op->aux)
        return 0;
    return size_product((const int64_t[]){op_aux_bytes(graph, n)}, 1);
}
