#!/bin/bash
# cuda_ranks_schedules.t: as cuda_ranks.t, LeNet-5 in 4 stages, what the matrix (cuda_matrix_lenet_4.t) leaves out: several stages in a rank,
# and schedules that slice minibatches (gpipe) or make values again (features_replay).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

small=(--set train.batch=4 --set 'train.data=digits(train = 32, test = 10)' --set train.test_every=3 --set 'pipeline.registers=ppv(1, 2, 3)')
lenet=$ROOT/examples/lenet5.pnet
build lenet5 "$lenet" "${small[@]}"
compare_ranks "lenet5, 4 stages, stale" lenet5 5 "2:random:1"
build lenet5 "$lenet" "${small[@]}" --set 'pipeline.schedule=hybrid(stale, steps = 3, then = sequential)'
compare_ranks "lenet5, 4 stages, hybrid" lenet5 5 "2:lazy"
build lenet5 "$lenet" "${small[@]}" --set 'pipeline.schedule=gpipe(microbatches = 2)'
compare_ranks "lenet5, 4 stages, gpipe" lenet5 5 "4:random:3 2:lazy"
build lenet5 "$lenet" "${small[@]}" --set pipeline.schedule=features_replay
compare_ranks "lenet5, 4 stages, features_replay" lenet5 5 "2:eager"
done_testing
