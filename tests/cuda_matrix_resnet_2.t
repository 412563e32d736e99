#!/bin/bash
# cuda_matrix_resnet_2.t: a small ResNet, whose skips cross registers, for target cuda in 1 stage and in 2, by sequential, stale, stale_1f1b, pipedream and hybrid, with
# all stages on one GPU and with a rank and a GPU for each, under the simulator in eager, lazy and three random orders: no report, and
# the losses and tests of target cpu (--exact) within 1e-5. In 4 stages: cuda_matrix_resnet_4.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
# shellcheck source=tests/cuda/matrix.sh
. "$ROOT/tests/cuda/matrix.sh"

matrix small_resnet "$ROOT/tests/cuda/small_resnet.pnet" 4 1 'ppv()'
matrix small_resnet "$ROOT/tests/cuda/small_resnet.pnet" 6 2 'ppv(2)'
done_testing
