"""Tests failure of the Nth allocation of info, report, eval and train."""
import hashlib
import os
import shutil
import threading

import faults

HOLDS = """The program fails with one line, or gives the same result as with memory: no crash, no partial result that
counts as done, no temporary files."""
SHORT = 4
# One in this many of a command's allocations is a case, because the first ones are nearly all start-up.
EVERY = {"info": 2, "report": 2, "eval": 6, "train": 12}
lock = threading.Lock()


def arguments(command, sandbox):
    """Returns the arguments of vknerf."""
    if command == "info":
        return ["info", sandbox.scene, "--json"]
    if command == "report":
        return ["report", sandbox.path("run")]
    if command == "eval":
        return ["eval", faults.model_run(sandbox), "--json", "--quiet"]
    return sandbox.training()


def start(command, sandbox, number, count_file=None):
    """Runs a command whose allocation `number` fails; returns its end and its result."""
    if command == "report":
        shutil.copytree(faults.model_run(sandbox), sandbox.path("run"))
        faults.remove(sandbox.path("run", "report.html"))
    changes = {"LD_PRELOAD": faults.library("mallocfault"), "MALLOCFAULT_N": str(number)}
    if count_file:
        changes["MALLOCFAULT_COUNT"] = count_file
    ended = sandbox.run(*arguments(command, sandbox), env=changes)
    return ended, result_of(command, sandbox, ended)


def result_of(command, sandbox, ended):
    """Returns the result that a successful command must have, whatever the memory."""
    if command == "train":
        return None
    made = faults.read_file(sandbox.path("run", "report.html")) or b"" if command == "report" else ended.out.encode()
    return hashlib.sha256(made).hexdigest()


def count_allocations(command, shared):
    """Returns the number of a command's allocations. The result with memory is kept for expected()."""
    if command == "train":
        return faults.model_allocations(shared)
    sandbox = faults.Sandbox(shared.path("counted." + command), shared)
    sandbox.clear()
    ended, result = start(command, sandbox, 0, sandbox.path("count"))
    problems = faults.check_ended(ended, (faults.DONE,))
    if problems:
        raise faults.Broken(f"{command} with memory: {problems[0]}")
    shared.results = {**getattr(shared, "results", {}), command: result}
    return int(faults.read_file(sandbox.path("count")))


def cases(shared):
    return [[command, n] for command, every in EVERY.items()
            for n in range(1, count_allocations(command, shared) + 1, every)]


def pick(rnd, found, count):
    """Takes equally many cases of each command."""
    each = -(-count // len(EVERY))
    chosen = [faults.draw(rnd, [case for case in found if case[0] == command], each) for command in EVERY]
    return [case for cases_of in chosen for case in cases_of][:count]


def expected(command, sandbox):
    """Returns the result with memory."""
    with lock:
        if command != "train" and command not in getattr(sandbox.shared, "results", {}):
            count_allocations(command, sandbox.shared)
    return getattr(sandbox.shared, "results", {}).get(command)


def try_case(case, sandbox):
    command, number = case
    want = expected(command, sandbox)
    ended, result = start(command, sandbox, number)
    problems = faults.check_ended(ended, (faults.DONE, faults.FAILED, faults.NO_DEVICE))
    run = sandbox.path("run")
    if ended.code == faults.DONE and result != want:
        problems.append("done, but the result differs from the one with memory")
    if command == "train" and ended.code == faults.DONE:
        problems += faults.check_finished(run, model=faults.model_run(sandbox))
    if command == "train" and os.path.isdir(run):
        problems += faults.check_run(run)[1]
    if command == "report" and faults.leftovers(run):
        problems.append(f"temporaries: {faults.leftovers(run)}")
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()})
