#!/usr/bin/env python3
"""tools/vendors/report.py [--report FILE] [--check] [--slack] [--forgive REASON] DEVICE.json ...

Prints the compilers' statistics of vknerf's pipelines and compares them with the budget; reads the output of
`vknerf bench --suite programs --json` for each device. tools/vendors.sh explains the options.
"""
import argparse
import json
import os
import sys

EXCEPTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exceptions.tsv")
COLUMNS = ("registers", "spilled", "scratch_bytes", "shared_bytes", "code_bytes", "occupancy", "compile_ms")

# Limits for each pipeline of the step on the path that auto is expected to choose, and for their total compile time.
BUDGET = {"spilled": 0, "scratch_bytes": 0, "code_bytes": 48 << 10}
# Turnip counts stores to scratch memory as spills, and does not report the memory's size.
UNREPORTED = {("adreno", "scratch_bytes")}
COMPILE_MS = {"intel": 6000}
COMPILE_MS_OTHERS = 3000
STEP_COMPILE_MS = 20000
# Compile time grows when other processes share the core and its caches. With --slack twice the limit is allowed, and
# an exception is reported as needless only below half of the limit.
SLACK = {"compile_ms": 2}


class Program:
    def __init__(self, device, values):
        self.device, self.values = device, values
        self.path, self.name = values["path"], values["program"]

    def counts(self):
        """Whether the budget applies to the pipeline."""
        return self.values["expected"] and self.values["use"] == "step"

    def text(self, name):
        value = self.values.get(name)
        return "" if value is None else f"{value:.0f}"

    def row(self):
        return [self.device, self.path, self.name] + [self.text(name) for name in COLUMNS]


def read(path):
    device = os.path.splitext(os.path.basename(path))[0]
    with open(path, encoding="utf-8") as file:
        return [Program(device, values) for values in json.load(file)["programs"]]


def measures(program):
    """(quantity, value, limit) of a pipeline that compiles."""
    vendor = program.device.split("-")[0]
    for what, allowed in {**BUDGET, "compile_ms": COMPILE_MS.get(vendor, COMPILE_MS_OTHERS)}.items():
        if (vendor, what) in UNREPORTED:
            continue
        yield what, program.values.get(what), allowed


def judge(programs, slack):
    """({(device, path, program, what): description} of what is over the limit, the same of what is close to it)"""
    over, near, sums = {}, {}, {}
    for program in programs:
        key = (program.device, program.path, program.name)
        if not program.counts():
            continue
        if "fault" in program.values:
            over[key + ("compiles",)] = program.values["fault"]
            continue
        for what, value, allowed in measures(program):
            factor = SLACK.get(what, 1) if slack else 1
            if value is None:
                over[key + (what,)] = "the driver does not report it"
            elif value > allowed * factor:
                over[key + (what,)] = f"{value:.0f}, limit {allowed}"
            elif what in SLACK and value > allowed / 2:
                near[key + (what,)] = f"{value:.0f}"
        sums.setdefault(key[:2], []).append(program.values["compile_ms"])
    for (device, path), times in sums.items():
        key = (device, path, "step", "compile_ms")
        if sum(times) > STEP_COMPILE_MS * (SLACK["compile_ms"] if slack else 1):
            over[key] = f"{sum(times):.0f}, limit {STEP_COMPILE_MS}"
        elif sum(times) > STEP_COMPILE_MS / 2:
            near[key] = f"{sum(times):.0f}"
    return over, near


def read_exceptions():
    """{(device, path, program, what): reason}"""
    with open(EXCEPTIONS, encoding="utf-8") as file:
        lines = [line.rstrip("\n").split("\t") for line in file if line.strip() and not line.startswith("#")]
    for line in lines:
        if len(line) != 5 or not line[4].strip():
            sys.exit(f"{EXCEPTIONS}: not five fields (device, precision, program, what, reason): {' '.join(line)}")
    return {tuple(line[:4]): line[4] for line in lines}


def write_exceptions(exceptions):
    with open(EXCEPTIONS, encoding="utf-8") as file:
        head = [line for line in file if line.startswith("#")]
    with open(EXCEPTIONS, "w", encoding="utf-8") as file:
        file.writelines(head)
        file.writelines("\t".join(key + (reason,)) + "\n" for key, reason in exceptions.items())


def was_compiled(key, programs):
    """Whether a pipeline within the budget was compiled for the exception's device, in whatever precision."""
    return any(program.counts() and program.device == key[0] for program in programs)


def forgive(programs, over, near, reason):
    exceptions = {key: why for key, why in read_exceptions().items()
                  if key in over or key in near or not was_compiled(key, programs)}
    exceptions.update({key: reason for key in over if key not in exceptions})
    write_exceptions(exceptions)


def check(programs, over, near):
    """Prints findings; returns True if there are none."""
    exceptions = read_exceptions()
    findings = [f"{' '.join(key)}: {how}" for key, how in over.items() if key not in exceptions]
    findings += [f"{' '.join(key)}: within the budget; remove its line from tools/vendors/exceptions.tsv"
                 for key in exceptions if key not in over and key not in near and was_compiled(key, programs)]
    for finding in findings:
        print(f"FAILED: {finding}")
    forgiven = sum(key in exceptions for key in over)
    counted = sum(program.counts() for program in programs)
    print(f"{counted} pipelines that auto would choose; {len(findings)} findings, {forgiven} exceptions")
    return not findings


def print_table(programs, over):
    head = ("device", "precision", "program", "registers", "spilled", "scratch", "shared", "code", "occupancy", "ms")
    rows = [head] + [tuple(cell or "-" for cell in program.row()) for program in programs]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row, program in zip(rows, [None] + programs):
        line = "  ".join(cell.ljust(width) if i < 3 else cell.rjust(width)
                         for i, (cell, width) in enumerate(zip(row, widths)))
        if program is None:
            line += "  budget"
        elif "fault" in program.values:
            line += f"  {program.values['fault']}"
        elif program.counts():
            bad = [what for *key, what in over if tuple(key) == (program.device, program.path, program.name)]
            line += "  over: " + ", ".join(bad) if bad else "  ok"
        print(line)
    print(f"Budget for each pipeline of the step on the path that auto is expected to choose: no spills, no scratch, "
          f"{BUDGET['code_bytes']} bytes of code, {COMPILE_MS_OTHERS} ms to compile (Intel {COMPILE_MS['intel']}); "
          f"all pipelines of the step {STEP_COMPILE_MS} ms.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--report")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--slack", action="store_true")
    parser.add_argument("--forgive")
    parser.add_argument("devices", nargs="+")
    args = parser.parse_args()
    programs = [program for path in args.devices for program in read(path)]
    over, near = judge(programs, args.slack)
    if args.report:
        with open(args.report, "w", encoding="utf-8") as file:
            file.writelines("\t".join(program.row()) + "\n" for program in programs)
    print_table(programs, over)
    if args.forgive:
        forgive(programs, over, near, args.forgive)
    if args.check and not check(programs, over, near):
        sys.exit(1)


if __name__ == "__main__":
    main()
