/* lockstep.c: the order `lockstep`. Stage s is 2(S-1-s) forwards ahead of its backwards. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    out->warmup = 2 * (at.nstages - 1 - at.stage);
    order_add(out, at.microbatches, "FB");
    order_add(out, 1, "U");
}

extern const OrderDef order_lockstep;
const OrderDef order_lockstep = {
    .name = "lockstep",
    .doc = "a cycle is the forward of a new and the backward of an old minibatch in every stage",
    .source = "Zhang and Abdelrahman 2021, section 3: staleness of FS_i is 2(K - i + 1)",
    .order = order,
};
