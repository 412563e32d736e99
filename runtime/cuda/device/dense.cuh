/* dense.cuh: behind a convolution or a dense layer: bias and relu, in place; the gradient of the bias. */

template <int ITEMS, int CHANNELS, bool BIAS, bool RELU> __device__ void finish(value_t *y, const float *b)
{
    const int i = thread_index();
    if (i >= ITEMS)
        return;
    const float value = BIAS ? y[i] + b[i % CHANNELS] : y[i];
    y[i] = RELU ? positive(value) : value;
}

template <class S> __device__ void bias_part(float *room, float *part, const value_t *gy)
{
    chunk_sums<S>(room, part, [=](int i, int, float &sum, float &) { sum += gy[i]; });
}

template <class S> __device__ void bias_gradient(float *gb, const float *part)
{
    int c;
    double sum, none;
    if (all_sums<S>(part, c, sum, none))
        gb[c] = (float)sum;
}
