/* update.cuh: gradients, and what moves the weights. Everything that changes from one update to the next is read on the
 * device, and an update counts itself: its launches are always the same. */

KERNEL relu_mask(value_t *gy, const value_t *y, int n)
{
    const int i = thread_index();
    if (i < n && !(y[i] > 0.0f))
        gy[i] = 0.0f;
}

KERNEL accumulate(value_t *to, const value_t *from, int n)
{
    const int i = thread_index();
    if (i < n)
        to[i] = to[i] + from[i];
}

/* Microbatch `slice` of `slices`: the first writes the sum, the last turns it into the mean, which the update reads. */
KERNEL sum_gradients(float *sum, const float *g, int slice, int slices, int bf16_at, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const float gradient = load_weight(g, i, bf16_at), all = slice == 0 ? gradient : sum[i] + gradient;
    sum[i] = slice < slices - 1 ? all : all / (float)slices;
}

/* A version of the weights, of their masters. */
KERNEL copy_weights(float *version, const float *w, int bf16_at, int n)
{
    const int i = thread_index();
    if (i < n)
        store_weight(version, i, bf16_at, w[i]);
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

/* What both do besides: the next version, where w and next are masters (version NULL: they are not); the weights of the
 * next forward, where it looks ahead (ahead NULL: it does not), and the mean step (delta NULL: nobody reads it). */
__device__ inline void follow(int i, float before, float after, float direction, float *version, float *ahead,
                              float *delta, const rates_t *rates, const rule_t &rule, int bf16_at)
{
    if (version)
        store_weight(version, i, bf16_at, after);
    if (ahead)
        store_weight(ahead, i, bf16_at, after - row_of(rates, 1).forward * direction);
    if (delta)
        delta[i] = rule.memory * delta[i] + rule.add_memory * (after - before);
}

/* The formulas of runtime/core/sgd.c; next may be w. bf16_at: in version and ahead; g_bf16_at: in g. */
KERNEL sgd(float *next, float *version, const float *w, const float *g, float *v, float *ahead, float *delta,
           const rates_t *rates, rule_t rule, int bf16_at, int g_bf16_at, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const float before = w[i], d = load_weight(g, i, g_bf16_at) + rule.decay * before, speed = rule.momentum * v[i] + d;
    const float after = before - row_of(rates, 0).rate * (rule.on_gradient * d + rule.on_velocity * speed);
    v[i] = speed;
    next[i] = after;
    follow(i, before, after, speed, version, ahead, delta, rates, rule, bf16_at);
}

/* The formulas of runtime/core/adam.c; the rest as of sgd. */
KERNEL adam(float *next, float *version, const float *w, const float *g, float *m, float *s, float *ahead, float *delta,
            const rates_t *rates, rule_t rule, int bf16_at, int g_bf16_at, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const row_t &row = row_of(rates, 0);
    const float before = w[i], d = load_weight(g, i, g_bf16_at) + rule.decay * before;
    const float mean = rule.momentum * m[i] + rule.add_momentum * d;
    const float square = rule.square * s[i] + rule.add_square * (d * d);
    const float direction = mean / (sqrtf(square) * row.scale + rule.epsilon);
    const float after = row.keep * before - row.rate * direction;
    m[i] = mean;
    s[i] = square;
    next[i] = after;
    follow(i, before, after, direction, version, ahead, delta, rates, rule, bf16_at);
}

/* to = w, further along the velocity: as far as a forward or a backward reads ahead of the next update. */
KERNEL sgd_ahead(float *to, const float *w, const float *v, const rates_t *rates, int backward, int bf16_at, int n)
{
    const int i = thread_index();
    const row_t &row = row_of(rates, 0);
    if (i < n)
        store_weight(to, i, bf16_at, w[i] - (backward ? row.backward : row.forward) * v[i]);
}

KERNEL adam_ahead(float *to, const float *w, const float *m, const float *s, const rates_t *rates, float epsilon,
                  int backward, int bf16_at, int n)
{
    const int i = thread_index();
    const row_t &row = row_of(rates, 0);
    if (i < n)
        store_weight(to, i, bf16_at,
                     w[i] - (backward ? row.backward : row.forward) *
                                (m[i] / (sqrtf(s[i]) * row.scale_before + epsilon)));
}

/* to = w, `times` mean steps back. */
KERNEL step_back(float *to, const float *w, const float *delta, float times, int bf16_at, int n)
{
    const int i = thread_index();
    if (i < n)
        store_weight(to, i, bf16_at, w[i] - times * delta[i]);
}
