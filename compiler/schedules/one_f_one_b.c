/* one_f_one_b.c: the order `1f1b`. Stage s is S-1-s forwards ahead of its backwards. */
#include "order.h"

static void order(int stage, int nstages, StageOrder *out)
{
    *out = (StageOrder){.warmup = nstages - 1 - stage, .body = {STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE}, .nbody = 3};
}

extern const OrderDef order_one_f_one_b;
const OrderDef order_one_f_one_b = {
    .name = "1f1b",
    .doc = "one forward, one backward, as soon as each can run: half the staleness of lockstep",
    .source = "Narayanan et al. 2019 (PipeDream, SOSP), section 3.2",
    .order = order,
};
