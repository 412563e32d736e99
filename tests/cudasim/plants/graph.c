/* graph.c: plants of capture and of graphs. */
#include "planted.h"

static cudaEvent_t event(void)
{
    cudaEvent_t made;
    CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
    return made;
}

static cudaStream_t branch_of(void)
{
    cudaStream_t branch;
    CUDA(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
    if (pn_sim_stream)
        pn_sim_stream(branch, "branch");
    return branch;
}

static void run_graph(const stage *s, int times)
{
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CUDA(cudaStreamEndCapture(s->stream, &graph));
    CUDA(cudaGraphInstantiate(&ready, graph, 0));
    for (int i = 0; i < times; i++)
        CUDA(cudaGraphLaunch(ready, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
    CUDA(cudaGraphExecDestroy(ready));
    CUDA(cudaGraphDestroy(graph));
}

static void branch_unjoined(int wrong)
{
    stage s;
    cudaStream_t branch = branch_of();
    cudaEvent_t fork = event(), join = event();
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(fork, s.stream));
    CUDA(cudaStreamWaitEvent(branch, fork, 0));
    CUDA(scale(&s, branch, s.gradient, s.image, N));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaEventRecord(join, branch));
    if (!wrong)
        CUDA(cudaStreamWaitEvent(s.stream, join, 0));
    run_graph(&s, 3);
}

/* The join comes after the kernel that needs it. */
static void branch_joined_late(int wrong)
{
    stage s;
    cudaStream_t branch = branch_of();
    cudaEvent_t fork = event(), join = event();
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaEventRecord(fork, s.stream));
    CUDA(cudaStreamWaitEvent(branch, fork, 0));
    CUDA(scale(&s, branch, s.gradient, s.image, N));
    CUDA(cudaEventRecord(join, branch));
    if (!wrong)
        CUDA(cudaStreamWaitEvent(s.stream, join, 0));
    CUDA(scale(&s, s.stream, s.weight, s.gradient, N));
    if (wrong)
        CUDA(cudaStreamWaitEvent(s.stream, join, 0));
    run_graph(&s, 3);
}

static void call_in_capture(int wrong)
{
    stage s;
    void *p;
    open_stage(&s, 0);
    fill_image(&s);
    if (!wrong)
        CUDA(cudaMalloc(&p, 64));
    CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    if (wrong && cudaMalloc(&p, 64) != cudaErrorStreamCaptureUnsupported)
        exit(4);
    run_graph(&s, 1);
}

static void pageable_in_capture(int wrong)
{
    stage s;
    float *staging;
    open_stage(&s, 0);
    CUDA(cudaMallocHost((void **)&staging, N * sizeof *staging));
    memcpy(staging, pattern(), N * sizeof *staging);
    CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(cudaMemcpyAsync(s.image, wrong ? pattern() : staging, N * sizeof *staging, cudaMemcpyHostToDevice, s.stream));
    run_graph(&s, 2);
}

/* The data of the next step is uploaded beside the graph that still reads the present ones. */
static void overwritten_beside(int wrong)
{
    stage s;
    cudaStream_t upload = branch_of();
    cudaEvent_t done = event(), loaded = event();
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaStreamEndCapture(s.stream, &graph));
    CUDA(cudaGraphInstantiate(&ready, graph, 0));
    for (int step = 0; step < 3; step++) {
        CUDA(cudaGraphLaunch(ready, s.stream));
        CUDA(cudaEventRecord(done, s.stream));
        if (!wrong)
            CUDA(cudaStreamWaitEvent(upload, done, 0));
        CUDA(cudaMemsetAsync(s.image, 0, N * sizeof(float), upload));
        CUDA(cudaEventRecord(loaded, upload));
        CUDA(cudaStreamWaitEvent(s.stream, loaded, 0));
    }
    CUDA(cudaStreamSynchronize(s.stream));
}

const plant graph_plants[] = {{"branch_unjoined", branch_unjoined},       {"branch_joined_late", branch_joined_late},
                              {"call_in_capture", call_in_capture},       {"pageable_in_capture", pageable_in_capture},
                              {"overwritten_beside", overwritten_beside}, {NULL, NULL}};
