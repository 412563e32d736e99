/* Stochastic gradient descent with momentum and L2 decay, in one pass over the contiguous weights of a stage:
 *     d = g + weight_decay w;  v = momentum v + d;  w -= lr v                    (Caffe, PyTorch)
 *     nesterov:                                    w -= lr (d + momentum v)
 * The padding of blocked layouts holds zeros and stays zero. */
#include <string.h>

#include "core/choices.h"

enum { MOMENTUM, WEIGHT_DECAY, NESTEROV }; /* as in choices.def */

typedef struct {
    float rate, momentum, decay;
} Rates;

static void plain(Rates r, int64_t n, float *restrict w, const float *restrict g, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = r.momentum * v[i] + (g[i] + r.decay * w[i]);
        w[i] -= r.rate * v[i];
    }
}

static void nesterov(Rates r, int64_t n, float *restrict w, const float *restrict g, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] + r.decay * w[i];
        v[i] = r.momentum * v[i] + d;
        w[i] -= r.rate * (d + r.momentum * v[i]);
    }
}

/* A kept older version is copied block by block, so that the arithmetic finds its block in the cache. */
enum { BLOCK = 4096 };

static void update(const double *value, double rate, int64_t n, const float *w, float *next, const float *g,
                   float *state)
{
    Rates rates = {(float)rate, (float)value[MOMENTUM], (float)value[WEIGHT_DECAY]};
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
        if (next != w)
            memcpy(next + at, w + at, (size_t)count * sizeof *w);
        (value[NESTEROV] != 0 ? nesterov : plain)(rates, count, next + at, g + at, state + at);
    }
}

const pn_optimizer optimizer_sgd = {
    .name = "sgd",
    .update = update,
};
