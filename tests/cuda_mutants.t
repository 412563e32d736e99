#!/bin/bash
# cuda_mutants.t: of a program of target cuda, each cudaStreamWaitEvent and each third cudaEventRecord is left out in turn, as if the
# runtime had forgotten it. Either the double reports it, whatever order was run, or the call was not needed: then even the laziest order
# gives the same weights, bit for bit. So the runtime's waits are needed, and the double sees when one is missing.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e "$B/lib/libpn_cuda.a" ] || skip_all "no CUDA toolkit with cuDNN when pnetc was built: target cuda is not tested"
"$PNETC" doctor | grep -q '^ok  *NVRTC' || skip_all "no NVRTC: target cuda is not tested"
command -v "${CXX:-g++}" >"$WORK/log" || skip_all "no C++ compiler"
[ "$(uname -m)" = x86_64 ] || skip_all "the double needs x86-64"
make -s -C "$ROOT" B="$B" cudasim >"$WORK/log" 2>&1 || { note "$(tail "$WORK/log")"; ok 1 "the double builds"; done_testing; }

"$PNETC" build "$ROOT/examples/lenet5.pnet" -o "$WORK/lenet5" --target=cuda --quiet --set train.batch=2 --set train.test_every=0 \
    --set 'train.data=digits(train = 12, test = 2)' --set pipeline.schedule=stale >"$WORK/log" 2>&1
ok $? "the program builds"
text=$("$ROOT/tests/cudasim/run" --keep="$WORK/kernels" "$WORK/lenet5/kernels.cu" "$WORK/lenet5/lenet5" --steps 0 --quiet 2>&1)
ok $? "its kernels compile for the double"
# with VARIABLE VARIABLE [--save FILE]: a run under the double
with() {
    env LD_PRELOAD="$B/tests/libcudasim.so:$WORK/kernels/libkernels.so" CUDASIM_GPU="$ROOT/tests/cudasim/h200.json" "$1" "$2" \
        "$WORK/lenet5/lenet5" --steps 4 --transport serial --quiet "${@:3}" 2>&1
}
text=$(with CUDASIM_ORDER=eager CUDASIM_STATS="$WORK/stats" --save "$WORK/whole.safetensors")
ok $? "it runs without a report"
note "$text"

for what in cudaStreamWaitEvent:1 cudaEventRecord:3; do
    call=${what%:*} step=${what#*:}
    count=$(awk -v call="$call" '$1 == "call" && $2 == call { print $3 }' "$WORK/stats")
    reported=0 harmless=0 tried=0
    for ((n = 1; n <= ${count:-0}; n += step)); do
        tried=$((tried + 1))
        text=$(with CUDASIM_ORDER=eager CUDASIM_DROP="$call:$n")
        if [ $? = 99 ] && grep -q "cudasim: error: .*buffer" <<<"$text"; then
            reported=$((reported + 1))
        elif with CUDASIM_ORDER=lazy CUDASIM_DROP="$call:$n" --save "$WORK/without.safetensors" >"$WORK/log" &&
            cmp -s "$WORK/whole.safetensors" "$WORK/without.safetensors"; then
            harmless=$((harmless + 1))
        else
            note "$call $n: nothing was reported: $text; lazily: $(cat "$WORK/log")"
        fi
    done
    is "$((reported + harmless))" "$tried" "$call: each one that was left out was reported, or not needed"
    [ $reported -ge 4 ]
    ok $? "$call: $reported of $tried are needed, and missed when they are left out"
done
done_testing
