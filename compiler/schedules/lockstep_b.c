/* lockstep_b.c: the order `lockstep_b`. Backward first in a cycle equals one warm-up forward less. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    const int ahead = 2 * (at.nstages - 1 - at.stage) - 1;
    out->warmup = ahead > 0 ? ahead : 0;
    order_add(out, at.microbatches, "FB");
    order_add(out, 1, "U");
}

extern const OrderDef order_lockstep_b;
const OrderDef order_lockstep_b = {
    .name = "lockstep_b",
    .doc = "lockstep with the backward first in a cycle: one less staleness",
    .source = "Zhang and Abdelrahman 2021, section 3, the two halves of a cycle exchanged",
    .order = order,
};
