/* plan.c: see plan.h. Attributes: cuDNN documentation, "Backend API". Each descriptor is finalised before it is used;
 * the first call that fails ends the making, and all that was made is destroyed. */
#include "cuda/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cudnnBackendDescriptor_t Descriptor;

enum { X = 1, W, Y, BIAS, PRODUCT, SUM }; /* unique ids of tensors; the last two never get memory */
enum { MOST = 32 };                       /* descriptors of one graph, engines of one list */

/* Descriptors made so far, and the first failure. */
typedef struct {
    Descriptor made[3 * MOST];
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

static void get(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t most, int64_t *count, void *value)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendGetAttribute(d, name, type, most, count, value);
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

static Descriptor tensor(Maker *m, bool bf16, int64_t id, int64_t n, int64_t c, int64_t h, int64_t w)
{
    const int64_t dim[4] = {n, c, h, w}, stride[4] = {c * h * w, 1, c * w, c}, alignment = 16;
    const cudnnDataType_t type = bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
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
    Descriptor x = tensor(m, s->bf16, X, s->batch, s->in, s->height, s->width);
    Descriptor w = tensor(m, s->bf16, W, s->out, s->in / s->groups, s->kernel, s->kernel);
    Descriptor y = tensor(m, s->bf16, Y, s->batch, s->out, s->out_height, s->out_width);
    Descriptor c = convolution(m, s), list[OPERATIONS];
    Descriptor product = bias || relu ? tensor(m, false, PRODUCT, s->batch, s->out, s->out_height, s->out_width) : y;
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
        sum = relu ? tensor(m, false, SUM, s->batch, s->out, s->out_height, s->out_width) : y;
        list[count++] = pointwise(m, CUDNN_POINTWISE_ADD, product, tensor(m, false, BIAS, 1, s->out, 1, 1), sum);
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

/* What an engine does to numbers. */
static unsigned notes_of(Maker *m, Descriptor engine)
{
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t count = 0;
    unsigned notes = 0;
    get(m, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
        note);
    for (int64_t i = 0; i < count; i++)
        notes |= 1u << note[i];
    return notes;
}

/* Tensor cores round f32 to TF32, and nothing of bf16. */
static bool fits(unsigned notes, const cuda_place *place, bool bf16)
{
    const unsigned varies = 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    const unsigned cores = 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    const unsigned rounds = (bf16 ? 0 : cores) | 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                            1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION;
    const unsigned transforms = 1u << CUDNN_NUMERICAL_NOTE_FFT | 1u << CUDNN_NUMERICAL_NOTE_WINOGRAD |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 |
                                1u << CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    return !(notes & ((place->nondeterministic ? 0 : varies) | (place->tf32 && !bf16 ? 0 : rounds) |
                      (place->exact ? transforms : 0)));
}

/* The word of a configuration. */
static void name_engine(Maker *m, Descriptor config, Descriptor engine, char *word)
{
    Descriptor choice[MOST];
    int64_t number = 0, count = 0, one;
    for (int i = 0; i < MOST; i++)
        choice[i] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob of an engine");
    get(m, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &number);
    get(m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &count, choice);
    int length = snprintf(word, CUDA_ENGINE, "%lld", (long long)number);
    for (int64_t i = 0; i < count && m->status == CUDNN_STATUS_SUCCESS; i++) {
        cudnnBackendKnobType_t knob = 0;
        get(m, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &one, &knob);
        get(m, choice[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &one, &number);
        length += snprintf(word + length, (size_t)(CUDA_ENGINE - length), ":%d=%lld", (int)knob, (long long)number);
        if (length >= CUDA_ENGINE)
            m->status = CUDNN_STATUS_NOT_SUPPORTED; /* it could not be asked for again */
    }
}

/* Of a finalised configuration. False: it does not do as `place` says, or there is no plan. */
static bool plan_config(cuda_plan *plan, const cuda_place *place, bool bf16, Descriptor config, bool *unfit)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int64_t count;
    Descriptor engine = make(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "an engine"), p = NULL;
    get(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine);
    *unfit = !fits(notes_of(&m, engine), place, bf16);
    if (m.status == CUDNN_STATUS_SUCCESS && !*unfit) {
        name_engine(&m, config, engine, plan->engine);
        p = make(&m, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "a plan");
        if (place->handle)
            set(&m, p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &place->handle);
        else
            set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, place->device);
        set_descriptor(&m, p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
        finalize(&m, p);
        get(&m, p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &plan->workspace);
    }
    const bool good = p && m.status == CUDNN_STATUS_SUCCESS;
    if (good) {
        plan->descriptor = p;
        keep(&m, p);
    }
    destroy_all(&m);
    return good;
}

/* The engines that one mode of the heuristics lists, best first. A configuration whose plan cannot be made is no
 * failure: the next one may do. */
static int try_mode(cuda_plan *plan, int most, const cuda_place *place, bool bf16, Descriptor g,
                    cudnnBackendHeurMode_t mode, int *seen)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor config[MOST];
    int64_t count = 0;
    int good = 0;
    bool unfit;
    Descriptor h = make(&m, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristics");
    set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g);
    set(&m, h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!place->handle)
        set_descriptor(&m, h, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, place->device);
    finalize(&m, h);
    for (int i = 0; i < MOST; i++)
        config[i] = make(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "an engine's configuration");
    get(&m, h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &count, config);
    *seen += (int)count;
    for (int64_t i = 0; m.status == CUDNN_STATUS_SUCCESS && i < count && good < most; i++)
        good += plan_config(&plan[good], place, bf16, config[i], &unfit);
    destroy_all(&m);
    return good;
}

/* What cuDNN said of a call that failed. */
static void say(const Maker *m, char *why, size_t size)
{
    char said[512] = "";
    cudnnGetLastErrorString(said, sizeof said);
    snprintf(why, size, "cuDNN refuses %s: %s (%s)", m->doing, cudnnGetErrorString(m->status), said);
}

static void note_fused(cuda_plan *plan, cuda_pass pass, const cuda_shape *shape)
{
    plan->bias = pass == CUDA_FORWARD && shape->bias;
    plan->relu = pass == CUDA_FORWARD && shape->relu;
}

int cuda_plan_make(cuda_plan *plan, int most, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                   char *why, size_t size)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    int seen = 0, good = 0;
    Descriptor g = graph(&m, place, pass, shape);
    if (m.status != CUDNN_STATUS_SUCCESS) {
        say(&m, why, size);
    } else {
        good = try_mode(plan, most, place, shape->bf16, g, CUDNN_HEUR_MODE_A, &seen);
        if (good == 0)
            good = try_mode(plan, most, place, shape->bf16, g, CUDNN_HEUR_MODE_FALLBACK, &seen);
        if (good == 0)
            snprintf(why, size, "cuDNN has no engine for %s%s%s (%d looked at)", operation[pass].name,
                     place->nondeterministic ? "" : " that repeats bit for bit",
                     place->tf32 || shape->bf16 ? "" : " in f32", seen);
    }
    destroy_all(&m);
    for (int i = 0; i < good; i++)
        note_fused(&plan[i], pass, shape);
    return good;
}

/* ":1=4:13=0" becomes descriptors. False: it has another form. */
static bool read_knobs(Maker *m, const char *text, Descriptor *choice, int64_t *count)
{
    for (*count = 0; *text && *count < MOST; ++*count) {
        int type, length = 0;
        long long value;
        if (sscanf(text, ":%d=%lld%n", &type, &value, &length) != 2)
            return false;
        const cudnnBackendKnobType_t knob = (cudnnBackendKnobType_t)type;
        const int64_t number = value;
        Descriptor d = choice[*count] = make(m, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "a knob of an engine");
        set(m, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &knob);
        set(m, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &number);
        finalize(m, d);
        text += length;
    }
    return !*text;
}

bool cuda_plan_of(cuda_plan *plan, const char *engine, const cuda_place *place, cuda_pass pass, const cuda_shape *shape,
                  char *why, size_t size)
{
    Maker m = {.status = CUDNN_STATUS_SUCCESS};
    Descriptor choice[MOST];
    int64_t count = 0;
    char *knobs;
    bool unfit = false, good = false;
    const int64_t number = strtoll(engine, &knobs, 10);
    Descriptor g = graph(&m, place, pass, shape);
    Descriptor e = make(&m, CUDNN_BACKEND_ENGINE_DESCRIPTOR, "the engine");
    set_descriptor(&m, e, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g);
    set(&m, e, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
    if (!place->handle)
        set_descriptor(&m, e, CUDNN_ATTR_ENGINE_DEVICEPROP, place->device);
    finalize(&m, e);
    Descriptor config = make(&m, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "the engine's configuration");
    set_descriptor(&m, config, CUDNN_ATTR_ENGINECFG_ENGINE, e);
    const bool read = knobs != engine && read_knobs(&m, knobs, choice, &count);
    if (count > 0)
        set(&m, config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, choice);
    finalize(&m, config);
    if (!read)
        snprintf(why, size, "'%s' is no engine of cuDNN with its knobs", engine);
    else if (m.status != CUDNN_STATUS_SUCCESS)
        say(&m, why, size);
    else if (!(good = plan_config(plan, place, shape->bf16, config, &unfit)))
        snprintf(why, size,
                 unfit ? "engine %s of cuDNN computes in another way than this run may"
                       : "cuDNN makes no plan of its engine %s",
                 engine);
    destroy_all(&m);
    note_fused(plan, pass, shape);
    return good;
}

void cuda_plan_free(cuda_plan *plan)
{
    if (plan->descriptor)
        cudnnBackendDestroyDescriptor(plan->descriptor);
    plan->descriptor = NULL;
}

cudnnStatus_t cuda_plan_run(const cuda_plan *plan, cudnnHandle_t handle, const void *x, const void *w, const float *b,
                            const void *y, void *workspace)
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
