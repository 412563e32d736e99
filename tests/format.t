#!/bin/bash
# format.t: pnetc fmt. tests/format/NAME.pnet prints as NAME.golden; every canonical text, and that of every right .pnet file of
# the repository, formats to itself and has the same tree; --check and --write. BLESS=1 tests/format.t writes the goldens anew.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT" || exit 2

for file in tests/format/*.pnet; do
    golden=${file%.pnet}.golden
    "$PNETC" fmt "$file" >"$WORK/once" 2>"$WORK/err"
    status=$?
    [ -n "${BLESS:-}" ] && [ $status = 0 ] && cp "$WORK/once" "$golden"
    is "$status $(cat "$WORK/err")" "0 " "$file: no errors"
    diff "$golden" "$WORK/once" >"$WORK/diff"
    ok $? "$file: canonical form"
    sed 's/^/# /' "$WORK/diff"
done

tree() { sed 's/^use /#use /' "$1" >"$WORK/tree.pnet" && "$PNETC" check --dump=ast "$WORK/tree.pnet" 2>/dev/null; }
count=0
while read -r file; do
    "$PNETC" fmt "$file" >"$WORK/once.pnet" 2>/dev/null || continue
    count=$((count + 1))
    "$PNETC" fmt "$WORK/once.pnet" >"$WORK/twice.pnet" 2>"$WORK/err"
    status=$?
    diff "$WORK/once.pnet" "$WORK/twice.pnet" >"$WORK/diff" && [ $status = 0 ] && [ "$(tree "$file")" = "$(tree "$WORK/once.pnet")" ] &&
        [ "$(grep -c '#' "$file")" -le "$(grep -o '#' "$WORK/once.pnet" | wc -l)" ]
    ok $? "$file: formats to itself, same tree"
    sed 's/^/# /' "$WORK/diff"
done < <(find examples tests -name '*.pnet' | sort)
[ "$count" -gt 50 ]
ok $? "right files were found ($count)"

cp tests/format/untidy.pnet "$WORK/x.pnet"
"$PNETC" fmt --check "$WORK/x.pnet" >"$WORK/out" 2>"$WORK/err"
is "$?" 1 "--check: not canonical"
cmp -s tests/format/untidy.pnet "$WORK/x.pnet"
ok $? "--check changes nothing"
"$PNETC" fmt --write "$WORK/x.pnet"
is "$?" 0 "--write"
cmp -s tests/format/untidy.golden "$WORK/x.pnet"
ok $? "--write: the canonical form"
"$PNETC" fmt --check "$WORK/x.pnet" 2>&1
is "$?" 0 "--check: canonical"
"$PNETC" fmt - <tests/format/untidy.pnet | cmp -s - tests/format/untidy.golden
ok $? "standard input"
"$PNETC" fmt tests/bad/syntax_loss.pnet >"$WORK/out" 2>"$WORK/err"
is "$? $(cat "$WORK/out")" "1 " "a wrong text: nothing printed"
done_testing
