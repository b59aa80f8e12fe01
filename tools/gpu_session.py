#!/usr/bin/env python3
"""tools/gpu_session.py OUT

Makes OUT/results.md of OUT/results.json, which tools/gpu_session.sh wrote, and adds the ratios of its first table
to the latter as "ratios". Needs only Python's standard library; whatever was not measured is left out.
"""
import json
import os
import sys

PRECISIONS = ("fp32", "fp16", "coopmat")
SAMPLES = 1 << 18
PARTS = ("smoke", "speed", "train", "tune", "variants", "peer", "bench", "tests", "programs")


def ratio(over, under):
    return over / under if over is not None and under else None


def number(value, digits=2, scale=1.0):
    return "-" if value is None else f"{value / scale:.{digits}f}"


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def milliseconds(value):
    return "-" if value is None else f"{value:.3f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


# ---- a training run ----------------------------------------------------------------------------------------------

def late_rates(run):
    """Means over the run's second half, when nothing is being warmed up; over all of it where that is too short."""
    lines = run["metrics"]
    names = ("samples_per_second", "marched_per_second", "rays_per_second")
    if not lines:
        return dict.fromkeys(names + ("steps_per_second",))
    spans = [(0.0, 0, lines[0])] + [(a["seconds"], a["step"], b) for a, b in zip(lines, lines[1:])]
    end = lines[-1]["seconds"]
    late = [span for span in spans if span[0] >= 0.5 * end]
    if not late or end - late[0][0] < 0.2 * end:
        late = spans
    passed = end - late[0][0]
    if passed <= 0:
        return dict.fromkeys(names + ("steps_per_second",))
    rates = {name: sum((line["seconds"] - began) * line[name] for began, _, line in late) / passed for name in names}
    rates["steps_per_second"] = (lines[-1]["step"] - late[0][1]) / passed
    return rates


class Run:
    """One training, of vknerf or of the peer. What it did not get to is None."""

    def __init__(self, run):
        self.raw, self.summary, self.config = run, run["summary"] or {}, run["config"] or {}
        self.scene, self.rates = run["scene"], late_rates(run)
        self.precision = self.summary.get("precision") or run["precision"]
        self.fell_back = run["trainer"] == "vknerf" and self.precision != run["precision"]
        self.psnr, self.ssim, self.step = (self.summary.get(key) for key in ("psnr", "ssim", "step"))
        self.passes = {one["name"]: one for one in self.summary.get("passes", [])}
        self.pass_milliseconds = sum(one["milliseconds"] for one in self.passes.values()) if self.passes else None
        self.idle = self.summary.get("profile", {}).get("idle_share")
        memory = [line["gpu_memory_bytes"] for line in run["metrics"]]
        self.memory = max(memory) if memory else None

    def samples(self):
        return self.config.get("batch", {}).get("samples")

    def steps_at(self, samples):
        """Steps/s with so many samples: measured, or what the rate of samples allows."""
        if self.samples() == samples:
            return self.rates["steps_per_second"], "measured"
        return ratio(self.rates["samples_per_second"], samples), f"samples/s over 2^{samples.bit_length() - 1}"

    def row(self):
        end = "" if self.raw["exit"] == 0 else f"exit status {self.raw['exit']}"
        if self.fell_back:
            end = f"asked for {self.raw['precision']}; {end}".rstrip("; ")
        path = self.summary.get("path")
        if path is None and self.raw["trainer"] == "peer" and self.summary:
            path = "compiled" if self.summary.get("compiled") else "not compiled"
        return (self.raw["trainer"], self.precision, path or "-", self.raw["asked_seconds"], number(self.psnr),
                number(self.ssim, 4), self.step if self.step is not None else "-",
                number(self.rates["steps_per_second"]), number(self.rates["samples_per_second"], 3, 1e6),
                number(self.rates["marched_per_second"], 3, 1e6), milliseconds(self.pass_milliseconds),
                percent(self.idle), number(self.memory, 0, 1 << 20), end)


RUN_HEAD = ("trainer", "precision", "path", "seconds", "PSNR, dB", "SSIM", "steps", "steps/s", "M live samples/s",
            "M marched/s", "ms of passes a step", "idle", "device MiB", "")


def scenes_of(runs):
    return list(dict.fromkeys(run.scene for run in runs))


def name_of(scene):
    return os.path.basename(scene.rstrip("/")) or scene


# ---- bench -------------------------------------------------------------------------------------------------------

def bench_results(bench):
    """The suites' cases; where quick measured the same one as a suite, the suite's."""
    merged = {}
    for name in ["quick"] + [name for name in bench if name != "quick"]:
        for result in bench.get(name, {}).get("results", []):
            if "rate" in result:
                merged[result["suite"], result["case"], result["path"]] = result
    return list(merged.values())


def is_mlp(result, training):
    return result["suite"] == "mlp" and bool(result.get("sizes", {}).get("training")) == training


def matrix_share(results, training):
    """The best MLP on matrices, as a share of the highest matrix peak of that run: (share, case, path)."""
    peaks = [r["rate"] for r in results if r["suite"] == "peak" and r["path"].startswith("coopmat")]
    mlps = [r for r in results if is_mlp(r, training) and r["path"].startswith("coopmat")]
    if not peaks or not mlps:
        return None
    best = max(mlps, key=lambda r: r["rate"])
    return best["rate"] / max(peaks), best["case"], best["path"]


def mlp_rows(results):
    cases = list(dict.fromkeys((r["case"], bool(r["sizes"].get("training"))) for r in results if r["suite"] == "mlp"))
    paths = list(dict.fromkeys(r["path"] for r in results if r["suite"] == "mlp"))
    by_key = {(r["case"], r["path"]): r for r in results if r["suite"] == "mlp"}
    rows = []
    for case, _ in cases:
        cells = [by_key.get((case, path)) for path in paths]
        rows.append([case] + [f"{c['rate'] / 1e12:.3f} ({percent(c.get('share'))})" if c else "-" for c in cells])
    return ["TFLOP/s (of the path's peak)"] + paths, rows


def rate_text(result):
    scale, unit = {"FLOP/s": (1e12, "TFLOP/s"), "B/s": (1e9, "GB/s")}.get(result["unit"], (1e6, "M " + result["unit"]))
    return f"{result['rate'] / scale:.3f} {unit}"


def other_rows(results, suite):
    return [(r["case"], r["path"], rate_text(r), percent(r.get("share")), number(r.get("vendor_ratio")))
            for r in results if r["suite"] == suite]


# ---- ratios ------------------------------------------------------------------------------------------------------

def precision_ratios(runs, scene):
    by_precision = {run.precision: run for run in runs if run.scene == scene and not run.fell_back}
    base = by_precision.get("fp32")
    for name in ("fp16", "coopmat"):
        run = by_precision.get(name)
        if not run or not base:
            continue
        yield f"{name_of(scene)}: steps/s, {name} / fp32", ratio(run.rates["steps_per_second"],
                                                                base.rates["steps_per_second"]), ""
        yield f"{name_of(scene)}: live samples/s, {name} / fp32", ratio(run.rates["samples_per_second"],
                                                                       base.rates["samples_per_second"]), ""
        yield f"{name_of(scene)}: time of the passes, fp32 / {name}", ratio(base.pass_milliseconds,
                                                                           run.pass_milliseconds), ""
        if run.psnr is not None and base.psnr is not None:
            yield f"{name_of(scene)}: PSNR, {name} - fp32, dB", run.psnr - base.psnr, ""


def peer_ratios(runs, peers, scene):
    for peer in (p for p in peers if p.scene == scene):
        mine = [run for run in runs if run.scene == scene and run.rates["samples_per_second"]]
        if not mine:
            continue
        best = max(mine, key=lambda run: run.rates["samples_per_second"])
        what = f"vknerf {best.precision} / PyTorch {peer.precision}"
        for label, key in (("steps/s", "steps_per_second"), ("live samples/s", "samples_per_second"),
                           ("marched samples/s", "marched_per_second")):
            yield f"{name_of(scene)}: {label}, {what}", ratio(best.rates[key], peer.rates[key]), ""
        if best.psnr is not None and peer.psnr is not None:
            note = "" if best.raw["asked_seconds"] == peer.raw["asked_seconds"] else \
                f"after {best.raw['asked_seconds']} and {peer.raw['asked_seconds']} s"
            yield f"{name_of(scene)}: PSNR, vknerf {best.precision} - PyTorch {peer.precision}, dB", \
                best.psnr - peer.psnr, note


def all_ratios(runs, peers, results):
    for scene in scenes_of(runs):
        yield from precision_ratios(runs, scene)
        yield from peer_ratios(runs, peers, scene)
        for run in runs:
            if run.scene == scene and not run.fell_back:
                steps, how = run.steps_at(SAMPLES)
                yield f"{name_of(scene)}: steps/s at 2^18 samples, {run.precision}", steps, how
    for label, training in (("forward", False), ("forward and backward", True)):
        best = matrix_share(results, training)
        if best:
            yield f"fused MLP {label}, of the highest matrix peak measured", best[0], f"{best[1]}, {best[2]}"


# ---- the document ------------------------------------------------------------------------------------------------

def write_head(session):
    devices = (session["info"] or {}).get("devices", [])
    chosen = next((d for d in devices if d.get("chosen")), devices[0] if devices else None)
    device = f"{chosen['name']}, {chosen['driver']}" if chosen else "no Vulkan device"
    build, machine = session["build"] or {}, session["machine"]
    return ["# GPU session", "",
            f"{device}; {machine['processors']} processors, {machine['system']}. vknerf {build.get('commit', '?')}. "
            f"{session['began']}, {session['seconds']:.0f} of {session['budget_seconds']} s"
            f"{', interrupted' if session['interrupted'] else ''}.", ""] + table(
                ("part", "outcome", "seconds", "limit", ""),
                [(name, p["status"], number(p["seconds"], 1), number(p["limit_seconds"], 0), p["note"])
                 for name, p in sorted(session["parts"].items(), key=lambda i: PARTS.index(i[0]))])


def write_tests(tests):
    if not tests:
        return []
    lines = ["## Tests", "", f"{tests['passed']} passed, {tests['failed']} failed, {tests['skipped']} skipped, "
             f"{tests['out_of_time']} out of time, {tests['not_run']} not run.", ""]
    bad = [t for t in tests["list"] if t["status"] not in ("passed", "skipped")]
    skipped = [t["name"] for t in tests["list"] if t["status"] == "skipped"]
    slow = sorted(tests["list"], key=lambda t: -t["seconds"])[:5]
    if bad:
        lines += table(("test", "outcome", "exit status", "seconds"),
                       [(t["name"], t["status"], t["exit"], number(t["seconds"], 1)) for t in bad])
    if skipped:
        lines += ["Skipped: " + ", ".join(skipped) + ".", ""]
    if slow:
        lines += ["Slowest: " + ", ".join(f"{t['name']} {t['seconds']:.1f} s" for t in slow) + ".", ""]
    return lines


def write_training(runs, peers):
    lines = []
    for scene in scenes_of(runs + peers):
        mine = [run for run in runs if run.scene == scene]
        lines += [f"## {name_of(scene)}", ""] + table(RUN_HEAD, [
            run.row() for run in mine + [peer for peer in peers if peer.scene == scene]])
        names = list(dict.fromkeys(name for run in mine for name in run.passes))
        if names:
            lines += ["Milliseconds a step, and how many times the floor of that pass's work:", ""]
            rows = []
            for name in names:
                cells = [run.passes.get(name, {}) for run in mine]
                rows.append([f"`{name}`"] + [
                    milliseconds(c.get("milliseconds")) + (
                        f" (x{c['milliseconds'] / c['floor_milliseconds']:.1f} {c.get('bound', '')})"
                        if c.get("floor_milliseconds") else "") for c in cells])
            lines += table(["pass"] + [run.raw["precision"] for run in mine], rows)
    return lines


def write_plain(title, entries):
    """Unprofiled trainings: smoke, speed, variants."""
    if not entries:
        return []
    runs = [(entry, Run(entry["run"])) for entry in entries]
    rates = sorted(run.rates["steps_per_second"] for _, run in runs if run.rates["steps_per_second"])
    lines = [f"## {title}", ""] + table(
        ("", "path", "seconds", "steps", "steps/s", "M live samples/s", "PSNR, dB", "clocks", ""),
        [(entry["name"], run.summary.get("path") or "-", run.raw["asked_seconds"],
          run.step if run.step is not None else "-", number(run.rates["steps_per_second"]),
          number(run.rates["samples_per_second"], 3, 1e6), number(run.psnr),
          entry["clocks"][len(entry["clocks"]) // 2] if entry["clocks"] else "-",
          "" if run.raw["exit"] == 0 else "not offered" if run.raw["exit"] == 2 else f"exit status {run.raw['exit']}")
         for entry, run in runs])
    if title == "Speed" and len(rates) > 1:
        lines += [f"Median {rates[len(rates) // 2]:.2f} steps/s, from {rates[0]:.2f} to {rates[-1]:.2f}.", ""]
    return lines


def write_tuning(tune):
    if not tune or "tuning" not in tune:
        return []
    tuning = tune["tuning"]
    return ["## Tuning", "", f"{tuning['path']}: {tuning['result']}{' (remembered)' if tuning['remembered'] else ''}.",
            ""] + table(("pass", "default, ms", "chosen, ms", "speed-up"),
                        [(p["name"], milliseconds(p["default_milliseconds"]), milliseconds(p["chosen_milliseconds"]),
                          number(p["speedup"])) for p in tuning["passes"]])


def write_programs(programs):
    if not programs or not programs.get("programs"):
        return []
    names = ("registers", "spilled", "scratch_bytes", "shared_bytes", "code_bytes", "occupancy", "compile_ms")
    return ["## What the driver's compiler says", ""] + table(
        ("path", "program") + names,
        [(p["path"], f"`{p['program']}`") + tuple(number(p.get(name), 0) for name in names)
         for p in programs["programs"] if p["use"] == "step"])


def write_bench(bench, results):
    lines = []
    if not bench:
        return lines
    library = next((b["vendor_library"] for b in bench.values() if b.get("vendor_library")), "")
    part = [name for name, b in bench.items() if not b.get("complete")]
    lines += ["## vknerf bench", "", f"Vendor's library: {library or '-'}."
              + (f" Cut short: {', '.join(part)}." if part else ""), ""]
    if any(r["suite"] == "mlp" for r in results):
        lines += ["### MLPs", ""] + table(*mlp_rows(results))
    for suite, title in (("peak", "Peaks"), ("step", "Training step"), ("gemm", "Products"), ("grid", "Hash grid")):
        rows = other_rows(results, suite)
        if rows:
            lines += [f"### {title}", ""] + table(("case", "path", "rate", "of peak", "/ vendor's"), rows)
    faults = [(r["suite"], r["case"], r["path"], r["fault"]) for b in bench.values() for r in b.get("results", [])
              if r.get("fault")]
    if faults:
        lines += ["### Not timed", ""] + table(("suite", "case", "path", "why"), faults)
    return lines


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n", 1)[0])
    path = os.path.join(sys.argv[1], "results.json")
    with open(path, encoding="utf-8") as file:
        session = json.load(file)
    runs, peers = [Run(run) for run in session["train"]], [Run(run) for run in session["peer"]]
    results = bench_results(session["bench"])
    ratios = [entry for entry in all_ratios(runs, peers, results) if entry[1] is not None]
    session["ratios"] = [{"what": what, "value": value, "note": note} for what, value, note in ratios]
    lines = write_head(session)
    if ratios:
        lines += ["## Ratios", ""] + table(("what", "value", ""), [(w, f"{v:.3f}", n) for w, v, n in ratios])
    lines += write_plain("Smoke", [session["smoke"]] if session["smoke"] else [])
    lines += write_plain("Speed", session["speed"]) + write_training(runs, peers)
    lines += write_tuning(session["tune"]) + write_plain("Variants", session["variants"])
    lines += write_bench(session["bench"], results) + write_tests(session["tests"])
    lines += write_programs(session["programs"])
    with open(os.path.join(sys.argv[1], "results.md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines).rstrip() + "\n")
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(session, file, indent=1)
        file.write("\n")
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
