/* lockstep_b.c: the order `lockstep_b`. Backward first in a cycle equals one warm-up forward less. */
#include "order.h"

static void order(int stage, int nstages, StageOrder *out)
{
    const int ahead = 2 * (nstages - 1 - stage) - 1;
    *out =
        (StageOrder){.warmup = ahead > 0 ? ahead : 0, .body = {STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE}, .nbody = 3};
}

extern const OrderDef order_lockstep_b;
const OrderDef order_lockstep_b = {
    .name = "lockstep_b",
    .doc = "lockstep with the backward first in a cycle: one less staleness",
    .source = "Zhang and Abdelrahman 2021, section 3, the two halves of a cycle exchanged",
    .order = order,
};
