#!/usr/bin/env python3
"""tools/peers/compare.py SCENE [--downscale K] [--times 10,30,60] [--rounds 2] [--out DIR]

Compares vknerf with the PyTorch peer on one scene: trains them alternately for each of the given times in every round,
prints PSNR by time, rates and memory of both with their ratios, and writes comparison.json and psnr.svg. The peer
reads its settings from the vknerf run's config.json, so both do equal work. Times exclude evaluation and the peer's
compilation, but include the compilation of vknerf's pipelines.

    --peer "COMMAND"   command of the peer's Python, for example "chroot /srv/trixie python3"; default: python3
    --peer-options     further options of ngp_torch/train.py, as one argument ("--amp bf16")
    --vknerf-options   further options of vknerf train, as one argument ("--precision fp16")

Needs only Python's standard library; the peer needs torch, numpy and PIL.
"""
import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("VKNERF_BUILD_DIR", os.path.join(SOURCE, "build"))
COLORS = {"vknerf": "#1f5fbf", "peer": "#d9730d"}
NAMES = {"vknerf": "vknerf", "peer": "PyTorch"}


def fail(message):
    print(f"{os.path.basename(sys.argv[0])}: {message}", file=sys.stderr)
    sys.exit(1)


def parse_arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("scene")
    parser.add_argument("--downscale", type=int, default=8)
    parser.add_argument("--times", default="10,30,60")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--samples", type=int)
    parser.add_argument("--peer", default="python3")
    parser.add_argument("--peer-options", default="")
    parser.add_argument("--vknerf-options", default="")
    parser.add_argument("--out")
    return parser.parse_args()


def vknerf_command():
    """The command of vknerf on the machine's GPU, or on lavapipe without one."""
    program = os.path.join(BUILD, "vknerf")
    if not os.path.exists(program):
        fail(f"{program}: not built; run tools/setup.sh --program")
    try:
        info = json.loads(subprocess.run([program, "info", "--json"], capture_output=True, check=True).stdout)
        if any(device.get("type") not in (None, "cpu") for device in info.get("devices", [])):
            return [program]
    except (OSError, ValueError, subprocess.CalledProcessError):
        pass
    return [os.path.join(SOURCE, "tools", "lavapipe.sh"), program]


def check_peer(command):
    """Exits with a message of one line if the peer's Python lacks a module."""
    for module, package in (("torch", "torch"), ("numpy", "numpy"), ("PIL", "pil")):
        try:
            done = subprocess.run(command + ["-c", f"import {module}"], capture_output=True, check=False)
        except OSError as error:
            fail(f"{command[0]}: {error.strerror}")
        if done.returncode != 0:
            fail(f"{shlex.join(command)} cannot import {module}: apt-get install python3-{package}, or name "
                 "another Python with --peer")


def run(command, log):
    """Runs a command; returns its peak resident memory in bytes and its time in seconds. The command may be a wrapper
    that replaces itself with the program (lavapipe.sh, chroot)."""
    began = time.monotonic()
    with open(log, "wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().split("\n")
        fail(f"{shlex.join(command)}: exit status {process.returncode}: {lines[-1]} ({log})")
    return usage.ru_maxrss * 1024, time.monotonic() - began


def read_run(folder, name, resident, wall):
    """The measurements of one run; rates are means over its second half, after warming up."""
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        summary = json.load(file)
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    result = {"trainer": name, "psnr": summary["psnr"], "seconds": summary["seconds"], "steps": summary["step"],
              "resident_bytes": resident, "wall_seconds": round(wall, 3), "views": summary["views"],
              "precision": summary.get("precision"), "device": summary.get("device"),
              "driver": summary.get("driver"), "run": folder,
              "device_bytes": max(line["gpu_memory_bytes"] for line in lines)}
    spans = [(0.0, 0, line) if i < 0 else (lines[i]["seconds"], lines[i]["step"], line)
             for i, line in enumerate(lines, -1)]  # start seconds, start step, line
    steady = [span for span in spans if span[0] >= 0.5 * summary["seconds"]]
    if not steady or lines[-1]["seconds"] - steady[0][0] < 0.2 * summary["seconds"]:
        steady = spans  # too few lines
    total = lines[-1]["seconds"] - steady[0][0]
    for key in ("samples_per_second", "marched_per_second", "rays_per_second"):
        result[key] = sum((line["seconds"] - began) * line[key] for began, _, line in steady) / total
    result["steps_per_second"] = (lines[-1]["step"] - steady[0][1]) / total
    return result


def train(name, arguments, seconds, folder, config):
    common = ["--seconds", str(seconds), "--downscale", str(arguments.downscale), "--out", folder]
    if name == "vknerf":
        command = vknerf_command() + ["train", arguments.scene, "--quiet"] + common
        if arguments.samples:
            command += ["--set", f"batch.samples={arguments.samples}"]
        command += shlex.split(arguments.vknerf_options)
    else:
        command = shlex.split(arguments.peer) + [os.path.join(HERE, "ngp_torch", "train.py"), "--scene",
                                                 arguments.scene, "--config", config] + common
        command += shlex.split(arguments.peer_options)
    resident, wall = run(command, folder + ".log")
    result = read_run(folder, name, resident, wall)
    print(f"{NAMES[name]:8s} {seconds:g} s: {result['psnr']:.2f} dB, {result['steps_per_second']:.1f} steps/s, "
          f"{result['samples_per_second'] / 1e6:.3f} M live samples/s", file=sys.stderr, flush=True)
    return result


def mean(values):
    return sum(values) / len(values)


def compare(runs, times):
    """Rows of the table: mean PSNR of both for each time; other values from the longest runs."""
    def pick(name, seconds):
        return [r for r in runs if r["trainer"] == name and r["asked_seconds"] == seconds]

    rows = [(f"PSNR after {t:g} s, dB", *(mean([r["psnr"] for r in pick(n, t)]) for n in NAMES), "difference")
            for t in times]
    for label, key, scale in (("steps/s", "steps_per_second", 1), ("M live samples/s", "samples_per_second", 1e6),
                              ("M marched samples/s", "marched_per_second", 1e6),
                              ("k rays/s", "rays_per_second", 1e3), ("resident memory, MiB", "resident_bytes", 1 << 20),
                              ("device memory, MiB", "device_bytes", 1 << 20)):
        if key == "device_bytes" and any(r["device"] == "cpu" for r in runs):
            continue  # on a CPU the peer has no device memory to compare
        rows.append((label, *(mean([r[key] for r in pick(n, times[-1])]) / scale for n in NAMES), "ratio"))
    return rows


def print_table(rows):
    print(f"{'':26s} {'vknerf':>10s} {'PyTorch':>10s} {'vknerf / PyTorch':>18s}")
    for label, ours, theirs, kind in rows:
        last = f"{ours - theirs:+.2f} dB" if kind == "difference" else f"{ours / theirs:.3f}"
        print(f"{label:26s} {ours:10.3f} {theirs:10.3f} {last:>18s}")


def write_svg(path, runs, times, title):
    """Plots PSNR by training time: a dot for every run, lines through the means."""
    left, top, width, height = 64, 48, 560, 300
    values = [r["psnr"] for r in runs]
    low, high = math.floor(min(values) - 0.5), math.ceil(max(values) + 0.5)
    end = times[-1] * 1.05

    def x(seconds):
        return left + width * seconds / end

    def y(psnr):
        return top + height * (high - psnr) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 24} {top + height + 56}" '
             'font-family="sans-serif" font-size="13" fill="#222">',
             '<rect width="100%" height="100%" fill="#fff"/>',
             f'<text x="{left}" y="24" font-size="15">{title}</text>']
    step = max(1, math.ceil((high - low) / 8))
    for psnr in range(low, high + 1, step):
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y(psnr):.1f}" y2="{y(psnr):.1f}" '
                     f'stroke="#ddd"/><text x="{left - 8}" y="{y(psnr) + 4:.1f}" text-anchor="end">{psnr}</text>')
    for seconds in times:
        parts.append(f'<text x="{x(seconds):.1f}" y="{top + height + 20}" text-anchor="middle">{seconds:g}</text>')
    parts.append(f'<text x="{left + width / 2}" y="{top + height + 42}" text-anchor="middle">'
                 'seconds of training</text>')
    parts.append(f'<text x="{left - 40}" y="{top - 12}">test PSNR, dB</text>')
    for i, name in enumerate(NAMES):
        mine = [(t, [r["psnr"] for r in runs if r["trainer"] == name and r["asked_seconds"] == t]) for t in times]
        points = " ".join(f"{x(t):.1f},{y(mean(v)):.1f}" for t, v in mine)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLORS[name]}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(t):.1f}" cy="{y(p):.1f}" r="3.5" fill="{COLORS[name]}"/>'
                  for t, v in mine for p in v]
        at = top + height - 34 + 20 * i
        parts.append(f'<rect x="{left + width - 100}" y="{at - 10}" width="12" height="12" fill="{COLORS[name]}"/>'
                     f'<text x="{left + width - 82}" y="{at}">{NAMES[name]}</text>')
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(parts + ["</svg>\n"]))


def main():
    arguments = parse_arguments()
    times = sorted(float(t) for t in arguments.times.split(","))
    arguments.scene = os.path.abspath(arguments.scene)
    out = os.path.abspath(arguments.out or os.path.join(SOURCE, "runs", time.strftime("compare-%Y%m%d-%H%M%S")))
    check_peer(shlex.split(arguments.peer))
    os.makedirs(out, exist_ok=True)
    runs = []
    for round_index in range(arguments.rounds):
        for seconds in times:
            config = None
            for name in NAMES:
                folder = os.path.join(out, f"{name}-{seconds:g}s-{round_index + 1}")
                result = train(name, arguments, seconds, folder, config)
                config = config or os.path.join(folder, "config.json")
                runs.append({"round": round_index + 1, "asked_seconds": seconds, **result})
    rows = compare(runs, times)
    print_table(rows)
    scene = os.path.basename(arguments.scene.rstrip("/"))
    with open(os.path.join(out, "comparison.json"), "w", encoding="utf-8") as file:
        json.dump({"scene": scene, "downscale": arguments.downscale, "runs": runs,
                   "table": [dict(zip(("what", "vknerf", "peer", "kind"), row)) for row in rows]}, file, indent=1)
    write_svg(os.path.join(out, "psnr.svg"), runs, times,
              f"{scene}, 1/{arguments.downscale} size: test PSNR by training time")
    print(f"{out}: comparison.json, psnr.svg")


if __name__ == "__main__":
    main()
