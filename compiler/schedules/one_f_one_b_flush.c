/* one_f_one_b_flush.c: the order `1f1b_flush`. As 1f1b within a minibatch, then the pipe empties for the update: stage
 * s holds at most S-s microbatches, however many there are. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    const int behind = at.nstages - 1 - at.stage, ahead = behind < at.microbatches ? behind : at.microbatches;
    order_add(out, ahead, "F");
    order_add(out, at.microbatches - ahead, "FB");
    order_add(out, ahead, "B");
    order_add(out, 1, "U");
}

extern const OrderDef order_one_f_one_b_flush;
const OrderDef order_one_f_one_b_flush = {
    .name = "1f1b_flush",
    .doc = "1f1b over the microbatches of a minibatch, one update: as gpipe, with fewer of them in flight",
    .source = "Narayanan et al. 2021 (PipeDream-2BW, ICML), section 3.3: PipeDream-Flush; DAPPLE",
    .slices = true,
    .order = order,
};
