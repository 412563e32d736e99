#!/bin/bash
# bench.t: the commands of bench/ say what they are and refuse what they do not know; on a little random data a table is made,
# written, kept, stopped and continued.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
export PNETC_BENCH=$WORK/kept PYTHONDONTWRITEBYTECODE=1 CFLAGS=-O1 B
for name in cure cuts gpu_throughput lenet_table paper_accuracy paper_hybrid paper_memory paper_speedup paper_staleness schedules throughput; do
    help=$("$ROOT/bench/$name" --help 2>&1)
    is $? 0 "$name --help"
    like "$(head -1 <<<"$help")" "^$name: " "$name says what it shows"
    "$ROOT/bench/$name" --unknown >/dev/null 2>&1
    is $? 2 "$name refuses unknown options"
    grep -q "^| \`bench/$name" "$ROOT/bench/README.md"
    ok $? "README has $name"
done

# ---- gpu_throughput: there is no GPU here, and it says so ----
if [ -e "$B/lib/libpn_cuda.a" ] && ! command -v nvidia-smi >/dev/null 2>&1; then
    out=$("$ROOT/bench/gpu_throughput" lenet5 2>&1)
    is "$? $out" "2 gpu_throughput: there is no NVIDIA GPU: nvidia-smi shows none; nothing was measured (--dry-run shows what would be)" \
        "gpu_throughput: without a GPU: exit 2 after one line"
    out=$("$ROOT/bench/gpu_throughput" lenet5 --batch 8 --steps 9 --dry-run 2>&1)
    is "$? $(grep -Ec 'lenet5_[a-z0-9_]*/program/lenet5 --seed 1 --steps 9( --tf32)?( --algorithms [^ ]*engines.txt)?$' <<<"$out")" "0 9" \
        "gpu_throughput --dry-run: builds ours, shows nine runs"
    is "$(grep -c 'lenet5_[a-z]*_bf16/program/lenet5 ' <<<"$out")" 3 "gpu_throughput --dry-run: three of them in bf16"
    is "$(grep -o 'torch_gpu_throughput.py .*' <<<"$out" | tr '\n' ';')" \
        "$(printf 'torch_gpu_throughput.py lenet5 %s 8 9;' eager amp compile compile_amp)" "gpu_throughput --dry-run: and four of PyTorch"
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$ROOT/bench/torch_gpu_throughput.py"
    is $? 0 "torch_gpu_throughput.py is Python"
else
    note "target cuda was not built, or there is a GPU: that gpu_throughput says when there is none is not tested"
fi

mkdir cifar
python3 - cifar <<'PY'
import random, sys
source = random.Random(7)
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    with open(f"{sys.argv[1]}/{name}.bin", "wb") as file:
        for _ in range(28):
            file.write(bytes([source.randrange(10)]) + source.randbytes(3072))
PY
# value FILE KEY
value() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
table() { "$ROOT/bench/paper_accuracy" --data cifar --only sequential,stale_7 --json out.json "$@" 2>&1; }
out=$("$ROOT/bench/cure" --data cifar --only stale_1f1b_auto,sequential_small,small_auto --steps 3 --json cure.json 2>&1)
is $? 0 "cure: a table of three rows"
like "$out" '^stale_1f1b_auto +\(5,12,17\) +4 +8 +[0-9] +3\.50 ' "cure: the row of a cure"
is "$(value cure.json stale_1f1b_auto_stability) $(value cure.json stale_1f1b_auto_diverged)" "3.5 0" "cure: --json"
is "$(value cure.json small_auto_difference)" "$(python3 -c 'print(round(float(input()) - float(input()), 4))' \
    <<<"$(value cure.json small_auto_accuracy)"$'\n'"$(value cure.json sequential_small_accuracy)")" "cure: a small rate is held against plain SGD with it"
out=$("$ROOT/bench/schedules" --only lenet5_2_zb_h1,lenet5_2_stale_1f1b --steps 10 --json schedules.json 2>&1)
is $? 0 "schedules: a table of three rows"
like "$out" '^lenet5 +2 +zb_h1 +[0-9]+ +[0-9.]+ +[0-9]+ % +-?[0-9]+ % +[0-9.]+ +[0-9.]+ +0 +1' "schedules: the row of zb_h1"
is "$(value schedules.json lenet5_2_stale_1f1b_staleness) $(value schedules.json lenet5_2_zb_h1_copies)" "1 1" "schedules: --json"
out=$(table --steps 3)
is $? 0 "paper_accuracy: a table of two rows"
like "$out" '^stale_7 +\(7\) +2 +4 +2 +2\.50 +5\.37 ' "paper_accuracy: the row of ppv(7)"
is "$(value out.json stale_7_staleness) $(value out.json stale_7_predicted_staleness) $(value out.json steps)" "2 2 3" \
    "paper_accuracy: --json"
for key in commit library compiler processor cores memory date; do
    value kept/paper_accuracy/results.json $key >/dev/null 2>&1
    ok $? "paper_accuracy: results.json has $key"
done
is "$(table --steps 3 | grep -c 'kept (--fresh')" 2 "paper_accuracy: finished runs are kept"

serial=$(value out.json stale_7_seed1_curve)
PNETC_BENCH=$WORK/beside
is "$(table --steps 3 --jobs 2 >/dev/null; value out.json stale_7_seed1_curve)" "$serial" "paper_accuracy: --jobs 2 trains the same"
is "$(table --steps 3 | grep -c 'kept (--fresh')" 2 "paper_accuracy: --jobs 2 keeps what is finished"

# Stopped as Ctrl-C in a terminal does, with all its group, once a step is done; then it goes on.
export PNETC_BENCH=$WORK/stopped
run=$PNETC_BENCH/paper_accuracy/runs/resnet20_sequential_60_seed1
# stop LOG [OPTION...]: starts the table, interrupts it once its first run has a line of metrics; its status
stop() {
    rm -f "$run/metrics.jsonl"
    set -m
    "$ROOT/bench/paper_accuracy" --data cifar --only sequential --steps 60 --verbose "${@:2}" >"$1" 2>&1 &
    local job=$!
    set +m
    for _ in $(seq 600); do
        ! grep -qs '"loss"' "$run/metrics.jsonl" || break
        sleep 0.1
    done
    kill -INT -- -$job
    wait $job
}
stop stopped.log
is $? 130 "paper_accuracy: Ctrl-C ends it with 130"
like "$(cat stopped.log)" 'stopped; the same command goes on from here' "paper_accuracy: and says so"
step=$(head -c 1000 "$run/checkpoint.safetensors" | grep -ao '"step":"[0-9]*"' | tr -dc 0-9)
like "$step" '^[1-9][0-9]*$' "paper_accuracy: there is a checkpoint"
stop again.log --jobs 2
is $? 130 "paper_accuracy: --jobs 2 is stopped likewise"
like "$(cat again.log)" "goes on after step $step\$" "paper_accuracy: the same command goes on from it"

export PNETC_BENCH=$WORK/kept
out=$("$ROOT/bench/paper_memory" --only lenet5 --json memory.json 2>&1)
is $? 0 "paper_memory: LeNet-5; planned bytes are the program's"
is "$(value memory.json lenet5_stale_static_bytes)" "$(value memory.json lenet5_stale_static_in_program)" "paper_memory: --json"
like "$out" '^lenet5 +sequential ' "paper_memory: its table"
out=$("$ROOT/bench/paper_speedup" --only 20 --batch 16 --steps 4 --rounds 1 --json speed.json 2>&1)
is $? 0 "paper_speedup: ResNet-20"
python3 - <<'PY'
import json
f = json.load(open("speed.json"))
for cut in "paper", "exact", "placed":
    assert f[f"resnet20_{cut}_two_workers_images_per_second"] > 0 and 0.1 < f[f"resnet20_{cut}_speedup"] < 4
    assert all(0 < f[f"resnet20_{cut}_{key}"] <= limit for key, limit in (("balance", 1), ("no_wait", 1), ("together", 4)))
PY
ok $? "paper_speedup: its factors"
# Fast or slow does not matter here (its exit status does): that it measures, on any machine.
"$ROOT/bench/throughput" lenet5 --busy --ours --steps 7 --batch 20 --json busy.json >out 2>&1
ok "$(($? > 1))" "throughput: LeNet-5 beside a busy loop"
python3 - <<'PY'
import json
f = json.load(open("busy.json"))
assert f["busy"] and f["parameters"] == 61706 and f["step_flops"] == 2 * 20 * (3 * 416520 - 117600), f["step_flops"]
for name in ("one_worker", "two_stages", "one_worker_2_threads"):
    assert f[name + "_images_per_second"] > 0 and f[name + "_to_floor"] > 0.5 and f[name + "_peak_bytes"] > 1 << 22, name
assert f["two_stages_to_one_worker_2_threads"] > 0 and f["two_cores_flops"] > 1e9 and f["one_core_bytes"] > 1e8
PY
ok $? "throughput: its figures"
is "$("$ROOT/bench/throughput" lenet5 --busy --ours --steps 7 --batch 20 2>&1 | head -1)" \
    "1 finished rounds of the same kind are kept (--fresh measures anew)" "throughput: finished rounds are kept"
done_testing
