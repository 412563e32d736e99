/* memory.c: plants of memory: bounds, lifetime, what was never written, whose memory it is. */
#include "planted.h"

static void overrun(int wrong)
{
    stage s;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(scale(&s, s.stream, s.activation, s.image, wrong ? N + 20 : N)); /* within the arena, beyond the buffer */
    CUDA(cudaStreamSynchronize(s.stream));
}

static void copy_overrun(int wrong)
{
    stage s;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMemcpyAsync(s.activation, s.image, (N + wrong) * sizeof(float), cudaMemcpyDeviceToDevice, s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void uninitialised(int wrong)
{
    stage s;
    open_stage(&s, 1);
    if (!wrong)
        fill_image(&s);
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void half_initialised(int wrong)
{
    stage s;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(scale(&s, s.stream, s.activation, s.image, wrong ? N - 1 : N));
    CUDA(scale(&s, s.stream, s.gradient, s.activation, N));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void early_free(int wrong)
{
    stage s;
    float *extra;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMalloc((void **)&extra, N * sizeof *extra));
    CUDA(scale(&s, s.stream, extra, s.image, N));
    if (!wrong)
        CUDA(cudaStreamSynchronize(s.stream));
    CUDA(cudaFree(extra));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void use_after_free(int wrong)
{
    stage s;
    float *extra;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMalloc((void **)&extra, N * sizeof *extra));
    if (wrong)
        CUDA(cudaFree(extra));
    CUDA(scale(&s, s.stream, extra, s.image, N));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void host_dereference(int wrong)
{
    stage s;
    float value = 0;
    open_stage(&s, 0);
    fill_image(&s);
    if (wrong)
        value = s.image[3];
    else
        CUDA(cudaMemcpy(&value, s.image + 3, sizeof value, cudaMemcpyDeviceToHost));
    printf("%g\n", (double)value);
}

static void host_pointer(int wrong)
{
    stage s;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(scale(&s, s.stream, s.activation, wrong ? pattern() : s.image, N));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void wrong_direction(int wrong)
{
    stage s;
    open_stage(&s, 0);
    CUDA(cudaMemcpyAsync(s.image, pattern(), N * sizeof(float), wrong ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
                         s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void other_gpu(int wrong)
{
    stage s, other;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaSetDevice(1));
    open_stage(&other, 1);
    fill_image(&other);
    CUDA(scale(&other, other.stream, other.activation, wrong ? s.image : other.image, N));
    CUDA(cudaStreamSynchronize(other.stream));
}

/* The staging buffer is filled again before its copy is known to be done. */
static void staging_reused(int wrong)
{
    stage s;
    float *staging;
    cudaEvent_t copied;
    open_stage(&s, 0);
    CUDA(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming));
    CUDA(cudaMallocHost((void **)&staging, N * sizeof *staging));
    if (pn_sim_region)
        pn_sim_region(staging, N * sizeof *staging, "staging");
    for (int step = 0; step < 3; step++) {
        if (step && !wrong)
            CUDA(cudaEventSynchronize(copied));
        memcpy(staging, pattern(), N * sizeof *staging);
        CUDA(cudaMemcpyAsync(s.image, staging, N * sizeof *staging, cudaMemcpyHostToDevice, s.stream));
        CUDA(cudaEventRecord(copied, s.stream));
    }
    CUDA(cudaStreamSynchronize(s.stream));
}

static void result_unwaited(int wrong)
{
    stage s;
    float *loss;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMallocHost((void **)&loss, sizeof *loss));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    CUDA(cudaMemcpyAsync(loss, s.activation, sizeof *loss, cudaMemcpyDeviceToHost, s.stream));
    if (!wrong)
        CUDA(cudaStreamSynchronize(s.stream));
    printf("%g\n", (double)*loss);
    CUDA(cudaStreamSynchronize(s.stream));
}

static void too_big(int wrong) /* with 1 MB of memory */
{
    void *p = NULL;
    cudaError_t error = cudaMalloc(&p, wrong ? 2 << 20 : 1 << 19);
    if (error != cudaSuccess) {
        fprintf(stderr, "planted: out of memory is an error: %s\n", cudaGetErrorName(error));
        exit(3);
    }
}

const plant memory_plants[] = {{"overrun", overrun},
                               {"copy_overrun", copy_overrun},
                               {"uninitialised", uninitialised},
                               {"half_initialised", half_initialised},
                               {"early_free", early_free},
                               {"use_after_free", use_after_free},
                               {"host_dereference", host_dereference},
                               {"host_pointer", host_pointer},
                               {"wrong_direction", wrong_direction},
                               {"other_gpu", other_gpu},
                               {"staging_reused", staging_reused},
                               {"result_unwaited", result_unwaited},
                               {"too_big", too_big},
                               {NULL, NULL}};
