#!/bin/bash
# cuda_ranks_join.t: how several processes of target cuda come together, under the simulator: the variables of mpirun, and ranks that do
# not fit together, which say so before anything is trained, each with a clear line and exit 1.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=0
said() { like "$(cat "out.$1")" "$2" "$3"; } # RANK PATTERN NAME

set_for=(PN_TIMEOUT=1)
meet lenet5
rank 0 2 lenet5 --steps 2
is $? 1 "a rank that does not come: exit 1"
said 0 'of 2 ranks 1 did not come to rank 0 at port [0-9]+ in 1 seconds: 1' "a rank that does not come: rank 0 says which"
rank 1 2 lenet5 --steps 2
is $? 1 "no rank 0: exit 1"
said 1 'rank 0 was not found at 127.0.0.1, port [0-9]+, in 1 seconds: Connection refused' "no rank 0: says where it was looked for"
set_for=(MASTER_ADDR=nowhere.invalid)
rank 1 2 lenet5 --steps 2
is $? 1 "a wrong address: exit 1"
said 1 "no host 'nowhere.invalid' .MASTER_ADDR." "a wrong address: says so"
set_for=()
# pair NAME PATTERN "OF RANK 0" "OF RANK 1": both end with 1 and say this; what is given are variables and options
pair() {
    local name=$1 pattern=$2
    meet lenet5
    read -r -a set_for <<<"$3"
    rank 0 2 lenet5 --steps 3 --quiet &
    zero=$!
    read -r -a set_for <<<"$4"
    rank 1 2 lenet5 --steps "${5:-3}" --quiet &
    one=$!
    gather "$zero" "$one"
    set_for=()
    is "$codes" "1 1" "$name: both ranks end with 1"
    said 0 "$pattern" "$name: rank 0 says so"
    said 1 "$pattern" "$name: and so does rank 1"
}
pair "the same GPU twice" 'ranks 0 and 1 are on the same device' "LOCAL_RANK=1" ""
pair "the same rank twice" 'rank 0 cannot listen on port .*Address already in use|1 did not come to rank 0' "PN_TIMEOUT=2" "RANK=0 PN_TIMEOUT=2"
pair "other options" 'rank 1 .* was started with other options' "" "" 4
pair "single launches in one rank alone" 'rank 1 .* was started with other options, or another PN_CUDA_' "" "PN_CUDA_EAGER=1"
one() { # NAME PATTERN VARIABLES...
    text=$(env "${@:3}" "$ROOT/tests/cudasim/run" --keep=lenet5.kernels lenet5.cuda/kernels.cu lenet5.cuda/lenet5 --steps 1 2>&1)
    is $? 1 "$1: exit 1"
    like "$text" "$2" "$1: says so"
}
one "more ranks than stages" '3 ranks for 2 stages: each needs one' RANK=0 WORLD_SIZE=3 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1
one "a rank without a size" 'RANK is set, WORLD_SIZE is not' RANK=0
one "a rank outside the world" 'RANK=2: ranks of 2 go from 0 to 1' RANK=2 WORLD_SIZE=2 LOCAL_RANK=0
one "no local rank" 'LOCAL_RANK is not set' RANK=0 WORLD_SIZE=2
one "several hosts without an address" 'MASTER_ADDR must name the host of rank 0' OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 \
    OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1
one "no number" "WORLD_SIZE wants a number from 0 to 4096, not 'two'" RANK=0 WORLD_SIZE=two

# ---- mpirun's and srun's variables ----
meet lenet5
for number in 0 1; do
    env OMPI_COMM_WORLD_RANK=$number OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$number OMPI_COMM_WORLD_LOCAL_SIZE=2 MASTER_PORT=$port \
        "$ROOT/tests/cudasim/run" --devices=2 --world="$WORK/world" --keep=lenet5.kernels lenet5.cuda/kernels.cu lenet5.cuda/lenet5 --steps 2 \
        >out.$number 2>&1 &
    pids[number]=$!
done
gather "${pids[@]}"
is "$codes" "0 0" "the variables of mpirun on one host: exit 0"
said 0 '2 ranks .mpirun of Open MPI.' "the variables of mpirun: said so"

# ---- what tests/gpu/run asks a GPU: an exchange with oneself ----
cuda=${CUDA_HOME:-/usr/local/cuda}
read -r -a libraries < <("$PNETC" flags --libs=cuda | grep -o '[^ ]*libcudart[^ ]* [^ ]*')
if [ -e "$cuda/include/nccl.h" ] && nccl=$(find "$cuda"/lib* -name libnccl.so.2 | grep -m 1 .); then
    "${cc[@]}" -std=c11 -O1 -Wall -Wextra -Werror -isystem "$cuda/include" -o self "$ROOT/tests/gpu/nccl_self.c" "${libraries[@]}" "$nccl" \
        -Wl,-rpath,"$(dirname "$nccl")" >log 2>&1 || note "$(cat log)"
    text=$(CUDASIM_GPU=$ROOT/tests/cudasim/h200.json LD_PRELOAD=$B/tests/libcudasim.so ./self 2>&1)
    is $? 0 "nccl_self: no report"
    like "$text" '3 launches of a captured exchange' "nccl_self: says what it did"
else
    note "no nccl.h in $cuda: nccl_self is not tested"
fi

# ---- other sizes, other programs ----
build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set 'pipeline.registers=ppv(1, 2, 3)'
pair "another size of the world" 'rank 1 .* was told that there are 3 ranks, rank 0 that there are 2' "" "WORLD_SIZE=3"
done_testing
