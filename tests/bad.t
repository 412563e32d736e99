#!/bin/bash
# bad.t: each wrong tests/bad/NAME.pnet against the diagnostics in its sibling NAME.err: `pnetc check NAME.pnet`, run there,
# must exit with 1, print nothing on standard output and exactly the sibling on standard error. A first line
# "# options: OPTIONS" gives further options. Too large for files, generated here: huge texts and deep nesting.
# BLESS=1 tests/bad.t writes the siblings anew.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT/tests/bad" || exit 2

check() { # FILE: sets status; standard output and error in $WORK
    local options=()
    read -r -a options < <(LC_ALL=C sed -n '1s/^# options: //p' "$1" | tr -d '\0')
    "$PNETC" check "$1" ${options[@]+"${options[@]}"} >"$WORK/out" 2>"$WORK/err"
    status=$?
}

for file in *.pnet; do
    check "$file"
    golden=${file%.pnet}.err
    if [ -n "${BLESS:-}" ] && [ "$status" = 1 ]; then
        cp "$WORK/err" "$golden"
    fi
    if [ "$status" != 1 ]; then
        is "exit status $status" "exit status 1" "$file"
    elif [ -s "$WORK/out" ]; then
        is "$(head -3 "$WORK/out")" "" "$file: nothing on standard output"
    elif ! cmp -s "$WORK/err" "$golden"; then
        ok 1 "$file"
        diff -a "$golden" "$WORK/err" | sed 's/^/# /'
    else
        ok 0 "$file"
    fi
done

# generated NAME PATTERN: $WORK/NAME must fail with 1 and one diagnostic that matches, within ten seconds
generated() {
    (cd "$WORK" && timeout 10 "$PNETC" check "$1" >out 2>err)
    is "$?" 1 "$1: exit status"
    like "$(head -1 "$WORK/err")" "$2" "$1: message"
    is "$(grep -c ' error: ' "$WORK/err")" 1 "$1: one error"
}
repeat() { # TEXT COUNT
    head -c "$((${#1} * $2))" < <(yes -- "$1" | tr -d '\n')
}
{ printf 'network a {\n    x = '; repeat '(' 10000; printf 1; repeat ')' 10000; printf '\n}\n'; } >"$WORK/parens.pnet"
generated parens.pnet '^parens.pnet:2:[0-9]+: error: nested more than 200 deep.* \[P0109\]$'
{ printf 'network a {\n'; repeat 'if a { ' 10000; repeat '} ' 10000; printf '\n}\n'; } >"$WORK/blocks.pnet"
generated blocks.pnet '^blocks.pnet:2:[0-9]+: error: nested more than 200 deep.* \[P0109\]$'
{ printf 'network a {\n    x = '; repeat '- ' 100000; printf '1\n}\n'; } >"$WORK/signs.pnet"
generated signs.pnet '^signs.pnet:2:[0-9]+: error: nested more than 200 deep.* \[P0109\]$'
{ printf 'network a {\n    if a { x = 1 }'; repeat ' else if b { y = 1 }' 10000; printf '\n}\n'; } >"$WORK/else.pnet"
generated else.pnet '^else.pnet:2:[0-9]+: error: nested more than 200 deep.* \[P0109\]$'
{ printf 'machine a {\n'; yes 'device a {' | head -n 10000; } >"$WORK/devices.pnet"
generated devices.pnet '^devices.pnet:200:[0-9]+: error: nested more than 200 deep.* \[P0109\]$'
{ printf 'network a {\n    x = 1'; repeat ' + 1' 100000; printf '\n}\n'; } >"$WORK/sum.pnet"
generated sum.pnet '^sum.pnet:2:9: error: an expression with more than 1999 steps in a row \[P0109\]$'
{ printf 'network a {\n    x = y'; repeat ' |> relu' 100000; printf '\n}\n'; } >"$WORK/chain.pnet"
generated chain.pnet '^chain.pnet:2:9: error: an expression with more than 1999 steps in a row \[P0109\]$'
yes '# a long file' | head -c 17000000 >"$WORK/huge.pnet"
generated huge.pnet '^huge.pnet:1:1: error: the file is larger than 16 MiB \[P0111\]$'
repeat x 1000000 >"$WORK/word.pnet"
generated word.pnet "^word.pnet:1:1: error: expected network, def, .* before 'x{40}\.\.\.' \[P0102\]$"
repeat '@ ' 200000 >"$WORK/many.pnet"
"$PNETC" check "$WORK/many.pnet" >"$WORK/out" 2>"$WORK/err"
is "$?" 1 "many.pnet: exit status"
is "$(tail -1 "$WORK/err")" "pnetc: 199980 more errors" "many.pnet: the rest is counted"

"$PNETC" check - <"$ROOT/tests/bad/syntax_loss.pnet" >"$WORK/out" 2>"$WORK/err"
is "$?" 1 "standard input: exit status"
like "$(head -1 "$WORK/err")" '^<stdin>:3:10: error: ' "standard input: its name"
(cd "$WORK" && "$PNETC" check none.pnet >out 2>err)
is "$?: $(cat "$WORK/err")" "1: pnetc: error: cannot read 'none.pnet': No such file or directory [P0112]" "a missing file"
mkdir "$WORK/folder.pnet"
(cd "$WORK" && "$PNETC" check folder.pnet >out 2>err)
is "$?: $(cat "$WORK/err")" "1: pnetc: error: cannot read 'folder.pnet': it is a folder [P0112]" "a folder"
(cd "$WORK" && : >empty.pnet && "$PNETC" check empty.pnet >out 2>err)
is "$?" 1 "an empty file"
for ((i = 0; i < 120; i++)); do echo "use \"u$((i + 1)).pnet\"" >"$WORK/u$i.pnet"; done
: >"$WORK/u120.pnet"
(cd "$WORK" && "$PNETC" check u0.pnet >out 2>err)
is "$?" 1 "a long row of uses: exit status"
like "$(head -1 "$WORK/err")" '^u99.pnet:1:5: error: cannot read .u100.pnet.: too many files' "a long row of uses: message"
done_testing
