#!/bin/bash
# examples.t: the networks of examples/ are those of the paper: parameters, multiply-adds, stale weights, what its PPVs mean;
# canonical text; `check` and the emission of each take less than half a second; a few steps of ResNet-20 and cifar_quick
# on ref and cpu give the same weights on one thread and on a thread a stage, with cuts inside residual units, too.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT" || exit 1

"$PNETC" fmt --check examples/*.pnet >/dev/null 2>&1
ok $? "examples are in canonical form"
headless=$(for file in examples/*.pnet; do head -1 "$file" | grep -q "^# ${file##*/}: " || echo "$file"; done)
is "$headless" "" "each opens with what it shows"

# counts FILE ARGUMENTS...: parameters; multiply-adds in millions; stale weights and the first stage's share of the
# multiply-adds, in percent; weighted layers of each stage
counts() {
    local file=$1
    shift
    "$PNETC" check --json "examples/$file.pnet" "$@" 2>/dev/null | python3 -c '
import json, sys
c = json.load(sys.stdin)
print(c["parameters"], "%.2f" % (c["macs"] / 1e6),
      "%.2f" % (100 * c["stale_fraction"]), "%.1f" % (100 * c["stages"][0]["macs"] / c["macs"]),
      "+".join(str(s["layers"]) for s in c["stages"]))'
}
cut_at() { printf -- '--set\npipeline.registers=%s\n' "$1"; }

# Source: the counts of the published networks, recomputed from their layers (no figure of ours).
is "$(counts alexnet)" "23293770 68.25 3.43 34.6 3+5" "AlexNet, ppv(3)"
is "$(counts vgg16 -D norm=no)" "15245130 313.73 0.25 12.6 2+14" "VGG-16 without batch_norm, ppv(2)"
is "$(counts vgg16)" "15253578 313.73 0.26 12.6 2+14" "VGG-16 with batch_norm: 8448 weights more"
for at in "4 1.7 30.6" "7 11.4 60.7" "10 50.1 90.8" "13 96.5 99.8"; do
    read -r layer stale share <<<"$at"
    mapfile -t words < <(cut_at "ppv($layer)")
    got=$(counts vgg16 -D norm=no "${words[@]}")
    read -r _ _ got_stale got_share layers <<<"$got"
    is "$(printf '%.1f %s %s' "$got_stale" "$got_share" "$layers")" "$stale $share $layer+$((16 - layer))" "VGG-16, ppv($layer)"
done
is "$(counts lenet5)" "61706 0.42 0.25 28.2 1+4" "LeNet-5, ppv(1)"
mapfile -t words < <(cut_at 'ppv(2)')
is "$(counts lenet5 "${words[@]}")" "61706 0.42 4.17 85.9 2+3" "LeNet-5, ppv(2)"
is "$(counts cifar_quick)" "145578 12.35 1.67 19.9 1+4" "cifar_quick"
while read -r depth first wanted; do
    is "$(counts resnet -D depth="$depth")" "$wanted $first+$((depth - first))" "ResNet-$depth, ppv($first)"
done <<'END'
20 7 269722 40.55 5.37 36.0
56 19 853018 125.49 4.98 34.2
110 37 1727962 252.89 4.89 33.8
224 75 3575066 521.85 4.85 33.5
362 121 5811034 847.43 4.83 33.5
END
while read -r ppv stale; do
    mapfile -t words < <(cut_at "ppv($ppv)")
    got=$(counts resnet "${words[@]}")
    read -r _ _ got _ layers <<<"$got"
    is "$(printf '%.1f' "$got")" "$stale" "ResNet-20, ppv($ppv): $layers layers"
done <<'END'
7,13 24.3
7,13,19 99.8
5,12,17 72.3
3,5,7 5.4
3,5,7,9 10.5
3,5,7,9,11 17.4
3,5,7,9,11,13 24.3
3,5,7,9,11,13,15 44.9
3,5,7,9,11,13,15,17 72.3
3,5,7,9,11,13,15,17,19 99.8
END
hundred=(-D classes=100 --set 'train.data=cifar100(crop = 4, flip = yes)')
is "$(counts resnet -D depth=56 "${hundred[@]}" | cut -d' ' -f1)" $((853018 + 65 * 90)) "ResNet-56 for CIFAR-100"

# fast NAME COMMAND...: at most half a second of the processor
fast() {
    local name=$1
    shift
    local seconds
    seconds=$({ TIMEFORMAT='%U %S' && time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print $1 + $2 }')
    awk -v s="$seconds" 'BEGIN { exit !(s < 0.5) }'
    ok $? "$name in less than half a second"
}
for words in alexnet vgg16 resnet "resnet -D depth=362" cifar_quick lenet5; do
    read -ra word <<<"$words"
    file=examples/${word[0]}.pnet
    fast "check $words" "$PNETC" check "$file" "${word[@]:1}"
    fast "emission of $words" "$PNETC" build "$file" -o "$WORK/emitted" --emit-only --quiet "${word[@]:1}"
done

# ---- a few steps ----
export CFLAGS=-O1 # of the programs: all work is in the library
data=$WORK/cifar
mkdir "$data"
python3 - "$data" <<'PY'
import random, sys
source = random.Random(7)
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    with open(f"{sys.argv[1]}/{name}.bin", "wb") as file:
        for _ in range(4):
            file.write(bytes([source.randrange(10)]) + source.randbytes(3072))
PY
# equality NAME TARGET FILE BATCH STEPS PPV ARGUMENTS...
equality() {
    local name="$1 on $2, ppv($6)" out=$WORK/$1-$2-$6
    "$PNETC" build "examples/$3.pnet" -o "$out" --quiet --target="$2" --set train.batch="$4" --set "pipeline.registers=ppv($6)" \
        "${@:7}" >"$WORK/log" 2>&1 || note "$(tail -5 "$WORK/log")"
    for transport in serial threads; do
        "$out/$3" --data "$data" --steps "$5" --eval-every 0 --quiet --transport $transport --save "$out/$transport" \
            --metrics "$out/$transport.jsonl" >"$WORK/log" 2>&1 || note "$(tail -5 "$WORK/log")"
    done
    cmp -s "$out/serial" "$out/threads"
    ok $? "$name: serial equals threads, bit for bit"
    python3 -c '
import json, math, sys
losses = [row["loss"] for row in map(json.loads, open(sys.argv[1])) if "loss" in row]
sys.exit(not losses or not all(0 < loss < 100 for loss in losses))' "$out/threads.jsonl"
    ok $? "$name: losses are sound"
}
"$PNETC" build examples/resnet.pnet -D depth=110 -o "$WORK/large" --quiet >"$WORK/log" 2>&1 || note "$(tail -5 "$WORK/log")"
"$WORK/large/resnet" --layouts >"$WORK/log" 2>&1
ok $? "ResNet-110 in two stages, 2.4 GB of buffers: links and starts"
for schedule in stale pipedream; do
    equality "ResNet-20 $schedule" cpu resnet 4 9 7 --set pipeline.schedule=$schedule
    equality "ResNet-20 $schedule" cpu resnet 4 9 5,12,17 --set pipeline.schedule=$schedule
done
equality ResNet-20 ref resnet 1 3 7
equality ResNet-20 ref resnet 1 8 5,12,17 -D rate=0.01
equality cifar_quick cpu cifar_quick 10 12 1,3 --set train.lr=0.001
equality cifar_quick ref cifar_quick 2 4 1 --set train.lr=0.001
done_testing
