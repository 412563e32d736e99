/* The verbs of registers that generated code calls, handed to the transport of the run. */
#include "rt.h"

/* A program whose stages and channels do not fit is a compiler's error: caught here for every transport. */
static void check(pn_stage *stage, const pn_channel *channel, int end, int64_t n)
{
    if (stage->index != end || channel->area.slots == 0 || n < 0)
        pn_fail(stage, "internal error: this stage is not an end of %s, which goes from stage %d to stage %d",
                channel->name, channel->from, channel->to);
}

static void *place(const pn_channel *channel, int64_t n)
{
    return (char *)channel->area.memory + n % channel->area.slots * channel->area.bytes;
}

/* One end of an arrow between stages. */
static void trace_end(pn_stage *stage, pn_trace_kind kind, const pn_channel *channel, int64_t n)
{
    double now = pn_seconds();
    pn_trace_add(stage, kind, channel, n, now, now, 0);
}

/* Slices are as large as the layout makes them; all three channels of a register have one. */
static void set_slices(pn_stage *stage, pn_register *reg, const pn_tensor *tensor)
{
    const int64_t floats = pn_tensor_floats(tensor), bytes = floats / tensor->dim[0] * (int64_t)sizeof(float);
    if (floats % tensor->dim[0] != 0 || bytes * pn_slice(stage->run->program) > reg->forward.area.bytes)
        pn_fail(stage, "internal error: the slices of %s do not fit into its register", tensor->name);
    reg->forward.sample_bytes = reg->gradient.sample_bytes = reg->test.sample_bytes = bytes;
}

void pn_take_layout(pn_stage *stage, pn_tensor *tensor, const pn_register *from)
{
    if (from->layout)
        tensor->layout = pn_layout_of_batch(stage, from->layout, tensor);
}

void pn_give_layout(pn_stage *stage, pn_register *to, const pn_tensor *tensor)
{
    to->layout = tensor->layout;
    set_slices(stage, to, tensor);
}

void *pn_room(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check(stage, channel, channel->from, n);
    if (stage->captures)
        return place(channel, n);
    void *slot = stage->run->transport->room(stage, channel, n);
    pn_target_channel(stage, channel, n, PN_AT_ROOM);
    return slot;
}

void pn_give(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check(stage, channel, channel->from, n);
    if (stage->captures)
        return;
    if (stage->trace)
        trace_end(stage, PN_TRACE_GIVE, channel, n);
    pn_target_channel(stage, channel, n, PN_AT_GIVE);
    stage->run->transport->give(stage, channel, n);
    const int64_t bytes = channel->area.bytes; /* replica 0 counts what the slot has beyond the slices */
    stage->traffic_bytes += bytes / stage->replicas + (stage->replica == 0 ? bytes % stage->replicas : 0);
}

void *pn_take(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check(stage, channel, channel->to, n);
    if (stage->captures)
        return place(channel, n);
    void *slot = stage->run->transport->take(stage, channel, n);
    pn_target_channel(stage, channel, n, PN_AT_TAKE);
    if (stage->trace)
        trace_end(stage, PN_TRACE_TAKE, channel, n);
    return slot;
}

void pn_done(pn_stage *stage, pn_channel *channel, int64_t n)
{
    check(stage, channel, channel->to, n);
    if (stage->captures)
        return;
    pn_target_channel(stage, channel, n, PN_AT_DONE);
    stage->run->transport->done(stage, channel, n);
}
