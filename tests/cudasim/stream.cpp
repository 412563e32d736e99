// stream.cpp: streams and events. The legacy stream waits for all blocking streams of its GPU, and they for it.
#include "stream.h"

#include <algorithm>

namespace sim
{
namespace
{
struct State {
    std::vector<CUstream_st *> streams; // live ones, legacy ones too
    CUstream_st *legacy[max_devices] = {};
};
State &state()
{
    static State *one = new State;
    return *one;
}

CUstream_st *make(int device, bool blocking, const std::string &name)
{
    CUstream_st *stream = new CUstream_st;
    stream->device = device;
    stream->blocking = blocking;
    stream->name = name;
    stream->timeline = new_timeline();
    state().streams.push_back(stream);
    return stream;
}

CUstream_st *legacy(int device)
{
    CUstream_st *&stream = state().legacy[device];
    if (!stream) {
        stream = make(device, true, "default");
        stream->legacy = true;
    }
    return stream;
}

std::string where(const CUstream_st *stream)
{
    return text("stream '%s'", stream->name.c_str());
}

cudaError_t create(cudaStream_t *result, unsigned flags, bool fails, const char *name)
{
    if (settings.devices == 0)
        return cudaErrorNoDevice;
    if (fails)
        return cudaErrorMemoryAllocation;
    if (forbidden_in_capture(name))
        return cudaErrorStreamCaptureUnsupported;
    *result = make(current_device(), flags != cudaStreamNonBlocking, text("%zu", state().streams.size() + 1));
    return cudaSuccess;
}

void record(CUevent_st *event, CUstream_st *stream)
{
    event->capture = stream->capture;
    event->needs = stream->needs;
    event->when = ticks() + 1;
    if (stream->capture)
        return;
    event->op = stream->tail;
    if (stream->legacy) {
        event->op = stream_op(stream, Work());
        submit(event->op);
    }
}

cudaError_t wait_event(CUstream_st *stream, CUevent_st *event)
{
    if (event->capture) {
        if (stream->capture && stream->capture != event->capture)
            return cudaErrorStreamCaptureMerge;
        if (!stream->capture)
            stream->needs.clear();
        stream->capture = event->capture; // the stream joins the capture
        for (int one : event->needs)
            if (std::find(stream->needs.begin(), stream->needs.end(), one) == stream->needs.end())
                stream->needs.push_back(one);
        return cudaSuccess;
    }
    if (stream->capture) {
        if (!event->op)
            return cudaSuccess;
        report(
            "isolation " + stream->name,
            text("stream '%s', which is captured, waits for an event that was recorded outside", stream->name.c_str()));
        stream->capture->invalid = true;
        return cudaErrorStreamCaptureIsolation;
    }
    if (event->op) {
        OpRef op = stream_op(stream, Work());
        need(op, event->op);
        submit(op);
    }
    return cudaSuccess;
}
} // namespace

std::vector<CUstream_st *> &streams()
{
    return state().streams;
}

CUstream_st *resolve(cudaStream_t stream)
{
    if (!stream || stream == cudaStreamLegacy)
        return legacy(current_device());
    if (std::find(state().streams.begin(), state().streams.end(), stream) != state().streams.end())
        return stream;
    report("stream", stream == cudaStreamPerThread ? "the double has no per-thread default stream"
                                                   : text("%p is no stream, or was destroyed", (void *)stream));
    return nullptr;
}

int stream_device(cudaStream_t stream)
{
    CUstream_st *found = resolve(stream);
    return found ? found->device : -1;
}

OpRef stream_op(CUstream_st *stream, const Work &work)
{
    OpRef op = make_op(work, stream->device, stream->timeline, where(stream));
    need(op, stream->tail);
    for (CUstream_st *other : state().streams)
        if (other != stream && other->device == stream->device && other->blocking && stream->blocking &&
            (stream->legacy || other->legacy))
            need(op, other->tail);
    stream->tail = op;
    return op;
}

cudaError_t enqueue(cudaStream_t handle, const Work &work, OpRef *made)
{
    CUstream_st *stream = resolve(handle);
    if (!stream)
        return cudaErrorInvalidResourceHandle;
    if (stream->capture) {
        if (stream->capture->invalid)
            return cudaErrorStreamCaptureInvalidated;
        add_node(stream, work);
        stream->capture->nodes.back().where = where(stream);
        return cudaSuccess;
    }
    OpRef op = stream_op(stream, work);
    submit_in_order(op);
    if (made)
        *made = op;
    return cudaSuccess;
}

bool capturing(cudaStream_t handle)
{
    CUstream_st *stream = resolve(handle);
    return stream && stream->capture;
}
} // namespace sim

using namespace sim;

EXPORT void pn_sim_stream(cudaStream_t stream, const char *name)
{
    Call call("pn_sim_stream");
    if (CUstream_st *found = resolve(stream))
        found->name = name;
}

EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    Call call("cudaStreamCreate");
    return last(create(stream, cudaStreamDefault, call.fails, call.name));
}

EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    Call call("cudaStreamCreateWithFlags");
    return last(create(stream, flags, call.fails, call.name));
}

EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    Call call("cudaStreamCreateWithPriority");
    return last(create(stream, flags, call.fails, call.name));
}

EXPORT cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    Call call("cudaStreamDestroy");
    CUstream_st *stream = call.fails ? nullptr : resolve(handle);
    if (!stream || stream->legacy)
        return last(cudaErrorInvalidResourceHandle);
    state().streams.erase(std::find(state().streams.begin(), state().streams.end(), stream));
    delete stream;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *device)
{
    Call call("cudaStreamGetDevice");
    CUstream_st *stream = call.fails ? nullptr : resolve(handle);
    if (!stream)
        return last(cudaErrorInvalidResourceHandle);
    *device = stream->device;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    Call call("cudaStreamSynchronize");
    if (call.dropped)
        return last(cudaSuccess);
    CUstream_st *stream = resolve(handle);
    if (!stream || call.fails)
        return last(cudaErrorLaunchFailure);
    if (stream->capture || forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    if (stream->legacy) // it also waits for all blocking streams
        submit(stream_op(stream, Work()));
    wait_for(stream->tail);
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    Call call("cudaStreamQuery");
    CUstream_st *stream = resolve(handle);
    if (!stream || call.fails)
        return last(cudaErrorLaunchFailure);
    if (forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    return query(stream->tail) ? cudaSuccess : cudaErrorNotReady;
}

EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned)
{
    Call call("cudaStreamWaitEvent");
    if (call.dropped)
        return last(cudaSuccess);
    CUstream_st *stream = resolve(handle);
    if (!stream || call.fails)
        return last(cudaErrorInvalidResourceHandle);
    return last(wait_event(stream, event));
}

EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    Call call("cudaLaunchHostFunc");
    if (call.fails)
        return last(cudaErrorLaunchFailure);
    Work work;
    work.kind = Kind::host;
    work.label = "host function";
    work.run = [function, argument](Op &op) {
        current = nullptr;
        in_host_function = true;
        lock.unlock();
        function(argument);
        lock.lock();
        in_host_function = false;
        current = &op;
    };
    return last(enqueue(stream, work));
}

EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    Call call("cudaEventCreateWithFlags");
    if (call.fails)
        return last(cudaErrorMemoryAllocation);
    *event = new CUevent_st;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    Call call("cudaEventCreate");
    if (call.fails)
        return last(cudaErrorMemoryAllocation);
    *event = new CUevent_st;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    Call call("cudaEventDestroy");
    delete event;
    return last(call.fails ? cudaErrorInvalidResourceHandle : cudaSuccess);
}

EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle)
{
    Call call("cudaEventRecord");
    if (call.dropped)
        return last(cudaSuccess);
    CUstream_st *stream = resolve(handle);
    if (!stream || call.fails)
        return last(cudaErrorInvalidResourceHandle);
    record(event, stream);
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    Call call("cudaEventSynchronize");
    if (call.dropped)
        return last(cudaSuccess);
    if (call.fails)
        return last(cudaErrorLaunchFailure);
    if (event->capture || forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    wait_for(event->op);
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    Call call("cudaEventQuery");
    if (call.fails)
        return last(cudaErrorLaunchFailure);
    if (event->capture || forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    return query(event->op) ? cudaSuccess : cudaErrorNotReady;
}

// Not a measurement: a microsecond for each operation that was enqueued between; for one of cuDNN, the number of its engine.
EXPORT cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    Call call("cudaEventElapsedTime");
    if (call.fails || !from->when || !to->when)
        return last(cudaErrorInvalidResourceHandle);
    *milliseconds = float(to->when - from->when) * 1e-3f;
    return last(cudaSuccess);
}
