/* element.cuh: what values, their gradients and weights are stored as (compiler/element.h): f32, or bf16 in a program that
 * says VALUE_BF16 before it includes all this. bf16 is the upper half of an f32: 8 bits of exponent, 7 of fraction. A
 * number is computed with as f32 and stored rounded to nearest, ties to even (IEEE 754-2019, 4.3.1): beyond the largest
 * finite number lies infinity, denormal numbers stay, a NaN stays one and is quiet. */

struct bf16_t {
    unsigned short bits;
    __device__ operator float() const
    {
        return __uint_as_float((unsigned)bits << 16);
    }
    __device__ bf16_t &operator=(float value)
    {
        const unsigned all = __float_as_uint(value);
        const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
        bits = (unsigned short)(is_nan ? all >> 16 | 0x40u : (all + 0x7fffu + (all >> 16 & 1u)) >> 16);
        return *this;
    }
};

#ifdef VALUE_BF16
typedef bf16_t value_t;
#else
typedef float value_t;
#endif

/* Weight i of a version as forward and backward read it, or of the gradient: those from bf16_at on have half a float. */
__device__ inline float load_weight(const float *version, int i, int bf16_at)
{
    return i < bf16_at ? version[i] : (float)((const bf16_t *)(version + bf16_at))[i - bf16_at];
}
__device__ inline void store_weight(float *version, int i, int bf16_at, float value)
{
    if (i < bf16_at)
        version[i] = value;
    else
        ((bf16_t *)(version + bf16_at))[i - bf16_at] = value;
}
