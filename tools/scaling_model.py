#!/usr/bin/env python3
"""tools/scaling_model.py [--table | --write] [--run RUN]

How much of their speed ranks that train together keep, by simulating their exchanges; docs/scaling.md has the formulas,
the assumptions and the tables. --table prints these tables, --write puts them into that page. --run takes the model,
the time of a step and its jitter, and from a run of several ranks the speed of the sums, from a run's folder, and says
what ranks like these would come to. Needs only Python's standard library.
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

PERIOD = config.UPDATE_INTERVAL
NOTE = 352  # bytes: struct note of src/train/loop.h
MLP_PARAMETERS = 10240  # of the default model, as stored
F16_SUMS = 1.75  # times as long as a sum of f32: measured, a number of two ranks
SEED, STEPS = 1, 32  # steps, or periods, that a simulation with jitter takes
ENOUGH = 0.9  # efficiency that bandwidth is looked for
LATENCIES = (2e-6, 20e-6, 100e-6)
FASTEST, SLOWEST = 1e13, 1e5  # bytes/s between which it is looked for


class BadInput(Exception):
    """A message of one line that names the file."""


# ---- what trains where -------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Model:
    """Numbers of parameters, of the MLPs and by level of the grid, coarsest first; of counts of steps and of occupancy
    cells."""
    mlp: int
    levels: tuple
    entries: int
    cells: int

    @property
    def grid(self):
        return sum(self.levels)

    @property
    def parameters(self):
        return self.mlp + self.grid


@dataclasses.dataclass(frozen=True)
class Host:
    """A device and the machine around it: bytes/s of copies between them, of sums, and between ranks of a machine;
    seconds that a device weighs a parameter in the averaging mode, and for each recording that is submitted and waited for;
    `scatter`: share of a step in which the grid's gradients come out, level by level; `cells`: share of it in which the
    occupancy grid's cells are updated, where ranks share these out; 0: they do not."""
    copies: float
    sums: float
    local: float
    blend: float
    submission: float
    scatter: float
    cells: float


@dataclasses.dataclass(frozen=True)
class Job:
    """Seconds of a step alone; their deviation, as a share, from step to step and of one rank's mean from another's;
    bytes/s of a machine's connection, each way; seconds of latency and for each further message of a collective; bytes
    of a gradient of the grid on the wire."""
    model: Model
    host: Host
    seconds: float
    ranks: int
    average: bool = False
    per_machine: int = 1
    bandwidth: float = math.inf
    latency: float = 0.0
    message: float = 1e-6
    wire: int = 4
    pieces: int = 1
    jitter: float = 0.0
    spread: float = 0.0


def default_model(gpu):
    settings = config.defaults(gpu)
    features = settings["grid.features"]
    levels = tuple(features * level.entries for level in config.grid_levels(settings))
    return Model(mlp=MLP_PARAMETERS, levels=levels, entries=(MLP_PARAMETERS + sum(levels)) // features,
                 cells=settings["march.resolution"] ** 3)


# ---- what is exchanged -------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Piece:
    """What is added up at once: numbers, bytes that are copied and sent, bytes of f32 whose sum takes as long, and the
    share of a step before its end at which a device has it ready."""
    numbers: int
    wire: int
    sums: float
    early: float


def gradient_pieces(job):
    """Of about as many bytes each, in the order in which they come out: the MLPs' first, then level by level."""
    model, last = job.model, len(job.model.levels) - 1
    pieces, numbers, wire, sums = [], model.mlp, 4 * model.mlp, 4 * model.mlp
    added = 4 * (1 if job.wire == 4 else F16_SUMS)
    total = wire + job.wire * model.grid
    sent = 0
    for level, count in enumerate(model.levels):
        numbers, wire, sums = numbers + count, wire + job.wire * count, sums + added * count
        if level == last or sent + wire >= total * (len(pieces) + 1) / job.pieces:
            pieces.append(Piece(numbers, wire, sums, job.host.scatter * (last - level) / (last + 1)))
            sent, numbers, wire, sums = sent + wire, 0, 0, 0
    return tuple(pieces)


def average_buffers(model):
    """Counts of steps, weights and their average, two moments; the occupancy grid."""
    counts = (model.entries,) + 4 * (model.parameters,) + (model.cells,)
    return tuple(Piece(count, 4 * count, 4 * count, 0.0) for count in counts)


def shared_cells(job):
    """What else is exchanged once a period."""
    count = job.model.cells
    return (Piece(count, 4 * count, 4 * count, 0.0),) if job.host.cells > 0 and not job.average else ()


def exchange_bytes(job):
    """By step, of one rank: what summary.json has as exchange_bytes, or what of it is on the wire."""
    if job.average:
        return sum(piece.wire for piece in average_buffers(job.model)) / PERIOD
    return sum(piece.wire for piece in gradient_pieces(job)) + sum(piece.wire for piece in shared_cells(job)) / PERIOD


# ---- the formula -------------------------------------------------------------------------------------------------

def outside(job):
    """Share of what a rank sends that leaves its machine, as if all machines were full, and how many ranks share the
    machine's connection."""
    here = min(job.per_machine, job.ranks)
    return (job.ranks - here) / job.ranks, here


def collective(job):
    return job.latency + (job.ranks - 1) * job.message


def notes_seconds(job):
    share, here = outside(job)
    return collective(job) + here * share * job.ranks * NOTE / job.bandwidth


def transfer_seconds(job, size):
    """One way: from all ranks to the one that adds up, or back."""
    share, here = outside(job)
    return max(here * share * size / job.bandwidth, (here - 1) / job.ranks * size / job.host.local)


def combine_seconds(job, piece):
    """Down to the host, to who adds it up, the sum, to all, up again."""
    return (2 * piece.wire / job.host.copies + 2 * (collective(job) + transfer_seconds(job, piece.wire)) +
            piece.sums / job.host.sums)


def own_seconds(job):
    """Of a step without exchanges: a rank updates its share of the cells alone."""
    spared = (job.ranks - 1) / job.ranks if shared_cells(job) else 0.0
    return job.seconds * (1 - spared * job.host.cells)


def cells_seconds(job):
    """Of their exchange, in each step."""
    return sum(notes_seconds(job) + combine_seconds(job, piece) for piece in shared_cells(job)) / PERIOD


def formula(job):
    """Seconds of a step in one piece without jitter."""
    if job.ranks == 1:
        return job.seconds
    if job.average:
        model = job.model
        return job.seconds + (2 * notes_seconds(job) + model.parameters * job.host.blend +
                              sum(combine_seconds(job, piece) for piece in average_buffers(model))) / PERIOD
    piece, = gradient_pieces(dataclasses.replace(job, pieces=1))
    return own_seconds(job) + cells_seconds(job) + 2 * job.host.submission + notes_seconds(job) + combine_seconds(job, piece)


@functools.lru_cache(maxsize=None)
def expected_maximum(ranks):
    """Of so many normal numbers of deviation 1."""
    width, total = 1e-2, 0.0
    for i in range(-800, 801):
        below = 0.5 * (1 + math.erf(i * width / math.sqrt(2)))
        total += i * width * ranks * below ** (ranks - 1) * math.exp(-0.5 * (i * width) ** 2) * width
    return total / math.sqrt(2 * math.pi)


def waiting(job):
    """Seconds of a step for slower ranks, of jitter alone, and before any exchange."""
    steps = PERIOD if job.average else 1
    return own_seconds(job) * math.hypot(job.jitter / math.sqrt(steps), job.spread) * expected_maximum(job.ranks)


# ---- the simulation ----------------------------------------------------------------------------------------------

class Line:
    """What serves one after the other."""

    def __init__(self):
        self.free = 0.0

    def serve(self, now, seconds):
        self.free = max(self.free, now) + seconds
        return self.free


def send(job, ready, size):
    """From ready[rank] on each sends its share of `size` bytes to all others: when all has come."""
    share, here = outside(job)
    lines = [Line() for _ in range(0, job.ranks, here)]
    beyond = max(lines[rank // here].serve(now, share * size / job.bandwidth)
                 for now, rank in sorted((now, rank) for rank, now in enumerate(ready)))
    return max(beyond, max(ready) + (here - 1) / job.ranks * size / job.host.local) + collective(job)


def exchange(job, pieces, ready, notes):
    """One step's gradients, or one buffer, piece by piece: seconds at which all have everything. ready[rank]: when it
    has computed all; its device copies what is ready while ranks exchange what came before. Before the first and the
    last piece they tell each other how they are."""
    down, up, free = [Line() for _ in ready], Line(), 0.0
    for number, piece in enumerate(pieces):
        begin = [max(free, line.serve(end - piece.early * job.seconds, piece.wire / job.host.copies))
                 for line, end in zip(down, ready)]
        if notes and number in (0, len(pieces) - 1):
            begin = [max(begin) + notes_seconds(job)] * job.ranks
        added = send(job, begin, piece.wire) + piece.sums / job.host.sums
        free = send(job, [added] * job.ranks, piece.wire)
        up.serve(free, piece.wire / job.host.copies)
    return up.free


@functools.lru_cache(maxsize=1)
def simulate_average(job):
    """Buffer by buffer, from when all are there: the same whatever came before."""
    now = 2 * notes_seconds(job) + job.model.parameters * job.host.blend
    for buffer in average_buffers(job.model):
        now = exchange(job, (buffer,), [now] * job.ranks, False)
    return now


def simulate_period(job, seconds):
    """From so many seconds of each rank to when all go on."""
    if job.ranks == 1:
        return seconds[0]
    if job.average:
        return max(seconds) + simulate_average(job)
    ready = [one + job.host.submission for one in seconds]
    return exchange(job, gradient_pieces(job), ready, True) + job.host.submission + cells_seconds(job)


@functools.lru_cache(maxsize=None)
def draw(ranks, count):
    """`count` lists of a normal number for each rank, less their mean, which nobody waits for."""
    numbers = random.Random(SEED)
    drawn = [[numbers.gauss(0, 1) for _ in range(ranks)] for _ in range(count)]
    return [[one - sum(each) / ranks for one in each] for each in drawn]


def efficiency(job, count=STEPS):
    """Of `count` steps or periods: what ranks compute, as a share of the time that it takes them."""
    steps = PERIOD if job.average else 1
    by_rank, *by_step = draw(job.ranks, 1 + count if job.jitter > 0 else 2)
    passed = 0.0
    for noise in by_step:
        shares = [1 + job.spread * rank + job.jitter / math.sqrt(steps) * one for rank, one in zip(by_rank, noise)]
        passed += simulate_period(job, [steps * own_seconds(job) * share for share in shares])
    return len(by_step) * steps * job.seconds / passed


def needed_bandwidth(job, wanted=ENOUGH):
    """The least, to one percent, that `wanted` is reached with; None where no connection is fast enough."""
    def reaches(bandwidth):
        return efficiency(dataclasses.replace(job, bandwidth=bandwidth)) >= wanted

    if not reaches(FASTEST):
        return None
    low, high = math.log(SLOWEST), math.log(FASTEST)
    while high - low > 0.01:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if reaches(math.exp(middle)) else (middle, high)
    return math.exp(high)


# ---- a run's figures ---------------------------------------------------------------------------------------------

def read_json(path):
    try:
        return config.read_json(path)
    except config.BadInput as error:
        raise BadInput(str(error)) from None


def model_of(folder, summary):
    """By its buffers: whatever the run's grid was, gradients of as many numbers come out level by level."""
    sizes = {buffer["name"]: buffer["bytes"] // 4 for buffer in summary["buffers"]}
    settings = config.flatten(read_json(os.path.join(folder, "config.json")))
    parameters, levels = sizes["parameters"], ()
    if settings["model"] == "ngp":
        levels = tuple(settings["grid.features"] * level.entries for level in config.grid_levels(settings))
    return Model(mlp=parameters - sum(levels), levels=levels or (0,), entries=sizes["step counts"],
                 cells=sizes["occupancy"])


def jitter_of(folder):
    """Of a step, as a share, by the time between lines of metrics.jsonl: as if steps varied independently."""
    with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    spans = [(b["step"] - a["step"], b["seconds"] - a["seconds"]) for a, b in zip(lines, lines[1:])]
    spans = [span for span in spans[len(spans) // 4:] if span[0] > 0]  # what comes first is warming up
    if len(spans) < 2:
        return 0.0
    mean = sum(seconds for _, seconds in spans) / sum(steps for steps, _ in spans)
    squares = sum((seconds - steps * mean) ** 2 / steps for steps, seconds in spans)
    return math.sqrt(squares / (len(spans) - 1)) / mean


def job_of(folder):
    """Of a run's folder: what it measured, with as many ranks as it had."""
    try:
        return measured_job(folder, read_json(os.path.join(folder, "summary.json")))
    except (KeyError, OSError, ValueError, TypeError, ZeroDivisionError) as error:
        raise BadInput(f"{folder}: not what a run leaves: {error!r}") from None


def measured_job(folder, summary):
    model, steps = model_of(folder, summary), summary["sampling"]["steps"]
    host = HOSTS["CPU" if "llvmpipe" in summary["device"] else "discrete GPU"]
    together = summary.get("parallel")
    if together is None:
        return Job(model, host, summary["sampling"]["seconds"] / steps, 1, jitter=jitter_of(folder))
    if together["virtual"] > 1 or read_json(os.path.join(folder, "config.json"))["parallel"]["mode"] not in ("synchronous", "exact"):
        raise BadInput(f"{folder}: needs a run alone, or one of parallel.mode=synchronous without parallel.ranks_per_device")
    exchange, waiting_for = together["exchange_seconds"], together["waiting_seconds"]
    seconds = (exchange / together["exchange_share"] - exchange) / steps
    # What an exchange took beside waiting is the host's, on one machine without further messages.
    host = dataclasses.replace(host, copies=math.inf, local=math.inf, submission=0.0,
                               sums=together["exchange_bytes"] * steps / (exchange - waiting_for))
    ranks = together["ranks"]
    return Job(model, host, seconds / (1 - host.cells * (ranks - 1) / ranks), ranks, per_machine=ranks, message=0.0,
               jitter=waiting_for / steps / seconds / expected_maximum(ranks))


def tell_run(folder):
    job = job_of(folder)
    print(f"measured: {job.model.parameters} parameters, {1e3 * own_seconds(job):.2f} ms a step without exchanges, "
          f"which varies by {100 * job.jitter:.1f} %")
    if job.ranks > 1:
        period = dataclasses.replace(job, average=True)
        print(f"measured: sums at {1e-9 * job.host.sums:.2f} GB/s; simulated with it: {job.ranks} ranks here keep "
              f"{100 * efficiency(job):.1f} % exact, {100 * efficiency(period):.1f} % on average of 16 steps")
    job = dataclasses.replace(job, per_machine=1, message=Job.message,
                              host=dataclasses.replace(job.host, local=HOSTS["CPU"].local))
    for line in efficiency_table([(os.path.basename(os.path.normpath(folder)), job)], job.jitter):
        print(line)


# ---- tables ------------------------------------------------------------------------------------------------------

# Measured or assumed as docs/scaling.md says.
HOSTS = {
    "discrete GPU": Host(copies=25e9, sums=10e9, local=5e9, blend=0.2e-9, submission=30e-6, scatter=0.5, cells=0.0),
    "integrated GPU": Host(copies=9e9, sums=10e9, local=5e9, blend=2e-9, submission=30e-6, scatter=0.5, cells=0.0),
    "CPU": Host(copies=math.inf, sums=2.5e9, local=5e9, blend=32e-9, submission=30e-6, scatter=0.12, cells=0.06),
}
DEVICES = (("fast GPU, 1 ms", "discrete GPU", 1e-3), ("integrated GPU, 20 ms", "integrated GPU", 20e-3),
           ("CPU, 30 ms", "CPU", 30e-3), ("CPU, 60 ms", "CPU", 60e-3))
RANKS = (2, 8, 64)
WAYS = (("exact", {}), ("exact, 4 pieces", {"pieces": 4}), ("exact, 4 pieces, f16", {"pieces": 4, "wire": 2}),
        ("average", {"average": True}))
JITTER = 0.05


def table(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    return [lines[0], "|---" * len(head) + "|", *lines[1:], ""]


def digits(value, count=2):
    """So many that count, never as a power of ten."""
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
        ways = (job, dataclasses.replace(job, wire=2), dataclasses.replace(job, average=True))
        parameters = f"{model.parameters:,}".replace(",", " ")
        rows.append([name, parameters, *(f"{1e-6 * exchange_bytes(way):.2f}" for way in ways)])
    return table(("default model", "parameters", "exact, MB a step", "exact, f16", "average"), rows)


def parts_table():
    """Where an exchange's time goes that no connection shortens."""
    rows = []
    for name, job in jobs():
        for mode, way in (("exact", job), ("exact, f16", dataclasses.replace(job, wire=2)),
                          ("average", dataclasses.replace(job, average=True))):
            steps = PERIOD if way.average else 1
            pieces = average_buffers(job.model) if way.average else gradient_pieces(way)
            own = own_seconds(way)
            parts = [2 * sum(piece.wire for piece in pieces) / job.host.copies / steps,
                     sum(piece.sums for piece in pieces) / job.host.sums / steps,
                     job.model.parameters * job.host.blend / steps if way.average else 0.0,
                     own + cells_seconds(way) - job.seconds]
            cost = formula(way) - own
            rows.append([name, mode, *(f"{1e3 * part:.2f}" for part in parts),
                         f"{1e3 * (formula(way) - job.seconds):.2f}", percent(job.seconds / formula(way)),
                         f"{1e3 * ENOUGH * cost / (1 - ENOUGH * own / job.seconds):.0f}"])
    return table(("device, step", "mode", "copies, ms a step", "sums", "averaging", "cells", "all", "efficiency",
                  "step for 90 %, ms"), rows)


def bandwidth_cell(job):
    """In GB/s by latency; where none is enough, what is left with the least latency."""
    found = [needed_bandwidth(dataclasses.replace(job, latency=latency)) for latency in LATENCIES]
    if found[0] is None:
        return percent(efficiency(dataclasses.replace(job, latency=LATENCIES[0], bandwidth=FASTEST))) + " at most"
    shown = ["none" if one is None else digits(1e-9 * one) for one in found]
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def bandwidth_table():
    rows = []
    for name, job in jobs():
        for way, changes in WAYS:
            job_here = dataclasses.replace(job, **changes)
            cells = [bandwidth_cell(dataclasses.replace(job_here, ranks=ranks)) for ranks in RANKS]
            rows.append([name, way, *cells,
                         bandwidth_cell(dataclasses.replace(job_here, ranks=RANKS[-1], per_machine=8))])
    return table(("device, step", "mode", *(f"{ranks} ranks" for ranks in RANKS), "64, 8 a machine"), rows)


def efficiency_table(named, jitter):
    connections = (("10 Gbit/s", 1.25e9), ("100 Gbit/s", 12.5e9))
    rows = []
    for name, job in named:
        for way, changes in WAYS:
            cells = [percent(efficiency(dataclasses.replace(job, **changes, ranks=ranks, bandwidth=bandwidth,
                                                            latency=LATENCIES[1], jitter=jitter)))
                     for _, bandwidth in connections for ranks in RANKS]
            rows.append([name, way, *cells])
    return table(("device, step", "mode", *(f"{speed}: {ranks}" for speed, _ in connections for ranks in RANKS)), rows)


def waiting_table():
    rows = []
    for jitter in (0.02, 0.05, 0.1):
        job = Job(default_model(False), HOSTS["CPU"], 1.0, 2, jitter=jitter)
        ways = [dataclasses.replace(job, ranks=ranks, average=average) for average in (False, True) for ranks in RANKS]
        rows.append([percent(jitter), *(f"{100 * waiting(way):.1f} %" for way in ways)])
    return table(("jitter", *(f"{mode}: {ranks}" for mode in ("exact", "average") for ranks in RANKS)), rows)


def tables():
    """The part of docs/scaling.md between its marks."""
    parts = (
        ("What a rank exchanges in a step, E; it sends 2 (R-1)/R times as much:", bytes_table()),
        ("What two ranks need beside their step over a connection without limits; hardly more for more ranks. The last "
         "column is the step for which that is a tenth of the time:", parts_table()),
        ("GB/s that a machine's connection needs each way for an efficiency of 90 %, without jitter; three figures "
         "where latencies of 2, 20 and 100 us differ; where no connection is enough, what an endless one leaves:",
         bandwidth_table()),
        (f"Efficiency with a rank a machine, a latency of 20 us and a jitter of {percent(JITTER)}, by connection and "
         "ranks:", efficiency_table(jobs(), JITTER)),
        ("Waiting for the slowest, as a share of a step, by jitter from step to step:", waiting_table()),
    )
    return "\n" + "".join(f"{line}\n" for title, lines in parts for line in (textwrap.fill(title, 120), "", *lines))


def written(page):
    """What a page has between the marks; None where it has no marks."""
    _, begun, rest = page.partition(BEGIN)
    text, ended, _ = rest.partition(END)
    return text if begun and ended else None


def write(text, document=DOCUMENT):
    with open(document, encoding="utf-8") as file:
        page = file.read()
    old = written(page)
    if old is None:
        raise BadInput(f"{document}: has no lines {BEGIN.strip()} and {END.strip()}")
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
            tell_run(options.run)
    except BadInput as error:
        print(f"tools/scaling_model.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
