/* dropout.cuh: random numbers, those of runtime/core/rng.c, and dropout. */

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
__device__ void dropout(value_t *y, byte_t *mask, const value_t *x, const bits_t *minibatch, bits_t key,
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
template <int ITEMS> __device__ void dropout_backward(value_t *gx, const value_t *gy, const byte_t *mask, double probability)
{
    const int i = thread_index();
    if (i < ITEMS)
        gx[i] = mask[i] ? gy[i] * (float)(1.0 / (1.0 - probability)) : 0.0f;
}
