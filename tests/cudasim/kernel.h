// kernel.h: what makes CUDA C kernels compile as C++17 and run in the double. `run` includes it before the unchanged text.
// Each load and store of the kernels is seen through the hooks that g++ -fsanitize=thread calls (hooks.cpp defines them).
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#ifdef CUDASIM_BF16
#include <cuda_bf16.h>
#endif
#include <vector_functions.h>
#include <vector_types.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __restrict__
#define CUDASIM 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __constant__ static
// One block runs at a time: its shared memory is static, in a section that the double poisons before each block.
#define __shared__ static __attribute__((section("cudasim_shared")))

#define CS_UNSEEN __attribute__((no_sanitize("thread")))
struct cs_index {
    unsigned x, y, z;
};
struct cs_place {
    cs_index thread, block, block_size, grid_size;
};
extern "C" {
extern cs_place cs_here;
void cs_barrier(void);
void cs_warp(unsigned mask);
uint64_t cs_shuffle(unsigned mask, uint64_t value, int mode, int argument, int width);
unsigned cs_ballot(unsigned mask, int predicate);
void cs_fence(void);
void cs_atomic(const void *p, size_t bytes);
void cs_shared(void *begin, void *end);
void cs_kernel(const char *name, void *function, void (*invoke)(void *, const unsigned char *), int count,
               const uint16_t *size, const uint16_t *align, const uint8_t *pointer);
}
#define threadIdx (cs_here.thread)
#define blockIdx  (cs_here.block)
#define blockDim  (cs_here.block_size)
#define gridDim   (cs_here.grid_size)
static const int warpSize = 32;

// ---- waiting and exchanging ----
static inline void __syncthreads()
{
    cs_barrier();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    cs_warp(mask);
}
static inline void __threadfence()
{
    cs_fence();
}
static inline void __threadfence_block() {}
static inline unsigned __activemask()
{
    return 0xffffffffu;
}
template <class T> static inline CS_UNSEEN T cs_exchange(unsigned mask, T value, int mode, int argument, int width)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = cs_shuffle(mask, bits, mode, argument, width);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32)
{
    return cs_exchange(mask, value, 0, lane, width);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    return cs_exchange(mask, value, 1, int(by), width);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
    return cs_exchange(mask, value, 2, int(by), width);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32)
{
    return cs_exchange(mask, value, 3, with, width);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    return cs_ballot(mask, predicate);
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return cs_ballot(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return cs_ballot(mask, !predicate) == 0;
}

// ---- atomics: the double runs one thread at a time, so plain code is atomic; the access itself is seen as one ----
#define CS_ATOMIC(NAME, RESULT)                                                                                        \
    template <class T> static CS_UNSEEN __attribute__((noinline)) T NAME(T *p, std::common_type_t<T> v)                \
    {                                                                                                                  \
        cs_atomic(p, sizeof *p);                                                                                       \
        T old = *p;                                                                                                    \
        *p = RESULT;                                                                                                   \
        return old;                                                                                                    \
    }
CS_ATOMIC(atomicAdd, T(old + v))
CS_ATOMIC(atomicSub, T(old - v))
CS_ATOMIC(atomicMax, v > old ? v : old)
CS_ATOMIC(atomicMin, v < old ? v : old)
CS_ATOMIC(atomicExch, v)
CS_ATOMIC(atomicAnd, T(old &v))
CS_ATOMIC(atomicOr, T(old | v))
CS_ATOMIC(atomicXor, T(old ^ v))
template <class T>
static CS_UNSEEN __attribute__((noinline)) T atomicCAS(T *p, std::common_type_t<T> compare, std::common_type_t<T> v)
{
    cs_atomic(p, sizeof *p);
    T old = *p;
    if (old == compare)
        *p = v;
    return old;
}

// ---- arithmetic that NVRTC has built in ----
#define __expf(a)    expf(a) // the host's headers declare functions of these names
#define __logf(a)    logf(a)
#define __powf(a, b) powf(a, b)
#define __log2f(a)   log2f(a)
#define __sinf(a)    sinf(a)
#define __cosf(a)    cosf(a)
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
template <class A, class B> static inline std::common_type_t<A, B> min(A a, B b)
{
    return a < b ? a : b;
}
template <class A, class B> static inline std::common_type_t<A, B> max(A a, B b)
{
    return a > b ? a : b;
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float a)
{
    return sqrtf(a);
}
static inline float __frcp_rn(float a)
{
    return 1.0f / a;
}
static inline float rsqrtf(float a)
{
    return 1.0f / sqrtf(a);
}
static inline float __frsqrt_rn(float a)
{
    return 1.0f / sqrtf(a);
}
static inline float __saturatef(float a)
{
    return a < 0 ? 0 : a > 1 ? 1 : a;
}
static inline int __float2int_rn(float a)
{
    return int(nearbyintf(a));
}
static inline int __float2int_rd(float a)
{
    return int(floorf(a));
}
static inline float __int2float_rn(int a)
{
    return float(a);
}
static inline float __uint2float_rn(unsigned a)
{
    return float(a);
}
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return unsigned(uint64_t(a) * b >> 32);
}
static inline int __mulhi(int a, int b)
{
    return int(int64_t(a) * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline int __popc(unsigned a)
{
    return __builtin_popcount(a);
}
static inline int __clz(int a)
{
    return a ? __builtin_clz(unsigned(a)) : 32;
}
static inline int __ffs(int a)
{
    return __builtin_ffs(a);
}
template <class To, class From> static inline CS_UNSEEN To cs_bits(From from)
{
    To to;
    static_assert(sizeof to == sizeof from, "same size");
    memcpy(&to, &from, sizeof to);
    return to;
}
static inline unsigned __float_as_uint(float a)
{
    return cs_bits<unsigned>(a);
}
static inline int __float_as_int(float a)
{
    return cs_bits<int>(a);
}
static inline float __uint_as_float(unsigned a)
{
    return cs_bits<float>(a);
}
static inline float __int_as_float(int a)
{
    return cs_bits<float>(a);
}

// ---- registration: sizes and pointers come from the function's type, so no second description can be wrong ----
template <class... A> struct cs_registration {
    template <class T> static CS_UNSEEN T take(const unsigned char *p)
    {
        T value;
        memcpy(&value, p, sizeof value);
        return value;
    }
    template <size_t... I>
    static CS_UNSEEN void call(void (*function)(A...), const unsigned char *arguments, std::index_sequence<I...>)
    {
        const size_t size[] = {sizeof(A)..., 0}, align[] = {alignof(A)..., 1};
        size_t offset[sizeof...(A) + 1], next = 0;
        for (size_t i = 0; i < sizeof...(A); i++) {
            offset[i] = next = (next + align[i] - 1) / align[i] * align[i];
            next += size[i];
        }
        (void)offset;
        function(take<A>(arguments + offset[I])...);
    }
    static CS_UNSEEN void invoke(void *function, const unsigned char *arguments)
    {
        call((void (*)(A...))function, arguments, std::index_sequence_for<A...>());
    }
    cs_registration(const char *name, void (*function)(A...))
    {
        static const uint16_t size[] = {uint16_t(sizeof(A))..., 0}, align[] = {uint16_t(alignof(A))..., 0};
        static const uint8_t pointer[] = {uint8_t(std::is_pointer<A>::value)..., 0};
        cs_kernel(name, (void *)function, invoke, int(sizeof...(A)), size, align, pointer);
    }
};
template <class... A> cs_registration(const char *, void (*)(A...)) -> cs_registration<A...>;
#define CUDASIM_KERNEL(name) static cs_registration cs_registration_##name(#name, name);
extern "C" char __start_cudasim_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cudasim_shared[] __attribute__((weak, visibility("hidden")));
static struct cs_shared_section {
    cs_shared_section()
    {
        if (__start_cudasim_shared)
            cs_shared(__start_cudasim_shared, __stop_cudasim_shared);
    }
} cs_shared_section_;
