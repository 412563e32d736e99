/* winograd_gradient.c: backward_weights; see winograd.h.
 *
 * From y = A^T [(G g G^T) (B^T d B)] A follows gg = G^T [the sum over tiles of (A gy A^T) (B^T d B)] G. The bias'
 * gradient is the sum of point (1, 1) of all A gy A^T, where row 1 of A is all ones. */
#include <string.h>

#include "winograd_tile.h"

enum { MOST_TILES = 64, BLOCK = LANES * LANES };

/* Of a block. The sums are read and written once a block: many tiles where they don't stay in the cache. */
static int tiles_of(const winograd16 *p)
{
    const int64_t blocks = p->in * p->out;
    return blocks <= 16 ? 16 : blocks <= 64 ? 32 : MOST_TILES;
}

/* ---- A gy A^T: a tile of 4x4 gradients into 36 points ---- */
INLINE void spread_line(const vector *g, vector *to)
{
    const vector two = all_of(2), four = all_of(4);
    const vector even = g[0] + g[2], odd = g[1] + g[3];
    const vector a = multiply_add(four, g[2], g[0]), b = multiply_add(four, g[3], g[1]);
    to[0] = g[0];
    to[1] = even + odd;
    to[2] = even - odd;
    to[3] = multiply_add(two, b, a);
    to[4] = multiply_add(-two, b, a);
    to[5] = g[3];
}

INLINE void spread(const pixels *p, int last, float *to, int64_t stride)
{
    vector line[STEP][SIDE];
    UNROLL for (int j = 0; j < STEP; j++)
    {
        vector column[STEP];
        UNROLL for (int i = 0; i < STEP; i++) column[i] = j < last ? AT(p->row[i] + j * LANES) : (vector){0};
        spread_line(column, line[j]);
    }
    UNROLL for (int i = 0; i < SIDE; i++)
    {
        vector row[STEP], result[SIDE];
        UNROLL for (int j = 0; j < STEP; j++) row[j] = line[j][i];
        spread_line(row, result);
        UNROLL for (int j = 0; j < SIDE; j++) PUT(to + (i * SIDE + j) * stride) = result[j];
    }
}

static void spread_tile(const winograd16 *p, const float *image, const tile *at, float *to, int64_t block_stride,
                        int64_t stride)
{
    const int64_t plane = p->out_height * p->out_width * LANES;
    for (int64_t b = 0; b < p->out; b++, to += block_stride) {
        const pixels g =
            pixels_of(image + b * plane, p->out_height, p->out_width, at->row * STEP, at->column * STEP, STEP);
        if (g.last == STEP)
            spread(&g, STEP, to, stride);
        else
            spread(&g, g.last, to, stride);
    }
}

/* ---- sums: [36][in / 16][out / 16][16 in][16 out], then of gb [out] ---- */
static int64_t products(const winograd16 *p)
{
    return POINTS * p->in * p->out * BLOCK;
}

int64_t winograd_sums_floats(const winograd16 *p)
{
    return products(p) + p->out * LANES;
}

int64_t winograd_gradient_room_floats(const winograd16 *p)
{
    return POINTS * ((p->in + p->out) * tiles_of(p) * LANES + 2 * LANES);
}

/* m[i][o] += the sum over tiles of v[t][i] g[t][o] */
INLINE void add_products(const float *v, const float *g, int64_t tiles, float *m)
{
    vector sum[LANES];
    UNROLL for (int i = 0; i < LANES; i++) sum[i] = (vector){0};
    for (int64_t t = 0; t < tiles; t++, v += LANES, g += LANES) {
        const vector gradient = AT(g);
        UNROLL for (int i = 0; i < LANES; i++) sum[i] = multiply_add(all_of(v[i]), gradient, sum[i]);
    }
    UNROLL for (int i = 0; i < LANES; i++) PUT(m + i * LANES) = AT(m + i * LANES) + sum[i];
}

void winograd_gradient(const winograd16 *p, const float *x, const float *gy, int64_t first, int64_t last, float *sums,
                       float *room)
{
    const int64_t rows = (p->out_height + STEP - 1) / STEP, columns = (p->out_width + STEP - 1) / STEP;
    const int64_t x_image = p->in * p->height * p->width * LANES;
    const int64_t y_image = p->out * p->out_height * p->out_width * LANES;
    const int tiles = tiles_of(p);
    const int64_t block = tiles * LANES, x_plane = p->height * p->width * LANES;
    const int64_t y_plane = p->out_height * p->out_width * LANES;
    const int64_t v_point = p->in * block + LANES, g_point = p->out * block + LANES;
    const float *next_x[MOST_TILES], *next_gy[MOST_TILES];
    float *const v = room, *const g = room + POINTS * v_point, *const gb = sums + products(p);
    memset(sums, 0, (size_t)winograd_sums_floats(p) * sizeof *sums);
    tile at = {first, 0, 0};
    for (int64_t left = (last - first) * rows * columns; left > 0; left -= tiles) {
        const int64_t count = left < tiles ? left : tiles;
        for (int64_t t = 0; t < count; t++, tile_next(&at, rows, columns)) {
            points_of_tile(x + at.image * x_image, p->in, p->height, p->width, at.row * STEP - p->pad,
                           at.column * STEP - p->pad, v + t * LANES, block, v_point);
            spread_tile(p, gy + at.image * y_image, &at, g + t * LANES, block, g_point);
        }
        own_pixels(x, x_image, p->width, 2 - p->pad, at, rows, columns, tiles, next_x);
        own_pixels(gy, y_image, p->out_width, 0, at, rows, columns, tiles, next_gy);
        float *m = sums;
        for (int k = 0; k < POINTS; k++) {
            const bool fetch_x = k < POINTS / 2; /* then of gy */
            const int step = fetch_x ? k : k - POINTS / 2;
            const int fetch = tiles * step / (POINTS / 2), fetch_end = tiles * (step + 1) / (POINTS / 2);
            for (int64_t i = 0; i < p->in; i++) {
                for (int t = fetch; fetch_x && t < fetch_end; t++)
                    fetch_pixels(next_x[t] + i * x_plane, p->width, false);
                for (int64_t o = 0; o < p->out; o++, m += BLOCK) {
                    add_products(v + k * v_point + i * block, g + k * g_point + o * block, count, m);
                    for (int t = fetch; i == 0 && !fetch_x && t < fetch_end; t++)
                        fetch_pixels(next_gy[t] + o * y_plane, p->out_width, false);
                }
            }
        }
        for (int64_t o = 0; o < p->out; o++) {
            const float *all = g + (SIDE + 1) * g_point + o * block;
            vector sum = {0};
            for (int64_t t = 0; t < count; t++)
                sum += AT(all + t * LANES);
            PUT(gb + o * LANES) = AT(gb + o * LANES) + sum;
        }
    }
}

/* ---- G^T m G ---- */
INLINE void gather_line(const vector *m, vector *to)
{
    const vector sixth = all_of(1.0f / 6);
    const vector a = m[1] + m[2], b = m[2] - m[1], c = m[3] + m[4], d = m[3] - m[4];
    to[0] = multiply_add(all_of(0.25f), m[0], multiply_add(all_of(1.0f / 24), c, -sixth * a));
    to[1] = multiply_add(all_of(1.0f / 12), d, sixth * b);
    to[2] = multiply_add(sixth, c - a, m[5]);
}

static void gather(const float *m, int64_t stride, float *to)
{
    vector part[SIDE][3];
    for (int j = 0; j < SIDE; j++) {
        vector column[SIDE];
        for (int i = 0; i < SIDE; i++)
            column[i] = AT(m + (i * SIDE + j) * stride);
        gather_line(column, part[j]);
    }
    for (int i = 0; i < 3; i++) {
        vector row[SIDE], result[3];
        for (int j = 0; j < SIDE; j++)
            row[j] = part[j][i];
        gather_line(row, result);
        for (int j = 0; j < 3; j++)
            PUT(to + (i * 3 + j) * BLOCK) = result[j];
    }
}

void winograd_gradient_end(const winograd16 *p, float *sums, int parts, float *gw, float *gb)
{
    const int64_t all = winograd_sums_floats(p), stride = p->in * p->out * BLOCK;
    for (int part = 1; part < parts; part++)
        for (int64_t i = 0; i < all; i += LANES)
            PUT(sums + i) = AT(sums + i) + AT(sums + part * all + i);
    for (int64_t i = 0; i < p->in; i++)
        for (int64_t o = 0; o < p->out; o++)
            for (int c = 0; c < LANES; c++)
                gather(sums + (i * p->out + o) * BLOCK + c * LANES, stride,
                       gw + (o * p->in + i) * 9 * BLOCK + c * LANES);
    if (gb)
        memcpy(gb, sums + products(p), (size_t)(p->out * LANES) * sizeof *gb);
}
