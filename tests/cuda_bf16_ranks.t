#!/bin/bash
# cuda_bf16_ranks.t: precision = bf16 with a process for each stage: what NCCL sends is bf16, half the traffic; the weights are those of one
# process, bit for bit.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3 --set train.lr=0.001)
only_cuda=(--set train.precision=bf16) tolerance=1e-2

build lenet5 "$ROOT/examples/lenet5.pnet" "${small[@]}" --set pipeline.schedule=pipedream
compare_ranks "lenet5, pipedream" lenet5 5 "2:eager 2:random:1"
ranks 2 lenet5 --steps 5 --quiet --save two --report two.json
is "$codes" "0 0" "weights and report: exit 0"
"$ROOT/tests/cudasim/run" --keep=lenet5.kernels lenet5.cuda/kernels.cu lenet5.cuda/lenet5 --steps 5 --quiet --save one >log 2>&1
cmp -s one two
ok $? "the weights of two ranks are those of one process, bit for bit"
"$PNETC" plan "$ROOT/examples/lenet5.pnet" --target=cuda --json "${small[@]}" --set pipeline.schedule=pipedream >f32.json
is "$(python3 -c '
import json, sys
f32, bf16 = (json.load(open(path))["traffic_bytes"] for path in sys.argv[1:])
print(f32 / bf16)' f32.json two.json)" "2.0" "half the traffic of f32"
done_testing
