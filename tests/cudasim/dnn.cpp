// dnn.cpp: every call of cuDNN's backend API goes to real cuDNN, which checks descriptors, lists engines and makes plans for the GPU that
// is played (a device-property descriptor takes the handle's place; cuDNN documentation, device-less ahead-of-time compilation).
// Only the handle and the execution are the double's.
#include "dnn.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

struct cudnnContext {
    cudaStream_t stream = nullptr;
};

namespace sim
{
namespace
{
using Handle = cudnnBackendDescriptor_t;

struct State {
    std::map<Handle, std::shared_ptr<Descriptor>> known;
    Handle device = nullptr; // DEVICEPROP
};
State &state()
{
    static State *one = new State;
    return *one;
}

template <class F> F *real(F *, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "cudasim: the program is not linked to cuDNN, but calls %s\n", name);
        end_now(2);
    }
    return (F *)found;
}
#define REAL(NAME) real(&NAME, #NAME)

size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    case CUDNN_TYPE_HANDLE:
        return 8;
    case CUDNN_TYPE_FRACTION:
        return 16;
    default:
        return 4;
    }
}

std::shared_ptr<Descriptor> known(Handle handle)
{
    auto found = state().known.find(handle);
    return found == state().known.end() ? nullptr : found->second;
}

cudnnStatus_t give_device(Handle descriptor, cudnnBackendAttributeName_t name)
{
    return REAL(cudnnBackendSetAttribute)(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &state().device);
}

cudnnStatus_t make_device()
{
    Handle device = nullptr;
    if (gpu().json.empty()) {
        fprintf(stderr, "cudasim: CUDASIM_GPU names no file of device properties, which cuDNN needs\n");
        return CUDNN_STATUS_NOT_INITIALIZED;
    }
    cudnnStatus_t status = REAL(cudnnBackendCreateDescriptor)(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device);
    if (status == CUDNN_STATUS_SUCCESS)
        status = REAL(cudnnBackendSetAttribute)(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                                int64_t(gpu().json.size()), gpu().json.data());
    if (status == CUDNN_STATUS_SUCCESS)
        status = REAL(cudnnBackendFinalize)(device);
    if (status == CUDNN_STATUS_SUCCESS)
        state().device = device;
    else
        fprintf(stderr, "cudasim: cuDNN refuses the device properties of %s\n", settings.gpu.c_str());
    return status;
}

void remember(Descriptor &descriptor, int name, cudnnBackendAttributeType_t type, int64_t number, const void *values)
{
    Attribute &attribute = descriptor.attributes[name];
    attribute = Attribute();
    attribute.type = type;
    attribute.count = number;
    const unsigned char *bytes = (const unsigned char *)values;
    attribute.bytes.assign(bytes, bytes + size_of(type) * size_t(number));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        for (int64_t i = 0; i < number; i++)
            attribute.descriptors.push_back(known(((const Handle *)values)[i]));
}

// The operation graph behind an execution plan.
DescriptorRef graph_of(const Descriptor &plan)
{
    const Descriptor *config = plan.sub(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (config && config->graph)
        return config->graph;
    const Descriptor *engine = config ? config->sub(CUDNN_ATTR_ENGINECFG_ENGINE) : nullptr;
    const Attribute *graph = engine ? engine->find(CUDNN_ATTR_ENGINE_OPERATION_GRAPH) : nullptr;
    return graph && !graph->descriptors.empty() ? graph->descriptors[0] : nullptr;
}

int64_t engine_of(const Descriptor &plan)
{
    Handle config = plan.value<Handle>(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, nullptr), engine = nullptr;
    int64_t count = 0, number = 0;
    if (REAL(cudnnBackendCreateDescriptor)(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) != CUDNN_STATUS_SUCCESS)
        return 0;
    if (REAL(cudnnBackendGetAttribute)(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                       &engine) == CUDNN_STATUS_SUCCESS)
        REAL(cudnnBackendGetAttribute)(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &number);
    REAL(cudnnBackendDestroyDescriptor)(engine);
    return number;
}

cudnnStatus_t execute(cudnnHandle_t handle, Handle plan_handle, Handle pack_handle)
{
    auto plan = known(plan_handle), pack = known(pack_handle);
    auto job = std::make_shared<DnnJob>();
    if (!handle || !plan || !pack || !(job->graph = graph_of(*plan)))
        return CUDNN_STATUS_BAD_PARAM;
    const Attribute *ids = pack->find(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    for (int64_t i = 0; ids && i < ids->count; i++)
        job->pointers[pack->value<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, 0, size_t(i))] =
            pack->value<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, nullptr, size_t(i));
    job->workspace = pack->value<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, nullptr);
    int64_t number = 0;
    cudnnStatus_t status = REAL(cudnnBackendGetAttribute)(plan_handle, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                          CUDNN_TYPE_INT64, 1, &number, &job->workspace_bytes);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    Work work;
    work.kind = Kind::dnn;
    work.ticks = uint64_t(1 + plan->engine);
    work.label = dnn_label(*job->graph);
    if (work.label.empty() || !dnn_job_ok(*job))
        return CUDNN_STATUS_BAD_PARAM;
    work.run = [job](Op &) { dnn_run(*job); };
    return enqueue(handle->stream, work) == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
} // namespace
} // namespace sim

using namespace sim;

EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    Call call("cudnnCreate");
    if (call.fails || settings.devices == 0)
        return CUDNN_STATUS_NOT_INITIALIZED;
    if (!state().device && make_device() != CUDNN_STATUS_SUCCESS)
        return CUDNN_STATUS_NOT_INITIALIZED;
    *handle = new cudnnContext;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    Call call("cudnnDestroy");
    delete handle;
    return call.fails ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    Call call("cudnnSetStream");
    if (call.dropped)
        return CUDNN_STATUS_SUCCESS;
    if (call.fails || !handle || !resolve(stream))
        return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
    Call call("cudnnGetStream");
    if (call.fails || !handle)
        return CUDNN_STATUS_BAD_PARAM;
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, Handle *handle)
{
    Call call("cudnnBackendCreateDescriptor");
    if (call.fails)
        return CUDNN_STATUS_ALLOC_FAILED;
    cudnnStatus_t status = REAL(cudnnBackendCreateDescriptor)(type, handle);
    if (status == CUDNN_STATUS_SUCCESS) {
        state().known[*handle] = std::make_shared<Descriptor>();
        state().known[*handle]->type = type;
    }
    return status;
}

EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(Handle handle)
{
    Call call("cudnnBackendDestroyDescriptor");
    state().known.erase(handle);
    return REAL(cudnnBackendDestroyDescriptor)(handle);
}

EXPORT cudnnStatus_t cudnnBackendSetAttribute(Handle handle, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t number, const void *values)
{
    Call call("cudnnBackendSetAttribute");
    if (call.fails)
        return CUDNN_STATUS_BAD_PARAM;
    if (auto descriptor = known(handle))
        remember(*descriptor, name, type, number, values);
    if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE)
        return CUDNN_STATUS_SUCCESS;
    if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE)
        return give_device(handle, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
    cudnnStatus_t status = REAL(cudnnBackendSetAttribute)(handle, name, type, number, values);
    bool heuristics = name == CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, engine = name == CUDNN_ATTR_ENGINE_OPERATION_GRAPH;
    if (status == CUDNN_STATUS_SUCCESS && (heuristics || engine)) {
        auto graph = known(*(const Handle *)values);
        if (graph && graph->find(CUDNN_ATTR_OPERATIONGRAPH_HANDLE))
            return give_device(handle, heuristics ? CUDNN_ATTR_ENGINEHEUR_DEVICEPROP : CUDNN_ATTR_ENGINE_DEVICEPROP);
    }
    return status;
}

EXPORT cudnnStatus_t cudnnBackendGetAttribute(Handle const handle, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t wanted, int64_t *number,
                                              void *values)
{
    Call call("cudnnBackendGetAttribute");
    if (call.fails)
        return CUDNN_STATUS_BAD_PARAM;
    cudnnStatus_t status = REAL(cudnnBackendGetAttribute)(handle, name, type, wanted, number, values);
    auto heuristics = known(handle);
    if (status != CUDNN_STATUS_SUCCESS || name != CUDNN_ATTR_ENGINEHEUR_RESULTS || !values || !heuristics)
        return status;
    const Attribute *graph = heuristics->find(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    for (int64_t i = 0; graph && i < *number && i < wanted; i++)
        if (auto config = known(((Handle *)values)[i]))
            config->graph = graph->descriptors[0];
    return status;
}

EXPORT cudnnStatus_t cudnnBackendFinalize(Handle handle)
{
    Call call("cudnnBackendFinalize");
    if (call.fails)
        return CUDNN_STATUS_NOT_SUPPORTED;
    cudnnStatus_t status = REAL(cudnnBackendFinalize)(handle);
    auto descriptor = known(handle);
    if (descriptor && descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR && status == CUDNN_STATUS_SUCCESS)
        descriptor->engine = engine_of(*descriptor);
    if (descriptor && descriptor->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
        count(status == CUDNN_STATUS_SUCCESS ? "cudnn plans accepted" : "cudnn plans refused");
    return status;
}

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, Handle plan, Handle pack)
{
    Call call("cudnnBackendExecute");
    if (call.dropped)
        return CUDNN_STATUS_SUCCESS;
    return call.fails ? CUDNN_STATUS_EXECUTION_FAILED : execute(handle, plan, pack);
}
