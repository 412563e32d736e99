/* dnn.c: oneDNN 2.6 and 3.x behind the same calls; see dnn.h. */
#include "dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <oneapi/dnnl/dnnl_debug.h>

#include "rt.h"

#define AT_LEAST_3_5 (DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 5))

const char *dnn_status(dnnl_status_t status)
{
    return dnnl_status2str(status);
}

void dnn_need(dnnl_status_t status, const char *what)
{
    if (status != dnnl_success)
        pn_fail(NULL, "oneDNN: %s: %s", what, dnn_status(status));
}

/* User scratchpad, optionally a fused relu, the same bits in every run. One set for each creation: they are copied. */
static dnnl_primitive_attr_t attributes(bool relu)
{
    dnnl_primitive_attr_t attr;
    dnn_need(dnnl_primitive_attr_create(&attr), "attributes");
    dnn_need(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user), "scratchpad mode");
#if AT_LEAST_3_5
    dnn_need(dnnl_primitive_attr_set_deterministic(attr, 1), "deterministic");
#endif
    if (relu) {
        dnnl_post_ops_t after;
        dnn_need(dnnl_post_ops_create(&after), "post-operations");
#if DNNL_VERSION_MAJOR >= 3
        dnn_need(dnnl_post_ops_append_eltwise(after, dnnl_eltwise_relu, 0.0f, 0.0f), "relu");
#else
        dnn_need(dnnl_post_ops_append_eltwise(after, 1.0f, dnnl_eltwise_relu, 0.0f, 0.0f), "relu");
#endif
        dnn_need(dnnl_primitive_attr_set_post_ops(attr, after), "post-operations");
        dnn_need(dnnl_post_ops_destroy(after), "post-operations");
    }
    return attr;
}

/* NULL when the library has nothing for it; other failures end the program. */
static dnnl_primitive_desc_t settled(dnnl_status_t status, dnnl_primitive_desc_t descriptor, dnnl_primitive_attr_t attr,
                                     const char *what)
{
    dnn_need(dnnl_primitive_attr_destroy(attr), "attributes");
    if (status == dnnl_unimplemented)
        return NULL;
    dnn_need(status, what);
    return descriptor;
}

#if DNNL_VERSION_MAJOR >= 3

/* ---- layouts: handles; one stored in memory that lives until exit is not lost ---- */
static dnn_layout kept(dnnl_memory_desc_t layout)
{
    dnnl_memory_desc_t *copy = pn_alloc(sizeof *copy);
    *copy = layout;
    return layout;
}

static dnn_layout tagged(int rank, const int64_t *dim, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t layout;
    dnn_need(dnnl_memory_desc_create_with_tag(&layout, rank, dim, dnnl_f32, tag), "layout");
    return kept(layout);
}

dnn_layout dnn_part(dnn_layout whole, int rank, const int64_t *dim, const int64_t *offset)
{
    (void)rank;
    dnnl_memory_desc_t layout;
    return dnnl_memory_desc_create_submemory(&layout, whole, dim, offset) == dnnl_success ? kept(layout) : NULL;
}

static int dims(dnn_layout layout, const int64_t **dim)
{
    int rank;
    const dnnl_dims_t *all;
    dnn_need(dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank), "rank");
    dnn_need(dnnl_memory_desc_query(layout, dnnl_query_dims, &all), "size");
    *dim = *all;
    return rank;
}

bool dnn_padded(dnn_layout layout)
{
    int rank;
    const dnnl_dims_t *dim, *padded;
    dnn_need(dnnl_memory_desc_query(layout, dnnl_query_ndims_s32, &rank), "rank");
    dnn_need(dnnl_memory_desc_query(layout, dnnl_query_dims, &dim), "size");
    dnn_need(dnnl_memory_desc_query(layout, dnnl_query_padded_dims, &padded), "size");
    return memcmp(*dim, *padded, (size_t)rank * sizeof(*dim)[0]) != 0;
}

/* ---- primitive descriptors ---- */
dnnl_primitive_desc_t dnn_convolution(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                      dnn_layout weights, dnn_layout bias, dnn_layout dst, const dnn_window *window,
                                      bool relu, dnnl_primitive_desc_t hint)
{
    const dnn_window *v = window;
    dnnl_primitive_attr_t attr = attributes(relu);
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status = dnnl_convolution_backward_data_primitive_desc_create(
            &made, engine, algorithm, src, weights, dst, v->stride, v->dilation, v->low, v->high, hint, attr);
    else if (pass == DNN_BACKWARD_WEIGHTS)
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            &made, engine, algorithm, src, weights, bias, dst, v->stride, v->dilation, v->low, v->high, hint, attr);
    else
        status = dnnl_convolution_forward_primitive_desc_create(&made, engine, dnnl_forward_training, algorithm, src,
                                                                weights, bias, dst, v->stride, v->dilation, v->low,
                                                                v->high, attr);
    return settled(status, made, attr, "convolution");
}

dnnl_primitive_desc_t dnn_inner_product(dnnl_engine_t engine, dnn_pass pass, dnn_layout src, dnn_layout weights,
                                        dnn_layout bias, dnn_layout dst, bool relu, dnnl_primitive_desc_t hint)
{
    dnnl_primitive_attr_t attr = attributes(relu);
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status = dnnl_inner_product_backward_data_primitive_desc_create(&made, engine, src, weights, dst, hint, attr);
    else if (pass == DNN_BACKWARD_WEIGHTS)
        status = dnnl_inner_product_backward_weights_primitive_desc_create(&made, engine, src, weights, bias, dst, hint,
                                                                           attr);
    else
        status = dnnl_inner_product_forward_primitive_desc_create(&made, engine, dnnl_forward_training, src, weights,
                                                                  bias, dst, attr);
    return settled(status, made, attr, "inner product");
}

dnnl_primitive_desc_t dnn_pooling(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                  dnn_layout dst, const dnn_window *window, dnnl_primitive_desc_t hint)
{
    const dnn_window *v = window;
    dnnl_primitive_attr_t attr = attributes(false);
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status = dnnl_pooling_backward_primitive_desc_create(&made, engine, algorithm, src, dst, v->stride, v->kernel,
                                                             v->dilation, v->low, v->high, hint, attr);
    else
        status = dnnl_pooling_forward_primitive_desc_create(
            &made, engine, pass == DNN_INFERENCE ? dnnl_forward_inference : dnnl_forward_training, algorithm, src, dst,
            v->stride, v->kernel, v->dilation, v->low, v->high, attr);
    return settled(status, made, attr, "pooling");
}

#else /* 2.x: an operation descriptor first; layouts are structures, kept on the heap here */

static dnn_layout kept(dnnl_memory_desc_t layout)
{
    dnnl_memory_desc_t *copy = pn_alloc(sizeof *copy);
    *copy = layout;
    return copy;
}

static dnn_layout tagged(int rank, const int64_t *dim, dnnl_format_tag_t tag)
{
    dnnl_memory_desc_t layout;
    dnn_need(dnnl_memory_desc_init_by_tag(&layout, rank, dim, dnnl_f32, tag), "layout");
    return kept(layout);
}

dnn_layout dnn_part(dnn_layout whole, int rank, const int64_t *dim, const int64_t *offset)
{
    dnnl_dims_t size, from;
    memcpy(size, dim, (size_t)rank * sizeof *dim);
    memcpy(from, offset, (size_t)rank * sizeof *offset);
    dnnl_memory_desc_t layout;
    return dnnl_memory_desc_init_submemory(&layout, whole, size, from) == dnnl_success ? kept(layout) : NULL;
}

static int dims(dnn_layout layout, const int64_t **dim)
{
    *dim = layout->dims;
    return layout->ndims;
}

bool dnn_padded(dnn_layout layout)
{
    return memcmp(layout->dims, layout->padded_dims, (size_t)layout->ndims * sizeof layout->dims[0]) != 0;
}

static dnnl_primitive_desc_t described(dnnl_status_t status, const void *operation, dnnl_engine_t engine, bool relu,
                                       dnnl_primitive_desc_t hint, const char *what)
{
    dnnl_primitive_attr_t attr = attributes(relu);
    dnnl_primitive_desc_t made = NULL;
    if (status == dnnl_success)
        status = dnnl_primitive_desc_create(&made, operation, attr, engine, hint);
    return settled(status, made, attr, what);
}

dnnl_primitive_desc_t dnn_convolution(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                      dnn_layout weights, dnn_layout bias, dnn_layout dst, const dnn_window *window,
                                      bool relu, dnnl_primitive_desc_t hint)
{
    const dnn_window *v = window;
    dnnl_convolution_desc_t operation;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status = dnnl_dilated_convolution_backward_data_desc_init(&operation, algorithm, src, weights, dst, v->stride,
                                                                  v->dilation, v->low, v->high);
    else if (pass == DNN_BACKWARD_WEIGHTS)
        status = dnnl_dilated_convolution_backward_weights_desc_init(&operation, algorithm, src, weights, bias, dst,
                                                                     v->stride, v->dilation, v->low, v->high);
    else
        status = dnnl_dilated_convolution_forward_desc_init(&operation, dnnl_forward_training, algorithm, src, weights,
                                                            bias, dst, v->stride, v->dilation, v->low, v->high);
    return described(status, &operation, engine, relu, hint, "convolution");
}

dnnl_primitive_desc_t dnn_inner_product(dnnl_engine_t engine, dnn_pass pass, dnn_layout src, dnn_layout weights,
                                        dnn_layout bias, dnn_layout dst, bool relu, dnnl_primitive_desc_t hint)
{
    dnnl_inner_product_desc_t operation;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status = dnnl_inner_product_backward_data_desc_init(&operation, src, weights, dst);
    else if (pass == DNN_BACKWARD_WEIGHTS)
        status = dnnl_inner_product_backward_weights_desc_init(&operation, src, weights, bias, dst);
    else
        status = dnnl_inner_product_forward_desc_init(&operation, dnnl_forward_training, src, weights, bias, dst);
    return described(status, &operation, engine, relu, hint, "inner product");
}

dnnl_primitive_desc_t dnn_pooling(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                  dnn_layout dst, const dnn_window *window, dnnl_primitive_desc_t hint)
{
    const dnn_window *v = window;
    dnnl_pooling_desc_t operation;
    dnnl_status_t status;
    if (pass == DNN_BACKWARD_DATA)
        status =
            dnnl_pooling_backward_desc_init(&operation, algorithm, src, dst, v->stride, v->kernel, v->low, v->high);
    else
        status = dnnl_pooling_forward_desc_init(&operation,
                                                pass == DNN_INFERENCE ? dnnl_forward_inference : dnnl_forward_training,
                                                algorithm, src, dst, v->stride, v->kernel, v->low, v->high);
    return described(status, &operation, engine, false, hint, "pooling");
}

#endif

/* ---- the same in both ---- */
dnn_layout dnn_plain(int rank, const int64_t *dim)
{
    static const dnnl_format_tag_t tag[] = {dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde};
    return tagged(rank, dim, tag[rank - 1]);
}

dnn_layout dnn_any(int rank, const int64_t *dim)
{
    return tagged(rank, dim, dnnl_format_tag_any);
}

dnn_layout dnn_blocked(const int64_t *dim, int block)
{
    return tagged(4, dim, block == 16 ? dnnl_aBcd16b : dnnl_aBcd8b);
}

dnn_layout dnn_blocked_weights(const int64_t *dim)
{
    return tagged(4, dim, dnnl_ABcd16b16a);
}

dnn_layout dnn_of_batch(dnn_layout layout, int64_t batch)
{
    static const struct {
        int rank;
        dnnl_format_tag_t tag;
    } known[] = {{1, dnnl_a},    {2, dnnl_ab},      {3, dnnl_abc},    {4, dnnl_abcd},
                 {4, dnnl_acdb}, {4, dnnl_aBcd16b}, {4, dnnl_aBcd8b}, {4, dnnl_aBcd4b}};
    const int64_t *of;
    const int rank = dims(layout, &of);
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++) {
        if (known[i].rank != rank || !dnn_same(layout, tagged(rank, of, known[i].tag)))
            continue;
        dnnl_dims_t other;
        memcpy(other, of, (size_t)rank * sizeof *of);
        other[0] = batch;
        return tagged(rank, other, known[i].tag);
    }
    return NULL;
}

dnnl_primitive_desc_t dnn_reorder(dnnl_engine_t engine, dnn_layout from, dnn_layout to)
{
    dnnl_primitive_attr_t attr = attributes(false);
    dnnl_primitive_desc_t made = NULL;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&made, from, engine, to, engine, attr);
    return settled(status, made, attr, "reorder");
}

dnn_layout dnn_wants(dnnl_primitive_desc_t descriptor, dnnl_query_t what)
{
    return dnnl_primitive_desc_query_md(descriptor, what, 0);
}

/* Numbers differ between versions, these names do not. */
const char *dnn_isa(void)
{
    switch (dnnl_get_effective_cpu_isa()) {
    case dnnl_cpu_isa_sse41:
        return "sse41";
    case dnnl_cpu_isa_avx:
        return "avx";
    case dnnl_cpu_isa_avx2:
        return "avx2";
    case dnnl_cpu_isa_avx512_core:
        return "avx512_core";
    case dnnl_cpu_isa_avx512_core_vnni:
        return "avx512_core_vnni";
    case dnnl_cpu_isa_avx512_core_bf16:
        return "avx512_core_bf16";
    case dnnl_cpu_isa_avx512_core_amx:
        return "avx512_core_amx";
    default:
        return "other";
    }
}

const char *dnn_implementation(dnnl_primitive_desc_t descriptor)
{
    const char *text = NULL;
    dnn_need(dnnl_primitive_desc_query(descriptor, dnnl_query_impl_info_str, 0, &text), "name of an implementation");
    return text ? text : "";
}
