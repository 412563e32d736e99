#!/bin/bash
# diverge.t: training that diverges ends with status 3 and one message that names the most stale stage; the weights of the
# last good test are kept, whole; --allow-divergence goes on.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >lenet5.pnet

# The rate rises until training breaks.
build() { # NAME REGISTERS ARGUMENTS...
    local name=$1 registers=$2
    shift 2
    "$PNETC" build lenet5.pnet -o "$name" --quiet --target=ref -Wno-stability -Wno-balance --set train.lr=40 \
        --set train.warmup=400 --set train.steps=60 --set train.test_every=1 --set train.batch=10 \
        --set 'train.data=digits(train = 1000, test = 20)' --set "pipeline.registers=$registers" "$@" >build.log 2>&1 ||
        note "$(cat build.log)"
}
build stale 'ppv(1, 3)'
for transport in serial threads; do
    ./stale/lenet5 --transport $transport --save $transport.safetensors --report $transport.json --metrics $transport.jsonl \
        >out 2>$transport.err
    is $? 3 "$transport: status 3"
    like "$(head -1 $transport.err)" '^error: training diverged: the loss of (minibatch|the test after step) [0-9]+ is [-0-9.e+naif]+ after [0-9.e+]+\. Stage 0 is the most stale, by 4 updates, G = lr/\(1 - momentum\) x \(staleness \+ 1/2\) = 1.8e\+03; cure = auto, less delay' \
        "$transport: what happened, where it is likely to come from, what helps"
    is "$(grep -c error: $transport.err)" 1 "$transport: one message"
    ! [ -e $transport.safetensors ]
    ok $? "$transport: broken weights are not saved"
    is "$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["diverged"])' $transport.json)" True \
        "$transport: the report says so"
done
is "$(head -1 threads.err)" "$(head -1 serial.err)" "at the same minibatch, on both transports"
cmp -s serial.last-good.safetensors threads.last-good.safetensors
ok $? "the same weights are kept"
step=$(sed -n 's/^note: the weights of the last good test, after step \([0-9]*\), are in threads.last-good.safetensors$/\1/p' threads.err)
like "$step" '^[1-9][0-9]*$' "it says after which step"
./stale/lenet5 --quiet --steps "$step" --save through.safetensors >out 2>&1
cmp -s through.safetensors threads.last-good.safetensors
ok $? "they are those of a run of so many steps"
./stale/lenet5 --quiet --steps 0 --load threads.last-good.safetensors >out 2>err
is "$?: $(cat err)" "0: " "and can be loaded"

./stale/lenet5 --quiet --checkpoint point.safetensors >out 2>err
is "$?: $(grep -c 'are in point.last-good.safetensors' err)" "3: 1" "beside a checkpoint"
./stale/lenet5 --quiet >out 2>err
is "$?: $(grep -c 'note: --save or --checkpoint keeps the weights' err)" "3: 1" "without a file: how to keep them"
./stale/lenet5 --quiet --eval-every 0 --save none.safetensors >out 2>err
is "$?: $(grep -c 'no good test before' err)" "3: 1" "without a test: how to keep them"
./stale/lenet5 --quiet --allow-divergence --save all.safetensors --report all.json >out 2>err
is "$?: $(cat err)" "0: " "--allow-divergence goes on"
is "$(python3 -c 'import json; r = json.load(open("all.json")); print(r["diverged"], r["steps"])')" "False 60" "to the end"

build plain none --set train.lr=40000
./plain/lenet5 --quiet >out 2>err
is $? 3 "without staleness: status 3"
like "$(cat err)" 'No stage is stale; a smaller learning rate' "and no stage is blamed"
build cured 'ppv(1, 3)' --set pipeline.cure=auto
./cured/lenet5 --quiet >out 2>err
is "$?: $(grep -c 'cure = auto' err)" "3: 0" "a cured run is not told to be cured"
done_testing
