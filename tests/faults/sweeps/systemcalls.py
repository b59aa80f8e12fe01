"""Tests failure of, and death in, every system call of a training on its run folder, its scene or its cache."""
import collections
import os

import faults

HOLDS = """A training that fails says so in a line, leaves no temporary files and a valid checkpoint or none; a
successful one has the same files as without the fault; a failing cache changes nothing. The run folder can be
evaluated, reported and resumed."""
SHORT = 2

# Errors of calls, used in turn. Memory maps, threads and clocks are no calls on files.
ERRORS = {"open": ("EMFILE", "EIO", "EACCES"), "write": ("ENOSPC", "EIO", "EDQUOT"), "fsync": ("EIO", "EDQUOT"),
          "rename": ("EIO", "ENOSPC"), "mkdir": ("EDQUOT", "ENOSPC"), "read": ("EIO",), "stat": ("EIO",),
          "close": ("EIO",), "fcntl": ("EMFILE",), "lseek": ("EIO",), "unlink": ("EACCES",), "rmdir": ("EACCES",),
          "ftruncate": ("EIO",), "getdents": ("EIO",), "access": ("EACCES",), "readlink": ("EIO",),
          "flock": ("ENOLCK",)}
NUMBERS = {"EIO": 5, "EACCES": 13, "EMFILE": 24, "ENOSPC": 28, "ENOLCK": 37, "EDQUOT": 122}
# Calls that change the disk: dying there is a separate case.
DEADLY = ("open", "write", "fsync", "rename", "mkdir", "unlink", "ftruncate", "close")
# One in this many writes is a case of a disk that fills up and stays full.
STICKY_EVERY = {"write": 8, "fsync": 8, "open": 12, "rename": 4}


def injection(folder, kind, number, error, sticky):
    """Returns the environment in which a call fails."""
    return {"LD_PRELOAD": faults.library("callfault"), "CALLFAULT_CALLS": kind, "CALLFAULT_PATH": folder,
            "CALLFAULT_N": str(number), "CALLFAULT_ERROR": str(error), "CALLFAULT_STICKY": str(sticky)}


def folder_of(sandbox, where, run="run"):
    """Returns the folder whose calls a case is about."""
    if where == "cache":
        return os.path.join(faults.environment(None)["XDG_CACHE_HOME"], "vknerf")
    return sandbox.scene if where == "scene" else sandbox.path(run)


def count_calls(shared, where):
    """Returns how often a training without faults makes each kind of call."""
    folder = folder_of(shared, where, "model")
    inside = [kind for kind, name in faults.model_calls(shared) if name == folder or name.startswith(folder + "/")]
    return collections.Counter(inside)


def cases(shared):
    found = []
    for where in ("run", "scene", "cache"):
        for kind, count in sorted(count_calls(shared, where).items()):
            errors = ERRORS[kind]
            found += [[where, kind, n, errors[n % len(errors)], 0] for n in range(1, count + 1)]
            if where != "run":
                continue
            if kind in DEADLY:
                found += [[where, kind, n, "death", 0] for n in range(1, count + 1)]
            if kind in STICKY_EVERY:
                found += [[where, kind, n, errors[0], 1] for n in range(1, count + 1, STICKY_EVERY[kind])]
    return found


def pick(rnd, found, count):
    """Most calls read the scene or look at files, so every second case is a call of saving."""
    saves = [case for case in found if case[0] == "run" and case[1] in ("write", "fsync", "rename")]
    chosen = faults.draw(rnd, saves, (count + 1) // 2)
    return chosen + faults.draw(rnd, [case for case in found if case not in chosen], count - len(chosen))


def check_fault(where, kind, error, ended, run, model):
    """Returns problems of a training in which a call failed."""
    codes = {faults.DONE, faults.FAILED}
    if where == "cache":
        codes = {faults.DONE}
    elif where == "scene" or error == "EACCES":
        codes.add(faults.BAD_INPUT)
    problems = faults.check_ended(ended, codes)
    if ended.code == faults.DONE:
        problems += faults.check_finished(run, model=model)
    # A temporary file that cannot be removed stays until the next training.
    return [problem for problem in problems if kind != "unlink" or not problem.startswith("temporaries")]


def try_case(case, sandbox):
    where, kind, number, error, sticky = case
    run, model = sandbox.path("run"), faults.model_run(sandbox)
    deadly = error == "death"
    failure = 0 if deadly else NUMBERS[error]
    ended = sandbox.train(env=injection(folder_of(sandbox, where), kind, number, failure, sticky))
    problems = faults.check_ended(ended, ("SIGKILL", faults.DONE)) if deadly else check_fault(where, kind, error, ended,
                                                                                             run, model)
    step, wrong = faults.check_run(run, killed=deadly or kind == "unlink")
    problems += wrong
    if ended.code != faults.DONE:
        problems += faults.check_goes_on(sandbox, run, step)
    return faults.Outcome(problems, {"code": ended.code, "step": step, "said": ended.last_line()})
