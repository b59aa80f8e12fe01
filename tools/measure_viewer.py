#!/usr/bin/env python3
"""tools/measure_viewer.py [--rounds N] [--steps N] [--rate F] [--flood] [TRAIN-OPTION ...]
tools/measure_viewer.py --frames SCENE [--share X] [TRAIN-OPTION ...]

Measures how much the viewer slows down a training. Trains the bundled scene alternately without --view (plain), with
--view but no client (idle), and with a client that requests F frames per second of a moving camera (watched; F = 5).
Prints for each round: steps per second after warming up, processor seconds per step, the server threads' share of a
core, and frames per second with their rendering time, width and bytes. Run on an idle machine; VKNERF_BIN names the
program (tools/lavapipe.sh build/vknerf).

--flood measures requests without the token instead: alternately no client (idle), as many such requests as another
core can send (refused), and as many requests whose headers never end (unfinished). The training has a core of its own,
which it shares only with the viewer's threads. Also prints connections per second and the time in which a new
connection with the token is answered.

--frames measures what a page of 1280 x 800 pixels gets, while SCENE is trained and after the training was stopped:
frames per second and their median size while the camera moves, and the seconds until each larger picture arrives
while it is at rest. --share sets the viewer's share of the time.
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
    """Processor seconds of the viewer's own threads; the training's threads render the frames."""
    tasks, total = f"/proc/{process.pid}/task", 0
    for task in os.listdir(tasks):
        try:
            with open(f"{tasks}/{task}/comm", encoding="utf-8") as file:
                name = file.read()
            with open(f"{tasks}/{task}/schedstat", encoding="utf-8") as file:
                total += 1e-9 * int(file.read().split()[0]) * name.startswith(("viewer-", "MHD-"))
        except OSError:
            pass  # the thread has ended
    return total


def rotated(pose, angle):
    """The pose rotated by `angle` about the dataset's vertical axis."""
    cosine, sine = math.cos(angle), math.sin(angle)
    rows = [pose[0:4], pose[4:8], pose[8:12]]
    return [cosine * a - sine * b for a, b in zip(rows[0], rows[1])] + \
           [sine * a + cosine * b for a, b in zip(rows[0], rows[1])] + rows[2]


def request_frames(client, rate, frames, stop):
    pose = client.scene()["views"][0]["pose"]
    number = 0
    while not stop.is_set():
        began = time.monotonic()
        try:
            code, headers, body = client.frame(rotated(pose, 0.05 * number), width=800, height=600)
        except OSError:
            return
        if code == 200:
            frames.append((time.monotonic(), float(headers["X-Milliseconds"]), int(headers["X-Width"]), len(body)))
        number += 1
        stop.wait(max(0, 1 / rate - (time.monotonic() - began)))


# ---- floods ----------------------------------------------------------------------------------------------------

CORES = sorted(os.sched_getaffinity(0))
SENDERS = 32   # threads, so that a connection that is not accepted does not delay the others
MAX_OPEN = 10  # open connections of each thread whose headers never end
FLOODS = ("refused", "unfinished")


def send(port, load):
    """Opens connections without the token one after the other; prints a byte for each."""
    open_connections, head = [], b"GET /api/state?token=" + 32 * b"0"
    while True:
        connection = socket.socket()
        connection.settimeout(0.2)
        try:
            connection.connect(("127.0.0.1", port))
            connection.sendall(head + (b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" if load == "refused" else b""))
            os.write(1, b".")
        except OSError:
            pass
        open_connections.append(connection)
        if load == "refused" or len(open_connections) > MAX_OPEN:
            open_connections.pop(0).close()


def flood(port, load):
    """Sends requests until the process is killed."""
    for _ in range(SENDERS - 1):
        threading.Thread(target=send, args=(port, load), daemon=True).start()
    send(port, load)


def count(stream, measured):
    for data in iter(lambda: os.read(stream.fileno(), 65536), b""):
        measured["connections"] += len(data)


def connect(client, measured, stop):
    """Opens connections with the token one after the other and measures how long each waits for its answer."""
    while not stop.wait(0.25):
        began = time.monotonic()
        client.connection.close()
        try:
            client.state()
            measured["waits"].append(time.monotonic() - began)
        except OSError:
            measured["waits"].append(math.inf)


# ---- frames ----------------------------------------------------------------------------------------------------

PAGE = {"width": 1280, "height": 800, "fov": 50}


def run(*arguments):
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, Client(process.stdout.readline())


def print_moving(client, pose, seconds):
    began, frames = time.monotonic(), []
    while time.monotonic() - began < seconds:
        code, headers, _ = client.frame(rotated(pose, 0.02 * len(frames)), client="moving", **PAGE)
        if code == 200:
            frames.append((int(headers["X-Width"]), int(headers["X-Height"])))
    width, height = sorted(frames)[len(frames) // 2]
    print(f"  moving: {len(frames) / (time.monotonic() - began):.1f} frames/s of {width} x {height}", flush=True)


def print_at_rest(client, pose, seconds):
    began, best, pictures = time.monotonic(), 0, 0
    print("  at rest:", end="")
    while time.monotonic() - began < seconds:
        code, headers, _ = client.frame(rotated(pose, 1), client="resting", still=1, **PAGE)
        pictures += code == 200
        if code == 200 and (int(headers["X-Width"]) > best or headers["X-Refined"] == "1.000"):
            best = int(headers["X-Width"])
            final = ", final" if headers["X-Refined"] == "1.000" else ""
            print(f" {best} x {headers['X-Height']}{final} after {time.monotonic() - began:.1f} s;", end="", flush=True)
            if final:
                break
    print(f" {pictures} pictures in {time.monotonic() - began:.0f} s", flush=True)


def measure_frames(options):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "run")
        process, client = run("train", options.frames, "--out", out, "--steps", "1000000", "--view=0", *options.more)
        pose = client.scene(300)["views"][0]["pose"]
        while last_step(out) < WARM_UP:
            time.sleep(0.1)
        if options.share:
            assert client.post("/api/control", {"action": "share", "share": options.share})[0] == 200
        client.frame(pose, **PAGE)  # compiles
        print(f"training, {client.state()['share_limit']:.0%} of the time:", flush=True)
        print_moving(client, pose, 12)
        print_at_rest(client, pose, 20)
        client.post("/api/control", {"action": "stop"})
        while process.poll() is None and client.state()["state"] != "stopped":
            time.sleep(0.1)
        print("after the training:")
        client.frame(pose, **PAGE)
        print_moving(client, pose, 6)
        print_at_rest(client, pose, 60)
        process.terminate()
        process.wait()


# ---- trainings -------------------------------------------------------------------------------------------------


class Clients:
    """Sends requests of one kind to a training until stop() is called."""

    def __init__(self, load, client, rate):
        self.measured = {"frames": [], "waits": [], "connections": 0}
        self.stopping, self.threads, self.flood = threading.Event(), [], None
        if load == "watched":
            self.start(request_frames, client, rate, self.measured["frames"], self.stopping)
        if load in FLOODS:
            self.flood = subprocess.Popen([sys.executable, __file__, "flood", str(client.port), load],
                                          stdout=subprocess.PIPE)
            self.start(count, self.flood.stdout, self.measured)
            self.start(connect, client, self.measured, self.stopping)

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


def measure(load, options, folder):
    out = os.path.join(folder, load)
    arguments = ["train", os.path.join(TOP, "assets/demo"), "--out", out, "--steps", str(options.steps), *options.more]
    arguments += ["--view=0"] if load != "plain" else []
    cores = CORES[:1] if options.flood else CORES
    with subprocess.Popen(["taskset", "-c", ",".join(map(str, cores)), *PROGRAM, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True) as process:
        client = Client(process.stdout.readline()) if load != "plain" else None
        while last_step(out) < WARM_UP and process.poll() is None:
            time.sleep(0.02)
        clients = Clients(load, client, options.rate)
        first, began, spent, own = last_step(out), time.monotonic(), processor_seconds(process), viewer_seconds(process)
        step = first
        while step < options.steps and process.poll() is None:
            now = last_step(out)
            if now != step:
                step, ended, spent_then = now, time.monotonic(), processor_seconds(process)
                own_then = viewer_seconds(process)
            time.sleep(0.02)
        clients.stop()
        process.terminate()
        process.wait()
    measured = {"rate": (step - first) / (ended - began), "cpu": (spent_then - spent) / (step - first),
                "own": (own_then - own) / (ended - began), "seconds": ended - began, **clients.measured}
    measured["frames"] = [frame for frame in measured["frames"] if frame[0] <= ended]
    return measured


def print_round(round_number, load, measured):
    line = f"round {round_number + 1}: {load:10} {measured['rate']:8.2f} steps/s, {measured['cpu']:.4f} " \
           f"processor seconds per step, {100 * measured['own']:.1f} % of a core in the server"
    if measured["frames"]:
        _, milliseconds, widths, sizes = zip(*measured["frames"])
        line += f"; {len(sizes) / measured['seconds']:.2f} frames/s of {statistics.median(milliseconds):.1f} ms, " \
                f"{statistics.median(widths):.0f} wide, {statistics.median(sizes):.0f} bytes"
    if measured["waits"]:
        line += f"; {measured['connections'] / measured['seconds']:.0f} connections/s without the token; with " \
                f"it {1e3 * statistics.median(measured['waits']):.1f} ms, at most {max(measured['waits']):.2f} s"
    print(line, flush=True)


def main():
    if sys.argv[1:2] == ["flood"]:
        flood(int(sys.argv[2]), sys.argv[3])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--rate", type=float, default=5)
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("--frames", metavar="SCENE")
    parser.add_argument("--share", type=float)
    options, options.more = parser.parse_known_args()
    if options.frames:
        measure_frames(options)
        return
    loads = ("idle", *FLOODS) if options.flood else ("plain", "idle", "watched")
    rates = {load: [] for load in loads}
    if options.flood and len(CORES) < 2:
        parser.error("--flood needs two processor cores")
    if options.flood:
        os.sched_setaffinity(0, CORES[1:2])
    for round_number in range(options.rounds):
        for load in loads:
            with tempfile.TemporaryDirectory() as folder:
                measured = measure(load, options, folder)
            rates[load].append(measured["rate"])
            print_round(round_number, load, measured)
    first, *others = loads
    for load in others:
        share = 1 - statistics.median(rates[load]) / statistics.median(rates[first])
        print(f"{load}: {100 * share:+.1f} % slower than {'without --view' if first == 'plain' else first}")


main()
