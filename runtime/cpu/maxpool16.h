/* maxpool16.h: max pooling by hand, over [n, c / 16, h, w, 16]; arrays aligned to 64 bytes. */
#ifndef PN_CPU_MAXPOOL16_H
#define PN_CPU_MAXPOOL16_H

#include <stdbool.h>
#include <stdint.h>

enum { MAXPOOL16_TAPS = 255 }; /* windows of fewer elements */
typedef struct {
    int64_t planes; /* batch * blocks of channels */
    int64_t height, width, out_height, out_width, kernel_h, kernel_w, stride, pad;
    bool relu;
} maxpool16;
/* winner NULL: not recorded. */
void maxpool16_forward(const maxpool16 *p, const float *x, float *y, uint8_t *winner);
void maxpool16_backward(const maxpool16 *p, const float *gy, const uint8_t *winner, float *gx);

#endif
