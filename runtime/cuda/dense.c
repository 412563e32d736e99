/* dense.c: convolutions and dense layers: the product by a plan of cuDNN; bias and relu in the same plan where cuDNN
 * has an engine for that, else by a kernel behind it. */
#include "cuda/cuda.h"

static void make_plan(pn_op *op, cuda_pass pass)
{
    char why[768];
    if (!cuda_tune_plan(op, pass, &op->dense.shape, why, sizeof why))
        cuda_tune_refuse(op, pass, why);
    cuda_workspace_need(op->stage, op->dense.plan[pass].workspace);
}

/* The forward with bias and relu in one plan. False: there is none. */
static bool fuse(pn_op *op, bool bias, bool relu)
{
    char why[768];
    cuda_shape shape = op->dense.shape;
    shape.bias = bias;
    shape.relu = relu;
    if (shape.bf16 || (!bias && !relu) || !cuda_tune_plan(op, CUDA_FORWARD, &shape, why, sizeof why))
        return false;
    cuda_workspace_need(op->stage, op->dense.plan[CUDA_FORWARD].workspace);
    return true;
}

static void find_kernels(pn_op *op, bool has_bias, bool relu)
{
    op->dense.has_bias = has_bias;
    op->dense.relu = relu;
    if ((has_bias || relu) && !op->dense.fused)
        op->dense.finish = cuda_kernel_find(op->stage, op->name, "finish", "pp");
    if (!has_bias)
        return;
    op->dense.bias_part = cuda_kernel_find(op->stage, op->name, "bias_part", "pp");
    op->dense.bias = cuda_kernel_find(op->stage, op->name, "bias", "pp");
    cuda_sums_need(op->stage, op->dense.bias_part.blocks);
}

/* Of either kind of layer. */
typedef struct {
    const char *name;
    const pn_tensor *x, *y;
    const pn_param *w, *b;
    bool relu, data_gradient;
} Layer;

static pn_op *open(pn_stage *stage, const cuda_shape *shape, const Layer *layer)
{
    pn_op *op = cuda_op_new(stage, layer->name);
    const bool bias = layer->b != NULL, relu = layer->relu;
    op->dense.shape = *shape;
    op->dense.x = layer->x;
    op->dense.y = layer->y;
    op->dense.w = layer->w;
    op->dense.b = layer->b;
    op->dense.fused = fuse(op, bias, relu);
    if (!op->dense.fused)
        make_plan(op, CUDA_FORWARD);
    make_plan(op, CUDA_FILTER);
    if (layer->data_gradient)
        make_plan(op, CUDA_DATA);
    find_kernels(op, bias, relu);
    if (stage) {
        cuda_stage *cuda = cuda_stage_of(stage);
        op->next = cuda->dense;
        cuda->dense = op;
    }
    return op;
}

static void run(pn_op *op, cuda_pass pass, const void *x, const void *w, const float *b, const void *y)
{
    const cuda_stage *cuda = cuda_stage_of(op->stage);
    DNN(op->stage, op->name, cuda_plan_run(&op->dense.plan[pass], cuda->dnn, x, w, b, y, cuda->workspace));
}

static void forward(pn_op *op, const void *x, const void *w, const float *b, void *y)
{
    run(op, CUDA_FORWARD, x, w, b, y);
    if ((op->dense.has_bias || op->dense.relu) && !op->dense.fused)
        CUDA_LAUNCH(op->stage, &op->dense.finish, 0, &y, &b);
}

static void backward_weights(pn_op *op, const void *x, const void *gy, void *gw, float *gb)
{
    run(op, CUDA_FILTER, x, gw, NULL, gy);
    if (!op->dense.has_bias)
        return;
    float *part = cuda_stage_of(op->stage)->sums;
    CUDA_LAUNCH(op->stage, &op->dense.bias_part, 0, &part, &gy);
    CUDA_LAUNCH(op->stage, &op->dense.bias, 0, &gb, &part);
}

pn_op *pn_conv_init(pn_stage *stage, const pn_conv_def *def)
{
    const int64_t *x = def->x->dim, *y = def->y->dim;
    const cuda_shape shape = {.batch = x[0],
                              .in = x[1],
                              .height = x[2],
                              .width = x[3],
                              .out = y[1],
                              .out_height = y[2],
                              .out_width = y[3],
                              .groups = def->groups,
                              .kernel = def->kernel,
                              .stride = def->stride,
                              .pad = def->pad,
                              .dilation = def->dilation,
                              .bf16 = def->x->element == PN_BF16};
    cuda_param_layout(def->w, shape.in / shape.groups, shape.kernel * shape.kernel);
    cuda_op_writes(def->y);
    return open(stage, &shape, &(Layer){def->name, def->x, def->y, def->w, def->b, def->relu, def->data_gradient});
}

void pn_conv_forward(pn_op *op, const void *x, const void *w, const float *b, void *y)
{
    forward(op, x, w, b, y);
}

void pn_conv_backward_data(pn_op *op, const void *gy, const void *w, void *gx)
{
    run(op, CUDA_DATA, gx, w, NULL, gy);
}

void pn_conv_backward_weights(pn_op *op, const void *x, const void *gy, void *gw, float *gb)
{
    backward_weights(op, x, gy, gw, gb);
}

/* An image is read as it lies: the weights have its order. */
pn_op *pn_linear_init(pn_stage *stage, const pn_linear_def *def)
{
    const pn_tensor *x = def->x;
    const cuda_shape shape = {.batch = x->dim[0],
                              .in = pn_tensor_floats(x) / x->dim[0],
                              .height = 1,
                              .width = 1,
                              .out = def->y->dim[1],
                              .out_height = 1,
                              .out_width = 1,
                              .groups = 1,
                              .kernel = 1,
                              .stride = 1,
                              .pad = 0,
                              .dilation = 1,
                              .bf16 = x->element == PN_BF16};
    if (x->rank == 4)
        cuda_param_layout(def->w, x->dim[1], x->dim[2] * x->dim[3]);
    cuda_op_writes(def->y);
    return open(stage, &shape, &(Layer){def->name, def->x, def->y, def->w, def->b, def->relu, def->data_gradient});
}

void pn_linear_forward(pn_op *op, const void *x, const void *w, const float *b, void *y)
{
    forward(op, x, w, b, y);
}

void pn_linear_backward_data(pn_op *op, const void *gy, const void *w, void *gx)
{
    run(op, CUDA_DATA, gx, w, NULL, gy);
}

void pn_linear_backward_weights(pn_op *op, const void *x, const void *gy, void *gw, float *gb)
{
    backward_weights(op, x, gy, gw, gb);
}

void pn_target_algorithms(const pn_stage *stage, pn_algorithm_fn *tell, void *to)
{
    const cuda_stage *cuda = stage->target;
    for (const pn_op *op = cuda ? cuda->dense : NULL; op; op = op->next)
        for (int pass = 0; pass < CUDA_PASSES; pass++) {
            const cuda_plan *plan = &op->dense.plan[pass];
            char code[CUDA_ENGINE + 32];
            if (!plan->descriptor)
                continue;
            snprintf(code, sizeof code, "engine %s%s%s", plan->engine, plan->bias ? ", bias" : "",
                     plan->relu ? ", relu" : "");
            tell(to, op->name, cuda_pass_name[pass], "cuDNN", code);
        }
}
