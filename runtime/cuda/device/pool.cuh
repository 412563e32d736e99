/* pool.cuh: pools. */

template <int BATCH_, int CHANNELS_, int HEIGHT_, int WIDTH_, int OUT_HEIGHT_, int OUT_WIDTH_, int KERNEL_H_,
          int KERNEL_W_, int STRIDE_, int PAD_>
struct Pool {
    enum {
        CHANNELS = CHANNELS_,
        HEIGHT = HEIGHT_,
        WIDTH = WIDTH_,
        OUT_HEIGHT = OUT_HEIGHT_,
        OUT_WIDTH = OUT_WIDTH_,
        KERNEL_H = KERNEL_H_,
        KERNEL_W = KERNEL_W_,
        STRIDE = STRIDE_,
        PAD = PAD_,
        IN = BATCH_ * HEIGHT_ * WIDTH_ * CHANNELS_,
        OUT = BATCH_ * OUT_HEIGHT_ * OUT_WIDTH_ * CHANNELS_
    };
};

template <class P> __device__ int in_index(place_t at, int row, int column)
{
    return ((at.n * P::HEIGHT + row) * P::WIDTH + column) * P::CHANNELS + at.c;
}
template <class P> __device__ int out_index(place_t at, int row, int column)
{
    return ((at.n * P::OUT_HEIGHT + row) * P::OUT_WIDTH + column) * P::CHANNELS + at.c;
}

/* Calls visit(index in x, number in the window) for each element in the window of an output. */
template <class P, class Visit> __device__ void each_in_window(place_t at, Visit visit)
{
    const int row = at.row * P::STRIDE - P::PAD, column = at.column * P::STRIDE - P::PAD;
    for (int h = larger(0, -row); h < smaller(P::KERNEL_H, P::HEIGHT - row); h++)
        for (int w = larger(0, -column); w < smaller(P::KERNEL_W, P::WIDTH - column); w++)
            visit(in_index<P>(at, row + h, column + w), h * P::KERNEL_W + w);
}

/* The outputs whose window holds row (or column) `at`: from first to last. */
template <int WINDOW, int STRIDE, int PAD, int OUT> __device__ void windows(int at, int &first, int &last)
{
    first = at + PAD < WINDOW ? 0 : (at + PAD - WINDOW) / STRIDE + 1;
    last = smaller(OUT - 1, (at + PAD) / STRIDE);
}

/* Calls visit(row, column) for each output whose window holds an element of x. */
template <class P, class Visit> __device__ void each_window(place_t at, Visit visit)
{
    int top, bottom, left, right;
    windows<P::KERNEL_H, P::STRIDE, P::PAD, P::OUT_HEIGHT>(at.row, top, bottom);
    windows<P::KERNEL_W, P::STRIDE, P::PAD, P::OUT_WIDTH>(at.column, left, right);
    for (int h = top; h <= bottom; h++)
        for (int w = left; w <= right; w++)
            visit(h, w);
}

/* The first of equal elements wins. argmax NULL: not recorded. */
template <class P, class Index, bool RELU> __device__ void maxpool(value_t *y, void *argmax, const value_t *x)
{
    const int i = thread_index();
    if (i >= P::OUT)
        return;
    float best = 0.0f;
    int winner = -1;
    each_in_window<P>(place_of(i, P::OUT_HEIGHT, P::OUT_WIDTH, P::CHANNELS), [&](int from, int here) {
        const float value = x[from];
        if (winner < 0 || value > best) {
            best = value;
            winner = here;
        }
    });
    y[i] = RELU ? positive(best) : best;
    if (argmax)
        ((Index *)argmax)[i] = (Index)winner;
}

template <class P, class Index> __device__ void maxpool_backward(value_t *gx, const value_t *gy, const void *argmax)
{
    const int i = thread_index();
    if (i >= P::IN)
        return;
    const place_t at = place_of(i, P::HEIGHT, P::WIDTH, P::CHANNELS);
    float sum = 0.0f;
    each_window<P>(at, [&](int h, int w) {
        const int o = out_index<P>(at, h, w);
        const int here = (at.row - h * P::STRIDE + P::PAD) * P::KERNEL_W + at.column - w * P::STRIDE + P::PAD;
        if (((const Index *)argmax)[o] == (Index)here)
            sum += gy[o];
    });
    gx[i] = sum;
}

/* Elements that count in the window of an output. */
template <class P, bool PADDING> __device__ float pool_size(int row, int column)
{
    if (PADDING)
        return (float)(P::KERNEL_H * P::KERNEL_W);
    const int top = row * P::STRIDE - P::PAD, left = column * P::STRIDE - P::PAD;
    return (float)((smaller(top + P::KERNEL_H, P::HEIGHT) - larger(top, 0)) *
                   (smaller(left + P::KERNEL_W, P::WIDTH) - larger(left, 0)));
}

template <class P, bool PADDING> __device__ void avgpool(value_t *y, const value_t *x)
{
    const int i = thread_index();
    if (i >= P::OUT)
        return;
    const place_t at = place_of(i, P::OUT_HEIGHT, P::OUT_WIDTH, P::CHANNELS);
    float sum = 0.0f;
    each_in_window<P>(at, [&](int from, int) { sum += x[from]; });
    y[i] = sum / pool_size<P, PADDING>(at.row, at.column);
}

template <class P, bool PADDING> __device__ void avgpool_backward(value_t *gx, const value_t *gy)
{
    const int i = thread_index();
    if (i >= P::IN)
        return;
    const place_t at = place_of(i, P::HEIGHT, P::WIDTH, P::CHANNELS);
    float sum = 0.0f;
    each_window<P>(at, [&](int h, int w) { sum += gy[out_index<P>(at, h, w)] / pool_size<P, PADDING>(h, w); });
    gx[i] = sum;
}
