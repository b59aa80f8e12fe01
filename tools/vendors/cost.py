#!/usr/bin/env python3
"""tools/vendors/cost.py [--write | --check] DEVICE.json ...

Predicts the time of each pass of a training step on GPUs, from the compilers' statistics of its pipelines
(`vknerf bench --suite programs --json`, kept by tools/vendors.sh --json) and the cost model's work. Prints two tables;
--write puts them into docs/cost_model.md, which lists the assumptions; --check fails if the document has others,
unless it was made with other drivers.
"""
import argparse
import itertools
import json
import os
import re
import sys

DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/cost_model.md")
BEGIN, END = "<!-- tools/vendors/cost.py -->\n", "<!-- end of tools/vendors/cost.py -->\n"


class Gpu:
    """Peak rates that the vendors publish: units that issue instructions (SIMDs, quarters of an SM, vector engines),
    their clock, memory bytes/s, FLOP/s in f32 and on f16 matrices with f32 accumulators. atomics/s are assumed: one a
    clock for each slice of the L2 cache. `subgroups`: subgroups at once on a unit, if compilers do not report them.
    `cores` have an L1 cache each. `floats`: the vendor's own driver adds f32, also where Mesa's adds fixed point."""

    def __init__(self, name, compiled, cores, units, clock, memory, flops, matrix_flops, atomics, subgroups,
                 floats=True):
        self.name, self.compiled = name, compiled
        self.cores, self.units, self.clock, self.memory = cores, cores * units, clock, memory
        self.floats = floats
        self.flops, self.matrix_flops, self.atomics, self.subgroups = flops, matrix_flops, atomics, subgroups


GPUS = (
    Gpu("RTX 4090", "nvidia-172", 128, 4, 2.52e9, 1008e9, 82.6e12, 165e12, 100e9, 12),
    Gpu("RX 7900 XTX", "amd-navi31", 96, 2, 2.30e9, 960e9, 61e12, 123e12, 110e9, 16),
    Gpu("Arc B580", "intel-bmg", 20, 8, 2.67e9, 456e9, 13.7e12, 117e12, 64e9, 8),
    Gpu("H100", "nvidia-172", 132, 4, 1.75e9, 3350e9, 67e12, 600e12, 130e9, 12),
    Gpu("H200", "nvidia-172", 132, 4, 1.75e9, 4800e9, 67e12, 600e12, 130e9, 12),
)

# {(GPU, pass): milliseconds per step} of vknerf train --profile on the GPU, printed beside the prediction. H100: lego at
# 400x400, BENCHMARKS.md.
MEASURED = {("H100", name): ms for name, ms in {
    "march_rays": 0.160, "encode_samples": 0.160, "field_forward": 0.193, "composite": 0.062, "field_backward": 0.266,
    "scatter_gradients": 0.333, "check_gradients": 0.042, "update_weights": 0.152}.items()}

# Iterations that a compiler (ACO, NAK, brw) assumes for a loop, by depth; its cycle estimates are divided by them.
LOOP_RUNS = {"amd": (1, 8, 32), "nvidia": (1, 10, 38), "intel": (1, 10, 100)}

# Passes whose shaders have a loop on GPUs: iterations of all invocations together for a subgroup size, the largest
# number of invocations, and the depth of the loop.
RUNS = {
    "encode_samples": (lambda w, size: w["marched"] * w["levels"], lambda w, size: 4096 * 64, 2),
    # Several invocations share a sample.
    "field_forward": (lambda w, size: w["marched"] * w["forward_parts"],
                      lambda w, size: 4096 * 64 * w["forward_parts"], 1),
    # One subgroup per ray, which composites as many samples at once as it has invocations.
    "composite": (lambda w, size: max(w["rays"] * size, w["live"]), lambda w, size: w["rays"] * size, 2),
    "field_backward": (lambda w, size: w["live"] * w["backward_parts"],
                       lambda w, size: w["groups"] * 64 * w["backward_parts"], 1),
    "scatter_gradients": (lambda w, size: w["live"] * w["levels"], lambda w, size: 4096 * 64, 1),
    # An invocation sums four parameters of four workgroups per iteration.
    "reduce_gradients": (lambda w, size: w["summed"] * w["groups"] / 16, lambda w, size: w["summed"] * 4, 2),
}
# Counted by tools/vendors/memory_requests.py for real rays: 128-byte lines that encode_samples loads (by blocks) per
# marched sample, one per clock of a core's L1 cache, and sectors that scatter_gradients adds to per live sample, by
# sample_lanes.
LINES = 59
REQUESTS = {1: 188, 4: 60}
ON_MATRICES = ("field_forward", "field_backward")
BARRIER = 5e-6  # seconds between two passes
# Steps of the 16 of an update interval in which a pass runs, and after which of its runs a barrier follows; 16 and the
# same for all other passes. The work of passes that run once per update interval is already given per step.
RUNS_OF_16 = {"begin_step": 2, "reduce_gradients": 2, "check_gradients": 2, "finish_step": 14}
BARRIERS_OF_16 = {"update_occupancy": 1, "threshold_occupancy": 1, "pack_occupancy": 1, "update_average": 1,
                  "update_weights": 2, **RUNS_OF_16}


def waves(gpu, program):
    """Subgroups at once on a unit."""
    reported = program.get("occupancy")
    if reported is None:
        return gpu.subgroups
    return reported / 4 if gpu.compiled.startswith("nvidia") else reported


def floor_seconds(gpu, program):
    work = program["work"]
    floats = gpu.floats and program["program"].endswith("_fixed")
    memory = work["float_memory_bytes" if floats else "memory_bytes"]
    peak = gpu.matrix_flops if program["pass"] in ON_MATRICES and program["path"].startswith("coopmat") else gpu.flops
    requests, lines = work["atomics"], 0
    if program["pass"] == "scatter_gradients": # fixed point seldom takes a second atomic
        words = 1 if floats else work["atomics"] / work["float_atomics"]
        requests = work["live"] * REQUESTS[work["sample_lanes"]] * words
    if program["pass"] == "encode_samples":
        lines = work["marched"] * LINES
    return max(work["flops"] / peak, memory / gpu.memory, requests / gpu.atomics, lines / gpu.cores / gpu.clock)


def issue_seconds(gpu, program):
    """Time from the compiler's cycle estimate; 0 if the pass has no entry in RUNS or no estimate."""
    if program["pass"] not in RUNS or "cycles" not in program:
        return 0.0
    runs, invocations, depth = RUNS[program["pass"]]
    work, size, vendor = program["work"], program["subgroup_size"], gpu.compiled.split("-")[0]
    total = runs(work, size) / size
    concurrent = min(invocations(work, size) / size, gpu.units * waves(gpu, program), total)
    weight = LOOP_RUNS[vendor][depth]
    latency = total / concurrent * program["cycles"] / weight
    # Without busy_cycles: at most one instruction per cycle.
    busy = total / gpu.units * program.get("busy_cycles", program["instructions"] * weight) / weight
    return max(latency, busy) / gpu.clock


def share(program):
    """The share of steps in which the pass runs."""
    return RUNS_OF_16.get(program["pass"], 16) / 16


def predict(gpu, program):
    """Seconds per step."""
    seconds = max(floor_seconds(gpu, program), issue_seconds(gpu, program))
    return share(program) * seconds + BARRIERS_OF_16.get(program["pass"], 16) / 16 * BARRIER


def step_programs(path):
    """{pass: pipeline} of the default step on the path that auto is expected to choose on a device."""
    with open(path, encoding="utf-8") as file:
        programs = json.load(file)["programs"]
    return {p["pass"]: p for p in programs if p["expected"] and p["default"] and "work" in p and "fault" not in p}


def drivers(paths):
    """A line that names the drivers which compiled the pipelines."""
    versions = set()
    for path in paths:
        with open(path, encoding="utf-8") as file:
            versions.add(re.search(r"Mesa [0-9.]+", json.load(file)["device"]["driver"]).group())
    return f"Compiled by {', '.join(sorted(versions))}."


def compiled_table(devices):
    names = list(dict.fromkeys(gpu.compiled for gpu in GPUS if gpu.compiled in devices))
    passes = next(iter(devices.values()))
    yield "| pass | " + " | ".join(f"{name}, {next(iter(devices[name].values()))['path']}" for name in names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for name in passes:
        cells = []
        for device in names:
            program = devices[device].get(name, {})
            cells.append(" / ".join(f"{program[key]:.0f}" if key in program else "-"
                                    for key in ("instructions", "cycles", "occupancy")))
        yield f"| `{name}` | " + " | ".join(cells) + " |"


def predicted_table(devices):
    gpus = [gpu for gpu in GPUS if gpu.compiled in devices]
    yield "| pass | " + " | ".join(f"{gpu.name} | measured" for gpu in gpus) + " |"
    yield "|---" * (2 * len(gpus) + 1) + "|"
    sums = {gpu.name: [0.0, 0.0] for gpu in gpus}
    for name in next(iter(devices.values())):
        cells = []
        for gpu in gpus:
            program = devices[gpu.compiled].get(name)
            if program is None:
                cells.append("-")
                continue
            pair = 1e3 * share(program) * floor_seconds(gpu, program), 1e3 * predict(gpu, program)
            sums[gpu.name] = [total + one for total, one in zip(sums[gpu.name], pair)]
            cells.append(f"{pair[0]:.3f} -> {pair[1]:.3f}")
        measured = [MEASURED.get((gpu.name, name)) for gpu in gpus]
        yield f"| `{name}` | " + " | ".join(f"{cell} | {'' if ms is None else f'{ms:.3f}'}"
                                            for cell, ms in zip(cells, measured)) + " |"
    yield "| all | " + " | ".join(f"{sums[gpu.name][0]:.2f} -> {sums[gpu.name][1]:.2f} | " for gpu in gpus) + " |"


def split_document():
    """What is before, in and after the part of the document that this script writes."""
    with open(DOCUMENT, encoding="utf-8") as file:
        text = file.read()
    head, begin, rest = text.partition(BEGIN)
    part, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{DOCUMENT}: lacks the lines {BEGIN.strip()} and {END.strip()}")
    return head + begin, part.strip().split("\n"), end + tail


def write(lines):
    head, _, tail = split_document()
    with open(DOCUMENT, "w", encoding="utf-8") as file:
        file.write(head + "\n" + "\n".join(lines) + "\n\n" + tail)


def check(lines):
    """Returns how the document's tables differ from the lines; nothing if other drivers made them."""
    _, documented, _ = split_document()
    if documented[0] != lines[0]:
        return []
    return [f"{DOCUMENT}: {old!r} should be {new!r}; tools/vendors.sh --predict writes it"
            for old, new in itertools.zip_longest(documented, lines) if old != new]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("devices", nargs="+")
    args = parser.parse_args()
    devices = {os.path.splitext(os.path.basename(path))[0]: step_programs(path) for path in args.devices}
    wanted = {gpu.compiled for gpu in GPUS}
    devices = {name: programs for name, programs in devices.items() if name in wanted and programs}
    if not devices:
        sys.exit(f"none of the files is of a device in the tables: {', '.join(sorted(wanted))}")
    lines = [drivers(args.devices), "", "Instructions / estimated cycles / subgroups at once:", "", *compiled_table(devices), "",
             "Floor -> predicted, milliseconds per step:", "", *predicted_table(devices)]
    if args.write:
        write(lines)
    elif args.check:
        sys.exit("\n".join(check(lines)) or 0)
    else:
        print("\n".join(lines))


if __name__ == "__main__":
    main()
