"""Tests --deterministic trainings under different circumstances, or stopped and resumed."""
import os
import signal
import time

import faults

HOLDS = """All tensors of the checkpoint are equal, bit for bit, whatever the threads, evaluations, saves and locale,
and however often training was killed, interrupted or resumed. More steps are another training if the learning rate
depends on their number, or if the last 16 were not whole, since the weights are averaged at their end."""
SHORT = 1
STEPS = faults.STEPS
OPTIONS = {"eval-every": [["--eval-every", "16"], ["--eval-every", "0"]], "save-every": [["--save-every", "7"]],
           "tensorboard": [["--tensorboard", "off"]], "profile": [["--profile"]]}


def cases(_shared):
    plain = [["threads", n] for n in (0, 1, 2, 3, 8, 16)] + [["locale", 0]] + [["again", n] for n in range(2)]
    options = [["option", key, n] for key, variants in OPTIONS.items() for n in range(len(variants))]
    stopped = [["split", step] for step in (16, 32, 48)] + [["stop", 0], ["seconds", 0]]
    return plain + options + stopped + [[kind, n] for kind in ("kill", "interrupt") for n in range(30)]


def pick(rnd, found, count):
    """Takes one that is stopped on the way, and others."""
    stopped = [case for case in found if case[0] in ("split", "kill", "interrupt")]
    others = [case for case in found if case not in stopped]
    return faults.draw(rnd, stopped, (count + 1) // 2) + faults.draw(rnd, others, count // 2)


def training(sandbox, *more, **options):
    return sandbox.training("--deterministic", *more, **options)


def split_training(sandbox, **options):
    """Returns a training whose learning rate does not depend on the number of steps."""
    rates = sandbox.path("rates.txt")
    with open(rates, "w", encoding="utf-8") as file:
        file.write("0 0.001\n16 0.01\n40 0.002\n")
    return training(sandbox, "--lr-schedule", f"file:{rates}", **options)


def whole_run(sandbox, case):
    """Returns the folder of the undisturbed training."""
    if case[0] != "split":
        return faults.model_run(sandbox)
    ended = sandbox.run(*split_training(sandbox, out="whole"))
    problems = faults.check_ended(ended, (faults.DONE,))
    if problems:
        raise faults.Broken(f"a training without faults: {problems[0]}")
    return sandbox.path("whole")


def stop(sandbox, how):
    """Ends a training on its way, after a save."""
    process = sandbox.start(*training(sandbox, "--save-every", 4))
    faults.wait_for_file(sandbox.path("run", "checkpoint.safetensors"), process)
    time.sleep(sandbox.rnd.uniform(0, 0.15))
    process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
    return faults.wait(process)


def try_undisturbed(case, sandbox):
    """Runs a whole training under different circumstances."""
    kind, value = case[0], case[1]
    more, env = [], {}
    if kind == "threads":
        env = {"LP_NUM_THREADS": str(value)}
    elif kind == "locale":
        env = {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"}
    elif kind == "option":
        more = OPTIONS[value][case[2]]
    return sandbox.run(*training(sandbox, *more), env=env)


def try_disturbed(case, sandbox):
    """Runs a training in two parts."""
    kind, value = case
    if kind == "split":
        ended = sandbox.run(*split_training(sandbox, steps=value))
    elif kind == "seconds":
        ended = sandbox.run(*training(sandbox, "--seconds", "0.1"))
    else:
        ended = stop(sandbox, kind)
    problems = faults.check_ended(ended, (faults.DONE, faults.INTERRUPTED, "SIGKILL"))
    return problems or faults.check_ended(sandbox.resume(sandbox.path("run"), STEPS, "--seconds", 1000), (faults.DONE,))


def try_stopped(sandbox):
    """Runs a training that is suspended for a short time."""
    process = sandbox.start(*training(sandbox))
    time.sleep(sandbox.rnd.uniform(0.1, 0.4))
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)
    return faults.check_ended(faults.wait(process), (faults.DONE,))


def try_case(case, sandbox):
    want = faults.checkpoint_tensors(os.path.join(whole_run(sandbox, case), "checkpoint.safetensors"))
    if case[0] == "stop":
        problems = try_stopped(sandbox)
    elif case[0] in ("split", "seconds", "kill", "interrupt"):
        problems = try_disturbed(case, sandbox)
    else:
        problems = faults.check_ended(try_undisturbed(case, sandbox), (faults.DONE,))
    got = faults.checkpoint_tensors(sandbox.path("run", "checkpoint.safetensors"))
    if not problems and got != want:
        problems.append("the tensors differ from those of an undisturbed training")
    return faults.Outcome(problems)
