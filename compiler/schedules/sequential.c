/* sequential.c: the order `sequential`. No warm-up: the registers alone keep the stages in turn. */
#include "order.h"

static void order(int stage, int nstages, StageOrder *out)
{
    (void)stage, (void)nstages;
    *out = (StageOrder){.warmup = 0, .body = {STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE}, .nbody = 3};
}

extern const OrderDef order_sequential;
const OrderDef order_sequential = {
    .name = "sequential",
    .doc = "forward, backward, update: one minibatch in the whole pipe",
    .source = "Zhang and Abdelrahman 2021: non-pipelined training",
    .order = order,
};
