"""torch_gpu_throughput.py: trains a network of torch_networks.py on random images that lie on the GPU, for bench/gpu_throughput.

usage: torch_gpu_throughput.py NETWORK eager|amp|compile|compile_amp BATCH STEPS [DEVICE]

amp: channels_last, bfloat16 by autocast (its master weights are f32). compile: torch.compile(mode="max-autotune"), which launches
forward and backward as CUDA graphs; compile_amp: both. f32 is strict: TF32 is off, as in our f32 rows, but for amp rows, where it is
allowed, too. Some steps warm up (and compile), then STEPS are timed as a whole between two synchronisations; the loss is read
once, at their end. DEVICE: cuda (default); cpu is for trying the script. Prints a JSON object: images_per_second, parameters,
peak_bytes (of the GPU, as PyTorch allocated them), torch (version).
"""
import json
import sys
import time

import torch
from torch.nn import functional as F

import torch_networks

WARM = 12


def main():
    name, mode, batch, steps = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])
    device = sys.argv[5] if len(sys.argv) > 5 else "cuda"
    amp, compiled = mode.endswith("amp"), mode.startswith("compile")
    torch.manual_seed(1)
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = amp
    layout = torch.channels_last if amp else torch.contiguous_format
    network = torch_networks.network(name).to(device, memory_format=layout)
    run = torch.compile(network, mode="max-autotune") if compiled else network
    momentum, decay, nesterov = torch_networks.recipe(name)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.001, momentum=momentum, weight_decay=decay, nesterov=nesterov)
    shape = (batch, 1, 28, 28) if name == "lenet5" else (batch, 3, 32, 32)
    images = [torch.randn(*shape, device=device).contiguous(memory_format=layout) for _ in range(4)]
    labels = [torch.randint(0, 10, (batch,), device=device) for _ in range(4)]

    def step(number):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype=torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(run(images[number % 4]), labels[number % 4])
        loss.backward()
        optimizer.step()
        return loss

    def wait():
        if device == "cuda":
            torch.cuda.synchronize()

    for number in range(WARM):
        step(number)
    wait()
    begin = time.perf_counter()
    for number in range(steps):
        loss = step(number)
    loss.item()
    wait()
    seconds = time.perf_counter() - begin
    print(json.dumps({"images_per_second": batch * steps / seconds, "parameters": sum(p.numel() for p in network.parameters()),
                      "peak_bytes": torch.cuda.max_memory_allocated() if device == "cuda" else 0, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
