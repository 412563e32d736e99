/* Random crops and mirror images of training samples. What happens to sample i of minibatch n is a function of (seed,
 * n, i) only: no stage, thread, cut or transport has a part in it, and all inputs of the sample agree. */
#include <string.h>

#include "data/data.h"

/* The crop: `crop` black (raw 0) pixels are laid around the image, and a window of its own size is cut out where a
 * uniform draw says; then a fair coin mirrors the columns. That is PyTorch's RandomCrop(size, padding = crop) and
 * RandomHorizontalFlip() before ToTensor and Normalize. */
pn_move pn_move_of(const pn_dataset *data, uint64_t seed, int64_t n, int64_t i)
{
    uint64_t bits = pn_random(pn_random(pn_key(seed, "augment"), (uint64_t)n), (uint64_t)i);
    uint64_t places = 2 * (uint64_t)data->crop + 1;
    return (pn_move){
        .down = (int64_t)((bits >> 40) * places >> 24) - data->crop,
        .right = (int64_t)((bits >> 16 & 0xffffff) * places >> 24) - data->crop,
        .mirror = data->flip && (bits & 1),
    };
}

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* to[x] = last[-x], eight bytes at a time. */
static void reverse(const uint8_t *restrict last, int64_t count, uint8_t *restrict to)
{
    int64_t x = 0;
    for (; x + 8 <= count; x += 8) {
        uint64_t eight;
        memcpy(&eight, last - x - 7, sizeof eight);
        eight = __builtin_bswap64(eight);
        memcpy(to + x, &eight, sizeof eight);
    }
    for (; x < count; x++)
        to[x] = last[-x];
}

/* Column x of the result is column x + right of the image; mirrored: column width - 1 - x + right. */
static void move_row_bytes(pn_move move, int64_t width, const uint8_t *restrict from, uint8_t *restrict to)
{
    int64_t shift = move.mirror ? -move.right : move.right;
    int64_t first = clamp(-shift, 0, width), end = clamp(width - shift, first, width);
    for (int64_t x = 0; x < first; x++)
        to[x] = 0;
    if (move.mirror)
        reverse(from + width - 1 - first - shift, end - first, to + first);
    else
        memcpy(to + first, from + (end > first ? first + shift : 0), (size_t)(end - first));
    for (int64_t x = end; x < width; x++)
        to[x] = 0;
}

static void move_row_values(pn_move move, int64_t width, const float *restrict from, float *restrict to)
{
    int64_t shift = move.mirror ? -move.right : move.right;
    for (int64_t x = 0; x < width; x++) {
        int64_t at = move.mirror ? width - 1 - x - shift : x + shift;
        to[x] = at >= 0 && at < width ? from[at] : 0.0f;
    }
}

void pn_move_sample(const pn_dataset *data, pn_move move, int64_t sample, void *to)
{
    const int64_t height = data->height, width = data->width, rows = data->channels * height;
    const int64_t item = data->train_pixels ? 1 : (int64_t)sizeof(float);
    for (int64_t row = 0; row < rows; row++) {
        int64_t y = row % height + move.down;
        int64_t from = (sample * rows + row + move.down) * width;
        if (y < 0 || y >= height)
            memset((char *)to + row * width * item, 0, (size_t)(width * item));
        else if (data->train_pixels)
            move_row_bytes(move, width, data->train_pixels + from, (uint8_t *)to + row * width);
        else
            move_row_values(move, width, data->train_values + from, (float *)to + row * width);
    }
}
