/* planted.c: runs one plant.   usage: planted NAME right|wrong      planted list */
#include "planted.h"
#include "cubin.h"

static const plant *const all[] = {memory_plants, order_plants, kernel_plants, graph_plants, dnn_plants, nccl_plants};

void open_stage(stage *s, int number)
{
    enum { BYTES = 4096 };
    static const char *const names[] = {"image", "conv1.out", "conv1.gradient", "conv1.weight"};
    char name[64];
    CUDA(cudaMalloc((void **)&s->arena, 4 * BYTES));
    float **buffers[] = {&s->image, &s->activation, &s->gradient, &s->weight};
    for (int i = 0; i < 4; i++) {
        *buffers[i] = (float *)(s->arena + i * BYTES);
        snprintf(name, sizeof name, "stage %d %s", number, names[i]);
        if (pn_sim_region)
            pn_sim_region(*buffers[i], N * sizeof(float), name);
    }
    CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    snprintf(name, sizeof name, "stage %d", number);
    if (pn_sim_stream)
        pn_sim_stream(s->stream, name);
    CUDA(cudaLibraryLoadData(&s->library, cubin, NULL, NULL, 0, NULL, NULL, 0));
}

cudaKernel_t kernel_of(const stage *s, const char *name)
{
    cudaKernel_t kernel;
    CUDA(cudaLibraryGetKernel(&kernel, s->library, name));
    return kernel;
}

cudaError_t start(cudaKernel_t kernel, cudaStream_t stream, int blocks, void **arguments)
{
    return cudaLaunchKernel((const void *)kernel, (dim3){(unsigned)blocks, 1, 1}, (dim3){256, 1, 1}, arguments, 0,
                            stream);
}

cudaError_t scale(const stage *s, cudaStream_t stream, float *y, const float *x, int n)
{
    float by = 2;
    return start(kernel_of(s, "scale"), stream, 4, (void *[]){&y, &x, &by, &n});
}

const float *pattern(void)
{
    static float values[N];
    for (int i = 0; i < N; i++)
        values[i] = (float)(i % 7 - 3);
    return values;
}

void fill_image(const stage *s)
{
    CUDA(cudaMemcpyAsync(s->image, pattern(), N * sizeof(float), cudaMemcpyHostToDevice, s->stream));
    CUDA(cudaStreamSynchronize(s->stream));
}

int main(int count, char **argument)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (const plant *one = all[i]; one->name; one++) {
            if (count == 2)
                puts(one->name);
            if (count == 3 && !strcmp(one->name, argument[1])) {
                one->run(!strcmp(argument[2], "wrong"));
                return 0;
            }
        }
    return count == 2 ? 0 : 2;
}
