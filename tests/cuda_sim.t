#!/bin/bash
# cuda_sim.t: programs of target cuda, as they would run on a GPU, under the simulator (tests/cudasim): no report, and the losses,
# tests and weights of target cpu (--exact) within a tolerance, in eager, lazy and random order. Small networks, few steps; the kernels are
# compiled by g++ from the text that NVRTC gets, cuDNN itself accepts each plan, plain C computes it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

# near CPU CUDA TOLERANCE: the metrics of two runs: the same lines, losses apart by less
cat >near.py <<'END'
import json, sys
one, two = ([json.loads(line) for line in open(path)] for path in sys.argv[1:3])
worst = 0
assert [l["step"] for l in one] == [l["step"] for l in two] and len(one) > 2, "other steps"
for a, b in zip(one, two):
    key = "loss" if "loss" in a else "test_loss"
    worst = max(worst, abs(a[key] - b[key]) / max(1, abs(a[key])))
    name = "accuracy" if "loss" in a else "test_accuracy"
    assert a[name] == b[name], f"{name} at step {a['step']}: {a[name]} and {b[name]}"
print(f"losses apart by {worst:.1e} at most")
assert worst < float(sys.argv[3]), "too far apart"
END

# compare NAME SOURCE ORDERS STEPS OPTIONS...: builds for both targets (again into the same folder: the kernels are kept), trains
compare() {
    local name=$1 source=$2 orders=$3 steps=$4 net order text code
    net=$(basename "$source" .pnet)
    shift 4
    for target in cpu cuda; do
        "$PNETC" build "$source" -o "$net.$target" --target=$target --quiet "$@" >log 2>&1 || {
            note "$(cat log)"
            ok 1 "$name: builds for $target"
            return
        }
    done
    "$net.cpu/$net" --exact --steps "$steps" --metrics cpu.jsonl --quiet ${data:+--data "$data"} >log 2>&1 || note "$(cat log)"
    for order in $orders; do
        rm -f cuda.jsonl
        text=$("$ROOT/tests/cudasim/run" --order="$order" --keep="$net.kernels" "$net.cuda/kernels.cu" "$net.cuda/$net" \
            --steps "$steps" --metrics cuda.jsonl --quiet ${transport:+--transport "$transport"} ${data:+--data "$data"} 2>&1)
        code=$?
        [ $code = 0 ] && ! grep -q 'cudasim: error' <<<"$text"
        ok $? "$name, $order: no report"
        [ $code = 0 ] || note "exit $code: $(head -12 <<<"$text")"
        text=$(python3 near.py cpu.jsonl cuda.jsonl 1e-5 2>&1)
        ok $? "$name, $order: as target cpu"
        note "$(tail -1 <<<"$text")"
    done
}

data='' transport=''
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
transport=''
compare "all ops, 3 stages" "$ROOT/tests/cuda/zoo.pnet" "lazy random:1" 5

# ---- CIFAR: channels last from planes of bytes, crop and flip ----
mkdir cifar
records() { perl -e 'srand(shift); for (1 .. shift) { print chr(int rand 10), map { chr(int rand 256) } 1 .. 3072 }' "$1" "$2"; }
for i in 1 2 3 4 5; do records "$i" 8 >"cifar/data_batch_$i.bin"; done
records 9 6 >cifar/test_batch.bin
data=$WORK/cifar
compare "resnet8, crop and flip" "$ROOT/examples/resnet.pnet" "random:1" 3 -D depth=8 -D rate=0.001 --set train.batch=4 --set train.test_every=2
done_testing
