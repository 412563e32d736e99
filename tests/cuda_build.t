#!/bin/bash
# cuda_build.t: what can be known of target cuda without a GPU and without a driver: every example builds with gcc -Werror; its
# kernels, compiled for sm_80, sm_90 and sm_100, spill nothing and stay within their registers; what is passed to a kernel is what
# was compiled; cuDNN accepts every convolution and dense layer for an A100, an H200 and a B200; a program says why it cannot run.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/build.sh
. "$(dirname "$0")/cuda/build.sh"
cuda=${CUDA_HOME:-/usr/local/cuda}
example lenet5 "$ROOT/examples/lenet5.pnet"
example cifar_quick "$ROOT/examples/cifar_quick.pnet"
example alexnet "$ROOT/examples/alexnet.pnet"
example vgg16 "$ROOT/examples/vgg16.pnet"
example resnet "$ROOT/examples/resnet.pnet"
example zoo "$ROOT/tests/cuda/zoo.pnet"

# ---- a program without a GPU: one line, exit 1, under a second ----
program=$WORK/lenet5/lenet5
# says PATTERN NAME [ENVIRONMENT]
says() {
    local begin text status
    begin=$(date +%s%N)
    text=$(env ${3:+"$3"} "$program" 2>&1)
    status=$?
    is "$status $(wc -l <<<"$text")" "1 1" "$2: exit 1 after one line"
    like "$text" "$1" "$2: says so"
    [ $((($(date +%s%N) - begin) / 1000000)) -lt 1000 ]
    ok $? "$2: under a second"
}
if ldconfig -p | grep -q 'libcuda\.so\.1'; then
    note "there is a CUDA driver: that a program says so when there is none is not tested"
else
    says 'no CUDA driver' "no driver"
fi
stub=$(find "$cuda/" -name libcuda.so -path '*stubs*' 2>/dev/null | head -1)
if [ -n "$stub" ]; then
    mkdir "$WORK/stub" && ln -s "$stub" "$WORK/stub/libcuda.so.1"
    says 'driver is a stub' "a stub driver" "LD_LIBRARY_PATH=$WORK/stub"
else
    note "the toolkit has no stub driver: not tested"
fi

# Drivers that only tell their version: the CUDA runtime itself asks them, and gives the program what it would of a true one.
# driver NAME VERSION
driver() {
    mkdir "$WORK/$1" && printf 'int cuInit(unsigned f) { (void)f; return 100; }\nint cuDriverGetVersion(int *v) { *v = %s; return 0; }\n' "$2" |
        "${cc[@]}" -shared -fPIC -o "$WORK/$1/libcuda.so.1" -x c -
}
driver old 12000
says 'driver is too old: it is for CUDA 12\.0' "an old driver" "LD_LIBRARY_PATH=$WORK/old"
driver idle 99000
says 'there is no GPU: the CUDA driver is there' "a driver without a GPU" "LD_LIBRARY_PATH=$WORK/idle"

# ---- GPUs that cannot be described ----
"$program" --plans none.json >"$WORK/out" 2>&1
is "$? $(cat "$WORK/out")" "1 error: cannot read none.json: No such file or directory" "--plans: a file that is not there"
echo '{}' >"$WORK/empty.json"
"$program" --plans "$WORK/empty.json" >"$WORK/out" 2>&1
is $? 1 "--plans: no description: exit 1"
like "$(cat "$WORK/out")" 'empty.json is no description of a GPU that cuDNN' "--plans: no description: says so"

# ---- what is launched must be what was compiled ----
sed -i 's/{"loss_sum", 3, 20,/{"loss_sum", 3, 24,/; s/{"maxpool_k", 3, 24,/{"maxpool_k", 4, 32,/' "$WORK/lenet5/build/kernels.c"
touch "$WORK/lenet5/build/kernels.c"
make -s -C "$WORK/lenet5" PNETC="$PNETC" >"$WORK/log" 2>&1
says 'kernel maxpool_k was compiled with 4 parameters of 32 bytes, and is launched with 3 of 24' "other parameters"

# ---- what cannot be had ----
"$PNETC" build "$ROOT/examples/vgg16.pnet" -o "$WORK/refused" --target=cuda --emit-only --set train.batch=65536 \
    >"$WORK/out" 2>&1
like "$(cat "$WORK/out")" 'elements a minibatch: target .cuda. counts up to 2\^31 \[P0609\]' "too large for 32 bits: says so"
refuses() { # PATTERN NAME SETTINGS...: with two stages, says so
    local pattern=$1 name=$2
    shift 2
    "$PNETC" build "$ROOT/examples/lenet5.pnet" -o "$WORK/refused" --target=cuda --emit-only "$@" >"$WORK/out" 2>&1
    is $? 1 "$name: refused"
    like "$(cat "$WORK/out")" "$pattern" "$name: says so"
}
refuses 'does not split backwards in input and weight parts \[P0611\]' zb_h1 --set 'pipeline.schedule=zb_h1(microbatches = 4)'
refuses 'no kernel that sums the gradients of minibatches \[P0611\]' accumulate --set pipeline.cure=accumulate
for command in "profile $ROOT/examples/lenet5.pnet" calibrate "plan --layouts $ROOT/examples/lenet5.pnet"; do
    # shellcheck disable=SC2086 # words
    "$PNETC" $command --target=cuda >"$WORK/out" 2>&1
    is $? 1 "${command%% *}: refused"
    like "$(cat "$WORK/out")" 'target cuda cannot be measured' "${command%% *}: says so"
done
printf 'extern "C" __global__ void f(float *x) { x[0] = y; }\n' >"$WORK/wrong.cu"
"$PNETC" kernels "$WORK/wrong.cu" >"$WORK/out" 2>&1
is $? 1 "kernels that do not compile: exit 1"
like "$(cat "$WORK/out")" 'identifier "y" is undefined' "kernels that do not compile: NVRTC's message"
like "$(cat "$WORK/out")" 'cannot be compiled for sm_80.*\[P0610\]' "kernels that do not compile: ours"
"$PNETC" kernels "$WORK/lenet5/kernels.cu" --arch=12 >"$WORK/out" 2>&1
is $? 2 "an architecture that is none: usage"
done_testing
