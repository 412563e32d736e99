#!/bin/bash
# plateau.t: a hybrid that switches when the loss on the test set falls no more: on the same minibatch on every transport and
# after a resume, one interval behind the decision; with a rate of its own from there on.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >lenet5.pnet

# build NAME RATE: least = 0.3 makes a plateau of what still falls slowly
build() {
    "$PNETC" build lenet5.pnet -o "$1" --quiet -Wno-stability -Wno-balance --set 'pipeline.registers=ppv(1, 2, 4)' \
        --set train.lr=0.003 --set train.batch=20 --set train.test_every=60 --set train.steps=420 \
        --set 'train.data=digits(train = 2000, test = 200)' \
        --set "pipeline.schedule=hybrid(stale, when = plateau(tests = 2, least = 0.3), then = sequential, lr = $2)" \
        >build.log 2>&1 || note "$(cat build.log)"
}
build cosine 'cosine(0.001)'
build constant 0.001
# switched METRICS: the step after which the second phase begins, by the rule applied to the tests of the file
switched() {
    python3 - "$1" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
tests = [line for line in lines if "test_loss" in line]
lowest, bad, decided = None, 0, None
for test in tests:
    if lowest is None or test["test_loss"] < lowest * 0.7:
        lowest, bad = test["test_loss"], 0
    else:
        bad += 1
    if bad == 2 and decided is None:
        decided = test["step"] + 60
intervals = [line for line in lines if "lr" in line]
phases = {line["step"]: line["phase"] for line in intervals}
wrong = [step for step, phase in phases.items() if phase != ("stale" if step <= decided else "sequential")]
print(decided if decided and decided < intervals[-1]["step"] and not wrong else f"decided {decided}, wrong {wrong}")
PY
}
for transport in serial threads; do
    ./cosine/lenet5 --quiet --transport $transport --save $transport.safetensors --metrics $transport.jsonl >out 2>&1 || note "$(cat out)"
done
cmp -s serial.safetensors threads.safetensors
ok $? "serial equals threads"
step=$(switched serial.jsonl)
like "$step" '^[0-9]+$' "the switch is one interval behind two tests that are not lower"
is "$(switched threads.jsonl)" "$step" "on the same minibatch"
is "$(python3 - serial.jsonl "$step" <<'PY'
import json, math, sys
begin = int(sys.argv[2])
bad = []
for line in map(json.loads, open(sys.argv[1])):
    if "lr" not in line: continue
    t = line["step"] - 1
    want = 0.003 if t < begin else 0.0005 * (1 + math.cos(math.pi * (t - begin) / (420 - begin)))
    if abs(line["lr"] - want) > 1e-6 * want + 1e-12: bad.append((t, line["lr"], want))
print(bad)
PY
)" "[]" "the rate: the program's before, its own policy from the switch to the end behind it"

./constant/lenet5 --quiet --save through.safetensors --metrics through.jsonl >out 2>&1
step=$(switched through.jsonl)
for more in 0 60; do
    ./constant/lenet5 --quiet --steps $((step + more)) --checkpoint part.safetensors >out 2>&1
    ./constant/lenet5 --quiet --resume part.safetensors --save resumed.safetensors >out 2>&1
    cmp -s resumed.safetensors through.safetensors
    ok $? "resumed $more steps behind the switch: the bits of the whole run"
done
./constant/lenet5 --quiet --steps $((step - 60)) --checkpoint part.safetensors --metrics resumed.jsonl >out 2>&1
./constant/lenet5 --quiet --resume part.safetensors --metrics resumed.jsonl >out 2>&1
is "$(switched resumed.jsonl)" "$step" "resumed between decision and switch: the same switch"

./constant/lenet5 --quiet --eval-every 5 >out 2>err
is "$?" 1 "tests too near to one another"
like "$(cat err)" 'switches on a plateau of the test loss: tests at least every [0-9]+ steps are wanted, not every 5' "and what is wanted"
"$PNETC" check lenet5.pnet -Wno-balance -Wno-stability --set train.test_every=100 \
    --set 'pipeline.schedule=hybrid(stale, when = plateau, then = sequential, lr = 0.01)' >out 2>err
like "$(cat out)" 'schedule     stale, until the loss is no lower in 3 tests \(' "check says when"
like "$(cat out)" 'sequential, the rest, lr constant\(0.01\)' "check says the rate"
done_testing
