/* host.c: what a target whose memory is the host's provides: a step is done when its function returns, a slot needs no
 * more than the transport's locks, minibatches are gathered by data/. Linked into the libraries of ref and cpu. */
#include "rt.h"

const bool pn_target_gathers = false;

void pn_target_open(pn_run *run)
{
    (void)run;
}

void pn_target_finish(pn_stage *stage)
{
    (void)stage;
}

void pn_target_run(pn_stage *stage, pn_run_kind kind, void (*step)(pn_stage *stage, int64_t n), int64_t n)
{
    (void)kind;
    step(stage, n);
}

bool pn_target_update(pn_stage *stage, const float *w, float *next, float *version)
{
    (void)stage, (void)w, (void)next, (void)version;
    return false;
}

bool pn_target_ahead(pn_stage *stage, const float *w, bool backward, float *to)
{
    (void)stage, (void)w, (void)backward, (void)to;
    return false;
}

bool pn_target_back(pn_stage *stage, const float *w, double times, float *to)
{
    (void)stage, (void)w, (void)times, (void)to;
    return false;
}

bool pn_target_scale(pn_stage *stage, double factor)
{
    (void)stage, (void)factor;
    return false;
}

bool pn_target_sum(pn_stage *stage, int64_t slice, int64_t slices)
{
    (void)stage, (void)slice, (void)slices;
    return false;
}

/* Weights have no masters. */
void pn_target_copy(pn_stage *stage, float *version)
{
    (void)stage, (void)version;
}

bool pn_target_input(pn_stage *stage, int64_t n, int input, bool test, void *to)
{
    (void)stage, (void)n, (void)input, (void)test, (void)to;
    return false;
}

const bool pn_target_ranks = false;
const bool pn_target_engines = false;

void pn_target_describe(const pn_run *run, const char **device, const char **identity)
{
    (void)run;
    *device = *identity = "";
}

void pn_target_make_id(pn_run *run, char *id)
{
    (void)run, (void)id;
}

bool pn_target_connect(pn_run *run, const char *id, int rank, int size)
{
    (void)run, (void)id, (void)rank, (void)size;
    return false;
}

void pn_target_exchange(pn_stage *stage, const pn_transfer *transfer, int count, bool with_next)
{
    (void)stage, (void)transfer, (void)count, (void)with_next;
}

void pn_target_pace(pn_stage *stage, int64_t round)
{
    (void)stage, (void)round;
}

void pn_target_abort(pn_run *run)
{
    (void)run;
}

void pn_target_channel(pn_stage *stage, pn_channel *channel, int64_t n, pn_handover what)
{
    (void)stage, (void)channel, (void)n, (void)what;
}
