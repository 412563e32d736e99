#!/bin/bash
# evaluator.t: generated programs against the compiler's evaluator: the network as written, not fused, not cut, trained by
# plain loops over an explicit history of weights, must end with the same bits as the program of target ref, in stages,
# under every order and weight rule.
# shellcheck source=tests/evaluator.sh
. "$(dirname "$0")/evaluator.sh"
STEPS=8
turn=0

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
    compare "$(basename "$file" .pnet)" "$file" sequential 10 $STEPS
done

for order in sequential lockstep lockstep_b 1f1b gpipe 1f1b_flush zb_h1; do
    for rule in stale stash vertical_sync two_buffer replay; do
        slices=4
        [ $rule = two_buffer ] || slices=$((1 + 3 * (turn++ % 2)))
        case $order$slices in gpipe1 | 1f1b_flush1 | zb_h11) slices=3 ;; esac
        case $order$rule in zb_h1replay) continue ;; esac # refused: P0508
        case $order$rule in lockstep*two_buffer) slices=6 ;; esac
        compare deep "$WORK/deep.pnet" "schedule(\"$order\", weights = $rule, microbatches = $slices)" 12 11
    done
done
compare deep "$WORK/deep.pnet" 'hybrid(stale, steps = 4, then = hybrid(pipedream_vertical, steps = 3, then = gpipe(microbatches = 2)))' 12 11
compare deep "$WORK/deep.pnet" 'hybrid(zb_h1(microbatches = 4), steps = 4, then = pipedream)' 12 11
compare deep "$WORK/deep.pnet" 'pipedream(recompute = yes)' 12 11
compare deep "$WORK/deep.pnet" 'pipedream(recompute = (no, yes, yes, no))' 12 11
compare deep "$WORK/deep.pnet" 'gpipe(microbatches = 4, recompute = yes)' 12 11
compare deep "$WORK/deep.pnet" 'hybrid(features_replay, steps = 5, then = pipedream)' 12 11
compare deep "$WORK/deep.pnet" 'hybrid(pipedream_2bw, steps = 5, then = stale_1f1b(microbatches = 3))' 12 11
done_testing
