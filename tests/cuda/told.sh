#!/bin/bash
# told.sh: holds what `pnetc plan` says of a program of target cuda against what the simulator sees of it. Source it behind sim.sh.
# What two runs of different length differ by is what so many minibatches launch.
cat >told.py <<'END'
import json, sys
plan, report = (json.load(open(path)) for path in sys.argv[1:3])
short, long = (dict(line.rsplit(" ", 1) for line in open(path) if not line.startswith(("device", "pinned"))) for path in sys.argv[3:5])
peak = int(next(line for line in open(sys.argv[4]) if line.startswith("device 0")).split()[3])
more, slices, data = (int(word) for word in sys.argv[5:8])
workspace = sum(stage["scratch_bytes"] for stage in report["stages"])
buffers, besides = plan["static_bytes"], sum(stage["device_bytes"] for stage in plan["stages"])
print(f"bytes: {buffers} + {besides}; data {data}, cuDNN {workspace}; seen {peak}")
assert peak == buffers + besides + data + workspace, "other bytes"
# Layers whose bias and relu cuDNN does with the product: their kernel is not launched.
fused = {a["op"] for stage in report["stages"] for a in stage["algorithms"] if a["pass"] == "forward" and "," in a["code"]}
passes = [stage[key] for stage in plan["stages"] for key in ("forward_launches", "backward_launches")]
once = sum(stage["forward_launches"]["fusible"] for stage in plan["stages"])
print(f"fused: {len(fused)} of {once} layers")
assert len(fused) == once, "other layers are fused"
for key, ran in (("kernels", "ran kernel"), ("library", "ran dnn"), ("copies", "ran copy")):
    told = sum(slices * (s["forward_launches"][key] + s["backward_launches"][key]) + s["update_launches"][key] for s in plan["stages"])
    if key == "kernels":
        told -= slices * sum(one["fusible"] for one in passes)
    seen = int(long[ran]) - int(short[ran])
    print(f"{key} a minibatch: told {told}, seen {seen / more:g}")
    assert seen == told * more, f"other {key}"
END

both="0 1" # graphs, and launched one by one
# told NAME SOURCE SLICES DATA-BYTES OPTIONS...
told() {
    local name=$1 source=$2 slices=$3 bytes=$4 net eager
    net=$(basename "$source" .pnet)
    shift 4
    "$PNETC" build "$source" -o "$net" --target=cuda --quiet "$@" >log 2>&1 && "$PNETC" plan "$source" --target=cuda --json "$@" >plan.json
    ok $? "$name: builds"
    for eager in $both; do
        for steps in 7 9; do
            PN_CUDA_EAGER=$eager "$ROOT/tests/cudasim/run" --stats=$steps --keep="$net.kernels" "$net/kernels.cu" "$net/$net" --quiet \
                --steps $steps --report report.json >log 2>&1 || note "$(cat log)"
        done
        text=$(python3 told.py plan.json report.json 7 9 2 "$slices" "$bytes" 2>&1)
        ok $? "$name, $([ "$eager" = 0 ] && echo graphs || echo one by one): bytes and launches as told"
        note "$text"
    done
}
