# tap.sh: the few words that script tests speak. Source it from a test; output is TAP.
#   plan N              how many results follow
#   ok CONDITION-STATUS NAME          ok $? "name"
#   is GOT WANTED NAME                equal strings
#   like TEXT PATTERN NAME            extended regular expression
#   note TEXT                         a remark
#   skip_all REASON                   the whole test is skipped, loudly
# Variables: PNETC (the compiler), ROOT (the repository), WORK (a private folder, removed at exit), cc (the C compiler, an array of words).
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
B=${B:-build}
case $B in /*) ;; *) B=$ROOT/$B ;; esac
# shellcheck disable=SC2034 # read by the tests
PNETC=$B/pnetc
# shellcheck disable=SC2034
read -ra cc <<<"${CC:-gcc}"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/pnetc-test.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
tap_number=0
tap_failed=0

plan() { echo "1..$1"; }
note() { printf '%s\n' "$*" | sed 's/^/# /'; }
skip_all() {
    echo "1..0 # SKIP $*"
    echo "SKIPPED: $0: $*" >&2
    exit 0
}
ok() {
    tap_number=$((tap_number + 1))
    if [ "$1" = 0 ]; then
        echo "ok $tap_number - $2"
    else
        echo "not ok $tap_number - $2"
        tap_failed=1
    fi
}
is() {
    if [ "$1" = "$2" ]; then
        ok 0 "$3"
    else
        ok 1 "$3"
        note "got:    $1"
        note "wanted: $2"
    fi
}
like() {
    if printf '%s\n' "$1" | grep -Eq -- "$2"; then
        ok 0 "$3"
    else
        ok 1 "$3"
        note "got:     $1"
        note "pattern: $2"
    fi
}
# done_testing: the plan, when it was not known before
done_testing() {
    echo "1..$tap_number"
    exit "$tap_failed"
}
