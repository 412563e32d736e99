/* kernels_loss.c: naive losses: sums over classes and samples in order, in double; stored results in f32. */
#include <math.h>
#include <stddef.h>

#include "ref/kernels.h"

int64_t ref_argmax(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/* The largest x is subtracted first, so that exp cannot overflow and the sum is at least 1. */
double ref_softmax_cross_entropy(int64_t count, int64_t classes, const float *x, const int32_t *label,
                                 float *probability, int64_t *correct)
{
    double loss = 0;
    *correct = 0;
    for (int64_t n = 0; n < count; n++) {
        const float *row = x + n * classes;
        const int64_t best = ref_argmax(row, classes);
        const double largest = row[best];
        double sum = 0;
        for (int64_t i = 0; i < classes; i++)
            sum += exp(row[i] - largest);
        for (int64_t i = 0; probability != NULL && i < classes; i++)
            probability[n * classes + i] = (float)(exp(row[i] - largest) / sum);
        loss += log(sum) - (row[label[n]] - largest);
        *correct += best == label[n];
    }
    return loss / (double)count;
}

void ref_softmax_cross_entropy_backward(int64_t count, int64_t batch, int64_t classes, const float *probability,
                                        const int32_t *label, float *gx)
{
    for (int64_t n = 0; n < count; n++)
        for (int64_t i = 0; i < classes; i++)
            gx[n * classes + i] = (probability[n * classes + i] - (i == label[n] ? 1.0f : 0.0f)) / (float)batch;
}

static float target_of(const float *target, const int32_t *label, int64_t size, int64_t n, int64_t i)
{
    return target != NULL ? target[n * size + i] : i == label[n] ? 1.0f : 0.0f;
}

double ref_mse(int64_t count, int64_t size, const float *x, const float *target, const int32_t *label, int64_t *correct)
{
    double squares = 0;
    *correct = label != NULL ? 0 : -1;
    for (int64_t n = 0; n < count; n++) {
        for (int64_t i = 0; i < size; i++) {
            const double error = (double)x[n * size + i] - target_of(target, label, size, n, i);
            squares += error * error;
        }
        if (label != NULL)
            *correct += ref_argmax(x + n * size, size) == label[n];
    }
    return squares / 2 / (double)count;
}

void ref_mse_backward(int64_t count, int64_t batch, int64_t size, const float *x, const float *target,
                      const int32_t *label, float sign, float *gx)
{
    for (int64_t n = 0; n < count; n++)
        for (int64_t i = 0; i < size; i++)
            gx[n * size + i] = sign * (x[n * size + i] - target_of(target, label, size, n, i)) / (float)batch;
}
