/* plans.c: does cuDNN accept every convolution and dense layer of a program? Linked to the stages of a program built
 * for cuda and to runtime/cuda/{dense,plan,tune}.c; runs the inits of all stages, for the GPU that a JSON file
 * describes. Needs neither a GPU nor a driver (cuDNN 9.8).   usage: plans DEVICE.json [tf32]   prints: plans N, largest
 * workspace, engines What inits do not call is not linked: -Wl,--unresolved-symbols=ignore-all. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/cuda.h"

static cudnnBackendDescriptor_t device;
static int64_t plans, workspace, dense;
static pn_op *ops[4096];
static bool tf32;

_Noreturn void pn_fail(pn_stage *stage, const char *format, ...)
{
    (void)stage;
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

cuda_place cuda_plan_place(pn_stage *stage)
{
    (void)stage;
    plans++;
    return (cuda_place){.device = device, .tf32 = tf32};
}

const char *pn_engine_of(pn_stage *stage, const char *op, const char *pass)
{
    (void)stage, (void)op, (void)pass;
    return NULL;
}

void cuda_workspace_need(pn_stage *stage, int64_t bytes)
{
    (void)stage;
    workspace = bytes > workspace ? bytes : workspace;
}

pn_op *cuda_op_new(pn_stage *stage, const char *name)
{
    pn_op *op = calloc(1, sizeof *op);
    if (!op)
        pn_fail(stage, "out of memory");
    op->name = name;
    if (dense < (int64_t)(sizeof ops / sizeof *ops))
        ops[dense++] = op;
    return op;
}

void cuda_sums_need(pn_stage *stage, int64_t blocks)
{
    (void)stage, (void)blocks;
}

cuda_kernel cuda_kernel_find(pn_stage *stage, const char *op, const char *pass, const char *takes)
{
    (void)stage, (void)op, (void)pass, (void)takes;
    return (cuda_kernel){0};
}

void cuda_param_layout(pn_param *param, int64_t channels, int64_t plane)
{
    (void)param, (void)channels, (void)plane;
}

void cuda_op_writes(pn_tensor *y)
{
    (void)y;
}

int64_t pn_tensor_floats(const pn_tensor *t)
{
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++)
        count *= t->dim[i];
    return count;
}

/* The inits of everything else. */
#define NOTHING(name, def)                                                                                             \
    pn_op *pn_##name##_init(pn_stage *stage, const def *d)                                                             \
    {                                                                                                                  \
        (void)stage, (void)d;                                                                                          \
        return NULL;                                                                                                   \
    }
NOTHING(maxpool, pn_pool_def)
NOTHING(avgpool, pn_pool_def)
NOTHING(batch_norm, pn_batch_norm_def)
NOTHING(pointwise, pn_pointwise_def)
NOTHING(add, pn_add_def)
NOTHING(concat, pn_concat_def)
NOTHING(flatten, pn_flatten_def)
NOTHING(lrn, pn_lrn_def)
NOTHING(shortcut, pn_shortcut_def)
NOTHING(dropout, pn_dropout_def)
NOTHING(softmax_cross_entropy, pn_loss_def)
NOTHING(mse, pn_loss_def)

static void read_device(const char *path)
{
    static char text[16384];
    FILE *file = fopen(path, "rb");
    const size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    if (length == 0 ||
        cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &device) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendSetAttribute(device, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)length,
                                 text) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendFinalize(device) != CUDNN_STATUS_SUCCESS)
        pn_fail(NULL, "%s: cuDNN %zu does not take it as a device", path, cudnnGetVersion());
}

/* The program's own main calls this. */
int pn_main(const pn_program *program, int argc, char **argv)
{
    if (argc < 2 || argc > 3)
        pn_fail(NULL, "usage: plans DEVICE.json [tf32]");
    tf32 = argc == 3;
    read_device(argv[1]);
    for (int s = 0; s < program->nstages; s++)
        program->stage[s]->init(NULL);
    int64_t fused = 0;
    for (int64_t i = 0; i < dense; i++)
        fused += ops[i]->dense.fused;
    printf("plans %lld workspace %lld fused %lld\n", (long long)plans, (long long)workspace, (long long)fused);
    return 0;
}
