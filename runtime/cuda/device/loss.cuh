/* loss.cuh: losses: a warp a sample; of each sample its loss, and 1 if the label has the largest value. */

/* The first largest of a row, over the warp. */
template <int CLASSES> __device__ int row_best(const value_t *row, float &best)
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
__device__ void softmax_cross_entropy(float *rows, float *probability, const value_t *x, const int *label)
{
    const int n = thread_index() / WARP, lane = (int)threadIdx.x % WARP;
    if (n >= BATCH)
        return;
    const value_t *row = x + n * CLASSES;
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
__device__ void softmax_cross_entropy_backward(value_t *gx, const float *probability, const int *label)
{
    const int i = thread_index();
    if (i < BATCH * CLASSES)
        gx[i] = (probability[i] - (i % CLASSES == label[i / CLASSES] ? 1.0f : 0.0f)) / (float)BATCH;
}

template <int SIZE, bool LABELS> __device__ float mse_error(const value_t *x, const void *target, int i)
{
    return x[i] -
           (LABELS ? (i % SIZE == ((const int *)target)[i / SIZE] ? 1.0f : 0.0f) : ((const value_t *)target)[i]);
}
template <int BATCH, int SIZE, bool LABELS> __device__ void mse(float *rows, const value_t *x, const void *target)
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
__device__ void mse_backward(value_t *gx, const value_t *x, const void *target, float sign)
{
    const int i = thread_index();
    if (i < BATCH * SIZE)
        gx[i] = sign * mse_error<SIZE, LABELS>(x, target, i) / (float)BATCH;
}

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
