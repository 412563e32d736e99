// bf16.cpp: the conversions of runtime/cuda/device/element.cuh, compiled for the host, against two others: a search for the nearest number,
// in double, and NVIDIA's cuda_bf16.h. Each of the 65536 upper halves of an f32 with 32 lower ones: exact numbers, ties, the neighbours of ties,
// random ones; so all NaNs, infinities, zeros and denormal numbers are among them. Prints how many were right; exit 1: some were not.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>

#undef __device__
#define __device__
template <class To, class From> static To bits_as(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "same size");
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __uint_as_float bits_as<float, unsigned>
#define __float_as_uint bits_as<unsigned, float>
#include "cuda/device/element.cuh"

// What the bits of a finite bf16 are worth; those of infinity: the power of two that would come next (IEEE 754-2019, 4.3.1).
static double worth(unsigned bits)
{
    const int exponent = int(bits >> 7 & 0xff), fraction = int(bits & 0x7f);
    return exponent ? ldexp(128 + fraction, exponent - 127 - 7) : ldexp(fraction, -126 - 7);
}

static unsigned nearest(float value)
{
    const unsigned all = bits_as<unsigned>(value), sign = all >> 16 & 0x8000;
    if (std::isinf(value))
        return sign | 0x7f80;
    const double size = fabs(double(value));
    unsigned low = 0, high = 0x7f80; // worth(low) <= size < worth(high), or all that is finite is below
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        (worth(middle) <= size ? low : high) = middle;
    }
    const double below = size - worth(low), above = worth(high) - size;
    return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

int main()
{
    const unsigned lower[] = {0, 1, 0x3fff, 0x7fff, 0x8000, 0x8001, 0xc000, 0xffff};
    uint32_t random = 1;
    long right = 0, wrong = 0;
    for (unsigned upper = 0; upper < 65536; upper++)
        for (int k = 0; k < 32; k++) {
            random = random * 1664525u + 1013904223u;
            const float value = bits_as<float>(upper << 16 | (k < 8 ? lower[k] : random >> 16));
            bf16_t stored;
            stored = value;
            const __nv_bfloat16_raw theirs = __float2bfloat16_rn(value);
            const bool good = std::isnan(value) ? std::isnan(float(stored)) && stored.bits & 0x40 &&
                                                      (stored.bits & 0x8000) == (upper & 0x8000)
                                                : stored.bits == nearest(value) && stored.bits == theirs.x;
            // Back: exact, and stored again as it is.
            bf16_t again;
            again = float(stored);
            const bool back = again.bits == stored.bits && bits_as<unsigned>(float(stored)) == unsigned(stored.bits)
                                                                                                   << 16;
            good &&back ? right++ : wrong++;
            if (!(good && back) && wrong <= 5)
                printf("%08x becomes %04x: nearest is %04x, cuda_bf16.h says %04x\n", bits_as<unsigned>(value),
                       stored.bits, nearest(value), theirs.x);
        }
    printf("right %ld wrong %ld\n", right, wrong);
    return wrong > 0;
}
