/* cifar.h: the binary versions of CIFAR-10 and CIFAR-100: records of one or two label bytes and 3072 bytes of a 32x32
 * image, plane by plane: red, green, blue. Source: A. Krizhevsky, "Learning multiple layers of features from tiny
 * images", 2009. */
#ifndef PN_CIFAR_H
#define PN_CIFAR_H

#include "data/data.h"

/* Reads the records of `files` (NULL at the end) in `folder`, one after another; `label_bytes` come before each image,
 * the last of them is the class. Returns how many there are. */
int64_t pn_cifar_read(const char *folder, const char *const *files, int label_bytes, int64_t classes,
                      const uint8_t **pixels, const uint16_t **labels);

#endif
