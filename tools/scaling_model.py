#!/usr/bin/env python3
"""tools/scaling_model.py [--table | --write] [--run RUN]

Predicts the efficiency of training with several ranks by simulating their all-reduces. docs/scaling.md has the
formulas, the assumptions and the tables. --table prints the tables; --write puts them into that page. --run reads a
run's folder (model, time of a step and its jitter; with several ranks also the speed of the sums) and predicts the
efficiency for the run's model and devices. Needs only Python's standard library.
"""
import argparse
import dataclasses
import functools
import json
import math
import os
import random
import sys
import textwrap

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(SOURCE, "docs/scaling.md")
BEGIN, END = "<!-- tools/scaling_model.py -->\n", "<!-- end of tools/scaling_model.py -->\n"
sys.path.insert(0, os.path.join(SOURCE, "tools", "peers", "ngp_torch"))
import config  # noqa: E402

INTERVAL = config.UPDATE_INTERVAL  # steps from one update of the occupancy grid, or averaging, to the next
STATUS_BYTES = 352  # size of struct message of src/train/loop.h
MLP_PARAMETERS = 10240  # of the default model, including padding
F16_SUM_TIME = 1.75  # time of a sum of f16 divided by that of f32, per value: measured with two ranks
SEED, STEPS = 1, 32  # steps (update intervals when averaging) of a simulation with jitter
TARGET = 0.9  # efficiency for which the bandwidth is searched
LATENCIES = (2e-6, 20e-6, 100e-6)  # seconds
FASTEST, SLOWEST = 1e13, 1e5  # bytes/s: bounds of the search


class BadInput(Exception):
    """An error with a message of one line that names the file."""


# ---- model, host and job ----------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Model:
    """Sizes of a model's buffers."""
    mlp: int  # parameters of the MLPs
    levels: tuple  # parameters of each level of the hash grid, coarsest first
    entries: int  # step counts
    cells: int  # occupancy cells

    @property
    def grid(self):
        return sum(self.levels)

    @property
    def parameters(self):
        return self.mlp + self.grid


@dataclasses.dataclass(frozen=True)
class Host:
    """Speeds of a device and its machine."""
    copies: float  # bytes/s between device and host
    sums: float  # bytes/s of f32 that the host adds
    local: float  # bytes/s between ranks of one machine
    weighting: float  # seconds in which the device weights one parameter for parameter averaging
    submission: float  # seconds to submit a command buffer and wait for it
    scatter: float  # share of a step in which the levels' gradients become ready one by one
    cells: float  # share of a step that updates occupancy cells, if ranks share the cells; otherwise 0


@dataclasses.dataclass(frozen=True)
class Job:
    """A training with several ranks."""
    model: Model
    host: Host
    seconds: float  # of a step with one rank
    ranks: int
    average: bool = False  # parameter averaging instead of synchronous data parallelism
    per_machine: int = 1  # ranks of a machine
    bandwidth: float = math.inf  # bytes/s of a machine's connection, each way
    latency: float = 0.0  # seconds of a collective
    message: float = 1e-6  # seconds for each message of a collective after the first
    value_bytes: int = 4  # of a grid gradient in communication: 4 for f32, 2 for f16
    buckets: int = 1  # gradient buckets
    jitter: float = 0.0  # standard deviation of a step's time divided by its mean
    rank_deviation: float = 0.0  # standard deviation of the ranks' mean times, as a share


def default_model(gpu):
    settings = config.defaults(gpu)
    features = settings["grid.features"]
    levels = tuple(features * level.entries for level in config.grid_levels(settings))
    return Model(mlp=MLP_PARAMETERS, levels=levels, entries=(MLP_PARAMETERS + sum(levels)) // features,
                 cells=settings["march.resolution"] ** 3)


# ---- gradient buckets and buffers to average --------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Bucket:
    """A gradient bucket, or a buffer to average, which one all-reduce sums."""
    values: int
    bytes: int  # copied and sent
    sum_bytes: float  # bytes of f32 that take as long to sum
    lead: float  # how long before the step's end the device has it ready, as a share of the step


def gradient_buckets(job):
    """Buckets of about equal size in the order in which they become ready: MLPs first, then level by level."""
    model, last = job.model, len(job.model.levels) - 1
    buckets, values, size, sum_bytes = [], model.mlp, 4 * model.mlp, 4 * model.mlp
    value_sum_bytes = 4 * (1 if job.value_bytes == 4 else F16_SUM_TIME)
    total = size + job.value_bytes * model.grid
    sent = 0
    for level, count in enumerate(model.levels):
        values, size, sum_bytes = values + count, size + job.value_bytes * count, sum_bytes + value_sum_bytes * count
        if level == last or sent + size >= total * (len(buckets) + 1) / job.buckets:
            buckets.append(Bucket(values, size, sum_bytes, job.host.scatter * (last - level) / (last + 1)))
            sent, values, size, sum_bytes = sent + size, 0, 0, 0
    return tuple(buckets)


def averaged_buffers(model):
    """Step counts, parameters, their moving average, two moments of Adam, occupancy cells: all of 4 bytes a value."""
    counts = (model.entries,) + 4 * (model.parameters,) + (model.cells,)
    return tuple(Bucket(count, 4 * count, 4 * count, 0.0) for count in counts)


def shared_cells(job):
    """The occupancy cells as one bucket, if ranks share their update; all-reduced once an update interval."""
    count = job.model.cells
    return (Bucket(count, 4 * count, 4 * count, 0.0),) if job.host.cells > 0 and not job.average else ()


def exchange_bytes(job):
    """Bytes that a rank contributes per step: exchange_bytes of summary.json."""
    if job.average:
        return sum(bucket.bytes for bucket in averaged_buffers(job.model)) / INTERVAL
    return (sum(bucket.bytes for bucket in gradient_buckets(job)) +
            sum(bucket.bytes for bucket in shared_cells(job)) / INTERVAL)


# ---- the formula -------------------------------------------------------------------------------------------------

def remote_share(job):
    """Share of a rank's data that goes to other machines (all machines full), and the number of ranks that share a
    machine's connection."""
    here = min(job.per_machine, job.ranks)
    return (job.ranks - here) / job.ranks, here


def collective(job):
    """Seconds of a collective without its data."""
    return job.latency + (job.ranks - 1) * job.message


def status_seconds(job):
    """Seconds in which all ranks send each other a status message."""
    share, here = remote_share(job)
    return collective(job) + here * share * job.ranks * STATUS_BYTES / job.bandwidth


def transfer_seconds(job, size):
    """Seconds of the all-to-all, or of the all-gather, of `size` bytes per rank."""
    share, here = remote_share(job)
    return max(here * share * size / job.bandwidth, (here - 1) / job.ranks * size / job.host.local)


def all_reduce_seconds(job, bucket):
    """Copy to the host, all-to-all, sum, all-gather, copy to the device."""
    return (2 * bucket.bytes / job.host.copies + 2 * (collective(job) + transfer_seconds(job, bucket.bytes)) +
            bucket.sum_bytes / job.host.sums)


def compute_seconds(job):
    """Seconds of a step without communication; a rank updates only its share of shared cells."""
    spared = (job.ranks - 1) / job.ranks if shared_cells(job) else 0.0
    return job.seconds * (1 - spared * job.host.cells)


def cells_seconds(job):
    """Seconds per step of the all-reduce of shared cells."""
    return sum(status_seconds(job) + all_reduce_seconds(job, bucket) for bucket in shared_cells(job)) / INTERVAL


def formula(job):
    """Seconds of a step with one bucket and without jitter."""
    if job.ranks == 1:
        return job.seconds
    if job.average:
        model = job.model
        return job.seconds + (2 * status_seconds(job) + model.parameters * job.host.weighting +
                              sum(all_reduce_seconds(job, bucket) for bucket in averaged_buffers(model))) / INTERVAL
    bucket, = gradient_buckets(dataclasses.replace(job, buckets=1))
    return (compute_seconds(job) + cells_seconds(job) + 2 * job.host.submission + status_seconds(job) +
            all_reduce_seconds(job, bucket))


@functools.lru_cache(maxsize=None)
def expected_maximum(ranks):
    """Expected maximum of `ranks` standard normal variables."""
    width, total = 1e-2, 0.0
    for i in range(-800, 801):
        below = 0.5 * (1 + math.erf(i * width / math.sqrt(2)))
        total += i * width * ranks * below ** (ranks - 1) * math.exp(-0.5 * (i * width) ** 2) * width
    return total / math.sqrt(2 * math.pi)


def expected_wait(job):
    """Seconds per step that the average rank waits for the slowest one before the all-reduce."""
    steps = INTERVAL if job.average else 1
    share = math.hypot(job.jitter / math.sqrt(steps), job.rank_deviation) * expected_maximum(job.ranks)
    return compute_seconds(job) * share


# ---- the simulation ----------------------------------------------------------------------------------------------

class Queue:
    """A resource, such as a connection, that serves one request after the other."""

    def __init__(self):
        self.free = 0.0

    def serve(self, now, seconds):
        self.free = max(self.free, now) + seconds
        return self.free


def send(job, ready, size):
    """Each rank sends its share of `size` bytes to all others from ready[rank] on: returns when all has arrived."""
    share, here = remote_share(job)
    connections = [Queue() for _ in range(0, job.ranks, here)]
    remote = max(connections[rank // here].serve(now, share * size / job.bandwidth)
                 for now, rank in sorted((now, rank) for rank, now in enumerate(ready)))
    return max(remote, max(ready) + (here - 1) / job.ranks * size / job.host.local) + collective(job)


def all_reduce(job, buckets, ready, send_status):
    """All-reduces a step's buckets one after the other: returns when all ranks have all sums. ready[rank] is when a
    rank has computed its step. A device copies a bucket while the ranks all-reduce the one before. With `send_status`
    ranks send status messages before the first and the last bucket."""
    down, up, free = [Queue() for _ in ready], Queue(), 0.0
    for number, bucket in enumerate(buckets):
        begin = [max(free, queue.serve(end - bucket.lead * job.seconds, bucket.bytes / job.host.copies))
                 for queue, end in zip(down, ready)]
        if send_status and number in (0, len(buckets) - 1):
            begin = [max(begin) + status_seconds(job)] * job.ranks
        summed = send(job, begin, bucket.bytes) + bucket.sum_bytes / job.host.sums
        free = send(job, [summed] * job.ranks, bucket.bytes)
        up.serve(free, bucket.bytes / job.host.copies)
    return up.free


@functools.lru_cache(maxsize=1)
def simulate_average(job):
    """Seconds of the averaging after all ranks have finished the interval: buffer by buffer."""
    now = 2 * status_seconds(job) + job.model.parameters * job.host.weighting
    for buffer in averaged_buffers(job.model):
        now = all_reduce(job, (buffer,), [now] * job.ranks, False)
    return now


def simulate_update(job, seconds):
    """When all ranks continue, if each has computed for seconds[rank]: one step, or one interval when averaging."""
    if job.ranks == 1:
        return seconds[0]
    if job.average:
        return max(seconds) + simulate_average(job)
    ready = [one + job.host.submission for one in seconds]
    return all_reduce(job, gradient_buckets(job), ready, True) + job.host.submission + cells_seconds(job)


@functools.lru_cache(maxsize=None)
def normal_numbers(ranks, count):
    """`count` lists of a normal number per rank, less their mean, so that the average speed is the given one."""
    source = random.Random(SEED)
    drawn = [[source.gauss(0, 1) for _ in range(ranks)] for _ in range(count)]
    return [[one - sum(each) / ranks for one in each] for each in drawn]


def efficiency(job, count=STEPS):
    """Time of `count` steps (update intervals when averaging) with one rank divided by that with all ranks."""
    steps = INTERVAL if job.average else 1
    by_rank, *by_step = normal_numbers(job.ranks, 1 + count if job.jitter > 0 else 2)
    passed = 0.0
    for noise in by_step:
        shares = [1 + job.rank_deviation * rank + job.jitter / math.sqrt(steps) * one
                  for rank, one in zip(by_rank, noise)]
        passed += simulate_update(job, [steps * compute_seconds(job) * share for share in shares])
    return len(by_step) * steps * job.seconds / passed


def needed_bandwidth(job, wanted=TARGET):
    """The smallest bandwidth, to one percent, with efficiency `wanted`; None if no bandwidth suffices."""
    def reaches(bandwidth):
        return efficiency(dataclasses.replace(job, bandwidth=bandwidth)) >= wanted

    if not reaches(FASTEST):
        return None
    low, high = math.log(SLOWEST), math.log(FASTEST)
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reaches(math.exp(middle)) else (middle, high)
    return math.exp(high)


# ---- measurements of a run -------------------------------------------------------------------------------------------

def read_json(path):
    try:
        return config.read_json(path)
    except config.BadInput as error:
        raise BadInput(str(error)) from None


def model_of(folder, summary):
    """The run's model, from the sizes of its buffers; a model without a hash grid has one level."""
    sizes = {buffer["name"]: buffer["bytes"] // 4 for buffer in summary["buffers"]}
    settings = config.flatten(read_json(os.path.join(folder, "config.json")))
    parameters, levels = sizes["parameters"], ()
    if settings["model"] == "ngp":
        levels = tuple(settings["grid.features"] * level.entries for level in config.grid_levels(settings))
    return Model(mlp=parameters - sum(levels), levels=levels or (0,), entries=sizes["step counts"],
                 cells=sizes["occupancy"])


def jitter_of(folder):
    """Jitter of a step from the times between lines of metrics.jsonl, if steps vary independently."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    spans = [(b["step"] - a["step"], b["seconds"] - a["seconds"]) for a, b in zip(lines, lines[1:])]
    spans = [span for span in spans[len(spans) // 4:] if span[0] > 0]  # the first quarter warms up
    if len(spans) < 2:
        return 0.0
    mean = sum(seconds for _, seconds in spans) / sum(steps for steps, _ in spans)
    squares = sum((seconds - steps * mean) ** 2 / steps for steps, seconds in spans)
    return math.sqrt(squares / (len(spans) - 1)) / mean


def job_of(folder):
    """The job that a run's folder describes, with the number of ranks of the run."""
    try:
        return measured_job(folder, read_json(os.path.join(folder, "summary.json")))
    except (KeyError, OSError, ValueError, TypeError, ZeroDivisionError) as error:
        raise BadInput(f"{folder}: not the folder of a complete run: {error!r}") from None


def measured_job(folder, summary):
    model, steps = model_of(folder, summary), summary["sampling"]["steps"]
    host = HOSTS["CPU" if "llvmpipe" in summary["device"] else "discrete GPU"]
    parallel = summary.get("parallel")
    if parallel is None:
        return Job(model, host, summary["sampling"]["seconds"] / steps, 1, jitter=jitter_of(folder))
    mode = read_json(os.path.join(folder, "config.json"))["parallel"]["mode"]  # "exact": its former name
    if parallel["virtual"] > 1 or mode not in ("synchronous", "exact"):
        raise BadInput(f"{folder}: needs a run of one rank, or one with parallel.mode=synchronous and "
                       "parallel.ranks_per_device=1")
    total, waiting_for = parallel["exchange_seconds"], parallel["waiting_seconds"]
    seconds = (total / parallel["exchange_share"] - total) / steps
    # Counts all time of the all-reduce other than waiting as sums, since the ranks share one machine.
    host = dataclasses.replace(host, copies=math.inf, local=math.inf, submission=0.0,
                               sums=parallel["exchange_bytes"] * steps / (total - waiting_for))
    ranks = parallel["ranks"]
    return Job(model, host, seconds / (1 - host.cells * (ranks - 1) / ranks), ranks, per_machine=ranks, message=0.0,
               jitter=waiting_for / steps / seconds / expected_maximum(ranks))


def print_run(folder):
    job = job_of(folder)
    print(f"measured: {job.model.parameters} parameters, {1e3 * compute_seconds(job):.2f} ms a step without "
          f"communication, jitter {100 * job.jitter:.1f} %")
    if job.ranks > 1:
        averaged = dataclasses.replace(job, average=True)
        print(f"measured: sums at {1e-9 * job.host.sums:.2f} GB/s; simulated with it: efficiency of {job.ranks} ranks "
              f"{100 * efficiency(job):.1f} % (synchronous), {100 * efficiency(averaged):.1f} % (average)")
    job = dataclasses.replace(job, per_machine=1, message=Job.message,
                              host=dataclasses.replace(job.host, local=HOSTS["CPU"].local))
    for line in efficiency_table([(os.path.basename(os.path.normpath(folder)), job)], job.jitter):
        print(line)


# ---- tables ------------------------------------------------------------------------------------------------------

# docs/scaling.md says which values are measured and which are assumed.
HOSTS = {
    "discrete GPU": Host(copies=25e9, sums=10e9, local=5e9, weighting=0.2e-9, submission=30e-6, scatter=0.5, cells=0.0),
    "integrated GPU": Host(copies=9e9, sums=10e9, local=5e9, weighting=2e-9, submission=30e-6, scatter=0.5, cells=0.0),
    "CPU": Host(copies=math.inf, sums=2.5e9, local=5e9, weighting=32e-9, submission=30e-6, scatter=0.12, cells=0.06),
}
DEVICES = (("fast GPU, 1 ms", "discrete GPU", 1e-3), ("integrated GPU, 20 ms", "integrated GPU", 20e-3),
           ("CPU, 30 ms", "CPU", 30e-3), ("CPU, 60 ms", "CPU", 60e-3))
RANKS = (2, 8, 64)
MODES = (("synchronous", {}), ("synchronous, 4 buckets", {"buckets": 4}),
         ("synchronous, 4 buckets, f16", {"buckets": 4, "value_bytes": 2}), ("average", {"average": True}))
JITTER = 0.05


def table(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:], ""]


def digits(value, count=2):
    """`value` with `count` significant digits, without an exponent."""
    return f"{value:.{max(0, count - 1 - math.floor(math.log10(value)))}f}"


def percent(value):
    return f"{100 * value:.0f} %"


def jobs():
    for name, host, seconds in DEVICES:
        yield name, Job(default_model(host != "CPU"), HOSTS[host], seconds, 2)


def bytes_table():
    rows = []
    for name, gpu in (("GPU", True), ("CPU", False)):
        model = default_model(gpu)
        job = Job(model, HOSTS["discrete GPU" if gpu else "CPU"], 1.0, 2)
        modes = (job, dataclasses.replace(job, value_bytes=2), dataclasses.replace(job, average=True))
        parameters = f"{model.parameters:,}".replace(",", " ")
        rows.append([name, parameters, *(f"{1e-6 * exchange_bytes(mode):.2f}" for mode in modes)])
    return table(("default model", "parameters", "synchronous, MB a step", "synchronous, f16", "average"), rows)


def cost_table():
    """Communication time of two ranks with unlimited bandwidth."""
    rows = []
    for name, base in jobs():
        for mode, changes in (("synchronous", {}), ("synchronous, f16", {"value_bytes": 2}),
                              ("average", {"average": True})):
            job = dataclasses.replace(base, **changes)
            steps = INTERVAL if job.average else 1
            buckets = averaged_buffers(job.model) if job.average else gradient_buckets(job)
            own = compute_seconds(job)
            parts = [2 * sum(bucket.bytes for bucket in buckets) / job.host.copies / steps,
                     sum(bucket.sum_bytes for bucket in buckets) / job.host.sums / steps,
                     job.model.parameters * job.host.weighting / steps if job.average else 0.0,
                     own + cells_seconds(job) - job.seconds]
            cost = formula(job) - own
            rows.append([name, mode, *(f"{1e3 * part:.2f}" for part in parts),
                         f"{1e3 * (formula(job) - job.seconds):.2f}", percent(job.seconds / formula(job)),
                         f"{1e3 * TARGET * cost / (1 - TARGET * own / job.seconds):.0f}"])
    return table(("device, step", "mode", "copies, ms a step", "sums", "weighting", "cells", "all", "efficiency",
                  "step for 90 %, ms"), rows)


def bandwidth_cell(job):
    """GB/s for each latency; if no bandwidth suffices, the efficiency with unlimited bandwidth and least latency."""
    found = [needed_bandwidth(dataclasses.replace(job, latency=latency)) for latency in LATENCIES]
    if found[0] is None:
        return percent(efficiency(dataclasses.replace(job, latency=LATENCIES[0], bandwidth=FASTEST))) + " at most"
    shown = ["none" if one is None else digits(1e-9 * one) for one in found]
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def bandwidth_table():
    rows = []
    for name, job in jobs():
        for mode, changes in MODES:
            changed = dataclasses.replace(job, **changes)
            cells = [bandwidth_cell(dataclasses.replace(changed, ranks=ranks)) for ranks in RANKS]
            rows.append([name, mode, *cells,
                         bandwidth_cell(dataclasses.replace(changed, ranks=RANKS[-1], per_machine=8))])
    return table(("device, step", "mode", *(f"{ranks} ranks" for ranks in RANKS), "64, 8 a machine"), rows)


def efficiency_table(named, jitter):
    connections = (("10 Gbit/s", 1.25e9), ("100 Gbit/s", 12.5e9))
    rows = []
    for name, job in named:
        for mode, changes in MODES:
            cells = [percent(efficiency(dataclasses.replace(job, **changes, ranks=ranks, bandwidth=bandwidth,
                                                            latency=LATENCIES[1], jitter=jitter)))
                     for _, bandwidth in connections for ranks in RANKS]
            rows.append([name, mode, *cells])
    return table(("device, step", "mode", *(f"{speed}: {ranks}" for speed, _ in connections for ranks in RANKS)), rows)


def waiting_table():
    rows = []
    for jitter in (0.02, 0.05, 0.1):
        job = Job(default_model(False), HOSTS["CPU"], 1.0, 2, jitter=jitter)
        cases = [dataclasses.replace(job, ranks=ranks, average=average) for average in (False, True) for ranks in RANKS]
        rows.append([percent(jitter), *(f"{100 * expected_wait(case):.1f} %" for case in cases)])
    return table(("jitter", *(f"{mode}: {ranks}" for mode in ("synchronous", "average") for ranks in RANKS)), rows)


def tables():
    """The text between the marks in docs/scaling.md."""
    parts = (
        ("Bytes E that a rank contributes per step; it sends 2 (R-1)/R times as many:", bytes_table()),
        ("Communication time of two ranks with unlimited bandwidth; hardly more with more ranks. The last column is "
         "the step time for which the efficiency is 90 %:", cost_table()),
        ("Bandwidth of a machine's connection, in GB/s each way, for an efficiency of 90 % without jitter: three "
         "numbers if latencies of 2, 20 and 100 us differ; if none suffices, the efficiency with unlimited bandwidth:",
         bandwidth_table()),
        (f"Efficiency with one rank per machine, a latency of 20 us and a jitter of {percent(JITTER)}, by connection "
         "and number of ranks:", efficiency_table(jobs(), JITTER)),
        ("Time spent waiting for the slowest rank, as a share of a step, by jitter and number of ranks:",
         waiting_table()),
    )
    return "\n" + "".join(f"{line}\n" for title, lines in parts for line in (textwrap.fill(title, 120), "", *lines))


def written(page):
    """The text between a page's marks; None if the page has no marks."""
    _, begun, rest = page.partition(BEGIN)
    text, ended, _ = rest.partition(END)
    return text if begun and ended else None


def write(text, document=DOCUMENT):
    with open(document, encoding="utf-8") as file:
        page = file.read()
    old = written(page)
    if old is None:
        raise BadInput(f"{document}: lacks the lines {BEGIN.strip()} and {END.strip()}")
    with open(document, "w", encoding="utf-8") as file:
        file.write(page.replace(f"{BEGIN}{old}{END}", f"{BEGIN}{text}{END}"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[2], allow_abbrev=False)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--run", metavar="RUN")
    options = parser.parse_args()
    if not (options.table or options.write or options.run):
        parser.error("nothing to do: give --table, --write or --run RUN")
    try:
        if options.table:
            print(tables(), end="")
        if options.write:
            write(tables())
        if options.run:
            print_run(options.run)
    except BadInput as error:
        print(f"tools/scaling_model.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
