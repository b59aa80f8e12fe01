"""Tests signals at random times of a training, its start and end included."""
import signal
import time

import faults

HOLDS = """A training that gets INT, TERM, HUP or XCPU saves and ends with 130 within seconds, or is done; a second
signal ends it at once with a valid checkpoint or none, and never as if it had saved; suspending it changes nothing;
the run can be resumed."""
SHORT = 1
STEPS = 320
ASKING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU")
SECONDS_TO_END = 10.0


def cases(_shared):
    once = [[name, n] for name in ASKING for n in range(60)]
    return once + [["twice", n] for n in range(40)] + [["stop", n] for n in range(20)]


def send(process, kind, rnd):
    """Sends the signals of a case."""
    if kind == "twice":
        process.send_signal(signal.SIGINT)
        time.sleep(rnd.choice([0.001, 0.02, 0.35]))  # within 0.3 s it counts as the same signal
        process.send_signal(signal.SIGINT)
    elif kind == "stop":
        for _ in range(3):
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
    else:
        process.send_signal(signal.Signals[kind])


def check_answer(kind, ended, run, step, seconds, model):
    """Returns problems of a training's reaction."""
    # Before vknerf starts, a signal ends the shell that starts it.
    early = [*ASKING, "SIGINT", "SIGTERM"] if not faults.read_file(run + "/config.json") else []
    problems = faults.check_ended(ended, (faults.DONE, faults.INTERRUPTED, *early))
    if seconds > SECONDS_TO_END:
        problems.append(f"took {seconds:.1f} s to end")
    if ended.code == faults.DONE:
        problems += faults.check_finished(run, STEPS, model)
    status = (faults.read_json(run + "/summary.json") or {}).get("status")
    if ended.code == faults.INTERRUPTED and kind != "twice" and status == "interrupted" and step is None:
        problems.append("says that it was interrupted and has saved nothing")
    return problems


def try_case(case, sandbox):
    kind, _ = case
    run = sandbox.path("run")
    process = sandbox.start(*sandbox.training(steps=STEPS))
    time.sleep(sandbox.rnd.uniform(0, 0.9))
    send(process, kind, sandbox.rnd)
    asked = time.monotonic()
    ended = faults.wait(process)
    step, problems = faults.check_run(run, killed=kind == "twice")
    problems += check_answer(kind, ended, run, step, time.monotonic() - asked, None)
    if ended.code != faults.DONE:
        problems += faults.check_goes_on(sandbox, run, step)
    return faults.Outcome(problems, {"code": ended.code, "step": step, "said": ended.last_line()})
