#!/usr/bin/env python3
"""tools/measure_viewer.py [--rounds N] [--steps N] [--rate F] [--flood] [TRAIN-OPTION ...]

What a viewer costs a training: the bundled scene is trained by turns without --view, with --view and nobody there, and
with somebody who asks for F frames a second of a moving camera (5). Printed for each round: steps a second between the
first reports and the last one, processor seconds of a step, and of the frames: how many a second, milliseconds of
rendering, size, bytes; and which share of a core the server's threads take. Run where nothing else runs; VKNERF_BIN
names the program (tools/lavapipe.sh build/vknerf).

With --flood, what requests without the token cost it: by turns nobody is there, and another processor core sends as
many such requests as it can (refused), or as many heads that never end (unfinished). The training has a core of its own,
so that it loses to the viewer's threads alone; printed as well: connections a second, and how long a new connection with
the token waits for its answer.
"""

import argparse
import json
import math
import os
import shlex
import socket
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


def viewer_seconds(process):
    """Processor seconds of the viewer's own threads: its frames are rendered by the training's."""
    tasks, total = f"/proc/{process.pid}/task", 0
    for task in os.listdir(tasks):
        try:
            with open(f"{tasks}/{task}/comm", encoding="utf-8") as file:
                name = file.read()
            with open(f"{tasks}/{task}/schedstat", encoding="utf-8") as file:
                total += 1e-9 * int(file.read().split()[0]) * name.startswith(("viewer-", "MHD-"))
        except OSError:
            pass  # it has ended
    return total


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


# ---- floods ----------------------------------------------------------------------------------------------------

CORES = sorted(os.sched_getaffinity(0))
SENDERS = 32  # threads, so that a connection that is not accepted keeps no other one waiting
HELD = 10     # connections of each, whose heads never end
FLOODS = ("refused", "unfinished")


def send(port, way):
    """Connections without the token, one after the other; prints a byte for each."""
    held, head = [], b"GET /api/state?token=" + 32 * b"0"
    while True:
        connection = socket.socket()
        connection.settimeout(0.2)
        try:
            connection.connect(("127.0.0.1", port))
            connection.sendall(head + (b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" if way == "refused" else b""))
            os.write(1, b".")
        except OSError:
            pass
        held.append(connection)
        if way == "refused" or len(held) > HELD:
            held.pop(0).close()


def flood(port, way):
    """Until it is killed."""
    for _ in range(SENDERS - 1):
        threading.Thread(target=send, args=(port, way), daemon=True).start()
    send(port, way)


def count(stream, found):
    for piece in iter(lambda: os.read(stream.fileno(), 65536), b""):
        found["connections"] += len(piece)


def connect(client, found, stop):
    """New connections with the token, one after the other."""
    while not stop.wait(0.25):
        began = time.monotonic()
        client.connection.close()
        try:
            client.state()
            found["waits"].append(time.monotonic() - began)
        except OSError:
            found["waits"].append(math.inf)


# ---- trainings -------------------------------------------------------------------------------------------------


class Visitors:
    """Requests that a training gets until `stop`."""

    def __init__(self, way, client, rate):
        self.found = {"frames": [], "waits": [], "connections": 0}
        self.stopping, self.threads, self.flood = threading.Event(), [], None
        if way == "watched":
            self.start(look, client, rate, self.found["frames"], self.stopping)
        if way in FLOODS:
            self.flood = subprocess.Popen([sys.executable, __file__, "flood", str(client.port), way], stdout=subprocess.PIPE)
            self.start(count, self.flood.stdout, self.found)
            self.start(connect, client, self.found, self.stopping)

    def start(self, *call):
        self.threads.append(threading.Thread(target=call[0], args=call[1:]))
        self.threads[-1].start()

    def stop(self):
        self.stopping.set()
        if self.flood:
            self.flood.kill()
            self.flood.wait()
        for thread in self.threads:
            thread.join()


def measure(way, options, folder):
    out = os.path.join(folder, way)
    arguments = ["train", os.path.join(TOP, "assets/demo"), "--out", out, "--steps", str(options.steps), *options.more]
    arguments += ["--view=0"] if way != "plain" else []
    cores = CORES[:1] if options.flood else CORES
    with subprocess.Popen(["taskset", "-c", ",".join(map(str, cores)), *PROGRAM, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        client = Client(process.stdout.readline()) if way != "plain" else None
        while last_step(out) < WARM_UP and process.poll() is None:
            time.sleep(0.02)
        visitors = Visitors(way, client, options.rate)
        first, began, spent, own = last_step(out), time.monotonic(), processor_seconds(process), viewer_seconds(process)
        step = first
        while step < options.steps and process.poll() is None:
            now = last_step(out)
            if now != step:
                step, ended, spent_then = now, time.monotonic(), processor_seconds(process)
                own_then = viewer_seconds(process)
            time.sleep(0.02)
        visitors.stop()
        process.terminate()
        process.wait()
    found = {"rate": (step - first) / (ended - began), "cpu": (spent_then - spent) / (step - first),
             "own": (own_then - own) / (ended - began), "seconds": ended - began, **visitors.found}
    found["frames"] = [frame for frame in found["frames"] if frame[0] <= ended]
    return found


def tell(turn, way, found):
    line = f"round {turn + 1}: {way:10} {found['rate']:8.2f} steps/s, {found['cpu']:.4f} processor seconds a step, " \
           f"{100 * found['own']:.1f} % of a core for the server"
    if found["frames"]:
        _, milliseconds, widths, sizes = zip(*found["frames"])
        line += f"; {len(sizes) / found['seconds']:.2f} frames/s of {statistics.median(milliseconds):.1f} ms, " \
                f"{statistics.median(widths):.0f} wide, {statistics.median(sizes):.0f} bytes"
    if found["waits"]:
        line += f"; {found['connections'] / found['seconds']:.0f} connections/s without the token, one with it waits " \
                f"{1e3 * statistics.median(found['waits']):.1f} ms, at most {max(found['waits']):.2f} s"
    print(line, flush=True)


def main():
    if sys.argv[1:2] == ["flood"]:
        flood(int(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--flood", action="store_true")
    options, options.more = parser.parse_known_args()
    ways = ("nobody", *FLOODS) if options.flood else ("plain", "nobody", "watched")
    rates = {way: [] for way in ways}
    if options.flood and len(CORES) < 2:
        parser.error("--flood needs two processor cores")
    if options.flood:
        os.sched_setaffinity(0, CORES[1:2])
    for turn in range(options.rounds):
        for way in ways:
            with tempfile.TemporaryDirectory() as folder:
                found = measure(way, options, folder)
            rates[way].append(found["rate"])
            tell(turn, way, found)
    first, *others = ways
    for way in others:
        share = 1 - statistics.median(rates[way]) / statistics.median(rates[first])
        print(f"{way}: {100 * share:+.1f} % slower than {'without --view' if first == 'plain' else first}")


main()
