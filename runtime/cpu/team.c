/* team.c: see team.h. Parts are fixed, part p to thread p: results do not depend on which thread is quick.
 *
 * GOMP_parallel is what gcc makes of `omp parallel`; clang would make calls of its own OpenMP library instead, beside
 * the one that oneDNN has. */
#include "cpu/team.h"

/* GNU OpenMP's, which the library is linked to; its header is not in every compiler's path. */
extern void omp_set_num_threads(int);
extern void omp_set_dynamic(int);
extern int omp_get_thread_num(void);
extern int omp_get_num_threads(void);
extern void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags);

void team_set(int threads)
{
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
}

static void count_threads(void *data)
{
    if (omp_get_thread_num() == 0)
        *(int *)data = omp_get_num_threads();
}

void team_check(int threads)
{
    int found = 0;
    GOMP_parallel(count_threads, &found, (unsigned)threads, 0);
    if (found < threads)
        pn_fail(NULL, "OpenMP gives a stage %d of the %d threads asked for (OMP_THREAD_LIMIT, OMP_MAX_ACTIVE_LEVELS)",
                found, threads);
}

typedef struct {
    int64_t count, unit, units, parts;
    pn_part_fn *work;
    void *data;
} Split;

static int64_t bound(const Split *s, int64_t part)
{
    const int64_t at = s->units * part / s->parts * s->unit;
    return at < s->count ? at : s->count;
}

static void do_part(void *data)
{
    const Split *s = data;
    for (int64_t part = omp_get_thread_num(); part < s->parts; part += omp_get_num_threads())
        s->work(s->data, bound(s, part), bound(s, part + 1));
}

void team_split(int threads, int64_t count, int64_t unit, pn_part_fn *work, void *data)
{
    Split s = {count, unit, (count + unit - 1) / unit, threads, work, data};
    if (s.units < s.parts)
        s.parts = s.units;
    if (s.parts > 1)
        GOMP_parallel(do_part, &s, (unsigned)s.parts, 0);
    else if (count > 0)
        work(data, 0, count);
}

void pn_target_split(const pn_stage *stage, int64_t count, int64_t unit, pn_part_fn *work, void *data)
{
    team_split(stage->run->threads, count, unit, work, data);
}
