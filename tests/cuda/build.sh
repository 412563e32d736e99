#!/bin/bash
# build.sh: what can be known without a GPU of a program of target cuda. Source it behind tap.sh.
[ -e "$B/lib/libpn_cuda.a" ] || skip_all "no CUDA toolkit with cuDNN when pnetc was built: target cuda is not tested"
"$PNETC" doctor | grep -q '^ok  *NVRTC' || skip_all "no NVRTC: target cuda is not tested"
most_registers=64
fuses=1 # some layers do bias and relu by cuDNN; 0: none

# example NAME SOURCE OPTIONS...
example() {
    local name=$1 source=$2 gpu text
    shift 2
    CFLAGS="-O1 -Werror" "$PNETC" build "$source" -o "$WORK/$name" --target=cuda --quiet "$@" >"$WORK/log" 2>&1
    ok $? "$name: builds with -Werror"
    [ -e "$WORK/$name/build/kernels.o" ] || { note "$(cat "$WORK/log")"; return; }
    text=$(sed -n 's/^    {"\([a-z0-9_]*\)", \([0-9]*\), \([0-9]*\), \([0-9]*\)}, .* stack \([0-9]*\), spill \([0-9]*\) .*/\1 \4 \5 \6/p' \
        "$WORK/$name/build/kernels.c")
    [ "$(wc -l <<<"$text")" -ge 20 ]
    ok $? "$name: facts of $(wc -l <<<"$text") kernels"
    is "$(awk -v most=$most_registers '$2 > most || $3 + $4 > 0' <<<"$text")" "" \
        "$name: no kernel spills or needs more than $most_registers registers"
    for gpu in cuda/a100 cudasim/h200 cuda/b200; do
        text=$("$WORK/$name/$name" --plans "$ROOT/tests/$gpu.json" 2>&1)
        like "$text" '^[1-9][0-9]* plans$' "$name: cuDNN accepts all its layers for ${gpu#*/}"
        note "$(tail -1 <<<"$text"), $(grep -c 'engine .*, \(bias\|relu\)' <<<"$text") with bias or relu"
        grep -q ' forward  *engine [0-9:=]*, ' <<<"$text"
        is $((1 - $?)) $fuses "... bias and relu: as told"
    done
    text=$("$WORK/$name/$name" --plans "$ROOT/tests/cudasim/h200.json" --tf32 2>&1)
    like "$text" '^[1-9][0-9]* plans$' "$name: also with TF32 on an h200"
}
