#!/bin/bash
# trace.t: what --trace writes: JSON; every forward, backward and update once a minibatch and stage; on a track no two
# steps overlap, and waits lie inside their step; each take has its give, before it; the steps of each stage come in the
# order that `pnetc check --dump=sched` predicts; nothing is left behind when the file cannot be written.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cat >"$WORK/trace.py" <<'PY'
import json, re, sys
path, steps, predicted = sys.argv[1], int(sys.argv[2]), sys.argv[3]
trace = json.load(open(path))
events, stages = trace["traceEvents"], trace["otherData"]["stages"]
bad = []
slack = 0.0021  # two roundings of the file, in us
letter = {"forward": "F", "backward": "B", "update": "U"}
order = {int(s): o.split() for s, o in re.findall(r"^  stage (\d+): (F0 .*)$", open(predicted).read(), re.M)}
names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
if sorted(names) != list(range(stages)): bad.append(f"tracks {names}")
for stage in range(stages):
    mine = sorted((e for e in events if e["ph"] == "X" and e["tid"] == stage), key=lambda e: e["ts"])
    done = [e for e in mine if e["cat"] == "step"]
    for a, b in zip(done, done[1:]):
        if a["ts"] + a["dur"] > b["ts"] + slack: bad.append(f"stage {stage}: {a} overlaps {b}")
    waits = [e for e in mine if e["cat"] == "wait"]
    for a, b in zip(waits, waits[1:]):
        if a["ts"] + a["dur"] > b["ts"] + slack: bad.append(f"stage {stage}: {a} overlaps {b}")
    for w in waits:
        if not any(s["ts"] <= w["ts"] + slack and w["ts"] + w["dur"] <= s["ts"] + s["dur"] + slack for s in done):
            bad.append(f"stage {stage}: {w} is outside of all steps")
    for e in mine: # two clocks, and a machine may sell one core twice: only nonsense is refused
        if not 0 <= e["args"]["on a core us"] <= 2 * e["dur"] + 10000: bad.append(f"stage {stage}: {e} had a core for longer")
    for kind in letter:
        numbers = sorted(e["args"]["minibatch"] for e in done if e["name"] == kind)
        if numbers != list(range(steps)): bad.append(f"stage {stage}: {kind} of {numbers}")
    recorded = [letter[e["name"]] + str(e["args"]["minibatch"]) for e in done if e["name"] in letter]
    if steps == 6 and recorded != order[stage]: bad.append(f"stage {stage}: did {recorded}, predicted {order[stage]}")
    tests = [e["args"]["test batch"] for e in done if e["name"] == "test"]
    if not tests or tests != list(range(len(tests))): bad.append(f"stage {stage}: test batches {tests}")
gives = {e["id"]: e for e in events if e["ph"] == "s"}
takes = [e for e in events if e["ph"] == "f"]
if len(takes) != len(gives) or len(gives) != sum(e["ph"] == "s" for e in events) or (stages > 1) != bool(gives):
    bad.append(f"{len(gives)} gives, {len(takes)} takes")
for t in takes:
    g = gives.get(t["id"])
    if not g: bad.append(f"nothing gave {t}")
    elif g["ts"] > t["ts"] + slack or g["tid"] == t["tid"]: bad.append(f"{t} before {g}")
if trace["otherData"]["dropped"]: bad.append("events were dropped")
print("\n".join(bad[:5]))
sys.exit(bool(bad))
PY

# traced NAME FILE ARGUMENTS...: builds, runs 6 steps by both transports, looks at the traces
traced() {
    local name=$1 file=$2 transport text
    shift 2
    "$PNETC" build "$file" -o "$WORK/$name" --quiet --target=ref --set 'train.data=digits(train = 60, test = 20)' \
        --set train.batch=10 "$@" >"$WORK/log" 2>&1 || note "$(tail "$WORK/log")"
    "$PNETC" check "$file" --dump=sched --target=ref "$@" >"$WORK/sched" 2>/dev/null
    program=$(find "$WORK/$name" -maxdepth 1 -type f -perm -u+x | head -1)
    for transport in serial threads; do
        "$program" --steps 6 --quiet --transport $transport --trace "$WORK/trace.json" >"$WORK/log" 2>&1 ||
            note "$(tail "$WORK/log")"
        text=$(python3 "$WORK/trace.py" "$WORK/trace.json" 6 "$WORK/sched" 2>&1)
        ok $? "$name, $transport: the trace is whole, ordered, and as predicted"
        [ -z "$text" ] || note "$text"
    done
}
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >"$WORK/lenet5.pnet"
for schedule in sequential stale stale_1f1b pipedream 'hybrid(stale, steps = 3, then = sequential)'; do
    traced "${schedule%%(*}" "$WORK/lenet5.pnet" --set "pipeline.schedule=$schedule" --set 'pipeline.registers=ppv(1, 2, 3)'
done
traced one_stage "$WORK/lenet5.pnet" --set pipeline.schedule=sequential
traced branches "$ROOT/tests/nets/branches.pnet"

# tests during the run have events of their own; the weights are those of a run without a trace
"$WORK/stale/lenet5" --steps 20 --eval-every 7 --quiet --save "$WORK/plain.safetensors" >"$WORK/plain" 2>&1
"$WORK/stale/lenet5" --steps 20 --eval-every 7 --trace "$WORK/trace.json" --save "$WORK/traced.safetensors" >"$WORK/log" 2>&1
cmp -s "$WORK/plain.safetensors" "$WORK/traced.safetensors"
ok $? "a trace changes no weight"
like "$(cat "$WORK/log")" "wrote the trace to $WORK/trace.json" "the program says where the trace is"
tests=$(python3 -c "
import json
e = json.load(open('$WORK/trace.json'))['traceEvents']
print(*sorted({x['args']['after updates'] for x in e if x['name'] == 'test'}),
      len({x['id'] for x in e if x['ph'] == 's'}) == sum(x['ph'] == 's' for x in e))")
is "$tests" "7 14 20 True" "tests say after which update they came; no arrow is another's"

"$WORK/stale/lenet5" --steps 2 --quiet --trace "$WORK/no/such/folder.json" >"$WORK/out" 2>"$WORK/log"
is "$?" 1 "a trace that cannot be written is an error before the run"
like "$(cat "$WORK/log")" "cannot write $WORK/no/such/folder.json" "which names the file"
"$WORK/stale/lenet5" --steps 2 --quiet --trace /dev/full >"$WORK/out" 2>"$WORK/log"
is "$?" 1 "a full disk is an error"
done_testing
