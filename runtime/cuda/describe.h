/* describe.h: descriptors of cuDNN's backend API, and a convolution told with them; of plan.c and describe.c alone. Each
 * descriptor is finalised before it is used; the first call that fails ends the making, and all that was made is
 * destroyed. */
#ifndef PN_CUDA_DESCRIBE_H
#define PN_CUDA_DESCRIBE_H

#include "cuda/plan.h"

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

static inline Descriptor make(Maker *m, cudnnBackendDescriptorType_t type, const char *doing)
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

static inline void set(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t count, const void *value)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendSetAttribute(d, name, type, count, value);
}

static inline void set_descriptor(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, Descriptor value)
{
    set(m, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static inline void get(Maker *m, Descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       int64_t most, int64_t *count, void *value)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendGetAttribute(d, name, type, most, count, value);
}

static inline void finalize(Maker *m, Descriptor d)
{
    if (m->status == CUDNN_STATUS_SUCCESS)
        m->status = cudnnBackendFinalize(d);
}

static inline void destroy_all(Maker *m)
{
    while (m->count > 0)
        cudnnBackendDestroyDescriptor(m->made[--m->count]);
}

/* Takes one out of the list: the caller keeps it. */
static inline void keep(Maker *m, Descriptor d)
{
    for (int i = 0; i < m->count; i++)
        if (m->made[i] == d)
            m->made[i] = m->made[--m->count];
}

/* The operation graph of a pass, finalised. What fails is in the maker. */
Descriptor cuda_describe(Maker *m, const cuda_place *place, cuda_pass pass, const cuda_shape *s);
const char *cuda_pass_text(cuda_pass pass); /* "the gradient of the weights" */

#endif
