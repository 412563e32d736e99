"""torch_lenet.py: LeNet-5 of examples/lenet5.pnet in PyTorch, for bench/throughput.

usage: torch_lenet.py eager|channels_last THREADS BATCH STEPS

Prints the median images per second over the steps after the first tenth. Random images and labels, in memory. A slow
variant ends after MOST_SECONDS, when it has done FEWEST steps.
"""
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

MOST_SECONDS = 10
FEWEST = 50


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.linear1 = nn.Linear(400, 120)
        self.linear2 = nn.Linear(120, 84)
        self.linear3 = nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x), inplace=True), 2)
        x = F.max_pool2d(F.relu(self.conv2(x), inplace=True), 2)
        x = F.relu(self.linear1(x.flatten(1)), inplace=True)
        x = F.relu(self.linear2(x), inplace=True)
        return self.linear3(x)


def main():
    mode, threads, batch, steps = sys.argv[1], *map(int, sys.argv[2:5])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    layout = {"eager": torch.contiguous_format, "channels_last": torch.channels_last}[mode]
    network = LeNet().to(memory_format=layout)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    images = [torch.randn(batch, 1, 28, 28).contiguous(memory_format=layout) for _ in range(4)]
    labels = [torch.randint(0, 10, (batch,)) for _ in range(4)]
    seconds = []
    for step in range(steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(network(images[step % 4]), labels[step % 4])
        loss.backward()
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - begin)
        if len(seconds) >= FEWEST and sum(seconds) > MOST_SECONDS:
            break
    print(batch / statistics.median(seconds[len(seconds) // 10:]))


main()
