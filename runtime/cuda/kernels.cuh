/* kernels.cuh: the device code of target cuda. kernels.cu of a program includes it and makes from its templates one kernel
 * for each shape; the kernels at the end are the same in every program.
 *
 * Read by NVRTC, which has no standard headers; also, behind a shim, by a C++17 compiler for the tests: hence no shared
 * array in a template (callers give `room`), no inline PTX, barriers in uniform code only.
 * Activations of rank 4 are [batch][height][width][channel]. Blocks have THREADS threads. Every sum has one order: a run
 * repeats bit for bit on the same GPU. Formulas: runtime/ref/kernels*.c, where their sources are named. */

enum { THREADS = 256, WARP = 32 };
#define KERNEL extern "C" __global__ void __launch_bounds__(256)

typedef unsigned char byte_t;
typedef unsigned long long bits_t;

__device__ inline int thread_index()
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

__device__ inline float positive(float x)
{
    return x > 0.0f ? x : 0.0f;
}

/* ---- behind a convolution or a dense layer: bias and relu, in place ---- */
template <int ITEMS, int CHANNELS, bool BIAS, bool RELU> __device__ void finish(float *y, const float *b)
{
    const int i = thread_index();
    if (i >= ITEMS)
        return;
    const float value = BIAS ? y[i] + b[i % CHANNELS] : y[i];
    y[i] = RELU ? positive(value) : value;
}

/* ---- sums over all rows of [rows][channels], two for each channel: first by chunks of rows, then of the chunks ----
 * A block is a chunk and LANES channels; room: 2 * THREADS floats; part: [chunks][2][channels]. */
template <int ROWS_, int CHANNELS_, int LANES_, int CHUNK_> struct Rows {
    enum { ROWS = ROWS_, CHANNELS = CHANNELS_, LANES = LANES_, CHUNK = CHUNK_, CHUNKS = (ROWS_ + CHUNK_ - 1) / CHUNK_ };
};

template <class S, class Add> __device__ void chunk_sums(float *room, float *part, Add add)
{
    const int groups = (S::CHANNELS + S::LANES - 1) / S::LANES, together = THREADS / S::LANES;
    const int chunk = (int)blockIdx.x / groups, thread = (int)threadIdx.x, row = thread / S::LANES;
    const int c = (int)blockIdx.x % groups * S::LANES + thread % S::LANES;
    const int end = (chunk + 1) * S::CHUNK < S::ROWS ? (chunk + 1) * S::CHUNK : S::ROWS;
    float first = 0.0f, second = 0.0f;
    if (c < S::CHANNELS)
        for (int r = chunk * S::CHUNK + row; r < end; r += together)
            add(r * S::CHANNELS + c, c, first, second);
    room[thread] = first;
    room[THREADS + thread] = second;
    for (int half = together / 2; half > 0; half /= 2) {
        __syncthreads();
        if (row < half) {
            room[thread] += room[thread + half * S::LANES];
            room[THREADS + thread] += room[THREADS + thread + half * S::LANES];
        }
    }
    if (row == 0 && c < S::CHANNELS) {
        part[2 * chunk * S::CHANNELS + c] = room[thread];
        part[(2 * chunk + 1) * S::CHANNELS + c] = room[THREADS + thread];
    }
}

/* A warp a channel; true for the one thread of it that goes on. */
template <class S> __device__ bool all_sums(const float *part, int &c, double &first, double &second)
{
    const int lane = (int)threadIdx.x % WARP;
    c = thread_index() / WARP;
    first = second = 0.0;
    if (c >= S::CHANNELS)
        return false;
    for (int k = lane; k < S::CHUNKS; k += WARP) {
        first += part[2 * k * S::CHANNELS + c];
        second += part[(2 * k + 1) * S::CHANNELS + c];
    }
    for (int far = WARP / 2; far > 0; far /= 2) {
        first += __shfl_xor_sync(0xffffffffu, first, far);
        second += __shfl_xor_sync(0xffffffffu, second, far);
    }
    return lane == 0;
}

template <class S> __device__ void bias_part(float *room, float *part, const float *gy)
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

/* ---- batch normalisation; statistics: [mean, variance][channels] ---- */
/* Sums of x - x[0] and its square: a variance that is small beside the mean keeps its digits. */
template <class S> __device__ void norm_part(float *room, float *part, const float *x)
{
    chunk_sums<S>(room, part, [=](int i, int c, float &sum, float &squares) {
        const float off = x[i] - x[c];
        sum += off;
        squares += off * off;
    });
}

template <class S> __device__ void norm_statistics(float *statistics, const float *part, const float *x)
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
__device__ void norm_apply(float *y, const float *x, const float *skip, const float *scale, const float *shift,
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
__device__ void norm_gradient_part(float *room, float *part, const float *gy, const float *y, const float *x,
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
__device__ void norm_backward(float *gx, float *gskip, const float *gy, const float *y, const float *x,
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

/* ---- pools ---- */
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

__device__ inline int larger(int a, int b)
{
    return a > b ? a : b;
}
__device__ inline int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Sample and channel of an element, and its place in a plane. */
struct place_t {
    int n, row, column, c;
};
__device__ inline place_t place_of(int i, int height, int width, int channels)
{
    return place_t{i / (height * width * channels), i / (width * channels) % height, i / channels % width, i % channels};
}
template <class P> __device__ int in_index(place_t at, int row, int column)
{
    return ((at.n * P::HEIGHT + row) * P::WIDTH + column) * P::CHANNELS + at.c;
}
template <class P> __device__ int out_index(place_t at, int row, int column)
{
    return ((at.n * P::OUT_HEIGHT + row) * P::OUT_WIDTH + column) * P::CHANNELS + at.c;
}

/* The first of equal elements wins. argmax NULL: not recorded. */
template <class P, class Index, bool RELU> __device__ void maxpool(float *y, void *argmax, const float *x)
{
    const int i = thread_index();
    if (i >= P::OUT)
        return;
    const place_t at = place_of(i, P::OUT_HEIGHT, P::OUT_WIDTH, P::CHANNELS);
    const int row = at.row * P::STRIDE - P::PAD, column = at.column * P::STRIDE - P::PAD;
    float best = 0.0f;
    int winner = -1;
    for (int h = larger(0, -row); h < smaller(P::KERNEL_H, P::HEIGHT - row); h++)
        for (int w = larger(0, -column); w < smaller(P::KERNEL_W, P::WIDTH - column); w++) {
            const float value = x[in_index<P>(at, row + h, column + w)];
            if (winner < 0 || value > best) {
                best = value;
                winner = h * P::KERNEL_W + w;
            }
        }
    y[i] = RELU ? positive(best) : best;
    if (argmax)
        ((Index *)argmax)[i] = (Index)winner;
}

/* The outputs whose window holds row (or column) `at`: from first to last. */
template <int WINDOW, int STRIDE, int PAD, int OUT> __device__ void windows(int at, int &first, int &last)
{
    first = at + PAD < WINDOW ? 0 : (at + PAD - WINDOW) / STRIDE + 1;
    last = smaller(OUT - 1, (at + PAD) / STRIDE);
}

template <class P, class Index> __device__ void maxpool_backward(float *gx, const float *gy, const void *argmax)
{
    const int i = thread_index();
    if (i >= P::IN)
        return;
    const place_t at = place_of(i, P::HEIGHT, P::WIDTH, P::CHANNELS);
    int top, bottom, left, right;
    windows<P::KERNEL_H, P::STRIDE, P::PAD, P::OUT_HEIGHT>(at.row, top, bottom);
    windows<P::KERNEL_W, P::STRIDE, P::PAD, P::OUT_WIDTH>(at.column, left, right);
    float sum = 0.0f;
    for (int h = top; h <= bottom; h++)
        for (int w = left; w <= right; w++) {
            const int o = out_index<P>(at, h, w);
            const int here = (at.row - h * P::STRIDE + P::PAD) * P::KERNEL_W + at.column - w * P::STRIDE + P::PAD;
            if (((const Index *)argmax)[o] == (Index)here)
                sum += gy[o];
        }
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

template <class P, bool PADDING> __device__ void avgpool(float *y, const float *x)
{
    const int i = thread_index();
    if (i >= P::OUT)
        return;
    const place_t at = place_of(i, P::OUT_HEIGHT, P::OUT_WIDTH, P::CHANNELS);
    const int row = at.row * P::STRIDE - P::PAD, column = at.column * P::STRIDE - P::PAD;
    float sum = 0.0f;
    for (int h = larger(0, -row); h < smaller(P::KERNEL_H, P::HEIGHT - row); h++)
        for (int w = larger(0, -column); w < smaller(P::KERNEL_W, P::WIDTH - column); w++)
            sum += x[in_index<P>(at, row + h, column + w)];
    y[i] = sum / pool_size<P, PADDING>(at.row, at.column);
}

template <class P, bool PADDING> __device__ void avgpool_backward(float *gx, const float *gy)
{
    const int i = thread_index();
    if (i >= P::IN)
        return;
    const place_t at = place_of(i, P::HEIGHT, P::WIDTH, P::CHANNELS);
    int top, bottom, left, right;
    windows<P::KERNEL_H, P::STRIDE, P::PAD, P::OUT_HEIGHT>(at.row, top, bottom);
    windows<P::KERNEL_W, P::STRIDE, P::PAD, P::OUT_WIDTH>(at.column, left, right);
    float sum = 0.0f;
    for (int h = top; h <= bottom; h++)
        for (int w = left; w <= right; w++)
            sum += gy[out_index<P>(at, h, w)] / pool_size<P, PADDING>(h, w);
    gx[i] = sum;
}

/* ---- element by element ---- */
template <int ITEMS, class F> __device__ void pointwise(float *y, const float *x, F value)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = value(x[i]);
}
/* saved: y, or x where several operations are one */
template <int ITEMS, class F>
__device__ void pointwise_backward(float *gx, const float *saved, const float *gy, F slope)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = slope(saved[i], gy[i]);
}

template <int ITEMS, bool RELU> __device__ void add(float *y, const float *a, const float *b)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = RELU ? positive(a[i] + b[i]) : a[i] + b[i];
}

/* x has PART of the CHANNELS of y, from channel BEFORE on. */
template <int ITEMS, int PART, int BEFORE, int CHANNELS> __device__ void concat(float *y, const float *x)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i / PART * CHANNELS + BEFORE + i % PART] = x[i];
}
template <int ITEMS, int PART, int BEFORE, int CHANNELS> __device__ void concat_backward(float *gx, const float *gy)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = gy[i / PART * CHANNELS + BEFORE + i % PART];
}

/* Index in plain order, [batch][channel][height][width], of an element whose channels are last. */
template <int CHANNELS, int HEIGHT, int WIDTH> __device__ int plain_index(int i)
{
    const place_t at = place_of(i, HEIGHT, WIDTH, CHANNELS);
    return ((at.n * CHANNELS + at.c) * HEIGHT + at.row) * WIDTH + at.column;
}
template <int ITEMS, int CHANNELS, int HEIGHT, int WIDTH> __device__ void flatten(float *y, const float *x)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[plain_index<CHANNELS, HEIGHT, WIDTH>(i)] = x[i];
}
template <int ITEMS, int CHANNELS, int HEIGHT, int WIDTH> __device__ void flatten_backward(float *gx, const float *gy)
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
template <class S> __device__ void shortcut(float *y, const float *x)
{
    const int i = thread_index();
    if (i >= S::OUT_ITEMS)
        return;
    const place_t at = place_of(i, S::OUT_HEIGHT, S::OUT_WIDTH, S::OUT);
    const int c = at.c - S::BEFORE;
    const int from = ((at.n * S::HEIGHT + at.row * S::STRIDE) * S::WIDTH + at.column * S::STRIDE) * S::CHANNELS + c;
    y[i] = c >= 0 && c < S::CHANNELS ? x[from] : 0.0f;
}
template <class S> __device__ void shortcut_backward(float *gx, const float *gy)
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
template <int CHANNELS, int WINDOW> __device__ float lrn_scale(const float *x, int i, float share, float k)
{
    const int c = i % CHANNELS;
    float sum = 0.0f;
    for (int d = larger(-(WINDOW / 2), -c); d <= smaller(WINDOW / 2, CHANNELS - 1 - c); d++)
        sum += x[i + d] * x[i + d];
    return k + share * sum;
}
/* share: alpha / window */
template <int ITEMS, int CHANNELS, int WINDOW>
__device__ void lrn(float *y, const float *x, float share, float beta, float k)
{
    const int i = thread_index();
    if (i < ITEMS)
        y[i] = x[i] * powf(lrn_scale<CHANNELS, WINDOW>(x, i, share, k), -beta);
}
template <int ITEMS, int CHANNELS, int WINDOW>
__device__ void lrn_backward(float *gx, const float *x, const float *gy, float share, float beta, float k)
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

/* ---- dropout: the numbers of runtime/core/rng.c ---- */
__device__ inline bits_t mixed(bits_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
__device__ inline bits_t random_bits(bits_t key, bits_t counter)
{
    const bits_t golden = 0x9e3779b97f4a7c15ull;
    return mixed(mixed(key + golden) + (counter + 1) * golden);
}
/* key: of the seed and the name; the numbers count elements in plain order */
template <int ITEMS, int CHANNELS, int HEIGHT, int WIDTH>
__device__ void dropout(float *y, byte_t *mask, const float *x, const bits_t *minibatch, bits_t key,
                        double probability)
{
    const int i = thread_index();
    if (i >= ITEMS)
        return;
    const bits_t bits = random_bits(random_bits(key, *minibatch), (bits_t)plain_index<CHANNELS, HEIGHT, WIDTH>(i));
    const bool kept = (double)(bits >> 11) * (1.0 / 9007199254740992.0) >= probability;
    mask[i] = kept;
    y[i] = kept ? x[i] * (float)(1.0 / (1.0 - probability)) : 0.0f;
}
template <int ITEMS> __device__ void dropout_backward(float *gx, const float *gy, const byte_t *mask, double probability)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = mask[i] ? gy[i] * (float)(1.0 / (1.0 - probability)) : 0.0f;
}

/* ---- losses: a warp a sample; of each sample its loss, and 1 if the label has the largest value ---- */
/* The first largest of a row, over the warp. */
template <int CLASSES> __device__ int row_best(const float *row, float &best)
{
    const int lane = (int)threadIdx.x % WARP;
    int winner = lane < CLASSES ? lane : 0;
    best = row[winner];
    for (int i = lane + WARP; i < CLASSES; i += WARP)
        if (row[i] > best) {
            best = row[i];
            winner = i;
        }
    for (int far = WARP / 2; far > 0; far /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, best, far);
        const int index = __shfl_xor_sync(0xffffffffu, winner, far);
        if (other > best || (other == best && index < winner)) {
            best = other;
            winner = index;
        }
    }
    return winner;
}
/* probability NULL: not stored (a test) */
template <int BATCH, int CLASSES>
__device__ void softmax_cross_entropy(float *rows, float *probability, const float *x, const int *label)
{
    const int n = thread_index() / WARP, lane = (int)threadIdx.x % WARP;
    if (n >= BATCH)
        return;
    const float *row = x + n * CLASSES;
    float largest;
    const int best = row_best<CLASSES>(row, largest);
    double sum = 0.0;
    for (int i = lane; i < CLASSES; i += WARP)
        sum += exp((double)row[i] - largest);
    for (int far = WARP / 2; far > 0; far /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (probability)
        for (int i = lane; i < CLASSES; i += WARP)
            probability[n * CLASSES + i] = (float)(exp((double)row[i] - largest) / sum);
    if (lane == 0) {
        rows[2 * n] = (float)(log(sum) - ((double)row[label[n]] - largest));
        rows[2 * n + 1] = best == label[n] ? 1.0f : 0.0f;
    }
}
template <int BATCH, int CLASSES>
__device__ void softmax_cross_entropy_backward(float *gx, const float *probability, const int *label)
{
    const int i = thread_index();
    if (i < BATCH * CLASSES)
        gx[i] = (probability[i] - (i % CLASSES == label[i / CLASSES] ? 1.0f : 0.0f)) / (float)BATCH;
}

template <int SIZE, bool LABELS> __device__ float mse_error(const float *x, const void *target, int i)
{
    return x[i] -
           (LABELS ? (i % SIZE == ((const int *)target)[i / SIZE] ? 1.0f : 0.0f) : ((const float *)target)[i]);
}
template <int BATCH, int SIZE, bool LABELS> __device__ void mse(float *rows, const float *x, const void *target)
{
    const int n = thread_index() / WARP, lane = (int)threadIdx.x % WARP;
    if (n >= BATCH)
        return;
    float largest;
    const int best = row_best<SIZE>(x + n * SIZE, largest);
    double sum = 0.0;
    for (int i = lane; i < SIZE; i += WARP) {
        const double error = mse_error<SIZE, LABELS>(x, target, n * SIZE + i);
        sum += error * error;
    }
    for (int far = WARP / 2; far > 0; far /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, far);
    if (lane == 0) {
        rows[2 * n] = (float)(sum / 2.0);
        rows[2 * n + 1] = LABELS && best == ((const int *)target)[n] ? 1.0f : 0.0f;
    }
}
template <int BATCH, int SIZE, bool LABELS>
__device__ void mse_backward(float *gx, const float *x, const void *target, float sign)
{
    const int i = thread_index();
    if (i < BATCH * SIZE)
        gx[i] = sign * mse_error<SIZE, LABELS>(x, target, i) / (float)BATCH;
}

/* ---- the kernels that every program has ---- */

/* result: the sums of the losses and of the right answers of the first `count` samples. One block. */
KERNEL loss_sum(double *result, const float *rows, int count)
{
    __shared__ double room[2 * THREADS];
    const int thread = (int)threadIdx.x;
    double loss = 0.0, right = 0.0;
    for (int n = thread; n < count; n += THREADS) {
        loss += rows[2 * n];
        right += rows[2 * n + 1];
    }
    room[thread] = loss;
    room[THREADS + thread] = right;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (thread < half) {
            room[thread] += room[thread + half];
            room[THREADS + thread] += room[THREADS + thread + half];
        }
    }
    if (thread == 0) {
        result[0] = room[0];
        result[1] = room[THREADS];
    }
}

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

/* What differs from step to step travels in the parameters of these two, which a launch copies: no host memory has to
 * wait, and everything else of a step is fixed. */
KERNEL set_minibatch(bits_t *to, bits_t minibatch)
{
    if (threadIdx.x == 0)
        *to = minibatch;
}

/* Which sample, and how far it is moved (runtime/data/augment.c). As cuda_pick of cuda.h. */
struct pick_t {
    int sample;
    short down, right;
    int mirror;
};
struct picks_t {
    pick_t pick[THREADS];
};
KERNEL set_picks(pick_t *to, picks_t picks, int count)
{
    if ((int)threadIdx.x < count)
        to[threadIdx.x] = picks.pick[threadIdx.x];
}

/* Samples are [channel][height][width]; `to` has the channels last, or is plain. As cuda_images of cuda.h. */
struct images_t {
    int batch, channels, height, width, channels_last;
    float scale[8], shift[8];
};
template <class T>
__device__ void gather(float *to, const T *samples, const pick_t *picks, const images_t &all)
{
    const int i = thread_index(), size = all.channels * all.height * all.width;
    if (i >= all.batch * size)
        return;
    place_t at;
    if (all.channels_last)
        at = place_of(i, all.height, all.width, all.channels);
    else
        at = place_t{i / size, i / all.width % all.height, i % all.width, i / (all.height * all.width) % all.channels};
    const pick_t pick = picks[at.n];
    const int row = at.row + pick.down;
    const int column = (pick.mirror ? all.width - 1 - at.column : at.column) + pick.right;
    float value = 0.0f;
    if (row >= 0 && row < all.height && column >= 0 && column < all.width)
        value = (float)samples[(long long)pick.sample * size + (at.c * all.height + row) * all.width + column];
    const int c = at.c < 8 ? at.c : 0;
    to[i] = value * all.scale[c] + all.shift[c];
}
KERNEL gather_bytes(float *to, const byte_t *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_values(float *to, const float *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_labels(int *to, const unsigned short *labels, const pick_t *picks, int batch)
{
    const int i = thread_index();
    if (i < batch)
        to[i] = labels[picks[i].sample];
}
