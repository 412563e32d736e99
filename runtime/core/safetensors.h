/* safetensors.h: named f32 tensors in a file that any safetensors reader opens.
 * Format (github.com/huggingface/safetensors): 8 bytes little-endian length of a JSON header; the header, an object of
 * name -> {dtype, shape, data_offsets}; then the data, without holes. */
#ifndef PN_SAFETENSORS_H
#define PN_SAFETENSORS_H

#include <stdint.h>

typedef struct {
    const char *name;
    int rank;
    const int64_t *dim;
    float *values; /* plain order */
} NamedTensor;

/* Both return NULL, or a message for the user, to be freed. */

/* Writes the tensors in the order of their names, whole or not at all; the same tensors give the same bytes. */
char *safetensors_write(const char *path, const NamedTensor *tensor, int count);
/* Fills the values of all tensors from the file. Strict: the file must hold these tensors, in these shapes, and no
 * others; the message names every one that is missing, extra or of another shape or type. On error no value has been
 * changed. */
char *safetensors_read(const char *path, const NamedTensor *tensor, int count);

#endif
