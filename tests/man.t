#!/bin/bash
# man.t: the manual pages name every command, option, op, argument, schedule and data source that the programs print, and
# every key of their JSON.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
plain() { mandoc -T utf8 -O width=200 "$1" 2>/dev/null | sed $'s/.\b//g; s/‐/-/g'; }
command -v mandoc >/dev/null || skip_all "mandoc is not installed"
plain "$ROOT/compiler/man/pnetc.1" >pnetc.1
plain "$ROOT/grammar/pnet.5" >pnet.5

# named PAGE KIND WORD...: each stands in the page as a word of its own
named() {
    local page=$1 kind=$2 word missing=
    shift 2
    [ $# -gt 0 ]
    ok $? "$page: there are $kind"
    for word in "$@"; do
        grep -Eq -- "(^|[^A-Za-z0-9_-])$word([^A-Za-z0-9_-]|\$)" "$page" || missing="$missing $word"
    done
    is "$missing" "" "$page names all $kind"
}
keys() { python3 -c '
import json, sys
def walk(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            print(key)
            walk(inner)
    elif isinstance(value, list):
        for inner in value:
            walk(inner)
for line in sys.stdin.read().split("\0"):
    walk(json.loads(line))' | sort -u; }

mapfile -t commands < <("$PNETC" --help | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p')
named pnetc.1 commands "${commands[@]}"
mapfile -t options < <(for command in "${commands[@]}"; do
    "$PNETC" "$command" --help | sed -n 's/^ *\(-[-a-zA-Z, ]*\)[ =].*/\1/p' | tr -s ', ' '\n' | grep '^-'
done | sort -u)
named pnetc.1 options "${options[@]}"
mapfile -t words < <("$PNETC" list targets | sed -n 's/^ *\([a-z0-9_]*\) .*/\1/p' | grep -x -e cpu -e ref -e cuda)
named pnetc.1 targets "${words[@]}"

mapfile -t words < <("$PNETC" list ops | sed -n 's/^\([a-z_]*\)(.*/\1/p')
named pnet.5 ops "${words[@]}"
mapfile -t words < <("$PNETC" list ops | sed -n 's/^        \([a-z_]*\) .*/\1/p' | sort -u)
named pnet.5 "attributes of ops" "${words[@]}"
mapfile -t words < <("$PNETC" list data | sed -n 's/^  \([a-z][a-z0-9]*\) .*/\1/p')
named pnet.5 "sources, optimisers and policies" "${words[@]}"
mapfile -t words < <("$PNETC" list data | sed -n 's/^      \([a-z_]*\) .*/\1/p' | sort -u)
named pnet.5 "arguments of them" "${words[@]}"
mapfile -t words < <("$PNETC" list schedules | sed -n 's/^  \([a-z0-9][a-z0-9_]*\) .*/\1/p' | sort -u)
named pnet.5 "schedules, orders and rules" "${words[@]}"

lenet=$ROOT/examples/lenet5.pnet
mapfile -t words < <("$PNETC" check --json "$lenet" | keys)
named pnetc.1 "keys of check --json" "${words[@]}"
mapfile -t words < <("$PNETC" plan --json "$lenet" | keys)
named pnetc.1 "keys of plan --json" "${words[@]}"
if "$PNETC" build "$lenet" -o program --target=ref --quiet --set 'train.data=digits(train = 200, test = 100)' >log 2>&1 &&
    program/lenet5 --steps 2 --quiet --report report.json --metrics metrics.jsonl >>log 2>&1; then
    mapfile -t words < <(program/lenet5 --help | grep -Eo -- '^  --[a-z-]*' | tr -d ' ')
    named pnetc.1 "options of programs" "${words[@]}"
    mapfile -t words < <(keys <report.json)
    named pnetc.1 "keys of --report" "${words[@]}"
    mapfile -t words < <(head -c -1 metrics.jsonl | tr '\n' '\0' | keys)
    named pnetc.1 "keys of --metrics" "${words[@]}"
else
    note "$(cat log)"
    ok 1 "a program builds and runs"
fi
for page in "$ROOT/compiler/man/pnetc.1" "$ROOT/grammar/pnet.5"; do
    out=$(mandoc -T lint -W warning "$page" 2>&1)
    is "$out" "" "$(basename "$page"): mandoc finds nothing wrong"
done
done_testing
