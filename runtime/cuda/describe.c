/* describe.c: a convolution, with the bias and the relu behind it, as an operation graph. Attributes: cuDNN
 * documentation, "Backend API". */
#include "cuda/describe.h"

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

Descriptor cuda_describe(Maker *m, const cuda_place *place, cuda_pass pass, const cuda_shape *s)
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

const char *cuda_pass_text(cuda_pass pass)
{
    return operation[pass].name;
}
