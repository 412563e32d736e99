#!/bin/bash
# cuda_ranks_schedules.t: as cuda_ranks.t, in 4 stages on 4 ranks and on 2, with each schedule; gpipe slices minibatches, features_replay makes values again.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

small=(--set train.batch=4 --set 'train.data=digits(train = 32, test = 10)' --set train.test_every=3 --set 'pipeline.registers=ppv(1, 2, 3)')
orders=("4:eager" "4:lazy 2:random:1" "4:random:2" "4:lazy" "2:lazy" "4:random:3" "2:eager")
i=0
for schedule in sequential stale stale_1f1b pipedream 'hybrid(stale, steps = 3, then = sequential)' 'gpipe(microbatches = 2)' features_replay; do
    build lenet5 "$ROOT/examples/lenet5.pnet" "${small[@]}" --set "pipeline.schedule=$schedule"
    compare_ranks "lenet5, 4 stages, $schedule" lenet5 5 "${orders[i]}"
    i=$((i + 1))
done
done_testing
