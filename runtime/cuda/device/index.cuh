/* index.cuh: where a thread is, and where an element of an image lies. */

__device__ inline int thread_index()
{
    return (int)(blockIdx.x * blockDim.x + threadIdx.x);
}

__device__ inline float positive(float x)
{
    return x > 0.0f ? x : 0.0f;
}

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

/* Index in plain order, [batch][channel][height][width], of an element whose channels are last. */
template <int CHANNELS, int HEIGHT, int WIDTH> __device__ int plain_index(int i)
{
    const place_t at = place_of(i, HEIGHT, WIDTH, CHANNELS);
    return ((at.n * CHANNELS + at.c) * HEIGHT + at.row) * WIDTH + at.column;
}
