#!/bin/bash
# cuda_faults.t: a program of target cuda under the simulator: weights and checkpoints in files, a GPU that is too small, calls that
# fail, and waits that are left out.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"

# ---- weights have plain order in files: those of the GPU go on in a program of target cpu ----
for target in cpu cuda; do
    "$PNETC" build "$ROOT/tests/cuda/zoo.pnet" -o zoo.$target --target=$target --set pipeline.schedule=sequential --quiet >log 2>&1
    ok $? "builds for $target"
done
simulate zoo -- --quiet --steps 4 --checkpoint four --checkpoint-every 2 --save weights
is "$code" 0 "a checkpoint while it trains: no report"
zoo.cpu/zoo --load weights --steps 0 --metrics cpu.jsonl --quiet >log 2>&1
simulate zoo -- --quiet --load weights --steps 0 --metrics cuda.jsonl
is "$(grep -o '"test_accuracy":[^,]*' cuda.jsonl)" "$(grep -o '"test_accuracy":[^,]*' cpu.jsonl)" "weights of a GPU run in target cpu"
simulate zoo -- --quiet --steps 6 --metrics whole.jsonl
simulate zoo -- --quiet --resume four --steps 6 --metrics rest.jsonl
is "$(sed -n '/"step":[56],/s/"seconds":[^,]*,//p' rest.jsonl | grep -o '"loss":[^,]*')" \
    "$(sed -n '/"step":[56],/s/"seconds":[^,]*,//p' whole.jsonl | grep -o '"loss":[^,]*')" "resumed: the same bits"

# ---- graphs and single launches ----
simulate zoo --stats=graphs --order=random:1 -- --quiet --steps 8 --metrics graphs.jsonl
is "$code" 0 "graphs: no report"
PN_CUDA_EAGER=1 simulate zoo --stats=eager --order=random:1 -- --quiet --steps 8 --metrics eager.jsonl
is "$code" 0 "single launches: no report"
is "$(grep -o '"[a-z_]*loss":[^,]*' graphs.jsonl)" "$(grep -o '"[a-z_]*loss":[^,]*' eager.jsonl)" "graphs give the same bits"
graphs=$(sed -n 's/^call cudaGraphLaunch //p' graphs)
is "$graphs ($(grep -c cudaGraph eager))" "42 (0)" "all steps but the first are graphs: 2 kinds, 3 stages, 7 minibatches"

# ---- memory as planned; what fails ends the run with one line ----
simulate zoo --memory=200K -- --quiet --steps 1
planned=$("$PNETC" plan "$ROOT/tests/cuda/zoo.pnet" --target=cuda --set pipeline.schedule=sequential | sed -n 's/^plan .*: \([0-9]*\) bytes static.*/\1/p')
like "$text" "out of GPU memory: the buffers of all stages need $planned bytes, [0-9]* of" "a small GPU: what is needed is what was planned"
is "$code" 1 "a small GPU: exit 1"
simulate zoo --memory=$((planned + 90000)) -- --quiet --steps 1
like "$text" "out of GPU memory: the data need $((120 * 786)) bytes, [0-9]* of $((planned + 90000)) are free" "a GPU too small for the data: says what they need"
is "$code" 1 "a GPU too small for the data: exit 1"
simulate zoo --devices=0 -- --quiet --steps 1
is "$code $text" "1 error: there is no GPU: the CUDA driver is there, but sees none (nvidia-smi; CUDA_VISIBLE_DEVICES)" "no GPU: one line, exit 1"
sed 's/"deviceVer":900/"deviceVer":700/' "$ROOT/tests/cudasim/h200.json" >old.json
simulate zoo --gpu=old.json -- --quiet --steps 1
is "$code" 1 "an old GPU: exit 1"
like "$text" '^error: the GPU is too old: .* has compute capability 7\.0, this program needs 7\.5$' "an old GPU: says so"
for failure in cudaMalloc:4 cudaLaunchKernel:40 cudnnBackendExecute:9 cudaEventRecord:3 cudaMemcpy:5; do
    simulate zoo --fail=$failure -- --quiet --steps 2
    is "$code $(grep -c '^error:' <<<"$text")" "1 1" "${failure%:*} fails: exit 1 after one line"
    note "$(grep '^error:' <<<"$text")"
done

# ---- the order between the streams of stages is there, and the simulator would see if it were not ----
simulate zoo --drop=cudaStreamWaitEvent:22,cudaStreamWaitEvent:23,cudaStreamWaitEvent:24,cudaStreamWaitEvent:25 -- --quiet --steps 4
is "$code" 99 "without some waits between stages: reported"
like "$text" 'race' "without some waits between stages: as races"
done_testing
