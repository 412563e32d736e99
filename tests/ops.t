#!/bin/bash
# ops.t: every op of ops.def is complete: a doc line in `pnetc list ops`, cases against finite differences (tests/unit/ops.c,
# which also finds a missing shape, cost, evaluator or emitter), cases against PyTorch (tests/oracle), and generated code for
# both targets that is clean under warnings which the generated Makefile does not ask for.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
cd "$ROOT" || exit 1
list=$("$PNETC" list ops) || exit 1
while read -r op; do
    doc=$(printf '%s\n' "$list" | grep -A1 "^$op(" | sed -n '2s/^ *//p')
    [ -n "$doc" ]
    ok $? "$op is listed: $doc"
    grep -q "{\"$op\", {" tests/unit/ops.c
    ok $? "$op has cases against finite differences"
    grep -qh "^op $op\( \|\$\)" tests/oracle/*.txt
    ok $? "$op has cases against PyTorch"
done < <(sed -n 's/^OP(\(.*\))$/\1/p' compiler/ops/ops.def)

# One network with every op, cut in three: its code is compiled with all warnings by both compilers.
cat >"$WORK/all.pnet" <<'END'
network every_op(classes = 10) {
    input image: f32[1, 28, 28]
    input label: class[classes]
    a = image |> conv(8, kernel = 3, stride = 2, pad = 1, init = xavier) |> batch_norm |> relu
    b = a |> conv(8, kernel = 3, pad = 2, dilation = 2, groups = 2, bias = no) |> tanh |> sigmoid |> leaky_relu(slope = 0.3)
    register
    b2 = relu(shortcut(a, 8) + (b |> shortcut(8, stride = 1)))
    c = concat(b2 + b, a, a) |> shortcut(30) |> lrn(size = 3, beta = 0.5) |> maxpool(2, ceil = yes) |> relu
    d = c |> avgpool(3, stride = 2, pad = 1, count_padding = yes) |> leaky_relu(slope = 1) |> leaky_relu
    register
    e = concat(d |> flatten |> dropout(0.3) |> linear(20) |> batch_norm(eps = 1e-3) |> tanh, global_avgpool(c) |> flatten)
    loss softmax_cross_entropy(linear(e, classes), label)
}
train { data = digits  batch = 4  steps = 3 }
END
sed -i 's/  \(batch\|steps\)/\n\1/g' "$WORK/all.pnet"
sed 's/softmax_cross_entropy/mse/' "$WORK/all.pnet" >"$WORK/squares.pnet"
warnings="-std=c11 -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wconversion -Wno-sign-conversion -Werror"
for net in all squares; do
    for target in ref cpu; do
        "$PNETC" build "$WORK/$net.pnet" -o "$WORK/$net.$target" --target=$target --emit-only >"$WORK/log" 2>&1
        made=$?
        ok $made "$net: code for $target"
        [ $made = 0 ] || { note "$(cat "$WORK/log")"; continue; }
        for cc in gcc clang; do
            command -v $cc >/dev/null || continue
            bad=0
            for file in "$WORK/$net.$target"/*.c; do
                # shellcheck disable=SC2086 # a list of flags
                $cc $warnings -I"$ROOT/runtime" -c "$file" -o "$WORK/x.o" >"$WORK/log" 2>&1 || { bad=1; break; }
            done
            ok $bad "$net: code for $target is clean under $cc -Wconversion"
            [ $bad = 0 ] || note "$(head -20 "$WORK/log")"
        done
    done
done

# A generated loop without library calls is vectorised, forward and backward.
cat >"$WORK/relu.pnet" <<'END'
network relu_alone() {
    input image: f32[1, 28, 28]
    input label: class[10]
    h = image |> conv(4, kernel = 3)
    loss softmax_cross_entropy(linear(relu(h) + h, 10), label)
}
train {
    data = digits
    steps = 3
}
END
"$PNETC" build "$WORK/relu.pnet" -o "$WORK/relu" --target=ref --emit-only >"$WORK/log" 2>&1
gcc -std=c11 -O3 -fopt-info-vec-optimized -I"$ROOT/runtime" -c "$WORK/relu/stage0.c" -o "$WORK/x.o" 2>"$WORK/vectorised"
for loop in relu_forward relu_backward; do
    line=$(grep -n "^static void $loop(" "$WORK/relu/stage0.c" | cut -d: -f1)
    grep -q "stage0.c:$((line + 2)):.*vectorized" "$WORK/vectorised"
    found=$?
    ok $found "$loop is vectorised"
    [ $found = 0 ] || note "$(cat "$WORK/log" "$WORK/vectorised")"
done
done_testing
