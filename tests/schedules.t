#!/bin/bash
# schedules.t: orders x weight rules x microbatches x recomputation x corrections x cuts x mappings, drawn by seed, as whole programs: the threaded run saves the same
# bits as the serial one; stages in halves save those of joined ones; what a program measures is what `pnetc check --json` said; a schedule that empties the pipe for
# each update saves the same bits as one stage that sums the same microbatches, by the same rule with the same cure (two_buffer
# is one update late even then, so that a cure counts). SEEDS="5 6 7" tests/schedules.t draws others,
# DRAWS=40 more of them.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
SEEDS=${SEEDS:-1}
DRAWS=${DRAWS:-5}
cd "$WORK" || exit 2
target=ref
[ -e "$B/lib/libpn_cpu.a" ] && target=cpu
sed '/^ *register$/d' "$ROOT/examples/lenet5.pnet" >lenet5.pnet
sed '/^ *register$/d' "$ROOT/tests/nets/branches.pnet" >branches.pnet
sed '/^ *register$/d; s/if cut { register }//' "$ROOT/tests/nets/residual.pnet" >residual.pnet
orders=$("$PNETC" list schedules | sed -n '/^orders/,/^$/s/^  \([a-z0-9_]*\)  .*/\1/p')
rules=$("$PNETC" list schedules | sed -n '/^weight rules/,/^$/s/^  \([a-z0-9_]*\)  .*/\1/p')
small=(--set 'train.data=digits(train = 200, test = 40)' --set train.batch=24 --set pipeline.balance=1000)

# program FOLDER NET SCHEDULE ARGUMENTS...
program() {
    local folder=$1 net=$2 schedule=$3
    shift 3
    "$PNETC" build "$net.pnet" -o "$folder" --quiet --target="$target" "${small[@]}" --set "pipeline.schedule=$schedule" "$@" \
        >build.log 2>&1
}
# train FOLDER NET NAME OPTIONS...
train() {
    local program=$1/$2 name=$3
    shift 3
    "$program" --quiet --steps 11 --save "$name.safetensors" --report "$name.json" "$@" >"$name.log" 2>&1 ||
        note "$name: $(tail -3 "$name.log")"
}
measured() { # of a report or of `check --json`: what both have; halves of a stage in one row
    python3 - "$1" <<'PY'
import json, sys
said, rows = json.load(open(sys.argv[1])), {}
for s in said["stages"]:
    row = rows.setdefault(s["stage"], [s["staleness"], s["ring"], 0])
    row[2] += s["static_bytes"]
    if row[:2] != [s["staleness"], s["ring"]]: print("the halves of stage", s["stage"], "differ")
print(rows, said["static_bytes"], said["traffic_bytes"])
PY
}
pick() { # NAME WORDS...: sets NAME to one of the words; in this shell: a shell in $( ) has a seed of its own
    local name=$1
    shift
    shift $((RANDOM % $#))
    printf -v "$name" %s "$1"
}

nets=(lenet5 branches residual)
order='' rule='' slices='' net='' cut='' again='' cure='' mapping='' # set by pick
for seed in $SEEDS; do
    RANDOM=$seed
    for ((draw = 0; draw < DRAWS; draw++)); do
        # shellcheck disable=SC2086 # words
        pick order $orders && pick rule $rules && pick slices 1 2 3 4 6
        pick net "${nets[@]}" && pick cut 1 2 1,3 1,2,3,4
        pick again no no yes list
        [ "$again" = list ] && case $cut in 1 | 2) again="(yes, no)" ;; 1,3) again="(no, yes, no)" ;; *) again="(yes, no, no, yes, no)" ;; esac
        schedule="schedule(\"$order\", weights = $rule, microbatches = $slices, recompute = $again)"
        pick cure none none auto "accumulate(a = 3)" "(accumulate, lookahead)" discrepancy
        pick mapping joined split
        what="$net ($cut) $order, $rule, $slices slices, recompute $again, cure $cure, $mapping"
        options=(--set "pipeline.registers=ppv($cut)" --set "pipeline.cure=$cure")
        rm -rf program one ./*.safetensors
        if ! program program "$net" "$schedule" "${options[@]}" --set "pipeline.mapping=$mapping"; then
            like "$(cat build.log)" '^[^:]*:[0-9]+:[0-9]+: error: .*\[P0[0-9]+\]$' "seed $seed: $what: refused, and where"
            continue
        fi
        train program "$net" serial --transport serial --eval-every 4
        train program "$net" threads --transport threads --eval-every 3
        cmp -s serial.safetensors threads.safetensors
        ok $? "seed $seed: $what: serial equals threads ($target)"
        "$PNETC" check "$net.pnet" --json --target="$target" "${small[@]}" --set "pipeline.schedule=$schedule" \
            "${options[@]}" --set "pipeline.mapping=$mapping" >check.json 2>/dev/null
        is "$(measured threads.json)" "$(measured check.json)" "seed $seed: $what: measured as predicted"
        if [ "$mapping" = split ]; then
            program one "$net" "$schedule" "${options[@]}" || note "$(cat build.log)"
            train one "$net" one --transport serial
            cmp -s serial.safetensors one.safetensors
            ok $? "seed $seed: $what: the bits of joined stages"
        fi
        case $order in
        gpipe | 1f1b_flush | zb_h1 | sequential)
            rm -rf one
            program one "$net" "schedule(sequential, weights = $rule, microbatches = $slices)" --set "pipeline.registers=ppv()" \
                --set "pipeline.cure=$cure" ||
                note "$(cat build.log)"
            train one "$net" one --transport serial
            cmp -s serial.safetensors one.safetensors
            ok $? "seed $seed: $what: the bits of one stage"
            ;;
        esac
    done
done
done_testing
