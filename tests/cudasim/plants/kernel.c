/* kernel.c: plants within kernels, and in how they are launched. */
#include "planted.h"

static void barrier_missing(int wrong)
{
    stage s;
    int columns = 500;
    open_stage(&s, 0);
    fill_image(&s);
    cudaKernel_t kernel = kernel_of(&s, wrong ? "row_sum_no_barrier" : "row_sum");
    CUDA(start(kernel, s.stream, 2, (void *[]){&s.activation, &s.image, &columns}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void barrier_divergent(int wrong)
{
    stage s;
    int n = N;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(start(kernel_of(&s, "shift"), s.stream, 4, (void *[]){&s.activation, &s.image, &n, &wrong}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void shared_uninitialised(int wrong)
{
    stage s;
    int written = wrong ? 128 : 256;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(start(kernel_of(&s, "half_tile"), s.stream, 1, (void *[]){&s.activation, &s.image, &written}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void shared_overrun(int wrong)
{
    stage s;
    int length = 64 + wrong;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(start(kernel_of(&s, "tile_index"), s.stream, 1, (void *[]){&s.activation, &s.image, &length}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void atomic_missing(int wrong)
{
    stage s;
    int n = N, atomic = !wrong;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMemsetAsync(s.gradient, 0, sizeof(float), s.stream));
    CUDA(start(kernel_of(&s, "total"), s.stream, 4, (void *[]){&s.gradient, &s.image, &n, &atomic}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void misaligned(int wrong)
{
    stage s;
    float by = 2;
    int n4 = 64;
    open_stage(&s, 0);
    fill_image(&s);
    float *from = s.image + wrong;
    CUDA(start(kernel_of(&s, "scale4"), s.stream, 1, (void *[]){&s.activation, &from, &by, &n4}));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void lanes_missing(int wrong)
{
    stage s;
    unsigned mask = wrong ? 0xffffu : 0xffffffffu;
    open_stage(&s, 0);
    void *arguments[] = {&s.activation, &mask};
    CUDA(cudaLaunchKernel((const void *)kernel_of(&s, "half_warp"), (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0,
                          s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void block_too_big(int wrong)
{
    stage s;
    open_stage(&s, 0);
    fill_image(&s);
    float by = 2;
    int n = N;
    void *arguments[] = {&s.activation, &s.image, &by, &n};
    cudaKernel_t kernel = kernel_of(&s, "scale");
    CUDA(cudaLaunchKernel((const void *)kernel, (dim3){1, 1, 1}, (dim3){wrong ? 512 : 256, 1, 1}, arguments, 0,
                          s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
}

/* Two arguments change places: the count is taken for the factor. */
static void arguments_swapped(int wrong)
{
    stage s;
    float by = 2;
    int n = N;
    open_stage(&s, 0);
    fill_image(&s);
    void *right_order[] = {&s.activation, &s.image, &by, &n}, *wrong_order[] = {&s.activation, &s.image, &n, &by};
    CUDA(start(kernel_of(&s, "scale"), s.stream, 4, wrong ? wrong_order : right_order));
    CUDA(cudaStreamSynchronize(s.stream));
}

static void name_misspelt(int wrong)
{
    stage s;
    open_stage(&s, 0);
    kernel_of(&s, wrong ? "scael" : "scale");
}

/* Pointers in a structure; the second tensor is longer than its buffer. */
static void structure_overrun(int wrong)
{
    struct {
        float *weight[2];
        const float *gradient[2];
        int n[2];
    } t;
    stage s;
    float rate = 0.1f;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(scale(&s, s.stream, s.gradient, s.image, N));
    CUDA(scale(&s, s.stream, s.weight, s.image, N));
    CUDA(scale(&s, s.stream, s.activation, s.image, N));
    t.weight[0] = s.weight;
    t.weight[1] = s.activation;
    t.gradient[0] = t.gradient[1] = s.gradient;
    t.n[0] = N;
    t.n[1] = N + wrong;
    cudaKernel_t kernel = kernel_of(&s, "sgd");
    CUDA(
        cudaLaunchKernel((const void *)kernel, (dim3){2, 2, 1}, (dim3){256, 1, 1}, (void *[]){&t, &rate}, 0, s.stream));
    CUDA(cudaStreamSynchronize(s.stream));
}

/* Bytes that share a word are no conflict; the mask is short by one. */
static void mask_overrun(int wrong)
{
    stage s;
    unsigned char *mask;
    int n = N;
    open_stage(&s, 0);
    fill_image(&s);
    CUDA(cudaMalloc((void **)&mask, (size_t)(N - wrong)));
    if (pn_sim_region)
        pn_sim_region(mask, (size_t)(N - wrong), "stage 0 relu1.mask");
    CUDA(start(kernel_of(&s, "relu_mask"), s.stream, 4, (void *[]){&mask, &s.image, &n}));
    CUDA(cudaStreamSynchronize(s.stream));
}

const plant kernel_plants[] = {{"barrier_missing", barrier_missing},
                               {"barrier_divergent", barrier_divergent},
                               {"shared_uninitialised", shared_uninitialised},
                               {"shared_overrun", shared_overrun},
                               {"atomic_missing", atomic_missing},
                               {"misaligned", misaligned},
                               {"lanes_missing", lanes_missing},
                               {"block_too_big", block_too_big},
                               {"arguments_swapped", arguments_swapped},
                               {"name_misspelt", name_misspelt},
                               {"structure_overrun", structure_overrun},
                               {"mask_overrun", mask_overrun},
                               {NULL, NULL}};
