"""kill -9 at random moments of a training, most of them while it saves, evaluates or ends."""
import os
import time

import faults

HOLDS = """The checkpoint is absent or whole and no more than a save's interval behind; what is left can be evaluated,
reported and resumed, after which no temporaries are left; without a checkpoint a training anew takes the folder."""
SHORT = 1
STEPS = 160
# What to wait for, and how likely it is drawn. A temporary lives for less than a millisecond.
MOMENTS = {"time": 3, "save": 4, "evaluation": 2, "end": 3}


def cases(_shared):
    return list(range(500))


def names_in(folder):
    try:
        return [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []


def is_moment(run, moment):
    """Whether a file tells that the moment has come."""
    if moment == "save":
        return any(name.startswith("checkpoint.") and name.endswith(".tmp") for name in names_in(run))
    views = names_in(os.path.join(run, "views"))
    if moment == "evaluation":
        return any(name.startswith("step_") for name in views)
    return any(name.startswith("test_") for name in views) or "summary.json" in names_in(run)


def wait_for_moment(rnd, run, moment, process):
    """Returns when the process should be killed."""
    if moment == "time":
        time.sleep(rnd.uniform(0.02, 0.8))
        return
    for _ in range(rnd.randint(1, 6) if moment == "save" else 1):
        while not is_moment(run, moment) and process.poll() is None:
            pass
        while moment == "save" and is_moment(run, moment) and rnd.random() < 0.9 and process.poll() is None:
            pass
    time.sleep(rnd.choice([0, 0, rnd.uniform(0, 0.004), rnd.uniform(0, 0.03)]))


def try_case(_case, place):
    rnd, run = place.rnd, place.path("run")
    moment = rnd.choices(list(MOMENTS), list(MOMENTS.values()))[0]
    began = time.monotonic()
    process = place.start(*place.training(steps=STEPS))
    wait_for_moment(rnd, run, moment, process)
    process.kill()
    ended, after = faults.wait(process), time.monotonic() - began
    step, problems = faults.check_run(run, killed=True)
    steps, _, _ = faults.read_metrics(run)
    if steps and steps[-1] - (step or 0) > 2 * faults.SAVE_EVERY:
        problems.append(f"saved at step {step}, but step {steps[-1]} was reached")
    facts = {"code": ended.code, "moment": moment, "after": round(after, 3), "step": step,
             "temporaries": len(faults.leftovers(run))}
    return faults.Outcome(problems + faults.check_goes_on(place, run, step), facts)
