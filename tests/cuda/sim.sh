#!/bin/bash
# sim.sh: what tests of target cuda under the simulator need, or the reason why they are skipped. Source it behind tap.sh.
[ -e "$B/lib/libpn_cuda.a" ] || skip_all "no CUDA toolkit with cuDNN when pnetc was built: target cuda is not tested"
[ -e "$B/lib/libpn_cpu.a" ] || skip_all "no oneDNN: there is nothing to hold target cuda against"
"$PNETC" doctor | grep -q '^ok  *NVRTC' || skip_all "no NVRTC: target cuda is not tested"
command -v "${CXX:-g++}" >"$WORK/log" || skip_all "no C++ compiler"
[ "$(uname -m)" = x86_64 ] || skip_all "the simulator needs x86-64"
make -s -C "$ROOT" B="$B" cudasim >"$WORK/log" 2>&1 || { note "$(tail "$WORK/log")"; ok 1 "the simulator builds"; done_testing; }
cd "$WORK" || exit 1

# near.py CPU CUDA... TOLERANCE: the metrics of runs: the same lines, losses apart by less
cat >near.py <<'END'
import json, sys
one, *others = ([json.loads(line) for line in open(path)] for path in sys.argv[1:-1])
worst = 0
for two in others:
    assert [l["step"] for l in one] == [l["step"] for l in two] and len(one) > 2, "other steps"
    for a, b in zip(one, two):
        key = "loss" if "loss" in a else "test_loss"
        worst = max(worst, abs(a[key] - b[key]) / max(1, abs(a[key])))
        name = "accuracy" if "loss" in a else "test_accuracy"
        assert float(sys.argv[-1]) > 1e-4 or a[name] == b[name], f"{name} at step {a['step']}: {a[name]} and {b[name]}"
print(f"losses apart by {worst:.1e} at most")
assert others and worst < float(sys.argv[-1]), "too far apart"
END

data='' transport='' # of compare: the folder of --data, the transport; empty: not given
only_cuda=() tolerance=1e-5 # options that target cpu does not get; how far losses may be apart, beyond 1e-4 accuracies too

# build NET SOURCE OPTIONS...: for both targets; 1, and a test that failed, when one does not
build() {
    local net=$1 source=$2 target
    local -a further=()
    shift 2
    for target in cpu cuda; do
        [ $target = cpu ] || further=(${only_cuda[@]+"${only_cuda[@]}"})
        "$PNETC" build "$source" -o "$net.$target" --target=$target --quiet "$@" ${further[@]+"${further[@]}"} >log 2>&1 || {
            note "$(cat log)"
            ok 1 "$net builds for $target"
            return 1
        }
    done
}

# simulate NET OPTIONS OF run... -- OPTIONS OF THE PROGRAM...: runs what build made for target cuda; sets text and code
simulate() {
    local net=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    text=$(timeout 200 "$ROOT/tests/cudasim/run" --keep="$net.kernels" ${options[@]+"${options[@]}"} "$net.cuda/kernels.cu" \
        "$net.cuda/$net" "$@" 2>&1)
    # shellcheck disable=SC2034 # read by the tests
    code=$?
}

# compare NAME SOURCE ORDERS STEPS OPTIONS...: builds for both targets (again into the same folder: the kernels are kept), trains
compare() {
    local name=$1 source=$2 orders=$3 steps=$4 net order text code
    net=$(basename "$source" .pnet)
    shift 4
    build "$net" "$source" "$@" || return
    "$net.cpu/$net" --exact --steps "$steps" --metrics cpu.jsonl --quiet ${data:+--data "$data"} >log 2>&1 || note "$(cat log)"
    for order in $orders; do
        rm -f cuda.jsonl
        simulate "$net" --order="$order" -- --quiet --steps "$steps" --metrics cuda.jsonl \
            ${transport:+--transport "$transport"} ${data:+--data "$data"}
        [ "$code" = 0 ] && ! grep -q 'cudasim: error' <<<"$text"
        ok $? "$name, $order: no report"
        [ "$code" = 0 ] || note "exit $code: $(head -12 <<<"$text")"
        text=$(python3 near.py cpu.jsonl cuda.jsonl "$tolerance" 2>&1)
        ok $? "$name, $order: as target cpu"
        note "$(tail -1 <<<"$text")"
    done
}
