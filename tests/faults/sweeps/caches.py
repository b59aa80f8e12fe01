"""Tests caches of pipelines, of shaders and of tuning results that are truncated, forged or not files."""
import glob
import json
import os
import shutil
import struct
import threading

import faults

HOLDS = """A cache that is broken, or cannot be written, only costs time: it is made anew, and nothing that a link in it
points to is written."""
SHORT = 1
HEADER = b"VKNERF CACHE 2\0\0" + bytes(8)
lock = threading.Lock()
MEASURES = ({"milliseconds": "x"}, {"milliseconds": -5}, {"milliseconds": 1e308}, {"milliseconds": 0}, {"fault": 5},
            {"fault": "%s%n\x1b[31m" * 200}, {"fault": ""}, [], None, "x")


def fnv(data):
    """Returns the checksum of a pipeline cache."""
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) & (2**64 - 1)
    return value


def sealed(data):
    """Returns a pipeline cache with a valid checksum."""
    return HEADER + struct.pack("<Q", fnv(data)) + data


def shaders_of(good, rnd):
    """Returns files to replace a shader's binary: 32 bytes, the last 8 of them a checksum, then the driver's data."""
    data = rnd.randbytes(5000)
    return {"good": good, "empty": b"", "cut": good[:40], "a bit": good[:-1] + bytes([good[-1] ^ 1]),
            "other magic": b"X" + good[1:], "other key": good[:16] + bytes([good[16] ^ 1]) + good[17:],
            "sealed, random": good[:24] + struct.pack("<Q", fnv(data)) + data}


def programs_of(good, rnd):
    """Returns files to replace a pipeline cache."""
    return {"good": good, "empty": b"", "cut": good[:10], "a bit": good[:-1] + bytes([good[-1] ^ 1]),
            "other magic": b"XXXXXXXX" + good[8:], "sealed, empty": sealed(b""),
            "sealed, random": sealed(rnd.randbytes(5000)),
            "sealed, huge header": sealed(struct.pack("<III", 2**31, 1, 0x10005) + rnd.randbytes(3000)),
            "sealed, more": sealed(good[32:] + rnd.randbytes(4000))}


def records_of(rnd):
    """Returns texts to replace records of backends or tuning."""
    broken = [json.dumps({"version": 1, "paths": {"a": measure}, "tuned": {"a": measure}}).encode()
              for measure in MEASURES]
    return [*broken, rnd.randbytes(3000), b"[" * 10**6, b'{"a":"' + b"x" * 5_000_000 + b'"}', b'{"paths": []}', b"",
            json.dumps({"paths": {f"k{i}": {} for i in range(100000)}}).encode()]


def cases(_shared):
    programs = ["good", "empty", "cut", "a bit", "other magic", "sealed, empty", "sealed, random",
                "sealed, huge header", "sealed, more"]
    odd = [["odd", name] for name in ("a folder", "/dev/zero", "a link", "read-only", "no folder")]
    shaders = ["good", "empty", "cut", "a bit", "other magic", "other key", "sealed, random", "a folder", "/dev/zero",
               "a link"]
    odd += [["shaders", name] for name in shaders]
    return [["programs", name] for name in programs] + odd + [["records", n] for n in range(len(MEASURES) + 6)]


def make_cache(sandbox):
    """Creates a cache by using it."""
    cache = sandbox.shared.path("cache")
    with lock:
        if not os.path.exists(cache):
            ended = sandbox.run("eval", faults.model_run(sandbox), "--quiet", env={"XDG_CACHE_HOME": cache})
            if ended.code != faults.DONE:
                raise faults.Broken(f"an evaluation without faults: {ended.last_line()}")
    return cache


def copy_cache(sandbox):
    """Copies the cache to the sandbox; returns its folder and the pipeline cache file."""
    shutil.copytree(make_cache(sandbox), sandbox.path("cache"))
    found = glob.glob(sandbox.path("cache", "vknerf", "pipelines-*"))
    if len(found) != 1:
        raise faults.Broken(f"pipeline caches: {found}")
    return sandbox.path("cache"), found[0]


def make_odd(name, path, victim):
    """Replaces the pipeline cache by something that is not a file."""
    faults.remove(path)
    if name == "a folder":
        os.mkdir(path)
    elif name == "/dev/zero":
        os.symlink("/dev/zero", path)
    elif name == "a link":
        faults.write_file(victim, b"precious")
        os.symlink(victim, path)
    elif name == "read-only":
        os.chmod(os.path.dirname(path), 0o555)
    else:
        faults.remove(os.path.dirname(path))
        faults.write_file(os.path.dirname(path), b"a file in the way")


def break_cache(case, path, sandbox):
    """Damages the cache as the case says."""
    kind, name = case
    if kind == "programs":
        faults.write_file(path, programs_of(faults.read_file(path), sandbox.rnd)[name])
    elif kind == "odd":
        make_odd(name, path, sandbox.path("victim"))
    elif kind == "shaders":
        for binary in glob.glob(os.path.join(os.path.dirname(path), "shaders-*", "*.bin")):
            texts = shaders_of(faults.read_file(binary), sandbox.rnd)
            if name in texts:
                faults.write_file(binary, texts[name])
            else:
                make_odd(name, binary, sandbox.path("victim"))
    else:
        text = records_of(sandbox.rnd)[name]
        for prefix in ("paths", "tuning"):
            record = path.replace("pipelines-", prefix + "-").replace(".bin", ".json")
            faults.write_file(record, text)


def try_case(case, sandbox):
    cache, path = copy_cache(sandbox)
    break_cache(case, path, sandbox)
    arguments = ["eval", faults.model_run(sandbox), "--quiet"]
    if case[0] == "records":
        # Measurements are needed for 16-bit precisions.
        arguments = sandbox.training("--precision", "fp16", steps=16)
    ended = sandbox.run(*arguments, env={"XDG_CACHE_HOME": cache})
    problems = faults.check_ended(ended, (faults.DONE,))
    if case[1] == "a link" and faults.read_file(sandbox.path("victim")) != b"precious":
        problems.append("what a link in the cache points to was written")
    if case[1] == "read-only":
        os.chmod(os.path.dirname(path), 0o755)
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()})
