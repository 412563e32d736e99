/* one_f_one_b.c: the order `1f1b`. Stage s is S-1-s forwards ahead of its backwards. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    out->warmup = at.nstages - 1 - at.stage;
    order_add(out, at.microbatches, "FB");
    order_add(out, 1, "U");
}

extern const OrderDef order_one_f_one_b;
const OrderDef order_one_f_one_b = {
    .name = "1f1b",
    .doc = "one forward, one backward, as soon as each can run: half the staleness of lockstep",
    .source = "Narayanan et al. 2019 (PipeDream, SOSP), section 3.2",
    .order = order,
};
