// device.cpp: the GPU that is played, as a program asks about it. Its properties come from the JSON that cuDNN takes too.
#include "sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sim
{
namespace
{
thread_local int device;
thread_local cudaError_t last_error;

// The value of "key": in a flat JSON object.
std::string member(const std::string &json, const char *key, const char *otherwise)
{
    size_t found = json.find(text("\"%s\":", key));
    if (found == std::string::npos)
        return otherwise;
    size_t begin = found + strlen(key) + 3;
    while (begin < json.size() && (json[begin] == ' ' || json[begin] == '"'))
        begin++;
    return json.substr(begin, json.find_first_of("\",}", begin) - begin);
}

bool no_device()
{
    return settings.devices == 0;
}
} // namespace

const Gpu &gpu()
{
    static Gpu *one = nullptr;
    if (one)
        return *one;
    one = new Gpu;
    FILE *file = settings.gpu.empty() ? nullptr : fopen(settings.gpu.c_str(), "rb");
    if (!settings.gpu.empty() && !file)
        fprintf(stderr, "cudasim: cannot read %s\n", settings.gpu.c_str());
    char part[4096];
    for (size_t n; file && (n = fread(part, 1, sizeof part, file)) > 0;)
        one->json.append(part, n);
    if (file)
        fclose(file);
    one->name = "cudasim " + member(one->json, "deviceName", "GPU");
    one->arch = atoi(member(one->json, "deviceVer", "900").c_str()) / 10;
    one->multiprocessors = atoi(member(one->json, "multiProcessorCount", "132").c_str());
    return *one;
}

cudaError_t last(cudaError_t error)
{
    if (error != cudaSuccess)
        last_error = error;
    return error;
}

int current_device()
{
    return device;
}
} // namespace sim

using namespace sim;

EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    Call call("cudaGetDeviceCount");
    *count = settings.devices;
    return last(no_device() || call.fails ? cudaErrorNoDevice : cudaSuccess);
}

EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    Call call("cudaDriverGetVersion");
    *version = CUDART_VERSION;
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    Call call("cudaRuntimeGetVersion");
    *version = CUDART_VERSION;
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaSetDevice(int number)
{
    Call call("cudaSetDevice");
    if (call.fails || number < 0 || number >= settings.devices)
        return last(no_device() ? cudaErrorNoDevice : cudaErrorInvalidDevice);
    device = number;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaInitDevice(int number, unsigned, unsigned)
{
    return cudaSetDevice(number);
}

EXPORT cudaError_t cudaGetDevice(int *number)
{
    Call call("cudaGetDevice");
    *number = device;
    return last(no_device() || call.fails ? cudaErrorNoDevice : cudaSuccess);
}

EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int number)
{
    Call call("cudaGetDeviceProperties");
    if (call.fails || number < 0 || number >= settings.devices)
        return last(cudaErrorInvalidDevice);
    memset(properties, 0, sizeof *properties);
    snprintf(properties->name, sizeof properties->name, "%s", gpu().name.c_str());
    properties->totalGlobalMem = settings.memory;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->regsPerBlock = 65536;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->major = gpu().arch / 10;
    properties->minor = gpu().arch % 10;
    properties->multiProcessorCount = gpu().multiprocessors;
    properties->asyncEngineCount = 2;
    properties->concurrentKernels = properties->unifiedAddressing = 1;
    properties->pciBusID = number + 1;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int number)
{
    Call call("cudaDeviceGetAttribute");
    if (call.fails || number < 0 || number >= settings.devices)
        return last(cudaErrorInvalidDevice);
    switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = gpu().arch / 10;
        break;
    case cudaDevAttrComputeCapabilityMinor:
        *value = gpu().arch % 10;
        break;
    case cudaDevAttrMultiProcessorCount:
        *value = gpu().multiprocessors;
        break;
    case cudaDevAttrMaxThreadsPerBlock:
        *value = 1024;
        break;
    case cudaDevAttrWarpSize:
        *value = 32;
        break;
    default:
        report(text("attribute %d", int(attribute)),
               text("cudaDeviceGetAttribute: the double does not know attribute %d", int(attribute)));
        return last(cudaErrorInvalidValue);
    }
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int number)
{
    Call call("cudaDeviceGetPCIBusId");
    if (call.fails || number < 0 || number >= settings.devices)
        return last(cudaErrorInvalidDevice);
    snprintf(id, size_t(bytes), "0000:%02X:00.0", unsigned(number + 1));
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaSetDeviceFlags(unsigned)
{
    Call call("cudaSetDeviceFlags");
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaDeviceSetLimit(cudaLimit, size_t)
{
    Call call("cudaDeviceSetLimit");
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    Call call("cudaDeviceGetStreamPriorityRange");
    *least = 0;
    *greatest = -5;
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaDeviceSynchronize(void)
{
    Call call("cudaDeviceSynchronize");
    if (call.dropped)
        return last(cudaSuccess);
    if (call.fails)
        return last(cudaErrorLaunchFailure);
    if (forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    wait_all(device);
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaDeviceReset(void)
{
    Call call("cudaDeviceReset");
    wait_all(device);
    return last(call.fails ? cudaErrorLaunchFailure : cudaSuccess);
}

EXPORT cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

EXPORT cudaError_t cudaPeekAtLastError(void)
{
    return last_error;
}
