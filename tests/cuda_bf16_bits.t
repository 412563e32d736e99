#!/bin/bash
# cuda_bf16_bits.t: precision = bf16 under the simulator: the same bits from any number of stages, on one thread, with graphs and without,
# resumed from a checkpoint; files hold f32 masters, which target cpu tests alike.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
lenet=$ROOT/examples/lenet5.pnet
small=(--set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=3 --set train.lr=0.001)
only_cuda=(--set train.precision=bf16) tolerance=1e-2

compare "lenet5, stale, 2 stages" "$lenet" "lazy" 5 "${small[@]}"

# ---- the same bits ----
# trained FOLDER ARGUMENTS...: under the simulator, 6 steps
trained() {
    local folder=$1
    shift
    "$ROOT/tests/cudasim/run" --keep=lenet5.kernels "$folder/kernels.cu" "$folder/lenet5" --quiet --steps 6 "$@" >log 2>&1 || note "$(cat log)"
}
same() { cmp -s "$1" "$2"; ok $? "$3: the same bits"; }
trained lenet5.cuda --save threads --checkpoint half --checkpoint-every 3
trained lenet5.cuda --save serial --transport serial
same threads serial "on one thread"
PN_CUDA_EAGER=1 trained lenet5.cuda --save eager
same threads eager "launched one by one"
trained lenet5.cuda --save resumed --resume half
same threads resumed "from the middle on"
loss() { grep -o '"test_loss":[^,]*' "$1" | tail -1 | cut -d: -f2; }
trained lenet5.cuda --load threads --steps 0 --metrics cuda.jsonl
lenet5.cpu/lenet5 --exact --load threads --steps 0 --metrics cpu.jsonl --quiet >log 2>&1 || note "$(cat log)"

# ---- files: f32 masters, with more digits than a bf16 has, that every target reads ----
is "$(python3 - threads <<'END'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
head = {name: entry for name, entry in json.loads(data[8:8 + size]).items() if name != "__metadata__"}
fine = 0
for entry in head.values():
    begin, end = entry["data_offsets"]
    fine += any(data[8 + size + i] for i in range(begin, end, 4))
print({entry["dtype"] for entry in head.values()}, fine == len(head))
END
)" "{'F32'} True" "weights are saved in f32, not rounded"
note "test loss of the same file: $(loss cpu.jsonl) in f32, $(loss cuda.jsonl) in bf16"
python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not 0 < abs(a - b) < 1e-2 * a)' "$(loss cpu.jsonl)" "$(loss cuda.jsonl)"
ok $? "target cpu tests them as target cuda does, within 1e-2"

# ---- sequential: the order of a minibatch's work is the same, however it is cut ----
compare "lenet5, sequential, 1 stage" "$lenet" "lazy" 5 "${small[@]}" --set pipeline.schedule=sequential --set 'pipeline.registers=ppv()'
trained lenet5.cuda --save one
"$PNETC" build "$lenet" -o lenet5.cuda --target=cuda --quiet "${small[@]}" "${only_cuda[@]}" --set pipeline.schedule=sequential \
    --set 'pipeline.registers=ppv(1)' >log 2>&1 || note "$(cat log)"
trained lenet5.cuda --save two
same one two "sequential, 2 stages as 1"
done_testing
