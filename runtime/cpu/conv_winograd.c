/* conv_winograd.c: the kernels of winograd.h as passes of a convolution. Their room in the stage's scratch: the
 * transformed weights, or the sums of the weights' gradient, then that of the tiles. */
#include "cpu.h"

bool cpu_winograd_of(winograd16 *p, const pn_conv_def *d, const pn_op *op)
{
    const int64_t *x = d->x->dim, *y = d->y->dim;
    if (d->kernel != 3 || d->stride != 1 || d->dilation != 1 || d->groups != 1 || d->pad > 2 || x[1] % WINOGRAD_LANES ||
        y[1] % WINOGRAD_LANES)
        return false;
    if (!dnn_same(op->x.layout, dnn_blocked(x, WINOGRAD_LANES)) ||
        !dnn_same(op->y.layout, dnn_blocked(y, WINOGRAD_LANES)) ||
        !dnn_same(op->w.layout, dnn_blocked_weights((const int64_t[]){y[1], x[1], 3, 3})))
        return false;
    *p = (winograd16){.images = x[0],
                      .in = x[1] / WINOGRAD_LANES,
                      .out = y[1] / WINOGRAD_LANES,
                      .height = x[2],
                      .width = x[3],
                      .out_height = y[2],
                      .out_width = y[3],
                      .pad = d->pad,
                      .relu = d->relu};
    return true;
}

/* A pass of one minibatch. Its images are cut into parts, one a thread, each with a room of its own. */
typedef struct {
    const winograd16 *shape;
    bool backward;
    const float *from, *with, *bias; /* with: transformed weights, or gy */
    float *to, *room;
    int64_t parts, room_floats;
} work;

static int64_t parts_of(const pn_stage *stage, const winograd16 *p)
{
    return stage->run->threads < p->images ? stage->run->threads : p->images;
}

static void convolve_parts(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    const winograd16 *p = w->shape;
    for (int64_t part = from; part < to; part++)
        winograd_convolve(p, w->backward, w->from, w->with, w->bias, w->to, p->images * part / w->parts,
                          p->images * (part + 1) / w->parts, w->room + part * w->room_floats);
}

static void convolve(const cpu_call *call, bool backward, const float *from, const float *weights, const float *bias,
                     float *to, float *room)
{
    const winograd16 *p = call->with;
    work w = {.shape = p,
              .backward = backward,
              .from = from,
              .with = room,
              .bias = bias,
              .to = to,
              .room = room + winograd_weights_floats(p),
              .parts = parts_of(call->stage, p),
              .room_floats = winograd_room_floats(p, backward)};
    winograd_weights(p, backward, weights, room);
    pn_target_split(call->stage, w.parts, 1, convolve_parts, &w);
}

static void forward(const cpu_call *call, void *const *at, void *room)
{
    convolve(call, false, at[0], at[1], at[3], at[2], room);
}

static void backward_data(const cpu_call *call, void *const *at, void *room)
{
    convolve(call, true, at[0], at[1], NULL, at[2], room);
}

static void gradient_parts(void *data, int64_t from, int64_t to)
{
    const work *w = data;
    const winograd16 *p = w->shape;
    for (int64_t part = from; part < to; part++)
        winograd_gradient(p, w->from, w->with, p->images * part / w->parts, p->images * (part + 1) / w->parts,
                          w->to + part * winograd_sums_floats(p), w->room + part * w->room_floats);
}

static void backward_weights(const cpu_call *call, void *const *at, void *room)
{
    const winograd16 *p = call->with;
    const int64_t parts = parts_of(call->stage, p);
    float *sums = room;
    work w = {.shape = p,
              .from = at[0],
              .with = at[1],
              .to = sums,
              .room = sums + parts * winograd_sums_floats(p),
              .parts = parts,
              .room_floats = winograd_gradient_room_floats(p)};
    pn_target_split(call->stage, parts, 1, gradient_parts, &w);
    winograd_gradient_end(p, sums, (int)parts, at[2], at[3]);
}

void cpu_winograd_close(cpu_call *call, const winograd16 *p, dnn_pass pass)
{
    const int64_t parts = parts_of(call->stage, p);
    const bool back = pass == DNN_BACKWARD_DATA;
    if (pass == DNN_BACKWARD_WEIGHTS)
        cpu_call_close_kernel(call, backward_weights, p,
                              parts * (winograd_sums_floats(p) + winograd_gradient_room_floats(p)) *
                                  (int64_t)sizeof(float));
    else
        cpu_call_close_kernel(call, back ? backward_data : forward, p,
                              (winograd_weights_floats(p) + parts * winograd_room_floats(p, back)) *
                                  (int64_t)sizeof(float));
}
