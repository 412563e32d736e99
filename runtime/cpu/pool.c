/* pool.c: max and average pooling. y takes the layout of x. The record of winners is oneDNN's workspace, a byte for a
 * stored output up to windows of 255 elements, else four, kept in the planned argmax slots. */
#include "cpu.h"

static void relu(void *data, int64_t from, int64_t to)
{
    float *y = data;
    for (int64_t i = from; i < to; i++)
        y[i] = y[i] > 0.0f ? y[i] : 0.0f;
}

static dnn_window window_of(const pn_pool_def *d)
{
    dnn_window v = {.kernel = {d->kernel_h, d->kernel_w}, .stride = {d->stride, d->stride}, .low = {d->pad, d->pad}};
    for (int i = 0; i < 2; i++) { /* a ragged last window reaches further than the padding */
        const int64_t reach = (d->y->dim[2 + i] - 1) * d->stride + v.kernel[i] - d->x->dim[2 + i] - d->pad;
        v.high[i] = reach > d->pad ? reach : d->pad;
    }
    return v;
}

static dnnl_primitive_desc_t pick(const pn_op *op, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                  dnn_layout dst, dnnl_primitive_desc_t hint, const char *what)
{
    const dnn_window window = window_of(&op->def.pool);
    dnnl_primitive_desc_t made = dnn_pooling(cpu_open(op->stage)->engine, pass, algorithm, src, dst, &window, hint);
    if (!made)
        pn_fail(NULL, "%s: oneDNN has no %s for this pooling", op->name, what);
    cpu_warn_if_slow(op->name, what, made);
    return made;
}

/* Both kinds: forward with `pass`, y's layout, backward; the forward's descriptor is the result. */
static pn_op *pool_init(pn_stage *stage, const pn_pool_def *def, dnnl_alg_kind_t algorithm, bool records)
{
    pn_op *op = cpu_op(stage, def->name);
    const pn_pool_def *d = &op->def.pool;
    op->def.pool = *def;
    const pn_layout *x = cpu_layout(stage, d->x);
    const dnn_layout any_y = dnn_any(4, d->y->dim);

    dnnl_primitive_desc_t test = pick(op, DNN_INFERENCE, algorithm, x->stored, any_y, NULL, "forward");
    const pn_layout *y = cpu_choose(stage, d->y, dnn_wants(test, dnnl_query_dst_md));
    if (!dnn_same(y->stored, dnn_wants(test, dnnl_query_dst_md))) {
        dnn_need(dnnl_primitive_desc_destroy(test), "descriptor");
        test = pick(op, DNN_INFERENCE, algorithm, x->stored, y->stored, NULL, "forward");
    }
    op->floats = y->floats;
    cpu_bank_tensor(&op->x, stage, "x", d->x, x->stored);
    cpu_bank_tensor(&op->y, stage, "y", d->y, y->stored);
    cpu_call_open(&op->test, stage, d->name);
    cpu_call_port(&op->test, &op->x, DNNL_ARG_SRC, x->stored, false);
    cpu_call_port(&op->test, &op->y, DNNL_ARG_DST, y->stored, true);
    cpu_call_close(&op->test, test);
    if (records && !d->argmax.memory)
        return op;

    dnnl_primitive_desc_t forward = pick(op, DNN_FORWARD, algorithm, x->stored, y->stored, NULL, "forward");
    dnnl_primitive_desc_t backward = pick(op, DNN_BACKWARD_DATA, algorithm, x->stored, y->stored, forward, "backward");
    if (records) {
        const dnn_layout winners = dnn_wants(forward, dnnl_query_workspace_md);
        op->argmax = (cpu_bank){.what = "the winners", .layout = winners, .bytes = dnn_bytes(winners)};
        if (d->argmax.bytes < op->argmax.bytes)
            pn_fail(NULL, "internal error: %s: %lld bytes were planned for the winners, oneDNN needs %lld", d->name,
                    (long long)d->argmax.bytes, (long long)op->argmax.bytes);
        cpu_bank_add(&op->argmax, stage, &d->argmax);
    }
    cpu_call_open(&op->forward, stage, d->name);
    cpu_call_port(&op->forward, &op->x, DNNL_ARG_SRC, x->stored, false);
    cpu_call_port(&op->forward, &op->y, DNNL_ARG_DST, y->stored, true);
    if (records)
        cpu_call_port(&op->forward, &op->argmax, DNNL_ARG_WORKSPACE, op->argmax.layout, true);
    cpu_call_close(&op->forward, forward);
    cpu_call_open(&op->backward_data, stage, d->name);
    cpu_call_port(&op->backward_data, &op->y, DNNL_ARG_DIFF_DST, y->stored, false);
    cpu_call_port(&op->backward_data, &op->x, DNNL_ARG_DIFF_SRC, x->stored, true);
    if (records)
        cpu_call_port(&op->backward_data, &op->argmax, DNNL_ARG_WORKSPACE, op->argmax.layout, false);
    cpu_call_close(&op->backward_data, backward);
    return op;
}

/* NULL where x is not in blocks of 16, or y's and the winners' areas were not planned for that. */
static pn_op *own_init(pn_stage *stage, const pn_pool_def *def)
{
    const int64_t *in = def->x->dim, *out = def->y->dim;
    const pn_layout *x = cpu_layout(stage, def->x);
    const dnn_layout blocked = dnn_blocked(out, 16);
    const int64_t winners = dnn_bytes(blocked) / (int64_t)sizeof(float);
    if (!dnn_same(x->stored, dnn_blocked(in, 16)) || def->kernel_h * def->kernel_w >= MAXPOOL16_TAPS ||
        (def->argmax.memory && def->argmax.bytes < winners) ||
        !dnn_same(cpu_choose(stage, def->y, blocked)->stored, blocked))
        return NULL;
    pn_op *op = cpu_op(stage, def->name);
    op->def.pool = *def;
    op->own = (maxpool16){.planes = in[0] * ((in[1] + 15) / 16),
                          .height = in[2],
                          .width = in[3],
                          .out_height = out[2],
                          .out_width = out[3],
                          .kernel_h = def->kernel_h,
                          .kernel_w = def->kernel_w,
                          .stride = def->stride,
                          .pad = def->pad,
                          .relu = def->relu};
    return op;
}

pn_op *pn_maxpool_init(pn_stage *stage, const pn_pool_def *def)
{
    pn_op *own = own_init(stage, def);
    return own ? own : pool_init(stage, def, dnnl_pooling_max, true);
}

/* Planes of own pooling. */
typedef struct {
    const maxpool16 *own;
    const float *read;
    float *write;
    uint8_t *winner;
    bool backward;
} planes;

static void own_part(void *data, int64_t from, int64_t to)
{
    const planes *all = data;
    const maxpool16 *own = all->own;
    const int64_t in = own->height * own->width * 16, out = own->out_height * own->out_width * 16;
    maxpool16 part = *own;
    part.planes = to - from;
    uint8_t *winner = all->winner ? all->winner + from * out : NULL;
    if (all->backward)
        maxpool16_backward(&part, all->read + from * out, winner, all->write + from * in);
    else
        maxpool16_forward(&part, all->read + from * in, all->write + from * out, winner);
}

void pn_maxpool_forward(pn_op *op, const float *x, float *y, void *argmax)
{
    if (op->own.planes > 0) {
        planes all = {&op->own, x, y, argmax, false};
        pn_target_split(op->stage, op->own.planes, 1, own_part, &all);
        return;
    }
    cpu_run(argmax ? &op->forward : &op->test, (const void *const[]){x, y, argmax});
    if (op->def.pool.relu)
        pn_target_split(op->stage, op->floats, CPU_FLOATS, relu, y);
}

void pn_maxpool_backward(pn_op *op, const float *gy, const void *argmax, float *gx)
{
    if (op->own.planes > 0) {
        planes all = {&op->own, gy, gx, (uint8_t *)argmax, true};
        pn_target_split(op->stage, op->own.planes, 1, own_part, &all);
        return;
    }
    cpu_run(&op->backward_data, (const void *const[]){gy, gx, argmax});
}

pn_op *pn_avgpool_init(pn_stage *stage, const pn_pool_def *def)
{
    return pool_init(stage, def,
                     def->count_padding ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding, false);
}

void pn_avgpool_forward(pn_op *op, const float *x, float *y)
{
    cpu_run(&op->test, (const void *const[]){x, y});
}

void pn_avgpool_backward(pn_op *op, const float *gy, float *gx)
{
    cpu_run(&op->backward_data, (const void *const[]){gy, gx});
}
