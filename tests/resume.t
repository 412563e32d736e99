#!/bin/bash
# resume.t: a run that is stopped and goes on equals one that was not, bit for bit, where its pipe was empty at the stop:
# sequential anywhere, hybrid at its switch (even joined from two programs), with batch norm's running statistics, dropout,
# random crops and the loader thread. Checkpoints of a running pipeline are those of their step; the last good one survives
# kill -9, an interrupt and a full disk; those of other networks are refused.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
cat >net.pnet <<'END'
network net {
    input image: f32[1, 28, 28]
    input label: class[10]
    a = image |> conv(8, kernel = 5, stride = 2) |> batch_norm |> relu
    b = a |> conv(16, kernel = 3, stride = 2) |> batch_norm |> relu |> flatten |> dropout(0.2)
    h = b |> linear(10)
    loss softmax_cross_entropy(h, label)
}
train {
    data      = digits(train = 1000, test = 200, crop = 2, flip = true)
    batch     = 20
    optimizer = sgd(momentum = 0.9, weight_decay = 0.0001)
    lr        = inv(0.01)
    steps     = 200
}
END
# build NAME ARGUMENTS...
build() {
    local name=$1
    shift
    "$PNETC" build net.pnet -o "$name" --quiet "$@" >"$name.log" 2>&1 || {
        note "$(tail -5 "$name.log")"
        ok 1 "$name builds"
        done_testing
    }
}
build sequential --set pipeline.schedule=sequential --set 'pipeline.registers=ppv(1)'
build stale --set pipeline.schedule=stale --set 'pipeline.registers=ppv(1, 2)'
build hybrid --set 'pipeline.schedule=hybrid(stale, steps = 100, then = sequential)' --set 'pipeline.registers=ppv(1, 2)'
# run PROGRAM ARGUMENTS...
run() {
    local name=$1
    shift
    "$name/net" --quiet "$@" >>out.log 2>&1 || note "$name $*: exit $?: $(tail -1 out.log)"
}
same() {
    cmp -s "$1" "$2"
    ok $? "$3"
}
step_of() { head -c 1000 "$1" | grep -ao '"step":"[0-9]*"' | tr -dc 0-9; }

# ---- one run in two parts ----
run sequential --steps 200 --save whole --checkpoint whole.c
run sequential --steps 120 --checkpoint part.c
is "$(step_of part.c)" 120 "the checkpoint's step"
run sequential --steps 200 --resume part.c --save joined --checkpoint joined.c
same whole joined "sequential: 200 steps are 120 + 80"
same whole.c joined.c "sequential: the same in the optimiser's state and the running statistics"
run sequential --steps 200 --resume part.c --save joined --transport serial --prefetch 0
same whole joined "the same on the serial transport, without the loader"
run sequential --steps 120 --save part
run sequential --steps 200 --load part --save loaded
cmp -s whole loaded
ok $((!$?)) "weights alone (--load) go another way"
like "$(tail -1 out.log)" 'test accuracy [3-9][0-9]\.' "and all of that is a training that learns"

run hybrid --steps 200 --save whole
run stale --steps 100 --checkpoint part.c
run sequential --steps 200 --resume part.c --save joined
same whole joined "hybrid equals a stale run that a sequential program goes on with"
run hybrid --steps 100 --checkpoint part.c
run hybrid --steps 200 --resume part.c --save joined
same whole joined "hybrid stopped at its switch goes on with its second phase"

run stale --steps 90 --save a --prefetch 0 --transport serial
run stale --steps 90 --save b --prefetch 2
run stale --steps 90 --save c --prefetch 9 --transport serial --eval-every 20
same a b "crops and mirror images are the same with the loader and without, on both transports"
same a c "and with tests between"

# ---- an interrupt ----
"sequential/net" --steps 100000000 --checkpoint stopped.c >out.int 2>&1 &
pid=$!
for _ in $(seq 200); do
    grep -q 'layers$' out.int && break
    sleep 0.02
done
sleep 0.2
kill -INT $pid
wait $pid
is $? 0 "SIGINT: exit 0"
at=$(step_of stopped.c)
like "$(cat out.int)" "wrote the checkpoint of step $at to" "SIGINT: a checkpoint is written"
run sequential --steps "$at" --checkpoint straight.c
same stopped.c straight.c "SIGINT: it is that of a run of $at steps"
run sequential --steps $((at + 60)) --resume stopped.c --save a
run sequential --steps $((at + 60)) --save b
same a b "SIGINT: and goes on as if nothing had been"

# ---- while the pipeline runs ----
# After update m a stage is as after a run of m steps: forwards change nothing that lasts.
whole=0
steps=()
for round in 1 2 3 4; do
    "stale/net" --steps 100000000 --checkpoint running.c --checkpoint-every $((round % 3 + 1)) >out.kill 2>&1 &
    pid=$!
    for _ in $(seq 200); do
        [ -s running.c ] && break
        sleep 0.02
    done
    sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
    kill -9 $pid
    wait $pid 2>/dev/null
    at=$(step_of running.c)
    steps+=("$at")
    run stale --steps "$at" --checkpoint straight.c
    cmp -s running.c straight.c || { whole=1; note "the checkpoint of step $at is another"; }
    rm -f running.c running.c.new-*
done
ok $whole "kill -9 at steps ${steps[*]}: each file is whole, and that of a run of so many steps"

# ---- a full disk ----
run sequential --steps 40 --checkpoint good.c
cp good.c before.c
(
    trap '' XFSZ
    ulimit -f 20
    sequential/net --steps 60 --resume good.c --checkpoint good.c --checkpoint-every 10 >out.full 2>&1
)
is $? 1 "a full disk: exit 1"
like "$(cat out.full)" '^warning: checkpoint of step 50: cannot write good.c: .*; training goes on$' "a full disk: is told"
like "$(cat out.full)" '^error: cannot write good.c: File too large' "a full disk: at the end too"
like "$(tail -1 out.full)" '^test accuracy' "a full disk: the training ends"
same good.c before.c "a full disk: the old file is whole"
is "$(ls good.c.new-* 2>/dev/null)" "" "a full disk: no part of a file is left"
if gcc -shared -fPIC -o enospc.so "$ROOT/tests/fault/enospc.c" -ldl 2>shim.log && [ -z "${SANITIZE:-}" ]; then
    LD_PRELOAD=$WORK/enospc.so FAULT=fsync:1 sequential/net --steps 45 --resume good.c --checkpoint good.c >out.full 2>&1
    is $? 1 "a disk that is full at fsync: exit 1"
    same good.c before.c "a disk that is full at fsync: the old file is whole"
fi

# ---- other checkpoints ----
# refused NAME PATTERN ARGUMENTS...
refused() {
    local name=$1 pattern=$2
    shift 2
    out=$("$@" --steps 50 --resume good.c 2>&1)
    is $? 1 "$name: exit 1"
    like "$out" "$pattern" "$name: says so"
}
sed 's/conv(8,/conv(9,/' net.pnet >other.pnet
"$PNETC" build other.pnet -o other --quiet --set train.batch=20 >other.log 2>&1
refused "another network" 'good.c does not fit this network:' other/net
like "$out" 'shape: conv1.weight is \[8,1,5,5\] in the file, the network wants \[9,1,5,5\]' "another network: names the tensors"
like "$out" 'shape: optimizer/0/conv1.weight' "another network: and the optimiser's state"
build batch --set train.batch=10
refused "another batch" "good.c was written by a run with batch 20; this program's is 10" batch/net
mkdir raw
for part in train test; do
    head -c $((784 * 20)) /dev/zero >raw/$part.u8
    head -c 20 /dev/zero >raw/$part.labels
done
refused "other data" 'good.c was written by a run on built-in digits, 1000 \+ 200 images.*; these are raw data' \
    sequential/net --data raw:raw
refused "another seed" 'good.c was written by a run with seed 1, not 2' sequential/net --seed 2
sed 's/"optimizer":"sgd"/"optimizer":"abc"/' before.c >good.c
refused "another optimiser" 'good.c was written by a run with optimizer abc; this program trains with sgd' sequential/net
head -c 5000 before.c >good.c
refused "a truncated file" 'lies outside the file|truncated' sequential/net
run sequential --steps 40 --save good.c
refused "weights alone" 'good.c is no checkpoint: it says nothing of its step \(--load reads weights alone\)' sequential/net
done_testing
