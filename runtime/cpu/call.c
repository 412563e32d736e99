/* call.c: primitives, the memory objects of every slot, and the reorders between layouts; see cpu.h. */
#include "cpu.h"

#include <string.h>

enum { ALIGN = 128 };
static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

pn_op *cpu_op(pn_stage *stage, const char *name)
{
    cpu_open(stage);
    pn_op *op = pn_alloc(sizeof *op);
    op->stage = stage;
    op->name = name;
    return op;
}

/* ---- banks ---- */
void cpu_bank_add(cpu_bank *bank, pn_stage *stage, const pn_area *area)
{
    if (!area->memory || area->slots <= 0)
        return;
    if (area->slots > 1 && area->bytes < bank->bytes)
        pn_fail(NULL, "internal error: a slot of %lld bytes is too small for %s, which needs %lld",
                (long long)area->bytes, bank->what, (long long)bank->bytes);
    const int i = bank->nranges++;
    char *base = (char *)area->memory + (area->sliced ? pn_slice_begin(stage, bank->slice) : 0);
    bank->range[i].base = base;
    bank->range[i].stride = area->bytes;
    bank->range[i].count = area->slots;
    bank->range[i].memory = pn_alloc(area->slots * (int64_t)sizeof(dnnl_memory_t));
    for (int k = 0; k < area->slots; k++)
        dnn_need(dnnl_memory_create(&bank->range[i].memory[k], bank->layout, cpu_open(stage)->engine,
                                    base + k * area->bytes),
                 "memory");
}

void cpu_bank_tensor(cpu_bank *bank, pn_stage *stage, const char *what, const pn_tensor *tensor, dnn_layout layout)
{
    *bank = (cpu_bank){.what = what, .layout = layout, .bytes = dnn_bytes(layout)};
    bank->slice = tensor->layout ? tensor->layout->bytes : bank->bytes;
    cpu_bank_add(bank, stage, &tensor->value);
    cpu_bank_add(bank, stage, &tensor->gradient);
    cpu_bank_add(bank, stage, &tensor->partial);
    cpu_bank_add(bank, stage, &tensor->test);
    cpu_bank_add(bank, stage, &tensor->again);
}

void cpu_bank_param(cpu_bank *bank, pn_stage *stage, const char *what, const pn_param *param, dnn_layout layout)
{
    const pn_stage_def *def = stage->def;
    const int64_t stride = def->weight_floats * (int64_t)sizeof(float);
    *bank = (cpu_bank){.what = what, .layout = layout, .bytes = dnn_bytes(layout)};
    cpu_bank_add(bank, stage, &(pn_area){def->weights + param->offset, stride, def->versions, false});
    if (def->aheads)
        cpu_bank_add(bank, stage, &(pn_area){def->ahead + param->offset, stride, def->aheads, false});
    if (def->gradient)
        cpu_bank_add(bank, stage, &(pn_area){def->gradient + param->offset, stride, 1, false});
}

static dnnl_memory_t find(const cpu_call *call, const cpu_bank *bank, const void *pointer)
{
    for (int i = 0; i < bank->nranges; i++) {
        const int64_t at = (const char *)pointer - bank->range[i].base;
        if (at >= 0 && at < bank->range[i].stride * bank->range[i].count && at % bank->range[i].stride == 0)
            return bank->range[i].memory[at / bank->range[i].stride];
    }
    pn_fail(call->stage, "internal error: %s: the pointer given for %s is none of its slots", call->name, bank->what);
}

/* ---- calls ---- */
static cpu_primitive primitive(const cpu_call *call, dnnl_primitive_desc_t descriptor)
{
    cpu_primitive made = {.descriptor = descriptor, .scratch = dnn_wants(descriptor, dnnl_query_scratchpad_md)};
    dnn_need(dnnl_primitive_create(&made.run, descriptor), call->name);
    return made;
}

static int64_t scratch_bytes(const cpu_primitive *p)
{
    return p->run && p->scratch ? dnn_bytes(p->scratch) : 0;
}

void cpu_call_open(cpu_call *call, pn_stage *stage, const char *name)
{
    *call = (cpu_call){.stage = stage, .name = name, .next = cpu_open(stage)->calls};
    cpu_open(stage)->calls = call;
}

void cpu_call_port(cpu_call *call, const cpu_bank *bank, int argument, dnn_layout wants, bool writes)
{
    cpu_port *port = &call->port[call->nports++];
    *port = (cpu_port){.bank = bank, .argument = argument, .writes = writes, .wants = wants};
    if (dnn_same(bank->layout, wants))
        return;
    dnnl_primitive_desc_t descriptor =
        dnn_reorder(cpu_open(call->stage)->engine, writes ? wants : bank->layout, writes ? bank->layout : wants);
    if (!descriptor)
        pn_fail(NULL, "stage %d: %s: oneDNN cannot change the layout of %s", call->stage->index, call->name,
                bank->what);
    port->reorder = primitive(call, descriptor);
    port->offset = call->copies;
    call->copies += aligned(dnn_bytes(wants));
}

void cpu_call_close(cpu_call *call, dnnl_primitive_desc_t descriptor)
{
    if (descriptor)
        call->main = primitive(call, descriptor);
    int64_t pad = scratch_bytes(&call->main);
    for (int i = 0; i < call->nports; i++)
        if (scratch_bytes(&call->port[i].reorder) > pad)
            pad = scratch_bytes(&call->port[i].reorder);
    if (call->copies + pad > 0)
        pn_scratch_need(call->stage, call->copies + aligned(pad));
}

void cpu_call_close_kernel(cpu_call *call, cpu_kernel *kernel, const void *with, int64_t room_bytes)
{
    call->kernel = kernel;
    call->with = with;
    pn_scratch_need(call->stage, call->copies + aligned(room_bytes));
}

static void bind_scratchpad(cpu_primitive *p, dnnl_engine_t engine, char *at)
{
    if (scratch_bytes(p) > 0)
        dnn_need(dnnl_memory_create(&p->scratchpad, p->scratch, engine, at), "scratchpad");
}

void pn_target_prepare(pn_stage *stage)
{
    if (!stage->target)
        return;
    dnnl_engine_t engine = cpu_open(stage)->engine;
    for (cpu_call *call = cpu_open(stage)->calls; call; call = call->next) {
        char *pad = stage->scratch ? (char *)stage->scratch + call->copies : NULL;
        bind_scratchpad(&call->main, engine, pad);
        for (int i = 0; i < call->nports; i++) {
            cpu_port *port = &call->port[i];
            if (!port->reorder.run)
                continue;
            bind_scratchpad(&port->reorder, engine, pad);
            port->at = (char *)stage->scratch + port->offset;
            dnn_need(dnnl_memory_create(&port->copy, port->wants, engine, port->at), "scratch");
        }
    }
}

static void execute(const cpu_call *call, const cpu_primitive *p, int count, dnnl_exec_arg_t *arg)
{
    if (p->scratchpad)
        arg[count++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, p->scratchpad};
    const dnnl_status_t status = dnnl_primitive_execute(p->run, ((cpu_stage *)call->stage->target)->stream, count, arg);
    if (status != dnnl_success)
        pn_fail(call->stage, "%s: oneDNN: %s", call->name, dnn_status(status));
}

static void move(const cpu_call *call, const cpu_port *port, dnnl_memory_t from, dnnl_memory_t to)
{
    dnnl_exec_arg_t arg[3] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    execute(call, &port->reorder, 2, arg);
}

static void run_kernel(const cpu_call *call, const dnnl_exec_arg_t *arg)
{
    void *at[CPU_PORTS] = {NULL};
    for (int i = 0; i < call->nports; i++)
        dnn_need(dnnl_memory_get_data_handle(arg[i].memory, &at[i]), "memory");
    call->kernel(call, at, (char *)call->stage->scratch + call->copies);
}

void cpu_run_on(const cpu_call *call, const dnnl_memory_t *slot)
{
    dnnl_exec_arg_t arg[CPU_PORTS + 1];
    for (int i = 0; i < call->nports; i++) {
        const cpu_port *port = &call->port[i];
        if (port->reorder.run && !port->writes)
            move(call, port, slot[i], port->copy);
        arg[i] = (dnnl_exec_arg_t){port->argument, port->reorder.run ? port->copy : slot[i]};
    }
    if (call->kernel)
        run_kernel(call, arg);
    else
        execute(call, &call->main, call->nports, arg);
    for (int i = 0; i < call->nports; i++)
        if (call->port[i].reorder.run && call->port[i].writes)
            move(call, &call->port[i], call->port[i].copy, slot[i]);
}

void cpu_run(const cpu_call *call, const void *const *pointer)
{
    dnnl_memory_t slot[CPU_PORTS];
    for (int i = 0; i < call->nports; i++)
        slot[i] = find(call, call->port[i].bank, pointer[i]);
    cpu_run_on(call, slot);
}

void cpu_enter(const cpu_call *call, const void *const *pointer, void **at)
{
    for (int i = 0; i < call->nports; i++) {
        const cpu_port *port = &call->port[i];
        at[i] = port->reorder.run ? port->at : (void *)pointer[i];
        if (port->reorder.run && !port->writes && pointer[i])
            move(call, port, find(call, port->bank, pointer[i]), port->copy);
    }
}

void cpu_leave(const cpu_call *call, const void *const *pointer)
{
    for (int i = 0; i < call->nports; i++) {
        const cpu_port *port = &call->port[i];
        if (port->reorder.run && port->writes && pointer[i])
            move(call, port, port->copy, find(call, port->bank, pointer[i]));
    }
}

void cpu_transfer_init(cpu_call *call, pn_stage *stage, const char *name, const cpu_bank *from, const cpu_bank *to)
{
    cpu_call_open(call, stage, name);
    cpu_call_port(call, from, DNNL_ARG_FROM, from->layout, false);
    cpu_call_port(call, to, DNNL_ARG_TO, to->layout, true);
    dnnl_primitive_desc_t descriptor = NULL;
    if (!dnn_same(from->layout, to->layout)) {
        descriptor = dnn_reorder(cpu_open(stage)->engine, from->layout, to->layout);
        if (!descriptor)
            pn_fail(NULL, "stage %d: %s: oneDNN cannot change the layout of %s", stage->index, name, from->what);
        call->transfers = true;
    }
    cpu_call_close(call, descriptor);
}

void cpu_transfer(const cpu_call *call, const float *from, float *to)
{
    if (call->main.run)
        cpu_run(call, (const void *const[]){from, to});
    else
        memcpy(to, from, (size_t)call->port[0].bank->bytes);
}

static void tell_reorders(const cpu_call *call, pn_reorder_fn *tell, void *to)
{
    if (call->transfers)
        tell(to, call->name, call->port[0].bank->what, call->port[0].bank->bytes);
    for (int i = 0; i < call->nports; i++)
        if (call->port[i].reorder.run)
            tell(to, call->name, call->port[i].bank->what, dnn_bytes(call->port[i].wants));
}

/* The list of calls has the last one first. */
static int count_calls(const pn_stage *stage)
{
    const cpu_stage *state = stage->target;
    int count = 0;
    for (const cpu_call *call = state ? state->calls : NULL; call; call = call->next)
        count++;
    return count;
}

static const cpu_call *call_before(const pn_stage *stage, int later)
{
    const cpu_call *call = ((const cpu_stage *)stage->target)->calls;
    for (int i = 0; i < later; i++)
        call = call->next;
    return call;
}

void pn_target_reorders(const pn_stage *stage, pn_reorder_fn *tell, void *to)
{
    for (int count = count_calls(stage); count-- > 0;)
        tell_reorders(call_before(stage, count), tell, to);
}

void pn_target_algorithms(const pn_stage *stage, pn_algorithm_fn *tell, void *to)
{
    for (int count = count_calls(stage); count-- > 0;) {
        const cpu_call *call = call_before(stage, count);
        if (call->pass && cpu_call_runs(call))
            tell(to, call->name, call->pass, pn_algorithm_name(call->algorithm),
                 call->kernel ? "own" : dnn_implementation(call->main.descriptor));
    }
}

/* ---- choices of the library ---- */
bool cpu_is_slow(dnnl_primitive_desc_t descriptor)
{
    return strncmp(dnn_implementation(descriptor), "ref", 3) == 0;
}

void cpu_warn_if_slow(const char *name, const char *pass, dnnl_primitive_desc_t descriptor)
{
    if (cpu_is_slow(descriptor))
        fprintf(stderr, "warning: %s: oneDNN has only its reference code for the %s (%s): slow\n", name, pass,
                dnn_implementation(descriptor));
}
