#!/bin/bash
# draw.t: pictures. DOT, space-time diagrams and gnuplot scripts are held against tests/draw/*; SVG must be well-formed XML;
# a missing graphviz or gnuplot is said by its package's name. BLESS=1 rewrites the expected files.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/tap.sh"
cd "$ROOT/tests/draw" || exit 1
lenet=$ROOT/examples/lenet5.pnet
branches=$ROOT/tests/nets/branches.pnet

# golden FILE COMMAND...: its output is that of FILE, twice
golden() {
    local file=$1
    shift
    "$@" >"$WORK/out" 2>"$WORK/err"
    local status=$?
    "$@" >"$WORK/again" 2>/dev/null
    if [ -n "${BLESS:-}" ] && [ $status = 0 ]; then
        cp "$WORK/out" "$file"
    fi
    [ $status = 0 ] && cmp -s "$WORK/out" "$file" && cmp -s "$WORK/out" "$WORK/again"
    local result=$?
    ok $result "$file"
    [ $result = 0 ] || note "$(head -20 "$WORK/err"; diff "$file" "$WORK/out" | head -20)"
}

# fails STATUS PATTERN NAME COMMAND...
fails() {
    local wanted=$1 pattern=$2 name=$3
    shift 3
    "$@" >"$WORK/out" 2>"$WORK/err"
    is "$?" "$wanted" "$name: exit $wanted"
    like "$(cat "$WORK/err")" "$pattern" "$name: said"
}

# xml FILE NAME: a well-formed SVG
xml() {
    python3 -c 'import sys, xml.dom.minidom as m; assert m.parse(sys.argv[1]).documentElement.tagName == "svg"' "$1"
    ok $? "$2 is a well-formed SVG"
}

# ---- goldens: the sizes of target ref, which no layout of a library changes ----
golden lenet5.dot "$PNETC" draw "$lenet" --target=ref
golden lenet5.schedule.svg "$PNETC" draw "$lenet" --what=schedule
golden branches.dot "$PNETC" draw "$branches" --target=ref
golden branches.schedule.svg "$PNETC" draw "$branches" --what=schedule
golden split.schedule.svg "$PNETC" draw "$lenet" --what=schedule --minibatches=1 --set 'pipeline.schedule=zb_h1(microbatches = 4)' \
    --set 'pipeline.registers=ppv(1, 2)'
golden halves.schedule.svg "$PNETC" draw "$lenet" --what=schedule --minibatches=7 --set pipeline.mapping=split \
    --set 'pipeline.registers=ppv(1, 2)'
golden macs.schedule.svg "$PNETC" draw "$branches" --what=schedule --time=macs --minibatches=5
golden hybrid.schedule.svg "$PNETC" draw "$lenet" --what=schedule --set 'pipeline.registers=ppv(1, 2, 3)' \
    --set 'pipeline.schedule=hybrid(pipedream, steps = 2000, then = sequential)'
for file in *.svg; do
    xml "$file" "$file"
done

# ---- what the space-time diagram says is what the compiler says ----
for schedule in stale stale_1f1b pipedream sequential; do
    "$PNETC" check "$branches" --json --set pipeline.schedule=$schedule >"$WORK/check.json" 2>/dev/null
    "$PNETC" draw "$branches" --what=schedule --set pipeline.schedule=$schedule >"$WORK/schedule.svg" 2>/dev/null
    python3 - "$WORK/check.json" "$WORK/schedule.svg" <<'END'
import json, re, sys
said = json.load(open(sys.argv[1]))["stages"]
steps = re.findall(r"<title>stage (\d+): (forward|backward) of minibatch (\d+) reads the weights after (\d+) updates"
                   r"(?:; (\d+) updates since its forward)?; time (\S+) to (\S+)</title>", open(sys.argv[2]).read())
when = {(int(s), kind, int(m)): (float(begin), float(end)) for s, kind, m, _, _, begin, end in steps}
ages = {}
for s, kind, m, _, age, _, _ in steps:
    if kind == "backward":
        ages.setdefault(int(s), []).append(int(age))
minibatches = max(m for _, _, m in when) + 1
assert len(when) == len(steps) == 2 * len(said) * minibatches, "every step once"
assert [max(ages[s]) for s in range(len(said))] == [stage["staleness"] for stage in said], ages
for (s, kind, m), (begin, end) in when.items():
    if kind == "forward" and s > 0:
        assert when[s - 1, "forward", m][1] <= begin
    if kind == "backward" and s + 1 < len(said):
        assert when[s + 1, "backward", m][1] <= begin
    assert when[s, "forward", m][1] <= when[s, "backward", m][1]
for s in range(len(said)):  # one step at a time
    own = sorted(time for (stage, _, _), time in when.items() if stage == s)
    assert all(a[1] <= b[0] for a, b in zip(own, own[1:]))
END
    ok $? "$schedule: every step once, in order, and as stale as \`pnetc check\` says"
done

# ---- graphviz ----
if command -v dot >/dev/null; then
    for net in "$lenet" "$branches"; do
        "$PNETC" draw "$net" -o "$WORK/net.svg" 2>"$WORK/err"
        is "$?" 0 "draw -o OUT.svg of $(basename "$net")"
        xml "$WORK/net.svg" "$(basename "$net")"
    done
    dot -Tsvg -o /dev/null lenet5.dot 2>"$WORK/err" && [ ! -s "$WORK/err" ]
    ok $? "graphviz reads the DOT without a warning"
else
    echo "SKIPPED: graphviz is not there: SVG of networks is not tested" >&2
    ok 0 "SVG of networks # SKIP no graphviz"
fi
mkdir "$WORK/empty"
fails 1 'apt install graphviz' "no graphviz" env PATH="$WORK/empty" "$PNETC" draw "$lenet" --format=svg
PATH=$WORK/empty "$PNETC" draw "$lenet" --target=ref | cmp -s - lenet5.dot
ok $? "DOT needs no graphviz"
mkdir "$WORK/broken"
printf '#!/bin/sh\necho no such font\nexit 3\n' >"$WORK/broken/dot"
chmod +x "$WORK/broken/dot"
fails 1 'no such font' "a graphviz that fails" env PATH="$WORK/broken:$PATH" "$PNETC" draw "$lenet" --format=svg

# ---- plot: the script by a gnuplot that copies it ----
mkdir "$WORK/fake"
cat >"$WORK/fake/gnuplot" <<'END'
#!/bin/sh
sed 1d "$1" >"$(sed -n "1s/^set output '\(.*\)'$/\1/p" "$1")"
END
chmod +x "$WORK/fake/gnuplot"
golden plot.gnuplot env PATH="$WORK/fake:$PATH" "$PNETC" plot run.jsonl "it's=diverged.jsonl"
golden smooth.gnuplot env PATH="$WORK/fake:$PATH" "$PNETC" plot run.jsonl --x=seconds --smooth=2
{ cat run.jsonl && printf '{"step":40,"epo'; } >"$WORK/killed.jsonl"
fails 0 'killed.jsonl:6:1: warning: the last line is cut off' "a run that was killed" \
    env PATH="$WORK/fake:$PATH" "$PNETC" plot "$WORK/killed.jsonl"
{ head -2 run.jsonl && echo garbage && cat run.jsonl; } >"$WORK/bad.jsonl"
fails 1 'bad.jsonl:3:1: error: this is not JSON' "garbage" "$PNETC" plot "$WORK/bad.jsonl"
echo '{"step":"three","loss":1}' >"$WORK/bad.jsonl"
fails 1 'bad.jsonl:1:1: error: this is no line of metrics' "a step that is no number" "$PNETC" plot "$WORK/bad.jsonl"
echo '{"step":3,"loss":1}' >"$WORK/bad.jsonl"
fails 1 'bad.jsonl:1:1: error: this line has no .seconds.' "no seconds" "$PNETC" plot --x=seconds "$WORK/bad.jsonl"
fails 1 'there are no metrics in it' "an empty file" "$PNETC" plot /dev/null
yes "$(head -1 run.jsonl)" | head -c 17000000 >"$WORK/bad.jsonl"
fails 1 'more than 16 MiB' "too large a file" "$PNETC" plot "$WORK/bad.jsonl"
fails 1 'nothere.jsonl' "a file that is not there" "$PNETC" plot run.jsonl half=nothere.jsonl
fails 1 'apt install gnuplot-nox' "no gnuplot" env PATH="$WORK/empty" "$PNETC" plot run.jsonl
if command -v gnuplot >/dev/null; then
    for options in "" --x=epoch --x=seconds --smooth=2; do
        # shellcheck disable=SC2086 # none or one
        "$PNETC" plot run.jsonl "it's=diverged.jsonl" $options -o "$WORK/plot.svg" 2>"$WORK/err"
        is "$?" 0 "plot $options"
        xml "$WORK/plot.svg" "plot $options"
        like "$(cat "$WORK/plot.svg")" "it's" "plot $options: the legend"
    done
    "$PNETC" plot diverged.jsonl -o "$WORK/plot.svg" 2>"$WORK/err"
    is "$?" 0 "plot of a run without a test"
else
    echo "SKIPPED: gnuplot is not there: curves are not drawn" >&2
    ok 0 "curves # SKIP no gnuplot"
fi

# ---- wrong arguments ----
fails 2 'unknown option' "an unknown option" "$PNETC" draw "$lenet" --colour
fails 2 'network\|schedule' "an unknown picture" "$PNETC" draw "$lenet" --what=nets
fails 2 'dot\|svg' "an unknown format" "$PNETC" draw "$lenet" --format=png
fails 2 'SVG only' "a schedule as DOT" "$PNETC" draw "$lenet" --what=schedule --format=dot
fails 2 'for --what=schedule' "time of a network" "$PNETC" draw "$lenet" --time=macs
fails 2 'from 1 to' "no minibatches" "$PNETC" draw "$lenet" --what=schedule --minibatches=0
fails 2 'from 1 to' "minibatches that are no number" "$PNETC" draw "$lenet" --what=schedule --minibatches=4x
fails 2 'step\|epoch\|seconds' "an unknown axis" "$PNETC" plot run.jsonl --x=years
fails 2 'missing' "draw without a file" "$PNETC" draw
fails 2 'missing' "plot without a file" "$PNETC" plot
fails 1 'P0[0-9]*' "a wrong network" "$PNETC" draw run.jsonl
fails 1 'cannot write' "a folder that is not there" "$PNETC" draw "$lenet" -o "$WORK/not/there.dot"
"$PNETC" draw "$lenet" >/dev/full 2>"$WORK/err"
is "$?" 1 "a full disk: exit 1"
done_testing
