/* nccl.c: the library, which is loaded when there are several processes; the connection; waiting for a device that
 * waits for others. All plans and kernels are made before NCCL begins (cuDNN may load code, which waits for the kernels
 * of NCCL that run), and code is loaded eagerly. */
#include "cuda/nccl.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

static const char *const names[] = {
    "ncclGetVersion", "ncclGetErrorString", "ncclGetUniqueId", "ncclCommInitRank",      "ncclGroupStart",
    "ncclGroupEnd",   "ncclSend",           "ncclRecv",        "ncclCommGetAsyncError", "ncclCommAbort"};

/* ---- the library ---- */

/* Symbols that are loaded already are preferred: the simulator of the tests has its own. */
static void open_library(cuda_ranks *ranks)
{
    void *function[PN_COUNT(names)], *library = NULL;
    for (int i = 0; i < PN_COUNT(names); i++) {
        function[i] = dlsym(RTLD_DEFAULT, names[i]);
        if (!function[i] && !library)
            library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
        if (!function[i] && !library)
            pn_fail(NULL, "several ranks talk through NCCL, which cannot be loaded: %s", dlerror());
        if (!function[i])
            function[i] = dlsym(library, names[i]);
        if (!function[i])
            pn_fail(NULL, "libnccl.so.2 has no %s", names[i]);
    }
    memcpy(&ranks->nccl, function, sizeof ranks->nccl);
    int version = 0;
    if (ranks->nccl.version(&version) != SUCCESS || version < LEAST_VERSION)
        pn_fail(NULL, "libnccl.so.2 is version %d, at least %d is wanted", version, LEAST_VERSION);
}

cuda_ranks *cuda_ranks_of(const pn_stage *stage)
{
    return ((cuda_device *)stage->run->target)->ranks;
}

void cuda_ranks_open(pn_run *run)
{
    cuda_device *device = run->target;
    cuda_ranks *ranks = pn_alloc(sizeof *ranks);
    if (pthread_mutex_init(&ranks->busy, NULL) != 0)
        pn_fail(NULL, "cannot create the lock of NCCL");
    open_library(ranks);
    device->ranks = ranks;
}

void nccl_check(pn_stage *stage, int result, const char *call)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    if (result == SUCCESS)
        return;
    pthread_mutex_unlock(&ranks->busy);
    fail_check(stage);
    pn_fail(stage, "the exchange between ranks: %s: %s", call, ranks->nccl.error_text(result));
}

void nccl_lock(pn_stage *stage)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    pthread_mutex_lock(&ranks->busy);
    if (!ranks->comm) {
        pthread_mutex_unlock(&ranks->busy);
        fail_check(stage);
        pn_fail(stage, "internal error: an exchange before the ranks are connected");
    }
}

void nccl_unlock(pn_stage *stage)
{
    pthread_mutex_unlock(&cuda_ranks_of(stage)->busy);
}

/* ---- connecting ---- */

void pn_target_make_id(pn_run *run, char *id)
{
    const cuda_ranks *ranks = ((cuda_device *)run->target)->ranks;
    Id made;
    const int result = ranks->nccl.make_id(&made);
    if (result != SUCCESS)
        pn_fail(NULL, "ncclGetUniqueId: %s", ranks->nccl.error_text(result));
    memcpy(id, made.bytes, sizeof made.bytes);
}

/* Sends and receives with a neighbour set up the connections between them, which a capture could not. */
static void probe(pn_stage *stage, int rank, int size)
{
    cuda_ranks *ranks = cuda_ranks_of(stage);
    const Nccl *nccl = &ranks->nccl;
    cudaStream_t stream = cuda_stage_of(stage)->stream;
    CU(stage, "the exchange", cudaMemsetAsync(ranks->probe, 0, 4 * sizeof *ranks->probe, stream));
    nccl_lock(stage);
    nccl_check(stage, nccl->begin(), "ncclGroupStart");
    for (int side = 0; side < 2; side++) {
        const int peer = side ? rank + 1 : rank - 1;
        if (peer < 0 || peer >= size)
            continue;
        nccl_check(stage, nccl->send(ranks->probe + 2 * side, 1, FLOAT32, peer, ranks->comm, stream), "ncclSend");
        nccl_check(stage, nccl->receive(ranks->probe + 2 * side + 1, 1, FLOAT32, peer, ranks->comm, stream),
                   "ncclRecv");
    }
    nccl_check(stage, nccl->end(), "ncclGroupEnd");
    pthread_mutex_unlock(&ranks->busy);
    cuda_wait_stream(stage);
}

static pn_stage *first_here(pn_run *run)
{
    int i = 0;
    while (!run->stage[i].here)
        i++;
    return &run->stage[i];
}

bool pn_target_connect(pn_run *run, const char *id, int rank, int size)
{
    cuda_ranks *ranks = ((cuda_device *)run->target)->ranks;
    pn_stage *stage = first_here(run);
    Id made;
    Comm comm = NULL;
    memcpy(made.bytes, id, sizeof made.bytes);
    if (setjmp(stage->escape))
        return false;
    ranks->probe = cuda_alloc(stage, 4 * sizeof *ranks->probe, "the exchange");
    CU(stage, NULL, cudaEventCreateWithFlags(&ranks->last, cudaEventDisableTiming));
    CU(stage, NULL, cudaDeviceSynchronize());
    pthread_mutex_lock(&ranks->busy);
    nccl_check(stage, ranks->nccl.connect(&comm, size, made, rank), "ncclCommInitRank");
    ranks->comm = comm;
    pthread_mutex_unlock(&ranks->busy);
    probe(stage, rank, size);
    return true;
}

/* The watcher's last means: a call of NCCL that hangs holds the lock, and then the rank is ended by force. */
void pn_target_abort(pn_run *run)
{
    cuda_device *device = run->target;
    cuda_ranks *ranks = device ? device->ranks : NULL;
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int tries = 0; ranks && tries < 100; tries++) {
        if (pthread_mutex_trylock(&ranks->busy) == 0) {
            if (ranks->comm)
                ranks->nccl.abort(ranks->comm);
            ranks->comm = NULL;
            pthread_mutex_unlock(&ranks->busy);
            return;
        }
        nanosleep(&pause, NULL);
    }
}

/* ---- waiting: what is waited for may need a rank that is gone ---- */

static void check_peers(pn_stage *stage)
{
    const cuda_ranks *ranks = cuda_ranks_of(stage);
    int error = SUCCESS;
    nccl_lock(stage);
    nccl_check(stage, ranks->nccl.async_error(ranks->comm, &error), "ncclCommGetAsyncError");
    if (error != IN_PROGRESS)
        nccl_check(stage, error, "a rank is gone, or its network");
    pthread_mutex_unlock(&((cuda_ranks *)ranks)->busy);
}

void cuda_wait(pn_stage *stage, cudaEvent_t event, const char *what)
{
    const struct timespec pause = {.tv_nsec = 20000};
    if (!cuda_ranks_of(stage)) {
        CU(stage, what, cudaEventSynchronize(event));
        return;
    }
    for (int64_t looks = 1;; looks++) {
        const cudaError_t error = cudaEventQuery(event);
        if (error == cudaSuccess)
            return;
        fail_check(stage);
        if (error != cudaErrorNotReady)
            cuda_check(stage, error, what, "cudaEventQuery");
        if (looks > 256)
            nanosleep(&pause, NULL);
        if (looks % 4096 == 0)
            check_peers(stage);
    }
}

void cuda_wait_stream(pn_stage *stage)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    if (!cuda_ranks_of(stage)) {
        CU(stage, NULL, cudaStreamSynchronize(cuda->stream));
        return;
    }
    if (!cuda->reached)
        CU(stage, NULL, cudaEventCreateWithFlags(&cuda->reached, cudaEventDisableTiming));
    CU(stage, NULL, cudaEventRecord(cuda->reached, cuda->stream));
    cuda_wait(stage, cuda->reached, "the stream");
}

void pn_target_pace(pn_stage *stage, int64_t round)
{
    cuda_stage *cuda = cuda_stage_of(stage);
    cudaEvent_t *event = &cuda->pace[round % CUDA_AHEAD];
    if (!*event)
        CU(stage, NULL, cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    else
        cuda_wait(stage, *event, "an earlier round");
    CU(stage, NULL, cudaEventRecord(*event, cuda->stream));
}
