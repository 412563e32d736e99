#!/bin/bash
# dump.t: the inner forms of the compiler as stable text. For tests/dump/NAME.pnet each sibling NAME.ast, .graph, .pipe,
# .sched or .plan holds what `pnetc check --dump=...` must print. A first line "# options: OPTIONS" adds options.
# BLESS=1 rewrites the siblings that exist; create an empty one to begin.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/tap.sh"
cd "$ROOT/tests/dump" || exit 1
for file in *.pnet; do
    read -ra options <<<"$(sed -n '1s/^# options: *//p' "$file")"
    found=0
    for form in ast graph pipe sched plan; do
        golden=${file%.pnet}.$form
        [ -e "$golden" ] || continue
        found=1
        "$PNETC" check --dump="$form" "${options[@]}" "$file" >"$WORK/out" 2>"$WORK/err"
        status=$?
        if [ -n "${BLESS:-}" ] && [ $status = 0 ]; then
            cp "$WORK/out" "$golden"
        fi
        cmp -s "$WORK/out" "$golden" && [ $status = 0 ] && [ ! -s "$WORK/err" ]
        result=$?
        ok $result "$golden"
        [ $result = 0 ] || note "$(head -20 "$WORK/err"; diff "$golden" "$WORK/out" | head -20)"
    done
    [ $found = 1 ] || ok 1 "$file has no expected dump beside it"
done
done_testing
