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
network all(classes = 10) {
    input image: f32[1, 28, 28]
    input label: class[classes]
    a = image |> conv(8, kernel = 3, stride = 2, pad = 1, init = xavier) |> relu
    b = a |> conv(8, kernel = 3, pad = 2, dilation = 2, groups = 2, bias = no) |> tanh |> sigmoid |> relu
    register
    c = concat(a + b, a, a) |> maxpool(2, ceil = yes) |> relu
    d = c |> avgpool(3, stride = 2, pad = 1, count_padding = yes) |> sigmoid
    register
    e = concat(d |> flatten |> dropout(0.3) |> linear(20) |> tanh, global_avgpool(c) |> flatten)
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
        ok $? "$net: code for $target" || note "$(cat "$WORK/log")"
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

# The loops of pointwise ops without library calls are vectorised.
gcc -std=c11 -O3 -fopt-info-vec-optimized -I"$ROOT/runtime" -c -o "$WORK/x.o" -xc - 2>"$WORK/log" <<'END'
#include <stdint.h>
void relu_forward(const float *restrict x, float *restrict y, int64_t n);
void relu_forward(const float *restrict x, float *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] > 0.0f ? x[i] : 0.0f;
}
END
ok $? "a relu compiles"
like "$(cat "$WORK/log")" "loop vectorized" "a relu is vectorised"
done_testing
