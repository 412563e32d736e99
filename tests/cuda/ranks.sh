#!/bin/bash
# ranks.sh: programs of target cuda as several processes under the simulator, a GPU and NCCL in each. Source it behind sim.sh.
order=eager port=$((20000 + $$ * 97 % 20000)) # tests that run side by side keep apart

# rank RANK SIZE NET ARGUMENTS...: one process, in the foreground; options for the simulator in `with`, variables in `set_for`;
# `stats`: the file of --stats, with the rank behind it, empty: none
with=() set_for=() stats=''
rank() {
    local number=$1 size=$2 net=$3
    shift 3
    env RANK="$number" LOCAL_RANK="$number" WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
        ${set_for[@]+"${set_for[@]}"} timeout 100 "$ROOT/tests/cudasim/run" --order="$order" --devices=4 --world="$WORK/world" \
        --keep="$net.kernels" ${stats:+--stats="$stats.$number"} ${with[@]+"${with[@]}"} "$net.cuda/kernels.cu" "$net.cuda/$net" "$@" >"out.$number" 2>&1
}
# meet NET: a new world: another port, an empty folder, and its kernels compiled, which four at once could not
meet() {
    port=$((port + 1))
    rm -rf world out.* && mkdir world
    "$ROOT/tests/cudasim/run" --keep="$1.kernels" "$1.cuda/kernels.cu" "$1.cuda/$1" --version >log 2>&1
}
# ranks SIZE NET ARGUMENTS...: all of them; sets codes, text
ranks() {
    local size=$1 net=$2 r
    local -a pids=()
    meet "$net"
    shift
    for ((r = 0; r < size; r++)); do
        rank "$r" "$size" "$@" &
        pids+=($!)
    done
    gather "${pids[@]}"
}
# gather PIDS...: waits; sets codes ("0 0") and text (all that was said)
gather() {
    local pid
    codes=
    for pid in "$@"; do
        wait "$pid"
        codes+="${codes:+ }$?"
    done
    text=$(cat out.*)
}
# compare_ranks NAME NET STEPS "SIZE:ORDER...": trains, against target cpu
compare_ranks() {
    local name=$1 net=$2 steps=$3 one size
    "$net.cpu/$net" --exact --steps "$steps" --metrics cpu.jsonl --quiet ${data:+--data "$data"} >log 2>&1 || note "$(cat log)"
    for one in $4; do
        size=${one%%:*} order=${one#*:}
        rm -f cuda.jsonl
        ranks "$size" "$net" --steps "$steps" --metrics cuda.jsonl ${data:+--data "$data"}
        [[ $codes =~ ^[0\ ]*$ ]] && ! grep -q 'cudasim: error' <<<"$text"
        ok $? "$name, $size ranks, $order: no report"
        [[ $codes =~ ^[0\ ]*$ ]] || note "exit $codes: $(head -12 <<<"$text")"
        text=$(python3 near.py cpu.jsonl cuda.jsonl "${tolerance:-1e-5}" 2>&1)
        ok $? "$name, $size ranks, $order: as target cpu"
        note "$(tail -1 <<<"$text")"
    done
}
