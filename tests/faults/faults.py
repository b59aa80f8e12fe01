"""Common parts of the fault sweeps: a tiny scene and model, starting vknerf, and checking its results.

A sweep is a module of the folder sweeps:

    HOLDS           text: what must hold after every case
    SHORT           number of cases that the tests run
    cases(shared)   every case, a list of JSON values in any order
    try_case(case, sandbox)
                    runs one and returns an Outcome. `sandbox` has this worker's folder, emptied before each case;
                    sandbox.rnd depends on the seed and the case only

Data that cases only read is made once: the scene of all sweeps and model_run() are in the Sandbox `shared`, which a
case reaches as sandbox.shared. Optional: pick(rnd, cases, count), which replaces the random choice.

sweep.py finds the cases, runs and counts them. Needs only Python's standard library.
"""
import dataclasses
import glob
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
import zlib

SOURCE = os.environ.get("VKNERF_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("VKNERF_BUILD_DIR") or os.path.join(SOURCE, "build")
PROGRAM = os.path.join(BUILD, "vknerf")
# The command of vknerf, after the script that selects the device, as in ctest.
VKNERF = os.environ.get("VKNERF_BIN") or os.path.join(BUILD, "tests", "vknerf")

# A model that trains 64 steps in a tenth of a second: sweeps test what surrounds training.
MODEL = {"grid.log2_entries": 10, "grid.levels": 4, "mlp.density_width": 16, "mlp.color_width": 16,
         "mlp.color_layers": 1, "mlp.sh_degree": 3, "batch.samples": 1024, "batch.max_rays": 64,
         "march.resolution": 16}
STEPS, SAVE_EVERY, EVAL_EVERY = 64, 16, 32

DONE, FAILED, BAD_INPUT, NO_DEVICE, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_CODES = (DONE, FAILED, BAD_INPUT, NO_DEVICE, INTERRUPTED)
HANG = "hang"
ITEM_SIZES = {"F32": 4, "F16": 2, "I32": 4, "U32": 4, "U8": 1, "U64": 8}


class Broken(Exception):
    """The sweep itself cannot go on."""


@dataclasses.dataclass
class Outcome:
    """The outcome of a case. `problems` holds a line for each violation, `facts` JSON for the log."""
    problems: list
    facts: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Ended:
    """An ended program: its exit code, the name of the signal that ended it, or HANG."""
    code: object
    out: str
    err: str
    seconds: float
    memory: int = 0  # peak, in KiB

    def last_line(self):
        """The last line of standard error, shortened."""
        lines = self.err.strip().splitlines()
        return lines[-1][:300] if lines else ""


# ---- a scene ---------------------------------------------------------------------------------------------

def png_chunk(kind, data, checksum=None):
    """Returns one chunk of a PNG file, with a wrong checksum on request."""
    checksum = zlib.crc32(kind + data) if checksum is None else checksum
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def png_file(width, height, packed, depth=8, color=6, more=b""):
    """Returns a PNG file of compressed rows, valid or not; `more` are chunks before them."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + more + png_chunk(b"IDAT", packed) +
            png_chunk(b"IEND", b""))


def ball_picture(size, angle):
    """Returns a picture of a coloured ball on transparent background, turned by the angle."""
    rows = []
    for v in range(size):
        row = bytearray(b"\0")
        for u in range(size):
            x, y = (u + 0.5) / size - 0.5, (v + 0.5) / size - 0.5
            inside = x * x + y * y < 0.09
            color = (int(127 + 120 * math.sin(angle + 6 * x)), int(200 * (y + 0.5)), 90, 255)
            row += bytes(color if inside else (0, 0, 0, 0))
        rows.append(bytes(row))
    return png_file(size, size, zlib.compress(b"".join(rows)))


def ball_pose(angle, lift):
    """Returns the pose of a camera on a circle of radius 4 that looks at the centre."""
    z = [math.cos(angle) * math.cos(lift), math.sin(angle) * math.cos(lift), math.sin(lift)]
    x = [-math.sin(angle), math.cos(angle), 0.0]
    y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]]
    return [[x[k], y[k], z[k], 4 * z[k]] for k in range(3)] + [[0, 0, 0, 1]]


def make_scene(folder, size=24, train=12, test=3):
    """Writes a Blender scene of a few pixels into `folder`."""
    for split, count, lift in (("train", train, 0.5), ("test", test, 0.3)):
        os.makedirs(os.path.join(folder, split), exist_ok=True)
        frames = []
        for i in range(count):
            angle = 2 * math.pi * i / count
            write_file(os.path.join(folder, split, f"r_{i}.png"), ball_picture(size, angle))
            frames.append({"file_path": f"./{split}/r_{i}", "transform_matrix": ball_pose(angle, lift)})
        write_json(os.path.join(folder, f"transforms_{split}.json"), {"camera_angle_x": 0.69, "frames": frames})


# ---- files -----------------------------------------------------------------------------------------------

def read_file(path):
    """Returns the bytes of a file; None if it is missing."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def write_file(path, data):
    with open(path, "wb") as file:
        file.write(data)


def read_json(path):
    """Returns the content of a JSON file; None if it is missing or invalid."""
    try:
        return json.loads(read_file(path) or b"")
    except ValueError:
        return None


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def remove(path):
    """Removes a file or a folder, if it exists."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.remove(path)


# ---- starting vknerf -------------------------------------------------------------------------------------

class Sandbox:
    """A folder to work in, with the data that all cases read: a scene and the sandbox `shared`."""

    def __init__(self, folder, shared=None):
        self.folder = os.path.abspath(folder)
        self.shared = shared or self
        self.scene = os.path.join(self.shared.folder, "scene")
        self.rnd = None
        os.makedirs(self.folder, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def clear(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def start(self, *arguments, env=None, program=VKNERF, **options):
        """Starts vknerf in this folder; returns its own process, not that of a script around it."""
        options = {"stdin": subprocess.DEVNULL, "stdout": tempfile.TemporaryFile(),
                   "stderr": tempfile.TemporaryFile(), "cwd": self.folder, **options}
        process = subprocess.Popen([program, *map(str, arguments)], env=environment(env), **options)
        process.said = (options["stdout"], options["stderr"])
        return process

    def run(self, *arguments, env=None, timeout=60, program=VKNERF, **options):
        """Runs vknerf to its end, or kills it after `timeout` seconds."""
        return wait(self.start(*arguments, env=env, program=program, **options), timeout)

    def train(self, *more, out="run", steps=STEPS, **options):
        """Runs a short training with saves and evaluations into the folder `out` of this sandbox."""
        return self.run(*self.training(*more, out=out, steps=steps), **options)

    def training(self, *more, out="run", steps=STEPS):
        """Returns the arguments of train()."""
        return ["train", self.scene, *model_options(), "--steps", steps, "--save-every", SAVE_EVERY, "--eval-every",
                EVAL_EVERY, "--quiet", "--out", self.path(out), *more]

    def resume(self, run, steps, *more, **options):
        return self.run("train", "--resume", run, "--steps", steps, "--quiet", *more, **options)


def draw(rnd, found, count):
    """Returns `count` random cases, or all if there are no more."""
    return rnd.sample(found, min(count, len(found)))


model_lock = threading.Lock()


def model_run(sandbox):
    """Returns the folder of an undisturbed short training, for cases to copy or compare. It is deterministic; beside it
    are the lists that model_calls() and model_allocations() read.
    """
    run = sandbox.shared.path("model")
    with model_lock:
        if not os.path.exists(run):
            ended = sandbox.shared.train("--deterministic", out="model", env=observation(sandbox.shared))
            problems = check_ended(ended, (DONE,)) or check_finished(run)
            if problems:
                raise Broken(f"a training without faults: {problems[0]}")
    return run


def observation(sandbox):
    """Returns the environment of a training that lists system calls and counts allocations."""
    libraries = [built_library(name) for name in ("callfault", "mallocfault")]
    if None in libraries:
        return {}
    return {"LD_PRELOAD": ":".join(libraries), "CALLFAULT_CALLS": "all", "CALLFAULT_LIST": sandbox.path("model.calls"),
            "MALLOCFAULT_N": "0", "MALLOCFAULT_COUNT": sandbox.path("model.allocations")}


def model_calls(sandbox):
    """Returns (kind, file) of each system call on a file in the training of model_run()."""
    listing = os.path.join(os.path.dirname(model_run(sandbox)), "model.calls")
    with open(listing, encoding="utf-8", errors="replace") as file:
        return [line.rstrip("\n").split(" ", 1) for line in file]


def model_allocations(sandbox):
    """Returns the number of allocations in the training of model_run()."""
    return int(read_file(os.path.join(os.path.dirname(model_run(sandbox)), "model.allocations")))


def model_options(changes=None):
    """Returns --set options of the tiny model."""
    return [word for key, value in {**MODEL, **(changes or {})}.items() for word in ("--set", f"{key}={value}")]


def environment(changes):
    """Returns the environment of a start: pipelines compiled fast, in a common cache."""
    cache = os.path.join(BUILD, "faults", "cache")
    defaults = {"GALLIVM_PERF": "nopt", "XDG_CACHE_HOME": cache, "MESA_SHADER_CACHE_DIR": cache + "/mesa"}
    return {**defaults, **os.environ, **(changes or {})}


def said(file):
    """Returns what a process that start() began has written to one of its outputs."""
    if isinstance(file, int):
        return ""
    with file:
        file.seek(0)
        return file.read().decode("utf-8", "replace")


def reap(process, end):
    """Returns (exit code, memory in KiB) of an ended process; the code is None if it was killed at the time `end`."""
    killed = False
    while process.returncode is None:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return None if killed else process.returncode, usage.ru_maxrss
        if time.monotonic() > end and not killed:
            process.kill()
            killed = True
        time.sleep(0.002)
    return process.returncode, 0


def wait(process, timeout=60):
    """Waits for a process that start() began, and kills it after `timeout` seconds."""
    began = time.monotonic()
    code, memory = reap(process, began + timeout)
    if code is None:
        code = HANG
    elif code < 0:
        code = signal.Signals(-code).name
    out, err = map(said, process.said)
    return Ended(code, out, err, time.monotonic() - began, memory)


def wait_for_file(path, process, seconds=30):
    """Returns whether the file exists before the process ends or the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.path.exists(path):
            return True
        if process.poll() is not None:
            return os.path.exists(path)
        time.sleep(0.001)
    return False


def built_library(name):
    """Returns the path of a preloadable library that the tests' build makes; None in builds without it."""
    path = os.path.join(BUILD, "tests", name + ".so")
    return path if os.path.exists(path) else None


def library(name):
    """Returns the same; raises Broken if there is none."""
    path = built_library(name)
    if path is None:
        raise Broken(f"{name}.so: not built; cmake --build {BUILD} --target {name}")
    return path


# ---- messages of vknerf ----------------------------------------------------------------------------------

def check_ended(ended, codes=EXIT_CODES):
    """Returns problems of a program's end: its exit code, and a message of one line if it failed."""
    if ended.code == HANG:
        return [f"hangs: {ended.last_line()}"]
    if ended.code not in codes:
        return [f"ends with {ended.code}: {ended.err.strip()[-600:]}"]
    problems = []
    if re.search(r"[^\n\t\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f]", ended.err):
        problems.append(f"writes control characters: {ended.err[-300:]!r}")
    if ended.code in (FAILED, BAD_INPUT, NO_DEVICE) and not ended.last_line().startswith("vknerf: "):
        problems.append(f"ends with {ended.code} without a message: {ended.err[-300:]!r}")
    return problems


def check_refused(ended, codes=(DONE, BAD_INPUT)):
    """Returns problems of the answer to bad input: success, or one line and nothing else."""
    problems = check_ended(ended, codes)
    lines = [line for line in ended.err.splitlines() if not line.startswith("warning: ")]
    if not problems and ended.code == BAD_INPUT and len(lines) != 1:
        problems.append(f"{len(lines)} lines instead of one: {ended.err[:400]!r}")
    return problems


# ---- files of vknerf --------------------------------------------------------------------------------------

def parse_checkpoint(data):
    """Returns (step, header) of a checkpoint; raises ValueError if the file is not exactly valid."""
    if len(data) < 8:
        raise ValueError("shorter than its size field")
    size, = struct.unpack("<Q", data[:8])
    if size > len(data) - 8:
        raise ValueError("the header ends past the file")
    header = json.loads(data[8:8 + size].decode("utf-8"))
    tensors = {name: tensor for name, tensor in header.items() if name != "__metadata__"}
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = tensor["data_offsets"]
        if begin != position or end - begin != ITEM_SIZES[tensor["dtype"]] * math.prod(tensor["shape"]):
            raise ValueError(f"the layout of {name}")
        position = end
    if position != len(data) - 8 - size:
        raise ValueError("data after the last tensor")
    return int(header["__metadata__"]["vknerf.step"]), header


def checkpoint_step(path):
    """Returns (step, None) of a valid checkpoint, (None, None) if there is none, (None, reason) if it is invalid."""
    data = read_file(path)
    if data is None:
        return None, None
    try:
        return parse_checkpoint(data)[0], None
    except (ValueError, KeyError, TypeError) as error:
        return None, f"{os.path.basename(path)}: {error!r}"[:200]


def checkpoint_tensors(path):
    """Returns the bytes of all tensors, without the header, which contains times."""
    data = read_file(path)
    if data is None:
        return None
    size, = struct.unpack("<Q", data[:8])
    return data[8 + size:]


def leftovers(folder):
    """Returns temporary files anywhere in the folder."""
    return sorted(os.path.relpath(path, folder) for path in glob.glob(folder + "/**/*.tmp", recursive=True))


def read_metrics(run):
    """Returns (steps, first problem, torn) of metrics.jsonl: steps increase; torn: the last line is incomplete."""
    data = read_file(os.path.join(run, "metrics.jsonl")) or b""
    lines = data.split(b"\n")
    steps, problems = [], []
    for number, line in enumerate(lines[:-1], 1):
        try:
            step = json.loads(line)["step"]
        except (ValueError, KeyError, TypeError):
            problems.append(f"metrics.jsonl: line {number} is no metrics: {line[:80]!r}")
            continue
        if steps and step <= steps[-1]:
            problems.append(f"metrics.jsonl: line {number}: step {step} after {steps[-1]}")
        steps.append(step)
    return steps, problems[:1], lines[-1] != b""


def event_tail(path):
    """Returns the number of bytes after the last whole record of an event file."""
    data = read_file(path) or b""
    position = 0
    while position + 12 <= len(data):
        size, = struct.unpack("<Q", data[position:position + 8])
        if position + 16 + size > len(data):
            break
        position += 16 + size
    return len(data) - position


def check_events(run, torn=False):
    """Returns problems of the event files; with `torn` the newest one may be truncated."""
    files = sorted(glob.glob(run + "/events.out.tfevents.*"), key=os.path.getmtime)
    if torn:
        files = files[:-1]
    return [f"{os.path.basename(path)}: {event_tail(path)} bytes too many" for path in files if event_tail(path)]


def check_run(run, killed=False):
    """Returns (step, problems) of a training's run folder: step is the checkpoint's, None without one.

    With `killed` the process ended without cleaning up: a torn last line and temporary files are allowed.
    """
    step, why = checkpoint_step(os.path.join(run, "checkpoint.safetensors"))
    problems = [why] if why else []
    _, wrong, torn = read_metrics(run)
    problems += wrong + check_events(run, torn=killed)
    if torn and not killed:
        problems.append("metrics.jsonl: its last line is torn")
    if not killed and leftovers(run):
        problems.append(f"temporaries: {leftovers(run)}")
    for name in ("config.json", "summary.json"):
        path = os.path.join(run, name)
        if os.path.exists(path) and not isinstance(read_json(path), dict):
            problems.append(f"{name}: not a JSON object")
    return step, problems


def check_finished(run, steps=STEPS, model=None):
    """Returns problems of a finished run: everything must exist; `model` is a run to have no less than."""
    step, problems = check_run(run)
    if step != steps:
        problems.append(f"done, but the checkpoint is of step {step}")
    summary = read_json(os.path.join(run, "summary.json")) or {}
    if summary.get("status") != "finished":
        problems.append(f"done, but summary.json says {summary.get('status')}")
    for name in ("report.html", "config.json", "views/test_000.png"):
        if not os.path.exists(os.path.join(run, name)):
            problems.append(f"done, but there is no {name}")
    for name in ("config.json", "summary.json") if model else ():
        missing = json_keys(os.path.join(model, name)) - json_keys(os.path.join(run, name))
        if missing:
            problems.append(f"done, but {name} lacks {sorted(missing)[:6]}")
    return problems


def json_keys(path):
    """Returns the keys of a JSON object and of the objects in it, as a set of dotted names."""
    names = set()
    for key, value in (read_json(path) or {}).items():
        names.add(key)
        names.update(f"{key}.{inner}" for inner in (value if isinstance(value, dict) else ()))
    return names


def check_goes_on(sandbox, run, step, more=16):
    """Returns problems of continuing after a fault: the run folder can be evaluated, reported and resumed, after which
    no trace of the fault is left; without a checkpoint a new training takes the folder.
    """
    if step is None:
        again = sandbox.run(*sandbox.training(out=os.path.relpath(run, sandbox.folder), steps=16))
        goal = 16
        problems = prefixed("training anew", check_ended(again, (DONE,)))
    else:
        goal = step + more
        problems = []
        for what, ended in (("eval", sandbox.run("eval", run)), ("report", sandbox.run("report", run)),
                            ("resume", sandbox.resume(run, goal))):
            problems += prefixed(what, check_ended(ended, (DONE,)))
    if not problems:
        after, problems = check_run(run)
        if after != goal:
            problems.append(f"the checkpoint is of step {after} instead of {goal}")
        problems = prefixed("after the fault", problems)
    return problems


def prefixed(what, problems):
    return [f"{what}: {problem}" for problem in problems]
