#!/bin/bash
# cuda_matrix_resnet_4.t: as cuda_matrix_resnet_2.t, in 4 stages.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
# shellcheck source=tests/cuda/matrix.sh
. "$ROOT/tests/cuda/matrix.sh"

matrix small_resnet "$ROOT/tests/cuda/small_resnet.pnet" 9 4 'ppv(1, 2, 4)'
done_testing
