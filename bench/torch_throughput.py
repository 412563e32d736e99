"""torch_throughput.py: trains a network of torch_networks.py on random images in memory, for bench/throughput and paper_memory.

usage: torch_throughput.py NETWORK eager|channels_last|compile|compile_channels_last THREADS BATCH STEPS SECONDS

Two steps warm up, then up to STEPS are timed; after SECONDS it ends with FEWEST of them. Prints a JSON object: images_per_second
(of the median step), steps, parameters, peak_bytes (resident, of this process alone), start_bytes (before the network is made).
"""
import json
import resource
import statistics
import sys
import time

import torch
from torch.nn import functional as F

import torch_networks

WARM = 2
FEWEST = 4


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    name, mode, threads, batch, steps, most = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    start = peak()
    layout = torch.channels_last if mode.endswith("channels_last") else torch.contiguous_format
    network = torch_networks.network(name).to(memory_format=layout)
    run = torch.compile(network) if mode.startswith("compile") else network
    momentum, decay, nesterov = torch_networks.recipe(name)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=momentum, weight_decay=decay, nesterov=nesterov)
    shape = (batch, 1, 28, 28) if name == "lenet5" else (batch, 3, 32, 32)
    images = [torch.randn(*shape).contiguous(memory_format=layout) for _ in range(4)]
    labels = [torch.randint(0, 10, (batch,)) for _ in range(4)]
    seconds = []
    for step in range(WARM + steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(run(images[step % 4]), labels[step % 4])
        loss.backward()
        optimizer.step()
        loss.item()
        if step >= WARM:
            seconds.append(time.perf_counter() - begin)
        if len(seconds) >= FEWEST and sum(seconds) > most:
            break
    print(json.dumps({"images_per_second": batch / statistics.median(seconds), "steps": len(seconds),
                      "parameters": sum(p.numel() for p in network.parameters()), "peak_bytes": peak(), "start_bytes": start}))


if __name__ == "__main__":
    main()
