"""A disk that is too small: a tmpfs where that can be mounted, else a limit on the size of files."""
import functools
import os
import resource
import subprocess
import sys

import faults

HOLDS = """Training into a disk that fills ends with a line that says so, leaves a whole checkpoint or none and no
temporaries, and goes on once there is room."""
SHORT = 1
ENOUGH_KIB = 4096


@functools.lru_cache(maxsize=None)
def can_mount():
    """Whether a tmpfs can be mounted here."""
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def cases(_shared):
    disks = [["disk", kib] for kib in range(4, 800, 12)] if can_mount() else []
    return disks + [["limit", kib] for kib in (1, 2, 4, 8, 16, 40, 64, 100, 150, 180, 190)]


def limit_files(kib):
    """For subprocess: no file of the process grows beyond so much."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (kib * 1024, kib * 1024))


def train_small(kind, kib, place):
    """A training with little room."""
    if kind == "limit":
        return place.train(preexec_fn=functools.partial(limit_files, kib))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kib}k", "none", place.path("disk")], check=True)
    return place.train(out="disk/run")


def try_case(case, place):
    kind, kib = case
    os.makedirs(place.path("disk"))
    run = place.path("run") if kind == "limit" else place.path("disk", "run")
    try:
        ended = train_small(kind, kib, place)
        problems = faults.check_ended(ended, (faults.DONE, faults.FAILED, faults.BAD_INPUT))
        step, wrong = faults.check_run(run)
        problems += wrong
        if ended.code == faults.DONE:
            problems += faults.check_finished(run, model=faults.model_run(place))
        if kind == "disk":
            subprocess.run(["mount", "-o", f"remount,size={ENOUGH_KIB}k", place.path("disk")], check=True)
        problems += faults.check_goes_on(place, run, step)
    finally:
        if kind == "disk":
            subprocess.run(["umount", place.path("disk")], check=False, stderr=sys.stderr)
    return faults.Outcome(problems, {"code": ended.code, "step": step, "said": ended.last_line()})
