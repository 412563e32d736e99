#!/bin/bash
# files.t: what can go wrong around the compiler: the output folder, the disk, the C compiler, make, the program. Each: a
# clear message with a code, the right exit code, no partial file left.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
chmod 755 "$WORK"
cp "$ROOT/examples/lenet5.pnet" .
mkdir tmp
export TMPDIR=$WORK/tmp
unset CC MAKEFLAGS

# status WANTED NAME COMMAND...: errors in $err
status() {
    local wanted=$1 name=$2
    shift 2
    "$@" >out.log 2>err.log
    is "$?" "$wanted" "$name: exit $wanted"
    err=$(cat err.log)
}
# without FOLDER NAME: nothing is there
without() { ok "$([ -e "$1" ]; echo $((1 - $?)))" "$2: nothing is left"; }
state() { (cd "$1" && find . -type f -printf '%p %s %T@\n' | sort && cat ./*.*); }

# ---- the output folder ----
echo text >in_the_way
status 1 "a file where the folder should be" "$PNETC" build lenet5.pnet -o in_the_way --emit-only
like "$err" 'in_the_way is there and is no folder \[P0603\]' "a file in the way: says so"
is "$(cat in_the_way)" text "a file in the way: it is as it was"
status 1 "a file where a parent should be" "$PNETC" build lenet5.pnet -o in_the_way/a/b --emit-only
like "$err" 'P0603' "a file as parent: says so"
status 1 "a folder where a file should be" sh -c "mkdir -p taken/stage1.c && '$PNETC' build lenet5.pnet -o taken --emit-only"
like "$err" 'cannot write taken/stage1.c: Is a directory \[P0604\]' "a folder in the way: says so"
is "$(ls taken)" stage1.c "a folder in the way: nothing else was written"

mkdir locked
chmod 555 locked
cp "$PNETC" ./compiler
user=()
if [ "$(id -u)" = 0 ]; then
    user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    "${user[@]}" true 2>/dev/null || user=()
fi
if [ "$(id -u)" = 0 ] && [ ${#user[@]} = 0 ]; then
    ok 0 "a read-only folder # SKIP root, and setpriv does not work here"
else
    status 1 "a read-only folder" "${user[@]}" ./compiler build lenet5.pnet -o locked --emit-only
    like "$err" 'cannot write locked/lenet5.h: Permission denied \[P0604\]' "a read-only folder: says so"
    like "$err" '^hint: choose a folder' "a read-only folder: hint"
    is "$(ls -A locked)" "" "a read-only folder: nothing is left"
    status 1 "a read-only parent" "${user[@]}" ./compiler build lenet5.pnet -o locked/new --emit-only
    like "$err" 'cannot make the folder locked/new: Permission denied \[P0603\]' "a read-only parent: says so"
fi

# ---- the disk ----
if gcc -shared -fPIC -o enospc.so "$ROOT/tests/fault/enospc.c" -ldl 2>shim.log && [ -z "${SANITIZE:-}" ]; then
    "$PNETC" build lenet5.pnet -o old --emit-only --quiet
    find old -exec touch -d 2001-01-01 {} +
    state old >before
    for fault in write:1 write:4 fsync:2 close:5; do
        status 1 "full disk at $fault" env FAULT=$fault LD_PRELOAD="$WORK/enospc.so" \
            "$PNETC" build lenet5.pnet -o new/deep --emit-only
        like "$err" 'cannot write new/deep/.*: No space left on device \[P0604\]' "full disk at $fault: says so"
        without new "full disk at $fault"
        status 1 "full disk at $fault, over an older program" env FAULT=${fault%:*}:1 LD_PRELOAD="$WORK/enospc.so" \
            "$PNETC" build lenet5.pnet -o old --emit-only --set train.batch=50
        state old >after
        ok "$(cmp -s before after; echo $?)" "full disk at $fault: the older program is as it was"
    done
else
    ok 0 "full disk # SKIP the shim does not build or does not go with a sanitizer"
fi
"$PNETC" build lenet5.pnet -o old --emit-only --quiet
state old >after
ok "$(cmp -s before after; echo $?)" "the same program again: no file is touched"
"$PNETC" build lenet5.pnet -o old --emit-only --quiet --set train.seed=2
is "$(find old -type f -newermt 2010-01-01 -printf '%f\n')" lenet5.c "another seed: only lenet5.c is written"

# ---- the C compiler and make ----
status 1 "no C compiler" env CC=/nonexistent "$PNETC" build lenet5.pnet -o made
like "$err" "the C compiler '/nonexistent' is not there \[P0605\]" "no C compiler: says so"
like "$err" '^hint: install gcc' "no C compiler: hint"
ok "$([ ! -e made/lenet5 ]; echo $?)" "no C compiler: no program"
status 1 "no C compiler, run" env CC=/nonexistent "$PNETC" run lenet5.pnet
is "$(ls -A tmp)" "" "no C compiler, run: the temporary folder is removed"
mkdir bin
ln -s "$(command -v gcc)" bin/cc
status 1 "no make" env PATH="$WORK/bin" "$PNETC" build lenet5.pnet -o made
like "$err" "the program 'make' is not there \[P0605\]" "no make: says so"
printf '#!/bin/sh\necho it hurts >&2\nexit 3\n' >bin/hurt
chmod +x bin/hurt
status 1 "a C compiler that fails" env CC="$WORK/bin/hurt" "$PNETC" build lenet5.pnet -o made --quiet
like "$err" 'make -C made ended with exit code 2 \[P0605\]' "a failing C compiler: says so"
like "$err" 'it hurts' "a failing C compiler: what it said"
is "$(find made -name '*.o')$(ls made/lenet5 2>/dev/null)" "" "a failing C compiler: no object is left"
status 1 "doctor without a C compiler" env CC=/nonexistent "$PNETC" doctor
like "$(cat out.log)" 'MISSING +C compiler' "doctor: says what is missing"
status 0 "doctor" "$PNETC" doctor
status 1 "no temporary folder" env TMPDIR=/nonexistent "$PNETC" run lenet5.pnet
like "$err" 'cannot make a folder in /nonexistent: No such file or directory \[P0606\]' "no temporary folder: says so"

# ---- names of the folder ----
sed 's/network lenet5/network build/' lenet5.pnet >build.pnet
status 1 "a network called build" "$PNETC" build build.pnet -o named
like "$err" "a network cannot be called 'build'.*\[P0602\]" "a network called build: says so"
without named "a network called build"

# ---- the program ----
status 2 "an exit code of the program" "$PNETC" run lenet5.pnet --target=ref -- --no-such-option
status 0 "run --help" "$PNETC" run lenet5.pnet --target=ref -- --help
is "$(ls -A tmp)" "" "run: the temporary folder is removed"
"$PNETC" run lenet5.pnet --target=ref -- --steps 1000000 --quiet >/dev/null 2>&1 &
run=$!
for _ in $(seq 100); do # until it trains
    pgrep -P $run -f lenet5 >/dev/null && break
    sleep 0.1
done
kill -TERM $run
wait $run
code=$?
ok "$([ $code != 0 ]; echo $?)" "run: a signal ends the program (exit code $code)"
is "$(pgrep -f "$WORK/tmp/.*lenet5")" "" "run: no program is left behind"
is "$(ls -A tmp)" "" "run: the temporary folder is removed after a signal"
done_testing
