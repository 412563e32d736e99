#!/bin/bash
# cuda_sim.t: LeNet-5 for target cuda, in one to four stages and with each schedule, as it would run on a GPU, under the simulator (tests/cudasim): no report, and the losses,
# tests and weights of target cpu (--exact) within a tolerance, in eager, lazy and random order. Small networks, few steps; the kernels are
# compiled by g++ from the text that NVRTC gets, cuDNN itself accepts each plan, plain C computes it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3)
lenet=$ROOT/examples/lenet5.pnet
compare "lenet5, stale, 2 stages" "$lenet" "eager lazy random:1" 5 "${small[@]}"
for schedule in sequential stale_1f1b pipedream 'hybrid(stale, steps = 3, then = sequential)'; do
    compare "lenet5, $schedule, 2 stages" "$lenet" "random:2" 5 "${small[@]}" --set "pipeline.schedule=$schedule"
done
compare "lenet5, adamw, pipedream" "$lenet" "lazy" 5 "${small[@]}" --set pipeline.schedule=pipedream \
    --set 'train.optimizer=adamw(weight_decay = 0.1)' --set train.lr=0.001
compare "lenet5, stale, 1 stage" "$lenet" "lazy" 4 "${small[@]}" --set 'pipeline.registers=ppv()'
compare "lenet5, pipedream, 4 stages" "$lenet" "lazy random:3" 6 "${small[@]}" --set pipeline.schedule=pipedream \
    --set 'pipeline.registers=ppv(1, 2, 3)'
transport=serial
compare "lenet5, stale, 4 stages, transport serial" "$lenet" "lazy" 5 "${small[@]}" --set 'pipeline.registers=ppv(1, 2, 3)'
done_testing
