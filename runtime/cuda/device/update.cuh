/* update.cuh: gradients and weights. */

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

/* The formulas of runtime/core/sgd.c; next may be w. */
KERNEL sgd(float *next, const float *w, const float *g, float *v, float rate, float momentum, float decay,
           float on_velocity, float on_gradient, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const float d = g[i] + decay * w[i], speed = momentum * v[i] + d;
    v[i] = speed;
    next[i] = w[i] - rate * (on_gradient * d + on_velocity * speed);
}

/* The formulas of runtime/core/adam.c; next may be w. step and scale: of the t-th update. */
KERNEL adam(float *next, const float *w, const float *g, float *m, float *s, float step, float scale, float epsilon,
            float keep, float decay, float beta1, float beta2, int n)
{
    const int i = thread_index();
    if (i >= n)
        return;
    const float d = g[i] + decay * w[i];
    const float mean = beta1 * m[i] + (1.0f - beta1) * d, square = beta2 * s[i] + (1.0f - beta2) * (d * d);
    m[i] = mean;
    s[i] = square;
    next[i] = keep * w[i] - step * (mean / (sqrtf(square) * scale + epsilon));
}
