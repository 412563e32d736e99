/* kernel.c: the kernels of the program: choosing a binary, finding a kernel, launching it.
 *
 * Who launches says what it passes (letters, cuda.h); the table in the program says what the text of kernels.cu takes;
 * the facts that `pnetc kernels` read back from the cubins say what was compiled. The three are compared before
 * anything runs. */
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

static int letter_bytes(char letter)
{
    switch (letter) {
    case 'i':
    case 'f':
        return 4;
    case 'S':
        return (int)sizeof(cuda_sampler);
    case 'I':
        return (int)sizeof(cuda_images);
    case 'R':
        return (int)sizeof(cuda_rule);
    default:
        return 8; /* p, d, l */
    }
}

/* Parameters are aligned to their size, structs to that of their members. */
static int bytes_of(const char *takes)
{
    int bytes = 0;
    for (; *takes; takes++) {
        const int size = letter_bytes(*takes), align = size == 8 || *takes == 'S' ? 8 : 4;
        bytes = (bytes + align - 1) / align * align + size;
    }
    return bytes;
}

static void check_facts(const pn_kernel_image *image, const char *name, const char *takes)
{
    for (int i = 0; i < image->facts; i++) {
        const pn_kernel_fact *fact = &image->fact[i];
        if (strcmp(fact->name, name) != 0)
            continue;
        if (fact->parameters != (int)strlen(takes) || fact->bytes != bytes_of(takes))
            pn_fail(NULL,
                    "internal error: kernel %s was compiled with %d parameters of %d bytes, and is launched with %d of "
                    "%d",
                    name, fact->parameters, fact->bytes, (int)strlen(takes), bytes_of(takes));
        return;
    }
    pn_fail(NULL, "internal error: kernel %s was not compiled (make the program again)", name);
}

/* A cubin runs on GPUs of its major number from its minor number on; PTX (sm 0) is compiled by the driver. */
static const pn_binary *choose(const pn_kernel_image *image, int sm)
{
    const pn_binary *best = NULL;
    for (int i = 0; i < image->binaries; i++) {
        const pn_binary *b = &image->binary[i];
        if (b->sm == 0 ? !best : b->sm / 10 == sm / 10 && b->sm <= sm && (!best || b->sm > best->sm))
            best = b;
    }
    return best;
}

void cuda_kernels_check(const pn_program *program)
{
    for (int i = 0; i < program->nkernels; i++)
        if (program->kernel[i].kernel)
            check_facts(program->image, program->kernel[i].kernel, program->kernel[i].takes);
}

void cuda_kernels_load(cuda_device *device, const pn_program *program)
{
    const pn_binary *binary = choose(program->image, device->sm);
    if (!binary)
        pn_fail(NULL, "the kernels of this program are not for %s (sm_%d): see pnetc kernels --help", device->name,
                device->sm);
    CU(NULL, "kernels", cudaLibraryLoadData(&device->library, binary->bytes, NULL, NULL, 0, NULL, NULL, 0));
}

static cuda_kernel get(pn_stage *stage, const char *op, const char *name, const char *takes, int64_t blocks)
{
    const cuda_device *device = stage->run->target;
    cuda_kernel kernel = {op, name, takes, blocks, NULL};
    check_facts(stage->run->program->image, name, takes);
    if (!device->described)
        CU(stage, name, cudaLibraryGetKernel(&kernel.kernel, device->library, name));
    return kernel;
}

cuda_kernel cuda_kernel_find(pn_stage *stage, const char *op, const char *pass, const char *takes)
{
    const pn_program *program = stage->run->program;
    for (int i = 0; i < program->nkernels; i++) {
        const pn_kernel *k = &program->kernel[i];
        if (!k->op || strcmp(k->op, op) != 0 || strcmp(k->pass, pass) != 0)
            continue;
        if (strcmp(k->takes, takes) != 0 || k->threads != CUDA_THREADS)
            pn_fail(stage, "internal error: %s: kernel %s takes \"%s\", not \"%s\"", op, k->kernel, k->takes, takes);
        return get(stage, op, k->kernel, takes, k->blocks);
    }
    pn_fail(stage, "internal error: %s has no kernel for its %s", op, pass);
}

cuda_kernel cuda_kernel_common(pn_stage *stage, const char *name, const char *takes)
{
    return get(stage, NULL, name, takes, 1);
}

void cuda_launch(pn_stage *stage, const cuda_kernel *kernel, int64_t blocks, void **argument, int count)
{
    if (count != (int)strlen(kernel->takes))
        pn_fail(stage, "internal error: kernel %s takes %zu parameters, not %d", kernel->name, strlen(kernel->takes),
                count);
    const dim3 grid = {(unsigned)(blocks > 0 ? blocks : kernel->blocks), 1, 1}, block = {CUDA_THREADS, 1, 1};
    const cudaError_t error =
        cudaLaunchKernel((const void *)kernel->kernel, grid, block, argument, 0, cuda_stage_of(stage)->stream);
    cuda_check(stage, error, kernel->op ? kernel->op : kernel->name, "cudaLaunchKernel");
}
