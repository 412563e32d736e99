#!/bin/bash
# cudasim.t: the GPU double finds each planted bug, in each order, and names buffer, kernel and stream; each program's right twin runs
# without a report. Needs the CUDA toolkit (cudart, NVRTC, cuDNN, NCCL), but neither a GPU nor a driver.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cuda=${CUDA_HOME:-/usr/local/cuda}
libraries=$cuda/lib64
command -v "${CXX:-g++}" >"$WORK/log" || skip_all "no C++ compiler"
[ "$(uname -m)" = x86_64 ] || skip_all "the double needs x86-64"
for file in "$cuda/include/nvrtc.h" "$libraries"/lib{cudart,nvrtc}.so.13 "$libraries/libcudnn.so.9" "$libraries/libnccl.so.2"; do
    [ -e "$file" ] || skip_all "no CUDA toolkit: $file is missing"
done
make -s -C "$ROOT" B="$B" cudasim >"$WORK/log" 2>&1 || { note "$(tail "$WORK/log")"; ok 1 "the double builds"; done_testing; }

sim=$ROOT/tests/cudasim
"${cc[@]}" -std=c11 -O1 -I"$cuda/include" -o "$WORK/embed" "$sim/embed.c" -L"$libraries" -l:libnvrtc.so.13 \
    -Wl,-rpath,"$libraries" && "$WORK/embed" "$sim/plants/kernels.cu" sm_90 cubin >"$WORK/cubin.h" &&
    "${cc[@]}" -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -Wall -Wextra -Wshadow -Werror -I"$cuda/include" -I"$WORK" \
        -o "$WORK/planted" "$sim"/plants/*.c -L"$libraries" -l:libcudart.so.13 -l:libnccl.so.2 -l:libcudnn.so.9 \
        -Wl,-rpath,"$libraries" -pthread
ok $? "the programs build with gcc alone"
text=$("$sim/run" --keep="$WORK/kernels" "$sim/plants/kernels.cu" "$WORK/planted" list 2>&1)
ok $? "run compiles the kernels' text and starts the program"
export CUDASIM_GPU=$sim/h200.json CUDASIM_PATIENCE=1

# planted ORDER NAME right|wrong: runs one, sets text and code
planted() {
    text=$(timeout 60 env LD_PRELOAD="$B/tests/libcudasim.so:$WORK/kernels/libkernels.so" CUDASIM_ORDER="$1" \
        "$WORK/planted" "$2" "$3" 2>&1)
    code=$?
}

# plant NAME CODE PATTERN: wrong, it ends with CODE and says PATTERN in every order; right, it says nothing
plant() {
    local order bad=
    seen="$seen$1
"
    for order in eager lazy random:1; do
        planted $order "$1" wrong
        if [ $code != "$2" ] || ! grep -Eq -- "$3" <<<"$text"; then
            bad="$bad$order (exit $code): $text
"
        fi
    done
    [ -z "$bad" ]
    ok $? "$1: found in each order"
    [ -z "$bad" ] || note "$bad(wanted exit $2: $3)"
    bad=
    for order in lazy random:2; do
        planted $order "$1" right
        if [ $code != 0 ] || grep -q 'cudasim: error' <<<"$text"; then
            bad="$bad$order (exit $code): $text
"
        fi
    done
    [ -z "$bad" ]
    ok $? "$1: no report without the bug"
    [ -z "$bad" ] || note "$bad"
}

seen=
export CUDASIM_DEVICES=2
image="buffer 'stage 0 image'"
plant overrun 99 "in kernel scale, block \(3,0,0\) thread \(232,0,0\), kernels.cu:[0-9]+, stream 'stage 0'"
plant copy_overrun 99 "cudaMemcpyAsync, destination: overrun: 4004 bytes from buffer 'stage 0 conv1.out'"
plant uninitialised 99 "uninitialised read: nothing has written buffer 'stage 1 image' \+(0|3072) "
plant half_initialised 99 "uninitialised read: nothing has written buffer 'stage 0 conv1.out' \+3996 "
plant early_free 99 "freed, but nothing has waited for kernel scale \(stream 'stage 0'\)|use after free: .* through parameter 0"
plant use_after_free 99 "parameter 0 points to buffer .* which was freed"
plant host_dereference 99 "host code reads device memory: $image \+12 "
plant host_pointer 99 "parameter 1 is a pointer of the host"
plant wrong_direction 99 "cudaMemcpyAsync: the direction is wrong: from host memory .* to device memory \($image"
plant other_gpu 99 "parameter 1 points to memory of GPU 0: $image"
plant staging_reused 99 "host code writes buffer 'staging' .* has not waited for copy from pinned to device"
plant result_unwaited 99 "host code reads buffer .* has not waited for copy from device to pinned \(stream 'stage 0'\), which writes it"
plant upload_unwaited 99 "race: the read of $image .* write by copy from pinned to device \(stream 'upload'\)|uninitialised read: .*$image"
plant write_after_read 99 "race: the write to $image .* read by kernel scale \(stream 'stage 0'\)|race: the read of $image .*write by memset"
plant legacy_copy 99 "race: the read of buffer 'stage 0 conv1.out' .* write by kernel scale \(stream 'compute'\)|uninitialised read"
plant handover_unwaited 99 "race: the read of buffer 'stage 0 conv1.out' .* write by kernel scale \(stream 'stage 0'\)|uninitialised read"
plant barrier_missing 99 "in kernel row_sum_no_barrier, block"
plant barrier_divergent 99 "__syncthreads is reached by 232 threads of 256"
plant shared_uninitialised 99 "uninitialised read of __shared__ memory"
plant shared_overrun 99 "index 64 is outside of the array, kernels.cu:[0-9]+"
plant atomic_missing 99 "race within the kernel: .* buffer 'stage 0 conv1.gradient'"
plant misaligned 99 "misaligned: .* 16 bytes of alignment to $image \+4 .*kernels.cu:[0-9]+"
plant lanes_missing 99 "shuffle: source lane 16 is not in mask 0000ffff"
plant block_too_big 99 "kernel scale: no GPU can launch .*block \(512,1,1\).* at most 256 threads"
plant arguments_swapped 99 "overrun: read .*$image.*parameter 1"
plant name_misspelt 99 "kernel scael is not in the image"
plant structure_overrun 99 "overrun: .* buffer 'stage 0 (conv1.out|conv1.gradient)' \+4000 "
plant mask_overrun 99 "overrun: write of 1 bytes at buffer 'stage 0 relu1.mask' \+999 "
plant branch_unjoined 99 "kernel scale \(stream 'branch'\) was not joined"
plant branch_joined_late 99 "race: .* buffer 'stage 0 conv1.gradient'|uninitialised read: .*'stage 0 conv1.gradient'"
plant call_in_capture 99 "cudaMalloc is called while stream 'stage 0' is captured"
plant pageable_in_capture 99 "during capture uses pageable host memory"
plant overwritten_beside 99 "race: the (write to|read of) $image"
plant dnn_overrun 99 "cuDNN convolution forward, tensor 3: overrun: 2304 bytes from buffer 'stage 0 conv1.out' \+2000"
plant dnn_weights_missing 99 "w: uninitialised read: .* buffer 'stage 0 conv1.gradient' \+0 "
plant dnn_pointer_missing 99 "the variant pack has no pointer for tensor 3"
plant dnn_shape_refused 3 "CUDNN_STATUS_BAD_PARAM: is_valid_spatial_dim"
plant dnn_misaligned 99 "tensor 1 is promised to be aligned to 16 bytes: $image \+4 "
plant dnn_stream_forgotten 99 "race: .* buffer 'stage 0 conv1.out' .*cuDNN convolution forward|uninitialised read: .*'stage 0 conv1.out'"
plant wrong_count 99 "send of 1000 elements to rank 1, buffer 'stage 0 conv1.out'.* meets receive of 993 elements"
plant circular_receive 98 "deadlock: .*NCCL exchange of rank"
plant receive_unwaited 99 "race: .* buffer 'stage 1 conv1.gradient'"
plant exchanges_unordered 99 "nothing orders NCCL exchange of rank . .*: they use one communicator"
plant captured_on_one_side 99 "both must be captured, or neither"
plant same_gpu 99 "ranks 0 and 1 of a communicator are on the same GPU 0"
plant rank_lost 98 "waits for its peer: receive of 1000 elements from rank 1, buffer 'stage 0 conv1.gradient'"
plant mean_count 99 "all-reduce of 1000 elements.* meets all-reduce of 999"
export CUDASIM_MEMORY=1M
plant too_big 3 "out of memory is an error: cudaErrorMemoryAllocation"
unset CUDASIM_MEMORY
is "$("$WORK/planted" list | sort | tr '\n' ' ')" "$(printf %s "$seen" | sort | tr '\n' ' ')" "every planted bug is looked for"

# settings
export CUDASIM_STATS=$WORK/stats
planted eager half_initialised right
like "$(cat "$WORK/stats")" "^device 0 peak_bytes 16384 left_bytes 16384$" "statistics: bytes of the GPU"
like "$(cat "$WORK/stats")" "^ran kernel scale 2$" "statistics: how often each kernel ran"
like "$(cat "$WORK/stats")" "^reports 0$" "statistics: reports"
planted lazy dnn_overrun right
like "$(cat "$WORK/stats")" "^cudnn plans accepted 1$" "real cuDNN has checked the plan"
unset CUDASIM_STATS
planted eager circular_receive wrong
like "$text" "waits for its peer: receive of 16 elements from rank 1, buffer 'stage 0" "a deadlock shows who waits for whom"
CUDASIM_FAIL=cudaMalloc:1 planted eager overrun right
is "$code" 3 "a failure on demand reaches the program"
like "$text" "cudaMalloc.*out of memory" "which says so"
CUDASIM_DROP=cudaStreamWaitEvent:1 planted eager handover_unwaited right
like "$text" "race: the read of buffer 'stage 0 conv1.out'" "a call that is left out on purpose is noticed"
CUDASIM_THREADS=reverse planted eager barrier_missing wrong
like "$text" "race in __shared__ memory" "a missing barrier is a race in reverse thread order too"
CUDASIM_CHECK=0 planted eager uninitialised wrong
is "$code" 0 "without checks it only computes"
planted sideways overrun right
is "$code" 2 "an unknown order is refused"
done_testing
