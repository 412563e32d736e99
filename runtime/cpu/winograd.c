/* winograd.c: forward and backward_data; see winograd.h. */
#include <string.h>

#include "winograd_tile.h"

/* Tiles of a block: their sums are in registers all at once. */
enum { TILES = 16, RESULT_STRIDE = TILES * LANES + LANES }; /* a line more: points must not share sets of the cache */

const float winograd_zeros[SIDE * WINOGRAD_LANES] __attribute__((aligned(64))) = {0};

bool winograd_wins(const winograd16 *p)
{
#ifdef __AVX512F__
    const int64_t rows = (p->out_height + STEP - 1) / STEP, columns = (p->out_width + STEP - 1) / STEP;
    return p->images * rows * columns >= 16 && 2 * p->out_height * p->out_width >= STEP * STEP * rows * columns;
#else
    (void)p;
    return false;
#endif
}

/* ---- weights: U = G g G^T, as [to / 16][36][from][16 to], from and to the channels of the convolution's sides ---- */
int64_t winograd_weights_floats(const winograd16 *p)
{
    return POINTS * p->in * p->out * LANES * LANES;
}

INLINE void weights_of_line(vector g0, vector g1, vector g2, vector *to)
{
    const vector even = (g0 + g2) * all_of(-1.0f / 6), odd = g1 * all_of(-1.0f / 6);
    const vector a = multiply_add(all_of(1.0f / 24), g0, g2 * all_of(1.0f / 6)), b = g1 * all_of(1.0f / 12);
    to[0] = g0 * all_of(0.25f);
    to[1] = even + odd;
    to[2] = even - odd;
    to[3] = a + b;
    to[4] = a - b;
    to[5] = g2;
}

/* g: 9 vectors, `step` floats apart. */
INLINE void transform_weights(const float *g, int64_t step, float *to, int64_t stride)
{
    vector line[3][SIDE];
    for (int j = 0; j < 3; j++)
        weights_of_line(AT(g + j * step), AT(g + (3 + j) * step), AT(g + (6 + j) * step), line[j]);
    for (int i = 0; i < SIDE; i++) {
        vector u[SIDE];
        weights_of_line(line[0][i], line[1][i], line[2][i], u);
        for (int j = 0; j < SIDE; j++)
            PUT(to + (i * SIDE + j) * stride) = u[j];
    }
}

void winograd_weights(const winograd16 *p, bool backward, const float *w, float *transformed)
{
    enum { BLOCK = LANES * LANES };
    const int64_t from_blocks = backward ? p->out : p->in, stride = from_blocks * BLOCK;
    float turned[9 * BLOCK] __attribute__((aligned(64)));
    for (int64_t o = 0; o < p->out; o++)
        for (int64_t i = 0; i < p->in; i++) {
            const float *g = w + (o * p->in + i) * 9 * BLOCK;
            const int64_t from = backward ? o : i, to = backward ? i : o;
            if (backward) { /* by 180 degrees, channels changed places */
                for (int k = 0; k < 9; k++)
                    for (int a = 0; a < LANES; a++)
                        for (int b = 0; b < LANES; b++)
                            turned[(8 - k) * BLOCK + b * LANES + a] = g[k * BLOCK + a * LANES + b];
                g = turned;
            }
            float *u = transformed + (to * POINTS * from_blocks + from) * BLOCK;
            for (int c = 0; c < LANES; c++)
                transform_weights(g + c * LANES, BLOCK, u + c * LANES, stride);
        }
}

/* ---- a block of tiles ---- */
int64_t winograd_room_floats(const winograd16 *p, bool backward)
{
    const int64_t blocks = backward ? p->out : p->in;
    return POINTS * (blocks * TILES * LANES + LANES) + POINTS * RESULT_STRIDE;
}

/* m[t] = the sum over channels c of v[t][c] u[c], for `tiles` tiles of one point. */
INLINE void multiply_tiles(const float *v, const float *u, int64_t blocks, float *m, const int tiles)
{
    vector sum[TILES];
    UNROLL for (int t = 0; t < tiles; t++) sum[t] = (vector){0};
    for (int64_t b = 0; b < blocks; b++, v += TILES * LANES)
        for (int c = 0; c < LANES; c++, u += LANES) {
            const vector weight = AT(u);
            UNROLL for (int t = 0; t < tiles; t++) sum[t] = multiply_add(all_of(v[t * LANES + c]), weight, sum[t]);
        }
    UNROLL for (int t = 0; t < tiles; t++) PUT(m + t * LANES) = sum[t];
}

/* What is fetched meanwhile: some channels of x of the next block of tiles, and where this one's results go. */
typedef struct {
    const float *x[TILES], *y[TILES];
    int64_t x_first, x_end, x_plane, x_width, y_plane, y_width; /* blocks of channels; floats; pixels */
} ahead;

INLINE void fetch(const ahead *next, int64_t block, int point)
{
    if (point < TILES)
        for (int64_t b = next->x_first; b < next->x_end; b++)
            fetch_pixels(next->x[point] + b * next->x_plane, next->x_width, false);
    else if (point < 2 * TILES)
        fetch_pixels(next->y[point - TILES] + block * next->y_plane, next->y_width, true);
}

INLINE void multiply_points(const float *v, const float *u, int64_t blocks, float *m, const ahead *next, int64_t block,
                            const int tiles)
{
    const int64_t point = blocks * TILES * LANES + LANES, weights = blocks * LANES * LANES;
    for (int i = 0; i < POINTS; i++) {
        multiply_tiles(v + i * point, u + i * weights, blocks, m + i * RESULT_STRIDE, tiles);
        fetch(next, block, i);
    }
}

static void multiply(const float *v, const float *u, int64_t blocks, float *m, const ahead *next, int64_t block,
                     int64_t tiles)
{
    if (tiles > 12)
        multiply_points(v, u, blocks, m, next, block, 16);
    else if (tiles > 8)
        multiply_points(v, u, blocks, m, next, block, 12);
    else if (tiles > 4)
        multiply_points(v, u, blocks, m, next, block, 8);
    else
        multiply_points(v, u, blocks, m, next, block, 4);
}

/* ---- A^T m A: 36 points into 4x4 outputs ---- */
INLINE void outputs_of_line(const vector *m, vector *to)
{
    const vector two = all_of(2), four = all_of(4), eight = all_of(8);
    const vector a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    to[0] = m[0] + a + c;
    to[1] = multiply_add(two, d, b);
    to[2] = multiply_add(four, c, a);
    to[3] = multiply_add(eight, d, b + m[5]);
}

INLINE vector positive(vector x)
{
    typedef int32_t mask __attribute__((vector_size(64)));
    return (vector)((mask)x & (x > (vector){0}));
}

/* Into y, `rows` by `columns` of them, width pixels a row. */
INLINE void outputs_of(const float *m, float *y, int64_t width, int64_t rows, int64_t columns, vector bias,
                       const bool relu, const bool whole)
{
    vector part[SIDE][STEP];
    UNROLL for (int j = 0; j < SIDE; j++)
    {
        vector column[SIDE];
        UNROLL for (int i = 0; i < SIDE; i++) column[i] = AT(m + (i * SIDE + j) * RESULT_STRIDE);
        outputs_of_line(column, part[j]);
    }
    UNROLL for (int i = 0; i < STEP; i++)
    {
        vector row[SIDE], result[STEP];
        UNROLL for (int j = 0; j < SIDE; j++) row[j] = part[j][i];
        outputs_of_line(row, result);
        UNROLL for (int j = 0; j < STEP; j++)
        {
            const vector value = result[j] + bias;
            if (whole || (i < rows && j < columns))
                PUT(y + (i * width + j) * LANES) = relu ? positive(value) : value;
        }
    }
}

/* The sizes of one convolution: of the forward's, or of that which gives gx. */
typedef struct {
    int64_t from, to, height, width, out_height, out_width, pad, rows, columns;
} sides;
static sides sides_of(const winograd16 *p, bool backward)
{
    sides s = backward ? (sides){p->out, p->in, p->out_height, p->out_width, p->height, p->width, 2 - p->pad, 0, 0}
                       : (sides){p->in, p->out, p->height, p->width, p->out_height, p->out_width, p->pad, 0, 0};
    s.rows = (s.out_height + STEP - 1) / STEP;
    s.columns = (s.out_width + STEP - 1) / STEP;
    return s;
}

static void put_tile(const sides *s, const tile *at, int64_t block, const float *m, vector bias, bool relu, float *to)
{
    const int64_t top = at->row * STEP, left = at->column * STEP;
    const int64_t rows = s->out_height - top, columns = s->out_width - left;
    float *y = to + (((at->image * s->to + block) * s->out_height + top) * s->out_width + left) * LANES;
    if (rows < STEP || columns < STEP)
        outputs_of(m, y, s->out_width, rows, columns, bias, relu, false);
    else if (relu)
        outputs_of(m, y, s->out_width, STEP, STEP, bias, true, true);
    else
        outputs_of(m, y, s->out_width, STEP, STEP, bias, false, true);
}

void winograd_convolve(const winograd16 *p, bool backward, const float *from, const float *transformed,
                       const float *bias, float *to, int64_t first, int64_t last, float *room)
{
    const sides s = sides_of(p, backward);
    const int64_t image = s.from * s.height * s.width * LANES, point = s.from * TILES * LANES + LANES;
    const int64_t weights = POINTS * s.from * LANES * LANES;
    const int64_t result = s.to * s.out_height * s.out_width * LANES;
    float *const v = room, *const m = room + POINTS * point;
    ahead next = {.x_plane = s.height * s.width * LANES,
                  .x_width = s.width,
                  .y_plane = s.out_height * s.out_width * LANES,
                  .y_width = s.out_width};
    tile at = {first, 0, 0};
    for (int64_t left = (last - first) * s.rows * s.columns; left > 0; left -= TILES) {
        const int64_t count = left < TILES ? left : TILES;
        const tile begin = at;
        for (int64_t t = 0; t < count; t++, tile_next(&at, s.rows, s.columns))
            points_of_tile(from + at.image * image, s.from, s.height, s.width, at.row * STEP - s.pad,
                           at.column * STEP - s.pad, v + t * LANES, TILES * LANES, point);
        own_pixels(from, image, s.width, 2 - s.pad, at, s.rows, s.columns, TILES, next.x);
        own_pixels(to, result, s.out_width, 0, begin, s.rows, s.columns, TILES, next.y);
        for (int64_t b = 0; b < s.to; b++) {
            const vector added = bias ? AT(bias + b * LANES) : (vector){0};
            next.x_first = s.from * b / s.to;
            next.x_end = s.from * (b + 1) / s.to;
            multiply(v, transformed + b * weights, s.from, m, &next, b, count);
            tile out = begin;
            for (int64_t t = 0; t < count; t++, tile_next(&out, s.rows, s.columns))
                put_tile(&s, &out, b, m + t * LANES, added, p->relu && !backward, to);
        }
    }
}
