"""Tests random configurations: any model, precision and sampling, with settings at their limits and just beyond."""
import functools
import json
import math
import os
import re
import resource
import signal
import subprocess
import time

import faults

HOLDS = """Two steps are trained, and the result can be evaluated, or one line says which setting is invalid: no signal,
no hang, no other failure, no loss that is not finite without a message. Slow trainings end when interrupted."""
SHORT = 1
CASES = 500
SLOW, HANGS = 45.0, 75.0  # seconds until a training is interrupted, and from there until it must have ended
MEMORY = 6 << 30  # bytes of address space, so that no case takes the machine's memory
PRECISIONS = ("fp32", "fp16", "coopmat")
MODELS = ("ngp", "ngp", "layered", "vanilla", "dynamic")
# Settings that the sweep sets itself, and settings that need another file or rank.
FIXED = ("model", "precision", "steps", "seconds", "glsl.source", "loss_scale.schedule", "optimizer.rates")
# Larger values take minutes per step on a CPU device: they are drawn only where they are refused at once.
SLOWER = {"batch.samples": 16384, "batch.max_rays": 16384, "mlp.density_layers": 4, "mlp.color_layers": 3,
          "mlp.density_width": 64, "mlp.color_width": 64, "mlp.geometry": 64, "dynamic.layers": 3,
          "dynamic.width": 64, "march.resolution": 64, "eval_views": 2, "parallel.ranks_per_device": 4,
          "march.ray_samples": 256, "grid.log2_entries": 18, "proposal.log2_entries": 16, "proposal.width": 32}


@functools.lru_cache(maxsize=None)
def settings():
    """Returns (key, kind, values) of every setting, as `vknerf train --help` lists them."""
    text = subprocess.run([faults.PROGRAM, "train", "--help"], capture_output=True, text=True, check=True).stdout
    found = []
    for key, words in re.findall(r"^  ([a-z][a-z0-9_.]*) .*\n {10,}(.*)", text, re.MULTILINE):
        words = words.split("; default")[0]
        numbers = re.match(r"([-+.0-9e]+)\.\.([-+.0-9e]+)(?:, multiples of (\d+))?(?:, (\d+) of them)?", words)
        if numbers:
            low, high, step, count = numbers.groups()
            found.append((key, "number", [float(low), float(high), int(step or 0), int(count or 1)]))
        elif "|" in words:
            found.append((key, "name", words.split("|")))
        elif words == "bytes":
            found.append((key, "bytes", []))
        elif words.startswith("N,"):
            found.append((key, "steps", []))
    return tuple(found)


def cases(shared):
    return list(range(CASES))


def pick(rnd, found, count):
    """Takes the first cases: they depend on the seed."""
    return found[:count]


def draw_number(rnd, key, low, high, step, whole):
    """Draws a number of the range: its limits, values between them in proportion, or rarely one just outside."""
    way = rnd.random()
    if way < 0.02:
        return low - (step or 1) if rnd.random() < 0.5 else high + (step or 1)
    if way < (0.05 if key in SLOWER else 0.15):
        return high
    high = min(high, SLOWER.get(key, high))
    if way < 0.35:
        return low
    if low > 0:
        value = math.exp(rnd.uniform(math.log(low), math.log(high)))
    else:
        value = rnd.uniform(low, high)
    if step:
        value = max(low, round(value / step) * step)
    if key in ("march.resolution", "scene.aabb_scale"):
        value = 2 ** round(math.log2(value))
    return round(value) if whole else value


def draw_value(rnd, key, kind, values):
    """Draws the text of a value for --set."""
    if kind == "name":
        return rnd.choice(values)
    if kind == "bytes":
        return rnd.choice(["1", "1K", "64K", "1M", "1G", "1024T", "default"])
    if kind == "steps":
        return rnd.choice(["1", "2", "1,2", "1x2", "0", "4294967295", "4294967296", "2,1"])
    low, high, step, count = values
    whole = low == int(low) and high == int(high) and count == 1 and (high > 16 or step > 0 or low == 1 < high)
    drawn = (draw_number(rnd, key, low, high, step, whole) for _ in range(count))
    return ",".join(str(int(value)) if whole or value == int(value) and abs(value) < 2**53 else f"{value:.6g}"
                    for value in drawn)


def draw(rnd, number):
    """Draws the settings of a case, by key."""
    drawn = {**faults.MODEL, "model": rnd.choice(MODELS), "precision": PRECISIONS[number % len(PRECISIONS)]}
    if drawn["model"] in ("layered", "vanilla"):  # columns are multiples of 32
        drawn.update({"mlp.density_width": 32, "mlp.color_width": 32, "mlp.geometry": 32})
    if rnd.random() < 0.1:
        drawn["precision"] = "auto"
    drawn["march.sampling"] = rnd.choice(["default", "occupancy", "uniform", "hierarchical", "proposal"])
    drawn["deterministic"] = rnd.choice(["true", "false", "false"])
    others = [row for row in settings() if row[0] not in FIXED]
    for key, kind, values in rnd.sample(others, rnd.randint(1, 6)):
        drawn[key] = draw_value(rnd, key, kind, values)
    return drawn


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def run(sandbox, *arguments):
    """Runs vknerf; a slow run is interrupted, and killed if that does not end it."""
    sanitized = "VKNERF_SANITIZED" in os.environ or faults.BUILD.rstrip("/").endswith("asan")
    process = sandbox.start(*arguments, preexec_fn=None if sanitized else limit_memory)
    end = time.monotonic() + SLOW
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    slow = process.poll() is None
    if slow:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(HANGS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            slow = None
    code = faults.HANG if slow is None else process.returncode
    if isinstance(code, int) and code < 0:
        code = signal.Signals(-code).name
    out, err = map(faults.said, process.said)
    return faults.Ended(code, out, err, 0.0), slow is not False


def check(ended, slow, what):
    """Returns problems of an end: success, or one line that names a setting or an option."""
    allowed = (faults.DONE, faults.BAD_INPUT, faults.NO_DEVICE) + ((faults.INTERRUPTED,) if slow else ())
    problems = faults.check_ended(ended, allowed)
    lines = [line for line in ended.err.splitlines() if line.startswith("vknerf: ")]
    if not problems and ended.code in (faults.BAD_INPUT, faults.NO_DEVICE):
        keys = [key for key, *_ in settings() if key in ended.last_line()]
        if len(lines) != 1:
            problems.append(f"{len(lines)} lines instead of one: {ended.err[:400]!r}")
        elif not keys and "--" not in ended.last_line():
            problems.append(f"names no setting: {ended.last_line()}")
    return faults.prefixed(what, problems)


def check_loss(sandbox, ended):
    """Returns problems of a finished training: its figures are finite, or a line says why not."""
    summary = faults.read_json(sandbox.path("run", "summary.json")) or {}
    lines = (faults.read_file(sandbox.path("run", "metrics.jsonl")) or b"").splitlines()
    figures = [json.loads(line).get("loss") for line in lines] + [summary.get("psnr")]
    wrong = [value for value in figures if value is None or not math.isfinite(value)]
    if wrong and "not finite" not in ended.err and "skipped" not in ended.err:
        return [f"figures are not finite, without a message: {figures}"]
    return []


def try_case(case, sandbox):
    drawn = draw(sandbox.rnd, case)
    # Half of the settings are in a file.
    if case % 2:
        faults.write_json(sandbox.path("config.json"), drawn)
        given = ["--config", sandbox.path("config.json")]
    else:
        given = [word for key, value in drawn.items() for word in ("--set", f"{key}={value}")]
    ended, slow = run(sandbox, "train", sandbox.scene, *given, "--steps", "2", "--quiet", "--out", sandbox.path("run"))
    problems = check(ended, slow, "train")
    if not problems and ended.code == faults.DONE:
        problems += check_loss(sandbox, ended)
        if case % 5 == 0:
            again, slow = run(sandbox, "eval", sandbox.path("run"), "--json", "--quiet")
            problems += check(again, slow, "eval")
    if faults.leftovers(sandbox.folder):
        problems.append(f"temporaries: {faults.leftovers(sandbox.folder)}")
    facts = {"code": ended.code, "said": ended.last_line(), "slow": slow, "settings": json.dumps(drawn)}
    return faults.Outcome(problems, facts)
