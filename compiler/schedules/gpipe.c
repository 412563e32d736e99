/* gpipe.c: the order `gpipe`. All forwards of a minibatch, then all its backwards, then the update: the pipe is empty
 * between two minibatches. Backwards ascend here, as in every order (the paper's descend): their sums have one
 * order. */
#include "order.h"

static void order(OrderPlace at, StageOrder *out)
{
    order_add(out, at.microbatches, "F");
    order_add(out, at.microbatches, "B");
    order_add(out, 1, "U");
}

extern const OrderDef order_gpipe;
const OrderDef order_gpipe = {
    .name = "gpipe",
    .doc = "all forwards of the microbatches, then all backwards, one update: no staleness, a flush each minibatch",
    .source = "Huang et al. 2019 (GPipe, NeurIPS), section 2.3; bubble (S - 1) / (M + S - 1)",
    .slices = true,
    .order = order,
};
