/* kernels.cu: kernels as pnetc generates them, and wrong ones. The same text goes to NVRTC and to g++. */
extern "C" __global__ void __launch_bounds__(256) scale(float *__restrict__ y, const float *__restrict__ x, float by, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = by * x[i];
}

extern "C" __global__ void __launch_bounds__(256) add_into(float *y, const float *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] += x[i];
}

/* Pointers travel by value in a structure. */
struct tensors {
    float *weight[2];
    const float *gradient[2];
    int n[2];
};
extern "C" __global__ void __launch_bounds__(256) sgd(tensors t, float rate)
{
    int n = t.n[blockIdx.y];
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        t.weight[blockIdx.y][i] -= rate * t.gradient[blockIdx.y][i];
}

/* One block a row; warp shuffles, then one barrier. */
template <bool barrier> __device__ static inline void row_sum_body(float *sum, const float *x, int columns, float *part)
{
    float s = 0;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        s += x[blockIdx.x * columns + i];
    for (int by = 16; by > 0; by >>= 1)
        s += __shfl_down_sync(0xffffffffu, s, by);
    if ((threadIdx.x & 31) == 0)
        part[threadIdx.x >> 5] = s;
    if (barrier)
        __syncthreads();
    if (threadIdx.x < 32) {
        s = threadIdx.x < (blockDim.x >> 5) ? part[threadIdx.x] : 0;
        for (int by = 16; by > 0; by >>= 1)
            s += __shfl_down_sync(0xffffffffu, s, by);
        if (threadIdx.x == 0)
            sum[blockIdx.x] = s;
    }
}
extern "C" __global__ void __launch_bounds__(256) row_sum(float *sum, const float *x, int columns)
{
    __shared__ float part[32];
    row_sum_body<true>(sum, x, columns, part);
}
extern "C" __global__ void __launch_bounds__(256) row_sum_no_barrier(float *sum, const float *x, int columns)
{
    __shared__ float part[32];
    row_sum_body<false>(sum, x, columns, part);
}

/* The barrier is within a branch that some threads do not take. */
extern "C" __global__ void __launch_bounds__(256) shift(float *y, const float *x, int n, int divergent)
{
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (divergent && i >= n)
        return;
    tile[threadIdx.x] = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        y[i] = tile[blockDim.x - 1 - threadIdx.x];
}

/* Half of the tile is never written. */
extern "C" __global__ void __launch_bounds__(256) half_tile(float *y, const float *x, int written)
{
    __shared__ float tile[256];
    if (threadIdx.x < written)
        tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x];
}

/* The bias gradient: blocks add to one cell. */
extern "C" __global__ void __launch_bounds__(256) total(float *sum, const float *x, int n, int atomic)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (atomic)
            atomicAdd(sum, x[i]);
        else
            *sum += x[i];
    }
}

/* Four at a time. */
extern "C" __global__ void __launch_bounds__(256) scale4(float4 *y, const float4 *x, float by, int n4)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) {
        float4 v = x[i];
        y[i] = make_float4(by * v.x, by * v.y, by * v.z, by * v.w);
    }
}

/* An index beyond the shared array. */
extern "C" __global__ void __launch_bounds__(256) tile_index(float *y, const float *x, int length)
{
    __shared__ float tile[64];
    if (threadIdx.x < length)
        tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x < 64)
        y[threadIdx.x] = tile[63 - threadIdx.x];
}

/* Lanes exchange with lanes that are not in the mask. */
extern "C" __global__ void __launch_bounds__(256) half_warp(float *y, unsigned mask)
{
    float v = threadIdx.x;
    if (threadIdx.x < 16)
        v += __shfl_xor_sync(mask, v, 16);
    else if (mask == 0xffffffffu)
        v += __shfl_xor_sync(mask, v, 16);
    y[threadIdx.x] = v;
}

/* Masks of one byte an element: neighbours share a word and do not conflict. */
extern "C" __global__ void __launch_bounds__(256) relu_mask(unsigned char *mask, const float *x, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        mask[i] = x[i] > 0;
}
