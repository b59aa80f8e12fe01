"""Tests run folders that lack files, contain folders in place of files, or vanish during a training."""
import os
import shutil

import faults

HOLDS = """Every command accepts such a folder or refuses it in one line; a training whose folder vanishes may go on for
a while, but ends with 1 and a line that says so."""
SHORT = 3
FILES = ("config.json", "summary.json", "metrics.jsonl", "checkpoint.safetensors", "report.html", "views")
COMMANDS = ("eval", "report", "resume", "render")
DAMAGES = ("gone", "folder", "file", "loop", "empty")
LOST = ("removed", "moved", "a file instead")
STEPS_AFTER_LOSS = 160


def cases(_shared):
    damaged = [[command, file, damage] for command in COMMANDS for file in FILES for damage in DAMAGES]
    whole = [[command, "", damage] for command in COMMANDS for damage in ("gone", "file", "loop", "empty", "no folder")]
    return damaged + whole + [["lost", how, n] for how in LOST for n in range(4)]


def pick(rnd, found, count):
    """Takes one that loses its folder, and others."""
    lost = [case for case in found if case[0] == "lost"]
    others = [case for case in found if case not in lost]
    return faults.draw(rnd, lost, 1 + count // 10) + faults.draw(rnd, others, count - 1 - count // 10)


def damage_path(path, damage):
    """Replaces a file or a folder by something else."""
    faults.remove(path)
    if damage == "folder":
        os.makedirs(path + "/in the way")
    elif damage == "file":
        faults.write_file(path, b"not what it should be\n")
    elif damage == "loop":
        os.symlink(path, path)
    elif damage == "empty":
        faults.write_file(path, b"")
    elif damage == "no folder":
        os.mkdir(path)


def try_damaged(command, file, damage, sandbox):
    """Runs a command on a damaged run folder."""
    run = sandbox.path("run")
    shutil.copytree(faults.model_run(sandbox), run)
    damage_path(os.path.join(run, file) if file else run, damage)
    ended = {"eval": lambda: sandbox.run("eval", run, "--quiet"), "resume": lambda: sandbox.resume(run, faults.STEPS + 16),
             "report": lambda: sandbox.run("report", run, "--quiet"),
             "render": lambda: sandbox.run("render", run, "--orbit", 1, "--quiet", "--out",
                                           sandbox.path("out"))}[command]()
    # An obstacle to writing a file is found late, and may cost only the report.
    problems = faults.check_ended(ended, (faults.DONE, faults.BAD_INPUT, faults.FAILED))
    if command != "resume":
        problems += faults.check_refused(ended)
    if faults.leftovers(sandbox.folder):
        problems.append(f"temporaries: {faults.leftovers(sandbox.folder)}")
    return ended, problems


def try_lost(how, sandbox):
    """Runs a training whose folder vanishes."""
    run = sandbox.path("run")
    process = sandbox.start(*sandbox.training(steps=STEPS_AFTER_LOSS))
    if not faults.wait_for_file(run + "/checkpoint.safetensors", process):
        return faults.wait(process), ["no checkpoint"]
    if how == "moved":
        os.rename(run, sandbox.path("moved"))
    else:
        os.rename(run, sandbox.path("removed"))
        shutil.rmtree(sandbox.path("removed"), ignore_errors=True)
    if how == "a file instead":
        faults.write_file(run, b"in the way\n")
    ended = faults.wait(process)
    return ended, faults.check_ended(ended, (faults.FAILED,))


def try_case(case, sandbox):
    ended, problems = try_lost(case[1], sandbox) if case[0] == "lost" else try_damaged(*case, sandbox)
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()})
