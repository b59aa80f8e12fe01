#!/usr/bin/env python3
"""Tests tools/scaling_model.py: cases with results computed by hand, agreement of simulation and formula, monotonicity,
and the measurements read from a run's folder. Needs only the standard library."""
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

# A host whose work takes no time, a model of four levels of 250 parameters, one second a step.
FREE = scaling.Host(copies=math.inf, sums=math.inf, local=math.inf, weighting=0.0, submission=0.0, scatter=0.0,
                    cells=0.0)
MODEL = scaling.Model(mlp=0, levels=(250,) * 4, entries=500, cells=500)
JOB = scaling.Job(MODEL, FREE, 1.0, 2, message=0.0)


def change(job, **changes):
    """Returns the job with changed fields of its own or of its host."""
    host = {key: changes.pop(key) for key in list(changes) if hasattr(job.host, key)}
    return dataclasses.replace(job, host=dataclasses.replace(job.host, **host), **changes)


def seconds(job):
    """Returns the seconds of a step."""
    return job.seconds / scaling.efficiency(job)


def near(value, wanted, share=1e-9):
    assert abs(value - wanted) <= share * abs(wanted), (value, wanted)


def test_models():
    # exchange_bytes in summary.json of runs of the CPU's model; parameters of the GPU's: docs/cost_model.md.
    cpu = scaling.Job(scaling.default_model(False), FREE, 1.0, 2)
    assert scaling.exchange_bytes(cpu) == 3696384
    assert scaling.exchange_bytes(change(cpu, cells=0.06)) == 3696384 + 1048576 / 16
    assert scaling.exchange_bytes(change(cpu, average=True, cells=0.06)) == 1105144
    assert scaling.exchange_bytes(change(cpu, value_bytes=2)) == 3696384 / 2 + 2 * scaling.MLP_PARAMETERS
    assert round(scaling.default_model(True).parameters / 1e6, 1) == 12.2


def test_buckets():
    for gpu, buckets, value_bytes in itertools.product((False, True), (1, 2, 3, 4), (2, 4)):
        model = scaling.default_model(gpu)
        job = scaling.Job(model, scaling.HOSTS["CPU"], 1.0, 2, buckets=buckets, value_bytes=value_bytes)
        parts = scaling.gradient_buckets(job)
        assert len(parts) == buckets and sum(part.values for part in parts) == model.parameters
        assert all(a.lead > b.lead for a, b in zip(parts, parts[1:])) and parts[-1].lead == 0
        assert max(part.bytes for part in parts) < 1.6 * sum(part.bytes for part in parts) / buckets


def test_nothing_costs():
    for ranks, average, buckets in itertools.product((1, 2, 8, 64), (False, True), (1, 4)):
        near(scaling.efficiency(change(JOB, ranks=ranks, average=average, buckets=buckets)), 1)
    # One rank communicates nothing, however slow everything is.
    alone = change(JOB, ranks=1, bandwidth=1.0, latency=9.0, copies=1.0, sums=1.0, weighting=1.0, submission=1.0)
    for average in (False, True):
        near(scaling.efficiency(change(alone, average=average)), 1)


def test_by_hand():
    # Half of 4000 bytes to the other rank, half back; a status message each way.
    near(seconds(change(JOB, bandwidth=1000.0)), 1 + 0.352 + 2 + 2)
    near(seconds(change(JOB, bandwidth=1000.0, value_bytes=2)), 1 + 0.352 + 1 + 1)
    # Four ranks on two machines: half of each rank's bytes pass the connection, which two ranks share.
    four = change(JOB, ranks=4, per_machine=2, bandwidth=1000.0)
    near(seconds(four), 1 + 4 * 0.352 + 4 + 4)
    # A quarter goes to the other rank of the machine at the same time.
    near(seconds(change(four, local=500.0)), 1 + 4 * 0.352 + 4 + 4)
    near(seconds(change(four, local=100.0)), 1 + 4 * 0.352 + 10 + 10)
    # Three collectives, each of one latency and seven messages.
    near(seconds(change(JOB, ranks=8, latency=0.1, message=0.01)), 1 + 3 * 0.17)
    near(seconds(change(JOB, copies=4000.0, sums=2000.0, submission=0.5)), 1 + 2 * 0.5 + 2 * 1 + 2)
    near(seconds(change(JOB, copies=4000.0, sums=2000.0, value_bytes=2)), 1 + 2 * 0.5 + 2 * scaling.F16_SUM_TIME)
    # Half of the cells is updated; 2000 bytes are all-reduced in 16 steps, with a status message.
    near(seconds(change(JOB, bandwidth=1000.0, cells=0.5)), 1 - 0.25 + (0.352 + 1 + 1) / 16 + 0.352 + 2 + 2)
    near(seconds(change(JOB, ranks=8, latency=0.1, cells=0.4)), 1 - 0.35 + 3 * 0.1 * 17 / 16)
    # 500 counts, 4 * 1000 parameters and 500 cells: 20000 bytes in 16 steps; six sums and two status messages.
    average = change(JOB, average=True)
    near(seconds(change(average, bandwidth=1000.0)), 1 + (2 * 0.352 + 10 + 10) / 16)
    near(seconds(change(average, latency=0.1)), 1 + 14 * 0.1 / 16)
    near(seconds(change(average, copies=1000.0, sums=500.0, weighting=0.1)), 1 + (2 * 20 + 40 + 100) / 16)


def test_hidden():
    """Checks four levels of a quarter of a step each: communication of all but the last level is hidden."""
    job = change(JOB, buckets=4, scatter=1.0, bandwidth=20e3)
    status, bucket = 352 / 20e3, 500 / 20e3
    near(seconds(job), 1 + status + 2 * bucket)
    # A slow connection sends one bucket after the other: the first is ready after a quarter of the step. Ranks send
    # status messages before the first and the last bucket.
    slow = change(job, bandwidth=500.0)
    near(seconds(slow), 0.25 + 2 * 352 / 500 + 8 * 500 / 500)
    for bandwidth in (1e2, 1e3, 1e4, 1e5):
        whole, parts = (seconds(change(job, buckets=buckets, bandwidth=bandwidth)) for buckets in (1, 4))
        assert whole - 0.75 - 1e-9 <= parts < whole + 352 / bandwidth  # one more status message


def jobs():
    """Returns jobs on all hosts in both modes, without jitter."""
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
        for buckets in (1, 4):
            now = change(job, buckets=buckets, jitter=0.05)
            found = scaling.efficiency(now, 8)
            assert scaling.efficiency(change(now, bandwidth=2 * job.bandwidth), 8) >= found
            assert scaling.efficiency(change(now, latency=job.latency + 1e-3), 8) < found
            assert scaling.efficiency(change(now, jitter=0.1), 8) < found
            uneven = [scaling.efficiency(change(now, jitter=0.0, rank_deviation=share)) for share in (0.0, 0.05, 0.1)]
            assert uneven[0] > uneven[1] > uneven[2]


def test_waiting():
    near(scaling.expected_maximum(2), 1 / math.sqrt(math.pi), 1e-6)
    near(scaling.expected_maximum(3), 1.5 / math.sqrt(math.pi), 1e-6)
    assert abs(scaling.expected_maximum(1)) < 1e-9
    for ranks, average in itertools.product((2, 8, 64), (False, True)):
        job = change(JOB, ranks=ranks, average=average, jitter=0.05)
        near(seconds_with_jitter(job), 1 + scaling.expected_wait(job), 0.003)
    # Both modes wait equally long for a rank that is always slower.
    near(scaling.expected_wait(change(JOB, rank_deviation=0.1)),
         scaling.expected_wait(change(JOB, rank_deviation=0.1, average=True)))
    near(scaling.expected_wait(change(JOB, jitter=0.1)),
         4 * scaling.expected_wait(change(JOB, jitter=0.1, average=True)))


def seconds_with_jitter(job):
    return job.seconds / scaling.efficiency(job, 1000)


def test_needed_bandwidth():
    # 4352 bytes may take a ninth of 0.01 s.
    quick = change(JOB, seconds=0.01)
    near(scaling.needed_bandwidth(quick), 900 * 4352, 0.011)
    assert scaling.needed_bandwidth(change(quick, latency=0.001)) is None
    assert scaling.needed_bandwidth(change(quick, latency=0.001), wanted=0.7) is not None
    job = change(quick, buckets=4, scatter=0.3, jitter=0.05)
    found = scaling.needed_bandwidth(job)
    assert scaling.efficiency(change(job, bandwidth=found)) >= 0.9 > scaling.efficiency(
        change(job, bandwidth=0.98 * found))


# ---- measurements of a run ---------------------------------------------------------------------------------------

def write_run(folder, parallel=None, mode="synchronous", metrics=()):
    summary = {"device": "llvmpipe (LLVM 19)", "sampling": {"steps": 100, "seconds": 5.0},
               "buffers": [{"name": "parameters", "bytes": 3696384}, {"name": "step counts", "bytes": 1848192},
                           {"name": "occupancy", "bytes": 1048576}]}
    if parallel:
        summary["parallel"] = parallel
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


def test_run_of_one_rank(folder):
    # Two steps, then intervals of eight steps, alternately 10 % longer and 10 % shorter.
    times = [0.0, 1.0] + [1.0 + 0.4 * i + (0.04 if i % 2 else 0.0) for i in range(1, 13)]
    steps = [0, 2] + [2 + 8 * i for i in range(1, 13)]
    write_run(folder, metrics=[{"step": step, "seconds": time} for step, time in zip(steps, times)])
    job = scaling.job_of(folder)
    assert job.model == scaling.default_model(False) and job.ranks == 1 and job.host == scaling.HOSTS["CPU"]
    near(job.seconds, 0.05)
    near(job.jitter, 0.1 * math.sqrt(8), 0.1)


def test_run_of_two_ranks(folder):
    # 5 s of steps with 0.6 s in the all-reduce, 0.4 s of it waiting; sharing cells saves each rank 3 % of a step.
    parallel = {"ranks": 2, "virtual": 1, "exchange_bytes": 3761920, "exchange_seconds": 0.6,
                "waiting_seconds": 0.4, "exchange_share": 0.12}
    write_run(folder, parallel)
    job = scaling.job_of(folder)
    near(job.seconds, 0.044 / 0.97)
    near(job.host.sums, 3761920 / 0.002)
    near(scaling.expected_wait(job), 0.004)
    near(job.seconds / scaling.efficiency(job, 2000), 0.05, 0.003)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        scaling.print_run(folder)
    assert "44.00 ms" in said.getvalue() and "16.1 %" in said.getvalue() and "| average |" in said.getvalue()
    write_run(folder, parallel, mode="exact")  # the former name of synchronous
    near(scaling.job_of(folder).seconds, 0.044 / 0.97)
    write_run(folder, parallel, mode="average")
    refuses("parallel.mode=synchronous", folder)
    write_run(folder, {**parallel, "virtual": 2})
    refuses("parallel.ranks_per_device", folder)
    write_run(folder, {"ranks": 2})
    refuses("not the folder of a complete run", folder)
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
    for test in (test_models, test_buckets, test_nothing_costs, test_by_hand, test_hidden, test_formula, test_monotone,
                 test_waiting, test_needed_bandwidth):
        test()
    for test in (test_run_of_one_rank, test_run_of_two_ranks, test_write):
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    print("all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
