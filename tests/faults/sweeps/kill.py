"""Tests kill -9 at random times of a training, mostly while it saves, evaluates or ends."""
import os
import time

import faults

HOLDS = """The checkpoint is missing or valid and at most one save interval old; the run folder can be evaluated,
reported and resumed, after which no temporary files are left; without a checkpoint a new training takes the folder."""
SHORT = 1
STEPS = 160
# Events to wait for, and their probability. A temporary file exists for less than a millisecond.
EVENTS = {"time": 3, "save": 4, "evaluation": 2, "end": 3}


def cases(_shared):
    return list(range(500))


def names_in(folder):
    try:
        return [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []


def has_happened(run, event):
    """Returns whether a file shows that the event has happened."""
    if event == "save":
        return any(name.startswith("checkpoint.") and name.endswith(".tmp") for name in names_in(run))
    views = names_in(os.path.join(run, "views"))
    if event == "evaluation":
        return any(name.startswith("step_") for name in views)
    return any(name.startswith("test_") for name in views) or "summary.json" in names_in(run)


def wait_for_event(rnd, run, event, process):
    """Waits until the process should be killed."""
    if event == "time":
        time.sleep(rnd.uniform(0.02, 0.8))
        return
    for _ in range(rnd.randint(1, 6) if event == "save" else 1):
        while not has_happened(run, event) and process.poll() is None:
            pass
        while event == "save" and has_happened(run, event) and rnd.random() < 0.9 and process.poll() is None:
            pass
    time.sleep(rnd.choice([0, 0, rnd.uniform(0, 0.004), rnd.uniform(0, 0.03)]))


def try_case(_case, sandbox):
    rnd, run = sandbox.rnd, sandbox.path("run")
    event = rnd.choices(list(EVENTS), list(EVENTS.values()))[0]
    began = time.monotonic()
    process = sandbox.start(*sandbox.training(steps=STEPS))
    wait_for_event(rnd, run, event, process)
    process.kill()
    ended, after = faults.wait(process), time.monotonic() - began
    step, problems = faults.check_run(run, killed=True)
    steps, _, _ = faults.read_metrics(run)
    if steps and steps[-1] - (step or 0) > 2 * faults.SAVE_EVERY:
        problems.append(f"saved at step {step}, but step {steps[-1]} was reached")
    facts = {"code": ended.code, "event": event, "after": round(after, 3), "step": step,
             "temporaries": len(faults.leftovers(run))}
    return faults.Outcome(problems + faults.check_goes_on(sandbox, run, step), facts)
