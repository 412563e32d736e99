"""accuracy: what the commands that compare test accuracies share: the paper's networks with their recipes scaled to a
number of steps, a table over schedules and cuts, means over seeds. Imported by cure, paper_accuracy, paper_hybrid,
paper_staleness.

Recipes: Zhang and Abdelrahman 2021, appendices A and B; where a rate falls is scaled with the number of steps. All runs of
a table share data, order of samples, initial weights (by seed), and the warm-up: a twentieth of the steps, an epoch at most.
"""
import os
import statistics

import common

GUESSED = 10.0  # percent right of ten classes: what a network that diverged knows
DATA = os.path.join(common.BUILD, "data", "cifar-10-batches-bin")


class Network:
    def __init__(self, file, batch, rate, pipelined_rate, policy, define=None):
        self.file = file
        self.batch = batch
        self.rate = rate  # of sequential runs
        self.pipelined_rate = pipelined_rate
        self.policy = policy  # (rate, steps) -> the lr setting
        self.define = define or {}


def falls_twice(first, second):
    return lambda rate, steps: f"multistep({rate}, at = ({max(1, int(steps * first))}, {max(2, int(steps * second))}))"


NETWORKS = {
    "resnet20": Network("resnet", 128, 0.1, 0.01, falls_twice(0.5, 0.75), {"depth": 20}),
    "alexnet": Network("alexnet", 100, 1e-3, 1e-3, falls_twice(0.6, 0.8)),
    "vgg16": Network("vgg16", 100, 0.1, 0.1, lambda rate, steps: f"step({rate}, every = {max(1, steps // 10)}, gamma = 0.5)"),
}


class Row:
    """A line of a table: a schedule at a cut. `total`: steps, where they are not those of the others; `rate` likewise. `base`:
    the row that its difference refers to."""

    def __init__(self, schedule, ppv, name=None, total=None, cure=None, rate=None, base="sequential"):
        self.base = base
        self.cure = cure
        self.rate = rate
        self.schedule = schedule
        self.ppv = ppv
        self.total = total
        self.name = name or "_".join([schedule.split("(")[0], *map(str, ppv)])


def add_options(parser):
    parser.add_argument("--data", default=DATA)
    parser.add_argument("--seeds", type=common.numbers, default=[1])
    parser.add_argument("--only")
    parser.add_argument("--rate", type=float)
    parser.add_argument("--pipelined-rate", type=float)
    parser.add_argument("--jobs", type=common.whole, default=1)


def need_data(options):
    options.data = os.path.abspath(options.data)
    if not os.path.isdir(options.data):
        common.fail(f"{options.data}: no such folder. Put CIFAR-10's binary files there or say --data DIR; "
                    "with the data of the workspace: ../shared/data/unpack build/data")


def warmup(steps):
    return min(390, steps // 20)


def make_run(network, row, seed, options):
    steps = row.total or options.steps
    chosen = NETWORKS[network]
    rate = row.rate or (options.pipelined_rate if row.ppv else options.rate)
    cosine = getattr(options, "policy", None) == "cosine"
    settings = {
        "train.batch": chosen.batch,
        "train.steps": steps,
        "train.lr": f"cosine({rate})" if cosine else chosen.policy(rate, options.steps),
        "train.warmup": warmup(options.steps),
        "train.test_every": max(100, options.steps // 8),
        "pipeline.schedule": row.schedule,
        "pipeline.registers": common.placement(row.ppv),
    }
    if row.cure:
        settings["pipeline.cure"] = row.cure
    return common.Run(f"{network}_{row.name}_{steps}_seed{seed}", chosen.file, settings, chosen.define, options.data, steps, seed)


def figures_of(run, options):
    check = run.check()
    report, metrics = run.train(options, *(["--transport", "serial"] if options.jobs > 1 else []))
    return {
        "accuracy": GUESSED if report["diverged"] else round(100 * report["test_accuracy"], 4),
        "diverged": report["diverged"],
        "steps": report["steps"],
        "stability": check["stages"][0]["stability"],
        "staleness": report["stages"][0]["staleness"],
        "predicted_staleness": check["stages"][0]["staleness"],
        "stages": len(report["stages"]),
        "stale_percent": round(100 * check["stale_fraction"], 3),
        "images_per_second": round(common.rate_of(metrics), 2) if options.jobs == 1 else None,  # not of the schedule then
        "curve": [(line["step"], round(100 * line["test_accuracy"], 3)) for line in metrics
                  if line.get("test_accuracy") is not None],
    }


def run_rows(network, rows, options):
    """{row name: [figures of each seed]}, in the order of rows. Seeds are the outer loop: a table stands early. With --jobs, rows
    run side by side, each with its stages in turn on one core: the same accuracies, bit for bit."""
    runs = [make_run(network, row, seed, options) for seed in options.seeds for row in rows]
    finished = common.Finished(options)
    if options.jobs > 1:
        common.side_by_side(lambda run: row_of(run, finished, options), runs, options.jobs)
        options.fresh = False
        finished = common.Finished(options)
    figures = [row_of(run, finished, options) for run in runs]
    return {row.name: figures[at::len(rows)] for at, row in enumerate(rows)}


def row_of(run, finished, options):
    figures = finished.get(run, lambda run: figures_of(run, options))
    after = f", diverged after {figures.get('steps', 0)} steps" if figures["diverged"] else ""
    print(f"{run.name}: {figures['accuracy']:.2f} %{after}", flush=True)
    return figures


def mean(figures):
    return statistics.mean(one["accuracy"] for one in figures)


def spread(figures):
    """Of several seeds: text behind a mean."""
    return f" +- {statistics.stdev(one['accuracy'] for one in figures):.2f}" if len(figures) > 1 else ""


def stability_text(figures):
    """Figures that were kept before this number was known do not have it."""
    return f"{figures['stability']:.2f}" if figures.get("stability") is not None else "-"


def difference(row, results):
    """Points; None where the base has not run, or is the row itself."""
    if row.name == row.base or row.base not in results:
        return None
    return mean(results[row.name]) - mean(results[row.base])


def table(rows, results):
    """Text."""
    lines = [["run", "ppv", "workers", "paper", "staleness", "G", "stale %", "accuracy %", "difference", "images/s"]]
    for row in rows:
        figures = results[row.name]
        first = figures[0]
        points = difference(row, results)
        rate = f"{first['images_per_second']:.0f}" if first["images_per_second"] else "-"
        lines.append([row.name, "(" + ",".join(map(str, row.ppv)) + ")" if row.ppv else "none", first["stages"],
                      2 * first["stages"] if row.ppv else 1, first["staleness"], stability_text(first), f"{first['stale_percent']:.2f}",
                      ("diverged: " if any(one["diverged"] for one in figures) else "") +
                      f"{mean(figures):.2f}{spread(figures)}", "" if points is None else f"{points:+.2f}", rate])
    return common.columns(lines) + "\nworkers: stages here; paper: stages as the paper counts them; staleness: of the first " \
                                   "stage, measured, in its own updates\n(of a run that was resumed: since then); G: its stability number."


def curves(network, rows, options):
    """The command that draws the curves of these runs."""
    files = [f"{row.name}={os.path.relpath(make_run(network, row, options.seeds[0], options).file('metrics.jsonl'), common.ROOT)}"
             for row in rows]
    return "curves: build/pnetc plot -o curves.svg " + " ".join(files)


def flat(network, rows, results, options):
    """All figures with one key each."""
    figures = {"network": network, "steps": options.steps, "batch": NETWORKS[network].batch, "rate": options.rate,
               "pipelined_rate": options.pipelined_rate, "warmup": warmup(options.steps), "seeds": len(options.seeds)}
    for row in rows:
        kept = results[row.name]
        figures[f"{row.name}_accuracy"] = round(mean(kept), 4)
        points = difference(row, results)
        if points is not None:
            figures[f"{row.name}_difference"] = round(points, 4)
        for key in ("staleness", "predicted_staleness", "stages", "stale_percent", "images_per_second", "commit"):
            if kept[0][key] is not None:
                figures[f"{row.name}_{key}"] = kept[0][key]
        for seed, one in zip(options.seeds, kept):
            figures[f"{row.name}_seed{seed}_accuracy"] = one["accuracy"]
            figures[f"{row.name}_seed{seed}_curve"] = " ".join(f"{step}:{value}" for step, value in one["curve"])
    return figures
