/* input.cuh: which minibatch a step is of, and its samples. */

/* What differs from step to step travels in the parameters of these two, which a launch copies: no host memory has to
 * wait, and everything else of a step is fixed. */
KERNEL set_minibatch(bits_t *to, bits_t minibatch)
{
    if (threadIdx.x == 0)
        *to = minibatch;
}

/* Which sample, and how far it is moved (runtime/data/augment.c). As cuda_pick of cuda.h. */
struct pick_t {
    int sample;
    short down, right;
    int mirror;
};
struct picks_t {
    pick_t pick[THREADS];
};
KERNEL set_picks(pick_t *to, picks_t picks, int count)
{
    if ((int)threadIdx.x < count)
        to[threadIdx.x] = picks.pick[threadIdx.x];
}

/* Samples are [channel][height][width]; `to` has the channels last, or is plain. As cuda_images of cuda.h. */
struct images_t {
    int batch, channels, height, width, channels_last;
    float scale[8], shift[8];
};
template <class T>
__device__ void gather(float *to, const T *samples, const pick_t *picks, const images_t &all)
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
KERNEL gather_bytes(float *to, const byte_t *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_values(float *to, const float *samples, const pick_t *picks, images_t all)
{
    gather(to, samples, picks, all);
}
KERNEL gather_labels(int *to, const unsigned short *labels, const pick_t *picks, int batch)
{
    const int i = thread_index();
    if (i < batch)
        to[i] = labels[picks[i].sample];
}
