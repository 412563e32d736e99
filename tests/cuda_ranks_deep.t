#!/bin/bash
# cuda_ranks_deep.t: a pipeline so deep that the middle one of three ranks has more exchanges than the table of them: registers of 23 and
# 13 slots, gradients of 2, are 598 combinations, the table has 512. The losses are those of target cpu to the end.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

cat >deep.pnet <<'END'
network deep {
    input image: f32[1, 28, 28]
    input label: class[10]
    x = image |> conv(2, kernel = 7, stride = 7)
    for i in 0..14 { x = x |> conv(2, kernel = 1) |> relu }
    loss softmax_cross_entropy(linear(x, 10), label)
}
train {
    data = digits(train = 32, test = 8)
    batch = 2
    lr = constant(0.001)
    test_every = 0
}
pipeline { registers = ppv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) }
END
build deep deep.pnet --set train.steps=640
grep -q '23 slots' deep.cuda/stage5.c && grep -q '13 slots' deep.cuda/stage10.c
ok $? "rank 1 takes 23 slots and gives 13"
stats=stats
compare_ranks "16 stages" deep 640 3:eager
[ "$(awk '$1 == "call" && $2 == "cudaGraphExecDestroy" { print $3 }' stats.1)" -gt 50 ]
ok $? "and some of its graphs were of a round alone"
done_testing
