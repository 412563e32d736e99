"""steady: what a program's --trace says of its run once it is under way: medians over the minibatches, so that the first ones,
which fault pages in and fill the pipe, and the last ones, which empty it, do not count. Imported by cost_model, cuts,
paper_speedup, schedules.
"""
import json
import statistics

WORK_TIME = "on a core us"
STEPS = ("forward", "backward", "weight part", "update")  # weight part: where backwards are split


def of(path):
    """Of a trace of 8 minibatches or more, in us a minibatch: {"step": the real time from one update to the next, of the slowest
    stage, "busy": [of each stage, the time that its thread had a core for forward, backward and update, waits left out],
    "wait": [of each stage, the real time that it waited for other stages]}."""
    with open(path, encoding="utf-8") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    tracks = [sorted((e for e in events if e["tid"] == track), key=lambda e: e["ts"]) for track in sorted({e["tid"] for e in events})]
    return {"step": max(step_of(track) for track in tracks), "busy": [busy_of(track) for track in tracks],
            "wait": [wait_of(track) for track in tracks]}


def intervals_of(track):
    """From the end of one update to that of the next."""
    updates = [event["ts"] + event["dur"] for event in track if event["name"] == "update"]
    return list(zip(updates, updates[1:]))


def step_of(track):
    return statistics.median(end - begin for begin, end in intervals_of(track))


def wait_of(track):
    waits = [event for event in track if event["cat"] == "wait"]
    return statistics.median(sum(wait["dur"] for wait in waits if begin <= wait["ts"] < end) for begin, end in intervals_of(track))


def busy_of(track):
    waits = [(event["ts"], event["args"][WORK_TIME]) for event in track if event["cat"] == "wait"]
    times, at = {name: [] for name in STEPS}, 0
    for event in (e for e in track if e["cat"] == "step"):
        took = event["args"][WORK_TIME]
        while at < len(waits) and waits[at][0] < event["ts"] + event["dur"]:
            took -= waits[at][1]
            at += 1
        if event["name"] in times:
            times[event["name"]].append(took)
    slices = round(len(times["forward"]) / len(times["update"]))  # microbatches of a minibatch
    passes = [times[name] for name in STEPS[:-1] if times[name]]
    whole = min(map(len, passes)) // slices
    work = [sum(sum(times[n * slices:(n + 1) * slices]) for times in passes) for n in range(whole)]
    return statistics.median(work) + statistics.median(times["update"])
