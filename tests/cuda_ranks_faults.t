#!/bin/bash
# cuda_ranks_faults.t: several processes of target cuda under the simulator: what goes wrong in one ends all of them, each with a clear line and
# exit 1, without a hang; an interrupt at one rank ends all behind the same minibatch. How ranks come together: cuda_ranks_join.t.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"

build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=0

said() { like "$(cat "out.$1")" "$2" "$3"; } # RANK PATTERN NAME

# ---- a rank that fails: the others say which, and why ----
start() { # in the background: rank 0 with what is in `with`, then rank 1 with these options of the simulator
    meet lenet5
    rm -f steps.jsonl
    rank 0 2 lenet5 --steps 400 --metrics steps.jsonl --save interrupted.safetensors &
    zero=$!
    with=("$@")
    rank 1 2 lenet5 --steps 400 --metrics steps.jsonl --save interrupted.safetensors &
    one=$!
    with=()
}
for failure in cudaGraphLaunch:20 ncclCommInitRank:1 cudaMalloc:2:GPU.memory cudaEventRecord:90; do
    call=${failure%%:*}
    start --fail="$(cut -d: -f1,2 <<<"$failure")"
    gather "$zero" "$one"
    is "$codes" "1 1" "$call fails in rank 1: both end with 1"
    what=$(cut -d: -f3 <<<"$failure")
    said 0 "error: .*rank 1 .*: stage 1: .*${what:-$call}" "$call fails in rank 1: rank 0 says so"
done

# ---- a rank that is killed, or stands still ----
wait_for_steps() { for ((i = 0; i < 400; i++)); do [ -s steps.jsonl ] && break; sleep 0.05; done; }
child() { pgrep -P "$(pgrep -P "$(pgrep -P "$1" | head -1)" | head -1)" lenet5; } # bash, timeout, run, program
for victim in 0 1; do
    start
    wait_for_steps
    pids=("$zero" "$one")
    pid=$(child "${pids[victim]}")
    kill -KILL "$pid"
    gather "$zero" "$one"
    wanted=('137 1' '1 137')
    is "$codes" "${wanted[victim]}" "rank $victim is killed: the other one ends with 1"
    said $((1 - victim)) "rank $((1 - victim)) ends: rank $victim .*is gone.*Last it was at: round [0-9]+, stage $victim: the" \
        "rank $victim is killed: the other one says so, and what it did last"
done
set_for=(PN_TIMEOUT=2)
start
wait_for_steps
pid=$(child "$one")
kill -STOP "$pid"
wait "$zero"
said 0 'no rank has done a step in [0-9.]+ seconds' "rank 1 stands still: rank 0 gives up after PN_TIMEOUT"
said 0 'rank 1 .* from which nothing was heard for .* round [0-9]+, stage 1: ' "rank 1 stands still: the message says what each rank did"
kill -CONT "$pid"
gather "$one"
is "$codes" 1 "rank 1 stood still: it ends, too"

# ---- Ctrl-C at one rank, whatever the other one is at: all end behind the same minibatch, and rank 0 saves ----
set_for=()
for interrupted in 1 0 1 0; do
    rm -f interrupted.safetensors
    start
    wait_for_steps
    pids=("$zero" "$one")
    kill -INT "$(child "${pids[interrupted]}")"
    gather "$zero" "$one"
    is "$codes" "0 0" "an interrupt at rank $interrupted: both end well"
    [ "$codes" = "0 0" ] || note "$text"
    said 0 'interrupted after [0-9]+ of 400 steps' "an interrupt at rank $interrupted: rank 0 says where"
    [ -s interrupted.safetensors ]
    ok $? "an interrupt at rank $interrupted: rank 0 saves the weights"
done

# ---- divergence: the loss is in rank 1 ----
build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.lr=1e6
ranks 2 lenet5 --steps 50 --quiet
is "$codes" "3 3" "training diverges: exit 3 everywhere"
said 0 'rank 1 .*training diverged' "training diverges: rank 0 says so"

# ---- the simulator sees what is wrong between ranks ----
build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=8 --set 'train.data=digits(train = 64, test = 20)' --set train.test_every=0
set_for=(PN_TIMEOUT=3)
meet lenet5
rank 0 2 lenet5 --steps 20 --quiet &
zero=$!
with=(--drop=ncclSend:3)
rank 1 2 lenet5 --steps 20 --quiet &
one=$!
with=()
gather "$zero" "$one"
like "$codes" '^(1|99|98) (1|99|98)$' "a send that is left out: no rank ends well"
note "$(head -3 <<<"$text")"
done_testing
