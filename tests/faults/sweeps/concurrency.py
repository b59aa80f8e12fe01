"""Tests several programs on one run: simultaneous trainings, simultaneous resumes, readers during a training."""
import glob
import json
import os
import re
import signal
import time

import faults

HOLDS = """Of two trainings into one folder one succeeds, the other names the owner in a line, and their files do not
mix; without --out each has its own folder. Readers during a training never fail. Memory, threads and descriptors do
not grow with the steps."""
SHORT = 1
STEPS = 320
# Allowed growth of resident memory after the first tenth of a long training.
GROWTH_KIB = 8 << 10


def cases(_shared):
    pairs = [[kind, n] for kind in ("one folder", "no folder", "two models", "two resumes") for n in range(8)]
    return pairs + [["readers", n] for n in range(3)] + [["growth", 0]]


def pick(rnd, found, count):
    """Keeps long cases for the long sweep."""
    return faults.draw(rnd, [case for case in found if case[0] not in ("readers", "growth")], count)


def start_two(sandbox, first, second, delay):
    """Returns both programs' ends; the second starts `delay` seconds after the first."""
    processes = [sandbox.start(*first)]
    time.sleep(delay)
    processes.append(sandbox.start(*second))
    return [faults.wait(process, 100) for process in processes]


def check_one_got(ended):
    """Returns problems of two programs with one folder: they may run one after the other, but not at the same time."""
    codes = sorted(one.code for one in ended if one.code != faults.HANG)
    problems = [problem for one in ended for problem in faults.check_ended(one, (faults.DONE, faults.FAILED,
                                                                                faults.BAD_INPUT))]
    if faults.DONE not in codes:
        problems.append(f"neither got the folder: {[one.last_line() for one in ended]}")
    return problems


def try_pair(kind, sandbox, delay):
    """Runs two trainings or resumes in one folder."""
    run = sandbox.path("run")
    if kind == "two resumes":
        sandbox.train(steps=16)
        commands = [["train", "--resume", run, "--quiet", "--steps", steps] for steps in (STEPS, STEPS + 80)]
    else:
        other = ["--seed", 7] if kind == "one folder" else ["--set", "grid.levels=6"]
        commands = [sandbox.training(steps=STEPS // 2), sandbox.training(*other, steps=STEPS)]
    ended = start_two(sandbox, *commands, delay)
    problems = check_one_got(ended)
    step, wrong = faults.check_run(run)
    if not any(one.code == faults.DONE and str(step) in map(str, command) for one, command in zip(ended, commands)):
        problems.append(f"the checkpoint is of step {step}, at which no finished training ended")
    return ended, problems + wrong + faults.check_goes_on(sandbox, run, step)


def try_own_folders(sandbox):
    """Runs two trainings at the same time without a folder name."""
    command = ["train", sandbox.scene, *faults.model_options(), "--steps", 32, "--quiet"]
    ended = start_two(sandbox, command, command, 0)
    runs = glob.glob(sandbox.path("runs", "*"))
    problems = [problem for one in ended for problem in faults.check_ended(one, (faults.DONE,))]
    if len(runs) != 2:
        problems.append(f"{len(runs)} folders instead of two")
    for run in runs:
        problems += faults.prefixed(os.path.basename(run), faults.check_finished(run, 32))
    return ended, problems


def try_readers(sandbox):
    """Reports and evaluates a run that is being written."""
    run = sandbox.path("run")
    process = sandbox.start(*sandbox.training(steps=100000))
    problems = [] if faults.wait_for_file(run + "/checkpoint.safetensors", process) else ["no checkpoint"]
    for n in range(40):
        command = "report" if n % 4 else "eval"
        problems += faults.prefixed(command, faults.check_ended(sandbox.run(command, run), (faults.DONE,)))
    process.send_signal(signal.SIGTERM)
    ended = faults.wait(process)
    return [ended], problems + faults.check_ended(ended, (faults.INTERRUPTED,))


def look_at(process, run):
    """Returns (step, resident KiB, threads, descriptors) of a training; None before it begins and after it ends."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
            status = file.read()
        step = json.loads((faults.read_file(run + "/metrics.jsonl") or b"").splitlines()[-1])["step"]
        numbers = [int(re.search(rf"{name}:\s+(\d+)", status)[1]) for name in ("VmRSS", "Threads")]
        return step, *numbers, len(os.listdir(f"/proc/{process.pid}/fd"))
    except (OSError, IndexError, KeyError, TypeError, ValueError):
        return None


def try_growth(sandbox):
    """Checks the resources of a long training."""
    run, seen = sandbox.path("run"), []
    process = sandbox.start(*sandbox.training("--save-every", 500, "--eval-every", 500, steps=6000))
    while process.poll() is None:
        now = look_at(process, run)
        seen += [now] if now and now[0] >= 600 else []
        time.sleep(0.2)
    ended = faults.wait(process)
    problems = faults.check_ended(ended, (faults.DONE,))
    if len(seen) < 5:
        return [ended], [*problems, f"seen {len(seen)} times only"]
    first, last = seen[0], seen[-1]
    if last[1] - first[1] > GROWTH_KIB or last[2] > first[2] or last[3] > first[3] + 1:
        problems.append(f"grows from {first} to {last} (step, KiB, threads, descriptors)")
    return [ended], problems


def try_case(case, sandbox):
    kind, number = case
    if kind == "no folder":
        ended, problems = try_own_folders(sandbox)
    elif kind == "readers":
        ended, problems = try_readers(sandbox)
    elif kind == "growth":
        ended, problems = try_growth(sandbox)
    else:
        ended, problems = try_pair(kind, sandbox, (0, 0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)[number])
    facts = {"code": "+".join(str(one.code) for one in ended), "said": [one.last_line() for one in ended]}
    return faults.Outcome(problems, facts)
