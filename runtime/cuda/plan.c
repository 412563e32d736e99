/* plan.c: see plan.h. Attributes: cuDNN documentation, "Backend API". Each descriptor is finalised before it is used;
 * the first call that fails ends the making, and all that was made is destroyed. */
#include "cuda/plan.h"

#include <stdio.h>
#include <string.h>

typedef cudnnBackendDescriptor_t Descriptor;

enum { X = 1, W, Y, BIAS, PRODUCT, SUM }; /* unique ids of tensors; the last two never get memory */
enum { MOST = 32 };                       /* descriptors of one graph, engines of one list */

/* Descriptors made so far, and the first failure. */
typedef struct {
    Descriptor made[2 * MOST];
    int count;
    cudnnStatus_t status;
    const char *doing;
} Maker;

static Descriptor make(Maker *m, cudnnBackendDescriptorType_t type, const char *doing)
{
    Descriptor descriptor = NULL;
    if (m->status != CUDNN_STATUS_SUCCESS)
        return NULL;
    m->doing = doing;
    m->status = cudnnBackendCreateDescriptor(type, &descriptor);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->made[m->count++] = descriptor;
    return descriptor;
}

static void set(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t count, const void *value)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendSetAttribute(d, name, type, count, value);
}

static void set_descriptor(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, Descriptor value)
{
    set(m, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(Maker *m, Descriptor d)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendFinalize(d);
}

static void destroy_all(Maker *m)
{
    while (m->count > 0)
        cudnnBackendDestroyDescriptor(m->made[--m->count]);
}

/* Takes one out of the list: the caller keeps it. */
static void keep(Maker *m, Descriptor d)
{
    for (int i = 0; i < m->count; i++)
        if (m->made[i] == d)
            m->made[i] = m->made[--m->count];
}

static Descriptor tensor(Maker *m, int64_t id, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t dim[4] = {n, c, h, w}, stride[4] = {c * h * w, 1, c * w, c}, alignment = 16;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const bool is_virtual = id >= PRODUCT;
    Descriptor t = make(m, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "a tensor");
    set(m, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(m, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    set(m, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set(m, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(m, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(m, t, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    finalize(m, t);
    return t;
}

static Descriptor convolution(Maker *m, const cuda_shape *s)
{
    const int64_t dims = 2, pad[2] = {s->pad, s->pad}, stride[2] = {s->stride, s->stride};
    const int64_t dilation[2] = {s->dilation, s->dilation};
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    Descriptor c = make(m, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "a convolution");
    set(m, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(m, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(m, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims);
    set(m, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(m, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(m, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dilation);
    set(m, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    finalize(m, c);
    return c;
}

/* Of each pass: the operation and the names of its attributes. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
    const char *name;
} operation[CUDA_PASSES] = {
    [CUDA_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                      "the forward convolution"},
    [CUDA_DATA] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                   "the gradient of the input"},
    [CUDA_FILTER] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, "the gradient of the weights"},
};

/* y = x + b, or relu(x). */
static Descriptor pointwise(Maker *m, cudnnPointwiseMode_t mode, Descriptor x, Descriptor b, Descriptor y)
{
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    Descriptor p = make(m, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "what follows a convolution");
    set(m, p, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set(m, p, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type);
    finalize(m, p);
    Descriptor o = make(m, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "what follows a convolution");
    set_descriptor(m, o, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, p);
    set_descriptor(m, o, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b)
        set_descriptor(m, o, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    set_descriptor(m, o, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    finalize(m, o);
    return o;
}

static Descriptor graph(Maker *m, const cuda_place *place, cuda_pass pass, const cuda_shape *s)
{
    enum { OPERATIONS = 3 };
    const bool bias = pass == CUDA_FORWARD && s->bias, relu = pass == CUDA_FORWARD && s->relu;
    const float one = 1.0f, zero = 0.0f;
    Descriptor x = tensor(m, X, s->batch, s->in, s->height, s->width);
    Descriptor w = tensor(m, W, s->out, s->in / s->groups, s->kernel, s->kernel);
    Descriptor y = tensor(m, Y, s->batch, s->out, s->out_height, s->out_width);
    Descriptor c = convolution(m, s), list[OPERATIONS];
    Descriptor product = bias || relu ? tensor(m, PRODUCT, s->batch, s->out, s->out_height, s->out_width) : y;
    Descriptor o = make(m, operation[pass].type, operation[pass].name);
    int64_t count = 0;
    set_descriptor(m, o, operation[pass].x, x);
    set_descriptor(m, o, operation[pass].w, w);
    set_descriptor(m, o, operation[pass].y, product);
    set_descriptor(m, o, operation[pass].convolution, c);
    set(m, o, operation[pass].alpha, CUDNN_TYPE_FLOAT, 1, &one);
    set(m, o, operation[pass].beta, CUDNN_TYPE_FLOAT, 1, &zero);
    finalize(m, o);
    list[count++] = o;
    Descriptor sum = product;
    if (bias) {
        sum = relu ? tensor(m, SUM, s->batch, s->out, s->out_height, s->out_width) : y;
        list[count++] = pointwise(m, CUDNN_POINTWISE_ADD, product, tensor(m, BIAS, 1, s->out, 1, 1), sum);
    }
    if (relu)
        list[count++] = pointwise(m, CUDNN_POINTWISE_RELU_FWD, sum, NULL, y);
    Descriptor g = make(m, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, operation[pass].name);
    set(m, g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, list);
    if (place->handle)
        set(m, g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &place->handle);
    finalize(m, g);
    return g;
}

/* ---- engines ---- */

/* What the engine of a configuration does to numbers. */
static unsigned notes_of(Maker *m, Descriptor config, int64_t *number)
{
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    unsigned notes = 0;
    Descriptor engine = make(m, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine");
    if (m->status != CUDNN_STATUS_SUCCESS)
        return ~0u;
    m->status = cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                         &engine);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status =
            cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, number);
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                             CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, note);
    for (int64_t i = 0; m->status == CUDNN_STATUS_SUCCESS && i < count; i++)
        notes |= 1u << note[i];
    return notes;
}

static bool fits(unsigned notes, bool tf32)
{
    const unsigned never = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    const unsigned rounds = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                            1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    return !(notes & (tf32 ? never : never | rounds));
}

/* A configuration whose plan cannot be made is no failure: the next one may do. */
static bool try_config(cuda_plan *plan, const cuda_place *place, Descriptor config)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count;
    plan->notes = notes_of(&m, config, &plan->engine);
    Descriptor p = NULL;
    if (m.status == CUDNN_STATUS_SUCCESS && fits(plan->notes, place->tf32)) {
        p = make(&m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
        if (place->handle)
            set(&m, p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &place->handle);
        else
            set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, place->device);
        set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        finalize(&m, p);
        if (m.status == CUDNN_STATUS_SUCCESS)
            m.status = cudnnBackendGetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1,
                                                &count, &plan->workspace);
    }
    const bool good = p && m.status == CUDNN_STATUS_SUCCESS;
    if (good) {
        plan->descriptor = p;
        keep(&m, p);
    }
    destroy_all(&m);
    return good;
}

/* The engines that one mode of the heuristics lists, best first. */
static bool try_mode(cuda_plan *plan, const cuda_place *place, Descriptor g, cudnnBackendHeurMode_t mode, int *seen)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor config[MOST];
    int64_t count = 0;
    bool good = false;
    Descriptor h = make(&m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set(&m, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!place->handle)
        set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, place->device);
    finalize(&m, h);
    for (int i = 0; i < MOST; i++)
        config[i] = make(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine's configuration");
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST,
                                            &count, config);
    *seen += (int)count;
    for (int64_t i = 0; m.status == CUDNN_STATUS_SUCCESS && i < count && !good; i++)
        good = try_config(plan, place, config[i]);
    destroy_all(&m);
    return good;
}

bool cuda_plan_make(cuda_plan *plan, const cuda_place *place, cuda_pass pass, const cuda_shape *shape, char *why,
                    size_t size)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int seen = 0;
    Descriptor g = graph(&m, place, pass, shape);
    plan->bias = pass == CUDA_FORWARD && shape->bias;
    plan->relu = pass == CUDA_FORWARD && shape->relu;
    bool good = m.status == CUDNN_STATUS_SUCCESS && (try_mode(plan, place, g, CUDNN_HEUR_MODE_A, &seen) ||
                                                     try_mode(plan, place, g, CUDNN_HEUR_MODE_FALLBACK, &seen));
    if (m.status != CUDNN_STATUS_SUCCESS) {
        char said[512] = "";
        cudnnGetLastErrorString(said, sizeof said);
        snprintf(why, size, "cuDNN refuses %s: %s (%s)", m.doing, cudnnGetErrorString(m.status), said);
    } else if (!good) {
        snprintf(why, size, "cuDNN has no engine for %s that repeats bit for bit%s (%d looked at)",
                 operation[pass].name, place->tf32 ? "" : " in f32", seen);
    }
    destroy_all(&m);
    return good;
}

void cuda_plan_free(cuda_plan *plan)
{
    if (plan->descriptor)
        cudnnBackendDestroyDescriptor(plan->descriptor);
    plan->descriptor = NULL;
}

cudnnStatus_t cuda_plan_run(const cuda_plan *plan, cudnnHandle_t handle, const float *x, const float *w, const float *b,
                            const float *y, void *workspace)
{
    const int64_t id[] = {X, W, Y, BIAS}, count = plan->bias ? 4 : 3;
    const void *const pointer[] = {x, w, y, b};
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor pack = make(&m, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "pointers");
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, id);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointer);
    set(&m, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    finalize(&m, pack);
    if (m.status == CUDNN_STATUS_SUCCESS)
        m.status = cudnnBackendExecute(handle, plan->descriptor, pack);
    destroy_all(&m);
    return m.status;
}
