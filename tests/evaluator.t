#!/bin/bash
# evaluator.t: generated programs against the compiler's evaluator: the network as written, not fused, not cut, trained by
# plain loops, must end with the same bits as the program of target ref, also cut in stages (schedule sequential).
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT" || exit 1
STEPS=8

# shellcheck disable=SC2086 # libraries
${CC:-gcc} -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -ffp-contract=off -pthread -Wall -Wextra -Werror ${LDFLAGS:-} \
    -iquote compiler -iquote runtime tests/evaluator.c -o "$WORK/evaluator" "$B"/lib/libpnetc.a "$B"/lib/libpn_core.a \
    "$B"/lib/libpn_ref.a -ljansson -lz -lm >"$WORK/log" 2>&1
built=$?
ok $built "the evaluator's trainer compiles"
[ $built = 0 ] || { note "$(head -20 "$WORK/log")"; done_testing; }

# Every op that the network below does not have is in tests/nets.
cat >"$WORK/ops.pnet" <<'END'
network ops(classes = 10) {
    input image: f32[1, 28, 28]
    input label: class[classes]
    a = image |> maxpool(2) |> conv(4, kernel = 3, stride = 2, init = xavier) |> batch_norm |> tanh |> leaky_relu(0.3) |> leaky_relu(slope = 1) |> maxpool(2, ceil = yes)
    b = a |> conv(4, kernel = 3, pad = 2, dilation = 2, groups = 4, bias = no) |> relu |> lrn |> maxpool(3, stride = 1, pad = 1)
    c = concat(a + b, a, a) + concat(b, b, b)
    register
    d = c |> avgpool(2, stride = 1, pad = 1, count_padding = yes) |> sigmoid
    e = d |> flatten |> dropout(0.3) |> linear(12) |> batch_norm(momentum = 0.3) |> relu
    loss mse(linear(e + e, classes), label)
}
train {
    data  = digits(train = 500, test = 100)
    batch = 10
}
END
for file in examples/lenet5.pnet tests/nets/branches.pnet tests/nets/residual.pnet "$WORK/ops.pnet"; do
    name=$(basename "$file" .pnet)
    "$PNETC" build "$file" -o "$WORK/$name" --quiet --target=ref --set pipeline.schedule=sequential --set train.warmup=0 \
        --set 'train.optimizer=sgd(momentum = 0.9, weight_decay = 5e-4)' --set 'train.lr=constant(0.02)' >"$WORK/log" 2>&1
    ok $? "$name: builds"
    program=$(find "$WORK/$name" -maxdepth 1 -type f -perm -u+x | head -1)
    "$program" --quiet --steps $STEPS --save "$WORK/$name.safetensors" >"$WORK/log" 2>&1
    ok $? "$name: trains"
    "$WORK/evaluator" "$file" $STEPS "$WORK/$name.safetensors" >"$WORK/compared" 2>&1
    same=$?
    ok $same "$name: the program's weights after $STEPS steps are the evaluator's, bit for bit"
    [ $same = 0 ] || note "$(cat "$WORK/log" "$WORK/compared")"
done
done_testing
