/* sequential.c: the order `sequential`. No warm-up: the registers alone keep the stages in turn. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    order_add(out, at.microbatches, "FB");
    order_add(out, 1, "U");
}

extern const OrderDef order_sequential;
const OrderDef order_sequential = {
    .name = "sequential",
    .doc = "forward, backward, update: one minibatch in the whole pipe",
    .source = "Zhang and Abdelrahman 2021: non-pipelined training",
    .order = order,
};
