#!/bin/bash
# data.t: data files through a real program: good ones, the real MNIST where it is at hand, and bad ones: each ends in one
# clear message that names the file, exit code 1, in well under a second, and leaves no output file behind.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"
real=${PNET_DATA:-}
unset PNET_DATA
cd "$WORK" || exit 1
cat >net.pnet <<'END'
network net {
    input image: f32[1, 28, 28]
    input label: class[10]
    h = image |> maxpool(4) |> flatten |> linear(10)
    loss softmax_cross_entropy(h, label)
}
train {
    data  = mnist
    batch = 10
    optimizer = sgd(momentum = 0.9)
    lr    = 0.01
    steps = 5
}
END
if ! "$PNETC" build net.pnet -o program --target=ref --quiet >build.log 2>&1; then
    note "$(cat build.log)"
    ok 1 "the program builds"
    done_testing
fi
ok 0 "the program builds"
program=$WORK/program/net

images=train-images-idx3-ubyte
labels=train-labels-idx1-ubyte
# idx_images COUNT, idx_labels COUNT: files of up to 255 items; pixels are 0, labels 0 1 .. 9 0 ..
byte() { printf %b "\\0$(printf %03o "$1")"; }
idx_images() {
    printf '\0\0\010\003\0\0\0'
    byte "$1"
    printf '\0\0\0\034\0\0\0\034'
    head -c $((784 * $1)) /dev/zero
}
idx_labels() {
    printf '\0\0\010\001\0\0\0'
    byte "$1"
    local i
    for ((i = 0; i < $1; i++)); do byte $((i % 10)); done
}
make_folder() {
    rm -rf data
    mkdir data
    idx_images 50 >data/$images
    idx_labels 50 >data/$labels
    idx_images 25 >data/t10k-images-idx3-ubyte
    idx_labels 25 >data/t10k-labels-idx1-ubyte
}

# good NAME ARGUMENTS...: 25 test images, two whole batches and a ragged one
good() {
    local name=$1
    shift
    out=$("$program" "$@" 2>&1)
    ok $? "$name: runs"
    like "$(tail -n 1 <<<"$out")" '^test accuracy .* % \(25 images\)$' "$name: 25 test images"
}
make_folder
good "IDX files" --data data
good "a source by name" --data mnist:data
mkdir home
mv data home/mnist
PNET_DATA=$WORK/home good "the folder of PNET_DATA"
make_folder
gzip data/*
good "gzip files" --data data
for name in train-images train-labels t10k-images t10k-labels; do
    for file in "data/$name-"*; do mv "$file" "${file/$name-/$name.}"; done
done
good "names with a dot" --data data
out=$("$program" --data digits 2>&1)
ok $? "digits in place of what was compiled in"
like "$out" '\(4000 images\)$' "digits: 4000 test images"

# bad NAME PATTERN ARGUMENTS...
bad() {
    local name=$1 pattern=$2 begun ended got
    shift 2
    begun=$(date +%s%N)
    out=$("$program" "$@" --save weights.safetensors 2>&1)
    got=$?
    ended=$(date +%s%N)
    is "$got" 1 "$name: exit 1"
    like "$out" "$pattern" "$name: says so"
    is "$(wc -l <<<"$out")" 1 "$name: one line"
    [ $((ended - begun)) -lt 1000000000 ]
    ok $? "$name: at once"
    [ -z "$(find . -maxdepth 1 -name 'weights*')" ]
    ok $? "$name: no file is left"
}
bad "no folder" '^error: mnist: which folder\? say --data DIR'
bad "missing folder" '^error: nowhere: No such file' --data nowhere
bad "a file as folder" 'net.pnet: not a folder' --data net.pnet
mkdir empty
bad "empty folder" "^error: empty: no $images in it" --data empty
make_folder
rm data/t10k-labels-idx1-ubyte
bad "missing file" 'no t10k-labels-idx1-ubyte in it' --data data
make_folder
: >data/$labels
bad "empty file" "^error: data/$labels: the file is empty" --data data
make_folder
head -c 20000 data/$images >part && mv part data/$images
bad "truncated file" "^error: data/$images: truncated: its head promises 50 images" --data data
make_folder
head -c 10 data/$images >part && mv part data/$images
bad "truncated head" "^error: data/$images: truncated" --data data
make_folder
echo more >>data/$images
bad "file too long" "^error: data/$images: too long" --data data
make_folder
mv data/$images swap && mv data/$labels data/$images && mv swap data/$labels
bad "swapped files" "^error: data/$images: this file holds labels, not images: are the files swapped" --data data
make_folder
printf '\x89PNG\r\n\x1a\n and so on' >data/$images
bad "wrong magic" "^error: data/$images: not an IDX file of images: it starts with 0x89504e47" --data data
make_folder
idx_labels 49 >data/$labels
bad "too few labels" "^error: data/$labels: 49 labels, but data/$images has 50 images" --data data
make_folder
{
    head -c 57 data/$labels
    printf '\012'
} >part && mv part data/$labels
bad "label out of range" "^error: data/$labels: label 10 of sample 49 is out of range" --data data
make_folder
gzip -c data/$images | head -c 60 >part && rm data/$images && mv part data/$images.gz
bad "truncated gzip file" "^error: data/$images.gz: truncated" --data data
make_folder
rm data/$images && mkdir data/$images
bad "a folder as file" "^error: data/$images: not a file" --data data
make_folder
idx_images 9 >data/$images
idx_labels 9 >data/$labels
bad "fewer samples than a batch" '9 \+ 25 images.*a batch of 10 needs more' --data data
bad "CIFAR-10 that is not there" "^error: data: no data_batch_1.bin in it" --data cifar10:data
head -c 30730 /dev/zero >data/test_batch.bin
for i in 1 2 3 4 5; do cp data/test_batch.bin data/data_batch_$i.bin; done
bad "another shape" 'a sample is 3x32x32, which does not fit input image of net' --data cifar10:data
if [ "$(id -u)" != 0 ]; then
    make_folder
    chmod 0 data/$images
    bad "unreadable file" "^error: data/$images: Permission denied" --data data
fi

# the real files
mkdir mnist
packed=$ROOT/../shared/data/mnist
if [ -n "$real" ] && [ -d "$real/mnist" ]; then
    rmdir mnist
    ln -s "$(cd "$real" && pwd)/mnist" mnist
elif [ -d "$packed" ] && command -v xz >/dev/null; then
    for file in "$packed"/*.xz; do xz -dc "$file" >"mnist/$(basename "$file" .xz)"; done
fi
if [ -e mnist/$images ] || [ -e mnist/$images.gz ]; then
    out=$("$program" --data mnist --steps 3000 2>&1)
    ok $? "MNIST: runs"
    like "$out" '60000 \+ 10000 images of 28x28' "MNIST: all images"
    like "$out" '^test accuracy [789][0-9]\.[0-9]* % \(10000 images\)$' "MNIST: a linear classifier of 49 pixels reaches 70 %"
else
    tap_number=$((tap_number + 1))
    echo "ok $tap_number - MNIST # SKIP no real MNIST: neither \$PNET_DATA/mnist nor ../shared/data/mnist (with xz)"
    echo "SKIPPED: $0: the real MNIST is not at hand" >&2
fi
done_testing
