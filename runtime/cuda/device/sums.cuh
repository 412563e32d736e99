/* sums.cuh: sums over all rows of [rows][channels], two for each channel: first by chunks of rows, then of the chunks.
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
