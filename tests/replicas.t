#!/bin/bash
# replicas.t: stages with replicas: threads equal serial bit for bit, at several schedules and on both targets; what is
# measured is what was predicted; weights equal those of the run without replicas, but for the order of sums, and to the
# bit where sums are exact; checkpoints do not know of replicas; a trace has a track for each.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/programs.sh
. "$ROOT/tests/programs.sh"
nets=$ROOT/tests/nets lenet=$ROOT/examples/lenet5.pnet
small=(--set 'train.data=digits(train = 400, test = 130)' --set train.batch=12)

# apart A B: the largest difference of two files of weights, relative to the largest weight of its tensor
apart() {
    python3 - "$WORK/$1" "$WORK/$2" <<'PY'
import array, json, struct, sys
def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, about in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            tensors[name] = array.array("f", data[8 + size + begin:8 + size + end])
    return tensors
a, b = map(read, sys.argv[1:])
assert a.keys() == b.keys()
print(max(max(abs(x - y) for x, y in zip(a[k], b[k])) / (max(map(abs, a[k])) or 1) for k in a))
PY
}
# as_predicted REPORT CHECK: of each stage staleness, ring and the bytes of all replicas; traffic
as_predicted() {
    python3 - "$WORK/$1" "$WORK/$2" <<'PY'
import json, sys
run, said = (json.load(open(p)) for p in sys.argv[1:3])
bad = [k for k in ("traffic_bytes", "static_bytes") if run[k] != said[k]]
for s in said["stages"]:
    mine = [r for r in run["stages"] if r["stage"] == s["stage"]]
    if [r["replica"] for r in mine] != list(range(s["replicas"])): bad.append("replicas")
    if sum(r["static_bytes"] for r in mine) != s["static_bytes"]: bad.append("static_bytes of a stage")
    if any(r["static_bytes"] != s["replica_bytes"] for r in mine[1:]): bad.append("replica_bytes")
    if any(r[k] != s[k] for r in mine for k in ("staleness", "ring")): bad.append("staleness or ring")
print(*bad)
sys.exit(bool(bad))
PY
}

# replicas NAME FILE REPLICAS STEPS MOST ARGUMENTS...: MOST: how far from the run without replicas; "": statistics differ
replicas() {
    local name=$1 file=$2 counts=$3 steps=$4 most=$5 status=0 text
    shift 5
    build with "$file" "$@" --set "pipeline.replicas=$counts" || {
        ok 1 "$name $counts: builds"
        return
    }
    train serial --transport serial --steps "$steps"
    for _ in 1 2; do
        train threads --steps "$steps" --report "$WORK/report"
        same serial threads || status=1
    done
    ok $status "$name $counts: serial equals threads, 2 runs"
    "$PNETC" check "$file" --json "$@" --set "pipeline.replicas=$counts" >"$WORK/said" 2>"$WORK/said.err"
    text=$(as_predicted report said)
    is "$text" "" "$name $counts: bytes, staleness, ring and traffic are the predicted ones"
    [ -n "$most" ] || return
    build without "$file" "$@"
    train whole --steps "$steps"
    text=$(apart serial whole)
    python3 -c "import sys; sys.exit(not float('$text') <= $most)"
    ok $? "$name $counts: $text from the run without replicas, at most $most"
}

for schedule in stale pipedream 'hybrid(stale, steps = 15, then = sequential)'; do
    replicas "lenet5 ${schedule%%(*}" "$lenet" '(1, 2)' 30 1e-4 "${small[@]}" --set "pipeline.schedule=$schedule"
done
replicas 'lenet5 ref' "$lenet" '(3, 2)' 6 1e-4 "${small[@]}" --target=ref
replicas 'lenet5, slices that do not match' "$lenet" '(2, 3)' 30 1e-4 "${small[@]}" --set pipeline.schedule=pipedream
replicas 'lenet5, one stage' "$lenet" 3 30 1e-4 "${small[@]}" --set pipeline.registers=none
replicas 'branches' "$nets/branches.pnet" '(2, 1, 5, 2, 1)' 30 1e-4
replicas 'branches ref, all' "$nets/branches.pnet" '(2, 4, 2, 5, 2)' 10 1e-4 --target=ref
replicas 'autoencoder' "$nets/autoencoder.pnet" '(5, 1, 5)' 30 1e-4 --set pipeline.schedule=pipedream
replicas 'residual' "$nets/residual.pnet" '(2, 2, 1, 4)' 20 ''
replicas 'residual ref' "$nets/residual.pnet" '(4, 1, 2, 1)' 9 '' --set train.batch=4 --set train.lr=0.001 --set 'train.data=digits(train = 40, test = 20)' --target=ref

# Sums of small integers are exact in any order: pixels, weights and errors are integers, the batch is a power of two.
cat >"$WORK/exact.pnet" <<'PNET'
network exact {
    input image: f32[1, 4, 4]
    input label: class[4]
    h = image |> conv(8, kernel = 3, init = constant(1)) |> relu
    register
    loss mse(linear(h, 4, init = constant(1)), label)
}
train {
    data      = raw(path = ".")
    batch     = 8
    optimizer = sgd(momentum = 0.5)
    lr        = 0.0009765625
    steps     = 1
}
PNET
python3 - "$WORK" <<'PY'
import array, random, sys
random.seed(1)
for split in "train", "test":
    array.array("f", (random.randrange(4) for _ in range(32 * 16))).tofile(open(f"{sys.argv[1]}/{split}.f32", "wb"))
    open(f"{sys.argv[1]}/{split}.labels", "wb").write(bytes(i % 4 for i in range(32)))
PY
for target in ref cpu; do
    for counts in '(2, 4)' '(8, 1)'; do
        build with "$WORK/exact.pnet" --target=$target --set "pipeline.replicas=$counts" && train w-with --data "$WORK"
        build without "$WORK/exact.pnet" --target=$target && train w-without --data "$WORK"
        same w-with w-without
        ok $? "exact sums $counts, $target: equal to the run without replicas bit for bit"
    done
done

# Checkpoints: written by a run with replicas, read by one without, and the other way round
small+=(--set pipeline.schedule=sequential)
build with "$lenet" "${small[@]}" --set 'pipeline.replicas=(2, 3)' && with=$program
build without "$lenet" "${small[@]}" && without=$program
program=$with train whole --steps 20 --checkpoint "$WORK/end"
program=$with train half --steps 10 --checkpoint "$WORK/c10"
program=$with train resumed --steps 20 --resume "$WORK/c10"
same whole resumed
ok $? "a run with replicas goes on after a checkpoint as if it had not stopped"
program=$without train other --steps 10 --resume "$WORK/c10"
same half other
ok $? "a program without replicas reads the checkpoint"
program=$without train plain10 --steps 10 --checkpoint "$WORK/p10"
program=$with train other --steps 10 --resume "$WORK/p10"
same plain10 other
ok $? "a program with replicas reads the checkpoint of one without"

"$with" --quiet --steps 5 --trace "$WORK/trace" >/dev/null 2>&1
tracks=$(python3 - "$WORK/trace" <<'PY'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
names = [e["args"]["name"].split(":")[0] for e in events if e["name"] == "thread_name"]
sums = {e["tid"] for e in events if e["name"] == "sum gradients"}
print("; ".join(names), len(sums))
PY
)
is "$tracks" "stage 0, replica 0; stage 0, replica 1; stage 1, replica 0; stage 1, replica 1; stage 1, replica 2 5" \
    "a trace has a track for each replica, with sums of gradients"

# Chosen by the compiler
build with "$lenet" "${small[@]}" --set 'pipeline.schedule=stale' --set 'pipeline.registers=auto(stages = 2, workers = 3)' && auto=$program
program=$auto train serial --transport serial --steps 20
program=$auto train threads --steps 20
same serial threads && ls "$WORK"/with/stage*_replica1.c >/dev/null
ok $? "auto(stages = 2, workers = 3): a stage has two replicas, and serial equals threads"

# A profile is of nodes, whatever their replicas; placement starts from none.
"$PNETC" profile "$lenet" "${small[@]}" --set 'pipeline.replicas=(2, 3)' --steps 3 -o "$WORK/profile" >"$WORK/profile.log" 2>&1
ok $? "profile leaves the replicas out"
like "$("$PNETC" check "$lenet" "${small[@]}" --set 'pipeline.replicas=(2, 3)' --profile "$WORK/profile" 2>&1)" 'profiled 8 of 8 nodes' \
    "check takes it for stages with replicas"
is "$("$PNETC" place "$lenet" "${small[@]}" --set 'pipeline.replicas=(2, 3)' --workers 2)" \
    "$("$PNETC" place "$lenet" "${small[@]}" --workers 2)" "place begins anew, whatever the replicas of the file"
done_testing
