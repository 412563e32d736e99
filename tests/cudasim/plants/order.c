/* order.c: plants of order: streams, events, threads that share a GPU. */
#include "planted.h"

#include <pthread.h>

static void upload_unwaited(int wrong)
{
    stage s;
    cudaStream_t upload;
    cudaEvent_t done;
    float *staging;
    open_stage(&s, 0);
    CUDA(cudaStreamCreateWithFlags(&upload, cudaStreamNonBlocking));
    if (pn_sim_stream)
        pn_sim_stream(upload, "upload");
    CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CUDA(cudaMallocHost((void **)&staging, N * sizeof *staging));
    memcpy(staging, pattern(), N * sizeof *staging);
    CUDA(cudaMemcpyAsync(s.image, staging, N * sizeof *staging, cudaMemcpyHostToDevice, upload));
    CUDA(cudaEventRecord(done, upload));
    if (!wrong)
        CUDA(cudaStreamWaitEvent(s.stream, done, 0));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaStreamSynchronize(s.stream));
    CUDA(cudaStreamSynchronize(upload));
}

/* The next image overwrites the one that the stage still reads. */
static void write_after_read(int wrong)
{
    stage s;
    cudaStream_t upload;
    cudaEvent_t read;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaStreamCreateWithFlags(&upload, cudaStreamNonBlocking));
    if (pn_sim_stream)
        pn_sim_stream(upload, "upload");
    CUDA(cudaEventCreateWithFlags(&read, cudaEventDisableTiming));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaEventRecord(read, s.stream));
    if (!wrong)
        CUDA(cudaStreamWaitEvent(upload, read, 0));
    CUDA(cudaMemsetAsync(s.image, 0, N * sizeof(float), upload));
    CUDA(cudaStreamSynchronize(upload));
    CUDA(cudaStreamSynchronize(s.stream));
}

/* A blocking copy orders itself with blocking streams only. */
static void legacy_copy(int wrong)
{
    stage s;
    cudaStream_t stream;
    float values[N];
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaStreamCreateWithFlags(&stream, wrong ? cudaStreamNonBlocking : cudaStreamDefault));
    if (pn_sim_stream)
        pn_sim_stream(stream, "compute");
    CUDA(scale(&s, stream, s.activation, s.image, N));
    CUDA(cudaMemcpy(values, s.activation, sizeof values, cudaMemcpyDeviceToHost));
    CUDA(cudaStreamSynchronize(stream));
}

/* Two stages on one GPU, a thread each; stage 1 reads what stage 0 has made. */
typedef struct pair {
    stage stages[2];
    cudaEvent_t made;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    int recorded, wrong;
} pair;

static void *first(void *argument)
{
    pair *p = argument;
    stage *s = &p->stages[0];
    fill_image(s);
    CUDA(scale(s, s->stream, s->activation, s->image, N));
    CUDA(cudaEventRecord(p->made, s->stream));
    pthread_mutex_lock(&p->mutex);
    p->recorded = 1;
    pthread_cond_signal(&p->cond);
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

static void *second(void *argument)
{
    pair *p = argument;
    stage *s = &p->stages[1];
    pthread_mutex_lock(&p->mutex);
    while (!p->recorded)
        pthread_cond_wait(&p->cond, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
    if (!p->wrong)
        CUDA(cudaStreamWaitEvent(s->stream, p->made, 0));
    CUDA(scale(s, s->stream, s->activation, p->stages[0].activation, N));
    CUDA(cudaStreamSynchronize(s->stream));
    return NULL;
}

static void handover_unwaited(int wrong)
{
    pair p = {.mutex = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER, .wrong = wrong};
    pthread_t threads[2];
    open_stage(&p.stages[0], 0);
    open_stage(&p.stages[1], 1);
    CUDA(cudaEventCreateWithFlags(&p.made, cudaEventDisableTiming));
    if (pthread_create(&threads[0], NULL, first, &p) || pthread_create(&threads[1], NULL, second, &p))
        exit(4);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    CUDA(cudaDeviceSynchronize());
}

const plant order_plants[] = {{"upload_unwaited", upload_unwaited},
                              {"write_after_read", write_after_read},
                              {"legacy_copy", legacy_copy},
                              {"handover_unwaited", handover_unwaited},
                              {NULL, NULL}};
