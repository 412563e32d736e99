#!/bin/bash
# evaluator.sh: for evaluator*.t: compiles the evaluator's trainer; compare; the network deep.pnet. After tap.sh.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT" || exit 1

# shellcheck disable=SC2086 # libraries
${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -ffp-contract=off -pthread -Wall -Wextra -Werror ${LDFLAGS:-} \
    -iquote compiler -iquote runtime tests/evaluator.c -o "$WORK/evaluator" "$B"/lib/libpnetc.a "$B"/lib/libpn_core.a \
    "$B"/lib/libpn_ref.a -ljansson -lz -lm >"$WORK/log" 2>&1
built=$?
ok $built "the evaluator's trainer compiles"
[ $built = 0 ] || { note "$(head -20 "$WORK/log")"; done_testing; }

# compare NAME FILE SCHEDULE BATCH STEPS [CURE]: the program of FILE under SCHEDULE against the evaluator
compare() {
    local name=$1 file=$2 schedule=$3 batch=$4 steps=$5 cure=${6:-none} program
    rm -rf "$WORK/program"
    sed '/^ *schedule *=/d; /^pipeline *{/,/^}/d' "$file" >"$WORK/net.pnet"
    printf 'pipeline {\n    schedule = %s\n    balance = 1000\n    cure = %s\n}\n' "$schedule" "$cure" >>"$WORK/net.pnet"
    sed -i "s/^\( *batch *=\).*/\1 $batch/" "$WORK/net.pnet"
    "$PNETC" build "$WORK/net.pnet" -o "$WORK/program" --quiet --target=ref --set train.warmup=0 \
        --set 'train.optimizer=sgd(momentum = 0.9, weight_decay = 5e-4)' --set 'train.lr=constant(0.02)' >"$WORK/log" 2>&1 ||
        note "$(cat "$WORK/log")"
    program=$(find "$WORK/program" -maxdepth 1 -type f -perm -u+x 2>/dev/null | head -1)
    "$program" --quiet --steps "$steps" --save "$WORK/saved" --eval-every 3 >"$WORK/log" 2>&1
    "$WORK/evaluator" "$WORK/net.pnet" "$steps" "$WORK/saved" >"$WORK/compared" 2>&1
    local same=$?
    ok $same "$name, $schedule${6:+, cure = $cure}: weights after $steps steps are the evaluator's, bit for bit"
    [ $same = 0 ] || note "$(cat "$WORK/log" "$WORK/compared")"
}

# Stages of every kind: a skip across two cuts, dropout, batch_norm; few samples, for the naive kernels.
cat >"$WORK/deep.pnet" <<'END'
network deep {
    input image: f32[1, 28, 28]
    input label: class[10]
    a = image |> avgpool(4) |> conv(3, kernel = 3) |> batch_norm |> relu
    register
    b = a |> conv(3, kernel = 3, pad = 1) |> tanh
    register
    c = b + a |> dropout(0.2) |> linear(16) |> relu
    register
    d = c |> linear(16) |> batch_norm |> relu
    loss softmax_cross_entropy(linear(d + c, 10), label)
}
train {
    data  = digits(train = 240, test = 24)
    batch = 12
}
END
