/* device.c: target cuda: finding the GPU, memory on it, what a stage gets before the first step. */
#define _DEFAULT_SOURCE /* setenv */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"
#include "world/world.h"

/* Only under the simulator of the tests (tests/cudasim): names for its messages. */
extern void pn_sim_region(const void *start, size_t bytes, const char *name) __attribute__((weak));
extern void pn_sim_stream(cudaStream_t stream, const char *name) __attribute__((weak));

const char *const pn_target_name = "cuda";
const bool pn_target_gathers = true;
const int pn_target_most_threads = 1;
const bool pn_target_ranks = true;
const bool pn_target_engines = true;

enum { LEAST_SM = 75 }; /* what CUDA 13 still compiles for */

const char *pn_target_version(void)
{
    static char text[64]; /* filled once, with the same text always */
    const size_t version = cudnnGetVersion();
    snprintf(text, sizeof text, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    return text;
}

const char *pn_target_isa(const pn_run *run)
{
    return ((const cuda_device *)run->target)->measured;
}

/* ---- checks ---- */

void cuda_check(pn_stage *stage, cudaError_t error, const char *op, const char *call)
{
    if (error == cudaSuccess)
        return;
    const int length = (int)strcspn(call, "(");
    pn_fail(stage, "%s%s%.*s: %s", op ? op : "", op ? ": " : "", length, call, cudaGetErrorString(error));
}

void cuda_check_dnn(pn_stage *stage, cudnnStatus_t status, const char *op, const char *call)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return;
    char said[512] = "";
    cudnnGetLastErrorString(said, sizeof said);
    pn_fail(stage, "%s%s%.*s: %s (%s)", op ? op : "", op ? ": " : "", (int)strcspn(call, "("), call,
            cudnnGetErrorString(status), said);
}

/* ---- the GPU ---- */

/* A part of a GPU (MIG) has the place of the whole one on the bus, and a number of its own. */
static void describe(cuda_device *device, const struct cudaDeviceProp *properties)
{
    char *to = device->identity;
    snprintf(device->about, sizeof device->about, "GPU %d, %.48s, %04x:%02x:%02x", device->number, device->name,
             (unsigned)properties->pciDomainID, (unsigned)properties->pciBusID, (unsigned)properties->pciDeviceID);
    to += sprintf(to, "%x:%x:%x ", (unsigned)properties->pciDomainID, (unsigned)properties->pciBusID,
                  (unsigned)properties->pciDeviceID);
    for (size_t i = 0; i < sizeof properties->uuid.bytes; i++)
        to += sprintf(to, "%02x", (unsigned char)properties->uuid.bytes[i]);
}

static bool stores_bf16(const pn_program *program)
{
    for (int i = 0; i < program->nstages; i++)
        if (program->stage[i]->version_floats)
            return true;
    return false;
}

/* The raw texts mislead: "insufficient driver" is what a machine without any driver gives. */
static void find_device(cuda_device *device, const pn_run *run)
{
    int driver = 0, runtime = 0, count = 0;
    cudaError_t error = cudaDriverGetVersion(&driver);
    if (error == cudaSuccess)
        error = cudaRuntimeGetVersion(&runtime);
    if (error == cudaSuccess)
        error = cudaGetDeviceCount(&count);
    if (error == cudaErrorStubLibrary)
        pn_fail(NULL, "the CUDA driver is a stub: libcuda.so.1 of a toolkit was found before that of a driver "
                      "(LD_LIBRARY_PATH)");
    if (driver == 0)
        pn_fail(NULL,
                "there is no CUDA driver: this program needs an NVIDIA GPU and its driver (nvidia-smi shows both)");
    if (error == cudaErrorInsufficientDriver)
        pn_fail(NULL, "the CUDA driver is too old: it is for CUDA %d.%d, this program needs %d.%d", driver / 1000,
                driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
    if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0))
        pn_fail(NULL, "there is no GPU: the CUDA driver is there, but sees none (nvidia-smi; CUDA_VISIBLE_DEVICES)");
    cuda_check(NULL, error, NULL, "cudaGetDeviceCount");
    device->number = count == 1 ? 0 : world_local(run); /* a starter may show each rank its own GPU alone */
    if (device->number >= count)
        pn_fail(NULL, "rank %d is number %d of its host, which has %d GPUs (CUDA_VISIBLE_DEVICES, nvidia-smi)",
                world_rank(run), device->number, count);
    CU(NULL, NULL, cudaSetDevice(device->number));
    struct cudaDeviceProp properties;
    CU(NULL, NULL, cudaGetDeviceProperties(&properties, device->number));
    device->sm = properties.major * 10 + properties.minor;
    snprintf(device->name, sizeof device->name, "%s", properties.name);
    if (device->sm < LEAST_SM)
        pn_fail(NULL, "the GPU is too old: %s has compute capability %d.%d, this program needs %d.%d", device->name,
                properties.major, properties.minor, LEAST_SM / 10, LEAST_SM % 10);
    describe(device, &properties);
    snprintf(device->measured, sizeof device->measured, "sm_%d %s%s%s%s", device->sm, device->name,
             stores_bf16(run->program) ? ", bf16" : "", run->arithmetic.tf32 ? ", tf32" : "",
             run->arithmetic.nondeterministic ? ", nondeterministic" : "");
}

void pn_target_describe(const pn_run *run, const char **device, const char **identity)
{
    const cuda_device *own = run->target;
    *device = own->about;
    *identity = own->identity;
}

/* A GPU of which there is only what cuDNN says of it: JSON (cuDNN documentation, device-less ahead-of-time
 * compilation; 9.8). */
static void describe_only(cuda_device *device, const char *path)
{
    enum { MOST = 1 << 16 };
    char *text = pn_alloc(MOST);
    FILE *file = fopen(path, "rb");
    if (!file)
        pn_fail(NULL, "cannot read %s: %s", path, strerror(errno));
    const size_t length = fread(text, 1, MOST - 1, file);
    const bool good = !ferror(file);
    fclose(file);
    cudnnBackendDescriptor_t described = NULL;
    cudnnStatus_t status = cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &described);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendSetAttribute(described, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                                          (int64_t)length, text);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cudnnBackendFinalize(described);
    if (!good || status != CUDNN_STATUS_SUCCESS)
        pn_fail(NULL, "%s is no description of a GPU that %s takes", path, pn_target_version());
    device->described = described;
}

static void need_memory(int64_t bytes, const char *what)
{
    size_t unused = 0, total = 0;
    CU(NULL, NULL, cudaMemGetInfo(&unused, &total));
    if (bytes > (int64_t)unused)
        pn_fail(NULL, "out of GPU memory: %s need %lld bytes, %zu of %zu are free", what, (long long)bytes, unused,
                total);
}

void pn_target_open(pn_run *run)
{
    cuda_device *device = pn_alloc(sizeof *device);
    run->target = device;
    cuda_kernels_check(run->program);
    if (run->gpu) {
        describe_only(device, run->gpu);
        return;
    }
    if (run->world && setenv("CUDA_MODULE_LOADING", "EAGER", 0) != 0) /* before the first call (exchange.c) */
        pn_fail(NULL, "out of memory for a variable of the environment");
    find_device(device, run);
    cuda_kernels_load(device, run->program);
    if (run->world)
        cuda_ranks_open(run);
    for (int s = 0; s < run->program->nstages; s++)
        if (!run->world || world_rank_of(run->world, s) == world_rank(run))
            device->arena_bytes += run->program->stage[s]->static_bytes;
    device->arena_bytes += cuda_received_bytes(run);
    const char *const what = run->world ? "the buffers of its stages" : "the buffers of all stages";
    need_memory(device->arena_bytes, what);
    device->arena = cuda_alloc(NULL, device->arena_bytes, what);
}

/* The context is one for all threads; each must choose its device. */
void pn_target_thread(const pn_run *run)
{
    const cuda_device *device = run->target;
    if (!device->described)
        CU(NULL, NULL, cudaSetDevice(device->number));
}

/* ---- memory ---- */

void cuda_region(const void *start, int64_t bytes, const char *name)
{
    if (pn_sim_region)
        pn_sim_region(start, (size_t)bytes, name);
}

void *cuda_alloc(pn_stage *stage, int64_t bytes, const char *what)
{
    void *memory = NULL;
    if (stage && stage->run->gpu)
        return NULL;
    const cudaError_t error = cudaMalloc(&memory, bytes > 0 ? (size_t)bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        size_t unused = 0, total = 0;
        CU(stage, what, cudaMemGetInfo(&unused, &total));
        pn_fail(stage, "out of GPU memory: %s need %lld bytes, %zu of %zu are free", what, (long long)bytes, unused,
                total);
    }
    cuda_check(stage, error, what, "cudaMalloc");
    if (stage) {
        char name[96];
        snprintf(name, sizeof name, "stage %d %s", stage->index, what);
        cuda_region(memory, bytes, name);
    }
    return memory;
}

void *pn_place(pn_stage *stage, const char *name, int64_t bytes, int slots)
{
    cuda_device *device = stage->run->target;
    if (device->described)
        return NULL;
    char *at = device->arena + device->placed;
    device->placed += bytes * slots;
    if (bytes % 64 != 0 || device->placed > device->arena_bytes)
        pn_fail(stage, "internal error: %s does not fit into the memory that was planned", name);
    for (int i = 0; i < slots; i++) {
        char text[128];
        snprintf(text, sizeof text, "stage %d %s[%d]", stage->index, name, i);
        cuda_region(at + i * bytes, bytes, text);
    }
    return at;
}

/* Room between parameters belongs to none of them: zero, and zero it stays. */
void pn_place_weights(pn_stage *stage, const pn_weights *weights)
{
    pn_stage_def *def = pn_alloc(sizeof *def);
    *def = *stage->def;
    def->weights = weights->weights;
    def->masters = weights->masters;
    def->gradient = weights->gradient;
    def->sum = weights->sum;
    def->state = weights->state;
    def->ahead = weights->ahead;
    def->running = weights->running;
    stage->def = def;
    if (stage->run->gpu)
        return;
    const size_t bytes = sizeof(float) * (size_t)def->weight_floats;
    const int64_t version = def->masters ? def->version_floats : def->weight_floats;
    for (int v = 0; v < def->versions; v++)
        CU(stage, "weights", cudaMemset(def->weights + v * version, 0, sizeof(float) * (size_t)version));
    CU(stage, "weights", cudaMemset(def->gradient, 0, sizeof(float) * (size_t)version));
    if (def->masters)
        CU(stage, "weights", cudaMemset(def->masters, 0, bytes));
    for (int k = 0; k < def->states; k++)
        CU(stage, "weights", cudaMemset(def->state + k * def->weight_floats, 0, bytes));
    CU(stage, "weights", cudaDeviceSynchronize());
}

/* ---- a stage ---- */

static void open_kernels(cuda_stage *cuda)
{
    pn_stage *stage = cuda->stage;
    const pn_dataset *data = stage->run->data;
    cuda->gather = cuda_kernel_common(stage, data && data->train_pixels ? "gather_bytes" : "gather_values", "pppI");
    cuda->gather_labels = cuda_kernel_common(stage, "gather_labels", "pppi");
    cuda->relu_mask = cuda_kernel_common(stage, "relu_mask", "ppi");
    cuda->accumulate = cuda_kernel_common(stage, "accumulate", "ppi");
    cuda->loss_sum = cuda_kernel_common(stage, "loss_sum", "ppi");
}

cuda_stage *cuda_stage_of(pn_stage *stage)
{
    if (stage->target)
        return stage->target;
    cuda_stage *cuda = pn_alloc(sizeof *cuda);
    stage->target = cuda;
    cuda->stage = stage;
    cuda->device = stage->run->target;
    if (cuda->device->described)
        return cuda;
    CU(stage, NULL, cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking));
    DNN(stage, NULL, cudnnCreate(&cuda->dnn));
    DNN(stage, NULL, cudnnSetStream(cuda->dnn, cuda->stream));
    char name[32];
    snprintf(name, sizeof name, "stage %d", stage->index);
    if (pn_sim_stream)
        pn_sim_stream(cuda->stream, name);
    open_kernels(cuda);
    return cuda;
}

cuda_place cuda_plan_place(pn_stage *stage)
{
    const pn_arithmetic *may = &stage->run->arithmetic;
    const cuda_stage *cuda = cuda_stage_of(stage);
    return (cuda_place){.handle = cuda->dnn,
                        .device = cuda->device->described,
                        .tf32 = may->tf32,
                        .nondeterministic = may->nondeterministic,
                        .exact = may->exact};
}

void cuda_workspace_need(pn_stage *stage, int64_t bytes)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    if (bytes > cuda->workspace_bytes)
        cuda->workspace_bytes = bytes;
}

/* Of one chunk of rows: two for each of at most CUDA_THREADS channels a block. */
void cuda_sums_need(pn_stage *stage, int64_t blocks)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    const int64_t bytes = blocks * 2 * CUDA_THREADS * (int64_t)sizeof(float);
    if (bytes > cuda->sums_bytes)
        cuda->sums_bytes = bytes;
}

static void *upload(const void *from, int64_t bytes, const char *what)
{
    void *to = cuda_alloc(NULL, bytes, what);
    CU(NULL, what, cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyHostToDevice));
    cuda_region(to, bytes, what);
    return to;
}

/* The whole data set, as it is: bytes, or floats. */
static void upload_data(cuda_device *device, const pn_dataset *data)
{
    const int64_t item = data->train_pixels ? 1 : (int64_t)sizeof(float);
    const int64_t bytes = data->channels * data->height * data->width * item;
    const void *const samples[2] = {data->train_pixels ? (const void *)data->train_pixels : data->train_values,
                                    data->test_pixels ? (const void *)data->test_pixels : data->test_values};
    const uint16_t *const labels[2] = {data->train_labels, data->test_labels};
    const int64_t count[2] = {data->train_count, data->test_count};
    need_memory((count[0] + count[1]) * (bytes + (int64_t)sizeof *labels[0]), "the data");
    for (int i = 0; i < 2; i++) {
        device->samples[i] = upload(samples[i], count[i] * bytes, i ? "test images" : "training images");
        if (labels[i])
            device->labels[i] =
                upload(labels[i], count[i] * (int64_t)sizeof *labels[i], i ? "test labels" : "training labels");
    }
    CU(NULL, "the data", cudaDeviceSynchronize());
}

void pn_target_prepare(pn_stage *stage)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    if (!cuda->device->samples[0] && stage->run->data)
        upload_data(cuda->device, stage->run->data);
    stage->scratch_bytes = cuda->workspace_bytes;
    if (cuda->workspace_bytes > 0)
        cuda->workspace = cuda_alloc(stage, cuda->workspace_bytes, "cuDNN's workspace");
    if (cuda->sums_bytes > 0)
        cuda->sums = cuda_alloc(stage, cuda->sums_bytes, "the sums over rows");
    cuda_numbers_open(cuda);
    cuda_updates_open(cuda);
    cuda_reports_open(cuda);
    cuda_graphs_open(cuda);
    cuda_order_open(stage);
    cuda_ranks_place(stage);
}
