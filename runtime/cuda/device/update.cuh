/* update.cuh: gradients, and what moves the weights. Everything that changes from one update to the next is read on the
 * device, and an update counts itself: its launches are always the same. */

KERNEL relu_mask(float *gy, const float *y, int n)
{
    const int i = thread_index();
    if (i < n && !(y[i] > 0.0f))
        gy[i] = 0.0f;
}

KERNEL accumulate(float *to, const float *from, int n)
{
    const int i = thread_index();
    if (i < n)
        to[i] += from[i];
}

/* Microbatch `slice` of `slices`: the first writes the sum, the last turns g into the mean (runtime/core/stage.c). */
KERNEL sum_gradients(float *sum, float *g, int slice, int slices, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    if (slice == 0)
        sum[i] = g[i];
    else if (slice < slices - 1)
        sum[i] += g[i];
    else
        g[i] = (sum[i] + g[i]) / (float)slices;
}

KERNEL multiply(float *to, float factor, int n)
{
    const int i = thread_index();
    if (i < n)
        to[i] *= factor;
}

/* Rates of the updates to come, that of update t in row t % ROWS. As cuda_row and cuda_rates of cuda.h. */
enum { ROWS = 512 };
struct row_t {
    float rate, keep;              /* of the update; keep: of the weights, beside it */
    float scale, scale_before;     /* of the root of the mean square: behind the update, before it */
    float forward, backward;       /* how far the velocity is followed by what a forward, a backward reads before it */
};
struct rates_t {
    bits_t updates; /* done */
    row_t row[ROWS];
};
/* What is the same for all updates of a phase. As cuda_rule of cuda.h. */
struct rule_t {
    float momentum, add_momentum, square, add_square, decay, epsilon, on_velocity, on_gradient, memory, add_memory;
};

__device__ inline const row_t &row_of(const rates_t *rates, int later)
{
    return rates->row[(rates->updates + later) % ROWS];
}

KERNEL count_update(rates_t *rates)
{
    if (threadIdx.x == 0)
        rates->updates += 1;
}

/* What both do besides: the weights of the next forward, where it looks ahead (ahead NULL: it does not), and the mean
 * step (delta NULL: nobody reads it). */
__device__ inline void follow(int i, float before, float after, float direction, float *ahead, float *delta,
                              const rates_t *rates, const rule_t &rule)
{
    if (ahead)
        ahead[i] = after - row_of(rates, 1).forward * direction;
    if (delta)
        delta[i] = rule.memory * delta[i] + rule.add_memory * (after - before);
}

/* The formulas of runtime/core/sgd.c; next may be w. */
KERNEL sgd(float *next, const float *w, const float *g, float *v, float *ahead, float *delta, const rates_t *rates,
           rule_t rule, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const float before = w[i], d = g[i] + rule.decay * before, speed = rule.momentum * v[i] + d;
    const float after = before - row_of(rates, 0).rate * (rule.on_gradient * d + rule.on_velocity * speed);
    v[i] = speed;
    next[i] = after;
    follow(i, before, after, speed, ahead, delta, rates, rule);
}

/* The formulas of runtime/core/adam.c; next may be w. */
KERNEL adam(float *next, const float *w, const float *g, float *m, float *s, float *ahead, float *delta,
            const rates_t *rates, rule_t rule, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const row_t &row = row_of(rates, 0);
    const float before = w[i], d = g[i] + rule.decay * before;
    const float mean = rule.momentum * m[i] + rule.add_momentum * d;
    const float square = rule.square * s[i] + rule.add_square * (d * d);
    const float direction = mean / (sqrtf(square) * row.scale + rule.epsilon);
    const float after = row.keep * before - row.rate * direction;
    m[i] = mean;
    s[i] = square;
    next[i] = after;
    follow(i, before, after, direction, ahead, delta, rates, rule);
}

/* to = w, further along the velocity: as far as a forward or a backward reads ahead of the next update. */
KERNEL sgd_ahead(float *to, const float *w, const float *v, const rates_t *rates, int backward, int n)
{
    const int i = thread_index();
    const row_t &row = row_of(rates, 0);
    if (i < n)
        to[i] = w[i] - (backward ? row.backward : row.forward) * v[i];
}

KERNEL adam_ahead(float *to, const float *w, const float *m, const float *s, const rates_t *rates, float epsilon,
                  int backward, int n)
{
    const int i = thread_index();
    const row_t &row = row_of(rates, 0);
    if (i < n)
        to[i] = w[i] - (backward ? row.backward : row.forward) * (m[i] / (sqrtf(s[i]) * row.scale_before + epsilon));
}

/* to = w, `times` mean steps back. */
KERNEL step_back(float *to, const float *w, const float *delta, float times, int n)
{
    const int i = thread_index();
    if (i < n)
        to[i] = w[i] - times * delta[i];
}
