#!/bin/bash
# threads.t: threads = n and --threads N: threads of a stage share its work; for each n the pipelined run equals the serial
# one bit for bit, and itself in every run; what is nonsense, or more than target or machine have, is said.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
[ -e "$B/lib/libpn_cpu.a" ] || skip_all "no library for target cpu"
cd "$WORK" || exit 1
build() { # FOLDER FILE ARGUMENTS...
    local folder=$1 file=$2
    shift 2
    "$PNETC" build "$file" -o "$folder" --quiet -Wno-balance "$@" >log 2>&1 || note "$(cat log)"
    program=$(find "$folder" -maxdepth 1 -type f -perm -u+x | head -1)
}
run() { # NAME ARGUMENTS...
    local weights=$1.safetensors
    shift
    "$program" --quiet --save "$weights" "$@" >out 2>log || { note "$(cat log)"; return 1; }
}
same() { cmp -s "$1.safetensors" "$2.safetensors"; }

# Batch normalisation with blocks of fewer and of more channels than threads, both shortcuts, cuts inside units, Winograd.
equal() { # NAME THREADS STEPS ARGUMENTS...
    local name=$1 threads=$2 steps=$3 status=0
    shift 3
    run serial --threads "$threads" --transport serial --steps "$steps" "$@" || status=1
    for _ in 1 2; do
        run threads --threads "$threads" --transport threads --steps "$steps" "$@" || status=1
        same serial threads || status=1
    done
    ok $status "$name, $threads threads a stage: serial equals threads, bit for bit"
}
residual=$ROOT/tests/nets/residual.pnet
build pipedream "$residual" --set pipeline.schedule=pipedream
equal "residual, pipedream" 2 12
build stale "$residual"
for n in 1 2 3; do
    equal "residual, stale" $n 12
done
cp serial.safetensors three.safetensors
run one --steps 12 && run one_too --threads 1 --steps 12 && same one one_too
ok $? "without the option a stage has one thread"
same one three
is $? 1 "the number of threads shows in the bits: sums have another order"
build option_a "$residual" -D project=no
equal "residual, option A, algorithms chosen" 2 12 --algorithms choice.txt
run part --threads 2 --steps 5 --checkpoint c.safetensors && run joined --threads 2 --steps 12 --resume c.safetensors
ok $? "checkpoint and resume with threads"
cat >dense.pnet <<'END'
network dense() {
    input image: f32[1, 28, 28]
    input label: class[10]
    a = image |> conv(8, kernel = 5, pad = 2) |> relu |> lrn(5, alpha = 0.001) |> maxpool(2)
    register
    b = a |> dropout(0.3) |> flatten |> linear(200) |> leaky_relu |> dropout(0.5)
    loss softmax_cross_entropy(linear(b, 10), label)
}
train {
    data = digits(train = 1000, test = 100)
    batch = 50
}
pipeline { threads = 2 }
END
build dense dense.pnet
grep -q '\.threads = 2,' dense/dense.c
ok $? "threads = 2 is in the program"
equal "drop-out, lrn, linear" 3 30
run two --threads 2 --steps 30 && run as_built --steps 30 && same two as_built
ok $? "a program has the threads that it was built with"
build compiled dense.pnet --set pipeline.threads=3
run as_built --steps 30 && same threads as_built
ok $? "--set pipeline.threads=3"

# what is said
"$PNETC" check dense.pnet >out 2>/dev/null
like "$(head -1 out)" '2 stages .*, 2 threads a stage$' "check says how many"
like "$(cat out)" '^analytic, for one thread a stage, machine' "check says that its times are those of one"
"$program" --steps 1 --threads 2 --report report.json >out 2>log
like "$(cat out)" 'schedule stale, 2 threads a stage' "so does the program"
is "$(python3 -c 'import json; print(json.load(open("report.json"))["threads"])')" 2 "and its report"
cores=$(getconf _NPROCESSORS_ONLN)
"$program" --quiet --steps 1 --threads "$cores" >out 2>log
like "$(cat log)" "^warning: 2 stages of $cores threads want $((2 * cores)) cores, there are $cores: " "more than the cores: a warning"
for bad in 0 -1 two 1.5 ''; do
    "$program" --threads "$bad" >out 2>log
    is $? 2 "--threads '$bad' is a usage error"
done
like "$(cat log)" "wants a whole number from 1" "which says what is wanted"
"$program" --threads 257 >out 2>log
is $? 1 "--threads 257 is refused"
like "$(cat log)" '^error: --threads 257: target cpu runs a stage on 256 threads at most$' "with the limit"
OMP_THREAD_LIMIT=1 "$program" --threads 2 --steps 1 >out 2>log
is $? 1 "OpenMP with fewer threads: refused"
like "$(cat log)" '^error: OpenMP gives a stage 1 of the 2 threads asked for \(OMP_THREAD_LIMIT' "and says why"
build ref "$residual" --target=ref
"$program" --threads 2 >out 2>log
is $? 1 "target ref has no threads"
like "$(cat log)" '^error: --threads 2: target ref runs a stage on 1 thread$' "and says so"
if "$PNETC" profile dense.pnet -o dense.profile --steps 4 >log 2>&1; then
    is "$(grep threads dense.profile)" "threads  2" "a profile says of how many threads it is"
    "$PNETC" check dense.pnet --profile dense.profile >out 2>log
    is $? 0 "it is read again"
    "$PNETC" check dense.pnet --profile dense.profile --set pipeline.threads=1 >out 2>log
    like "$(cat log)" 'the profile is of threads = 2; this is threads = 1 \[P0711\]' "not for another number"
    sed -i /^threads/d dense.profile
    "$PNETC" check dense.pnet --profile dense.profile >out 2>log
    like "$(cat log)" 'the profile is of threads = 1; this is threads = 2 \[P0711\]' "nor one thread's for several"
else
    ok 1 "profile with threads"
    note "$(cat log)"
fi
done_testing
