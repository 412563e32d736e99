#!/bin/bash
# layouts.t: `pnetc plan --layouts` and a program's --layouts list the copies that only change a layout: those that --report
# tells after a run; no data are needed for it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$WORK" || exit 1
cat >net.pnet <<'END'
network net() {
    input image: f32[3, 16, 16]
    input label: class[10]
    a = image |> conv(16, kernel = 3, pad = 1) |> relu |> dropout(0.3)
    register
    b = a |> conv(32, kernel = 3, stride = 2, pad = 1) |> relu |> lrn(5) |> linear(40)
    loss softmax_cross_entropy(linear(b, 10), label)
}
train {
    data  = raw(path = "nothing/here")
    batch = 4
}
END
"$PNETC" plan net.pnet --target=ref --layouts >ref.txt 2>err
is $? 0 "plan --layouts, target ref"
like "$(tail -1 ref.txt)" '^layouts      target ref, naive C: no copy changes one$' "ref has one layout"
"$PNETC" plan net.pnet --target=ref >plan.txt 2>err
is "$(head -n -2 ref.txt)" "$(cat plan.txt)" "above it stands the memory map"
for other in --json --all-schedules --dump=plan; do
    "$PNETC" plan net.pnet --layouts $other >out 2>err
    is $? 2 "plan --layouts $other is a usage error"
done
CFLAGS=-fno-such-option "$PNETC" plan net.pnet --target=ref --layouts >out 2>err
is $? 1 "a program that cannot be built"
[ -s out ]
is $? 1 "prints nothing else"
if [ ! -e "$B/lib/libpn_cpu.a" ]; then
    note "no library for target cpu: its part is not tested"
    done_testing
fi
"$PNETC" plan net.pnet --target=cpu --layouts 2>err | sed -n '/^layouts/,$p' >listed.txt
like "$(head -1 listed.txt)" '^layouts      target cpu, oneDNN [0-9.]+: [1-9][0-9]* copies of a training or test step change one$' \
    "target cpu: how many"
like "$(cat listed.txt)" '^      0 +65536  a +x$' "which operation's, and what"
"$PNETC" build net.pnet --target=cpu -o net --quiet 2>err
net/net --layouts >program.txt 2>err
is "$?$(cat err)" 0 "the program itself, without its data"
cmp -s listed.txt program.txt
ok $? "says the same"
mkdir data
python3 - <<'PY'
import random
source = random.Random(1)
for part, count in (("train", 8), ("test", 4)):
    open(f"data/{part}.u8", "wb").write(source.randbytes(768 * count))
    open(f"data/{part}.labels", "wb").write(bytes(source.randrange(10) for _ in range(count)))
PY
net/net --data data --steps 2 --quiet --report report.json >out 2>err || note "$(cat err)"
python3 - <<'PY'
import json
report = json.load(open("report.json"))
told = [(s["stage"], r["bytes"], r["op"], r["of"]) for s in report["stages"] for r in s["reorders"]]
rows = [line.split(None, 3) for line in open("listed.txt").read().splitlines()[2:]]
assert told == [(int(a), int(b), c, d) for a, b, c, d in rows], (told, rows)
PY
ok $? "and --report, after a run, too"
done_testing
