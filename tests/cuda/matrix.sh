#!/bin/bash
# matrix.sh: a network under the simulator by each schedule, in each order: all stages on one GPU, and each stage on one of its own with
# NCCL between them. Source it behind sim.sh and ranks.sh. Ranks are processes here, as they are on GPUs: what runs is what a user would
# start. A program is built once for all orders.
export ARCH=90 CFLAGS=-O1 # kernels of the simulator's GPU alone
schedules=(sequential stale stale_1f1b pipedream 'hybrid(stale, steps = 4, then = sequential)')
orders=(eager lazy random:1 random:2 random:3)
tolerance=1e-5 # of losses, relative to the larger of 1 and the loss of target cpu, which sums in another order
codes='' # what gather sets

# play ORDER RANK SIZE NET ARGUMENTS...: one process, started as tests/cudasim/run does, its kernels being compiled already
play() {
    local order=$1 number=$2 size=$3 net=$4 world=()
    shift 4
    [ "$size" = 1 ] || world=(RANK="$number" LOCAL_RANK="$number" WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 MASTER_PORT="$port"
        CUDASIM_WORLD="$WORK/world" CUDASIM_DEVICES="$size")
    timeout 100 env CUDASIM_GPU="$ROOT/tests/cudasim/h200.json" CUDASIM_ORDER="$order" ${world[@]+"${world[@]}"} \
        LD_PRELOAD="$B/tests/libcudasim.so:$PWD/$net.kernels/libkernels.so" "$net.cuda/$net" --quiet "$@" >"out.$number" 2>&1
}

# all_orders NAME NET SIZE STEPS: trains it on SIZE GPUs in each order, against cpu.jsonl
all_orders() {
    local name=$1 net=$2 size=$3 steps=$4 order bad='' pids r files=()
    rm -f cuda.*.jsonl
    for order in "${orders[@]}"; do
        port=$((port + 1)) pids=()
        rm -rf world out.* && mkdir world
        for ((r = 0; r < size; r++)); do
            play "$order" "$r" "$size" "$net" --steps "$steps" --metrics "cuda.$order.jsonl" &
            pids+=($!)
        done
        gather "${pids[@]}"
        files+=("cuda.$order.jsonl")
        [[ $codes =~ ^[0\ ]*$ ]] && ! grep -q 'cudasim: error' <<<"$text" && continue
        bad+="$order: exit $codes: $(head -12 <<<"$text")"$'\n'
    done
    [ -z "$bad" ]
    ok $? "$name: no report in ${#orders[@]} orders"
    [ -z "$bad" ] || note "$bad"
    text=$(python3 near.py cpu.jsonl "${files[@]}" $tolerance 2>&1)
    ok $? "$name: as target cpu in all of them"
    note "$(tail -1 <<<"$text")"
}

# matrix NET SOURCE STEPS STAGES REGISTERS: by each schedule, on one GPU, and if there are several stages on as many
matrix() {
    local net=$1 source=$2 steps=$3 stages=$4 registers=$5 schedule
    shift 5
    for schedule in "${schedules[@]}"; do
        build "$net" "$source" --set "pipeline.registers=$registers" --set "pipeline.schedule=$schedule" "$@" || continue
        "$ROOT/tests/cudasim/run" --keep="$net.kernels" "$net.cuda/kernels.cu" "$net.cuda/$net" --version >log 2>&1 || note "$(cat log)"
        "$net.cpu/$net" --exact --steps "$steps" --metrics cpu.jsonl --quiet >log 2>&1 || note "$(cat log)"
        all_orders "$net, ${schedule%%(*}, $stages stages on 1 GPU" "$net" 1 "$steps"
        [ "$stages" = 1 ] || all_orders "$net, ${schedule%%(*}, $stages stages on $stages GPUs" "$net" "$stages" "$steps"
    done
}
