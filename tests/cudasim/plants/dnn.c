/* dnn.c: plants around cuDNN's backend API: one convolution, 2 images of 6x6, 4 channels to 8, 3x3, padded. */
#include "planted.h"

#include <cudnn.h>
#include <stdbool.h>

enum { BATCH = 2, SIDE = 6, IN = 4, OUT = 8, KERNEL = 3 };

#define DNN(CALL)                                                                                                      \
    do {                                                                                                               \
        cudnnStatus_t status_ = (CALL);                                                                                \
        if (status_ != CUDNN_STATUS_SUCCESS) {                                                                         \
            char text_[512] = "";                                                                                      \
            cudnnGetLastErrorString(text_, sizeof text_);                                                              \
            fprintf(stderr, "planted: %s: %s: %s\n", #CALL, cudnnGetErrorString(status_), text_);                      \
            exit(3);                                                                                                   \
        }                                                                                                              \
    } while (0)

typedef cudnnBackendDescriptor_t descriptor;

static descriptor make(cudnnBackendDescriptorType_t type)
{
    descriptor d;
    DNN(cudnnBackendCreateDescriptor(type, &d));
    return d;
}

static void set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *value)
{
    DNN(cudnnBackendSetAttribute(d, name, type, n, value));
}

static descriptor tensor(int64_t id, int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t dim[4] = {n, c, h, w}, stride[4] = {c * h * w, 1, c * w, c}, alignment = 16;
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    DNN(cudnnBackendFinalize(d));
    return d;
}

static descriptor convolution(void)
{
    int64_t two = 2, one[2] = {1, 1};
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    descriptor d = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &two);
    set(d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, one);
    set(d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, one);
    set(d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, one);
    set(d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, one);
    DNN(cudnnBackendFinalize(d));
    return d;
}

/* A plan from the heuristics, for x (id 1), w (2), y (3); *workspace: bytes. */
static descriptor plan_of(cudnnHandle_t handle, int64_t out_side, int64_t *workspace)
{
    descriptor x = tensor(1, BATCH, IN, SIDE, SIDE), w = tensor(2, OUT, IN, KERNEL, KERNEL);
    descriptor y = tensor(3, BATCH, OUT, out_side, out_side), c = convolution();
    descriptor o = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    float one = 1, zero = 0;
    int64_t count = 0;
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
    set(o, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
    DNN(cudnnBackendFinalize(o));
    descriptor g = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &o);
    set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    DNN(cudnnBackendFinalize(g));
    descriptor h = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), config = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    set(h, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g);
    set(h, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    DNN(cudnnBackendFinalize(h));
    DNN(cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &config));
    descriptor p = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set(p, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    DNN(cudnnBackendFinalize(p));
    DNN(cudnnBackendGetAttribute(p, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, workspace));
    descriptor all[] = {x, w, y, c, o, g, h, config}; /* the plan stays whole without them */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        DNN(cudnnBackendDestroyDescriptor(all[i]));
    return p;
}

static void execute(cudnnHandle_t handle, descriptor plan, int tensors, float *x, float *w, float *y, void *workspace)
{
    int64_t id[3] = {1, 2, 3};
    void *pointer[3] = {x, w, y};
    descriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, tensors, id);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, tensors, pointer);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    DNN(cudnnBackendFinalize(pack));
    DNN(cudnnBackendExecute(handle, plan, pack));
    DNN(cudnnBackendDestroyDescriptor(pack));
}

typedef struct scene {
    stage s;
    cudnnHandle_t handle;
    descriptor plan;
    void *workspace;
} scene;

static void open_scene(scene *c, int64_t out_side)
{
    int64_t bytes = 0;
    open_stage(&c->s, 0);
    fill_image(&c->s);
    DNN(cudnnCreate(&c->handle));
    DNN(cudnnSetStream(c->handle, c->s.stream));
    c->plan = plan_of(c->handle, out_side, &bytes);
    CUDA(cudaMalloc(&c->workspace, (size_t)bytes + 1));
    CUDA(cudaMemcpyAsync(c->s.weight, pattern(), OUT * IN * 9 * sizeof(float), cudaMemcpyHostToDevice, c->s.stream));
    CUDA(cudaStreamSynchronize(c->s.stream));
}

/* The numbers: against a loop of this file; wrong: y begins one row of channels late, and so ends beyond its buffer. */
static void dnn_overrun(int wrong)
{
    scene c;
    float y[BATCH * SIDE * SIDE * OUT];
    open_scene(&c, SIDE);
    float *to = c.s.activation + (wrong ? N - 500 : 0);
    execute(c.handle, c.plan, 3, c.s.image, c.s.weight, to, c.workspace);
    CUDA(cudaMemcpyAsync(y, to, sizeof y, cudaMemcpyDeviceToHost, c.s.stream));
    CUDA(cudaStreamSynchronize(c.s.stream));
    for (int i = 0; i < BATCH * SIDE * SIDE * OUT; i++) {
        int k = i % OUT, q = i / OUT % SIDE, p = i / OUT / SIDE % SIDE, n = i / OUT / SIDE / SIDE;
        float sum = 0;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                for (int j = 0; j < IN; j++)
                    if (p + r >= 1 && p + r <= SIDE && q + s >= 1 && q + s <= SIDE)
                        sum += pattern()[((n * SIDE + p + r - 1) * SIDE + q + s - 1) * IN + j] *
                               pattern()[((k * 3 + r) * 3 + s) * IN + j];
        if (y[i] != sum) {
            fprintf(stderr, "planted: y[%d] is %g, not %g\n", i, (double)y[i], (double)sum);
            exit(4);
        }
    }
}

static void dnn_weights_missing(int wrong)
{
    scene c;
    open_scene(&c, SIDE);
    execute(c.handle, c.plan, 3, c.s.image, wrong ? c.s.gradient : c.s.weight, c.s.activation, c.workspace);
    CUDA(cudaStreamSynchronize(c.s.stream));
}

static void dnn_pointer_missing(int wrong)
{
    scene c;
    open_scene(&c, SIDE);
    execute(c.handle, c.plan, wrong ? 2 : 3, c.s.image, c.s.weight, c.s.activation, c.workspace);
    CUDA(cudaStreamSynchronize(c.s.stream));
}

static void dnn_shape_refused(int wrong)
{
    scene c;
    open_scene(&c, SIDE - wrong);
}

static void dnn_misaligned(int wrong)
{
    scene c;
    open_scene(&c, SIDE);
    execute(c.handle, c.plan, 3, c.s.image + wrong, c.s.weight, c.s.activation, c.workspace);
    CUDA(cudaStreamSynchronize(c.s.stream));
}

/* The handle still has the stream of before. */
static void dnn_stream_forgotten(int wrong)
{
    scene c;
    cudaStream_t other;
    open_scene(&c, SIDE);
    CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    if (pn_sim_stream)
        pn_sim_stream(other, "branch");
    if (!wrong)
        DNN(cudnnSetStream(c.handle, other));
    execute(c.handle, c.plan, 3, c.s.image, c.s.weight, c.s.activation, c.workspace);
    CUDA(scale(&c.s, other, c.s.gradient, c.s.activation, BATCH * SIDE * SIDE * OUT));
    CUDA(cudaDeviceSynchronize());
}

const plant dnn_plants[] = {{"dnn_overrun", dnn_overrun},
                            {"dnn_weights_missing", dnn_weights_missing},
                            {"dnn_pointer_missing", dnn_pointer_missing},
                            {"dnn_shape_refused", dnn_shape_refused},
                            {"dnn_misaligned", dnn_misaligned},
                            {"dnn_stream_forgotten", dnn_stream_forgotten},
                            {NULL, NULL}};
