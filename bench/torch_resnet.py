"""torch_resnet.py: ResNet-20 of examples/resnet.pnet in PyTorch, for bench/throughput.

usage: torch_resnet.py eager|channels_last|compile|compile_channels_last THREADS BATCH STEPS

Prints the median images per second over the steps after the first tenth. Random images and labels, in memory. A slow
variant ends after MOST_SECONDS, when it has done FEWEST steps.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

MOST_SECONDS = 20
FEWEST = 8
UNITS = 3  # a group; the depth is 6 UNITS + 2


class Unit(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, channels, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.stride, self.more = stride, channels - before

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        if self.more:  # option A
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
        return F.relu(y.add_(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        units, before = [], 16
        for channels in (16, 32, 64):
            for i in range(UNITS):
                units.append(Unit(before, channels, 2 if i == 0 and channels > 16 else 1))
                before = channels
        self.units = nn.Sequential(*units)
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = self.units(F.relu(self.norm(self.conv(x)), inplace=True))
        return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))


def main():
    mode, threads, batch, steps = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layout = torch.channels_last if mode.endswith("channels_last") else torch.contiguous_format
    network = ResNet().to(memory_format=layout)
    run = torch.compile(network) if mode.startswith("compile") else network
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    images = [torch.randn(batch, 3, 32, 32).contiguous(memory_format=layout) for _ in range(4)]
    labels = [torch.randint(0, 10, (batch,)) for _ in range(4)]
    seconds = []
    for step in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(run(images[step % 4]), labels[step % 4])
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
        if len(seconds) >= FEWEST and sum(seconds) > MOST_SECONDS:
            break
    print(batch / statistics.median(seconds[len(seconds) // 10 + 1:]))


if __name__ == "__main__":
    main()
