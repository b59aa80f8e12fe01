#!/usr/bin/env python3
"""Tests the simulation of several ranks, tools/scaling_model.py: cases computed by hand, its formula, monotony, and
values taken from a run. Needs only the standard library."""
import contextlib
import dataclasses
import io
import itertools
import json
import math
import os
import sys
import tempfile

SOURCE = os.environ.get("VKNERF_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import scaling_model as scaling  # noqa: E402

# A host without overhead, a model of four levels of 250 parameters, steps of a second.
FREE = scaling.Host(copies=math.inf, sums=math.inf, local=math.inf, blend=0.0, submission=0.0, scatter=0.0, cells=0.0)
MODEL = scaling.Model(mlp=0, levels=(250,) * 4, entries=500, cells=500)
JOB = scaling.Job(MODEL, FREE, 1.0, 2, message=0.0)


def change(job, **changes):
    """Returns the job with changed properties, of the job or of its host."""
    host = {key: changes.pop(key) for key in list(changes) if hasattr(job.host, key)}
    return dataclasses.replace(job, host=dataclasses.replace(job.host, **host), **changes)


def seconds(job):
    """Returns the duration of a step without jitter."""
    return job.seconds / scaling.efficiency(job)


def near(value, wanted, share=1e-9):
    assert abs(value - wanted) <= share * abs(wanted), (value, wanted)


def test_models():
    # Parameters in summary.json of runs with the CPU's default model; the GPU's has 12.2 M by the cost model.
    cpu = scaling.Job(scaling.default_model(False), FREE, 1.0, 2)
    assert scaling.exchange_bytes(cpu) == 3696384
    assert scaling.exchange_bytes(change(cpu, cells=0.06)) == 3696384 + 1048576 / 16
    assert scaling.exchange_bytes(change(cpu, average=True, cells=0.06)) == 1105144
    assert scaling.exchange_bytes(change(cpu, wire=2)) == 3696384 / 2 + 2 * scaling.MLP_PARAMETERS
    assert round(scaling.default_model(True).parameters / 1e6, 1) == 12.2


def test_pieces():
    for gpu, pieces, wire in itertools.product((False, True), (1, 2, 3, 4), (2, 4)):
        model = scaling.default_model(gpu)
        job = scaling.Job(model, scaling.HOSTS["CPU"], 1.0, 2, pieces=pieces, wire=wire)
        parts = scaling.gradient_pieces(job)
        assert len(parts) == pieces and sum(part.numbers for part in parts) == model.parameters
        assert all(a.early > b.early for a, b in zip(parts, parts[1:])) and parts[-1].early == 0
        assert max(part.wire for part in parts) < 1.6 * sum(part.wire for part in parts) / pieces


def test_nothing_costs():
    for ranks, average, pieces in itertools.product((1, 2, 8, 64), (False, True), (1, 4)):
        near(scaling.efficiency(change(JOB, ranks=ranks, average=average, pieces=pieces)), 1)
    # A single rank exchanges nothing, however slow everything is.
    alone = change(JOB, ranks=1, bandwidth=1.0, latency=9.0, copies=1.0, sums=1.0, blend=1.0, submission=1.0)
    for average in (False, True):
        near(scaling.efficiency(change(alone, average=average)), 1)


def test_by_hand():
    # Half of 4000 bytes to the other rank, half back; a message each way.
    near(seconds(change(JOB, bandwidth=1000.0)), 1 + 0.352 + 2 + 2)
    near(seconds(change(JOB, bandwidth=1000.0, wire=2)), 1 + 0.352 + 1 + 1)
    # Four ranks, two per machine: half of each rank's bytes pass a connection that two ranks share.
    four = change(JOB, ranks=4, per_machine=2, bandwidth=1000.0)
    near(seconds(four), 1 + 4 * 0.352 + 4 + 4)
    # A quarter goes to the neighbour at the same time.
    near(seconds(change(four, local=500.0)), 1 + 4 * 0.352 + 4 + 4)
    near(seconds(change(four, local=100.0)), 1 + 4 * 0.352 + 10 + 10)
    # Three collectives, each with a latency and one more message for each further rank.
    near(seconds(change(JOB, ranks=8, latency=0.1, message=0.01)), 1 + 3 * 0.17)
    near(seconds(change(JOB, copies=4000.0, sums=2000.0, submission=0.5)), 1 + 2 * 0.5 + 2 * 1 + 2)
    near(seconds(change(JOB, copies=4000.0, sums=2000.0, wire=2)), 1 + 2 * 0.5 + 2 * scaling.F16_SUMS)
    # Half of the cells, 2000 bytes in 16 steps, in both directions, and a message.
    near(seconds(change(JOB, bandwidth=1000.0, cells=0.5)), 1 - 0.25 + (0.352 + 1 + 1) / 16 + 0.352 + 2 + 2)
    near(seconds(change(JOB, ranks=8, latency=0.1, cells=0.4)), 1 - 0.35 + 3 * 0.1 * 17 / 16)
    # 500 counts, four times 1000 parameters and 500 cells, 20000 bytes in 16 steps; six all-reduces and two messages.
    average = change(JOB, average=True)
    near(seconds(change(average, bandwidth=1000.0)), 1 + (2 * 0.352 + 10 + 10) / 16)
    near(seconds(change(average, latency=0.1)), 1 + 14 * 0.1 / 16)
    near(seconds(change(average, copies=1000.0, sums=500.0, blend=0.1)), 1 + (2 * 20 + 40 + 100) / 16)


def test_hidden():
    """Levels that each take a quarter of the step: the last level's transfer is visible, the others' overlap."""
    job = change(JOB, pieces=4, scatter=1.0, bandwidth=20e3)
    note, piece = 352 / 20e3, 500 / 20e3
    near(seconds(job), 1 + note + 2 * piece)
    # On a slow connection transfers queue: the first begins after a quarter of the step, and messages precede it and
    # the last.
    slow = change(job, bandwidth=500.0)
    near(seconds(slow), 0.25 + 2 * 352 / 500 + 8 * 500 / 500)
    for bandwidth in (1e2, 1e3, 1e4, 1e5):
        whole, parts = (seconds(change(job, pieces=pieces, bandwidth=bandwidth)) for pieces in (1, 4))
        assert whole - 0.75 - 1e-9 <= parts < whole + 352 / bandwidth  # messages are sent once more


def jobs():
    """Returns a few jobs of all kinds, without jitter."""
    for name, average, ranks, per_machine in itertools.product(scaling.HOSTS, (False, True), (2, 8, 20, 64), (1, 8)):
        for bandwidth, latency in ((1e8, 2e-6), (1e9, 1e-4), (1e11, 2e-5)):
            yield scaling.Job(scaling.default_model(name != "CPU"), scaling.HOSTS[name], 1e-2, ranks, average=average,
                              per_machine=per_machine, bandwidth=bandwidth, latency=latency)


def test_formula():
    for job in jobs():
        near(seconds(job), scaling.formula(job))


def test_monotone():
    for job in jobs():
        if job.ranks > 8:
            continue
        for pieces in (1, 4):
            now = change(job, pieces=pieces, jitter=0.05)
            found = scaling.efficiency(now, 8)
            assert scaling.efficiency(change(now, bandwidth=2 * job.bandwidth), 8) >= found
            assert scaling.efficiency(change(now, latency=job.latency + 1e-3), 8) < found
            assert scaling.efficiency(change(now, jitter=0.1), 8) < found
            uneven = [scaling.efficiency(change(now, jitter=0.0, spread=spread)) for spread in (0.0, 0.05, 0.1)]
            assert uneven[0] > uneven[1] > uneven[2]


def test_waiting():
    near(scaling.expected_maximum(2), 1 / math.sqrt(math.pi), 1e-6)
    near(scaling.expected_maximum(3), 1.5 / math.sqrt(math.pi), 1e-6)
    assert abs(scaling.expected_maximum(1)) < 1e-9
    for ranks, average in itertools.product((2, 8, 64), (False, True)):
        job = change(JOB, ranks=ranks, average=average, jitter=0.05)
        near(seconds_with_jitter(job), 1 + scaling.waiting(job), 0.003)
    # A rank that is always slower costs equal waiting time in both modes.
    near(scaling.waiting(change(JOB, spread=0.1)), scaling.waiting(change(JOB, spread=0.1, average=True)))
    near(scaling.waiting(change(JOB, jitter=0.1)), 4 * scaling.waiting(change(JOB, jitter=0.1, average=True)))


def seconds_with_jitter(job):
    return job.seconds / scaling.efficiency(job, 1000)


def test_needed_bandwidth():
    # A ninth of a hundredth of a second for 4352 bytes.
    quick = change(JOB, seconds=0.01)
    near(scaling.needed_bandwidth(quick), 900 * 4352, 0.011)
    assert scaling.needed_bandwidth(change(quick, latency=0.001)) is None
    assert scaling.needed_bandwidth(change(quick, latency=0.001), wanted=0.7) is not None
    job = change(quick, pieces=4, scatter=0.3, jitter=0.05)
    found = scaling.needed_bandwidth(job)
    assert scaling.efficiency(change(job, bandwidth=found)) >= 0.9 > scaling.efficiency(
        change(job, bandwidth=0.98 * found))


# ---- files of a run ----------------------------------------------------------------------------------------------

def leave_run(folder, together=None, mode="exact", metrics=()):
    summary = {"device": "llvmpipe (LLVM 19)", "sampling": {"steps": 100, "seconds": 5.0},
               "buffers": [{"name": "parameters", "bytes": 3696384}, {"name": "step counts", "bytes": 1848192},
                           {"name": "occupancy", "bytes": 1048576}]}
    if together:
        summary["parallel"] = together
    grid = {"levels": 16, "features": 2, "log2_entries": 15, "coarsest": 16, "finest": 512}
    for name, text in (("summary.json", json.dumps(summary)),
                       ("config.json", json.dumps({"model": "ngp", "grid": grid, "parallel": {"mode": mode}})),
                       ("metrics.jsonl", "".join(json.dumps(line) + "\n" for line in metrics))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def refuses(part, folder):
    try:
        scaling.job_of(folder)
    except scaling.BadInput as error:
        assert part in str(error) and folder in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"accepted: {part}")


def test_run_alone(folder):
    # Two steps, then eight: alternately 10 % more and 10 % less than eight.
    times = [0.0, 1.0] + [1.0 + 0.4 * i + (0.04 if i % 2 else 0.0) for i in range(1, 13)]
    steps = [0, 2] + [2 + 8 * i for i in range(1, 13)]
    leave_run(folder, metrics=[{"step": step, "seconds": time} for step, time in zip(steps, times)])
    job = scaling.job_of(folder)
    assert job.model == scaling.default_model(False) and job.ranks == 1 and job.host == scaling.HOSTS["CPU"]
    near(job.seconds, 0.05)
    near(job.jitter, 0.1 * math.sqrt(8), 0.1)


def test_run_together(folder):
    # 5 s of steps: 0.6 of all-reduce, 0.4 of that waiting; the other rank is idle for 3 % of a step.
    together = {"ranks": 2, "virtual": 1, "exchange_bytes": 3761920, "exchange_seconds": 0.6, "waiting_seconds": 0.4, "exchange_share": 0.12}
    leave_run(folder, together)
    job = scaling.job_of(folder)
    near(job.seconds, 0.044 / 0.97)
    near(job.host.sums, 3761920 / 0.002)
    near(scaling.waiting(job), 0.004)
    near(job.seconds / scaling.efficiency(job, 2000), 0.05, 0.003)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scaling.tell_run(folder)
    assert "44.00 ms" in said.getvalue() and "16.1 %" in said.getvalue() and "| average |" in said.getvalue()
    leave_run(folder, together, mode="average")
    refuses("parallel.mode=synchronous", folder)
    leave_run(folder, {**together, "virtual": 2})
    refuses("parallel.ranks_per_device", folder)
    leave_run(folder, {"ranks": 2})
    refuses("not what a run leaves", folder)
    os.remove(os.path.join(folder, "summary.json"))
    refuses("summary.json", folder)


def test_write(folder):
    page = os.path.join(folder, "page")
    for text, wanted in ((f"a\n{scaling.BEGIN}old\n{scaling.END}b\n", f"a\n{scaling.BEGIN}new\n{scaling.END}b\n"),
                         ("no marks\n", None)):
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
        try:
            scaling.write("new\n", page)
            assert wanted
        except scaling.BadInput:
            assert not wanted
        with open(page, encoding="utf-8") as file:
            assert file.read() == (wanted or text)


def main():
    for test in (test_models, test_pieces, test_nothing_costs, test_by_hand, test_hidden, test_formula, test_monotone,
                 test_waiting, test_needed_bandwidth):
        test()
    for test in (test_run_alone, test_run_together, test_write):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    print("all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
