/* ref.c: the target `ref`: naive C, no library. Every layout is plain, every size exact: the oracle of the other
 * targets. */
#include "target.h"

static int64_t param_floats(const Graph *graph, int param)
{
    const Param *p = &graph->param[param];
    return size_product(p->dim, p->rank);
}

const TargetDef target_ref = {
    .id = TARGET_ref,
    .name = "ref",
    .doc = "naive C, no library: slow, plain layouts, the oracle for the other targets",
    .library = "pn_ref",
    .libs = "",
    .value_bytes = plain_value_bytes,
    .aux_bytes = plain_aux_bytes,
    .param_floats = param_floats,
};
