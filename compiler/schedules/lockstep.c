/* lockstep.c: the order `lockstep`. Stage s is 2(S-1-s) forwards ahead of its backwards. */
#include "order.h"

static void order(int stage, int nstages, StageOrder *out)
{
    *out = (StageOrder){
        .warmup = 2 * (nstages - 1 - stage), .body = {STEP_FORWARD, STEP_BACKWARD, STEP_UPDATE}, .nbody = 3};
}

extern const OrderDef order_lockstep;
const OrderDef order_lockstep = {
    .name = "lockstep",
    .doc = "a cycle is the forward of a new and the backward of an old minibatch in every stage",
    .source = "Zhang and Abdelrahman 2021, section 3: staleness of FS_i is 2(K - i + 1)",
    .order = order,
};
