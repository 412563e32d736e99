#!/bin/bash
# cuda_bf16_ops.t: precision = bf16 under the simulator: all ops, and what schedules do with weights, as on target cpu within a tolerance;
# bytes and launches as the plan tells them.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/told.sh
. "$ROOT/tests/cuda/told.sh"
zoo=$ROOT/tests/cuda/zoo.pnet
only_cuda=(--set train.precision=bf16)

# ---- training: norms divide by deviations of few samples, which amplifies what is rounded ----
tolerance=1e-2
compare "all ops, stale, 3 stages" "$zoo" "lazy random:1" 5 --set train.lr=0.001
compare "all ops, spectrain, 2 microbatches, again" "$zoo" "random:2" 4 --set train.lr=0.001 \
    --set 'pipeline.schedule=spectrain(microbatches = 2, recompute = yes)'

# ---- the plan ----
both=0
told "all ops, bf16, spectrain, 2 microbatches" "$zoo" 2 $((120 * 786)) --set train.test_every=0 --set train.precision=bf16 \
    --set 'pipeline.schedule=spectrain(microbatches = 2)'
done_testing
