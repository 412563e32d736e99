#!/bin/bash
# generated.t: the generated code: golden files (BLESS=1 accepts), the same bytes from anywhere, no warning from gcc or
# clang for any network and schedule, a folder that builds on its own, and the compiler's speed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
lenet=$ROOT/examples/lenet5.pnet
emit() { "$PNETC" build "$1" -o "$2" --emit-only --quiet "${@:3}" 2>"$WORK/err.log" || { note "$(cat "$WORK/err.log")"; return 1; }; }

# ---- golden ----
files() { find "$1" -maxdepth 1 -type f ! -name lenet5 -printf '%f ' | tr ' ' '\n' | sort; } # lenet5: somebody ran make
for target in cpu cuda; do
    golden=$ROOT/generated/lenet5.$target
    emit "$lenet" "$WORK/golden.$target" --target=$target
    if [ "${BLESS:-}" = 1 ]; then
        mkdir -p "$golden"
        find "$golden" -maxdepth 1 -type f -delete
        cp "$WORK/golden.$target"/* "$golden"
    fi
    for file in "$WORK/golden.$target"/*; do
        name=$(basename "$file")
        diff -u "$golden/$name" "$file" >"$WORK/diff.log" 2>&1
        same=$?
        ok $same "golden: $target: $name"
        [ $same = 0 ] || note "$(head -30 "$WORK/diff.log")" "make bless accepts"
    done
    is "$(files "$golden")" "$(files "$WORK/golden.$target")" "golden: $target: no other file"
    ok "$(grep -rqF -e "$WORK" -e "$ROOT" -e "$(uname -n)" "$WORK/golden.$target"; echo $((1 - $?)))" \
        "$target: no path and no host in it"
done

# ---- same input, same bytes ----
mkdir -p "$WORK/some where/deep"
cp "$lenet" "$WORK/some where/deep"
(cd "$WORK/some where/deep" && TZ=Asia/Tokyo LC_ALL=C HOSTNAME=other emit lenet5.pnet "out put" --target=cpu)
ok "$(diff -r "$WORK/golden.cpu" "$WORK/some where/deep/out put" >/dev/null; echo $?)" "from another folder: the same bytes"

# ---- no warnings: every network, target and kind of schedule, both compilers ----
variants=(
    "$lenet --target=ref --set pipeline.schedule=pipedream"
    "$lenet --target=cpu --set pipeline.schedule=hybrid(stale,steps=20,then=sequential)"
    "$lenet --target=cpu --set pipeline.schedule=sequential --set pipeline.registers=ppv()"
    "$lenet --target=cpu --set pipeline.registers=ppv(1,2,3,4)"
    "$lenet --target=cpu --set pipeline.registers=ppv(1,2) --set pipeline.mapping=split --set pipeline.cure=auto"
    "$ROOT/tests/nets/branches.pnet --target=ref --set pipeline.mapping=split --set pipeline.schedule=pipedream"
    "$ROOT/tests/generated/names.pnet --target=ref"
    "$ROOT/tests/generated/names.pnet --target=cpu"
    "$ROOT/tests/generated/names.pnet --target=cuda"
    "$lenet --target=cuda --set pipeline.schedule=pipedream --set pipeline.registers=ppv(1,2,3,4)"
)
for net in "$ROOT"/tests/nets/*.pnet "$ROOT"/examples/*.pnet; do
    variants+=("$net --target=cpu" "$net --target=ref" "$net --target=cuda")
done
number=0
for variant in "${variants[@]}"; do
    number=$((number + 1))
    read -ra words <<<"$variant"
    what=$(basename "${words[0]}")" ${words[*]:1}"
    if ! emit "${words[0]}" "$WORK/v$number" "${words[@]:1}"; then
        ok 1 "$what: emits"
        continue
    fi
    for cc in gcc clang; do
        command -v $cc >/dev/null || { ok 0 "$what: $cc # SKIP $cc is not installed"; continue; }
        $cc -std=c11 -fsyntax-only -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpedantic -Werror \
            -ffp-contract=off -I"$ROOT/runtime" "$WORK/v$number"/*.c >"$WORK/cc.log" 2>&1
        clean=$?
        ok $clean "$what: no warning from $cc"
        [ $clean = 0 ] || note "$(head -20 "$WORK/cc.log")"
    done
done

# ---- on its own, without pnetc build; in a folder with a blank ----
cp -r "$ROOT/generated/lenet5.cpu" "$WORK/some where/alone"
if [ -e "$B/lib/libpn_cpu.a" ]; then
    make -s -C "$WORK/some where/alone" PNETC="$PNETC" >"$WORK/make.log" 2>&1
    built=$?
    ok $built "the golden folder builds with make"
    [ $built = 0 ] || note "$(tail -20 "$WORK/make.log")"
    "$WORK/some where/alone/lenet5" --steps 3 --quiet >"$WORK/run.log" 2>&1
    ok $? "and trains"
    is "$(make -s -q -C "$WORK/some where/alone" PNETC="$PNETC"; echo $?)" 0 "make again: nothing to do"
else
    ok 0 "the golden folder builds # SKIP no oneDNN here"
fi
make -s -C "$WORK/golden.cpu" PNETC=/nonexistent/pnetc >"$WORK/make.log" 2>&1
is "$?" 2 "make without pnetc fails"
like "$(cat "$WORK/make.log")" 'set PNETC to the pnetc that wrote this' "and says what to set"

# ---- speed: 1000 layers in a chain, 400 in residual units ----
TIMEFORMAT='%R %U %S'
for net in chain residual; do
    seconds=$({ time emit "$ROOT/tests/generated/$net.pnet" "$WORK/$net"; } 2>&1 | tail -1)
    note "$net: $(wc -l <"$WORK/$net/stage0.c") lines of stage 0 in $seconds s (real, user, system)"
    ok "$(awk -v t="${seconds#* }" 'BEGIN { split(t, part, " "); exit !(part[1] + part[2] < 0.5) }'; echo $?)" "$net: under 0.5 s"
done
done_testing
