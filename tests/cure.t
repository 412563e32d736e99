#!/bin/bash
# cure.t: corrections of staleness in generated programs: serial equals threads bit for bit with each of them and with all
# that go together; a stage without delay has the bits of plain SGD; a run resumed behind a switch of phases ends as one that
# went through; what check says of them, and its warning.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

lenet=$WORK/lenet5.pnet
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >"$lenet"
small=(--set 'train.data=digits(train = 2000, test = 200)' --set train.batch=20 --set train.test_every=0)

# build NAME ARGUMENTS...: the program $WORK/NAME/lenet5
build() {
    local name=$1
    shift
    "$PNETC" build "$lenet" -o "$WORK/$name" --quiet -Wno-stability "${small[@]}" "$@" >"$WORK/$name.log" 2>&1 || {
        ok 1 "$name: builds"
        note "$(tail -20 "$WORK/$name.log")"
        return 1
    }
}
# train NAME OUT ARGUMENTS...: weights in $WORK/OUT.safetensors
train() {
    local name=$1 out=$2
    shift 2
    "$WORK/$name/lenet5" --quiet --save "$WORK/$out.safetensors" "$@" >"$WORK/$out.log" 2>&1 || {
        note "$(tail -5 "$WORK/$out.log")"
        rm -f "$WORK/$out.safetensors"
    }
}
same() { cmp -s "$WORK/$1.safetensors" "$WORK/$2.safetensors"; }

number=0
while IFS='|' read -r schedule cure optimizer; do
    number=$((number + 1))
    build "c$number" --set "pipeline.schedule=$schedule" --set 'pipeline.registers=ppv(1, 2, 4)' \
        --set "pipeline.cure=$cure" --set train.lr=0.003 --set "train.optimizer=${optimizer:-sgd(momentum = 0.9)}" || continue
    train "c$number" "c$number-serial" --transport serial --steps 60
    train "c$number" "c$number-threads" --transport threads --steps 60
    same "c$number-serial" "c$number-threads"
    ok $? "$schedule, cure = $cure${optimizer:+, $optimizer}: serial equals threads"
done <<'LIST'
stale|auto
stale|lookahead
stale|(lookahead(horizon = 0.5), lr_reschedule(part = 0.5), warmup)
stale|discrepancy
stale|(spike, lookahead)
stale_1f1b|auto
pipedream|auto
schedule("1f1b", weights = predict)|none
schedule("lockstep", weights = predict)|auto
hybrid(stale, steps = 30, then = sequential)|auto
stale|accumulate(a = 3)
pipedream|(accumulate, momentum_by_delay, lr_reschedule)
stale_1f1b|(accumulate(4), lookahead)
stale|(accumulate, discrepancy)
schedule("1f1b", weights = predict)|accumulate
hybrid(stale, steps = 29, then = hybrid(sequential, steps = 3, then = stale_1f1b))|(accumulate(a = 4), lookahead)
stale|auto|adam
stale|discrepancy|adamw(weight_decay = 0.1)
schedule("1f1b", weights = predict)|lr_reschedule|adam
stale|auto|sgd(momentum = 0.9, nesterov = yes)
LIST

build none --set pipeline.schedule=stale --set 'pipeline.registers=ppv(1, 2, 4)' --set train.lr=0.003 &&
    train none none-threads --steps 60
! same none-threads c1-threads
ok $? "the cure changes a stale run"
build plain --set pipeline.schedule=sequential --set 'pipeline.registers=ppv(2)' --set train.lr=0.003 &&
    train plain plain --steps 60
build plain-auto --set pipeline.schedule=sequential --set 'pipeline.registers=ppv(1, 2, 4)' --set pipeline.cure=auto \
    --set train.lr=0.003 && train plain-auto plain-auto --steps 60
same plain plain-auto
ok $? "without delay cure = auto is plain SGD, bit for bit"

# A run that ends drains its pipeline: the same bits from the switch on.
build constant --set 'pipeline.schedule=hybrid(stale, steps = 30, then = sequential)' --set 'pipeline.registers=ppv(1, 2, 4)' \
    --set 'pipeline.cure=(lookahead, momentum_by_delay)' --set train.lr=0.003
train constant through --steps 60
for at in 30 40; do
    train constant part --steps $at --checkpoint "$WORK/part.checkpoint"
    train constant resumed --steps 60 --resume "$WORK/part.checkpoint"
    same through resumed
    ok $? "resumed at step $at of a run that switches at 30: its velocity goes on, the bits of the whole run"
done

build gathers --set 'pipeline.schedule=hybrid(stale, steps = 30, then = sequential)' --set 'pipeline.registers=ppv(1, 2, 4)' \
    --set 'pipeline.cure=(accumulate(a = 4), lookahead)' --set train.lr=0.003
train gathers through --steps 60
for at in 30 33; do
    train gathers part --steps $at --checkpoint "$WORK/part.checkpoint"
    train gathers resumed --steps 60 --resume "$WORK/part.checkpoint"
    same through resumed
    ok $? "resumed at step $at, with two gradients left of a group of four at 30: the bits of the whole run"
done

build adam --set pipeline.schedule=sequential --set 'pipeline.registers=ppv(2)' --set train.lr=0.003 --set train.optimizer=adam
train adam through --steps 40
train adam part --steps 20 --checkpoint "$WORK/part.checkpoint"
train adam resumed --steps 40 --resume "$WORK/part.checkpoint"
same through resumed
ok $? "both states of Adam are in a checkpoint"

check() { "$PNETC" check "$lenet" "${small[@]}" --set pipeline.schedule=stale "$@" >"$WORK/out" 2>"$WORK/err"; }
deep=(--set 'pipeline.registers=ppv(1, 2, 3, 4)' --set train.lr=0.2)
check "${deep[@]}"
is "$?: $(grep -c 'warning: stage 0 is 8 updates stale.*G = .* = 17, over 10.*\[P0443\]' "$WORK/err")" "0: 1" "over the limit: a warning"
like "$(tail -1 "$WORK/err")" 'cure = auto; the order 1f1b \(schedule = stale_1f1b\): G = 9; a rate of 0.12: G = 10' "what would lower it"
check "${deep[@]}" -Wno-stability
is "$?: $(cat "$WORK/err")" "0: " "-Wno-stability"
check --set 'pipeline.registers=ppv(1, 2, 3, 4)' --set train.lr=0.1 --set train.steps=2500 --set pipeline.cure=auto
is "$?: $(grep -c 'warning: stage 0 is 8 updates stale.*G = .* = 8.5, and 2500 steps are few for its cure.*\[P0443\]' "$WORK/err")" "0: 1" \
    "a cure in a short run: a warning"
like "$(tail -1 "$WORK/err")" '4800 steps or more; .* a rate of 0.0059: G = 0.5; ' "what would help"
check --set 'pipeline.registers=ppv(1, 2, 3, 4)' --set train.lr=0.1 --set train.steps=4800 --set pipeline.cure=auto
is "$?: $(cat "$WORK/err")" "0: " "in a longer run: none"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.01 --set train.steps=2500 --set pipeline.cure=auto
is "$?: $(grep -c 'G = .* = 0.25, which says too little without batch normalisation, and 2500 steps are few.*\[P0443\]' "$WORK/err")" "0: 1" \
    "without batch normalisation below the limit, too"
like "$(tail -1 "$WORK/err")" '4800 steps or more; .*; fewer stages; or hybrid\(sequential, steps = n, then = stale\), which begins' "what would help there"
check "${deep[@]}" -Wstability=error
is "$?: $(grep -c 'error: stage 0 is 8 updates stale' "$WORK/err")" "1: 1" "-Wstability=error"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.1
like "$(cat "$WORK/out")" 'stability    G up to 2.5: .* x \(2 \+ 1/2\) in stage 0; over 0.5 it costs accuracy' "check prints G"
like "$(cat "$WORK/out")" 'by the order 1f1b \(schedule = stale_1f1b\) G up to 1.5' "and G by the order with half the delay"
like "$(cat "$WORK/out")" 'not corrected; cure = auto' "and that nothing corrects it"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.1 --set pipeline.schedule=stale_1f1b
is "$(grep -c 'by the order' "$WORK/out")" 0 "which has nothing to gain there"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.1 --set pipeline.cure=none
is "$(grep -c 'not corrected' "$WORK/out")" 0 "cure = none says that it is wanted so"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.01
like "$(cat "$WORK/out")" 'G up to 0.25: .*; without batch normalisation more is lost' "below the limit, which was measured with batch normalisation"
like "$(cat "$WORK/out")" 'hybrid\(sequential, steps = n, then = stale\) would begin without staleness' "and what helps"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.01 --set 'pipeline.schedule=schedule("lockstep", weights = stash)'
like "$(cat "$WORK/out")" 'then = \.\.\.\) would begin' "a schedule without a name of its own is not named"
normalised=("$ROOT/examples/resnet.pnet" --set train.lr=0.01 --set pipeline.schedule=stale)
like "$("$PNETC" check "${normalised[@]}" 2>&1)" 'G up to 0.25: .*; up to 0.5 little is lost' "below the limit, with it"
check --set 'pipeline.registers=ppv(1)' --set train.lr=0.1 --set pipeline.cure=auto
like "$(cat "$WORK/out")" 'stage 0, G 2.5: forward 1.71 v ahead, momentum 0.9, / 2\^\(1 - k/K\) until 25 % or 1200 updates' "check prints the cure"
done_testing
