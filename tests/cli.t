#!/bin/bash
# cli.t: the command line: help everywhere, exit codes 0, 1 and 2, hints, output that cannot be written.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
lenet=$ROOT/examples/lenet5.pnet

# status WANTED NAME COMMAND...: output in $out, errors in $err
status() {
    local wanted=$1 name=$2
    shift 2
    out=$("$@" 2>"$WORK/err")
    local got=$?
    err=$(cat "$WORK/err")
    is "$got" "$wanted" "$name"
}
status 2 "no command: usage" "$PNETC"
like "$err" '^usage: pnetc COMMAND' "no command: says how"
status 0 "--help" "$PNETC" --help
for command in check plan build run fmt explain doctor list draw plot report profile calibrate flags; do
    like "$out" "^  $command " "--help names $command"
done
for command in check plan build run fmt explain doctor list draw plot report profile calibrate flags; do
    status 0 "$command --help" "$PNETC" $command --help
    like "$out" "^usage: pnetc $command" "$command --help says how"
done
status 0 "--version" "$PNETC" --version
like "$out" '^pnetc [0-9.]+$' "--version prints the version"
status 2 "unknown command" "$PNETC" chekc
like "$err" "did you mean 'check'" "unknown command: hint"
status 2 "unknown option" "$PNETC" check --jsno "$lenet"
like "$err" "did you mean '--json'" "unknown option: hint"
status 2 "missing file" "$PNETC" check
status 2 "build without -o" "$PNETC" build "$lenet"
status 2 "option without value" "$PNETC" check "$lenet" --target
status 2 "unknown target" "$PNETC" check "$lenet" --target=gpu
status 2 "unknown dump" "$PNETC" check "$lenet" --dump=tree
status 2 "bad --set" "$PNETC" check "$lenet" --set batch=3
status 2 "bad -D" "$PNETC" check "$lenet" -D depth
status 1 "file that is not there" "$PNETC" check nothere.pnet
like "$err" 'nothere.pnet' "file that is not there: named"
status 1 "a folder" "$PNETC" check "$WORK"
status 1 "unknown -D name" "$PNETC" check "$lenet" -D clases=10
like "$err" "classes" "unknown -D name: hint"
status 1 "unknown --set block" "$PNETC" check "$lenet" --set tran.batch=64
like "$err" "train" "unknown --set block: hint"
status 1 "bad --set value" "$PNETC" check "$lenet" --set 'train.batch=(('

status 0 "check" "$PNETC" check "$lenet"
like "$out" 'stage' "check prints stages"
status 0 "check --json" "$PNETC" check "$lenet" --json
printf '%s' "$out" | python3 -c 'import json, sys; d = json.load(sys.stdin); assert len(d["stages"]) == 2 and d["stages"][0]["staleness"] == 2 and d["parameters"] == 61706'
ok $? "check --json: two stages, staleness 2, 61706 parameters"
status 0 "check from standard input" sh -c "'$PNETC' check - <'$lenet'"
status 0 "--set changes the batch" "$PNETC" check "$lenet" --json --set train.batch=64
status 0 "-D changes a parameter" "$PNETC" check "$lenet" -D classes=10
status 0 "plan" "$PNETC" plan "$lenet"
status 0 "plan --json" "$PNETC" plan "$lenet" --json
printf '%s' "$out" | python3 -m json.tool >/dev/null
ok $? "plan --json is JSON"
for what in ops schedules targets data; do
    status 0 "list $what" "$PNETC" list $what
done
status 2 "list of nothing" "$PNETC" list opps
like "$err" "did you mean 'ops'" "list: hint"
status 0 "explain" "$PNETC" explain P0301
like "$out" 'P0301' "explain names the code"
status 1 "explain of an unknown code" "$PNETC" explain P9999
status 0 "explain lists all" "$PNETC" explain
unexplained=$(cat "$ROOT"/compiler/codes/*.def | sed -n 's/^CODE(\(P[0-9]*\),.*/\1/p' | while read -r code; do
    [ "$("$PNETC" explain "$code" | wc -l)" -ge 3 ] || echo "$code"
done)
is "$unexplained" "" "explain has a text for every code"
status 0 "doctor" "$PNETC" doctor
like "$out" 'oneDNN' "doctor names oneDNN"

for command in "check $lenet" "plan $lenet" "list ops" "fmt $lenet"; do
    # shellcheck disable=SC2086 # words
    "$PNETC" $command >/dev/full 2>"$WORK/err"
    is "$?" 1 "$command to a full disk: exit 1"
    like "$(cat "$WORK/err")" 'cannot write' "$command to a full disk: says so"
done

status 2 "flags of nothing" "$PNETC" flags
status 1 "flags of an unknown target" "$PNETC" flags --libs=gpu
like "$err" "unknown target 'gpu'" "flags of an unknown target: says so"
status 0 "flags of both kinds" "$PNETC" flags --cflags --libs=ref
like "$out" '^-I' "flags of both kinds: the compiler's"
like "$out" 'libpn_ref' "flags of both kinds: the linker's"

# installed elsewhere, it still builds programs
make -s -C "$ROOT" install B="$B" DESTDIR="$WORK/root" PREFIX=/usr >/dev/null 2>&1
ok $? "make install DESTDIR"
status 0 "an installed pnetc builds" "$WORK/root/usr/bin/pnetc" build "$lenet" -o "$WORK/out" --target=ref --quiet
[ -x "$WORK/out/lenet5" ]
ok $? "the program is there"
status 0 "program --help" "$WORK/out/lenet5" --help
for option in --steps --epochs --data --transport --seed --eval-every --metrics --save --load --quiet --help --version; do
    like "$out" "$option" "program --help names $option"
done
status 0 "program --version" "$WORK/out/lenet5" --version
status 2 "program: unknown option" "$WORK/out/lenet5" --stpes 3
like "$err" "did you mean '?--steps" "program: hint"
status 2 "program: bad number" "$WORK/out/lenet5" --steps many
status 2 "program: unknown transport" "$WORK/out/lenet5" --transport pigeon
make -s -C "$ROOT" uninstall B="$B" DESTDIR="$WORK/root" PREFIX=/usr >/dev/null 2>&1
is "$(find "$WORK/root" -type f | wc -l)" 0 "make uninstall leaves nothing"
done_testing
