/* dnn.h: the one place that knows which oneDNN this is. 2.6 and 3.x differ in how descriptors are made and in what a
 * memory descriptor is; dnn.c hides both. Calls that are the same text in both versions (memory, primitive, stream) are
 * used directly by the other files.
 *
 * Every primitive takes its scratchpad from the caller: the library's own is thread-local and dies in another thread
 * (Debian's build). All data are f32. Creators of primitive descriptors return NULL when the library has no
 * implementation for the layouts given; they must be called on a thread that has said its number of OpenMP
 * threads (team.h). */
#ifndef PN_CPU_DNN_H
#define PN_CPU_DNN_H

#include <stdbool.h>
#include <stdint.h>

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t dnn_layout;
#else
typedef const dnnl_memory_desc_t *dnn_layout;
#endif

/* Ends the program with the text of the status: for calls that fail only when memory does. */
void dnn_need(dnnl_status_t status, const char *what);
const char *dnn_status(dnnl_status_t status);

const char *dnn_isa(void); /* "avx512_core": the instructions it uses here, as its headers call them */

/* ---- layouts of f32 arrays; they live until exit ---- */
dnn_layout dnn_plain(int rank, const int64_t *dim);
dnn_layout dnn_any(int rank, const int64_t *dim); /* the library chooses */
/* [n, c, h, w] in blocks of 16 or 8 channels. */
dnn_layout dnn_blocked(const int64_t *dim, int block);
/* Weights [out / 16][in / 16][h][w][16 in][16 out]. */
dnn_layout dnn_blocked_weights(const int64_t *dim);
/* The part of `whole` that begins at `offset` and has size `dim`; NULL: a layout cannot say that. */
dnn_layout dnn_part(dnn_layout whole, int rank, const int64_t *dim, const int64_t *offset);
/* The same layout for another batch (the first dimension); NULL: none of those known here, which are plain, with
 * channels last or in blocks. In these a slice of the batch is contiguous, and all samples are alike. */
dnn_layout dnn_of_batch(dnn_layout layout, int64_t batch);
bool dnn_padded(dnn_layout layout); /* stores more than its elements */
static inline bool dnn_same(dnn_layout a, dnn_layout b)
{
    return dnnl_memory_desc_equal(a, b) != 0;
}
static inline int64_t dnn_bytes(dnn_layout layout)
{
    return (int64_t)dnnl_memory_desc_get_size(layout);
}

/* ---- primitive descriptors ---- */
typedef enum { DNN_FORWARD, DNN_INFERENCE, DNN_BACKWARD_DATA, DNN_BACKWARD_WEIGHTS } dnn_pass;
/* Two spatial dimensions. dilation 0: dense. high: padding below and to the right. */
typedef struct {
    dnnl_dims_t kernel, stride, dilation, low, high;
} dnn_window;

/* algorithm: direct or winograd (gone from 3.1 on, and never for everything: NULL then).
 * src, weights, bias, dst are the gradients' layouts where the pass writes or reads gradients. bias NULL: none. relu:
 * fused into the forward. hint: the forward's descriptor, for the other passes. */
dnnl_primitive_desc_t dnn_convolution(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                      dnn_layout weights, dnn_layout bias, dnn_layout dst, const dnn_window *window,
                                      bool relu, dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t dnn_inner_product(dnnl_engine_t engine, dnn_pass pass, dnn_layout src, dnn_layout weights,
                                        dnn_layout bias, dnn_layout dst, bool relu, dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t dnn_pooling(dnnl_engine_t engine, dnn_pass pass, dnnl_alg_kind_t algorithm, dnn_layout src,
                                  dnn_layout dst, const dnn_window *window, dnnl_primitive_desc_t hint);
dnnl_primitive_desc_t dnn_reorder(dnnl_engine_t engine, dnn_layout from, dnn_layout to);

/* What a descriptor settled on; the layout lives as long as the descriptor. */
dnn_layout dnn_wants(dnnl_primitive_desc_t descriptor, dnnl_query_t what);
const char *dnn_implementation(dnnl_primitive_desc_t descriptor); /* "jit:avx512_core", "ref:any" */

#endif
