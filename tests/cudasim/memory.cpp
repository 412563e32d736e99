// memory.cpp: allocation, copies and fills. A copy from pageable memory takes the bytes at the call, one to pageable memory is waited
// for, as CUDA does; pinned memory is guarded until the host has waited (pinned.cpp).
#include "sim.h"

#include <cstring>

namespace sim
{
namespace
{
cudaError_t give(void **result, size_t bytes, int space, const char *name, bool fails)
{
    if (forbidden_in_capture(name))
        return cudaErrorStreamCaptureUnsupported;
    if (!result)
        return cudaErrorInvalidValue;
    if (settings.devices == 0)
        return cudaErrorNoDevice;
    Buffer *buffer = fails ? nullptr : allocate(space, bytes ? bytes : 1, "");
    if (!buffer)
        return cudaErrorMemoryAllocation;
    *result = (void *)buffer->begin;
    return cudaSuccess;
}

cudaError_t take(void *p, bool device, const char *name)
{
    if (!p)
        return cudaSuccess;
    if (forbidden_in_capture(name))
        return cudaErrorStreamCaptureUnsupported;
    Buffer *buffer = is_handed_out(uintptr_t(p)) ? buffer_at(uintptr_t(p)) : nullptr;
    if (!buffer || buffer->begin != uintptr_t(p) || buffer->freed || device != is_device(p)) {
        report(std::string("free ") + name,
               text("%s: %s is no allocation that it could free", name, place(uintptr_t(p)).c_str()));
        return cudaErrorInvalidValue;
    }
    release(buffer);
    return cudaSuccess;
}

bool direction_fits(const void *to, const void *from, cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !is_device(to) && !is_device(from);
    case cudaMemcpyHostToDevice:
        return is_device(to) && !is_device(from);
    case cudaMemcpyDeviceToHost:
        return !is_device(to) && is_device(from);
    case cudaMemcpyDeviceToDevice:
        return is_device(to) && is_device(from);
    default:
        return kind == cudaMemcpyDefault;
    }
}

const char *kind_name(const void *p)
{
    return is_device(p) ? "device" : is_pinned(p) ? "pinned" : "host";
}

cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, const char *name,
                 bool blocks)
{
    if (!bytes)
        return cudaSuccess;
    if (!direction_fits(to, from, kind)) {
        report(text("direction %s %p", name, to),
               text("%s: the direction is wrong: from %s memory (%s) to %s memory (%s)", name, kind_name(from),
                    place(uintptr_t(from)).c_str(), kind_name(to), place(uintptr_t(to)).c_str()));
        return cudaErrorInvalidMemcpyDirection;
    }
    if (!range_ok(to, bytes, std::string(name) + ", destination") ||
        !range_ok(from, bytes, std::string(name) + ", source"))
        return cudaErrorInvalidValue;
    Work work;
    work.kind = Kind::copy;
    work.label = text("copy from %s to %s", kind_name(from), kind_name(to));
    bool pageable_source = !is_handed_out(uintptr_t(from)), pageable_target = !is_handed_out(uintptr_t(to));
    if (capturing(stream) && (pageable_source || pageable_target)) {
        report(std::string("pageable ") + work.label, text("%s during capture uses pageable host memory", name));
        return cudaErrorStreamCaptureUnsupported;
    }
    std::shared_ptr<std::vector<char>> staged;
    if (pageable_source) {
        staged = std::make_shared<std::vector<char>>((const char *)from, (const char *)from + bytes);
        from = staged->data();
    }
    if (is_pinned(from))
        work.pins.push_back({uintptr_t(from), bytes, false});
    if (is_pinned(to))
        work.pins.push_back({uintptr_t(to), bytes, true});
    work.run = [to, from, bytes, staged](Op &) {
        bool readable = use(from, bytes, Access::read, "source"),
             writable = use(to, bytes, Access::write, "destination");
        if (readable && writable)
            memmove(alias(to), alias(from), bytes);
    };
    OpRef op;
    cudaError_t error = enqueue(stream, work, &op);
    if (error == cudaSuccess && op && (blocks || pageable_target))
        wait_for(op);
    return error;
}

cudaError_t fill(void *to, int value, size_t bytes, cudaStream_t stream, const char *name)
{
    if (!bytes)
        return cudaSuccess;
    if (!is_handed_out(uintptr_t(to))) {
        report(std::string("fill ") + name, text("%s: %p is not memory of a GPU", name, to));
        return cudaErrorInvalidValue;
    }
    if (!range_ok(to, bytes, name))
        return cudaErrorInvalidValue;
    Work work;
    work.kind = Kind::set;
    work.label = "memset";
    work.run = [to, value, bytes](Op &) {
        if (use(to, bytes, Access::write, "destination"))
            memset(alias(to), value, bytes);
    };
    return enqueue(stream, work);
}
} // namespace
} // namespace sim

using namespace sim;

EXPORT cudaError_t cudaMalloc(void **result, size_t bytes)
{
    Call call("cudaMalloc");
    return last(give(result, bytes, current_device(), call.name, call.fails));
}

EXPORT cudaError_t cudaMallocHost(void **result, size_t bytes)
{
    Call call("cudaMallocHost");
    return last(give(result, bytes, host_space, call.name, call.fails));
}

EXPORT cudaError_t cudaHostAlloc(void **result, size_t bytes, unsigned)
{
    Call call("cudaHostAlloc");
    return last(give(result, bytes, host_space, call.name, call.fails));
}

EXPORT cudaError_t cudaFree(void *p)
{
    Call call("cudaFree");
    return last(call.fails ? cudaErrorInvalidValue : take(p, true, call.name));
}

EXPORT cudaError_t cudaFreeHost(void *p)
{
    Call call("cudaFreeHost");
    return last(call.fails ? cudaErrorInvalidValue : take(p, false, call.name));
}

EXPORT cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
    Call call("cudaMemGetInfo");
    if (call.fails || settings.devices == 0)
        return last(cudaErrorNoDevice);
    *total = settings.memory;
    *free = settings.memory - in_use(current_device());
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    Call call("cudaMemcpy");
    if (call.fails)
        return last(cudaErrorInvalidValue);
    if (forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureImplicit);
    return last(copy(to, from, bytes, kind, nullptr, call.name, true));
}

EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream)
{
    Call call("cudaMemcpyAsync");
    if (call.dropped)
        return last(cudaSuccess);
    return last(call.fails ? cudaErrorInvalidValue : copy(to, from, bytes, kind, stream, call.name, false));
}

EXPORT cudaError_t cudaMemset(void *to, int value, size_t bytes)
{
    Call call("cudaMemset");
    if (call.fails)
        return last(cudaErrorInvalidValue);
    if (forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureImplicit);
    return last(fill(to, value, bytes, nullptr, call.name));
}

EXPORT cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    Call call("cudaMemsetAsync");
    if (call.dropped)
        return last(cudaSuccess);
    return last(call.fails ? cudaErrorInvalidValue : fill(to, value, bytes, stream, call.name));
}

EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *p)
{
    Call call("cudaPointerGetAttributes");
    if (call.fails)
        return last(cudaErrorInvalidValue);
    *attributes = cudaPointerAttributes();
    attributes->type = is_device(p)   ? cudaMemoryTypeDevice
                       : is_pinned(p) ? cudaMemoryTypeHost
                                      : cudaMemoryTypeUnregistered;
    attributes->device = is_device(p) ? space_of(uintptr_t(p)) : current_device();
    attributes->devicePointer = is_handed_out(uintptr_t(p)) ? const_cast<void *>(p) : nullptr;
    attributes->hostPointer = is_device(p) ? nullptr : const_cast<void *>(p);
    return last(cudaSuccess);
}
