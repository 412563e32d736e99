/* norm.cuh: batch normalisation; statistics: [mean, variance][channels]. */

/* Sums of x - x[0] and its square: a variance that is small beside the mean keeps its digits. */
template <class S> __device__ void norm_part(float *room, float *part, const value_t *x)
{
    chunk_sums<S>(room, part, [=](int i, int c, float &sum, float &squares) {
        const float off = x[i] - x[c];
        sum += off;
        squares += off * off;
    });
}

template <class S> __device__ void norm_statistics(float *statistics, const float *part, const value_t *x)
{
    int c;
    double sum, squares;
    if (!all_sums<S>(part, c, sum, squares))
        return;
    const double middle = sum / S::ROWS, variance = squares / S::ROWS - middle * middle;
    statistics[c] = (float)(x[c] + middle);
    statistics[S::CHANNELS + c] = variance > 0.0 ? (float)variance : 0.0f;
}

template <class S, bool SKIP, bool RELU>
__device__ void norm_apply(value_t *y, const value_t *x, const value_t *skip, const float *scale, const float *shift,
                           const float *mean, const float *variance, float epsilon)
{
    const int i = thread_index();
    if (i >= S::ROWS * S::CHANNELS)
        return;
    const int c = i % S::CHANNELS;
    float value = (x[i] - mean[c]) * (scale[c] / sqrtf(variance[c] + epsilon)) + shift[c];
    if (SKIP)
        value += skip[i];
    y[i] = RELU ? positive(value) : value;
}

template <class S, bool RELU>
__device__ void norm_gradient_part(float *room, float *part, const value_t *gy, const value_t *y, const value_t *x,
                                   const float *statistics)
{
    chunk_sums<S>(room, part, [=](int i, int c, float &sum, float &product) {
        const float g = !RELU || y[i] > 0.0f ? gy[i] : 0.0f;
        sum += g;
        product += g * (x[i] - statistics[c]);
    });
}

template <class S>
__device__ void norm_gradient(float *gscale, float *gshift, const float *part, const float *statistics, float epsilon)
{
    int c;
    double sum, product;
    if (!all_sums<S>(part, c, sum, product))
        return;
    gshift[c] = (float)sum;
    gscale[c] = (float)(product / sqrtf(statistics[S::CHANNELS + c] + epsilon));
}

/* gx, gskip NULL: not wanted */
template <class S, bool RELU>
__device__ void norm_backward(value_t *gx, value_t *gskip, const value_t *gy, const value_t *y, const value_t *x,
                              const float *scale, const float *statistics, const float *gscale, const float *gshift,
                              float epsilon)
{
    const int i = thread_index();
    if (i >= S::ROWS * S::CHANNELS)
        return;
    const int c = i % S::CHANNELS;
    const float g = !RELU || y[i] > 0.0f ? gy[i] : 0.0f, share = 1.0f / S::ROWS;
    const float inverse = 1.0f / sqrtf(statistics[S::CHANNELS + c] + epsilon);
    if (gskip)
        gskip[i] = g;
    if (gx)
        gx[i] = scale[c] * inverse * (g - gshift[c] * share - (x[i] - statistics[c]) * inverse * gscale[c] * share);
}

template <class S>
__device__ void norm_track(float *running_mean, float *running_variance, const float *statistics, float momentum)
{
    const int c = thread_index();
    if (c >= S::CHANNELS)
        return;
    const float unbiased = (float)((double)S::ROWS / (S::ROWS - 1.0));
    running_mean[c] = (1.0f - momentum) * running_mean[c] + momentum * statistics[c];
    running_variance[c] =
        (1.0f - momentum) * running_variance[c] + momentum * (statistics[S::CHANNELS + c] * unbiased);
}
