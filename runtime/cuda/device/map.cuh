/* map.cuh: element by element, and what only moves elements. */

template <int ITEMS, class F> __device__ void pointwise(value_t *y, const value_t *x, F value)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = value(x[i]);
}
/* saved: y, or x where several operations are one */
template <int ITEMS, class F>
__device__ void pointwise_backward(value_t *gx, const value_t *saved, const value_t *gy, F slope)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = slope(saved[i], gy[i]);
}

template <int ITEMS, bool RELU> __device__ void add(value_t *y, const value_t *a, const value_t *b)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = RELU ? positive(a[i] + b[i]) : a[i] + b[i];
}

/* x has PART of the CHANNELS of y, from channel BEFORE on. */
template <int ITEMS, int PART, int BEFORE, int CHANNELS> __device__ void concat(value_t *y, const value_t *x)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i / PART * CHANNELS + BEFORE + i % PART] = x[i];
}
template <int ITEMS, int PART, int BEFORE, int CHANNELS> __device__ void concat_backward(value_t *gx, const value_t *gy)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = gy[i / PART * CHANNELS + BEFORE + i % PART];
}

template <int ITEMS, int CHANNELS, int HEIGHT, int WIDTH> __device__ void flatten(value_t *y, const value_t *x)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[plain_index<CHANNELS, HEIGHT, WIDTH>(i)] = x[i];
}
template <int ITEMS, int CHANNELS, int HEIGHT, int WIDTH> __device__ void flatten_backward(value_t *gx, const value_t *gy)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = gy[plain_index<CHANNELS, HEIGHT, WIDTH>(i)];
}

/* y has CHANNELS + BEFORE + more channels, the others zero. */
template <int BATCH_, int CHANNELS_, int HEIGHT_, int WIDTH_, int OUT_, int BEFORE_, int STRIDE_> struct Shortcut {
    enum {
        CHANNELS = CHANNELS_,
        HEIGHT = HEIGHT_,
        WIDTH = WIDTH_,
        OUT_HEIGHT = (HEIGHT_ - 1) / STRIDE_ + 1,
        OUT_WIDTH = (WIDTH_ - 1) / STRIDE_ + 1,
        OUT = OUT_,
        BEFORE = BEFORE_,
        STRIDE = STRIDE_,
        IN_ITEMS = BATCH_ * HEIGHT_ * WIDTH_ * CHANNELS_,
        OUT_ITEMS = BATCH_ * OUT_HEIGHT * OUT_WIDTH * OUT_
    };
};
template <class S> __device__ void shortcut(value_t *y, const value_t *x)
{
    const int i = thread_index();
    if (i >= S::OUT_ITEMS)
        return;
    const place_t at = place_of(i, S::OUT_HEIGHT, S::OUT_WIDTH, S::OUT);
    const int c = at.c - S::BEFORE;
    const int from = ((at.n * S::HEIGHT + at.row * S::STRIDE) * S::WIDTH + at.column * S::STRIDE) * S::CHANNELS + c;
    y[i] = c >= 0 && c < S::CHANNELS ? x[from] : 0.0f;
}
template <class S> __device__ void shortcut_backward(value_t *gx, const value_t *gy)
{
    const int i = thread_index();
    if (i >= S::IN_ITEMS)
        return;
    const place_t at = place_of(i, S::HEIGHT, S::WIDTH, S::CHANNELS);
    const int row = at.row / S::STRIDE, column = at.column / S::STRIDE;
    const int from = ((at.n * S::OUT_HEIGHT + row) * S::OUT_WIDTH + column) * S::OUT + S::BEFORE + at.c;
    gx[i] = at.row % S::STRIDE == 0 && at.column % S::STRIDE == 0 ? gy[from] : 0.0f;
}

/* ---- local response normalisation over channels ---- */
template <int CHANNELS, int WINDOW> __device__ float lrn_scale(const value_t *x, int i, float share, float k)
{
    const int c = i % CHANNELS;
    float sum = 0.0f;
    for (int d = larger(-(WINDOW / 2), -c); d <= smaller(WINDOW / 2, CHANNELS - 1 - c); d++)
        sum += x[i + d] * x[i + d];
    return k + share * sum;
}
/* share: alpha / window */
template <int ITEMS, int CHANNELS, int WINDOW>
__device__ void lrn(value_t *y, const value_t *x, float share, float beta, float k)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = x[i] * powf(lrn_scale<CHANNELS, WINDOW>(x, i, share, k), -beta);
}
template <int ITEMS, int CHANNELS, int WINDOW>
__device__ void lrn_backward(value_t *gx, const value_t *x, const value_t *gy, float share, float beta, float k)
{
    const int i = thread_index();
    if (i >= ITEMS)
        return;
    const int c = i % CHANNELS;
    float sum = 0.0f;
    for (int d = larger(-(WINDOW / 2), -c); d <= smaller(WINDOW / 2, CHANNELS - 1 - c); d++) {
        const float s = lrn_scale<CHANNELS, WINDOW>(x, i + d, share, k);
        sum += gy[i + d] * x[i + d] * powf(s, -beta) / s;
    }
    const float s = lrn_scale<CHANNELS, WINDOW>(x, i, share, k);
    gx[i] = gy[i] * powf(s, -beta) - 2.0f * share * beta * x[i] * sum;
}
