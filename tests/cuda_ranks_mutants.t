#!/bin/bash
# cuda_ranks_mutants.t: of programs of target cuda in 2 ranks, each wait, record and rule that orders what crosses between ranks
# (runtime/transport/{rounds,ranks}.c, runtime/cuda/{exchange,nccl,graph,order}.c) is left out in turn: the source is edited, built and linked
# in front of the runtime. What orders work on a GPU the simulator misses, by stage, kernel or call, and buffer; what orders the hosts ends
# the run with a line. Four rules are implied by others today, and kept because they are what each slot is owed: without them the laziest
# order must give the same weights. What only bounds how far a host is ahead (pn_target_pace), or lets parts of an exchange go at once (the
# group, whose parts have the same order on all ranks), orders nothing.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
export ARCH=90 CFLAGS=-O1 # kernels of the simulator's GPU alone
read -r -a libraries < <("$PNETC" flags --libs=cuda)
with=(--patience=1)

# link FILE.c...: the program, with these in front of the runtime
link() {
    "${cc[@]}" -std=c11 -D_POSIX_C_SOURCE=200809L -O1 -ffp-contract=off -Wall -Werror -Wno-unused -Wno-misleading-indentation -Wno-empty-body \
        -iquote "$ROOT/runtime" -isystem "${CUDA_HOME:-/usr/local/cuda}/include" -o "$net.cuda/$net" "$net.cuda"/build/*.o "$@" \
        "${libraries[@]}" >log 2>&1
}
# program NAME SOURCE REGISTERS SCHEDULE VARIABLES...: what the next mutants are of; whole, it runs without a report
program() {
    set_for=(PN_TIMEOUT=3 "${@:5}")
    net=$(basename "$2" .pnet)
    build "$net" "$2" --set train.batch=2 --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=5 \
        --set "pipeline.registers=$3" --set "pipeline.schedule=$4"
    ranks 2 "$net" --steps 10 --quiet --save whole.safetensors
    is "$codes" "0 0" "$1: no report"
}
# edited FILE SED ARGUMENTS...: runs the program with the edit; sets codes, text
edited() {
    local file
    file=$(basename "$1")
    sed -E "$2" "$ROOT/runtime/$1" >"$file"
    codes=''
    if cmp -s "$file" "$ROOT/runtime/$1"; then
        text="the edit does not fit $1"
    elif link "$file"; then
        ranks 2 "$net" --steps 10 --quiet "${@:3}"
    else
        text=$(cat log)
    fi
}
# mutant NAME FILE SED PATTERN: with the edit, a rank does not end well, and this is said
mutant() {
    edited "$2" "$3"
    [[ $codes =~ [1-9] ]] && grep -Eq -- "$4" <<<"$text"
    ok $? "without $1: missed"
    note "$(grep -E -m 3 'error|edit' <<<"$text") (exit $codes)"
}
# implied NAME FILE SED: with the edit, nothing is reported, and the weights are those of the whole program
implied() {
    order=lazy
    edited "$2" "$3" --save without.safetensors
    order=eager
    [ "$codes" = "0 0" ] && cmp -s whole.safetensors without.safetensors
    ok $? "without $1: implied by others"
    [ "$codes" = "0 0" ] || note "$(grep -E -m 3 'error|edit' <<<"$text") (exit $codes)"
}
race="race: the (read of|write to) buffer 'stage [0-9] [^']*'.* is not ordered after the (read|write) by (kernel|cuDNN|NCCL) .*stream 'stage [0-9]'"
unwritten="uninitialised read: nothing has written buffer 'stage [0-9] [^']*'"
one_at_a_time="nothing orders NCCL exchange of rank [01] .*stream 'stage [0-9]'.* and the one before it .*stream 'stage [0-9]'"

lenet=$ROOT/examples/lenet5.pnet
program "4 stages" "$lenet" 'ppv(1, 2, 3)' stale
sent='s/CU\(.*slot->given : slot->freed, 0\)\);/{ if (!part->sends) & }/'
mutant "the wait until what is sent has been given" cuda/order.c "$sent" "$race"
mutant "the record that what was received is there" cuda/order.c 's/CU\(.*slot->freed : slot->given, stream\)\);/{ if (part->sends) & }/' "$race|$unwritten"
mutant "the wait for room" cuda/order.c '/case PN_AT_ROOM/,/break/s/CU\(.*WaitEvent\(stream, slot->freed.*/;/' "$race"
mutant "the record of what is given" cuda/order.c '/case PN_AT_GIVE/,/break/s/CU\(.*Record\(slot->given.*/;/' "$race"
mutant "the wait for what is taken" cuda/order.c '/case PN_AT_TAKE/,/break/s/CU\(.*WaitEvent\(stream, slot->given.*/;/' "$race"
mutant "the record of what is freed" cuda/order.c '/case PN_AT_DONE/,/break/s/CU\(.*Record\(slot->freed.*/;/' "$race"
mutant "the wait for the exchange before" cuda/exchange.c 's/CU\(.*StreamWaitEvent\(.*->last, 0\)\);/;/' "$one_at_a_time"
mutant "the record of an exchange" cuda/exchange.c 's/CU\(.*EventRecord\(cuda_ranks_of\(stage\)->last.*/;/' "$one_at_a_time"
mutant "all waits of an exchange alone" cuda/exchange.c '/^void cuda_exchange_alone/,/^}/s/cuda_exchange_before\(.*/;/' "$race"
mutant "all records of an exchange alone" cuda/exchange.c '/^void cuda_exchange_alone/,/^}/s/cuda_exchange_behind\(.*/;/' "$one_at_a_time"
mutant "all waits of an exchange in a step" cuda/graph.c '/^static void launch/,/^}/s/cuda_exchange_before\(.*/;/' "$one_at_a_time"
mutant "all records of an exchange in a step" cuda/graph.c '/^static void launch/,/^}/s/cuda_exchange_behind\(.*/;/' "$race"
mutant "the host's wait for an event" cuda/nccl.c '/^void cuda_wait\(/,/^}/s/if \(error == cudaSuccess\)/if (1)/' \
    "host code reads buffer 'stage [0-9] losses, pinned'.*has not waited for copy"
mutant "the end of what was sent" transport/ranks.c 's/^( *)slot_done\(.*/;/' "stage 1: internal error: no room for minibatch [0-9]+ of pool2"
mutant "the arrival of what was received" transport/ranks.c 's/^( *)slot_give\(.*/;/' "stage 2: internal error: minibatch 0 of pool2 is not there"
mutant "the last step for the exchange, but the first" transport/ranks.c \
    '/^static int find_carrier/,/^}/s/for \(.*/for (int i = 0; i < round->steps; i++) {/' "ncclSend: $unwritten"
mutant "the end of a round before an exchange alone" transport/ranks.c \
    '/^static bool do_round/,/^}/{/if \(count > 0 && carrier < 0/,+1d;s/^(    const int carrier.*)/\1\n    if (count > 0 \&\& carrier < 0 \&\& !exchange(any_stage(run), transfer, count, false)) return false;/}' \
    "ncclSend: $unwritten"
mutant "an exchange in one rank of a round" transport/ranks.c \
    's/if \(!crosses\(run, channel\)\)/if (!crosses(run, channel) || (round->number == 5 \&\& run->stage[0].here))/' "no room for minibatch|deadlock"
mutant "the rule that what is taken was given in an earlier round" transport/rounds.c 's/!slots->full\[slot\] \|\| //' "internal error: minibatch 0 of pool2 is not there"
mutant "the end of a round" transport/rounds.c 's/^        memcpy\(rounds->slots\[i\]\.full.*/;/' "internal error: no stage can go on after round"

program "4 stages, sequential" "$lenet" 'ppv(1, 2, 3)' sequential
mutant "the rule that what is taken was not freed in the round" transport/rounds.c 's/ \|\| !slots->later\[slot\]//' "internal error: minibatch [0-9]+ of .* is not there"

implied "the rule that there is room" transport/rounds.c 's/if \(slots->later\[slot\]\)/if (0)/'
implied "the rule that the backward frees what it reads" transport/rounds.c 's/step.action != ACTION_FORWARD \|\| !channels.takes\[i\]->held/1/'

program "6 stages, launched one by one" "$ROOT/tests/cuda/small_resnet.pnet" 'ppv(1, 2, 3, 4, 5)' stale PN_CUDA_EAGER=1
# The backward that frees a slot gives a gradient, for which an exchange of its round waits; a slot is written again behind a value that
# came with the exchange which sent it.
implied "the wait until what is overwritten has been freed" cuda/order.c 's/CU\(.*slot->given : slot->freed, 0\)\);/{ if (part->sends) & }/'
implied "the record that what was sent is free" cuda/order.c 's/CU\(.*slot->freed : slot->given, stream\)\);/{ if (!part->sends) & }/'
done_testing
