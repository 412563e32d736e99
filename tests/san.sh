#!/bin/bash
# san.sh: the compiler and its tests under ASan + UBSan, the threaded runtime under TSan. Exit 1 on any report.
# TSan does not know libgomp: programs of the ref target (no library) are the ones that run under it.
set -eu
cd "$(dirname "$0")/.."
address="-fsanitize=address,undefined -fno-sanitize-recover=all"
thread="-fsanitize=thread"
export CMOCKA_MESSAGE_OUTPUT=TAP

echo "== compiler, runtime and unit tests: ASan + UBSan"
make -s B=build/asan ARCH= CC=clang SANITIZE="$address" all units
units=$(find build/asan/tests -maxdepth 1 -type f -perm -u+x | sort)
# shellcheck disable=SC2086 # file names without blanks
B=build/asan prove -j2 -Q -e '' tests/bad.t tests/dump.t tests/format.t $units

echo "== a generated program: ASan + UBSan"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build() { # TREE FLAGS FILE ARGUMENTS...: a ref program in $work/program
    local tree=$1 flags=$2 file=$3
    shift 3
    rm -rf "$work/program"
    CC=clang CFLAGS="$flags -g" LDFLAGS="$flags" "$tree/pnetc" build "$file" -o "$work/program" --target=ref --quiet "$@"
    program=$(find "$work/program" -maxdepth 1 -type f -perm -u+x | head -1)
}
for net in branches autoencoder; do
    build build/asan "$address" tests/nets/$net.pnet
    "$program" --steps 6 --eval-every 3 --quiet --save "$work/weights.safetensors" >/dev/null
    "$program" --steps 2 --transport serial --quiet --load "$work/weights.safetensors" >/dev/null
    "$program" --steps 3 --prefetch 2 --quiet --checkpoint "$work/c.safetensors" --checkpoint-every 1 >/dev/null
    "$program" --steps 6 --quiet --resume "$work/c.safetensors" >/dev/null
done

echo "== threads: TSan"
make -s B=build/tsan ARCH= CC=clang SANITIZE="$thread" all build/tsan/tests/rt_transport build/tsan/tests/rt_loader
build/tsan/tests/rt_transport >/dev/null
build/tsan/tests/rt_loader >/dev/null
threads() { # ARGUMENTS...
    build build/tsan "$thread" tests/nets/branches.pnet "$@"
    "$program" --steps 8 --eval-every 3 --prefetch 2 --quiet --checkpoint "$work/c.safetensors" --checkpoint-every 1 \
        --algorithms "$work/algorithms.txt" >/dev/null
    "$program" --steps 12 --quiet --resume "$work/c.safetensors" >/dev/null
}
for schedule in stale stale_1f1b pipedream 'hybrid(stale, steps = 4, then = sequential)'; do
    threads --set "pipeline.schedule=$schedule"
    threads --set "pipeline.schedule=$schedule" --set pipeline.mapping=split
done
for cure in auto '(accumulate, lookahead)' discrepancy; do
    threads --set 'pipeline.schedule=hybrid(stale, steps = 5, then = stale_1f1b)' --set pipeline.mapping=split --set "pipeline.cure=$cure"
done
echo "san: clean"
