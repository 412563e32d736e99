#!/bin/bash
# cuda_bf16_resnet.t: precision = bf16 under the simulator: a small ResNet on CIFAR's images in 1 and 2 stages, as on target cpu within a
# tolerance; half the bytes where values are bf16.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
# shellcheck source=tests/cuda/sim.sh
. "$(dirname "$0")/cuda/sim.sh"
only_cuda=(--set train.precision=bf16) tolerance=1e-2

mkdir cifar
records() { perl -e 'srand(shift); for (1 .. shift) { print chr(int rand 10), map { chr(int rand 256) } 1 .. 3072 }' "$1" "$2"; }
for i in 1 2 3 4 5; do records "$i" 8 >"cifar/data_batch_$i.bin"; done
records 9 6 >cifar/test_batch.bin
data=$WORK/cifar
for stages in 1 2; do
    cuts=()
    [ $stages = 2 ] || cuts=(--set 'pipeline.registers=ppv()')
    compare "resnet8, $stages stages" "$ROOT/examples/resnet.pnet" "random:1" 3 -D depth=8 -D rate=0.001 --set train.batch=4 --set train.test_every=2 \
        ${cuts[@]+"${cuts[@]}"}
done

for precision in f32 bf16; do
    "$PNETC" plan "$ROOT/examples/resnet.pnet" --target=cuda --json --set train.precision=$precision >$precision.json
done
is "$(python3 - f32.json bf16.json <<'END'
import json, sys
f32, bf16 = (json.load(open(path)) for path in sys.argv[1:])
print(f32["traffic_bytes"] / bf16["traffic_bytes"], [a["register_bytes"] == 2 * b["register_bytes"] for a, b in zip(f32["stages"], bf16["stages"])],
      all(0.5 <= b["saved_bytes"] / a["saved_bytes"] < 0.51 and b["transient_bytes"] < 0.51 * a["transient_bytes"]
          for a, b in zip(f32["stages"], bf16["stages"])))
END
)" "2.0 [True, True] True" "resnet: half the bytes of registers, of what is saved and of transients"
done_testing
