#!/bin/bash
# random.t: random networks with random cuts, by seed, as whole programs: the threaded run saves the same bits as the serial
# one, with tests in between; sequential with registers saves the same bits as without; what a program measures is what
# `pnetc check --json` said. SEEDS="5 6 7" tests/random.t tries others.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
SEEDS=${SEEDS:-1 2}
cd "$WORK" || exit 2

# network SEED: a chain in which each op reads the latest value and perhaps an earlier one of its shape
network() {
    local x=0 i j registers=0 shape=2x7 line
    RANDOM=$1
    declare -A last=([2x7]=0) # the shape of a value: channels x size; one earlier value of each shape
    echo "network random {"
    echo "    input image: f32[1, 28, 28]"
    echo "    input label: class[10]"
    echo "    x0 = image |> avgpool(4) |> conv(2, kernel = 3, pad = 1)"
    for ((i = 0; i < 22; i++)); do
        j=${last[$shape]}
        ((RANDOM % 2)) && last[$shape]=$x
        case $((RANDOM % 9)) in
        0 | 1)
            shape=$((1 + RANDOM % 4))x${shape#*x}
            line="x$x |> conv(${shape%x*}, kernel = 3, pad = 1)"
            ((RANDOM % 2)) && line+=" |> relu"
            ;;
        2) line="relu(x$x + x$j)" ;;
        3) line="x$x + x$j" ;;
        4)
            line="concat(x$x, x$j) |> conv(3, kernel = 1)"
            shape=3x${shape#*x}
            ;;
        5)
            if [ "${shape#*x}" -gt 3 ]; then
                line="x$x |> relu |> maxpool(2)"
                shape=${shape%x*}x$((${shape#*x} / 2))
            else
                line="x$x |> maxpool(1)"
            fi
            ;;
        6) line="x$x |> tanh |> sigmoid" ;;
        7) line="x$x |> relu" ;;
        8) line="x$x |> dropout(probability = 0.25)" ;;
        esac
        x=$((x + 1))
        echo "    x$x = $line"
        : "${last[$shape]:=$x}"
        if ((registers < 7 && RANDOM % 3 == 0)); then
            echo "    register"
            registers=$((registers + 1))
        fi
    done
    echo "    f = flatten(x$x)"
    echo "    a = f |> linear(10) |> tanh"
    echo "    register"
    echo "    loss softmax_cross_entropy(a + linear(f, 10), label)"
    echo "}"
    echo "train {"
    echo "    data  = digits(train = 200, test = 50)"
    echo "    batch = 10"
    echo "    lr    = constant(0.0001)"
    echo "    steps = 25"
    echo "}"
}

# program FILE SCHEDULE: builds into $WORK/program
program() {
    rm -rf program
    "$PNETC" build "$1" -o program --quiet --target="$target" --set "pipeline.schedule=$2" --set pipeline.balance=1000 \
        >build.log 2>&1 || note "$(tail -20 build.log)"
}
# train NAME OPTIONS...
train() {
    local name=$1
    shift
    program/random --quiet --save "$name.safetensors" --report "$name.json" "$@" >"$name.log" 2>&1 ||
        note "$name: $(tail -3 "$name.log")"
}
measured() { # REPORT CHECK: the keys that both have, flat, one a line
    sed -n 's/,$//; s/^ *"\(stage\|staleness\|ring\|static_bytes\|traffic_bytes\)": \([0-9]*\)$/\1 \2/p' "$1"
}

target=ref
[ -e "$B/lib/libpn_cpu.a" ] && target=cpu
for seed in $SEEDS; do
    network "$seed" >net.pnet
    sed '/^ *register$/d' net.pnet >plain.pnet
    for schedule in stale pipedream sequential; do
        rm -f ./*.safetensors
        program net.pnet $schedule
        train serial --transport serial --eval-every 4
        train threads --transport threads --eval-every 7
        cmp -s serial.safetensors threads.safetensors
        ok $? "seed $seed, $schedule: serial equals threads ($target)"
        "$PNETC" check net.pnet --json --target="$target" --set "pipeline.schedule=$schedule" >check.json 2>/dev/null
        is "$(measured threads.json)" "$(measured check.json)" "seed $seed, $schedule: measured as predicted"
    done
    program plain.pnet sequential
    train plain --transport serial
    cmp -s serial.safetensors plain.safetensors
    ok $? "seed $seed: sequential with registers equals none"
done
done_testing
