"""limits: what this machine could do at best in the time of a step, and what other processes take of it. Imported by throughput.
"""
import json
import os
import resource
import time

import common


class Others:
    """Cores that other processes kept busy since it was made (Linux)."""

    def __init__(self):
        self.begin = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ticks = (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
        return time.monotonic(), ticks - sum(usage.ru_utime + usage.ru_stime for usage in own)

    def cores(self):
        wall, busy = (after - before for after, before in zip(self.now(), self.begin))
        return max(0.0, busy / wall)


def peak_of_machine():
    """flops and bytes a second of one core and of two."""
    tool = os.path.join(common.FOLDER, "peak")
    common.command([*common.c_compiler(), "-std=c11", "-O3", "-march=native", "-ffp-contract=fast", "-Wno-psabi", "-pthread",
                    os.path.join(common.ROOT, "bench", "peak.c"), "-o", tool])
    return json.loads(common.command([tool, "2", "96"]))


def floors_of(run, batch, first_macs):
    """Seconds of a step of a common.Run on one core and on two, by multiply-adds and by bytes; and what they are made of.
    first_macs: multiply-adds of an image in the first layer, whose input has no gradient."""
    check, plan, machine = run.check(), run.plan(), peak_of_machine()
    flops = 2 * batch * (3 * check["macs"] - first_macs)
    saved = sum(stage["saved_bytes"] for stage in plan["stages"])
    weights = sum(stage["weight_bytes"] for stage in plan["stages"])
    moved = 2 * saved + 2 * weights
    return {"parameters": check["parameters"], "step_flops": flops, "step_bytes": moved, "machine_flops": machine["flops"],
            "machine_bytes": machine["bytes"], "by_flops": [flops / rate for rate in machine["flops"]],
            "by_bytes": [moved / rate for rate in machine["bytes"]]}


def text_of(floors, batch):
    lines = []
    for many, text in ((0, "one core"), (1, "two cores")):
        flops, moved = floors["by_flops"][many], floors["by_bytes"][many]
        binds = "multiply-adds bind" if flops >= moved else "memory binds"
        lines.append(f"floor of a step on {text}: {1e3 * flops:.2f} ms by {floors['step_flops'] / 1e9:.2f} GFLOP at "
                     f"{floors['machine_flops'][many] / 1e9:.0f} GFLOP/s, {1e3 * moved:.2f} ms by "
                     f"{floors['step_bytes'] / 2**20:.0f} MiB at {floors['machine_bytes'][many] / 1e9:.1f} GB/s: {binds}, "
                     f"{batch / max(flops, moved):.0f} images/s")
    return "\n".join(lines)
