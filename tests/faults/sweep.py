#!/usr/bin/env python3
"""tests/faults/sweep.py [NAME ...] [--count N | --all] [--seed S] [--jobs J] [--resume FILE] [--case JSON]

Injects faults into runs in many ways, and checks that vknerf ends as it should and that nothing is lost. Every NAME is
a module of the folder sweeps; without names all of them run, each with as many cases as in the tests, with --count
cases, or with --all. Results are JSON lines in build/faults/NAME.jsonl or, with --resume, in FILE, whose cases are not
repeated. Exits with 1 after problems, and prints the commands that reproduce them.
"""
import argparse
import collections
import concurrent.futures
import importlib
import json
import os
import queue
import random
import sys
import time
import traceback

sys.dont_write_bytecode = True
import faults  # noqa: E402

FOLDER = os.path.dirname(os.path.abspath(__file__))


def names():
    """Returns the names of all sweeps."""
    return sorted(name[:-3] for name in os.listdir(os.path.join(FOLDER, "sweeps")) if name.endswith(".py"))


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__.splitlines()[0], description="Sweeps: " + ", ".join(names()))
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[[], *names()])
    parser.add_argument("--count", type=int, help="how many cases of each sweep")
    parser.add_argument("--all", action="store_true", help="every case")
    parser.add_argument("--seed", type=int, default=1, help="which cases, and what is random in them")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    parser.add_argument("--resume", metavar="FILE", help="where results are and go on")
    parser.add_argument("--case", metavar="JSON", help="this one case, as a failure names it")
    parser.add_argument("--keep", action="store_true", help="leave the folders of the last cases")
    options = parser.parse_args()
    options.names = options.names or names()
    if len(options.names) > 1 and (options.case or options.resume):
        parser.error("--case and --resume are of one sweep")
    return options


# ---- results ---------------------------------------------------------------------------------------------

class Results:
    """JSON lines with the outcomes of cases."""

    def __init__(self, path, keep):
        self.path = path
        self.lines = []
        if not keep:
            faults.remove(path)
        elif os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.lines = [json.loads(line) for line in file]

    def has(self, case):
        return any(line["case"] == case for line in self.lines)

    def add(self, case, outcome, seconds):
        line = {"case": case, "problems": outcome.problems, "seconds": round(seconds, 2), **outcome.facts}
        self.lines.append(line)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def command_of(name, case, seed):
    """Returns the command that repeats a case."""
    text = json.dumps(case, ensure_ascii=True).replace("'", "'\\''")
    return f"tests/faults/sweep.py {name} --seed {seed} --case '{text}'"


def print_problems(name, seed, results):
    for line in results.lines:
        if line["problems"]:
            print(f"FAILED: {command_of(name, line['case'], seed)}")
            for problem in line["problems"]:
                print(f"    {problem}")


def print_table(rows):
    print(f"\n{'sweep':14}{'cases':>8}{'failed':>8}{'seconds':>9}{'of CPU':>9}  exit codes")
    for name, results, seconds, processor in rows:
        codes = collections.Counter(str(line["code"]) for line in results.lines if "code" in line)
        said = ", ".join(f"{code}: {count}" for code, count in sorted(codes.items()))
        failed = sum(1 for line in results.lines if line["problems"])
        print(f"{name:14}{len(results.lines):8}{failed:8}{seconds:9.1f}{processor:9.1f}  {said}")


# ---- running ---------------------------------------------------------------------------------------------

def choose(module, shared, options):
    """Returns the cases to run."""
    if options.case:
        return [json.loads(options.case)]
    rnd = random.Random(options.seed)
    cases = module.cases(shared)
    count = len(cases) if options.all else options.count or module.SHORT
    if hasattr(module, "pick") and count < len(cases):
        return module.pick(rnd, cases, count)
    return faults.draw(rnd, cases, count)


def try_one(module, case, sandboxes, seed):
    """Runs a case in a free sandbox."""
    sandbox = sandboxes.get()
    began = time.monotonic()
    try:
        sandbox.clear()
        sandbox.rnd = random.Random(f"{seed} {json.dumps(case)}")
        return module.try_case(case, sandbox), time.monotonic() - began
    except (OSError, ValueError, KeyError, TypeError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"the sweep itself: {os.path.basename(where.filename)}:{where.lineno}: {error!r}"
        return faults.Outcome([said]), time.monotonic() - began
    finally:
        sandboxes.put(sandbox)


def run_cases(module, cases, sandboxes, results, options):
    """Runs cases, as many at a time as there are sandboxes."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(try_one, module, case, sandboxes, options.seed): case for case in cases}
        try:
            for future in concurrent.futures.as_completed(futures):
                results.add(futures[future], *future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def run_sweep(name, work, shared, options):
    """Runs the cases of a sweep that its results lack; returns the results."""
    module = importlib.import_module(f"sweeps.{name}")
    results = Results(options.resume or os.path.join(work, name + ".jsonl"), keep=bool(options.resume))
    cases = [case for case in choose(module, shared, options) if not results.has(case)]
    sandboxes = queue.Queue()
    for job in range(options.jobs):
        sandboxes.put(faults.Sandbox(shared.path(f"{name}.{job}"), shared))
    run_cases(module, cases, sandboxes, results, options)
    return results


def processor_seconds():
    """Returns the processor time of this program and its children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run_sweeps(work, shared, options):
    """Runs all requested sweeps; returns whether everything held."""
    faults.make_scene(shared.scene)
    rows = []
    for name in options.names:
        began, used = time.monotonic(), processor_seconds()
        results = run_sweep(name, work, shared, options)
        rows.append((name, results, time.monotonic() - began, processor_seconds() - used))
        print_problems(name, options.seed, results)
        sys.stdout.flush()
    print_table(rows)
    return not any(line["problems"] for _, results, *_ in rows for line in results.lines)


def main():
    options = parse_arguments()
    work = os.path.join(faults.BUILD, "faults")
    shared = faults.Sandbox(os.path.join(work, f"scratch.{os.getpid()}"))
    try:
        return 0 if run_sweeps(work, shared, options) else 1
    finally:
        if options.keep:
            print(f"left: {shared.folder}")
        else:
            faults.remove(shared.folder)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except faults.Broken as error:
        sys.exit(f"sweep.py: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
