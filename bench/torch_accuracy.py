"""torch_accuracy.py: trains ResNet-20 of examples/resnet.pnet in PyTorch on CIFAR-10: the reference of bench/paper_accuracy.

usage: torch_accuracy.py DATA STEPS SEED [THREADS]     DATA: the folder of CIFAR-10's binary files

The recipe is that of paper_accuracy's sequential row: batch 128, SGD with momentum 0.9 and weight decay 1e-4, a rate of 0.1
that falls tenfold after half and three quarters of the steps, a warm-up of a twentieth of them (an epoch at most), random
crops and mirror images, He's normal weights. Prints a JSON object: test accuracy in percent, and its curve.
"""
import json
import os
import sys

os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", "4294967296")
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", "4294967296")
if "PNETC_TORCH_MALLOC" not in os.environ:  # malloc reads its thresholds at the start of the process
    os.environ["PNETC_TORCH_MALLOC"] = "set"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from torch_networks import ResNet

BATCH = 128
CROP = 4


def images_of(folder, names):
    rows = np.concatenate([np.fromfile(os.path.join(folder, name), np.uint8).reshape(-1, 3073) for name in names])
    return torch.from_numpy(rows[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(rows[:, 0].astype(np.int64))


def augmented(images, source):
    """A random crop of each image, padded with black by CROP, and its mirror image half of the time."""
    count = len(images)
    padded = F.pad(images, (CROP,) * 4)
    down, right = torch.randint(0, 2 * CROP + 1, (2, count), generator=source)
    mirror = torch.randint(0, 2, (count, 1), generator=source).bool()
    columns = torch.arange(32).expand(count, 32)
    columns = torch.where(mirror, 31 - columns, columns) + right[:, None]
    rows = torch.arange(32) + down[:, None]
    one = torch.arange(count)[:, None, None, None]
    return padded[one, torch.arange(3)[None, :, None, None], rows[:, None, :, None], columns[:, None, None, :]]


def accuracy_of(network, images, labels):
    network.eval()
    with torch.no_grad():
        right = sum((network(images[i:i + 500]).argmax(1) == labels[i:i + 500]).sum().item() for i in range(0, len(labels), 500))
    network.train()
    return 100 * right / len(labels)


def rate_at(step, steps):
    rate = 0.1 * (0.1 if step >= steps // 2 else 1) * (0.1 if step >= steps * 3 // 4 else 1)
    return rate * min(1, (step + 1) / max(1, min(390, steps // 20)))


def main():
    folder, steps, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    torch.manual_seed(seed)
    source = torch.Generator().manual_seed(seed)
    train_images, train_labels = images_of(folder, [f"data_batch_{i}.bin" for i in range(1, 6)])
    test_images, test_labels = images_of(folder, ["test_batch.bin"])
    scaled = train_images.float()
    mean, deviation = scaled.mean((0, 2, 3), keepdim=True), scaled.std((0, 2, 3), keepdim=True)
    del scaled
    prepare = lambda images: ((images.float() - mean) / deviation).contiguous(memory_format=torch.channels_last)
    network = ResNet().to(memory_format=torch.channels_last)
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, mode="fan_in", nonlinearity="relu")
    nn.init.zeros_(network.linear.bias)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    test_images, every = prepare(test_images), max(100, steps // 8)
    order, curve = torch.empty(0, dtype=torch.int64), []
    for step in range(steps):
        if len(order) < BATCH:
            order = torch.randperm(len(train_labels), generator=source)
        batch, order = order[:BATCH], order[BATCH:]
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps)
        optimizer.zero_grad()
        F.cross_entropy(network(prepare(augmented(train_images[batch], source))), train_labels[batch]).backward()
        optimizer.step()
        if (step + 1) % every == 0 or step + 1 == steps:
            curve.append((step + 1, accuracy_of(network, test_images, test_labels)))
            print(*curve[-1], file=sys.stderr, flush=True)
    print(json.dumps({"accuracy": curve[-1][1], "steps": steps, "seed": seed, "torch": torch.__version__, "curve": curve}))


if __name__ == "__main__":
    main()
