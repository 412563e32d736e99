#!/bin/bash
# cuda_ranks_resnet.t: as cuda_ranks.t, for ResNet-8 with CIFAR's images cropped and mirrored. Other schedules: cuda_matrix_resnet_4.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

mkdir cifar
records() { perl -e 'srand(shift); for (1 .. shift) { print chr(int rand 10), map { chr(int rand 256) } 1 .. 3072 }' "$1" "$2"; }
for i in 1 2 3 4 5; do records "$i" 8 >"cifar/data_batch_$i.bin"; done
records 9 6 >cifar/test_batch.bin
data=$WORK/cifar
small=(-D depth=8 -D rate=0.001 --set train.batch=2 --set train.test_every=2)
build resnet "$ROOT/examples/resnet.pnet" "${small[@]}"
compare_ranks "resnet8, stale" resnet 3 "2:eager"
build resnet "$ROOT/examples/resnet.pnet" "${small[@]}" --set 'pipeline.registers=ppv(2, 4, 6)' --set pipeline.schedule=pipedream
compare_ranks "resnet8, 4 stages, pipedream" resnet 4 "4:random:1"
done_testing
