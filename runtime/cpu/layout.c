/* layout.c: which physical layout a tensor or a parameter has; see cpu.h for the rules. All of it is settled in inits;
 * values of parameters move between layouts at any time. */
#include "cpu.h"

#include <string.h>

cpu_stage *cpu_open(pn_stage *stage)
{
    if (!stage->target) {
        team_set(stage->run->threads);
        team_check(stage->run->threads);
        cpu_stage *made = pn_alloc(sizeof *made);
        dnn_need(dnnl_engine_create(&made->engine, dnnl_cpu, 0), "engine");
        dnn_need(dnnl_stream_create(&made->stream, made->engine, dnnl_stream_default_flags), "stream");
        stage->target = made;
    }
    return stage->target;
}

int64_t cpu_elements(const pn_tensor *tensor)
{
    int64_t n = 1;
    for (int i = 0; i < tensor->rank; i++)
        n *= tensor->dim[i];
    return n;
}

static pn_layout *layout_new(const pn_stage *stage, int rank, const int64_t *dim, dnn_layout stored)
{
    pn_layout *made = pn_alloc(sizeof *made);
    made->plain = dnn_plain(rank, dim);
    made->stored = stored ? stored : made->plain;
    made->is_plain = dnn_same(made->stored, made->plain);
    made->padded = dnn_padded(made->stored);
    made->bytes = dnn_bytes(made->stored);
    made->floats = made->bytes / (int64_t)sizeof(float);
    made->threads = stage->run->threads;
    return made;
}

const pn_layout *cpu_layout(pn_stage *stage, pn_tensor *tensor)
{
    if (!tensor->layout)
        tensor->layout = layout_new(stage, tensor->rank, tensor->dim, NULL);
    return tensor->layout;
}

/* Slices of a register must be parts of the whole batch in the same layout. */
static bool holds(const pn_stage *stage, const pn_area *area, dnn_layout wanted)
{
    const int64_t bytes = dnn_bytes(wanted);
    if (!area->memory || !area->sliced)
        return !area->memory || area->bytes >= bytes;
    return area->bytes >= pn_whole_batch(stage, bytes) && dnn_of_batch(wanted, pn_slice(stage->run->program));
}

const pn_layout *cpu_choose(pn_stage *stage, pn_tensor *tensor, dnn_layout wanted)
{
    const bool fits = holds(stage, &tensor->value, wanted) && holds(stage, &tensor->gradient, wanted) &&
                      holds(stage, &tensor->partial, wanted) && holds(stage, &tensor->test, wanted) &&
                      holds(stage, &tensor->again, wanted);
    tensor->layout = layout_new(stage, tensor->rank, tensor->dim, fits ? wanted : NULL);
    return tensor->layout;
}

struct cpu_move {
    dnnl_primitive_t reorder;
    dnnl_stream_t stream;
    dnnl_exec_arg_t arg[3]; /* from, to, scratch */
    int threads;            /* of the run */
};

static cpu_move *move_new(pn_stage *stage, dnn_layout from, dnn_layout to)
{
    const dnnl_engine_t engine = cpu_open(stage)->engine;
    dnnl_primitive_desc_t descriptor = dnn_reorder(engine, from, to);
    if (!descriptor)
        pn_fail(stage, "internal error: oneDNN has no reorder of a parameter");
    cpu_move *made = pn_alloc(sizeof *made);
    *made = (cpu_move){.arg = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}, {DNNL_ARG_SCRATCHPAD, NULL}},
                       .threads = stage->run->threads};
    const dnn_layout pad = dnn_wants(descriptor, dnnl_query_scratchpad_md);
    dnn_need(dnnl_primitive_create(&made->reorder, descriptor), "reorder");
    dnn_need(dnnl_stream_create(&made->stream, engine, dnnl_stream_default_flags), "stream");
    dnn_need(dnnl_memory_create(&made->arg[0].memory, from, engine, DNNL_MEMORY_NONE), "memory");
    dnn_need(dnnl_memory_create(&made->arg[1].memory, to, engine, DNNL_MEMORY_NONE), "memory");
    dnn_need(dnnl_memory_create(&made->arg[2].memory, pad, engine, DNNL_MEMORY_ALLOCATE), "memory");
    dnn_need(dnnl_primitive_desc_destroy(descriptor), "reorder");
    return made;
}

/* On any thread: of a stage, or the main one. */
static void move(const cpu_move *m, const float *source, float *result)
{
    team_set(m->threads);
    dnn_need(dnnl_memory_set_data_handle(m->arg[0].memory, (float *)source), "memory");
    dnn_need(dnnl_memory_set_data_handle(m->arg[1].memory, result), "memory");
    dnn_need(dnnl_primitive_execute(m->reorder, m->stream, 3, m->arg), "reorder");
    dnn_need(dnnl_stream_wait(m->stream), "reorder");
}

void cpu_make_moves(pn_stage *stage, pn_layout *layout)
{
    if (layout->is_plain)
        return;
    layout->to_plain = move_new(stage, layout->stored, layout->plain);
    layout->from_plain = move_new(stage, layout->plain, layout->stored);
}

const pn_layout *cpu_choose_param(pn_stage *stage, pn_param *param, int rank, const int64_t *dim, dnn_layout wanted)
{
    const bool fits = dnn_bytes(wanted) <= param->room * (int64_t)sizeof(float);
    param->layout = layout_new(stage, rank, dim, fits ? wanted : NULL);
    cpu_make_moves(stage, param->layout);
    return param->layout;
}

pn_layout *pn_layout_of_batch(pn_stage *stage, pn_layout *layout, const pn_tensor *tensor)
{
    const dnn_layout stored = dnn_of_batch(layout->stored, tensor->dim[0]);
    if (!stored)
        pn_fail(NULL, "internal error: the layout of %s cannot be cut into slices", tensor->name);
    return layout_new(stage, tensor->rank, tensor->dim, stored);
}

int64_t pn_tensor_floats(const pn_tensor *t)
{
    return t->layout ? t->layout->floats : cpu_elements(t);
}

static size_t plain_bytes(const pn_param *param)
{
    int64_t n = sizeof(float);
    for (int i = 0; i < param->rank; i++)
        n *= param->dim[i];
    return (size_t)n;
}

void pn_param_to_plain(const pn_param *param, const float *stored, float *plain)
{
    const pn_layout *layout = param->layout;
    if (!layout || layout->is_plain)
        memcpy(plain, stored, plain_bytes(param));
    else
        move(layout->to_plain, stored, plain);
}

void pn_param_from_plain(const pn_param *param, const float *plain, float *stored)
{
    const pn_layout *layout = param->layout;
    memset(stored, 0, (size_t)param->room * sizeof *stored);
    if (!layout || layout->is_plain)
        memcpy(stored, plain, plain_bytes(param));
    else
        move(layout->from_plain, plain, stored);
}
