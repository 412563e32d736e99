/* data.h: private to data/: what the sources share. Every function ends the program with a message that names the file
 * when it cannot do what it says. */
#ifndef PN_DATA_H
#define PN_DATA_H

#include "rt.h"

enum { PN_PATH = 4096 };

/* ---- file.c ---- */
typedef struct {
    uint8_t *bytes;
    int64_t count;
} pn_file;
/* The whole of a file, decompressed when it is a gzip file, whatever its name. */
pn_file pn_file_read(const char *path);
void pn_file_free(pn_file *file);
/* Writes to `path` the first of `names` (NULL at the end), plain or with .gz, that is in `folder`; false: none is. */
bool pn_file_find(char path[PN_PATH], const char *folder, const char *const *names);
/* The same; ends the program when there is none. `hint` says what the folder should hold. */
void pn_file_need(char path[PN_PATH], const char *folder, const char *const *names, const char *hint);

/* ---- idx.c ---- */
typedef struct {
    pn_file file; /* holds the items */
    const uint8_t *items;
    int64_t dim[3]; /* 1 beyond the rank */
} pn_idx;
/* An IDX file of unsigned bytes: rank 3 are images, rank 1 labels. */
pn_idx pn_idx_read(const char *path, int rank);

/* ---- source.c ---- */
/* Number argument `key` of a choice of a source; its default of sources.def when it is not given. */
double pn_source_number(const pn_choice *choice, const char *key);
/* Writes labels at bytes[0], bytes[stride] .. of a file, each below classes, to `label`. */
void pn_source_labels(const char *path, const uint8_t *bytes, int64_t stride, int64_t count, int64_t classes,
                      uint16_t *label);
/* Normalisation from the mean and deviation of pixels in 0 .. 1. */
void pn_source_normalise(pn_dataset *data, int channel, double mean, double deviation);
/* Ends the program when no folder was given. */
void pn_source_need_path(const char *source, const char *path);

/* ---- augment.c ---- */
/* How a training sample is moved: rows and columns of the result lie so much further down and right in the image. */
typedef struct {
    int64_t down, right;
    bool mirror;
} pn_move;
pn_move pn_move_of(const pn_dataset *data, uint64_t seed, int64_t n, int64_t i); /* sample i of minibatch n */
/* Writes a moved training sample, raw as the data set holds it: bytes or floats. What lies outside the image is 0. */
void pn_move_sample(const pn_dataset *data, pn_move move, int64_t sample, void *to);

/* ---- input.c ---- */
int64_t pn_raw_bytes(const pn_dataset *data); /* of a sample as the data set holds it */
/* Place i of microbatch n, within its minibatch; the number of the training sample there. */
int64_t pn_place_of(const pn_run *run, int64_t n, int64_t i);
int64_t pn_sample_of(const pn_run *run, int64_t n, int64_t i);

/* ---- loader.c ---- */
/* Training minibatch n of a tensor input, gathered and augmented, raw: sample after sample; NULL: it is not ready. It
 * stays until it is given back. */
const void *pn_ready(pn_stage *stage, int64_t n, int input);
void pn_ready_done(pn_stage *stage, int64_t n, int input);

#endif
