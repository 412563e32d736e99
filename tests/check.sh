#!/bin/bash
# check.sh: what must hold of the sources themselves. Prints each check; exit 1 if any fails.   usage: check.sh BUILD-FOLDER
set -u
cd "$(dirname "$0")/.." || exit 2
B=${1:-build}
failed=0
result() { # STATUS NAME
    if [ "$1" = 0 ]; then
        echo "ok      $2"
    else
        echo "FAILED  $2"
        failed=1
    fi
}
tests/layers.sh
result $? "layers: includes point down"

# shellcheck disable=SC2046 # file names without blanks
clang-format --dry-run --Werror $(git ls-files 'compiler/*.[ch]' 'runtime/*.[ch]' 'tests/*.[ch]' 'tests/*.cpp')
result $? "format: clang-format"
"$B"/pnetc fmt --check examples/*.pnet
result $? "format: pnetc fmt"
# shellcheck disable=SC2046
shellcheck -x $(git ls-files 'tests/*.sh' 'tests/*.t' .ci/run bench tests/cudasim | while read -r f; do
    head -1 "$f" | grep -q '^#!/bin/.*sh' && echo "$f"
done)
result $? "scripts: shellcheck"

for cc in gcc clang; do
    make -s B="$B/check-$cc" CC=$cc all units
    result $? "warnings: none with $cc -Werror"
done
for entry in tests/fuzz/fuzz_*.c; do
    clang -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -fsyntax-only -iquote compiler -iquote runtime "$entry"
    result $? "warnings: none in $entry"
done

mandoc -T lint -W warning compiler/man/pnetc.1 grammar/pnet.5
result $? "manual pages: mandoc"
BLESS='' B=$B prove -Q -e '' tests/bad.t tests/draw.t tests/dump.t tests/format.t tests/generated.t
result $? "goldens"
exit $failed
