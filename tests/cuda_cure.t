#!/bin/bash
# cuda_cure.t: corrections of staleness, and rates that change, on target cuda: weights that look ahead or back are kernels, rates lie on
# the device, some hundred updates at a time. Under the simulator: no report, and the losses and tests of target cpu (--exact) within a
# tolerance.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

lenet=$ROOT/examples/lenet5.pnet
small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3 --set 'pipeline.registers=ppv(1, 2)')
compare "cure = auto" "$lenet" "random:1" 8 "${small[@]}" --set pipeline.cure=auto
compare "discrepancy and warm-up" "$lenet" "random:2" 8 "${small[@]}" --set 'pipeline.cure=(discrepancy, warmup)'
compare "adam, cure = auto" "$lenet" "lazy" 8 "${small[@]}" --set pipeline.cure=auto --set train.optimizer=adam --set train.lr=0.001
compare "hybrid of two cures" "$lenet" "random:3" 9 "${small[@]}" --set pipeline.cure=auto \
    --set 'pipeline.schedule=hybrid(stale, steps = 4, then = stale_1f1b, lr = 0.005)'

cat >line.pnet <<'END'
network line {
    input image: f32[1, 28, 28]
    input label: class[10]
    loss softmax_cross_entropy(image |> flatten |> linear(10), label)
}

train {
    data       = digits(train = 64, test = 4)
    batch      = 4
    optimizer  = sgd(momentum = 0.9)
    lr         = inv(0.01, gamma = 0.01, power = 0.75)
    steps      = 1040
    test_every = 0
}
END
compare "more updates than rates on the device" "$PWD/line.pnet" "eager" 1040
done_testing
