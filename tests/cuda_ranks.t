#!/bin/bash
# cuda_ranks.t: stages in several processes, a GPU each, NCCL between them (runtime/world, runtime/cuda/exchange.c), under the simulator:
# LeNet-5 in 2 ranks, in eager, lazy and random order: no report, and the losses and tests of target cpu (--exact) within 1e-5; weights and
# checkpoints that rank 0 writes, and what is launched. By each schedule: cuda_matrix_*.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3)
lenet=$ROOT/examples/lenet5.pnet

build lenet5 "$lenet" "${small[@]}"
compare_ranks "lenet5, stale" lenet5 6 "2:eager 2:lazy 2:random:1"
like "$(cat out.0)" '^2 ranks .RANK, WORLD_SIZE.' "rank 0 prints who is where, first"
like "$(cat out.0)" ' 1  .* 1 .* GPU 1, .*0000:02:00' "... with host, stages and device"

# ---- rank 0 writes the files: what a run in one process writes ----
order=random:4
ranks 2 lenet5 --steps 5 --quiet --save two.safetensors --checkpoint two.checkpoint --checkpoint-every 2 --report two.json
is "$codes" "0 0" "weights, checkpoint, report: exit 0"
is "$(cat out.1)" "" "rank 1 prints nothing"
"$ROOT/tests/cudasim/run" --keep=lenet5.kernels lenet5.cuda/kernels.cu lenet5.cuda/lenet5 --steps 5 --quiet --save one.safetensors \
    --checkpoint one.checkpoint --report one.json >log 2>&1
cmp -s one.safetensors two.safetensors
ok $? "the weights of two ranks are those of one process, bit for bit"
cmp -s one.checkpoint two.checkpoint
ok $? "and so is the checkpoint, which training went past"
measured() { python3 -c '
import json, sys
report = json.load(open(sys.argv[1]))
print(report["traffic_bytes"], [(s["staleness"], s["ring"], s["staleness_mean"]) for s in report["stages"]])' "$1"; }
is "$(measured two.json)" "$(measured one.json)" "staleness, rings and traffic of the report"
ranks 2 lenet5 --steps 7 --quiet --resume two.checkpoint --metrics two.jsonl
"$ROOT/tests/cudasim/run" --keep=lenet5.kernels lenet5.cuda/kernels.cu lenet5.cuda/lenet5 --steps 7 --quiet --resume one.checkpoint \
    --metrics one.jsonl >log 2>&1
losses() { grep -o '"[a-z_]*loss":[^,]*' "$1"; }
is "$(losses two.jsonl)" "$(losses one.jsonl)" "resumed by two ranks: the bits of one process"

# ---- one grouped exchange a round, in the graph of a step ----
stats=stats
ranks 2 lenet5 --steps 40 --quiet --eval-every 0
stats=
is "$codes" "0 0" "40 steps: exit 0"
count() { awk -v name="$1" '$1 == "call" && $2 == name { print $3 }' stats.0; }
note "exchanges run: $(awk '$1 == "ran" && $2 == "nccl" { print $3 }' stats.0); captured: $(count ncclGroupStart); graphs: $(count cudaGraphLaunch)"
[ "$(count ncclGroupStart)" -lt 25 ] && [ "$(awk '$1 == "ran" && $2 == "nccl" { print $3 }' stats.0)" -ge 40 ]
ok $? "exchanges are captured once for each combination of slots, and launched with the steps' graphs"
done_testing
