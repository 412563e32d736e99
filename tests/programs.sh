#!/bin/bash
# programs.sh: programs of target cpu or ref that a test builds and trains in $WORK. Source it behind tap.sh.

# build NAME FILE ARGUMENTS...: a program in $WORK/NAME; its path in `program`
build() {
    local name=$1 file=$2
    shift 2
    rm -rf "${WORK:?}/$name"
    "$PNETC" build "$file" -o "$WORK/$name" --quiet "$@" >"$WORK/$name.log" 2>&1 || {
        note "$(tail -20 "$WORK/$name.log")"
        return 1
    }
    program=$(find "$WORK/$name" -maxdepth 1 -type f -perm -u+x | head -1)
}
train() { # OUT ARGUMENTS...: weights in $WORK/OUT
    local out=$1
    shift
    rm -f "$WORK/$out"
    "$program" --quiet --save "$WORK/$out" "$@" >"$WORK/$out.log" 2>&1 || note "$out: $(tail -5 "$WORK/$out.log")"
}
same() { cmp -s "$WORK/$1" "$WORK/$2"; }
