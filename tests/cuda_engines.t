#!/bin/bash
# cuda_engines.t: engines of cuDNN in programs of target cuda, under the simulator: --algorithms FILE measures them (the simulator's clock
# makes the engine with the smallest number the fastest), writes FILE and reads it back; what does not fit is refused with the line;
# --tf32, --nondeterministic and --exact choose among them, and hold for FILE.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
# shellcheck source=tests/cuda/ranks.sh
. "$ROOT/tests/cuda/ranks.sh"
export ARCH=90 CFLAGS=-O1 # kernels of the simulator's GPU alone

build lenet5 "$ROOT/examples/lenet5.pnet" --set train.batch=4 --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=0

# ---- measured, written, read back ----
simulate lenet5 --stats=first.stats -- --steps 4 --algorithms first.txt --save first.safetensors --report first.json
is "$code" 0 "it measures: no report"
[ "$code" = 0 ] || note "$text"
like "$text" '^algorithms: an engine of cuDNN [0-9.]+ for each of 14 passes \(measured, written to first.txt\)$' "says so"
is "$(head -5 first.txt | sed 's/cuDNN [0-9.]*/cuDNN V/')" \
    "$(printf 'algorithms 1\nprogram lenet5\nbatch 4\nlibrary cuDNN V\nisa sm_90 cudasim NVIDIA H200')" "the file says of what"
is "$(grep -Evc '^op [a-z0-9]+ (forward|backward_data|backward_weights) [0-9]+(:[0-9]+=[0-9]+)* [0-9]+\.[0-9] ([0-9]+\.[0-9]|-)$' first.txt)" 5 \
    "a line a pass: engine, knobs, times"
# by the clock a run takes a microsecond and one for each number; two events and a launch make a quarter more
is "$(awk '$1 == "op" { split($4, engine, ":"); first = $5; other = $6 == "-" ? 1e9 : $6
    took = other * 1.03 < first ? other : first
    if (took < engine[1] + 1 || took > engine[1] + 2.5) print }' first.txt)" "" "the fastest engine is kept: its time is that of its number"
[ "$(awk '$1 == "op" && $6 != "-" && $6 * 1.03 < $5' first.txt | wc -l)" -ge 1 ]
ok $? "sometimes that is not the one that cuDNN lists first"
note "$(grep '^op' first.txt)"
cp first.txt before
simulate lenet5 --stats=second.stats -- --steps 4 --algorithms first.txt --save second.safetensors --report second.json
is "$code" 0 "read back: no report"
like "$text" '^algorithms: an engine of cuDNN .* \(as in first.txt\)$' "says so"
cmp -s first.txt before && cmp -s first.safetensors second.safetensors
ok $? "the file is as it was, and the weights are those of the run that measured"
count() { sed -n "s/^$1 //p" "$2"; }
is "$(count 'cudnn plans accepted' second.stats)" 14 "nothing is measured again: one plan a pass"
[ "$(count 'call cudnnBackendExecute' first.stats)" -gt $((2 * $(count 'call cudnnBackendExecute' second.stats))) ]
ok $? "where the first run tried many"
for run in first second; do
    simulate lenet5 -- --steps 0 --algorithms first.txt --report $run.again.json
    python3 -c '
import json, sys
for stage in json.load(open(sys.argv[1]))["stages"]:
    for one in stage["algorithms"]:
        print(one["op"], one["pass"], one["code"].split()[1].rstrip(","))' $run.json | sort >$run.codes
done
is "$(cat first.codes)" "$(awk '$1 == "op" { print $2, $3, $4 }' first.txt | sort)" "--report tells the engines of the file"
is "$(cat second.codes)" "$(cat first.codes)" "... also when they were read"
peak() { awk '$1 == "device" { print $4 }' "$1"; }
simulate lenet5 --stats=plain.stats -- --steps 4 --save plain.safetensors
is "$(peak first.stats)" "$(peak plain.stats)" "measuring takes no more memory of the GPU than a run does"
PN_CUDA_EAGER=1 simulate lenet5 --order=random:1 -- --steps 4 --algorithms first.txt --save eager.safetensors
cmp -s first.safetensors eager.safetensors
ok $? "single launches: the same weights"
ranks 2 lenet5 --steps 4 --algorithms first.txt --save ranks.safetensors
is "$codes" "0 0" "two ranks read it"
cmp -s first.safetensors ranks.safetensors
ok $? "two ranks: the same weights"
ranks 2 lenet5 --steps 4 --algorithms none.txt
is "$codes" "1 1" "two ranks measure nothing"
like "$text" 'none.txt is not there, and 2 ranks measure nothing: let one process write it' "two ranks: say so"

# ---- what does not fit ----
refused() { # NAME LINE PATTERN [OPTION]: of edited.txt
    simulate lenet5 -- --steps 1 --algorithms edited.txt ${4:+"$4"}
    is "$code" 1 "$1: refused"
    like "$text" "^error: edited.txt:$2: .*$3" "$1: says so"
}
sed 's/^isa .*/isa sm_80 NVIDIA A100/' first.txt >edited.txt
refused "another GPU" 5 "this must be 'isa sm_90 cudasim NVIDIA H200'; remove the file to measure anew"
sed 's/^library .*/library cuDNN 9.0.0/' first.txt >edited.txt
refused "another cuDNN" 4 "this must be 'library cuDNN"
cp first.txt edited.txt
refused "--tf32" 5 "this must be 'isa sm_90 cudasim NVIDIA H200, tf32'" --tf32
refused "--nondeterministic" 5 "this must be 'isa sm_90 cudasim NVIDIA H200, nondeterministic'" --nondeterministic
line=$(grep -n '^op conv2 backward_weights' first.txt | cut -d: -f1)
sed "${line}s/weights [^ ]*/weights 9999/" first.txt >edited.txt
refused "an engine that is no more" "$line" "conv2: cuDNN refuses the engine: .*remove the file"
sed "${line}s/weights [^ ]*/weights fast/" first.txt >edited.txt
refused "no engine" "$line" "conv2: 'fast' is no engine of cuDNN with its knobs"
sed "${line}s/weights [0-9]*/&:7=/" first.txt >edited.txt
refused "no knob" "$line" "conv2: .* is no engine of cuDNN with its knobs"
sed "${line}d" first.txt >edited.txt
simulate lenet5 -- --steps 1 --algorithms edited.txt
like "$text" '^error: edited.txt has no line for the backward_weights of conv2' "a line too few: it is named"
{ cat first.txt; echo "op conv9 forward 1 1.0 -"; } >edited.txt
refused "an operation that is not there" '[0-9]+' 'lenet5 has no forward of conv9'

# ---- bf16: engines, buffers and a file of its own ----
"$PNETC" build "$ROOT/examples/lenet5.pnet" -o bf16.cuda --target=cuda --quiet --set train.precision=bf16 --set train.batch=4 \
    --set 'train.data=digits(train = 16, test = 4)' --set train.test_every=0 >log 2>&1 && mv bf16.cuda/lenet5 bf16.cuda/bf16
ok $? "bf16: builds"
cp first.txt edited.txt
simulate bf16 -- --steps 1 --algorithms edited.txt
is "$code" 1 "bf16: a file of f32 is refused"
like "$text" "^error: edited.txt:5: .*this must be 'isa sm_90 cudasim NVIDIA H200, bf16'" "bf16: says so"
for run in wrote read; do
    simulate bf16 -- --steps 4 --algorithms bf16.txt --save $run.safetensors
    is "$code" 0 "bf16: $run: no report"
    like "$text" '^algorithms: an engine of cuDNN [0-9.]+ for each of 14 passes' "bf16: $run: says so"
done
[ "$(grep -c '^op ' bf16.txt)" = 14 ] && cmp -s wrote.safetensors read.safetensors
ok $? "bf16: the weights are those of the run that measured"

# ---- what engines may do to numbers ----
simulate lenet5 -- --steps 0 --algorithms tf32.txt --tf32
is "$code" 0 "--tf32 measures: no report"
like "$(sed -n 5p tf32.txt)" '^isa sm_90 cudasim NVIDIA H200, tf32$' "--tf32: the file says so"
new=$(awk 'NR == FNR { strict[$2 $3 $4]; next } $1 == "op" && !($2 $3 $4 in strict) { print FNR; exit }' first.txt tf32.txt)
[ -n "$new" ]
ok $? "--tf32: other engines"
engine=$(sed -n "${new}s/^op \([^ ]* [^ ]*\) \([^ ]*\) .*/\1 \2/p" tf32.txt)
line=$(grep -n "^op ${engine% *} " first.txt | cut -d: -f1)
sed "${line}s/^op [^ ]* [^ ]* [^ ]*/op $engine/" first.txt >edited.txt
refused "an engine that rounds, in a file without --tf32" "$line" "engine .* of cuDNN computes in another way than this run may"
simulate lenet5 -- --steps 2 --nondeterministic --metrics loose.jsonl
is "$code" 0 "--nondeterministic: no report"
simulate lenet5 -- --steps 2 --exact
is "$code" 0 "--exact: no report"
simulate lenet5 -- --steps 2 --exact --tf32
is "$code" 2 "--exact with --tf32: usage"
like "$text" '^error: --exact and --tf32 contradict each other' "--exact with --tf32: says so"
lenet5.cpu/lenet5 --tf32 >out 2>&1
is $? 2 "target cpu has no --tf32"
like "$(cat out)" "^error: unknown option '--tf32'" "target cpu: says so"
lenet5.cpu/lenet5 --help >out
is "$(grep -c -e --tf32 -e --nondeterministic out)" 0 "... nor in its help"
done_testing
