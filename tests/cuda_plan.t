#!/bin/bash
# cuda_plan.t: `pnetc plan --target=cuda` tells the bytes that a program takes of the GPU and what it launches for a minibatch: the simulator
# must see just that, in graphs or launched one by one.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

# shellcheck source=tests/cuda/told.sh
. "$ROOT/tests/cuda/told.sh"

zoo=$ROOT/tests/cuda/zoo.pnet
told "all ops, stale" "$zoo" 1 $((120 * 786)) --set train.test_every=0
both=0
told "all ops, spectrain, 2 microbatches, again" "$zoo" 2 $((120 * 786)) --set train.test_every=0 \
    --set 'pipeline.schedule=spectrain(microbatches = 2, recompute = yes)'
told "lenet5, discrepancy" "$ROOT/examples/lenet5.pnet" 1 $((84 * 786)) --set train.batch=8 --set train.test_every=0 \
    --set 'train.data=digits(train = 64, test = 20)' --set 'pipeline.registers=ppv(1, 2)' --set pipeline.cure=discrepancy -Wno-stability
is "$("$PNETC" plan "$zoo" --target=cuda | tail -12)" "$("$PNETC" build "$zoo" --target=cuda --emit-only -o emitted >log && tail -12 emitted/plan.txt)" \
    "plan.txt tells the same"
like "$("$PNETC" plan "$zoo" --target=cuda)" '^ +2 +[0-9]+ +20 +[1-9] +4 +1 ' "the plan tells the launches of a stage"
done_testing
