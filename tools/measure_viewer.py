#!/usr/bin/env python3
"""tools/measure_viewer.py [--rounds N] [--steps N] [--rate F] [TRAIN-OPTION ...]

What a viewer costs a training: the bundled scene is trained by turns without --view, with --view and nobody there, and
with somebody who asks for F frames a second of a moving camera (5). Printed for each round: steps a second between the
first reports and the last one, processor seconds of a step, and of the frames: how many a second, milliseconds of
rendering, size, bytes. Run where nothing else runs; VKNERF_BIN names the program (tools/lavapipe.sh build/vknerf).
"""

import argparse
import json
import math
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(TOP, "tests"))
from viewer_client import Client  # noqa: E402

PROGRAM = shlex.split(os.environ.get("VKNERF_BIN", f"{TOP}/tools/lavapipe.sh {TOP}/build/vknerf"))
WARM_UP = 64  # steps


def last_step(folder):
    try:
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        return json.loads(lines[-1])["step"]
    except (OSError, IndexError, ValueError, KeyError):
        return 0


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def turned(pose, angle):
    """The pose, turned around the dataset's vertical axis."""
    cosine, sine = math.cos(angle), math.sin(angle)
    rows = [pose[0:4], pose[4:8], pose[8:12]]
    return [cosine * a - sine * b for a, b in zip(rows[0], rows[1])] + \
           [sine * a + cosine * b for a, b in zip(rows[0], rows[1])] + rows[2]


def look(client, rate, frames, stop):
    pose = client.scene()["views"][0]["pose"]
    number = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            code, headers, body = client.frame(turned(pose, 0.05 * number), width=800, height=600)
        except OSError:
            return
        if code == 200:
            frames.append((time.monotonic(), float(headers["X-Milliseconds"]), int(headers["X-Width"]), len(body)))
        number += 1
        stop.wait(max(0, 1 / rate - (time.monotonic() - began)))


def measure(way, options, folder):
    out = os.path.join(folder, way)
    arguments = ["train", os.path.join(TOP, "assets/demo"), "--out", out, "--steps", str(options.steps), *options.more]
    arguments += ["--view=0"] if way != "plain" else []
    with subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        frames, stop, looker = [], threading.Event(), None
        if way != "plain":
            client = Client(process.stdout.readline())
        while last_step(out) < WARM_UP and process.poll() is None:
            time.sleep(0.02)
        if way == "watched":
            looker = threading.Thread(target=look, args=(client, options.rate, frames, stop))
            looker.start()
        first, began, spent = last_step(out), time.monotonic(), processor_seconds(process)
        step = first
        while step < options.steps and process.poll() is None:
            now = last_step(out)
            if now != step:
                step, ended, spent_then = now, time.monotonic(), processor_seconds(process)
            time.sleep(0.02)
        stop.set()
        process.terminate()
        process.wait()
        if looker:
            looker.join()
    return {"rate": (step - first) / (ended - began), "cpu": (spent_then - spent) / (step - first),
            "frames": [frame for frame in frames if frame[0] <= ended], "seconds": ended - began}


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=5)
    options, options.more = parser.parse_known_args()
    rates = {"plain": [], "nobody": [], "watched": []}
    for turn in range(options.rounds):
        for way, list_ in rates.items():
            with tempfile.TemporaryDirectory() as folder:
                found = measure(way, options, folder)
            list_.append(found)
            line = f"round {turn + 1}: {way:8} {found['rate']:8.2f} steps/s, {found['cpu']:.4f} processor seconds a step"
            if found["frames"]:
                _, milliseconds, widths, sizes = zip(*found["frames"])
                line += f"; {len(sizes) / found['seconds']:.2f} frames/s of {statistics.median(milliseconds):.1f} ms, " \
                        f"{statistics.median(widths):.0f} wide, {statistics.median(sizes):.0f} bytes"
            print(line, flush=True)
    plain = statistics.median(found["rate"] for found in rates["plain"])
    for way in ("nobody", "watched"):
        rate = statistics.median(found["rate"] for found in rates[way])
        print(f"{way}: {100 * (1 - rate / plain):+.1f} % slower than without --view")


main()
