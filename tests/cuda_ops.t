#!/bin/bash
# cuda_ops.t: networks with every op that target cuda has, and CIFAR's images cropped and mirrored, under the simulator: no report, and
# the losses and tests of target cpu (--exact) within a tolerance.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

compare "all ops, 3 stages" "$ROOT/tests/cuda/zoo.pnet" "lazy random:1" 5

# ---- CIFAR: channels last from planes of bytes, crop and flip ----
mkdir cifar
records() { perl -e 'srand(shift); for (1 .. shift) { print chr(int rand 10), map { chr(int rand 256) } 1 .. 3072 }' "$1" "$2"; }
for i in 1 2 3 4 5; do records "$i" 8 >"cifar/data_batch_$i.bin"; done
records 9 6 >cifar/test_batch.bin
data=$WORK/cifar
compare "resnet8, crop and flip" "$ROOT/examples/resnet.pnet" "random:1" 3 -D depth=8 -D rate=0.001 --set train.batch=4 --set train.test_every=2
done_testing
