#!/bin/bash
# profile.t: `pnetc profile` measures every node, and `check --profile` reads what it wrote; `pnetc calibrate` writes a
# machine that `--machine` reads back; what goes wrong leaves no file.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cat >"$WORK/ops.pnet" <<'END'
network ops(classes = 10) {
    input image: f32[1, 28, 28]
    input label: class[classes]
    a = image |> maxpool(2) |> conv(4, kernel = 3, stride = 2) |> batch_norm |> tanh |> relu |> maxpool(2, ceil = yes)
    b = a |> conv(4, kernel = 3, pad = 2, dilation = 2, groups = 4, bias = no) |> relu |> maxpool(3, stride = 1, pad = 1)
    c = concat(a + b, a, a) + concat(b, b, b)
    register
    d = c |> avgpool(2, stride = 1, pad = 1, count_padding = yes) |> sigmoid |> lrn(size = 3) |> shortcut(16, stride = 2)
    e = d |> flatten |> dropout(0.3) |> linear(12) |> batch_norm(momentum = 0.3) |> relu
    loss mse(linear(e + e, classes), label)
}
train {
    data  = digits(train = 500, test = 100)
    batch = 10
}
END
targets=ref
if [ -e "$B/lib/libpn_cpu.a" ]; then
    targets="ref cpu"
else
    note "no library for target cpu: its part is not tested"
fi

# a verb without a stopwatch would be a node without a time
missing=
mapfile -t verbs < <(sed -n 's/^[^/]*\(pn_[a-z0-9_]*_\(init\|forward\|backward\|backward_data\|backward_weights\|track\)\)(.*/\1/p' "$ROOT/runtime/pn_ops.h")
for verb in "${verbs[@]}"; do
    grep -q "^#define $verb\b" "$ROOT/runtime/pn_profile.h" || missing="$missing $verb"
done
[ "${#verbs[@]}" -gt 30 ]
ok $? "pn_ops.h has verbs"
is "$missing" "" "pn_profile.h has every verb of pn_ops.h"

# measured NAME FILE ARGUMENTS...: profiles, checks with the profile
measured() {
    local name=$1 file=$2 text
    shift 2
    "$PNETC" profile "$file" -o "$WORK/$name.prof" --steps 5 "$@" >"$WORK/out" 2>"$WORK/log"
    ok $? "$name: is measured"
    [ -s "$WORK/log" ] && note "$(head -20 "$WORK/log")"
    "$PNETC" check "$file" --json --profile "$WORK/$name.prof" "$@" >"$WORK/$name.json" 2>"$WORK/log"
    ok $? "$name: check reads the profile"
    [ -s "$WORK/log" ] && note "$(head -20 "$WORK/log")"
    text=$(python3 - "$WORK/$name.json" "$WORK/$name.prof" <<'PY'
import json, sys
said = json.load(open(sys.argv[1]))
lines = [l.split() for l in open(sys.argv[2]) if l.strip() and not l.startswith("#")][7:]
handover = [float(l[1]) for l in lines if l[0] == "handover"]
lines = lines[len(handover):]
bad = [l for l in lines if len(l) != 4 or float(l[1]) <= 0 or float(l[2]) < 0 or float(l[3]) < 0]
p = said["prediction"]
if len(handover) > (len(said["stages"]) > 1) or any(us < 0 for us in handover): bad.append(("handover", handover))
if p["measured_nodes"] != p["nodes"] or len(lines) != p["nodes"]: bad.append((p, lines))
weighted = [l for l in lines if l[0].startswith(("conv", "linear", "batch_norm"))]
bad += [l for l in weighted if float(l[2]) <= 0 or float(l[3]) <= 0]
total = sum(float(x) for l in lines for x in l[1:]) * 1e-6
stages = sum(s["forward_seconds"] + s["backward_seconds"] + s["update_seconds"] for s in said["stages"])
if abs(total - stages) > 1e-6 * total: bad.append((total, stages))
print(*bad, sep="\n")
sys.exit(bool(bad) or not weighted)
PY
    )
    ok $? "$name: every node has its times, the stages have their sums"
    [ -z "$text" ] || note "$text"
}
for target in $targets; do
    measured "ops_$target" "$WORK/ops.pnet" "--target=$target"
done
measured lenet5 "$ROOT/examples/lenet5.pnet" --target=ref --set train.batch=5
measured weight_parts "$ROOT/examples/lenet5.pnet" --target=ref --set train.batch=5 --set 'pipeline.schedule=zb_h1(microbatches = 1)'
measured branches "$ROOT/tests/nets/branches.pnet" --target=ref --set train.batch=5
measured one_stage "$WORK/ops.pnet" --target=ref --set pipeline.registers=none

# what the nodes take is of a microbatch, also where backwards are split: as the trace of that very run has it, which waits for nothing
for schedule in gpipe zb_h1; do
    "$PNETC" profile "$ROOT/examples/lenet5.pnet" --target=ref --steps 6 -o "$WORK/$schedule.prof" --set train.batch=20 \
        --set "pipeline.schedule=$schedule(microbatches = 4)" -- --transport serial --trace "$WORK/trace.json" >"$WORK/out" 2>"$WORK/log"
    ok $? "microbatches of $schedule: are measured"
    text=$(python3 - "$WORK/trace.json" "$WORK/$schedule.prof" <<'PY'
import json, statistics, sys
took = {}
for e in json.load(open(sys.argv[1]))["traceEvents"]:
    if e.get("cat") == "step": took.setdefault(e["name"], {}).setdefault(e["tid"], []).append(e["args"]["on a core us"])
lines = [l.split() for l in open(sys.argv[2]) if l.startswith(("conv", "pool", "linear", "softmax"))]
bad = [] if len(lines) == 8 else [lines]
for column, names in ((1, ["forward"]), (2, ["backward", "weight part"])):
    traced = sum(statistics.median(times) for name in names for times in took.get(name, {}).values())
    nodes = sum(float(l[column]) for l in lines)
    if not traced / 2 < nodes < 2 * traced: bad.append((names, nodes, traced))
print(*bad, sep="\n")
sys.exit(bool(bad))
PY
    )
    ok $? "microbatches of $schedule: nodes take what their stages take"
    [ -z "$text" ] || note "$text"
done

"$PNETC" profile "$WORK/ops.pnet" --target=ref --steps 2 --alone -o "$WORK/alone.prof" 2>"$WORK/log"
ok $? "--alone"
like "$(cat "$WORK/alone.prof")" "^# its forward, .*; other workers idle" "--alone: the lines are those of one worker at work"
like "$(cat "$WORK/ops_ref.prof")" "^# its forward, .*; all workers busy" "else those of all workers at work"
like "$(cat "$WORK/ops_ref.prof")" "^versions pnetc [0-9.]+, naive C$" "the profile says which library was measured"

"$PNETC" profile "$WORK/ops.pnet" --target=ref -o "$WORK/none.prof" -- --data "$WORK/nowhere" >"$WORK/out" 2>"$WORK/log"
is $? 1 "data that are not there: an error"
like "$(cat "$WORK/log")" "nowhere" "which says what the program said"
[ ! -e "$WORK/none.prof" ]
ok $? "and leaves no profile"
"$PNETC" profile "$WORK/ops.pnet" --target=ref --steps 1 -o "$WORK/no/such/folder.prof" >"$WORK/out" 2>"$WORK/log"
is $? 1 "a folder that is not there: an error"
"$PNETC" profile "$WORK/ops.pnet" --steps 0 >"$WORK/out" 2>"$WORK/log"
is $? 2 "no steps: usage"

# ---- calibrate ----
mkdir "$WORK/tmp"
for target in ${targets#ref }; do
    begin=$(date +%s)
    TMPDIR=$WORK/tmp "$PNETC" calibrate --quick "--target=$target" -o "$WORK/$target.pnet" >"$WORK/out" 2>"$WORK/log"
    ok $? "calibrate --quick, target $target"
    [ -s "$WORK/log" ] && note "$(head -20 "$WORK/log")"
    note "$(($(date +%s) - begin)) s"
    "$PNETC" fmt --check "$WORK/$target.pnet" 2>"$WORK/log"
    ok $? "the machine is in canonical form"
    "$PNETC" check "$ROOT/examples/lenet5.pnet" --json --machine "$WORK/$target.pnet" >"$WORK/check" 2>"$WORK/log"
    ok $? "check reads it back"
    text=$(python3 - "$WORK/check" "$WORK/$target.pnet" <<'PY'
import json, os, re, sys
p = json.load(open(sys.argv[1]))["prediction"]
text = open(sys.argv[2]).read()
value = {k: float(v) for k, v in re.findall(r"^ +(\w+) *= *([\d.e+-]+)", text, re.M)}
bad = []
if p["machine"] != re.search(r"^machine (\w+) \{", text, re.M).group(1): bad.append(p)
if value["count"] != os.cpu_count(): bad.append("count")
if not 0.01 < value["compute"] < 1e5 or not 0.01 < value["bandwidth"] < 1e5 or not 0 < value["overhead"] < 1e4: bad.append("range")
if not {"conv", "linear", "maxpool", "tanh"} <= set(value): bad.append("efficiency")
if not re.match(r"# \w+: this machine, measured by `pnetc calibrate` on \d{4}-\d\d-\d\d with pnetc [\d.]+, target \w+ \(.+\)\.\n", text):
    bad.append("date and versions")
if len(re.findall(r"^# memory bandwidth of each worker .*, \d+ running: [\d.e+]+ GB/s$", text, re.M)) != os.cpu_count():
    bad.append("memory bandwidth")
print(*bad, value, sep="\n")
sys.exit(bool(bad))
PY
    )
    ok $? "what was written is whole, and what was read"
    [ -z "$text" ] || note "$text"
done
is "$(find "$WORK/tmp" -mindepth 1 | wc -l)" 0 "no temporary folder is left"
done_testing
