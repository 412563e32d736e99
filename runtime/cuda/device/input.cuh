/* input.cuh: which minibatch a step is of, and its samples. All of it is found on the device: a graph that was captured
 * once is launched for every minibatch as it is. A minibatch may be sliced: then numbers are those of microbatches. */

KERNEL set_number(bits_t *to, bits_t number)
{
    if (threadIdx.x == 0)
        *to = number;
}

/* In front of what reads the number. */
KERNEL next_number(bits_t *number)
{
    if (threadIdx.x == 0)
        *number += 1;
}

/* Which sample, and how far it is moved (runtime/data/augment.c). */
struct pick_t {
    int sample;
    short down, right;
    int mirror;
};
/* How samples are drawn. As cuda_sampler of cuda.h. */
struct sampler_t {
    bits_t shuffle, augment;   /* keys of the run's seed */
    long long count, batches;  /* samples, and whole minibatches of them */
    int batch, slice, slices;  /* samples of a minibatch, of a microbatch; microbatches */
    int half;                  /* bits of half a position (runtime/core/rng.c) */
    int crop, flip, moves, _;  /* moves 0: training samples are taken as they are */
};

/* The permutation of runtime/core/rng.c. */
__device__ inline bits_t shuffled(const sampler_t &s, bits_t epoch, bits_t index)
{
    const bits_t key = random_bits(s.shuffle, epoch), mask = (1ull << s.half) - 1;
    bits_t x = index;
    do {
        bits_t left = x >> s.half, right = x & mask;
        for (bits_t round = 0; round < 4; round++) {
            const bits_t next = left ^ (random_bits(key + round, right) & mask);
            left = right;
            right = next;
        }
        x = left << s.half | right;
    } while (x >= (bits_t)s.count);
    return x;
}

KERNEL pick_samples(pick_t *to, const bits_t *number, sampler_t s)
{
    const int i = thread_index();
    if (i >= s.slice)
        return;
    const bits_t n = *number, minibatch = n / s.slices, place = n % s.slices * s.slice + i;
    pick_t pick = {(int)shuffled(s, minibatch / s.batches, minibatch % s.batches * s.batch + place), 0, 0, 0};
    if (s.moves) {
        const bits_t bits = random_bits(random_bits(s.augment, minibatch), place), places = 2ull * s.crop + 1;
        pick.down = (short)((int)((bits >> 40) * places >> 24) - s.crop);
        pick.right = (short)((int)((bits >> 16 & 0xffffff) * places >> 24) - s.crop);
        pick.mirror = s.flip && (bits & 1);
    }
    to[i] = pick;
}

/* A test takes samples in order; its last batch is filled up with sample 0. */
KERNEL pick_in_order(pick_t *to, int first, int count, int slice)
{
    const int i = thread_index();
    if (i < slice)
        to[i] = pick_t{first + i < count ? first + i : 0, 0, 0, 0};
}

/* Samples are [channel][height][width]; `to` has the channels last, or is plain. As cuda_images of cuda.h. */
struct images_t {
    int batch, channels, height, width, channels_last;
    float scale[8], shift[8];
};
template <class T>
__device__ void gather(value_t *to, const T *samples, const pick_t *picks, const images_t &all)
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
KERNEL gather_bytes(value_t *to, const byte_t *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_values(value_t *to, const float *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_labels(int *to, const unsigned short *labels, const pick_t *picks, int batch)
{
    const int i = thread_index();
    if (i < batch)
        to[i] = labels[picks[i].sample];
}
