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


def training(place, *more, **options):
    return place.training("--deterministic", *more, **options)


def split_training(place, **options):
    """A training whose learning rate does not depend on the number of steps."""
    rates = place.path("rates.txt")
    with open(rates, "w", encoding="utf-8") as file:
        file.write("0 0.001\n16 0.01\n40 0.002\n")
    return training(place, "--lr-schedule", f"file:{rates}", **options)


def whole_run(place, case):
    """Returns the folder of the undisturbed training."""
    if case[0] != "split":
        return faults.model_run(place)
    ended = place.run(*split_training(place, out="whole"))
    problems = faults.check_ended(ended, (faults.DONE,))
    if problems:
        raise faults.Broken(f"a training without faults: {problems[0]}")
    return place.path("whole")


def stop(place, how):
    """Ends a training on its way, after a save."""
    process = place.start(*training(place, "--save-every", 4))
    faults.wait_for_file(place.path("run", "checkpoint.safetensors"), process)
    time.sleep(place.rnd.uniform(0, 0.15))
    process.send_signal(signal.SIGKILL if how == "kill" else signal.SIGINT)
    return faults.wait(process)


def try_undisturbed(case, place):
    """Runs a whole training under different circumstances."""
    kind, value = case[0], case[1]
    more, env = [], {}
    if kind == "threads":
        env = {"LP_NUM_THREADS": str(value)}
    elif kind == "locale":
        env = {"LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"}
    elif kind == "option":
        more = OPTIONS[value][case[2]]
    return place.run(*training(place, *more), env=env)


def try_disturbed(case, place):
    """Runs a training in two parts."""
    kind, value = case
    if kind == "split":
        ended = place.run(*split_training(place, steps=value))
    elif kind == "seconds":
        ended = place.run(*training(place, "--seconds", "0.1"))
    else:
        ended = stop(place, kind)
    problems = faults.check_ended(ended, (faults.DONE, faults.INTERRUPTED, "SIGKILL"))
    return problems or faults.check_ended(place.resume(place.path("run"), STEPS, "--seconds", 1000), (faults.DONE,))


def try_stopped(place):
    """Runs a training that is suspended for a moment."""
    process = place.start(*training(place))
    time.sleep(place.rnd.uniform(0.1, 0.4))
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.3)
    process.send_signal(signal.SIGCONT)
    return faults.check_ended(faults.wait(process), (faults.DONE,))


def try_case(case, place):
    want = faults.checkpoint_tensors(os.path.join(whole_run(place, case), "checkpoint.safetensors"))
    if case[0] == "stop":
        problems = try_stopped(place)
    elif case[0] in ("split", "seconds", "kill", "interrupt"):
        problems = try_disturbed(case, place)
    else:
        problems = faults.check_ended(try_undisturbed(case, place), (faults.DONE,))
    got = faults.checkpoint_tensors(place.path("run", "checkpoint.safetensors"))
    if not problems and got != want:
        problems.append("the tensors differ from those of an undisturbed training")
    return faults.Outcome(problems)
