// dnn_run.cpp: the arithmetic of cuDNN's operation graphs, in plain loops over dense f32 copies of the tensors, channels last:
// convolutions (cross-correlation; cuDNN documentation, "Operations") with groups, strides, padding and dilation in two dimensions,
// their gradients, and the pointwise operations that are fused behind them.
#include "dnn.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace sim
{
namespace
{
struct Tensor { // dim and stride in cuDNN's order: n c h w (of a filter: k c r s)
    cudnnDataType_t type = CUDNN_DATA_FLOAT;
    int64_t dim[4] = {1, 1, 1, 1}, stride[4] = {0, 0, 0, 0}, id = 0, alignment = 1;
    bool is_virtual = false;
    int64_t items() const { return dim[0] * dim[1] * dim[2] * dim[3]; }
    size_t bytes() const
    {
        int64_t last = 0;
        for (int i = 0; i < 4; i++)
            last += (dim[i] - 1) * stride[i];
        return size_t(last + 1) * (type == CUDNN_DATA_FLOAT ? 4 : 2);
    }
};

Tensor tensor_of(const Descriptor *descriptor)
{
    Tensor t;
    t.type = descriptor->value(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT);
    for (size_t i = 0; i < 4; i++) {
        t.dim[i] = descriptor->value<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, 1, i);
        t.stride[i] = descriptor->value<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, 0, i);
    }
    t.id = descriptor->value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    t.alignment = descriptor->value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 1);
    t.is_virtual = descriptor->value<unsigned char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0) != 0;
    return t;
}

float load(const Tensor &t, const void *base, int64_t i)
{
    if (t.type == CUDNN_DATA_FLOAT)
        return ((const float *)base)[i];
    uint32_t bits = uint32_t(((const uint16_t *)base)[i]) << 16; // bf16
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void store(const Tensor &t, void *base, int64_t i, float value)
{
    if (t.type == CUDNN_DATA_FLOAT) {
        ((float *)base)[i] = value;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    ((uint16_t *)base)[i] =
        std::isnan(value) ? uint16_t(bits >> 16 | 0x40) : uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class F> void each(const Tensor &t, F f) // f(index in the dense copy, place in memory)
{
    int64_t i = 0;
    for (int64_t n = 0; n < t.dim[0]; n++)
        for (int64_t h = 0; h < t.dim[2]; h++)
            for (int64_t w = 0; w < t.dim[3]; w++)
                for (int64_t c = 0; c < t.dim[1]; c++)
                    f(i++, n * t.stride[0] + c * t.stride[1] + h * t.stride[2] + w * t.stride[3]);
}

using Values = std::vector<float>;
struct Run {
    const DnnJob &job;
    std::map<int64_t, Values> virtuals;
    bool good = true;

    void *pointer(const Tensor &t) const { return job.pointers.at(t.id); }
    Values read(const Tensor &t, const char *role)
    {
        if (t.is_virtual)
            return virtuals[t.id];
        Values values(size_t(t.items()));
        good = good && use(pointer(t), t.bytes(), Access::read, role);
        if (good)
            each(t, [&, base = alias(pointer(t))](int64_t i, int64_t at) { values[size_t(i)] = load(t, base, at); });
        return values;
    }
    void write(const Tensor &t, const Values &values, const char *role)
    {
        if (t.is_virtual)
            virtuals[t.id] = values;
        good = good && (t.is_virtual || use(pointer(t), t.bytes(), Access::write, role));
        if (good && !t.is_virtual)
            each(t, [&, base = alias(pointer(t))](int64_t i, int64_t at) { store(t, base, at, values[size_t(i)]); });
    }
};

// ---- convolutions ----
enum Pass { forward, data, filter };
struct PassNames {
    cudnnBackendDescriptorType_t type;
    int x, w, y, convolution, alpha, beta;
    const char *name;
};
const PassNames passes[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, "convolution forward"},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, "convolution backward data"},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, "convolution backward filter"},
};

using Sums = std::vector<double>; // rounded once, at the end: what is left apart is the program's
void add_scaled(double *to, const float *from, float by, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += double(by) * double(from[i]);
}

// [k][r][s][c] <-> [r][s][c][k]: forward sums along c with k innermost.
Values filters_last(const Values &w, int64_t k, int64_t rsc)
{
    Values turned(w.size());
    for (int64_t i = 0; i < k; i++)
        for (int64_t j = 0; j < rsc; j++)
            turned[size_t(j * k + i)] = w[size_t(i * rsc + j)];
    return turned;
}

void convolve(Pass pass, const Descriptor &convolution, const Tensor &tx, const Tensor &tw, const Tensor &ty,
              const Values &x, const Values &w, const Values &y, Sums &sums)
{ // of x, w, y the one that the pass makes is empty
    int64_t pad[2], step[2], apart[2];
    for (size_t i = 0; i < 2; i++) {
        pad[i] = convolution.value<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, 0, i);
        step[i] = convolution.value<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, 1, i);
        apart[i] = convolution.value<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, 1, i);
    }
    const int64_t k = tw.dim[0], c = tw.dim[1], r = tw.dim[2], s = tw.dim[3], height = tx.dim[2], width = tx.dim[3];
    const int64_t groups = tx.dim[1] / c, filters = k / groups, channels = tx.dim[1];
    Values turned = pass == forward ? filters_last(w, k, r * s * c) : Values();
    for (int64_t n = 0; n < ty.dim[0]; n++)
        for (int64_t p = 0; p < ty.dim[2]; p++)
            for (int64_t q = 0; q < ty.dim[3]; q++)
                for (int64_t i = 0; i < r; i++)
                    for (int64_t j = 0; j < s; j++) {
                        int64_t h = p * step[0] - pad[0] + i * apart[0], v = q * step[1] - pad[1] + j * apart[1];
                        if (h < 0 || v < 0 || h >= height || v >= width)
                            continue;
                        size_t iy = size_t(((n * ty.dim[2] + p) * ty.dim[3] + q) * k);
                        size_t ix = size_t(((n * height + h) * width + v) * channels);
                        for (int64_t g = 0; g < groups; g++) {
                            if (pass == forward) {
                                for (int64_t l = 0; l < c; l++)
                                    add_scaled(&sums[iy + size_t(g * filters)],
                                               &turned[size_t(((i * s + j) * c + l) * k + g * filters)],
                                               x[ix + size_t(g * c + l)], filters);
                                continue;
                            }
                            for (int64_t f = g * filters; f < (g + 1) * filters; f++) {
                                size_t iw = size_t(((f * r + i) * s + j) * c), ig = ix + size_t(g * c);
                                float gradient = y[iy + size_t(f)];
                                if (pass == data)
                                    add_scaled(&sums[ig], &w[iw], gradient, c);
                                else
                                    add_scaled(&sums[iw], &x[ig], gradient, c);
                            }
                        }
                    }
}

void run_convolution(Run &run, const Descriptor &operation, Pass pass)
{
    const PassNames &names = passes[pass];
    const Tensor t[3] = {tensor_of(operation.sub(names.x)), tensor_of(operation.sub(names.w)),
                         tensor_of(operation.sub(names.y))};
    const char *const roles[3] = {pass == data ? "gradient of x" : "x", pass == filter ? "gradient of w" : "w",
                                  pass == forward ? "y" : "gradient of y"};
    const int result = pass == forward ? 2 : pass == data ? 0 : 1;
    const float alpha = operation.value(names.alpha, 1.0f), beta = operation.value(names.beta, 0.0f);
    Values values[3];
    for (int i = 0; i < 3; i++)
        values[i] = i == result ? Values() : run.read(t[i], roles[i]);
    if (!run.good)
        return;
    Sums sums(size_t(t[result].items()));
    convolve(pass, *operation.sub(names.convolution), t[0], t[1], t[2], values[0], values[1], values[2], sums);
    Values before = beta != 0 ? run.read(t[result], roles[result]) : Values();
    values[result].resize(sums.size());
    for (size_t i = 0; i < sums.size(); i++)
        values[result][i] = float(double(alpha) * sums[i]) + (beta != 0 ? beta * before[i] : 0);
    run.write(t[result], values[result], roles[result]);
}

// ---- pointwise ----
bool pointwise_known(int mode)
{
    return mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL || mode == CUDNN_POINTWISE_RELU_FWD ||
           mode == CUDNN_POINTWISE_RELU_BWD;
}

int pointwise_mode(const Descriptor &operation)
{
    const Descriptor *pointwise = operation.sub(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    return pointwise ? pointwise->value(CUDNN_ATTR_POINTWISE_MODE, -1) : -1;
}

void run_pointwise(Run &run, const Descriptor &operation)
{
    int mode = pointwise_mode(operation);
    bool backward = mode == CUDNN_POINTWISE_RELU_BWD, unary = mode == CUDNN_POINTWISE_RELU_FWD;
    Tensor ta = tensor_of(operation.sub(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)), tb;
    if (!unary)
        tb = tensor_of(
            operation.sub(backward ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC : CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    Tensor to = tensor_of(
        operation.sub(backward ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    Values a = run.read(ta, "x"), b = unary ? Values() : run.read(tb, backward ? "gradient of y" : "b");
    Values y(size_t(to.items()));
    if (!run.good)
        return;
    auto at = [](const Tensor &t, int64_t n, int64_t h, int64_t w, int64_t c) { // dimensions of 1 are broadcast
        return size_t(
            (((t.dim[0] == 1 ? 0 : n) * t.dim[2] + (t.dim[2] == 1 ? 0 : h)) * t.dim[3] + (t.dim[3] == 1 ? 0 : w)) *
                t.dim[1] +
            (t.dim[1] == 1 ? 0 : c));
    };
    size_t i = 0;
    for (int64_t n = 0; n < to.dim[0]; n++)
        for (int64_t h = 0; h < to.dim[2]; h++)
            for (int64_t w = 0; w < to.dim[3]; w++)
                for (int64_t c = 0; c < to.dim[1]; c++, i++) {
                    float u = a[at(ta, n, h, w, c)], v = unary ? 0 : b[at(tb, n, h, w, c)];
                    y[i] = mode == CUDNN_POINTWISE_ADD        ? u + v
                           : mode == CUDNN_POINTWISE_MUL      ? u * v
                           : mode == CUDNN_POINTWISE_RELU_FWD ? std::max(u, 0.0f)
                                                              : (u > 0 ? v : 0);
                }
    run.write(to, y, backward ? "gradient of x" : "y");
}

int pass_of(const Descriptor &operation)
{
    for (int i = 0; i < 3; i++)
        if (operation.type == passes[i].type)
            return i;
    return -1;
}

const Attribute &operations(const Descriptor &graph)
{
    return *graph.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
}
} // namespace

std::string dnn_label(const Descriptor &graph)
{
    std::string label = "cuDNN";
    for (const DescriptorRef &operation : operations(graph).descriptors) {
        int pass = pass_of(*operation);
        bool pointwise = operation->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
        if (pass < 0 && !(pointwise && pointwise_known(pointwise_mode(*operation)))) {
            report("cudnn", text("the double has no arithmetic for cuDNN operation %d, pointwise mode %d",
                                 int(operation->type), pointwise ? pointwise_mode(*operation) : -1));
            return "";
        }
        label += pass < 0 ? " + pointwise" : std::string(" ") + passes[pass].name;
    }
    return label;
}

bool dnn_job_ok(const DnnJob &job)
{
    bool good = true;
    std::string label = dnn_label(*job.graph);
    for (const DescriptorRef &operation : operations(*job.graph).descriptors)
        for (const auto &one : operation->attributes)
            for (const DescriptorRef &part : one.second.descriptors) {
                if (!part || part->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                    continue;
                Tensor t = tensor_of(part.get());
                if (t.is_virtual)
                    continue;
                auto found = job.pointers.find(t.id);
                if (found == job.pointers.end()) {
                    report("pack " + label,
                           text("%s: the variant pack has no pointer for tensor %ld", label.c_str(), long(t.id)));
                    return false;
                }
                if (uintptr_t(found->second) % uintptr_t(t.alignment)) {
                    report("alignment " + label,
                           text("%s: tensor %ld is promised to be aligned to %ld bytes: %s", label.c_str(), long(t.id),
                                long(t.alignment), place(uintptr_t(found->second)).c_str()));
                    good = false;
                }
                if (!is_device(found->second)) {
                    report("host " + label, text("%s: tensor %ld is not memory of a GPU", label.c_str(), long(t.id)));
                    return false;
                }
                good = range_ok(found->second, t.bytes(), text("%s, tensor %ld", label.c_str(), long(t.id))) && good;
            }
    if (job.workspace_bytes > 0)
        good = range_ok(job.workspace, size_t(job.workspace_bytes), label + ", workspace") && good;
    return good;
}

void dnn_run(const DnnJob &job)
{
    if (job.workspace_bytes > 0 && use(job.workspace, size_t(job.workspace_bytes), Access::write, "workspace"))
        memset(alias(job.workspace), 0xff, size_t(job.workspace_bytes)); // whatever lay there is lost
    Run run = {job, {}, true};
    for (const DescriptorRef &operation : operations(*job.graph).descriptors) {
        int pass = pass_of(*operation);
        if (pass >= 0)
            run_convolution(run, *operation, Pass(pass));
        else
            run_pointwise(run, *operation);
    }
}
} // namespace sim
