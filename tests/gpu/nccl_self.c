/* nccl_self.c: a rank that sends to itself with NCCL, in a group captured in a CUDA graph, as exchanges between ranks
 * are (runtime/cuda/exchange.c): what one GPU alone can show of them. Three launches, each with other numbers. Exit
 * code 0: what was sent has arrived. */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 16, LAUNCHES = 3 };

static void fail(const char *call, const char *text)
{
    fprintf(stderr, "nccl_self: %s: %s\n", call, text);
    exit(1);
}

static void cuda(cudaError_t error, const char *call)
{
    if (error != cudaSuccess)
        fail(call, cudaGetErrorString(error));
}

static void nccl(ncclResult_t result, const char *call)
{
    if (result != ncclSuccess)
        fail(call, ncclGetErrorString(result));
}
#define CUDA(call) cuda(call, #call)
#define NCCL(call) nccl(call, #call)

static void exchange(const float *from, float *to, ncclComm_t comm, cudaStream_t stream)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(from, N, ncclFloat32, 0, comm, stream));
    NCCL(ncclRecv(to, N, ncclFloat32, 0, comm, stream));
    NCCL(ncclGroupEnd());
}

int main(void)
{
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *from, *to;
    static float values[N];
    CUDA(cudaSetDevice(0));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc((void **)&from, sizeof values));
    CUDA(cudaMalloc((void **)&to, sizeof values));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRank(&comm, 1, id, 0));
    CUDA(cudaMemset(from, 0, sizeof values));
    CUDA(cudaDeviceSynchronize());
    exchange(from, to, comm, stream); /* connections are set up outside of a capture */
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    exchange(from, to, comm, stream);
    CUDA(cudaStreamEndCapture(stream, &graph));
    CUDA(cudaGraphInstantiate(&exec, graph, 0));
    for (int launch = 1; launch <= LAUNCHES; launch++) {
        for (int i = 0; i < N; i++)
            values[i] = (float)(launch * N + i);
        CUDA(cudaMemcpy(from, values, sizeof values, cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize());
        CUDA(cudaGraphLaunch(exec, stream));
        CUDA(cudaStreamSynchronize(stream));
        CUDA(cudaMemcpy(values, to, sizeof values, cudaMemcpyDeviceToHost));
        for (int i = 0; i < N; i++)
            if (values[i] != (float)(launch * N + i))
                fail("launch", "what was sent has not arrived");
    }
    CUDA(cudaGraphExecDestroy(exec));
    CUDA(cudaGraphDestroy(graph));
    NCCL(ncclCommDestroy(comm));
    int version = 0;
    NCCL(ncclGetVersion(&version));
    printf("nccl_self: %d launches of a captured exchange, NCCL %d\n", LAUNCHES, version);
    return 0;
}
