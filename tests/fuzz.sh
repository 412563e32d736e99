#!/bin/bash
# fuzz.sh: libFuzzer with ASan + UBSan on the parser and on the whole of `check`. SECONDS_EACH (default 60) each.
# A find is kept in build/fuzz/ and its path printed; put it into tests/bad/ or tests/fuzz/corpus/ with the fix.
set -eu
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
flags="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all"
make -s B=build/fuzz ARCH= CC=clang OPTIMISE=-O1 SANITIZE="$flags" build/fuzz/lib/libpnetc.a
for target in parse check; do
    program=build/fuzz/fuzz_$target
    # shellcheck disable=SC2086 # a list of flags
    clang -std=c11 -D_POSIX_C_SOURCE=200809L -g -O1 -Icompiler -Iruntime -Ibuild/fuzz/gen ${flags/-no-link/} \
        -o "$program" tests/fuzz/fuzz_$target.c build/fuzz/lib/libpnetc.a -ljansson -lm
    mkdir -p "build/fuzz/corpus_$target"
    echo "== fuzz_$target, $seconds s"
    "$program" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix=build/fuzz/ -dict=tests/fuzz/pnet.dict "build/fuzz/corpus_$target" tests/fuzz/corpus 2>"build/fuzz/$target.log" || {
        tail -40 "build/fuzz/$target.log"
        exit 1
    }
    grep -E 'stat::number_of_executed_units|DONE' "build/fuzz/$target.log"
done
echo "fuzz: clean"
