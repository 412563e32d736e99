#!/bin/bash
# cuda_matrix_lenet_4.t: as cuda_matrix_lenet_2.t, in 4 stages.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
# shellcheck source=tests/cuda/matrix.sh
. "$ROOT/tests/cuda/matrix.sh"

matrix lenet5 "$ROOT/examples/lenet5.pnet" 9 4 'ppv(1, 2, 3)' --set train.batch=2 --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=4
done_testing
