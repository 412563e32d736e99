// kernel.cpp: libraries of kernels and launches. A kernel is found by name in the image that the program loaded and in the CPU build of
// the same text; both must agree on the parameters. Pointers among the arguments are turned into windows when the launch runs.
#include "window.h"

#include <cstring>

namespace sim
{
namespace
{
struct Library {
    const void *image;
};
struct Loaded { // a cudaKernel_t
    const Kernel *kernel;
    CubinKernel compiled;
    bool agrees; // else it may be loaded but not launched
};
struct State {
    std::map<std::string, Kernel> kernels;
    std::map<const void *, Loaded> loaded;
};
State &state()
{
    static State *one = new State;
    return *one;
}

constexpr size_t shared_limit = 227 << 10;
constexpr unsigned max_block = 1024, max_grid_yz = 65535;

void compare(const Kernel &kernel, Loaded &loaded)
{
    const CubinKernel &compiled = loaded.compiled;
    if (compiled.size.empty()) // PTX
        return;
    bool same = compiled.size.size() == size_t(kernel.count);
    for (int i = 0; same && i < kernel.count; i++)
        same = compiled.size[size_t(i)] == kernel.size[i];
    loaded.agrees = same;
    if (!same)
        report("parameters " + kernel.name,
               text("kernel %s: its parameters in the cubin (%zu) differ from those of its text (%d)",
                    kernel.name.c_str(), compiled.size.size(), kernel.count));
}

uintptr_t show(uintptr_t p, int device, int parameter, int &window)
{
    const std::string &name = current->work.label;
    Bounds bounds = bounds_of(p);
    if (!bounds.buffer) {
        report(text("argument %d ", parameter) + name, text("parameter %d points to %s", parameter, place(p).c_str()));
        return 0;
    }
    if (space_of(p) != device && space_of(p) != host_space)
        report(text("peer %d ", parameter) + name,
               text("parameter %d points to memory of GPU %d: %s", parameter, space_of(p), place(p).c_str()));
    if (bounds.buffer->freed)
        report(text("freed argument %d ", parameter) + name,
               text("parameter %d points to %s", parameter, place(p, &bounds).c_str()));
    if (window == window_count - 1)
        bounds = {bounds.buffer, bounds.buffer->begin, bounds.buffer->begin + bounds.buffer->bytes,
                  bounds.buffer->name};
    windows[window] = {bounds, parameter};
    uintptr_t seen = uintptr_t(alias((const void *)p, window));
    if (window < window_count - 1)
        window++; // the last is shared by all that follow, and shows whole allocations
    return seen;
}

// The arguments as the kernel sees them.
Launch with_windows(const Launch &launch, int device)
{
    Launch made = launch;
    int window = 1;
    size_t offset = 0;
    const Kernel &kernel = *launch.kernel;
    for (int i = 0; i < kernel.count; i++) {
        offset = (offset + kernel.align[i] - 1) / kernel.align[i] * kernel.align[i];
        bool words = kernel.pointer[i] || (kernel.size[i] > 8 && kernel.align[i] >= 8); // a structure may hold pointers
        for (size_t word = 0; words && word + 8 <= kernel.size[i]; word += 8) {
            unsigned char *where = made.arguments.data() + offset + word;
            uintptr_t p;
            memcpy(&p, where, sizeof p);
            bool known = is_handed_out(p);
            if (!known && p && kernel.pointer[i])
                report(text("host argument %d ", i) + kernel.name,
                       text("parameter %d is a pointer of the host (%#lx), not of the GPU", i, (unsigned long)p));
            if (known)
                p = show(p, device, i, window);
            memcpy(where, &p, sizeof p);
        }
        offset += kernel.size[i];
    }
    return made;
}

cudaError_t launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream)
{
    auto found = state().loaded.find(function);
    if (found == state().loaded.end()) {
        report("launch unknown", "a launch of something that is no kernel of a loaded library");
        return cudaErrorInvalidResourceHandle;
    }
    const Kernel &kernel = *found->second.kernel;
    if (!found->second.agrees)
        return cudaErrorInvalidValue;
    unsigned long threads = (unsigned long)block.x * block.y * block.z;
    int bound = found->second.compiled.max_threads;
    if (!threads || threads > max_block || !grid.x || !grid.y || !grid.z || grid.y > max_grid_yz ||
        grid.z > max_grid_yz || block.z > 64 || shared > shared_limit || (bound && threads > (unsigned long)bound)) {
        report("configuration " + kernel.name,
               text("kernel %s: no GPU can launch grid (%u,%u,%u) block (%u,%u,%u), %zu bytes of shared memory%s",
                    kernel.name.c_str(), grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
                    bound ? text(" (compiled for at most %d threads)", bound).c_str() : ""));
        return cudaErrorInvalidConfiguration;
    }
    auto made = std::make_shared<Launch>();
    made->kernel = &kernel;
    made->grid = grid;
    made->block = block;
    for (int i = 0; i < kernel.count; i++) {
        size_t at = (made->arguments.size() + kernel.align[i] - 1) / kernel.align[i] * kernel.align[i];
        made->arguments.resize(at + kernel.size[i]);
        memcpy(made->arguments.data() + at, arguments[i], kernel.size[i]);
    }
    Work work;
    work.kind = Kind::kernel;
    work.label = "kernel " + kernel.name;
    work.run = [made](Op &op) { run_launch(with_windows(*made, op.device)); };
    count("launched " + work.label);
    return enqueue(stream, work);
}
} // namespace
} // namespace sim

using namespace sim;

EXPORT void cs_kernel(const char *name, void *function, void (*invoke)(void *, const unsigned char *), int number,
                      const uint16_t *size, const uint16_t *align, const uint8_t *pointer)
{
    state().kernels[name] = {name, function, invoke, number, size, align, pointer};
}

EXPORT cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code, cudaJitOption *, void **, unsigned,
                                       cudaLibraryOption *, void **, unsigned)
{
    Call call("cudaLibraryLoadData");
    if (call.fails)
        return last(cudaErrorInvalidKernelImage);
    if (forbidden_in_capture(call.name))
        return last(cudaErrorStreamCaptureUnsupported);
    if (!is_cubin(code) && !is_ptx(code)) {
        report("image", "cudaLibraryLoadData: the image is neither a cubin nor PTX");
        return last(cudaErrorInvalidKernelImage);
    }
    int arch = is_cubin(code) ? cubin_arch(code) : gpu().arch;
    if (arch / 10 != gpu().arch / 10 || arch > gpu().arch) // a cubin runs on its major version, same or later minor
        return last(cudaErrorNoKernelImageForDevice);
    *library = (cudaLibrary_t) new Library{code};
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    Call call("cudaLibraryUnload");
    delete (Library *)library;
    return last(call.fails ? cudaErrorUnknown : cudaSuccess);
}

EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *result, cudaLibrary_t library, const char *name)
{
    Call call("cudaLibraryGetKernel");
    if (call.fails)
        return last(cudaErrorSymbolNotFound);
    Loaded loaded = {nullptr, cubin_kernel(((Library *)library)->image, name), true};
    if (!loaded.compiled.found) {
        report(std::string("kernel ") + name, text("kernel %s is not in the image that was loaded", name));
        return last(cudaErrorSymbolNotFound);
    }
    auto kernel = state().kernels.find(name);
    if (kernel == state().kernels.end()) {
        report(std::string("text ") + name,
               text("kernel %s is in the cubin, but not in the text given to tests/cudasim/run", name));
        return last(cudaErrorSymbolNotFound);
    }
    loaded.kernel = &kernel->second;
    compare(*loaded.kernel, loaded);
    void *handle = new char; // only its address counts
    state().loaded[handle] = loaded;
    *result = (cudaKernel_t)handle;
    return last(cudaSuccess);
}

EXPORT cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                    cudaStream_t stream)
{
    Call call("cudaLaunchKernel");
    if (call.dropped)
        return last(cudaSuccess);
    return last(call.fails ? cudaErrorLaunchFailure : launch(function, grid, block, arguments, shared, stream));
}

EXPORT cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    Call call("cudaLaunchKernelExC");
    if (call.dropped)
        return last(cudaSuccess);
    return last(call.fails ? cudaErrorLaunchFailure
                           : launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                                    config->stream));
}

EXPORT cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    Call call("cudaFuncSetAttribute");
    return last(call.fails ? cudaErrorInvalidValue : cudaSuccess);
}

EXPORT cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function)
{
    Call call("cudaFuncGetAttributes");
    auto found = state().loaded.find(function);
    if (call.fails || found == state().loaded.end())
        return last(cudaErrorInvalidDeviceFunction);
    *attributes = cudaFuncAttributes();
    attributes->maxThreadsPerBlock =
        found->second.compiled.max_threads ? found->second.compiled.max_threads : int(max_block);
    attributes->binaryVersion = attributes->ptxVersion = gpu().arch;
    return last(cudaSuccess);
}
