#!/bin/bash
# cuda_build_bf16.t: what cuda_build.t asks of every example in f32, with precision = bf16: gcc -Werror, no spills, registers, and that cuDNN
# accepts every convolution and dense layer in bf16 for an A100, an H200 and a B200; bias and relu are left to kernels.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/build.sh
. "$(dirname "$0")/cuda/build.sh"
# shellcheck disable=SC2034 # of build.sh
fuses=0
for net in lenet5 cifar_quick alexnet vgg16 resnet; do
    example $net "$ROOT/examples/$net.pnet" --set train.precision=bf16
done
example zoo "$ROOT/tests/cuda/zoo.pnet" --set train.precision=bf16
done_testing
