#!/bin/bash
# pipeline.t: the pipelined run equals the serial one bit for bit: for each network, schedule and cut, the weights saved
# after 300 steps by --transport serial and by threads are identical files; sequential with any cut equals sequential
# with none; tests during the run change nothing; what the program measures is what `check --json` said.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
RUNS=${RUNS:-3} # of the threaded program, each compared; bench/bit_equality repeats it 10 times

# build NAME TARGET FILE ARGUMENTS...: a program in $WORK/NAME
build() {
    local name=$1 target=$2 file=$3
    shift 3
    "$PNETC" build "$file" -o "$WORK/$name" --quiet --target="$target" "$@" >"$WORK/$name.log" 2>&1 || {
        ok 1 "$name: builds"
        note "$(tail -20 "$WORK/$name.log")"
        return 1
    }
    program=$(find "$WORK/$name" -maxdepth 1 -type f -perm -u+x | head -1)
}
# train OUT ARGUMENTS...: weights in $WORK/OUT
train() {
    local out=$1
    shift
    "$program" --quiet --save "$WORK/$out.safetensors" "$@" >"$WORK/$out.log" 2>&1 || {
        note "$out failed:"
        note "$(tail -5 "$WORK/$out.log")"
        rm -f "$WORK/$out.safetensors"
        return 1
    }
}
same() { cmp -s "$WORK/$1.safetensors" "$WORK/$2.safetensors"; }

# measured_is_predicted NAME REPORT CHECK: staleness, ring, static bytes and traffic, to the digit
measured_is_predicted() {
    python3 - "$2" "$3" <<'PY'
import json, sys
run, said = (json.load(open(p)) for p in sys.argv[1:3])
bad = [f"stage {a['stage']}: {k}: measured {a[k]}, predicted {b[k]}"
       for a, b in zip(run["stages"], said["stages"]) for k in ("staleness", "ring", "static_bytes") if a[k] != b[k]]
bad += [f"{k}: measured {run[k]}, predicted {said[k]}" for k in ("traffic_bytes", "static_bytes") if run[k] != said[k]]
if len(run["stages"]) != len(said["stages"]): bad.append("number of stages")
print("\n".join(bad))
sys.exit(bool(bad))
PY
}

# equality NAME TARGET FILE STEPS ARGUMENTS...
equality() {
    local name=$1 target=$2 file=$3 steps=$4 run status=0
    shift 4
    build "$name" "$target" "$file" "$@" || return
    train "$name-serial" --transport serial --steps "$steps" || status=1
    for run in $(seq "$RUNS"); do
        train "$name-threads" --transport threads --steps "$steps" --report "$WORK/$name.report" || status=1
        same "$name-serial" "$name-threads" || { status=1; note "run $run differs"; }
    done
    ok $status "$name: serial equals threads, bit for bit, $RUNS runs"
    "$PNETC" check "$file" --json --target="$target" "$@" >"$WORK/$name.check" 2>/dev/null
    local text
    text=$(measured_is_predicted "$name" "$WORK/$name.report" "$WORK/$name.check" 2>&1)
    ok $? "$name: measured staleness, ring, traffic and bytes are the predicted ones"
    [ -z "$text" ] || note "$text"
}

lenet=$ROOT/examples/lenet5.pnet
sed '/^ *register$/d' "$lenet" >"$WORK/lenet5.pnet"
lenet=$WORK/lenet5.pnet
small=(--set 'train.data=digits(train = 2000, test = 500)' --set train.batch=20 --set train.lr=0.001) # no cut diverges

for schedule in sequential stale stale_1f1b pipedream 'hybrid(stale, steps = 150, then = sequential)'; do
    for ppv in 1 1,2,3,4; do
        equality "lenet5 ${schedule%%(*} ($ppv)" cpu "$lenet" 300 "${small[@]}" --set "pipeline.schedule=$schedule" \
            --set "pipeline.registers=ppv($ppv)"
    done
done
equality "lenet5 lockstep_b" cpu "$lenet" 300 "${small[@]}" --set 'pipeline.schedule=schedule("lockstep_b", weights = stale)' \
    --set 'pipeline.registers=ppv(1, 3)'
for schedule in stale pipedream; do
    equality "branches $schedule" cpu "$ROOT/tests/nets/branches.pnet" 60 --set pipeline.schedule=$schedule
    equality "branches $schedule ref" ref "$ROOT/tests/nets/branches.pnet" 20 --set pipeline.schedule=$schedule
    equality "autoencoder $schedule" cpu "$ROOT/tests/nets/autoencoder.pnet" 100 --set pipeline.schedule=$schedule
done

for schedule in stale stale_1f1b pipedream; do
    equality "residual $schedule" cpu "$ROOT/tests/nets/residual.pnet" 100 --set pipeline.schedule=$schedule
done
equality "residual, option A" cpu "$ROOT/tests/nets/residual.pnet" 100 -D project=no
equality "residual ref" ref "$ROOT/tests/nets/residual.pnet" 8 --set train.batch=8
equality "residual ref, cuts inside units" ref "$ROOT/tests/nets/residual.pnet" 6 --set train.batch=8 \
    --set 'pipeline.registers=ppv(1, 2, 4, 6, 8)' --set pipeline.schedule=stale_1f1b

# sequential: any cut equals none
build none cpu "$lenet" "${small[@]}" --set pipeline.schedule=sequential && train none --steps 300
for ppv in 1 2 1,3 1,2,3,4; do
    build "cut-$ppv" cpu "$lenet" "${small[@]}" --set pipeline.schedule=sequential --set "pipeline.registers=ppv($ppv)" &&
        train "cut-$ppv" --steps 300
    same none "cut-$ppv"
    ok $? "sequential with registers ($ppv) equals sequential with none"
done
sed '/^ *register$/d' "$ROOT/tests/nets/branches.pnet" >"$WORK/branches.pnet"
build b-none cpu "$WORK/branches.pnet" --set pipeline.schedule=sequential && train b-none --steps 60
build b-cut cpu "$ROOT/tests/nets/branches.pnet" --set pipeline.schedule=sequential && train b-cut --steps 60
same b-none b-cut
ok $? "sequential: branches across four registers equal none"


sed '/^ *register$/d; s/if cut { register }//' "$ROOT/tests/nets/residual.pnet" >"$WORK/residual.pnet"
for run in "ref yes" "cpu yes" "cpu no"; do
    read -r target project <<<"$run"
    steps=60
    [ "$target" = cpu ] || steps=6
    short=(--set pipeline.schedule=sequential --set train.batch=8 -D "project=$project")
    build r-none "$target" "$WORK/residual.pnet" "${short[@]}" && train r-none --steps $steps
    build r-cut "$target" "$ROOT/tests/nets/residual.pnet" "${short[@]}" && train r-cut --steps $steps
    same r-none r-cut
    ok $? "sequential: residual on $target (project=$project) with registers inside a unit equals none"
    build r-many "$target" "$WORK/residual.pnet" "${short[@]}" --set 'pipeline.registers=ppv(1, 2, 3, 5, 7)' &&
        train r-many --steps $steps
    same r-none r-many
    ok $? "sequential: residual on $target (project=$project) in six stages equals one"
done

# running statistics: one copy whatever the schedule, none for the optimiser; saved under their names; a test after update
# m sees minibatches 1..m in every stage, so a run of m steps and a longer one that tests in between agree; loading restores
build r-run cpu "$ROOT/tests/nets/residual.pnet" --set pipeline.schedule=stale
train r-long --steps 40 --eval-every 17 --transport threads --metrics "$WORK/r-long.jsonl"
train r-17 --steps 17 --eval-every 0 --metrics "$WORK/r-17.jsonl"
train r-same --steps 0 --load "$WORK/r-17.safetensors" --metrics "$WORK/r-same.jsonl"
python3 - "$WORK" <<'PY'
import json, struct, sys
work = sys.argv[1]
def tests(name):
    rows = [json.loads(line) for line in open(f"{work}/{name}.jsonl")]
    return {r["step"]: (r["test_accuracy"], r["test_loss"]) for r in rows if "test_accuracy" in r}
long, short = tests("r-long"), tests("r-17")
assert long[17] == short[17], (long, short)
assert list(tests("r-same").values()) == [short[17]], (tests("r-same"), short)
data = open(f"{work}/r-17.safetensors", "rb").read()
header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
names = [n for n in header if ".running_" in n]
assert len(names) == 20, names
PY
ok $? "running statistics: exactly minibatches 1..m after update m; saved and loaded"

# tests during the run disturb nothing
build tested cpu "$lenet" "${small[@]}" --set pipeline.schedule=stale --set 'pipeline.registers=ppv(1, 2, 3)'
train tested-0 --steps 200 --eval-every 0
train tested-7 --steps 200 --eval-every 7
same tested-0 tested-7
ok $? "weights with a test every 7 steps equal those without"
train tested-s --steps 200 --eval-every 7 --transport serial --metrics "$WORK/serial.jsonl"
train tested-t --steps 200 --eval-every 7 --transport threads --metrics "$WORK/threads.jsonl"
# a test after update m sees weights after exactly m updates: a run of m steps ends with the same accuracy
train tested-21 --steps 21 --eval-every 0 --metrics "$WORK/short.jsonl"
python3 - "$WORK" <<'PY'
import json, sys
def tests(name):
    rows = [json.loads(line) for line in open(f"{sys.argv[1]}/{name}.jsonl")]
    return {r["step"]: (r["test_accuracy"], r["test_loss"]) for r in rows if "test_accuracy" in r}
a, b, c = tests("serial"), tests("threads"), tests("short")
assert len(a) >= 28 and a == b, (a, b)
assert c[21] == a[21], (c, a[21])
PY
ok $? "tests after m updates: the same accuracy in serial, threads, and in a run of m steps"

# save and load: training on from saved weights starts where they ended
train twice --steps 100 --load "$WORK/tested-0.safetensors"
ok $? "--load takes what --save wrote"
done_testing
