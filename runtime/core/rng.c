/* Counter-based random numbers: each is a function of a key and a counter, so no order of calls, number of stages or
 * threads changes what a run draws. Sources: the mixing step is splitmix64's finaliser (Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014); normal numbers by Box and Muller (1958); the shuffle is a
 * Feistel network of the next even number of bits, walked until it falls below n (Black and Rogaway, "Ciphers with
 * arbitrary finite domains", CT-RSA 2002). */
#include <assert.h>
#include <math.h>

#include "rt.h"

static const uint64_t golden = 0x9e3779b97f4a7c15u;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The key is mixed first: keys that are close, as seeds 1 and 2, share no stretch of their sequences. */
uint64_t pn_random(uint64_t key, uint64_t counter)
{
    return mix(mix(key + golden) + (counter + 1) * golden);
}

double pn_uniform(uint64_t key, uint64_t counter)
{
    return (double)(pn_random(key, counter) >> 11) * 0x1p-53;
}

/* Counters 2c and 2c + 1 give the two uniform numbers of normal number c. */
double pn_normal(uint64_t key, uint64_t counter)
{
    const double pi = 3.14159265358979323846;
    double radius = 1.0 - pn_uniform(key, 2 * counter); /* (0, 1]: log is finite */
    double angle = 2.0 * pi * pn_uniform(key, 2 * counter + 1);
    return sqrt(-2.0 * log(radius)) * cos(angle);
}

/* FNV-1a over the name, then mixed with the seed. */
uint64_t pn_key(uint64_t seed, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const unsigned char *c = (const unsigned char *)name; *c; c++)
        hash = (hash ^ *c) * 0x100000001b3u;
    return mix(hash + mix(seed + golden));
}

enum { ROUNDS = 4 };

static uint64_t feistel(uint64_t key, uint64_t x, int half)
{
    uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t next = left ^ (pn_random(key + round, right) & mask);
        left = right;
        right = next;
    }
    return (left << half) | right;
}

int pn_shuffle_half(int64_t n)
{
    int half = 1;
    while (half < 31 && (INT64_C(1) << (2 * half)) < n)
        half++;
    return half;
}

int64_t pn_shuffled(uint64_t seed, int64_t epoch, int64_t index, int64_t n)
{
    assert(0 <= index && index < n);
    const int half = pn_shuffle_half(n);
    uint64_t key = pn_random(pn_key(seed, "shuffle"), (uint64_t)epoch);
    uint64_t x = (uint64_t)index;
    do
        x = feistel(key, x, half);
    while (x >= (uint64_t)n); /* at most 4 n positions: 4 walks on average */
    return (int64_t)x;
}
