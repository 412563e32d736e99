#!/bin/bash
# cuda_matrix_lenet_2.t: LeNet-5 for target cuda in 1 stage and in 2, by sequential, stale, stale_1f1b, pipedream and hybrid, with
# all stages on one GPU and with a rank and a GPU for each, under the simulator in eager, lazy and three random orders: no report, and
# the losses and tests of target cpu (--exact) within 1e-5. In 4 stages: cuda_matrix_lenet_4.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
# shellcheck source=tests/cuda/matrix.sh
. "$ROOT/tests/cuda/matrix.sh"

matrix lenet5 "$ROOT/examples/lenet5.pnet" 4 1 'ppv()' --set train.batch=2 --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=4
matrix lenet5 "$ROOT/examples/lenet5.pnet" 6 2 'ppv(1)' --set train.batch=2 --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=4
done_testing
