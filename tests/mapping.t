#!/bin/bash
# mapping.t: mapping = split, a worker for the forwards and one for the backwards of a stage: the bits of mapping = joined,
# serially and on threads, for networks, cuts, schedules and both targets; what is measured is what was predicted; tests,
# checkpoints, corrections and Ctrl-C do what they do to joined stages; traces, reports and pictures know of the halves.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/programs.sh
. "$ROOT/tests/programs.sh"
nets=$ROOT/tests/nets
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >"$WORK/lenet5.pnet"
lenet=$WORK/lenet5.pnet
small=(--set 'train.data=digits(train = 400, test = 130)' --set train.batch=12 --set train.lr=0.001 --set pipeline.balance=1000)
fast=ref
[ -e "$B/lib/libpn_cpu.a" ] && fast=cpu

# as_predicted REPORT CHECK: 2K + 1 workers; staleness and ring of both halves, and their bytes; traffic
as_predicted() {
    python3 - "$WORK/$1" "$WORK/$2" <<'PY'
import json, sys
run, said = (json.load(open(p)) for p in sys.argv[1:3])
bad = [k for k in ("traffic_bytes", "static_bytes") if run[k] != said[k]]
stages = said["stages"]
if len(run["stages"]) != 2 * len(stages) - 1 or said["prediction"]["workers"] != 2 * len(stages) - 1: bad.append("workers")
for s in stages:
    mine = [r for r in run["stages"] if r["stage"] == s["stage"]]
    last = s is stages[-1]
    if [r["half"] for r in mine] != (["whole"] if last else ["forward", "backward"]) or s["halves"] == last: bad.append("halves")
    if sum(r["static_bytes"] for r in mine) != s["static_bytes"]: bad.append("static_bytes of a stage")
    if not last and mine[0]["static_bytes"] != s["forward_half_bytes"]: bad.append("forward_half_bytes")
    if any(r[k] != s[k] for r in mine for k in ("staleness", "ring")): bad.append("staleness or ring")
print(*bad)
PY
}

# split NAME FILE STEPS ARGUMENTS...
split() {
    local name=$1 file=$2 steps=$3 status=0
    shift 3
    build joined "$file" "$@" && train joined.w --transport serial --steps "$steps" --eval-every 4
    build split "$file" "$@" --set pipeline.mapping=split || {
        ok 1 "$name: builds"
        return
    }
    train serial.w --transport serial --steps "$steps"
    same joined.w serial.w
    ok $? "$name: serial equals joined"
    for every in 3 5; do
        train threads.w --steps "$steps" --eval-every $every --report "$WORK/report"
        same serial.w threads.w || status=1
    done
    ok $status "$name: threads equal serial, 2 runs"
    "$PNETC" check "$file" --json "$@" --set pipeline.mapping=split >"$WORK/said" 2>"$WORK/said.err"
    is "$(as_predicted report said 2>&1)" "" "$name: workers, bytes, staleness, ring and traffic are the predicted ones"
}
for ppv in 1,3 1,2,3,4; do
    split "lenet5 ($ppv)" "$lenet" 30 --target=$fast "${small[@]}" --set "pipeline.registers=ppv($ppv)"
    k=$(tr -dc , <<<"$ppv" | wc -c)
    is "$(python3 -c "import json; print(json.load(open('$WORK/said'))['stages'][0]['staleness'])")" "$((2 * (k + 1)))" \
        "lenet5 ($ppv): the first of K + 1 stages is stale by 2K"
done
for schedule in 'pipedream(microbatches = 3)' 'zb_h1(microbatches = 4)' \
    'hybrid(stale, steps = 11, then = hybrid(pipedream, steps = 8, then = sequential))'; do
    split "lenet5 $schedule" "$lenet" 26 --target=$fast "${small[@]}" --set 'pipeline.registers=ppv(1, 2)' \
        --set "pipeline.schedule=$schedule"
done
for cure in auto '(accumulate(a = 3), lookahead)'; do
    split "lenet5, cure $cure" "$lenet" 26 --target=$fast "${small[@]}" --set 'pipeline.registers=ppv(1, 2)' --set "pipeline.cure=$cure" \
        --set 'pipeline.schedule=hybrid(stale, steps = 13, then = stale_1f1b)'
done
split "lenet5 spectrain" "$lenet" 20 --target=$fast "${small[@]}" --set 'pipeline.registers=ppv(1, 2)' --set pipeline.schedule=spectrain
split "branches" "$nets/branches.pnet" 20 --target=$fast
split "branches ref, pipedream" "$nets/branches.pnet" 8 --target=ref --set pipeline.schedule=pipedream
split "residual" "$nets/residual.pnet" 12 --target=$fast --set 'train.data=digits(train = 300, test = 60)'
split "one stage" "$lenet" 8 --target=$fast "${small[@]}"

# ---- checkpoints, metrics, Ctrl-C ----
args=("--target=$fast" "${small[@]}" --set 'pipeline.registers=ppv(1, 2, 3)')
build joined "$lenet" "${args[@]}" && joined=$program
build split "$lenet" "${args[@]}" --set pipeline.mapping=split && split=$program
program=$joined train joined.w --steps 20 --checkpoint "$WORK/joined.c" --checkpoint-every 7 --eval-every 6 --metrics "$WORK/joined.m"
program=$split train split.w --steps 20 --checkpoint "$WORK/split.c" --checkpoint-every 7 --eval-every 6 --metrics "$WORK/split.m"
same joined.c split.c
ok $? "the checkpoint is that of joined stages, to the byte"
tests() { python3 -c 'import json, sys; print([(r["step"], r["test_loss"], r["test_accuracy"]) for r in map(json.loads, open(sys.argv[1])) if "test_loss" in r])' "$WORK/$1"; }
is "$(tests split.m)" "$(tests joined.m)" "tests in the middle find the same weights"
program=$joined train joined.w --steps 31 --resume "$WORK/joined.c"
program=$split train split.w --steps 31 --resume "$WORK/joined.c"
same joined.w split.w
ok $? "it goes on after a checkpoint of joined stages as they do"
rm -f "$WORK/int.w"
"$split" --steps 1000000 --save "$WORK/int.w" >"$WORK/int.log" 2>&1 &
pid=$!
sleep 0.7
kill -INT $pid
wait $pid
is $? 0 "Ctrl-C ends the run"
done=$(sed -n 's/^interrupted after \([0-9]*\) of.*/\1/p' "$WORK/int.log")
program=$joined train joined.w --steps "${done:-0}"
same joined.w int.w
ok $? "behind the same minibatch in both halves: ${done:-?} steps"
if [ $fast = cpu ]; then
    "$split" --quiet --steps 2 --algorithms "$WORK/algorithms" >"$WORK/log" 2>&1 &&
        "$split" --quiet --steps 2 --algorithms "$WORK/algorithms" >>"$WORK/log" 2>&1
    ok $? "--algorithms measures each operation once, and reads its file"
    like "$("$PNETC" plan "$lenet" "${args[@]}" --set pipeline.mapping=split --layouts 2>&1)" '^layouts ' "plan --layouts builds it"
fi

# ---- what is told of it ----
"$split" --quiet --steps 40 --trace "$WORK/trace" >/dev/null 2>&1
is "$(python3 - "$WORK/trace" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["tid"]: e["args"]["name"].split(":")[0] for e in events if e["name"] == "thread_name"}
does = {t: sorted({e["name"] for e in events if e["ph"] == "X" and e["cat"] == "step" and e["tid"] == t}) for t in names}
print([n for n in names.values()])
print(does[0], does[1], does[6])
PY
)" "['stage 0, forward', 'stage 0, backward', 'stage 1, forward', 'stage 1, backward', 'stage 2, forward', 'stage 2, backward', 'stage 3']
['forward', 'take weights over'] ['backward', 'test', 'update'] ['backward', 'forward', 'test', 'update']" \
    "a trace has a track for each worker"
"$PNETC" report "$lenet" "${args[@]}" --set pipeline.mapping=split --trace "$WORK/trace" -o "$WORK/page.html" >"$WORK/log" 2>&1
ok $? "report takes the trace"
like "$(tr -d '\n' <"$WORK/page.html")" 'stage 0, forward, worker 0 .*stage 2, backward, worker 5 .*FS4 BKS1.*BKS4.*Predicted beside measured' \
    "its page has the halves"
"$PNETC" report "$lenet" "${args[@]}" --trace "$WORK/trace" -o "$WORK/page.html" >"$WORK/log" 2>&1
like "$(cat "$WORK/log")" 'this trace has 7 stages and batch 12; the program has 4 and 12 \[P0741\]' "a trace of halves is none of joined stages"
like "$("$program" --steps 1 2>&1)" '^ +0 +156 +6 +7 .*\(two workers\)$' "the program's table says who has two workers"

# The predicted step is the time of the slowest half, where machine and registers let all run: links take no time here.
cat >"$WORK/ideal.pnet" <<'PNET'
machine ideal {
    device d {
        count     = 16
        compute   = 100 GFLOP/s
        bandwidth = 1000 GB/s
    }
    link {
        bandwidth = 1000000 GB/s
        latency   = 0 s
    }
}
PNET
for ppv in 1 1,2 1,2,3,4; do
    "$PNETC" check "$lenet" "${small[@]}" --json --machine "$WORK/ideal.pnet" --set pipeline.mapping=split \
        --set "pipeline.registers=ppv($ppv)" >"$WORK/said" 2>"$WORK/said.err" || note "$(cat "$WORK/said.err")"
    is "$(python3 - "$WORK/said" <<'PY'
import json, sys
said = json.load(open(sys.argv[1]))
parts = [t for s in said["stages"] for t in ((s["forward_seconds"], s["backward_seconds"] + s["update_seconds"])
         if s["halves"] else (s["forward_seconds"] + s["backward_seconds"] + s["update_seconds"],))]
p = said["prediction"]
print(abs(p["step_seconds"] / max(parts) - 1) < 0.01, abs(p["balance"] - max(parts) * len(parts) / sum(parts)) < 1e-6,
      sorted(w for s in said["stages"] for w in {s["worker"], s["backward_worker"]}) == list(range(len(parts))))
PY
)" "True True True" "predicted ($ppv): a step is the slowest half, balance that over the mean of the workers"
done

# ---- what it does not go with ----
"$PNETC" check "$lenet" "${args[@]}" --set pipeline.mapping=split --target=cuda >"$WORK/log" 2>&1
like "$(cat "$WORK/log")" 'error: target cuda does not have mapping = split \[P0525\]' "target cuda refuses it"
"$PNETC" place "$lenet" "${args[@]}" --set pipeline.mapping=split >"$WORK/log" 2>&1
is "$?: $(grep -c 'place finds registers for stages of one worker.*P0525' "$WORK/log")" "1: 1" "place refuses it"
"$PNETC" plan "$lenet" "${args[@]}" --set pipeline.mapping=split --all-schedules >"$WORK/log" 2>&1
is "$(grep -c 'not possible here' "$WORK/log")" 3 "plan --all-schedules has all but vertical_sync, two_buffer and replay"
"$PNETC" profile "$lenet" "${args[@]}" --set pipeline.mapping=split --steps 3 -o "$WORK/profile" >"$WORK/log" 2>&1
ok $? "profile leaves the halves out"
done_testing
