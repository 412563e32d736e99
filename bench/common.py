"""common: what the commands of bench/ share: options, building and running programs, runs that can be stopped and
continued, and result files. Python's standard library only; imported by the commands beside it, no command itself.

A command keeps what it has in build/bench/COMMAND/ ($PNETC_BENCH/COMMAND/ if that is set): a folder for each run (its
program, metrics, checkpoint), finished.json with the figures of runs that ended, results.json with all figures of the last
table, and table.txt. A run that was stopped (Ctrl-C, or a lost machine) goes on from its last checkpoint when the command is
given again.
"""
import argparse
import datetime
import fcntl
import hashlib
import json
import os
import platform
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, os.environ.get("B", "build"))
PNETC = os.path.join(BUILD, "pnetc")
COMMAND = os.path.basename(sys.argv[0])
FOLDER = os.path.join(os.environ.get("PNETC_BENCH") or os.path.join(BUILD, "bench"), COMMAND)


DIVERGED = 3  # exit status of a program whose training diverged; its report says so, too


def fail(text):
    sys.exit(f"{COMMAND}: {text}")


# ---- options ----
class Parser(argparse.ArgumentParser):
    """Options that all commands have; `help_text` is printed whole for --help."""

    def __init__(self, help_text):
        super().__init__(usage=help_text.split("usage: ")[1].split("\n\n")[0], add_help=False, allow_abbrev=False)
        self.help_text = help_text.strip()
        self.add_argument("--json")
        self.add_argument("--fresh", action="store_true")
        self.add_argument("--verbose", action="store_true")
        self.add_argument("--help", "-h", action="store_true")

    def add_length(self, short, full, unit="steps"):
        """--short (the default), --full, or --steps N: options.steps, and options.full for what else differs."""
        self.set_defaults(full=False, lengths=(short, full))
        group = self.add_mutually_exclusive_group()
        group.add_argument("--short", dest="full", action="store_false")
        group.add_argument("--full", dest="full", action="store_true")
        self.add_argument(f"--{unit}", dest="steps", type=whole)

    def read(self):
        options = self.parse_args()
        if options.help:
            print(self.help_text)
            sys.exit(0)
        if "lengths" in options and options.steps is None:
            options.steps = options.lengths[options.full]
        if not os.access(PNETC, os.X_OK):
            fail(f"{PNETC} is not built: make")
        signal.signal(signal.SIGINT, lambda *_: stopped())
        return options


def whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("a number from 1 is wanted")
    return number


def numbers(text):
    """Of --seeds 1,2,3."""
    return [int(word) for word in text.split(",")]


def choose(runs, only, parser):
    """The runs of an --only NAME,...; all without one."""
    if not only:
        return runs
    by_name = {run.name: run for run in runs}
    for name in only.split(","):
        if name not in by_name:
            parser.error(f"no run {name}; there are {', '.join(by_name)}")
    return [run for run in runs if run.name in only.split(",")]


# ---- files ----
def write_text(path, text):
    """Whole or not at all; straight to a device, as /dev/stdout."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    whole_path = path if os.path.exists(path) and not os.path.isfile(path) else path + ".part"
    with open(whole_path, "w", encoding="utf-8") as file:
        file.write(text)
    if whole_path != path:
        os.replace(whole_path, path)


def write_json(path, value):
    write_text(path, json.dumps(value, indent=1) + "\n")


def read_json(path):
    """None: there is no such file, or a torn one."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def read_lines(path):
    """The objects of a file of JSON lines; a torn last line is left out."""
    objects = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                objects.append(json.loads(line))
    except (FileNotFoundError, json.JSONDecodeError):
        pass
    return objects


def random_images(folder, train, test, classes=10):
    """The files of `raw` data: random CIFAR-like images, for what only takes time. Returns the folder."""
    os.makedirs(folder, exist_ok=True)
    source = random.Random(1)
    for part, count in (("train", train), ("test", test)):
        for name, data in (("u8", source.randbytes(3072 * count)),
                           ("labels", bytes(source.randrange(classes) for _ in range(count)))):
            with open(os.path.join(folder, f"{part}.{name}"), "wb") as file:
                file.write(data)
    return folder


# ---- programs ----
def c_compiler():
    """Its words."""
    return shlex.split(os.environ.get("CC", "cc"))


def command(words, **more):
    """Runs a command in the root of the repository; its output, or the end of this program."""
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=False, **more)
    if done.returncode:
        fail(f"{' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def placement(ppv):
    """Of the registers setting."""
    return f"ppv({', '.join(map(str, ppv))})" if ppv else "none"


class Run:
    """A program and how long it trains: an example with definitions (-D) and settings (--set), data and seed."""

    def __init__(self, name, network, settings, define=None, data=None, steps=0, seed=1):
        self.name = name
        self.network = network
        self.arguments = [os.path.join(ROOT, "examples", network + ".pnet")]
        for key, value in (define or {}).items():
            self.arguments += ["-D", f"{key}={value}"]
        for key, value in settings.items():
            self.arguments += ["--set", f"{key}={value}"]
        self.data = data
        self.steps = steps
        self.seed = seed
        self.folder = os.path.join(FOLDER, "runs", name)

    def key(self):
        """What its figures depend on, but for the code of pnetc itself: --fresh after changes there."""
        with open(self.arguments[0], "rb") as file:
            text = hashlib.sha256(file.read()).hexdigest()[:12]
        data = os.path.realpath(self.data) if self.data else "none"
        return f"{self.name} {' '.join(self.arguments[1:])} steps={self.steps} seed={self.seed} data={data} file={text}"

    def check(self):
        return json.loads(command([PNETC, "check", "--json", *self.arguments]))

    def plan(self):
        return json.loads(command([PNETC, "plan", "--json", *self.arguments]))

    def build(self):
        """The words that begin the program's command line."""
        folder = os.path.join(self.folder, "program")
        command([PNETC, "build", *self.arguments, "-o", folder, "--quiet"])
        words = [os.path.join(folder, self.network), "--seed", str(self.seed), "--steps", str(self.steps)]
        return words + (["--data", self.data] if self.data else [])

    def file(self, name):
        return os.path.join(self.folder, name)

    def measure(self, options, *more):
        """Runs it from start to end: its report, the intervals of its metrics, and the peak of its resident bytes."""
        words = [*self.build(), "--report", self.file("report.json"), "--metrics", self.file("metrics.jsonl"), *more]
        peak = run_program(words, options)
        report = read_json(self.file("report.json"))
        if report["steps"] < self.steps:
            stopped()
        return report, read_lines(self.file("metrics.jsonl")), peak

    def train(self, options, *more):
        """Trains it, from where it stopped if it did: (report, metrics). Ends this program when it is stopped again."""
        checkpoint = self.file("checkpoint.safetensors")
        state = read_json(self.file("state.json"))
        if options.fresh or not state or state["key"] != self.key():
            shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder, exist_ok=True)
        write_json(self.file("state.json"), {"key": self.key()})
        words = [*self.build(), "--report", self.file("report.json"), "--metrics", self.file("metrics.jsonl"),
                 "--checkpoint", checkpoint, "--checkpoint-every", str(max(1, min(self.steps // 4, 250))), *more]
        if os.path.exists(checkpoint):
            words += ["--resume", checkpoint]
        run_program(words, options)
        report = read_json(self.file("report.json"))
        if report["steps"] < self.steps and not report["diverged"]:
            stopped()
        return report, read_lines(self.file("metrics.jsonl"))


def stopped():
    print(f"\n{COMMAND}: stopped; the same command goes on from here", file=sys.stderr)
    sys.exit(130)


def run_program(words, options):
    """Runs a program that pnetc built; returns the peak of its resident bytes. An interrupt is the program's alone: it ends
    after the minibatches in flight and writes its files, which is waited for."""
    if options.verbose:
        print("  $", " ".join(words), flush=True)
    output = None if options.verbose else subprocess.PIPE
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(words if options.verbose else [*words, "--quiet"], cwd=ROOT, stdout=output, text=True,
                                   stderr=subprocess.STDOUT if output else None,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        text = process.stdout.read() if output else ""
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        signal.signal(signal.SIGINT, before)
    if process.returncode not in (0, DIVERGED):
        fail(f"{' '.join(words)}: exit {process.returncode}\n{text}")
    return usage.ru_maxrss * 1024


def rate_of(metrics):
    """Images a second: the median over intervals, without the first ones, in which the pipe fills."""
    rates = [row["images_per_second"] for row in metrics if row.get("images_per_second")]
    return statistics.median(rates[2:] or rates or [0.0])


class Finished:
    """Figures of runs that have ended, kept in finished.json."""

    def __init__(self, options):
        self.path = os.path.join(FOLDER, "finished.json")
        self.kept = read_json(self.path) or {}
        self.fresh = options.fresh

    def get(self, run, make):
        """The figures of a run: the kept ones, or make(run), kept with the commit they come from."""
        key = run.key()
        if key in self.kept and not self.fresh:
            print(f"{run.name}: kept (--fresh runs it again)", flush=True)
            return self.kept[key]
        begun = datetime.datetime.now()
        figures = {**make(run), "commit": commit()}
        print(f"{run.name}: {(datetime.datetime.now() - begun).total_seconds():.0f} s", flush=True)
        self.keep(key, figures)
        return figures

    def keep(self, key, figures):
        """Other processes may keep figures in the same file (side_by_side)."""
        with open(self.path + ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.kept = {**(read_json(self.path) or {}), key: figures}
            write_json(self.path, self.kept)


def side_by_side(work, tasks, jobs):
    """work(task) for each task in a process of its own, `jobs` of them at a time. When one fails or is stopped no other begins,
    and this program ends with those that run."""
    running, failed, tasks = set(), 0, list(tasks)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.stdout.flush()
    while running or (tasks and not failed):
        if tasks and not failed and len(running) < jobs:
            task = tasks.pop(0)
            process = os.fork()
            if process == 0:
                signal.signal(signal.SIGINT, lambda *_: stopped())
                status = 1
                try:
                    work(task)
                    status = 0
                except SystemExit as end:
                    status = end.code if isinstance(end.code, int) else 1
                    print(end.code if status == 1 else "", end="", file=sys.stderr, flush=True)
                except Exception:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    os._exit(status)
            running.add(process)
            continue
        process, status = os.wait()
        running.discard(process)
        failed = failed or os.waitstatus_to_exitcode(status)
    if failed:
        sys.exit(failed)
    signal.signal(signal.SIGINT, lambda *_: stopped())


# ---- results ----
def first_line(words):
    try:
        done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=False)
    except FileNotFoundError:
        return "none"
    lines = done.stdout.splitlines()
    return lines[0].strip() if lines and not done.returncode else "unknown"


def commit():
    """Of the repository; + behind it when files differ from that commit; "unknown" outside of one or without git."""
    if not shutil.which("git") or not os.path.exists(os.path.join(ROOT, ".git")):
        return "unknown"
    name = first_line(["git", "rev-parse", "--short=12", "HEAD"])
    changed = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=ROOT, text=True, capture_output=True,
                             check=False).stdout
    return name + ("+" if changed.strip() else "")


def proc_value(path, key):
    """Of `key : value` lines, as /proc/cpuinfo has."""
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                if line.startswith(key):
                    return line.split(":", 1)[1].strip()
    except FileNotFoundError:
        pass
    return "unknown"


def surroundings():
    """Commit, versions and machine: of every results file."""
    doctor = subprocess.run([PNETC, "doctor"], cwd=ROOT, text=True, capture_output=True, check=False).stdout
    library = [" ".join(line.split()[1:3]) for line in doctor.splitlines() if line.split()[1:2] == ["oneDNN"]]
    return {
        "commit": commit(),
        "pnetc": first_line([PNETC, "--version"]),
        "library": library[0] if library else "none",
        "compiler": first_line([*c_compiler(), "--version"]),
        "processor": proc_value("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory": proc_value("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "date": datetime.date.today().isoformat(),
    }


def finish(options, figures, table):
    """Prints the table; writes results.json and table.txt, and the file of --json."""
    print("\n" + table)
    figures = {**surroundings(), **figures}
    write_json(os.path.join(FOLDER, "results.json"), figures)
    write_text(os.path.join(FOLDER, "table.txt"), table + "\n")
    print(f"\nresults: {os.path.relpath(os.path.join(FOLDER, 'results.json'), ROOT)}")
    if options.json:
        write_json(options.json, figures)


def columns(rows):
    """A table as text: the first row is its head; the first column is left-aligned."""
    widths = [max(len(str(row[i])) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                               for i, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)
