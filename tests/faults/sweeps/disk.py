"""Tests full disks: a tmpfs if one can be mounted, and writes that fail from some time on."""
import functools
import os
import subprocess
import sys

import faults
from sweeps import systemcalls

HOLDS = """Training on a disk that fills up ends with a line that says so, leaves a valid checkpoint or none and no
temporary files, and can be continued once there is space."""
SHORT = 1
ENOUGH_KIB = 4096
# A limit of file sizes does not work: lavapipe keeps its memory in a file, and dies.
FULL = {"ENOSPC": 28, "EDQUOT": 122}


@functools.lru_cache(maxsize=None)
def can_mount():
    """Returns whether a tmpfs can be mounted here."""
    return subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def cases(shared):
    disks = [["disk", kib] for kib in range(4, 800, 12)] if can_mount() else []
    writes = systemcalls.count_calls(shared, "run")["write"]
    return disks + [[error, n] for error in FULL for n in range(1, writes + 1, 5)]


def train_small(kind, size, sandbox):
    """Runs a training with little disk space."""
    if kind in FULL:
        return sandbox.train(env=systemcalls.injection(sandbox.path("run"), "write,ftruncate", size, FULL[kind], 1))
    os.makedirs(sandbox.path("disk"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", sandbox.path("disk")], check=True)
    return sandbox.train(out="disk/run")


def try_case(case, sandbox):
    kind, size = case
    run = sandbox.path("disk", "run") if kind == "disk" else sandbox.path("run")
    try:
        ended = train_small(kind, size, sandbox)
        problems = faults.check_ended(ended, (faults.DONE, faults.FAILED))
        step, wrong = faults.check_run(run)
        problems += wrong
        if ended.code == faults.DONE:
            problems += faults.check_finished(run, model=faults.model_run(sandbox))
        if kind == "disk":
            subprocess.run(["mount", "-o", f"remount,size={ENOUGH_KIB}k", sandbox.path("disk")], check=True)
        problems += faults.check_goes_on(sandbox, run, step)
    finally:
        if os.path.ismount(sandbox.path("disk")):
            subprocess.run(["umount", sandbox.path("disk")], check=False, stderr=sys.stderr)
    return faults.Outcome(problems, {"code": ended.code, "step": step, "said": ended.last_line()})
