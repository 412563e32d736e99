#!/bin/bash
# algorithms.t: --algorithms FILE: measured and written, read back, the same weights on one thread and on several, and
# whatever does not fit the program refused, with the line.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
cat >small.pnet <<'END'
network small(classes = 10) {
    input image: f32[1, 28, 28]
    input label: class[classes]
    a = image |> conv(16, kernel = 3, pad = 1) |> relu |> maxpool(2) |> conv(32, kernel = 3, pad = 1) |> relu
    register
    b = a |> conv(32, kernel = 3, pad = 1, bias = no) |> batch_norm |> relu |> conv(32, kernel = 5) |> relu
    loss softmax_cross_entropy(linear(b, classes), label)
}
train {
    data  = digits(train = 300, test = 60)
    batch = 20
    steps = 12
}
END
build() { # FOLDER ARGUMENTS...
    local folder=$1
    shift
    "$PNETC" build small.pnet -o "$folder" --quiet "$@" >log 2>&1 || note "$(cat log)"
}
run() { # PROGRAM ARGUMENTS...
    local program=./$1
    shift
    "$program" "$@" --quiet >out 2>log
}

# refused NAME LINE PATTERN: after an edit of a copy of the file, edited.txt
refused() {
    run cpu/small --algorithms edited.txt
    is $? 1 "$1: refused"
    like "$(cat log)" "^error: edited.txt:$2: .*$3" "$1: the line is named"
}

build ref --target=ref
run ref/small --algorithms ref.txt --save ref1.safetensors
ok $? "target ref: a run that measures"
is "$(cat ref.txt)" "$(printf 'algorithms 1\nprogram small\nbatch 20\nlibrary naive C\nisa unknown\n')" "it has nothing to choose"
run ref/small --algorithms ref.txt --save ref2.safetensors
ok $? "target ref: the file is read back"
ok "$(cmp -s ref1.safetensors ref2.safetensors; echo $?)" "target ref: the same weights"

if [ ! -e "$B/lib/libpn_cpu.a" ]; then
    note "no library for target cpu: its part is not tested"
    done_testing
fi
build cpu --target=cpu
./cpu/small --algorithms first.txt --save first.safetensors >out 2>log
ok $? "a run that measures"
[ -s log ] && note "$(cat log)"
like "$(cat out)" "^algorithms: .* \(measured, written to first.txt\)$" "says so"
is "$(head -3 first.txt)" "$(printf 'algorithms 1\nprogram small\nbatch 20\n')" "the file says of which program"
is "$(sed -n 's/^op \([a-z0-9]*\) \([a-z_]*\) .*/\1 \2/p' first.txt | sort | tr '\n' ',')" \
    "$(printf '%s,' conv1' '{backward_weights,forward} conv{2,3,4}' '{backward_data,backward_weights,forward})" \
    "every pass of every convolution has a line"
is "$(grep -Evc '^op [a-z0-9]+ [a-z_]+ (direct|winograd) [0-9]+\.[0-9] ([0-9]+\.[0-9]|-)$' first.txt)" 5 "with its times"
is "$(grep '^op conv4 ' first.txt | grep -c ' direct [0-9.]* -$')" 3 "kernels of 5x5 have one algorithm only"
text=$(awk '$1 == "op" && $6 != "-" && ($4 == "winograd") != ($6 * 1.03 < $5) && ($6 * 1.029 < $5) == ($6 * 1.031 < $5)' first.txt)
is "$text" "" "what is more than 3 % faster is chosen"
is "$(find . -name 'first.txt*')" ./first.txt "nothing else is left"

cp first.txt before
./cpu/small --algorithms first.txt --save second.safetensors --report report.json >out 2>log
ok $? "the file is read back"
like "$(cat out)" "^algorithms: .* \(as in first.txt\)$" "says so"
ok "$(cmp -s first.txt before; echo $?)" "the file is as it was"
ok "$(cmp -s first.safetensors second.safetensors; echo $?)" "the same weights as of the run that measured"
text=$(python3 -c '
import json
for stage in json.load(open("report.json"))["stages"]:
    for one in stage["reorders"]:
        assert set(one) == {"op", "of", "bytes"} and one["op"] and one["of"] and one["bytes"] > 0
print("good")')
is "$text" good "--report lists the reorders"

# all that can be Winograd, by hand
awk '$1 == "op" && $6 != "-" { $4 = "winograd" } { print }' first.txt >all.txt
run cpu/small --algorithms all.txt --transport threads --save threads.safetensors
ok $? "an edited file, on threads"
run cpu/small --algorithms all.txt --transport serial --save serial.safetensors
ok $? "an edited file, on one thread"
ok "$(cmp -s threads.safetensors serial.safetensors; echo $?)" "the same weights"
run cpu/small --exact --save direct.safetensors --report report.json
awk '$1 == "op" { $4 = "direct" } { print }' first.txt >direct.txt
run cpu/small --algorithms direct.txt --save chosen.safetensors
ok "$(cmp -s direct.safetensors chosen.safetensors; echo $?)" "all direct: the weights of --exact"
# PASSES OF WHICH ALGORITHM in report.json: as "conv2 forward direct jit:avx512_core,"
passes() {
    python3 -c '
import json
for stage in json.load(open("report.json"))["stages"]:
    for one in stage["algorithms"]:
        assert set(one) == {"op", "pass", "algorithm", "code"} and one["code"]
        print(one["op"], one["pass"], one["algorithm"], "own" if one["code"] == "own" else "library")'
}
is "$(passes | sort -u | grep -c ' direct library$')" 11 "--report: every pass is direct"
is "$(passes | wc -l)" 11 "and there are no others"
run cpu/small --save rule.safetensors --report report.json
ok $? "a run without a file"
avx512=false
if grep -q ' winograd own$' <<<"$(passes)"; then
    avx512=true
    is "$(passes | grep ' own$' | cut -d' ' -f1,2 | sort | tr '\n' ',')" \
        "$(printf '%s,' conv{2,3}' '{backward_data,backward_weights,forward})" "the rule: 3x3 of channels in sixteens"
    cmp -s direct.safetensors rule.safetensors
    is $? 1 "which differs from direct"
else
    note "not built for AVX-512: the rule takes direct"
    ok "$(cmp -s direct.safetensors rule.safetensors; echo $?)" "the rule: direct"
fi
# The compiler's cost model has the same rule: of shapes on both sides of each of its limits. (Behind a conv of a plain image
# with 16 channels oneDNN keeps all layouts plain; images have 1 or 3.)
cat >shapes.pnet <<'END'
network shapes(classes = 4) {
    input image: f32[3, 24, 24]
    input label: class[classes]
    a1 = image |> conv(16, kernel = 3, pad = 1) |> conv(16, kernel = 3, pad = 2) |> conv(24, kernel = 3)
    a2 = a1 |> conv(32, kernel = 3, pad = 1) |> conv(32, kernel = 3)
    a3 = a2 |> conv(32, kernel = 3, pad = 1, dilation = 2) |> conv(32, kernel = 3, pad = 1, groups = 2) |> conv(32, kernel = 5, pad = 2)
    a4 = a3 |> conv(32, kernel = 3, stride = 2, pad = 1) |> conv(16, kernel = 3) |> conv(16, kernel = 3, pad = 1) |> maxpool(2)
    a5 = a4 |> conv(16, kernel = 3, pad = 1) |> conv(48, kernel = 3, pad = 2) |> conv(16, kernel = 3, pad = 1)
    loss softmax_cross_entropy(linear(a5, classes), label)
}
train {
    data  = raw(path = ".")
    batch = 8
    lr    = 1e-6
    steps = 1
}
END
python3 - <<'PY'
import array
for split in "train", "test":
    array.array("f", (i % 7 - 3 for i in range(16 * 3 * 576))).tofile(open(f"{split}.f32", "wb"))
    open(f"{split}.labels", "wb").write(bytes(i % 4 for i in range(16)))
PY
for batch in 8 2; do
    "$PNETC" build shapes.pnet -o shapes --quiet --target=cpu --set train.batch=$batch >log 2>&1 || note "$(cat log)"
    run shapes/shapes --report report.json
    said=$("$PNETC" check shapes.pnet --target=cpu --set train.batch=$batch --json 2>log |
        python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)["prediction"]["winograd"]))')
    done=$(passes | grep ' own$' | cut -d' ' -f1 | sort -u | tr '\n' ' ')
    if ! $avx512; then
        note "not built for AVX-512: the program has no Winograd, and nothing to compare"
        continue
    fi
    is "$said " "$done" "the cost model's convolutions by Winograd are those of the program, batch $batch"
done
run cpu/small --transport threads --save again.safetensors
ok "$(cmp -s rule.safetensors again.safetensors; echo $?)" "the rule: the same weights on threads"
run cpu/small --exact --algorithms first.txt
is $? 2 "--exact with --algorithms: refused"
like "$(cat log)" "^error: --exact leaves nothing for --algorithms to choose" "says why"
if grep -q ' winograd ' all.txt; then
    cmp -s direct.safetensors threads.safetensors
    is $? 1 "Winograd differs, so it was used"
    sed '/ winograd /s/ [0-9.]*$/ -/' all.txt >edited.txt
    refused "winograd where there is none" "$(grep -n -m1 winograd all.txt | cut -d: -f1)" "winograd is chosen where there is none"
else
    note "this library has no Winograd"
fi
awk '$1 == "op" && $2 == "conv4" { $4 = "winograd"; $6 = "1.0" } { print }' first.txt >edited.txt
refused "winograd that the library has not" '[0-9]+' "there is no winograd for the [a-z_]* of conv4"

# ---- what does not fit ----
build other --target=cpu --set train.batch=10
run other/small --algorithms first.txt
is $? 1 "another batch: refused"
like "$(cat log)" "^error: first.txt:3: this must be 'batch 10'" "another batch: the line is named"
sed 's/^network small/network large/' small.pnet >large.pnet
"$PNETC" build large.pnet -o large --quiet --target=cpu >log 2>&1
run large/large --algorithms first.txt
is $? 1 "another program: refused"
like "$(cat log)" "^error: first.txt:2: this must be 'program large'; remove the file to measure anew$" \
    "another program: the line is named"
sed 's/^algorithms 1/algorithms 2/' first.txt >edited.txt
refused "another form" 1 "this must be 'algorithms 1'"
sed 's/^library .*/library oneDNN 0.1/' first.txt >edited.txt
refused "another library" 4 "this must be 'library oneDNN"
sed 's/^isa .*/isa mmx/' first.txt >edited.txt
refused "another machine" 5 "this must be 'isa "
head -2 first.txt >edited.txt
refused "an end in the header" 3 "this must be 'batch 20'"
: >edited.txt
refused "an empty file" 1 "this must be 'algorithms 1'"
head -c -3 first.txt >edited.txt
refused "an end within a line" 16 "cut off"
sed '7s/ direct / fast /; 7s/ winograd / fast /' first.txt >edited.txt
refused "an unknown algorithm" 7 "neither 'direct' nor 'winograd'"
sed '8s/[0-9]*\.[0-9]/soon/' first.txt >edited.txt
refused "no time" 8 "a time in microseconds"
sed '8s/ [^ ]*$//' first.txt >edited.txt
refused "a word too few" 8 "a word is missing"
sed '8s/$/ more/' first.txt >edited.txt
refused "a word too many" 8 "too much"
{ cat first.txt; tail -1 first.txt; } >edited.txt
refused "a line twice" 17 "again"
{ cat first.txt; echo "op conv9 forward direct 1.0 -"; } >edited.txt
refused "an operation that is not there" 17 "small has no forward of conv9"
sed 6d first.txt >edited.txt
run cpu/small --algorithms edited.txt
is $? 1 "a line too few: refused"
like "$(cat log)" "^error: edited.txt has no line for the [a-z_]+ of conv1" "a line too few: it is named"
mkdir folder
run cpu/small --algorithms folder
is $? 1 "a folder: refused"
like "$(cat log)" "^error: cannot read folder: Is a directory" "a folder: says so"
run cpu/small --algorithms no/such.txt
is $? 1 "a folder that is not there: refused"
like "$(cat log)" "^error: cannot write no/such.txt: No such file" "a folder that is not there: says so"
done_testing
