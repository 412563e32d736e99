/* Stochastic gradient descent with momentum and L2 decay, in one pass over the contiguous weights of a stage:
 *     d = g + weight_decay w;  v = momentum v + d;  w -= lr v                    (Caffe, PyTorch)
 *     nesterov:                                    w -= lr (d + momentum v)
 * and any other share of v and d in the step, by which staleness is corrected.
 * The padding of blocked layouts holds zeros and stays zero. */
#include "core/choices.h"

enum { MOMENTUM, WEIGHT_DECAY, NESTEROV }; /* as in choices.def */

static pn_terms terms(const double *value, int64_t t, double rate)
{
    bool nesterov = value[NESTEROV] != 0;
    return (pn_terms){t, rate, value[MOMENTUM], nesterov ? value[MOMENTUM] : 1, nesterov ? 1 : 0};
}

static void plain(float rate, float momentum, float decay, int64_t n, float *restrict w, const float *restrict g,
                  float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

static void shared(const pn_terms *t, float decay, int64_t n, float *restrict w, const float *restrict g,
                   float *restrict v)
{
    const float rate = (float)t->rate, momentum = (float)t->momentum;
    const float on_velocity = (float)t->on_velocity, on_gradient = (float)t->on_gradient;
    for (int64_t i = 0; i < n; i++) {
        float d = g[i] + decay * w[i];
        v[i] = momentum * v[i] + d;
        w[i] -= rate * (on_gradient * d + on_velocity * v[i]);
    }
}

static void update(const double *value, const pn_terms *t, const pn_block *b)
{
    float decay = (float)value[WEIGHT_DECAY];
    if (t->on_velocity == 1 && t->on_gradient == 0)
        plain((float)t->rate, (float)t->momentum, decay, b->n, b->w, b->g, b->state[0]);
    else
        shared(t, decay, b->n, b->w, b->g, b->state[0]);
}

static void along(float step, int64_t n, const float *restrict w, const float *restrict v, float *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = w[i] - step * v[i];
}

static void ahead(const double *value, const pn_terms *t, double reach, const pn_block *b, float *to)
{
    (void)value;
    along((float)(t->rate * reach), b->n, b->w, b->state[0], to);
}

const pn_optimizer optimizer_sgd = {
    .name = "sgd",
    .terms = terms,
    .update = update,
    .ahead = ahead,
};
