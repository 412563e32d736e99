#!/bin/bash
# cuda_sim.t: LeNet-5 for target cuda under the simulator (tests/cudasim), what the matrix of schedules and orders (cuda_matrix_*.t) leaves
# out: another optimiser, transports: no report, and the losses, tests and weights of target cpu (--exact) within a tolerance. Small
# networks, few steps; the kernels are compiled by g++ from the text that NVRTC gets, cuDNN itself accepts each plan, plain C computes it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3)
lenet=$ROOT/examples/lenet5.pnet
compare "lenet5, adamw, pipedream" "$lenet" "lazy" 5 "${small[@]}" --set pipeline.schedule=pipedream \
    --set 'train.optimizer=adamw(weight_decay = 0.1)' --set train.lr=0.001
transport=serial
compare "lenet5, stale, 4 stages, transport serial" "$lenet" "lazy" 5 "${small[@]}" --set 'pipeline.registers=ppv(1, 2, 3)'
done_testing
