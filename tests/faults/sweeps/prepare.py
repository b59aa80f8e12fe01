"""Tests vknerf prepare with the stand-in for COLMAP: killed at random times, two at once, small and read-only disks."""
import glob
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import time
import zlib

import faults
from sweeps import disk

HOLDS = """After kill -9 no child of prepare goes on; the same command then finishes. Of two in one folder one prepares
and the other is refused in a line. On a full or read-only disk it ends with a line that says so, leaves the
photographs unchanged, and finishes once there is space."""
SHORT = 3
PHOTOGRAPHS = 10
# Message about the stand-in's model, which has no cameras: all stages ran, and the reader of the scene refuses it.
DONE = "sparse/0/images.bin: image 1: there is no camera 0"
REFUSED = " is preparing this scene; wait for its end"
ENOUGH_KIB = 65536


def cases(_shared):
    kills = [["kill", n] for n in range(300)]
    pairs = [["two", n] for n in range(8)]
    mounts = [["disk", kib] for kib in range(4, 320, 4)] + [["read-only", where] for where in ("photographs", "scene")]
    return kills + pairs + (mounts if disk.can_mount() else [])


def pick(rnd, found, count):
    """Takes one of each kind first."""
    kinds = {}
    drawn = faults.draw(rnd, found, len(found))
    for case in drawn:
        kinds.setdefault(case[0], case)
    first = list(kinds.values())
    return (first + [case for case in drawn if case not in first])[:count]


# ---- photographs -----------------------------------------------------------------------------------------

def noise_png(rnd, width, height):
    rows = b"".join(b"\0" + rnd.randbytes(3 * width) for _ in range(height))
    return faults.png_file(width, height, zlib.compress(rows, 1), color=2)


def noise_bmp(rnd, width, height):
    head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 54 + 3 * width * height, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0,
                       0, 0, 0)
    return head + rnd.randbytes(3 * width * height)


def make_given(sandbox):
    """Makes photographs in `given`, two of which need ffmpeg, and the stand-in in `bin`."""
    os.makedirs(sandbox.path("given"))
    os.makedirs(sandbox.path("bin"))
    for n in range(PHOTOGRAPHS):
        kind, data = ("bmp", noise_bmp(sandbox.rnd, 40, 32)) if n < 2 else ("png", noise_png(sandbox.rnd, 404, 20))
        faults.write_file(sandbox.path("given", f"p{n}.{kind}"), data)
    shutil.copy(os.path.join(faults.SOURCE, "tests", "fake_colmap.sh"), sandbox.path("bin", "colmap"))


def sums(folder):
    """Returns checksums of the files of a folder."""
    return {path: hashlib.sha256(faults.read_file(path)).hexdigest() for path in glob.glob(folder + "/*")}


# ---- running ---------------------------------------------------------------------------------------------

def start(sandbox, out):
    # ulimit -f would end it by a signal; left() looks for the mark.
    path = sandbox.path("bin") + ":" + os.environ["PATH"]
    return sandbox.start("prepare", sandbox.path("given"), "--out", out, "--quiet", program=faults.PROGRAM,
                         env={"PATH": path, "PREPARE_SWEEP": sandbox.folder})


def is_done(ended):
    return ended.code == faults.BAD_INPUT and DONE in ended.err


def check_whole(ended, out):
    """Returns problems of a preparation that should have finished."""
    if not is_done(ended):
        return [f"is not finished: {ended.code}: {ended.err.strip()[-400:]}"]
    problems = []
    for folder in ("images", "images_2"):
        there = len(glob.glob(os.path.join(out, folder, "*")))
        if folder == "images" and there != PHOTOGRAPHS:
            problems.append(f"{there} instead of {PHOTOGRAPHS} pictures in {folder}")
    left = [path for path in glob.glob(out + "/**", recursive=True)
            if path.endswith(".tmp") or path.endswith("/new") or path.endswith(".partial")]
    return problems + ([f"left: {left[:4]}"] if left else [])


def left(sandbox, seconds=3.0):
    """Returns processes with the sandbox's mark that still exist after at most so many seconds."""
    end = time.monotonic() + seconds
    while True:
        found = [path for path in glob.glob("/proc/[0-9]*/environ")
                 if f"PREPARE_SWEEP={sandbox.folder}".encode() in (faults.read_file(path) or b"")]
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.02)


def try_kill(sandbox, out):
    for _ in range(sandbox.rnd.randint(1, 4)):
        process = start(sandbox, out)
        time.sleep(sandbox.rnd.uniform(0.0, 0.5) ** 1.5)
        process.kill()
        faults.wait(process)
        still = left(sandbox)
        if still:
            return None, [f"works on after kill -9: {still}"]
    ended = faults.wait(start(sandbox, out))
    return ended, check_whole(ended, out)


def try_two(sandbox, out, delay):
    first = start(sandbox, out)
    time.sleep(delay)
    both = [faults.wait(process) for process in (first, start(sandbox, out))]
    problems = []
    if not any(is_done(ended) for ended in both):
        problems.append(f"neither is finished: {[ended.last_line() for ended in both]}")
    for ended in both:
        problems += [] if is_done(ended) or (ended.code == faults.BAD_INPUT and REFUSED in ended.err) else [
            f"ends with {ended.code}: {ended.last_line()}"]
    ended = faults.wait(start(sandbox, out))
    return ended, problems + check_whole(ended, out)


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def try_disk(sandbox, kib):
    """Runs with a scene's disk that is too small, and then large enough."""
    out = sandbox.path("disk", "scene")
    os.makedirs(sandbox.path("disk"))
    mount("-t", "tmpfs", "-o", f"size={kib}k", "none", sandbox.path("disk"))
    ended = faults.wait(start(sandbox, out))
    problems = [] if is_done(ended) else faults.check_ended(ended, (faults.FAILED, faults.BAD_INPUT))
    if not is_done(ended) and not any(word in ended.err for word in ("No space left", "full disk", "cannot")):
        problems.append(f"does not name the disk: {ended.last_line()}")
    mount("-o", f"remount,size={ENOUGH_KIB}k", sandbox.path("disk"))
    again = faults.wait(start(sandbox, out))
    return ended, problems + check_whole(again, out)


def try_read_only(sandbox, where):
    """Expects that photographs may be read-only, and that the message names a read-only scene folder."""
    given = sandbox.path("given")
    out = sandbox.path("disk", "scene")
    if where == "photographs":
        mount("--bind", given, given)
        try:
            mount("-o", "remount,bind,ro", given)
            ended = faults.wait(start(sandbox, out))
        finally:
            subprocess.run(["umount", given], check=False, stderr=sys.stderr)
        return ended, check_whole(ended, out)
    os.makedirs(sandbox.path("disk"))
    mount("-t", "tmpfs", "-o", "ro", "none", sandbox.path("disk"))
    ended = faults.wait(start(sandbox, out))
    problems = faults.check_refused(ended, (faults.BAD_INPUT,))
    if "Read-only file system" not in ended.err:
        problems.append(f"does not name the disk: {ended.last_line()}")
    return ended, problems


def try_case(case, sandbox):
    kind, what = case
    make_given(sandbox)
    before, out = sums(sandbox.path("given")), sandbox.path("scene")
    try:
        if kind == "kill":
            ended, problems = try_kill(sandbox, out)
        elif kind == "two":
            ended, problems = try_two(sandbox, out, (0, 0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)[what])
        else:
            ended, problems = (try_disk if kind == "disk" else try_read_only)(sandbox, what)
    finally:
        if os.path.ismount(sandbox.path("disk")):
            subprocess.run(["umount", sandbox.path("disk")], check=False, stderr=sys.stderr)
    if sums(sandbox.path("given")) != before:
        problems.append("the photographs have changed")
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()} if ended else {})
