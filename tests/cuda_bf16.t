#!/bin/bash
# cuda_bf16.t: precision = bf16 under the simulator: its conversions are those of IEEE 754; LeNet-5 trains as on target cpu, which is f32,
# within a tolerance. The same bits in every way, and files: cuda_bf16_bits.t; all ops, and what the plan tells: cuda_bf16_ops.t; a small
# ResNet: cuda_bf16_resnet.t; several ranks: cuda_bf16_ranks.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
lenet=$ROOT/examples/lenet5.pnet
small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3 --set train.lr=0.001)

# ---- the conversions ----
"${CXX:-g++}" -std=c++17 -O1 -Wall -Wextra -Werror -iquote "$ROOT/runtime" -isystem "${CUDA_HOME:-/usr/local/cuda}/include" \
    -o bf16 "$ROOT/tests/cuda/bf16.cpp" >log 2>&1 || note "$(cat log)"
is "$(./bf16)" "right 2097152 wrong 0" "to bf16: the nearest, ties to even, as cuda_bf16.h has it"

# ---- training: a bf16 is off by 0.4 % at most, a loss, the mean of many sums, by less ----
only_cuda=(--set train.precision=bf16) tolerance=1e-2
compare "lenet5, pipedream, adamw, 4 stages" "$lenet" "random:3" 6 "${small[@]}" --set pipeline.schedule=pipedream \
    --set 'pipeline.registers=ppv(1, 2, 3)' --set 'train.optimizer=adamw(weight_decay = 0.1)' --set train.lr=0.0001
compare "lenet5, stale, 2 stages" "$lenet" "eager lazy random:1" 5 "${small[@]}"
compare "lenet5, discrepancy, 3 stages" "$lenet" "random:2" 5 "${small[@]}" --set 'pipeline.registers=ppv(1, 2)' --set pipeline.cure=discrepancy
done_testing
