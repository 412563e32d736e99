/* Adam and AdamW, in one pass over the weights, with PyTorch's conventions; t counts updates from 1:
 *     adam:  d = g + weight_decay w        adamw:  w = (1 - lr weight_decay) w, d = g
 *     m = beta1 m + (1 - beta1) d;  s = beta2 s + (1 - beta2) d^2
 *     w -= lr / (1 - beta1^t) m / (sqrt(s) / sqrt(1 - beta2^t) + epsilon)
 * Sources: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2. The padding of blocked layouts
 * holds zeros and stays zero. States: m, s. */
#include <math.h>

#include "core/choices.h"

enum { BETA1, BETA2, EPSILON, WEIGHT_DECAY }; /* as in choices.def */

static pn_terms terms(const double *value, int64_t t, double rate)
{
    return (pn_terms){t, rate, value[BETA1], 1, 0};
}

/* lr / (1 - beta1^t) and 1 / sqrt(1 - beta2^t) after t updates. */
typedef struct {
    float step, scale, epsilon;
} Direction;

static Direction direction(const double *value, const pn_terms *t, int64_t updates, double rate)
{
    return (Direction){(float)(rate / (1 - pow(t->momentum, (double)updates))),
                       (float)(1 / sqrt(1 - pow(value[BETA2], (double)updates))), (float)value[EPSILON]};
}

static void move(const double *value, const pn_terms *t, const pn_block *b, float keep, float decay)
{
    const Direction along = direction(value, t, t->t + 1, t->rate);
    const float beta1 = (float)t->momentum, add1 = (float)(1 - t->momentum);
    const float beta2 = (float)value[BETA2], add2 = (float)(1 - value[BETA2]);
    float *restrict w = b->w, *restrict m = b->state[0], *restrict s = b->state[1];
    const float *restrict g = b->g;
    for (int64_t i = 0; i < b->n; i++) {
        float d = g[i] + decay * w[i];
        m[i] = beta1 * m[i] + add1 * d;
        s[i] = beta2 * s[i] + add2 * (d * d);
        w[i] = keep * w[i] - along.step * (m[i] / (sqrtf(s[i]) * along.scale + along.epsilon));
    }
}

static void adam(const double *value, const pn_terms *t, const pn_block *b)
{
    move(value, t, b, 1, (float)value[WEIGHT_DECAY]);
}

static void adamw(const double *value, const pn_terms *t, const pn_block *b)
{
    move(value, t, b, (float)(1 - t->rate * value[WEIGHT_DECAY]), 0);
}

/* Before the first update there is no direction: to = w. */
static void ahead(const double *value, const pn_terms *t, double reach, const pn_block *b, float *to)
{
    Direction along = {0, 0, 1};
    if (t->t > 0)
        along = direction(value, t, t->t, t->rate * reach);
    const float *restrict w = b->w, *restrict m = b->state[0], *restrict s = b->state[1];
    for (int64_t i = 0; i < b->n; i++)
        to[i] = w[i] - along.step * (m[i] / (sqrtf(s[i]) * along.scale + along.epsilon));
}

const pn_optimizer optimizer_adam = {
    .name = "adam",
    .averages = true,
    .terms = terms,
    .update = adam,
    .ahead = ahead,
};
const pn_optimizer optimizer_adamw = {
    .name = "adamw",
    .averages = true,
    .terms = terms,
    .update = adamw,
    .ahead = ahead,
};
