#!/bin/bash
# report.t: the page of `pnetc report`: well-formed, the same twice, loads nothing, has every buffer, register, layer, placement
# and schedule that the other commands print; a trace whose times are known is shown with just these; wrong traces are
# refused where they are wrong. In a headless chromium, at 1280 and 400 pixels: no error, no overflow, no text over another,
# every chart tells its figures to the keyboard and the pointer.   SHOTS=DIR keeps pictures of the pages.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
lenet=$ROOT/examples/lenet5.pnet

# page NAME ARGUMENTS...: NAME.html, made twice
page() {
    local name=$1
    shift
    "$PNETC" report "$@" -o "$name.html" 2>err
    is "$?" 0 "$name: made"
    "$PNETC" report "$@" 2>/dev/null | cmp -s - "$name.html"
    ok $? "$name: the same bytes again, on standard output"
    python3 - "$name.html" <<'PY'
import re, sys, xml.dom.minidom as dom
text = open(sys.argv[1], encoding="utf-8").read()
page = dom.parseString(text.encode())
assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", re.sub(r"//(<!\[CDATA\[|\]\])", "", text)), "it refers elsewhere"
ids = [e.getAttribute("id") for e in page.getElementsByTagName("*") if e.hasAttribute("id")]
assert len(ids) == len(set(ids)), "an id is there twice"
links = [a.getAttribute("href")[1:] for a in page.getElementsByTagName("a")]
assert links and set(links) <= set(ids), "a link leads nowhere"
sections = [s.getAttribute("id") for s in page.getElementsByTagName("section")]
assert sections == links, f"sections {sections}, contents {links}"
for svg in page.getElementsByTagName("svg"):
    assert svg.hasAttribute("aria-hidden") or svg.getElementsByTagName("title"), "a chart without a mark"
used = set(re.findall(r"url\(#(\w+)\)", text))
assert used and used <= set(ids), "a pattern is missing"
PY
    ok $? "$name: well-formed, loads nothing, its links lead somewhere"
}
for file in "$ROOT"/examples/*.pnet; do
    name=$(basename "$file" .pnet)
    page "$name" "$file"
done
page branches "$ROOT/tests/nets/branches.pnet"
page resnet4 "$ROOT/examples/resnet.pnet" --set 'pipeline.registers=ppv(5,12,17)'
page resnet110 "$ROOT/examples/resnet.pnet" -D depth=110
page one "$lenet" --set pipeline.registers=none
page sequential "$lenet" --set pipeline.schedule=sequential
page hybrid "$lenet" --set 'pipeline.schedule=hybrid(stale, steps = 6, then = pipedream)'
sliced=(--set 'pipeline.schedule=gpipe(microbatches = 4)' --set 'pipeline.registers=ppv(1, 2)')
page sliced "$lenet" "${sliced[@]}"
page many "$ROOT/examples/resnet.pnet" -D depth=110 --set 'pipeline.registers=auto(stages = 12)'

# ---- what is on it ----
# holds NAME FILE OPTIONS...: all that --json tells of these
holds() {
    local name=$1
    shift
    "$PNETC" check "$@" --json >check.json 2>/dev/null
    "$PNETC" plan "$@" --json >plan.json 2>/dev/null
    "$PNETC" place "$@" --json >place.json 2>/dev/null
    "$PNETC" plan "$@" --all-schedules --json >schedules.json 2>/dev/null
    python3 - "$name.html" <<'PY'
import json, re, sys
from xml.dom import minidom
page = minidom.parse(sys.argv[1])
check, plan, place, schedules = (json.load(open(f + ".json")) for f in ("check", "plan", "place", "schedules"))
text = lambda e: "".join(t.data if t.nodeType == t.TEXT_NODE else text(t) for t in e.childNodes).replace("\u00a0", " ")
titles = [text(t) for t in page.getElementsByTagName("title")]
whole = text(page.documentElement)
rows = {s.getAttribute("id"): [[text(c) for c in r.getElementsByTagName("td")] for r in s.getElementsByTagName("tr")][:]
        for s in page.getElementsByTagName("section")}
kinds = {"saved": "saved value", "again": "value made again", "aux": "saved aux", "value": "value", "gradient": "gradient",
         "partial": "partial gradient", "test": "value of a test"}
for stage in plan["stages"]:
    for b in stage["buffers"]:
        start = f"stage {stage['stage']}: {kinds[b['kind']]} {b['value']}\n"
        assert any(t.startswith(start) for t in titles) or b["bytes"] * b["slots"] < plan["static_bytes"] / 1000, start
        if "offset" in b:
            assert any(t.startswith(start) and t.endswith(f"steps {b['born']} to {b['dies']}") for t in titles), b
bars = [svg for s in page.getElementsByTagName("section") if s.getAttribute("id") == "memory"
        for svg in s.getElementsByTagName("svg") if svg.getAttribute("class") == "bars"]
most = max(s["static_bytes"] for s in plan["stages"])
for svg, stage in zip(bars, plan["stages"], strict=True):
    share = sum(float(r.getAttribute("width")[:-1]) for r in svg.getElementsByTagName("rect"))
    assert abs(share - 100 * stage["static_bytes"] / most) < 0.1 + len(stage["buffers"]) / 50, (stage["stage"], share)
registers = [r for r in rows.get("registers", []) if r]
assert [(r[1], int(r[4]), int(r[5]), int(r[6])) for r in registers] == [
    (r["value"], r["forward_slots"], r["gradient_slots"], r["test_slots"]) for r in check["registers"]], registers
layers = [r for r in rows["layers"] if r]
assert sum(int(r[4] or 0) for r in layers) == check["parameters"]
assert [int(r[0]) for r in layers if r[0]] == list(range(1, 1 + sum(s["layers"] for s in check["stages"])))
front = [r for r in rows["placements"] if r]
assert [r[2] for r in front] == ["%.2f" % p["speedup"] for p in place["placements"]], front
presets = [r for r in rows["schedules"] if r]
assert [r[0] for r in presets] == [s["schedule"] for s in schedules["schedules"]]
for r, s in zip(presets, schedules["schedules"]):
    if s["possible"]:
        assert r[2] == "%.2f" % s["speedup"] and r[5] == str(s["staleness"]), r
if check["prediction"]["speedup"] >= 1.02:
    assert "train %.2f times as fast as one" % check["prediction"]["speedup"] in whole
else:
    assert len(check["stages"]) == 1 or "One worker is as fast or faster" in whole
better = check["prediction"]["better_cut"]
assert not better or "registers after " + ", ".join(better["registers_after"][:4]) in whole
for stage in check["stages"]:
    share = " %.0f %%" % (100 * stage["time_share"])
    assert any(t.startswith(f"stage {stage['stage']}: backward ") for t in titles)
    assert re.search(rf"stage {stage['stage']}\D[^%]*{share}", whole), share
PY
    ok $? "$name: buffers, registers, layers, shares, placements, schedules and verdict are those of the other commands"
}
holds lenet5 "$lenet"
holds resnet4 "$ROOT/examples/resnet.pnet" --set 'pipeline.registers=ppv(5,12,17)'
holds sequential "$lenet" --set pipeline.schedule=sequential
holds sliced "$lenet" "${sliced[@]}"
like "$(cat sliced.html)" 'backward of microbatch 7' "steps of microbatches"
holds one "$lenet" --set pipeline.registers=none
page cured "$lenet" --set pipeline.schedule=pipedream --set 'pipeline.registers=ppv(1,2,3)' --set pipeline.cure=auto --set train.lr=0.1
holds cured "$lenet" --set pipeline.schedule=pipedream --set 'pipeline.registers=ppv(1,2,3)' --set pipeline.cure=auto --set train.lr=0.1
like "$(cat cured.html)" 'momentum 0' "corrections are told"
steps=$("$PNETC" draw "$lenet" --what=schedule 2>/dev/null | grep -c '<title>')
is "$(grep -c 'reads the weights after' lenet5.html)" "$steps" "the diagram has the boxes of pnetc draw"

# ---- names of files are text ----
bad=$'a"<&\x01\xff.pnet'
printf 'machine m {\n    device d {\n        compute   = 100 GFLOP/s\n        bandwidth = 40 GB/s\n    }\n}\n' >"$bad"
page machine "$lenet" --machine "./$bad"
like "$(cat machine.html)" 'a&quot;&lt;&amp;' "a strange file name is escaped"

# ---- a trace with known times: forward 1 ms, backward 2 ms and 0.5 ms of waiting, update 0.25 ms; a test in it ----
cat >trace.py <<'PY'
import json, sys
def trace(steps=40, stages=2, network="lenet5", batch=100, transport="threads"):
    events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": network}}]
    def add(name, stage, at, took, args, cat="step", core=None):
        events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": stage, "ts": at, "dur": took,
                       "args": dict(args, **{"on a core us": took if core is None else core})})
    for stage in range(stages):
        at = 100.0 * stage
        for m in range(steps):
            if m == steps // 2:
                add("test", stage, at, 9000, {"test batch": 0, "after updates": m})
                at += 9000
            add("forward", stage, at, 1000, {"minibatch": m})
            add("wait for input", stage, at + 1100, 500, {"minibatch": m, "register": "pool1"}, "wait", 0)
            add("backward", stage, at + 1000, 2500, {"minibatch": m}, core=2000)
            add("update", stage, at + 3500, 250, {"minibatch": m})
            at += 4000
    return {"displayTimeUnit": "ms", "otherData": {"network": network, "target": "cpu", "transport": transport,
            "stages": stages, "batch": batch, "minibatches": steps, "dropped": 0}, "traceEvents": events}
PY
traced() { # PYTHON: prints to trace.json what it makes of trace()
    python3 -c "from trace import *
$1" >trace.json
}
traced 'json.dump(trace(), sys.stdout)'
page known "$lenet" --trace trace.json
shown=$(sed 's/<[^>]*>/ /g; s/\xc2\xa0/ /g' known.html)
like "$shown" 'From a trace of 40 minibatches on target cpu, transport threads: medians of minibatches 4 to 35' "what counts"
like "$shown" 'A step took 4\.00 ms \(from 4\.00 ms to 4\.00 ms' "a step, without the test"
for text in 'stage 0, measured: forward 1.00 ms' 'stage 1, measured: backward 2.00 ms' 'stage 1, measured: update 250 us' \
    'stage 0, measured: waits for input or room 500 us' 'stage 1: backward of minibatch' 'stage 0 waits for input: pool1' \
    '2.50 ms, 500 us of it waiting'; do
    like "$shown" "$text" "known times: $text"
done
[[ $shown != *'had a core for only'* ]]
ok $? "it had a core"
traced 't = trace(transport="serial")
for e in t["traceEvents"]:
    if e["name"] == "forward": e["args"]["on a core us"] = 100
json.dump(t, sys.stdout)'
page shared "$lenet" --trace trace.json
shown=$(sed 's/<[^>]*>/ /g; s/\xc2\xa0/ /g' shared.html)
like "$shown" 'had a core for only 72 % of its working time' "others had the core"
like "$shown" 'The serial transport runs all stages on one thread' "serial is said"
for steps in 1 2 3 5 12; do
    traced "json.dump(trace(steps=$steps), sys.stdout)"
    "$PNETC" report "$lenet" --trace trace.json -o short.html 2>err
    is "$?" 0 "a trace of $steps minibatches"
done

# ---- a trace of a real program ----
"$PNETC" build "$lenet" -o program --quiet --target=ref --set 'train.data=digits(train = 60, test = 20)' --set train.batch=10 >log 2>&1 &&
    program/lenet5 --steps 12 --quiet --trace real.json >>log 2>&1
is "$?" 0 "a program with a trace"
page traced "$lenet" --target=ref --set train.batch=10 --trace real.json
like "$(cat traced.html)" 'of the run, measured' "its run to scale"

"$PNETC" build "$lenet" "${sliced[@]}" -o slices --quiet --target=ref --set 'train.data=digits(train = 60, test = 20)' --set train.batch=12 >log 2>&1 &&
    slices/lenet5 --steps 12 --quiet --trace slices.json >>log 2>&1
is "$?" 0 "a program of microbatches with a trace"
page slices "$lenet" "${sliced[@]}" --target=ref --set train.batch=12 --trace slices.json
like "$(cat slices.html)" 'From a trace of 12 minibatches' "minibatches of it"

# ---- wrong traces ----
# refused NAME PATTERN ARGUMENTS...
refused() {
    local name=$1 pattern=$2
    shift 2
    rm -f no.html
    "$PNETC" report "$lenet" --trace trace.json "$@" -o no.html >out 2>err
    is "$?" 1 "$name: exit 1"
    like "$(cat err)" "$pattern" "$name: said"
    [ ! -e no.html ]
    ok $? "$name: no page"
}
echo '{"traceEvents": [' >trace.json
refused "cut off" '^trace.json:[12]:[0-9]+: error: this is not JSON: .* \[P0740\]$'
printf '{"a": 1,\n "b" 2}\n' >trace.json
refused "a wrong sign" '^trace.json:2:[0-9]+: error: this is not JSON'
: >trace.json
refused "empty" 'this is not JSON'
echo '[1, 2]' >trace.json
refused "another JSON" '^trace.json:1:1: error: this is no trace of a program'
traced 'json.dump(trace(network="resnet"), sys.stdout)'
refused "another network" 'a trace of network resnet, not of lenet5 \[P0741\]'
traced 'json.dump(trace(stages=3), sys.stdout)'
refused "other stages" 'this trace has 3 stages and batch 100; the program has 2 and 100 \[P0741\]'
traced 'json.dump(trace(), sys.stdout)'
refused "another batch" 'has 2 and 50 \[P0741\]' --set train.batch=50
traced 't = trace(); t["traceEvents"] = t["traceEvents"][:4]; json.dump(t, sys.stdout)'
refused "no step of a stage" 'there is no step of stage 1'
traced 't = trace(); t["traceEvents"] = [e for e in t["traceEvents"] if e["name"] != "update"]; json.dump(t, sys.stdout)'
refused "no update" 'there is no update'
for change in '["tid"] = 7' '["dur"] = -1' '["ts"] = "now"' '["ts"] = 1e300'; do
    traced "t = trace(); t['traceEvents'][3]$change; json.dump(t, sys.stdout)"
    refused "$change" 'event 3 of traceEvents is none of a stage'
done
{ printf '{"a":"'; head -c 67200000 /dev/zero | tr '\0' x; printf '"}'; } >trace.json
refused "too large" 'more than 64 MiB'
rm trace.json
refused "not there" "cannot read 'trace.json'"
mkdir trace.json
refused "a folder" 'it is a folder'
"$PNETC" report "$lenet" -o no/such/folder.html >out 2>err
is "$?" 1 "a folder that is not there: exit 1"
"$PNETC" report "$lenet" >/dev/full 2>err
is "$?" 1 "a full disk: exit 1"
"$PNETC" check "$lenet" --trace trace.json >out 2>err
is "$?" 2 "--trace is for report"

# ---- in a browser: each page in a frame of 1280 and one of 400 pixels ----
if command -v chromium >/dev/null; then
    browser=(timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --user-data-dir="$WORK/chromium"
        --enable-logging=stderr --virtual-time-budget=20000)
    pages=(lenet5 resnet4 resnet110 one sequential hybrid many branches cured sliced slices known)
    {
        echo '<!DOCTYPE html><meta charset="utf-8"/><body><script>addEventListener("message", function (e) {
            var p = document.createElement("p"); p.textContent = e.data; document.body.appendChild(p); });</script>'
        for name in "${pages[@]}"; do
            python3 - "$name.html" "$ROOT/tests/report_page.js" <<'PY'
import sys
page, script = open(sys.argv[1], encoding="utf-8").read(), open(sys.argv[2]).read()
open("in-" + sys.argv[1], "w", encoding="utf-8").write(page.replace("</body>", f"<script>{script}</script></body>"))
PY
            for width in 1280 400; do
                echo "<iframe src='in-$name.html' width='$width' height='900' style='border:0'></iframe>"
            done
        done
    } >frames.html
    "${browser[@]}" --window-size=1400,1000 --dump-dom "file://$WORK/frames.html" >dom 2>err
    for name in "${pages[@]}"; do
        for width in 1280 400; do
            is "$(sed -n "s/.*<p>in-$name.html $width \([^<]*\).*/\1/p" dom)" good "$name at $width pixels"
        done
    done
    is "$(grep CONSOLE err | head -3)" "" "nothing on the console"
    for shot in lenet5 resnet4; do
        "${browser[@]}" --window-size=1280,6000 --screenshot="$WORK/$shot.png" "file://$WORK/$shot.html" >/dev/null 2>&1
        [ "$(head -c 8 "$shot.png" 2>/dev/null | tail -c 7)" = $'PNG\r\n\x1a' ] && [ "$(wc -c <"$shot.png")" -gt 100000 ]
        ok $? "a picture of $shot"
        [ -z "${SHOTS:-}" ] || cp "$shot.png" "$shot.html" "$SHOTS"
    done
else
    echo "SKIPPED: chromium is not there: report pages are not opened in a browser" >&2
    ok 0 "pages in a browser # SKIP no chromium"
fi
done_testing
