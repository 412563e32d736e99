/* nccl.c: plants between two ranks, threads of the process with a GPU each. */
#include "planted.h"

#include <nccl.h>
#include <pthread.h>
#include <time.h>

#define NCCL(CALL)                                                                                                     \
    do {                                                                                                               \
        ncclResult_t result_ = (CALL);                                                                                 \
        if (result_ != ncclSuccess) {                                                                                  \
            fprintf(stderr, "planted: %s: %s\n", #CALL, ncclGetErrorString(result_));                                  \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef struct rank {
    int number, wrong;
    ncclUniqueId id;
    void (*run)(struct rank *rank);
    stage s;
    ncclComm_t comm;
} rank;

static void *main_of(void *argument)
{
    rank *r = argument;
    CUDA(cudaSetDevice(r->number));
    open_stage(&r->s, r->number);
    fill_image(&r->s);
    NCCL(ncclCommInitRank(&r->comm, 2, r->id, r->number));
    r->run(r);
    CUDA(cudaStreamSynchronize(r->s.stream));
    NCCL(ncclCommDestroy(r->comm));
    return NULL;
}

static void both(void (*run)(rank *), int wrong)
{
    rank ranks[2] = {{.number = 0}, {.number = 1}};
    pthread_t threads[2];
    NCCL(ncclGetUniqueId(&ranks[0].id));
    ranks[1].id = ranks[0].id;
    for (int i = 0; i < 2; i++) {
        ranks[i].wrong = wrong;
        ranks[i].run = run;
        if (pthread_create(&threads[i], NULL, main_of, &ranks[i]))
            exit(4);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void count_run(rank *r)
{
    float values[N];
    if (r->number == 0) {
        CUDA(scale(&r->s, r->s.stream, r->s.activation, r->s.image, N));
        NCCL(ncclSend(r->s.activation, N, ncclFloat32, 1, r->comm, r->s.stream));
        return;
    }
    NCCL(ncclRecv(r->s.weight, (size_t)(N - 7 * r->wrong), ncclFloat32, 0, r->comm, r->s.stream));
    CUDA(cudaMemcpyAsync(values, r->s.weight, (size_t)(N - 7 * r->wrong) * sizeof(float), cudaMemcpyDeviceToHost,
                         r->s.stream));
    CUDA(cudaStreamSynchronize(r->s.stream));
    for (int i = 0; i < N - 7; i++)
        if (values[i] != 2 * pattern()[i])
            exit(4);
}
static void wrong_count(int wrong)
{
    both(count_run, wrong);
}

/* Wrong: each first receives, and only then sends. */
static void circular_run(rank *r)
{
    if (!r->wrong)
        NCCL(ncclGroupStart());
    NCCL(ncclRecv(r->s.gradient, 16, ncclFloat32, 1 - r->number, r->comm, r->s.stream));
    NCCL(ncclSend(r->s.image, 16, ncclFloat32, 1 - r->number, r->comm, r->s.stream));
    if (!r->wrong)
        NCCL(ncclGroupEnd());
}
static void circular_receive(int wrong)
{
    both(circular_run, wrong);
}

/* Wrong: the received activation is used on another stream that does not wait. */
static void received_run(rank *r)
{
    cudaStream_t compute;
    cudaEvent_t received;
    if (r->number == 0) {
        NCCL(ncclSend(r->s.image, N, ncclFloat32, 1, r->comm, r->s.stream));
        return;
    }
    CUDA(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&received, cudaEventDisableTiming));
    CUDA(cudaMemsetAsync(r->s.gradient, 0, N * sizeof(float), r->s.stream));
    CUDA(cudaStreamSynchronize(r->s.stream));
    NCCL(ncclRecv(r->s.gradient, N, ncclFloat32, 0, r->comm, r->s.stream));
    CUDA(cudaEventRecord(received, r->s.stream));
    if (!r->wrong)
        CUDA(cudaStreamWaitEvent(compute, received, 0));
    CUDA(scale(&r->s, compute, r->s.activation, r->s.gradient, N));
    CUDA(cudaStreamSynchronize(compute));
}
static void receive_unwaited(int wrong)
{
    both(received_run, wrong);
}

/* Wrong: two exchanges of a communicator on two streams that nothing orders. */
static void unordered_run(rank *r)
{
    cudaStream_t second;
    cudaEvent_t first;
    CUDA(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CUDA(cudaEventCreateWithFlags(&first, cudaEventDisableTiming));
    for (int i = 0; i < 2; i++) {
        cudaStream_t stream = i ? second : r->s.stream;
        if (i && !r->wrong)
            CUDA(cudaStreamWaitEvent(second, first, 0));
        if (r->number == 0)
            NCCL(ncclSend(r->s.image + 16 * i, 16, ncclFloat32, 1, r->comm, stream));
        else
            NCCL(ncclRecv(r->s.gradient + 16 * i, 16, ncclFloat32, 0, r->comm, stream));
        CUDA(cudaEventRecord(first, stream));
    }
    CUDA(cudaStreamSynchronize(second));
}
static void exchanges_unordered(int wrong)
{
    both(unordered_run, wrong);
}

/* A step as one graph on each rank: compute, exchange. Wrong: rank 1 exchanges outside of its graph. */
static void graph_run(rank *r)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    int outside = r->wrong && r->number == 1;
    CUDA(cudaMemsetAsync(r->s.gradient, 0, N * sizeof(float), r->s.stream));
    CUDA(cudaStreamSynchronize(r->s.stream));
    CUDA(cudaStreamBeginCapture(r->s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(scale(&r->s, r->s.stream, r->s.activation, r->s.gradient, N));
    for (int twice = outside; twice < 2; twice++) {
        if (twice == 1) {
            CUDA(cudaStreamEndCapture(r->s.stream, &graph));
            CUDA(cudaGraphInstantiate(&ready, graph, 0));
            break;
        }
        NCCL(ncclGroupStart());
        NCCL(ncclSend(r->s.activation, N, ncclFloat32, 1 - r->number, r->comm, r->s.stream));
        NCCL(ncclRecv(r->s.gradient, N, ncclFloat32, 1 - r->number, r->comm, r->s.stream));
        NCCL(ncclGroupEnd());
    }
    for (int step = 0; step < 3; step++) {
        CUDA(cudaGraphLaunch(ready, r->s.stream));
        if (outside) {
            NCCL(ncclGroupStart());
            NCCL(ncclSend(r->s.activation, N, ncclFloat32, 0, r->comm, r->s.stream));
            NCCL(ncclRecv(r->s.gradient, N, ncclFloat32, 0, r->comm, r->s.stream));
            NCCL(ncclGroupEnd());
        }
    }
}
static void captured_on_one_side(int wrong)
{
    both(graph_run, wrong);
}

/* Two ranks on one GPU. */
static void *same_gpu_rank(void *argument)
{
    rank *r = argument;
    CUDA(cudaSetDevice(r->wrong ? 0 : r->number));
    return ncclCommInitRank(&r->comm, 2, r->id, r->number) == ncclSuccess ? NULL
                                                                          : r; /* main ends the program, not both */
}
static void same_gpu(int wrong)
{
    rank ranks[2] = {{.number = 0, .wrong = wrong}, {.number = 1, .wrong = wrong}};
    pthread_t threads[2];
    NCCL(ncclGetUniqueId(&ranks[0].id));
    ranks[1].id = ranks[0].id;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, same_gpu_rank, &ranks[i]))
            exit(4);
    void *failed[2];
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &failed[i]);
    if (failed[0] || failed[1])
        exit(3);
}

/* Rank 1 is lost before it sends. Right: a watchdog gives up the communicator, and the wait of rank 0 ends. */
static void *watchdog(void *argument)
{
    rank *r = argument;
    struct timespec delay = {0, 50000000};
    nanosleep(&delay, NULL);
    NCCL(ncclCommAbort(r->comm));
    return NULL;
}
static void lost_run(rank *r)
{
    pthread_t thread;
    if (r->number == 1)
        return;
    NCCL(ncclRecv(r->s.gradient, N, ncclFloat32, 1, r->comm, r->s.stream));
    if (!r->wrong && pthread_create(&thread, NULL, watchdog, r))
        exit(4);
    CUDA(cudaStreamSynchronize(r->s.stream));
    if (!r->wrong)
        pthread_join(thread, NULL);
}
static void rank_lost(int wrong)
{
    both(lost_run, wrong);
}

/* The mean of gradients over replicas. */
static void mean_run(rank *r)
{
    float values[N];
    CUDA(scale(&r->s, r->s.stream, r->s.gradient, r->s.image, N));
    NCCL(ncclAllReduce(r->s.gradient, r->s.gradient, (size_t)(N - (r->number ? r->wrong : 0)), ncclFloat32, ncclAvg,
                       r->comm, r->s.stream));
    CUDA(cudaMemcpyAsync(values, r->s.gradient, sizeof values, cudaMemcpyDeviceToHost, r->s.stream));
    CUDA(cudaStreamSynchronize(r->s.stream));
    for (int i = 0; i < N; i++)
        if (values[i] != 2 * pattern()[i])
            exit(4);
}
static void mean_count(int wrong)
{
    both(mean_run, wrong);
}

const plant nccl_plants[] = {{"wrong_count", wrong_count},
                             {"circular_receive", circular_receive},
                             {"receive_unwaited", receive_unwaited},
                             {"exchanges_unordered", exchanges_unordered},
                             {"captured_on_one_side", captured_on_one_side},
                             {"same_gpu", same_gpu},
                             {"rank_lost", rank_lost},
                             {"mean_count", mean_count},
                             {NULL, NULL}};
