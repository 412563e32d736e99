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

typedef struct {
    const char *key, *value;
} Metadata;

/* All return NULL, or a message for the user, to be freed. */

/* Writes the tensors in the order of their names, and `nabout` texts about them, whole or not at all; the same
 * arguments give the same bytes. */
char *safetensors_write(const char *path, const NamedTensor *tensor, int count, const Metadata *about, int nabout);
/* Fills the values of all tensors from the file. Strict: the file must hold these tensors, in these shapes, and no
 * others but those whose name begins with `ignored` (NULL: none); the message names every one that is missing, extra or
 * of another shape or type. On error no value has been changed. */
char *safetensors_read(const char *path, const NamedTensor *tensor, int count, const char *ignored);
/* The texts about the tensors: fills the values of `about`, to be freed; NULL where the file has none of that key.
 * Reads no tensor. */
char *safetensors_about(const char *path, Metadata *about, int nabout);

#endif
