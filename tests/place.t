#!/bin/bash
# place.t: machines, predicted times, balance and its warnings, placement and its commands, from the command line.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 2

# A network whose work by FLOPs is known: five equal square layers of 64 x 64 and a small one, on a machine without memory
# traffic or overhead. A layer takes 3 x 2 x 64 x 64 FLOPs a sample, the first one 2/3 of that (nobody wants the gradient
# of the input).
cat >even.pnet <<'NET'
network even(width = 64) {
    input x: f32[64]
    input y: class[10]

    a = x |> linear(width, bias = no)  # the first
    b = a |> linear(width, bias = no)
    # between
    c = b |> linear(width, bias = no)
    d = c |> linear(width, bias = no)
    e = d |> linear(width, bias = no)
    loss softmax_cross_entropy(linear(e, 10, bias = no), y)
}

train {
    data  = raw(path = "x")
    batch = 10
}
NET
cat >flops.pnet <<'NET'
machine flops {
    device d {
        count     = 4
        compute   = 1 GFLOP/s
        bandwidth = 10000 TB/s
    }
}
NET
options=(--target=ref --machine flops.pnet)

json() { # FILE EXPRESSION: of the JSON in FILE as d
    python3 -c "import json, sys; d = json.load(open(sys.argv[1])); print($2)" "$1"
}
cuts() { "$PNETC" place "$1" "${options[@]}" --json "${@:3}" >out.json 2>err && json out.json "' '.join(d['placements'][$2 - 1]['registers_after'])"; }

# ---- the commands ----
out=$("$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(stages = 2)' 2>&1)
is "$?" 0 "auto: check"
like "$out" 'analytic, machine flops \(flops.pnet\)' "check says where its times come from"
like "$out" 'speed-up     1\.[89]. x one worker' "check: speed-up of an even network"
like "$out" 'better cut   none into 2 stages' "auto: nothing is better"
sed 's/count     = 4/count     = 8/' flops.pnet >eight.pnet
vgg16=("$ROOT/examples/vgg16.pnet" --target=ref --machine eight.pnet --set pipeline.schedule=stale)
better=$("$PNETC" check "${vgg16[@]}" --set 'pipeline.registers=ppv(2, 3, 4, 6)' 2>err | sed -n 's/^better cut   after //p')
"$PNETC" place "${vgg16[@]}" --json >out.json 2>err
placed=$(json out.json "', '.join(d['placements'][4]['registers_after'])")
[ "${#placed}" -gt 70 ] && [ "$better" = "$placed" ]
ok $? "check and place name the same better cut of five stages, however long its names"
is "$(cuts even.pnet 2)" c "two stages: behind the third layer"
is "$(cuts even.pnet 3)" "b d" "three stages"
is "$(cuts even.pnet 2 --set 'pipeline.max_stale=0.4')" b "with at most 40 % of the weights stale"
is "$(cuts even.pnet 2 --set 'pipeline.registers=auto(stages = 2, allow = after(a, e))')" a "allow"
is "$(cuts even.pnet 2 --set 'pipeline.registers=auto(stages = 2, forbid = after(c))')" b "forbid: the lower of two equals"
is "$(cuts even.pnet 3 --set 'pipeline.registers=auto(stages = 3, pin = after(a))')" "a c" "pin"
out=$("$PNETC" place even.pnet "${options[@]}" 2>&1)
is "$?" 0 "place"
like "$out" 'verdict: 4 workers are the fastest, 2\.90 x one' "place: verdict"
like "$out" '^ *\*2 on 4! .* \(2, 2\) c$' "place: faster with replicas, two stages on four workers"
like "$out" 'verdict: with replicas \(2, 2\), 4 workers are the fastest, 3\.62 x one' "place: and says so"
cuts even.pnet 3 --set 'pipeline.registers=auto(stages = 3)' >/dev/null
is "$(json out.json "[(r['stages'], r['workers'], r['replicas']) for r in d['placements']]")" \
    "[(1, 1, [1]), (2, 2, [1, 1]), (3, 3, [1, 1, 1])]" "place --json, auto(stages = 3): no replicas are asked for"
out=$("$PNETC" place even.pnet "${options[@]}" --workers 5 2>&1)
is "$?" 1 "place: more workers than the machine has"
like "$out" '5 workers, but the machine flops has 4 \[P0721\]' "place: and says so"

# auto gives the plan that the same registers by hand give
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(stages = 3)' --dump=plan >auto.plan 2>err
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=after(b, d)' --dump=plan >hand.plan 2>err
cmp -s auto.plan hand.plan
ok $? "auto(stages = 3) is after(b, d), to the byte"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4)' --json >out.json 2>err
is "$(json out.json "[s['replicas'] for s in d['stages']]")" "[2, 2]" "auto(workers = 4) takes all four, two a stage"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4)' --dump=plan >auto.plan 2>err
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=after(c)' --set 'pipeline.replicas=(2, 2)' --dump=plan >hand.plan 2>err
cmp -s auto.plan hand.plan
ok $? "and is after(c) with replicas = (2, 2), to the byte"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4, replicas = no)' --json >out.json 2>err
is "$(json out.json "[s['replicas'] for s in d['stages']]")" "[1, 1, 1, 1]" "auto(workers = 4, replicas = no): four stages"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(stages = 2, workers = 3)' --json >out.json 2>err
is "$(json out.json "[(s['replicas'], s['layers'], s['workers']) for s in d['stages']]")" "[(1, 2, 1), (2, 4, 2)]" \
    "auto(stages = 2, workers = 3): the slow stage has two"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4)' --set train.batch=7 --json >out.json 2>err
is "$(json out.json "[s['replicas'] for s in d['stages']]")" "[1, 1, 1, 1]" "a batch of 7 does not divide into 2 to 4 slices"
for wish in 'minimize = memory' 'balance = 9'; do
    "$PNETC" check even.pnet "${options[@]}" --set "pipeline.registers=auto(workers = 4, $wish)" --json >out.json 2>err
    is "$(json out.json "max(s['replicas'] for s in d['stages'])")" 1 "with $wish there are no replicas"
done
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4)' --set pipeline.cure=lookahead --json >out.json 2>err
is "$(json out.json "d['stages'][0]['replicas']")" 1 "a stage that reads weights ahead has none"
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=auto(stages = 2, workers = 4)' --set train.test_every=100 \
    --set 'pipeline.schedule=hybrid(stale, when = plateau(tests = 3), then = sequential)' --json >out.json 2>err
is "$(json out.json "[s['replicas'] for s in d['stages']]")" "[2, 1]" "nor has one whose loss ends a phase"
capped() { "$PNETC" check even.pnet "${options[@]}" --set "pipeline.registers=auto(stages = 2, workers = 4, memory = \"$1\")" --json >out.json 2>err; }
capped '100 kB'
nearest=$(sed -n 's/^hint: the nearest possible is memory = "\(.*\)" (.*/\1/p' err)
is "$?: $(grep -c 'no 2 stages of at most 100 kB each were found \[P0721\]' err)" "0: 1" "auto: a memory cap that cannot be met"
capped "$nearest"
is "$(json out.json "max(s['static_bytes'] for s in d['stages']) <= ${nearest% B}")" True "the nearest possible is possible: $nearest"
capped '225 kB'
is "$(json out.json "max(s['static_bytes'] for s in d['stages']) <= 225000, max(s['replicas'] for s in d['stages']) > 1")" \
    "True True" "a cap between: replicas that keep it, all of a stage counted"
sed 's/compute   = 1 GFLOP/compute   = 1000 TFLOP/; /bandwidth/a overhead = 0 us' flops.pnet >slow_link.pnet
sed -i '$d' slow_link.pnet
printf '    link l {\n        bandwidth = 1 MB/s\n        latency = 1 ms\n    }\n}\n' >>slow_link.pnet
"$PNETC" check even.pnet --target=ref --machine slow_link.pnet --set 'pipeline.registers=auto(workers = 4)' --json >out.json 2>err
is "$(json out.json "len(d['stages'])")" 1 "auto(workers = 4): one worker, where the link costs more than it gains"
out=$("$PNETC" check even.pnet --target=ref --machine slow_link.pnet --set 'pipeline.registers=after(c)' 2>&1)
like "$out" 'verdict      one worker is as fast or faster' "check never hides that one worker is faster"

# ---- what JSON says is what text says ----
"$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=after(a)' --json >out.json 2>err
is "$(json out.json "d['prediction']['source'], d['prediction']['machine'], d['prediction']['better_cut']['registers_after']")" \
    "analytic flops ['c']" "check --json: prediction"
is "$(json out.json "abs(sum(s['forward_seconds'] + s['backward_seconds'] + s['update_seconds'] for s in d['stages']) / d['prediction']['one_worker_seconds'] - 1) < 1e-9")" \
    True "check --json: times add up"
is "$(json out.json "abs(d['stages'][0]['forward_seconds'] / (10 * 2 * 64 * 64 / 1e9) - 1) < 1e-6")" True "check --json: FLOPs over FLOP/s"

# ---- warnings ----
warned() { "$PNETC" check even.pnet "${options[@]}" --set 'pipeline.registers=after(a)' "$@" 2>err >out; }
warned && grep -q 'warning: stage 1 takes .* over balance = 1.25 \[P0506\]' err && grep -q 'hint: registers after c: ' err
ok $? "an unbalanced cut is a warning, and the hint names the better one"
warned -Wno-balance && [ ! -s err ]
ok $? "-Wno-balance"
warned -Wbalance=error
is "$?: $(grep -c 'error: stage 1 takes' err)" "1: 1" "-Wbalance=error"
warned -Wno-balance --set pipeline.max_stale=0.1 && grep -q 'warning: .* % of the weights are stale, over max_stale = 0.1 \[P0731\]' err
ok $? "-Wstale"
warned -Wno-balance -Wstale=error --set pipeline.max_stale=0.1
is "$?" 1 "-Wstale=error"
limited() { # CUT LIMIT ARGUMENTS...
    "$PNETC" check even.pnet "${options[@]}" --set "pipeline.registers=after($1)" --set "pipeline.$2" -Wno-balance "${@:3}" 2>err >out
}
limited d max_stale=0.4
is "$(grep -c P0731 err) $(sed -n 's/^hint: registers after \(.*\) keep the limits: .*/\1/p' err)" "1 b" "-Wstale: the hint names the fastest cut that keeps it"
limited b max_stale=0.4 && [ ! -s err ]
ok $? "which it does"
limited d max_stale=0.4 --json
is "$(json out "(lambda l: (l['max_stale'], l['memory'], l['exceeded'], l['kept_by']))(d['limits'])")" "(0.4, None, ['balance', 'max_stale'], ['b'])" \
    "check --json: limits"
limited d max_stale=0.001
nearest=$(sed -n 's/^hint: no cut into 2 stages keeps it; the nearest possible is max_stale = //p' err)
limited a "max_stale=${nearest:-0}" && [ ! -s err ]
ok $? "-Wstale: the nearest possible, where none keeps it"
limited a 'memory="1 B"'
nearest=$(sed -n 's/^hint: no cut into 2 stages keeps it; the nearest possible is memory = \(".*"\) (.*/\1/p' err)
limited a "memory=${nearest:-0}"
is "$(grep -c 'keep the limits' err)" 1 "-Wmemory: the nearest possible, and the cut that keeps that"
warned -Wno-balance --set 'pipeline.memory="1 kB"' && grep -q 'warning: stage 1 needs .*, over memory = 1.00 kB \[P0732\]' err
ok $? "-Wmemory"
sed '/count/a memory = 150 kB' flops.pnet >small.pnet
"$PNETC" check even.pnet --target=ref --machine small.pnet --set 'pipeline.registers=after(c)' 2>err >out
like "$(cat err)" 'warning: the stages of worker 0 need .*, but d has 150 kB \[P0732\]' "-Wmemory: of the device"
"$PNETC" check even.pnet -Wspeed >out 2>err
is "$?" 2 "-W of something else is a usage error"

# ---- writing ----
before=$(cuts even.pnet 3)
cp even.pnet three.pnet
out=$("$PNETC" place three.pnet "${options[@]}" --workers 3 --write 2>&1)
like "$out" '^three.pnet: written with 2 registers$' "--write says what it did"
diff even.pnet three.pnet >changes
is "$(grep -c '^>' changes), $(grep -c '^> *register$' changes), $(grep -c '^<' changes)" "2, 2, 0" "--write adds two lines: register"
is "$(grep -n 'register' three.pnet | tr '\n' ' ')" "7:    register 11:    register " "where they belong"
"$PNETC" fmt --check three.pnet
ok $? "the text is canonical, comments kept"
is "$(cuts three.pnet 3)" "$before" "placing again gives the same"
"$PNETC" place three.pnet "${options[@]}" --workers 2 --write >out 2>&1
is "$(grep -n 'register' three.pnet | tr '\n' ' ')" "9:    register " "old registers are replaced"
is "$(grep -c '#' three.pnet)" 2 "no comment is lost"
"$PNETC" place three.pnet "${options[@]}" --workers 1 --write >out 2>&1
cmp -s even.pnet three.pnet
ok $? "one worker: no register is left, and the file is what it was"
cp even.pnet wide.pnet
"$PNETC" place wide.pnet "${options[@]}" --set 'pipeline.registers=auto(workers = 4)' --write >out 2>&1
like "$(cat out)" '^wide.pnet: written with 1 register, replicas = \(2, 2\)$' "--write with replicas says so"
is "$(grep -n 'register\|replicas' wide.pnet | tr -s ' \n' ' ')" "9: register 21: replicas = (2, 2) " "and writes them into the pipeline block"
"$PNETC" check wide.pnet "${options[@]}" >out 2>err
like "$(cat out)" '^ *1 x2 .*' "check shows them"
"$PNETC" plan wide.pnet "${options[@]}" --all-schedules >out 2>err
like "$(head -1 out)" '2 stages, replicas \(2, 2\)' "plan --all-schedules: of these stages with these replicas"
"$PNETC" place wide.pnet "${options[@]}" --workers 2 --write >out 2>&1
is "$?: $(grep -c 'replicas' wide.pnet)" "0: 0" "placing without replicas takes the setting away"
layer=' |> linear(width, bias = no)'
sed "s/    b = a.*/    b = a$layer$layer$layer$layer$layer/" even.pnet >chain.pnet
out=$("$PNETC" place chain.pnet "${options[@]}" --workers 2 --write 2>&1)
like "$out" 'written with 1 register, as registers = after\(...\)' "inside a statement: by the setting"
like "$(tail -3 chain.pnet)" 'registers = after\(linear[0-9]\)' "the pipeline block is added"
first=$(cuts chain.pnet 2)
"$PNETC" check chain.pnet "${options[@]}" --json >out.json 2>err
is "$(json out.json "len(d['stages'])")" 2 "and holds: two stages, after $first"
printf 'use "even.pnet"\npipeline { }\n' >uses.pnet
"$PNETC" place uses.pnet "${options[@]}" --write >out 2>err
is "$?: $(grep -c "\[P0722\]" err)" "1: 1" "a network in a used file is not written to"
"$PNETC" place - --write <even.pnet >out 2>err
is "$?" 2 "standard input is not written to"

# ---- schedules ----
"$PNETC" plan even.pnet "${options[@]}" --set 'pipeline.registers=after(c)' --all-schedules --json >out.json 2>err
is "$(json out.json "sorted(r['schedule'] for r in d['schedules']) == sorted('$("$PNETC" list schedules | sed -n '2,/^$/s/^  \([a-z0-9_]*\)  .*/\1/p' | tr '\n' ' ')'.split())")" \
    True "plan --all-schedules: every preset"
is "$(json out.json "[(r['staleness'], r['bubble'] > 0.4) for r in d['schedules'] if r['schedule'] in ('stale', 'sequential')]")" \
    "[(2, False), (0, True)]" "staleness and bubble"
out=$("$PNETC" plan even.pnet "${options[@]}" --all-schedules 2>&1)
is "$?" 0 "plan --all-schedules, one stage"

# ---- the paper's trade-off: ResNet-20 by time, the algorithm of each convolution known ----
resnet() { "$PNETC" place "$ROOT/examples/resnet.pnet" --target=cpu --workers 2 --json "$@" >out.json 2>err && json out.json "' '.join(d['placements'][1]['registers_after']), '%.1f' % (100 * d['placements'][1]['stale_fraction'])"; }
is "$(resnet)" "group2.unit1.conv1 7.1" "ResNet-20: two stages of equal time, 7.1 % of the weights stale, as a profile has it"
is "$(resnet --machine core-exact)" "group2.unit1.conv2 10.5" "with --exact, all convolutions direct: 10.5 %"

# ---- machines and profiles ----
out=$("$PNETC" list machines)
like "$out" 'a100 .*' "list machines"
for machine in core core-exact ryzen-7950x a100 h100 h200; do
    "$PNETC" check even.pnet --machine $machine >out 2>err
    is "$?" 0 "machine $machine"
done
hash=$("$PNETC" check even.pnet --profile <(echo 'pnet profile 1
network even
graph 0') --target=ref 2>&1 | sed -n 's/.*this is the graph \([0-9a-f]*\).*/\1/p')
printf 'pnet profile 1\nnetwork even\ngraph %s\nbatch 10\ntarget ref\nmachine flops\nversions pnetc %s\na 1000 2000 5\n' "$hash" \
    "$("$PNETC" --version | cut -d' ' -f2)" >even.prof
out=$("$PNETC" check even.pnet "${options[@]}" --profile even.prof 2>&1)
is "$?" 0 "a profile"
like "$out" 'profiled 1 of 7 nodes, machine flops' "says how many nodes were measured"
like "$out" '  0   1\.[0-9]+ ms' "and uses the times"
"$PNETC" check even.pnet "${options[@]}" --profile even.prof -D width=32 >out 2>err
is "$?: $(grep -c 'even.prof:3:.*the profile is of the graph' err)" "1: 1" "a profile of another network"

# ---- nonsense: each is refused with the line, and the nearest that is possible ----
refused() { # NAME PATTERN ARGUMENTS...: all that is said, on one line
    local name=$1 pattern=$2
    shift 2
    "$PNETC" check even.pnet --target=ref "$@" >out 2>err
    is "$?" 1 "$name: refused"
    like "$(tr '\n' ' ' <err)" "$pattern" "$name: says what and where"
}
machine() { # NAME PATTERN DEVICE-LINE...: in the place of the bandwidth's, which is line 4
    local name=$1 pattern=$2
    shift 2
    { printf 'machine m {\n    device d {\n        compute = 1 GFLOP/s\n'; printf '        %s\n' "$@"; printf '    }\n}\n'; } >m.pnet
    refused "$name" "$pattern" --machine ./m.pnet
}
machine "an unknown unit" 'm.pnet:4:21: error: unknown unit Gb/s \[P0410\].*did you mean GB/s\?' 'bandwidth = 40 Gb/s'
machine "no unit" 'm.pnet:4:21: error: bandwidth needs a unit .*hint: bandwidth = 40 GB/s' 'bandwidth = 40'
machine "another unit" 'm.pnet:4:21: error: bandwidth is not measured in us' 'bandwidth = 40 us'
machine "negative" 'm.pnet:4:21: error: bandwidth is -40 GB/s, not from 100 kB/s to .*nearest possible is bandwidth = 100 kB/s' 'bandwidth = -40 GB/s'
machine "zero" 'm.pnet:4:21: error: bandwidth is 0 B/s, .*nearest possible is bandwidth = 100 kB/s' 'bandwidth = 0 GB/s'
machine "too large" 'm.pnet:4:21: error: .*nearest possible is bandwidth = 10000 TB/s' 'bandwidth = 1e30 GB/s'
machine "twice" 'm.pnet:5:9: error: bandwidth is set twice .*m.pnet:4:9: note' 'bandwidth = 40 GB/s' 'bandwidth = 50 GB/s'
machine "part of a device" 'm.pnet:5:17: error: count must be a whole number, found 2.5 .*nearest possible is count = 3' 'bandwidth = 40 GB/s' 'count = 2.5'
machine "unknown key" 'm.pnet:5:9: error: a device has no bandwith .*did you mean bandwidth\?' 'bandwidth = 40 GB/s' 'bandwith = 4 GB/s'
machine "lacking" 'm.pnet:2:5: error: the device d states no bandwidth' 'count = 2'
printf 'machine m {\n    link l { bandwidth = 3 GB/s }\n}\n' >m.pnet
refused "no device" 'm.pnet:1:1: error: the machine m has no device' --machine ./m.pnet
printf 'machine m {\n    device d {\n        compute = 1 GFLOP/s' >m.pnet
refused "a machine cut off" 'm.pnet:1:11: error: this .{. is never closed .*m.pnet:2:14' --machine ./m.pnet
cat flops.pnet flops.pnet >m.pnet
refused "a machine twice" 'm.pnet:8:1: error: the machine flops is described twice .*m.pnet:1:1: note' --machine ./m.pnet
: >m.pnet
refused "an empty machine file" 'm.pnet has no machine block .*calibrate -o ./m.pnet' --machine ./m.pnet
refused "no such machine" 'there is no machine h10 .*did you mean h100\?' --machine h10

profile() { # NAME PATTERN LINES: the profile even.prof with its last line replaced
    sed '$d' even.prof >p.prof
    printf '%b' "$3" >>p.prof
    refused "$1" "$2" --machine flops.pnet --profile p.prof
}
profile "a negative time" 'p.prof:8:3: error: a takes -1 us.*nearest possible' 'a -1 2 3\n'
profile "no time at all" 'p.prof:8:3: error: a takes 0 us.*nearest possible' 'a 0 2 3\n'
profile "no number" 'p.prof:8:5: error: expected a number of microseconds' 'a 1 nan 3\n'
profile "another network's node" 'p.prof:8:1: error: even has no node ab' 'ab 1 2 3\n'
profile "a time twice" 'p.prof:9:1: error: a is timed twice .*p.prof:8:1: note' 'a 1 2 3\na 1 2 3\n'
profile "cut off within a line" 'p.prof:8:1: error: the profile is cut off in this line' 'a 1 2 3'
profile "cut off before its times" 'p.prof:8:1: error: the profile has no times' ''
for line in 2 3 4 5 6 7; do
    head -$((line - 1)) even.prof >p.prof
    refused "cut off before line $line" "p.prof:$line:1: error: the profile ends here, before its line '$(sed -n "$line"'s/ .*//p' even.prof) ...'" \
        --machine flops.pnet --profile p.prof
    sed "${line}s/ .*/ other/" even.prof >p.prof
    refused "another line $line" "p.prof:$line:[0-9]+: error: the profile is of .*hint: measure" --machine flops.pnet --profile p.prof
done
sed '1s/1$/2/' even.prof >p.prof
refused "a later profile" 'p.prof:1:14: error: a profile of version 2; this pnetc reads version 1 .*hint: measure again' --profile p.prof

wished() { refused "auto($1)" "pipeline.registers:1:.*$2" "${options[@]}" --set "pipeline.registers=auto($1)"; }
wished 'stages = 9' '9 stages are not possible: even has room for 7 at most .*nearest possible is stages = 7'
wished 'stages = 4, allow = after(b)' 'room for 2 at most .*allow and forbid leave no more.*stages = 2'
wished 'stages = 2, workers = 9' '9 workers, but the machine flops has 4 .*workers = 4'
wished 'workers = 3, memory = "1 kB"' 'no 3 stages of at most 1.00 kB each were found .*nearest possible is memory = "[0-9]+ B" .*with 3 stages'
wished 'stages = 2, max_stale = 0' 'no 2 stages keep the stale weights to 0 % .*nearest possible is max_stale = 0.19'
wished 'workers = 1, pin = after(b)' '1 pinned register makes 2 stages, more than 1 .*nearest possible is workers = 2'
"$PNETC" place even.pnet "${options[@]}" --set 'pipeline.memory="1 kB"' >out 2>err
is "$?: $(grep -c 'pipeline.memory:1:1: error: no [0-9] stages of at most 1.00 kB each were found \[P0721\]' err) $(grep -c 'nearest possible is memory' err)" "1: 1 1" \
    "place under a memory cap that nothing keeps"
done_testing
