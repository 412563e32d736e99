/* zb_h1.c: the order `zb_h1`. As 1f1b_flush, with its backwards split: the input part B goes back at once, the weight
 * part W of stage s comes s microbatches later, so that the later stages, which would end early, still have work while
 * the pipe empties. From forward to weight part S microbatches are in flight at every stage, as at stage 0 of
 * 1f1b_flush. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    const int behind = at.nstages - 1 - at.stage, ahead = behind < at.microbatches ? behind : at.microbatches;
    const int late = at.stage < at.microbatches ? at.stage : at.microbatches; /* weight parts that wait */
    order_add(out, ahead, "F");
    for (int n = 0; n < at.microbatches; n++) {
        order_add(out, n < at.microbatches - ahead, "F");
        order_add(out, 1, "B");
        order_add(out, n >= late, "W");
    }
    order_add(out, late, "W");
    order_add(out, 1, "U");
}

extern const OrderDef order_zb_h1;
const OrderDef order_zb_h1 = {
    .name = "zb_h1",
    .doc = "1f1b_flush with backwards split in input and weight parts: weight parts fill the bubble",
    .source = "Qi et al. 2023 (Zero Bubble Pipeline Parallelism), section 2.1; bubble (S - 1)(F + B - W)",
    .slices = true,
    .order = order,
};
