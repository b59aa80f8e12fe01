#!/usr/bin/env python3
"""tools/gpu_session.py pack DIR [--build BUILD] [--scene PATH]
    Packs the program and a scene for a session on another machine into DIR: gpu_session.py and tree.tar.xz, at most
    64 MiB. Builds first, unless --build names a build folder. --scene is the scene to train at full size; default:
    the bundled one.
DIR/gpu_session.py run --out OUT [OPTION ...]
    Measures on the other machine, the most important parts first in case time runs out:
      smoke     half a minute of training, to see that training works
      speed     three trainings without profiling, with the GPU's clocks
      train     training in every precision with times of every pass
      tune      vknerf bench --tune; the later parts use its result
      variants  matrix shapes, f16 accumulation, conversions, f16 atomics, 8 levels of 4 features, batch sizes
      peer      the PyTorch trainer of tools/peers
      bench     the suites of vknerf bench
      certify   vknerf certify for all passes
      programs  the driver's compiler statistics for every pipeline
    Writes six files into OUT: results.json, results.md, session.log, bench.html, certificate.json and
    certificate.html. Every training has seed 1 and otherwise default settings, so that sessions can be compared.
tools/gpu_session.py table OUT
    Writes results.md again from results.json.

Options of run, with their defaults:
  --budget 540          seconds for all parts; a part gets its share of the time that is left
  --only LIST           only these parts
  --scene PATH          scene to train on, may be repeated; default: the packed one
  --repeats 3           trainings of the part speed
  --variants REGEX      only variants whose names match
  --precisions LIST     fp32,fp16,coopmat
  --seconds 20          duration of each training
  --profile yes         no: the part train does not time passes
  --downscale K         factor by which the scenes' images are reduced
  --suites LIST         quick,step,mlp,gemm,grid: quick is the smallest case of each kind
  --loaders DIR         unpacks DIR/*.deb (such as the Vulkan loader) for the session's programs only
  --launcher "CMD"      command that runs every Vulkan program, such as tools/lavapipe.sh
  --python "CMD"        Python that has torch; default: python3
  --bench-options, --certify-options, --tune-options, --train-options, --peer-options "..."
                        further options of these commands
VK_DRIVER_FILES and MESA_SHADER_CACHE_DIR are passed on to the programs. Ctrl-C ends a session and writes all
results so far. Needs only Python's standard library.
"""
import datetime
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SAMPLES = 1 << 18
MAX_MIB = 64  # limit of the packed session
# The parts in their order, with their relative shares of the time.
PARTS = {"smoke": 5, "speed": 10, "train": 15, "tune": 10, "variants": 10, "peer": 10, "bench": 15, "certify": 25,
         "programs": 5}
PACK = {"build": "", "scene": ""}
RUN = {"out": "", "budget": "540", "only": ",".join(PARTS), "scene": [], "repeats": "3", "variants": "",
       "precisions": "fp32,fp16,coopmat", "seconds": "20", "profile": "yes", "downscale": "",
       "suites": "quick,step,mlp,gemm,grid", "loaders": "", "launcher": os.environ.get("VKNERF_TEST_LAUNCHER", ""),
       "python": "python3", "bench-options": "", "certify-options": "", "tune-options": "", "train-options": "",
       "peer-options": ""}
# Options of further trainings; vknerf exits with 2 if the device does not support them.
VARIANTS = {
    "16x16x16": "--precision coopmat --set matrix.shape=16x16x16",
    "16x8x16": "--precision coopmat --set matrix.shape=16x8x16",
    "f16 sums": "--precision coopmat --set matrix.accumulate=f16",
    "conversions": "--precision coopmat --set matrix.conversions=true",
    "f16 atomics": "--set gradient_sums=f16",
    "8 levels of 4": "--set grid.levels=8 --set grid.features=4",
    "64 K samples": "--set batch.samples=65536",
    "128 K samples": "--set batch.samples=131072",
    "512 K samples": "--set batch.samples=524288",
    "1 M samples": "--set batch.samples=1048576",
}


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text):
    sys.exit(f"gpu_session.py: {text}")


def usage():
    say(__doc__.rstrip())
    sys.exit(2)


def parse(arguments, defaults):
    """Returns the options, each of which has a value, and the other arguments."""
    options, rest = dict(defaults), []
    while arguments:
        word, *arguments = arguments
        if not word.startswith("-"):
            rest.append(word)
        elif word[2:] not in defaults or not arguments:
            usage()
        else:
            value, before = arguments.pop(0), options[word[2:]]
            options[word[2:]] = before + [value] if isinstance(before, list) else value
    return options, rest


def positive(text, kind=int):
    try:
        value = kind(text)
    except ValueError:
        value = 0
    return value if value > 0 else die(f"{text}: not a {'whole ' if kind is int else ''}number above 0")


def load(path):
    """The JSON value of a file; None if the file is missing or incomplete."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def write_file(path, text, mode=0o644):
    """Replaces the file atomically, so that it is always complete."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path + ".new", mode)
    os.replace(path + ".new", path)


def output_of(*command):
    """The command's standard output; empty if there is no such program."""
    if not shutil.which(command[0]):
        return ""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def utc_now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- pack --------------------------------------------------------------------------------------------------------

# Text of DIR/gpu_session.py.
START = '''#!/usr/bin/env python3
"""Unpacks tree.tar.xz from its own folder and runs the contained tools/gpu_session.py; see --help."""
import os, sys, tarfile, tempfile
os.environ["VKNERF_UNPACKED"] = folder = tempfile.mkdtemp()
with tarfile.open(os.path.dirname(os.path.abspath(__file__)) + "/tree.tar.xz") as archive:
    archive.extractall(folder)
os.execv(sys.executable, [sys.executable, folder + "/tools/gpu_session.py"] + sys.argv[1:])
'''


def copy_program(build, folder):
    """Copies the program, without debug information, and the library of cJSON."""
    source = build + "/vknerf"
    if not os.path.isfile(source):
        die(f"{source}: no such file")
    os.makedirs(folder)
    if subprocess.run(["strip", "-o", folder + "/vknerf", source], stderr=subprocess.DEVNULL, check=False).returncode:
        shutil.copy(source, folder)
    for library in re.findall(r"libcjson\S* => (\S+) ", output_of("ldd", source)):
        shutil.copy(library, folder)


def describe_build(folder):
    """The object "build" of results.json."""
    versions = set()
    for path in glob.glob(folder + "/*"):
        with open(path, "rb") as file:
            versions |= set(re.findall(rb"GLIBC_2\.\d+", file.read()))
    newest = max(versions, key=lambda version: int(version.split(b".")[1]), default=b"").decode()
    commit = output_of("git", "-C", SOURCE, "describe", "--always", "--dirty").strip() or "unknown"
    passes = [os.path.basename(path)[len("pass_"):-len(".c")] for path in glob.glob(SOURCE + "/src/certify/pass_*.c")]
    return {"commit": commit, "packed": utc_now(), "needs": newest, "passes": sorted(passes)}


def pack(arguments):
    options, rest = parse(arguments, PACK)
    if len(rest) != 1:
        usage()
    build = options["build"]
    if not build:
        subprocess.run([SOURCE + "/tools/setup.sh", "--program"], check=True)
        build = os.environ.get("VKNERF_BUILD_DIR", SOURCE + "/build")
    build, target = os.path.realpath(build), rest[0]
    os.makedirs(target, exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        shutil.copytree(SOURCE + "/assets/demo", stage + "/assets/demo")
        if options["scene"]:
            shutil.copytree(options["scene"],
                            os.path.join(stage, "scene", os.path.basename(os.path.realpath(options["scene"]))))
        for pattern in ("tools/gpu_session.py", "tools/peers/*.py", "tools/peers/ngp_torch/*.py"):
            os.makedirs(os.path.join(stage, os.path.dirname(pattern)), exist_ok=True)
            for path in glob.glob(os.path.join(SOURCE, pattern)):
                shutil.copy(path, os.path.join(stage, os.path.dirname(pattern)))
        copy_program(build, stage + "/build")
        write_file(stage + "/build/about.json", json.dumps(describe_build(stage + "/build")) + "\n")
        archive = os.path.join(target, "tree.tar.xz")
        with tarfile.open(archive, "w:xz", preset=2) as tar:
            tar.add(stage, ".")
    packed = os.path.getsize(archive) / 1024
    if packed > MAX_MIB * 1024:
        die(f"{archive}: {packed:.0f} KiB, limit {MAX_MIB} MiB; use a smaller scene")
    write_file(os.path.join(target, "gpu_session.py"), START, 0o755)
    say(f"{target}: gpu_session.py, tree.tar.xz ({packed:.0f} KiB)")


# ---- a session: processes and time limits ------------------------------------------------------------------------

class Session:
    def __init__(self, options):
        self.options, self.work, self.out = options, tempfile.mkdtemp(), os.path.realpath(options["out"])
        self.budget, self.repeats = positive(options["budget"]), positive(options["repeats"])
        self.seconds = positive(options["seconds"], float)
        self.scenes = [os.path.realpath(scene) for scene in options["scene"]] or \
            (sorted(glob.glob(SOURCE + "/scene/*")) + [SOURCE + "/assets/demo"])[:1]
        self.only = [name for name in PARTS if name in options["only"].split(",")]
        self.began = time.monotonic()
        self.part, self.part_began, self.part_end = "", 0.0, 0.0
        self.child, self.interrupted, self.on_cpu = None, False, True
        self.overhead = {}  # by trainer: longest time of a run so far beyond its training
        os.makedirs(self.out, exist_ok=True)
        write_file(self.out + "/session.log", "")
        self.results = {
            "format": 1, "began": utc_now(), "seconds": 0, "budget_seconds": self.budget, "interrupted": False,
            "machine": {"system": " ".join((platform.system(), platform.release(), platform.machine())),
                        "processors": os.cpu_count()},
            "build": load(SOURCE + "/build/about.json"), "info": None, "parts": {}, "smoke": None, "speed": [],
            "variants": [], "tune": None, "programs": None, "certify": None, "bench": {}, "train": [], "peer": []}
        self.environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", XDG_CACHE_HOME=self.work + "/cache")
        self.find_driver_file()
        # Only the session's programs use the packed libraries and loaders.
        self.programs = dict(self.environment, LD_LIBRARY_PATH=":".join(
            [SOURCE + "/build"] + self.unpack_loaders() + [os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":"))

    def find_driver_file(self):
        """Sets VK_DRIVER_FILES in containers that mount NVIDIA's driver where the Vulkan loader does not look."""
        mounted = "/usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json"
        found = glob.glob("/etc/vulkan/icd.d/nvidia*.json") + glob.glob("/usr/share/vulkan/icd.d/nvidia*.json")
        is_set = self.options["launcher"] or any(self.environment.get(name)
                                                 for name in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"))
        if os.path.isfile(mounted) and not found and not is_set:
            self.environment["VK_DRIVER_FILES"] = mounted

    def unpack_loaders(self):
        root, folder = self.work + "/loaders", self.options["loaders"]
        if folder and not shutil.which("dpkg"):
            self.log("--loaders: cannot unpack packages: dpkg is not installed")
        for package in sorted(glob.glob(folder + "/*.deb")) if folder and shutil.which("dpkg") else []:
            if self.supervise(60, signal.SIGTERM, ["dpkg", "-x", package, root])[0]:
                self.log(f"{package}: cannot be unpacked")
        return glob.glob(root + "/lib/*-linux-gnu") + glob.glob(root + "/usr/lib/*-linux-gnu")

    def append(self, text):
        with open(self.out + "/session.log", "a", encoding="utf-8") as file:
            file.write(text + "\n")

    def log(self, text):
        say(text)
        self.append("== " + text)

    def stop(self, *_):
        """Handles SIGINT and SIGTERM: signals the running process and starts no other."""
        kind = signal.SIGTERM if self.interrupted else signal.SIGINT
        self.interrupted = self.results["interrupted"] = True
        if self.child:
            self.end(self.child, kind)

    @staticmethod
    def end(child, kind):
        try:
            os.killpg(child.pid, kind)
        except ProcessLookupError:
            pass

    def wait(self, child, limit, kind):
        """Returns the process's exit status as a shell does; 124: a signal ended the process after `limit` seconds."""
        late = False
        for patience, next_kind in ((max(limit, 1), kind), (10, signal.SIGKILL), (None, None)):
            try:
                code = child.wait(patience)
                break
            except subprocess.TimeoutExpired:
                late = True
                self.end(child, next_kind)
        return 124 if late else code if code >= 0 else 128 - code

    def supervise(self, limit, kind, command, capture=None, env=None):
        """Runs a command with its output in the log (standard output in `capture`); returns exit status, seconds."""
        if self.interrupted:
            return 130, 0.0
        self.append("$ " + " ".join(command))
        began = time.monotonic()
        with open(self.out + "/session.log", "ab") as log, open(capture or os.devnull, "wb") as captured:
            try:
                self.child = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stderr=log,
                                              stdout=captured if capture else log, env=env or self.environment)
            except OSError as error:
                self.append(str(error))
                return 127, 0.0
            if self.interrupted:  # before `stop` knew the process
                self.end(self.child, signal.SIGTERM)
            code = self.wait(self.child, limit, kind)
            self.child = None
        return code, time.monotonic() - began

    def vknerf(self, limit, arguments, capture=None):
        return self.supervise(limit, signal.SIGINT, self.options["launcher"].split() + [SOURCE + "/build/vknerf"] +
                              arguments, capture, self.programs)

    # ---- parts ---------------------------------------------------------------------------------------------------

    def set_part(self, status, note=""):
        self.results["parts"][self.part] = {
            "status": "interrupted" if self.interrupted and status != "broken" else status,
            "seconds": round(time.monotonic() - self.part_began, 2),
            "limit_seconds": round(self.part_end - self.part_began, 2), "note": note}
        return self.results["parts"][self.part]

    def run_part(self, name):
        """Runs a part within its share of the time that is left for it and the later parts."""
        now = self.part_began = time.monotonic()
        left = max(0.0, self.began + self.budget - now)
        self.part = name
        self.part_end = now + left * PARTS[name] / sum(PARTS[one] for one in self.only[self.only.index(name):])
        self.set_part("running")
        self.log(f"{name}: up to {self.part_end - now:.2f} s")
        status, note = getattr(self, "run_" + name)() if left >= 2 else ("out of time", "")
        part = self.set_part(status, note)
        self.log(f"{name}: {part['status']} in {part['seconds']:.2f} s{'; ' if note else ''}{note}")
        self.part = ""
        self.write()

    def with_time_limits(self, items):
        """Yields each item with its time limit in seconds; omits the rest when the time is up."""
        for index, item in enumerate(items):
            share = (self.part_end - time.monotonic()) / (len(items) - index)
            if share >= 2 and not self.interrupted:
                yield item, share

    def words(self, name):
        return self.options[name + "-options"].split()

    @staticmethod
    def outcome(good, count, what="runs"):
        return ("done", "") if good == count else ("partial" if good else "failed", f"{good} of {count} {what}")

    # ---- trainings -----------------------------------------------------------------------------------------------

    def read_run(self, name, trainer, scene, precision, seconds, ended):
        """Reads a run's folder, without incomplete lines of metrics.jsonl."""
        folder, lines = f"{self.work}/{name}/", []
        if os.path.isfile(folder + "metrics.jsonl"):
            with open(folder + "metrics.jsonl", encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if re.fullmatch(r"\{.*\}\n", line)]
        if lines:
            self.overhead[trainer] = max(self.overhead.get(trainer, 0.0), ended[1] - lines[-1]["seconds"])
        return {"trainer": trainer, "scene": scene, "precision": precision, "asked_seconds": seconds,
                "exit": ended[0], "wall_seconds": round(ended[1], 2), "summary": load(folder + "summary.json"),
                "config": load(folder + "config.json"), "metrics": lines}

    def training(self, name, trainer, share):
        """Seconds and options of a training; leaves the time that loading, compilation and evaluation took so far."""
        overhead, downscale = self.overhead.get(trainer, share * 0.4), self.options["downscale"]
        seconds = min(self.seconds, max(1, int(share - overhead)))
        seconds = int(seconds) if seconds == int(seconds) else seconds
        return seconds, ["--seconds", str(seconds), "--out", f"{self.work}/{name}"] + (
            ["--downscale", downscale] if downscale else [])

    def train(self, name, scene, precision, share, options):
        seconds, common = self.training(name, "vknerf", share)
        ended = self.vknerf(share, ["train", scene, "--seed", "1", "--quiet"] + common + options + self.words("train"))
        self.log(f"{name} {os.path.basename(scene)}: exit status {ended[0]} after {ended[1]:.2f} s")
        return self.read_run(name, "vknerf", scene, precision, seconds, ended)

    def train_unprofiled(self, runs, entries):
        """Trains without profiling and samples the GPU's clocks, temperature and power; returns exit statuses."""
        codes = []
        for (label, options), share in self.with_time_limits(runs):
            clocks, stopped = [], threading.Event()
            sampler = threading.Thread(target=sample_clocks, args=(clocks, stopped))
            sampler.start()
            run = self.train(label, self.scenes[0], "", share, options.split())
            stopped.set()
            sampler.join()
            entries.append({"name": label, "clocks": clocks, "run": run})
            codes.append(run["exit"])
            self.write()
        return codes

    def run_smoke(self):
        entries = []
        codes = self.train_unprofiled([("smoke", "")], entries)
        self.results["smoke"] = entries[0] if entries else None
        return self.outcome(codes.count(0), 1)

    def run_speed(self):
        codes = self.train_unprofiled([(f"speed {1 + n}", "") for n in range(self.repeats)], self.results["speed"])
        return self.outcome(codes.count(0), self.repeats)

    def run_variants(self):
        runs = [one for one in VARIANTS.items() if re.match(self.options["variants"], one[0])]
        codes = self.train_unprofiled(runs, self.results["variants"])
        good, absent = codes.count(0), codes.count(2)
        return ("done" if good + absent == len(runs) else "partial",
                f"{good} of {len(runs)} runs, {absent} not supported")

    def run_train(self):
        runs = [(scene, precision) for scene in self.scenes for precision in self.options["precisions"].split(",")]
        profile = ["--profile"] if self.options["profile"] == "yes" else []
        for (scene, precision), share in self.with_time_limits(runs):
            self.results["train"].append(self.train(f"train {len(self.results['train'])}", scene, precision, share,
                                                    ["--precision", precision] + profile))
            self.write()
        return self.outcome(sum(run["exit"] == 0 for run in self.results["train"]), len(runs))

    # ---- peer ----------------------------------------------------------------------------------------------------

    def why_no_peer(self):
        """The reason why the peer cannot run; empty if it can."""
        python, found = self.options["python"], self.work + "/peer.device"
        self.supervise(60, signal.SIGTERM, python.split() + [
            "-c", "import torch, numpy, PIL; print('cuda' if torch.cuda.is_available() else 'cpu')"], found)
        with open(found, encoding="utf-8") as file:
            device = file.read().strip()
        if not device:
            return f"no PyTorch: {python} cannot import torch, numpy and PIL"
        return f"no comparison: torch of {python} finds no GPU" if device == "cpu" and not self.on_cpu else ""

    def run_peer(self):
        """Trains the peer on each scene with the configuration of vknerf's last run on it."""
        reason = self.why_no_peer()
        if reason:
            return "skipped", reason
        for scene, share in self.with_time_limits(self.scenes):
            name, end, runs = f"peer {len(self.results['peer'])}", time.monotonic() + share, []
            configs = [run["config"] for run in self.results["train"] if run["scene"] == scene and run["config"]]
            write_file(self.work + "/peer.json", json.dumps((configs or [{}])[-1]))
            # torch.compile can fail or take too long, so half of the time is for a run without it.
            for run, options, part in ((name, ["--no-compile"], 0.5), (name + " compiled", [], 1.0)):
                limit = (end - time.monotonic()) * part
                seconds, common = self.training(run, "peer", limit)
                if limit >= 1 and not self.interrupted:
                    ended = self.supervise(
                        limit, signal.SIGINT, self.options["python"].split() + [
                            SOURCE + "/tools/peers/ngp_torch/train.py", "--scene", scene] + common +
                        (["--config", self.work + "/peer.json"] if configs else []) + options + self.words("peer"),
                        env=dict(self.environment, TORCHINDUCTOR_CACHE_DIR=self.work + "/inductor",
                                 TRITON_CACHE_DIR=self.work + "/triton"))
                    self.log(f"{name} {' '.join(options)}: exit status {ended[0]} after {ended[1]:.2f} s")
                    runs.insert(0, self.read_run(run, "peer", scene, "amp", seconds, ended))
            # The compiled run counts if it ended or got as far as the other.
            self.results["peer"] += sorted(runs, key=lambda run: (run["exit"] != 0, not run["metrics"]))[:1]
            self.write()
        return self.outcome(sum(run["exit"] == 0 for run in self.results["peer"]), len(self.scenes))

    # ---- bench, tune, programs -----------------------------------------------------------------------------------

    def find_vendor_library(self):
        """Sets VKNERF_CUBLASLT to PyTorch's cuBLASLt if the system has none."""
        finding = ("import glob, sys; print((sorted(f for p in sys.path "
                   "for f in glob.glob(p + '/nvidia/*/lib/libcublasLt.so.*')) or [''])[-1])")
        library = output_of(*self.options["python"].split(), "-c", finding).strip()
        if library and "VKNERF_CUBLASLT" not in self.programs and "libcublasLt" not in output_of("ldconfig", "-p"):
            self.programs["VKNERF_CUBLASLT"] = library

    def run_bench(self):
        if not self.on_cpu:
            self.find_vendor_library()
        suites, complete, charts = self.options["suites"].split(","), 0, ""
        for suite, share in self.with_time_limits(suites):
            folder = f"{self.work}/bench.{suite}"
            code, _ = self.vknerf(share, ["bench", "--quiet", "--out", folder] + self.words("bench") +
                                  (["--quick"] if suite == "quick" else ["--suite", suite]))
            complete += code == 0
            self.log(f"bench {suite}: exit status {code}")
            if os.path.exists(folder + "/bench.svg"):
                with open(folder + "/bench.svg", encoding="utf-8") as file:
                    charts += f"<h2>{suite}</h2>\n{file.read()}"
                write_file(self.out + "/bench.html", "<!doctype html>\n<title>vknerf bench</title>\n" + charts)
                self.results["bench"][suite] = load(folder + "/bench.json")
            self.write()
        return self.outcome(complete, len(suites), "suites complete")

    def run_bench_json(self, name, options):
        """Runs vknerf bench --json and stores the printed object in the results."""
        code, _ = self.vknerf(self.part_end - time.monotonic(), ["bench", "--json", "--quiet"] + options,
                              f"{self.work}/{name}.json")
        self.results[name] = load(f"{self.work}/{name}.json")
        return ("done", "") if code == 0 else ("partial" if self.results[name] else "failed", f"exit status {code}")

    def run_tune(self):
        return self.run_bench_json("tune", ["--tune"] + self.words("tune"))

    def run_programs(self):
        return self.run_bench_json("programs", ["--suite", "programs"] + self.words("bench"))

    # ---- certify -------------------------------------------------------------------------------------------------

    def run_certify(self):
        """Tests all passes, and keeps the certificate and the messages about failed tests."""
        folder, printed = self.work + "/certificate", self.work + "/certify.txt"
        # vknerf certify takes up to 10 s to end a process that hangs.
        code, _ = self.vknerf(self.part_end - time.monotonic() - 5, [
            "certify", "--out", folder, "--quiet", "--only", ",".join(self.results["build"]["passes"])] +
                              self.words("certify"), printed)
        certificate = load(folder + "/certificate.json")
        if not certificate:
            return "failed", f"exit status {code}"
        for name in ("certificate.json", "certificate.html"):
            shutil.copy(f"{folder}/{name}", self.out)
        with open(printed, encoding="utf-8", errors="replace") as file:
            failures = [line.rstrip("\n") for line in file if line.startswith("FAILED: ")]
        for line in failures:
            self.log(line)
        with open(folder + "/certify.log", encoding="utf-8", errors="replace") as file:
            self.append(file.read()[-8000:])
        tests, failed = certificate["tests"], certificate["failed"]
        self.results["certify"] = {"tests": tests, "failed": failed, "switched_off": certificate["switched_off"],
                                   "failures": failures}
        return ("failed" if failed else "done" if code == 0 else "partial",
                f"{tests} tests, {failed} failed, exit status {code}")

    # ---- a session -----------------------------------------------------------------------------------------------

    def write(self):
        self.results["seconds"] = round(time.monotonic() - self.began, 2)
        try:
            write_tables(self.results, self.out)
        except Exception:  # pylint: disable=broad-except  # the measurements must not be lost
            self.append(traceback.format_exc())
            write_file(self.out + "/results.json", json.dumps(self.results, indent=1) + "\n")

    def query_device(self):
        """Reads the device's properties. The session continues without a device, to record what fails."""
        if shutil.which("nvidia-smi"):
            self.supervise(20, signal.SIGTERM, ["nvidia-smi"])
        code, _ = self.vknerf(60, ["info", "--json"], self.work + "/info.json")
        if code:
            self.log(f"vknerf info: exit status {code}; see above")
            return
        self.results["info"] = load(self.work + "/info.json") or {}
        self.on_cpu = all(device.get("type") == "cpu" for device in self.results["info"].get("devices", []))

    def run(self):
        try:
            self.query_device()
            self.write()
            for name in self.only:
                if not self.interrupted:
                    self.run_part(name)
        finally:
            for kind in (signal.SIGINT, signal.SIGTERM):
                signal.signal(kind, signal.SIG_IGN)
            if self.part:
                self.set_part("broken")
            self.write()
            self.log(f"{self.out}: results.json, results.md")
            shutil.rmtree(self.work, ignore_errors=True)
        return 130 if self.interrupted else 0


def sample_clocks(clocks, stopped):
    """Appends the GPU's clocks, temperature and power to `clocks` every second until `stopped` is set."""
    while not stopped.is_set():
        line = output_of("nvidia-smi", "--query-gpu=clocks.sm,clocks.mem,temperature.gpu,power.draw",
                         "--format=csv,noheader").split("\n")[0]
        for path in glob.glob("/sys/class/drm/card*/device/pp_dpm_sclk"):
            with open(path, encoding="utf-8", errors="replace") as file:
                line = line or "".join(re.findall(r"(?m)^.*: (.*) \*$", file.read())[:1])
        clocks.extend([line] if line else [])
        stopped.wait(1)


def run(arguments):
    if not os.path.isfile(SOURCE + "/build/about.json"):
        die("run needs a packed session: call DIR/gpu_session.py run --out OUT")
    options, rest = parse(arguments, RUN)
    if rest or not options["out"]:
        usage()
    session = Session(options)
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, session.stop)
    return session.run()


# ---- formatting --------------------------------------------------------------------------------------------------

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

def steady_rates(run):
    """Mean rates over the second half of the run, after warming up; over the whole run if it is too short."""
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
    """A training of vknerf or of the peer. Values that it did not reach are None."""

    def __init__(self, run):
        self.raw, self.summary, self.config = run, run["summary"] or {}, run["config"] or {}
        self.scene, self.rates = run["scene"], steady_rates(run)
        self.precision = self.summary.get("precision") or run["precision"]
        self.other_precision = run["trainer"] == "vknerf" and self.precision != run["precision"]
        self.psnr, self.ssim, self.step = (self.summary.get(key) for key in ("psnr", "ssim", "step"))
        if self.step is None and run["metrics"]:  # cut off before or during the evaluation
            self.step = run["metrics"][-1]["step"]
        self.passes = {one["name"]: one for one in self.summary.get("passes", [])}
        self.pass_milliseconds = sum(one["milliseconds"] for one in self.passes.values()) if self.passes else None
        self.idle = self.summary.get("profile", {}).get("idle_share")
        memory = [line["gpu_memory_bytes"] for line in run["metrics"]]
        self.memory = max(memory) if memory else None

    def samples(self):
        return self.config.get("batch", {}).get("samples")

    def steps_at(self, samples):
        """Steps/s with `samples` samples per step: measured, or the sample rate divided by `samples`."""
        if self.samples() == samples:
            return self.rates["steps_per_second"], "measured"
        return ratio(self.rates["samples_per_second"], samples), f"samples/s / 2^{samples.bit_length() - 1}"

    def row(self):
        end = "" if self.raw["exit"] == 0 else f"exit status {self.raw['exit']}"
        if self.other_precision:
            end = f"requested {self.raw['precision']}; {end}".rstrip("; ")
        path = self.summary.get("path")
        if path is None and self.raw["trainer"] == "peer" and self.summary:
            path = "compiled" if self.summary.get("compiled") else "not compiled"
        return (self.raw["trainer"], self.precision, path or "-", self.raw["asked_seconds"], number(self.psnr),
                number(self.ssim, 4), self.step if self.step is not None else "-",
                number(self.rates["steps_per_second"]), number(self.rates["samples_per_second"], 3, 1e6),
                number(self.rates["marched_per_second"], 3, 1e6), milliseconds(self.pass_milliseconds),
                percent(self.idle), number(self.memory, 0, 1 << 20), end)


RUN_HEAD = ("trainer", "precision", "path", "seconds", "PSNR, dB", "SSIM", "steps", "steps/s", "M live samples/s",
            "M marched/s", "ms of passes per step", "idle", "device MiB", "")


def scenes_of(runs):
    return list(dict.fromkeys(run.scene for run in runs))


def name_of(scene):
    return os.path.basename(scene.rstrip("/")) or scene


# ---- bench -------------------------------------------------------------------------------------------------------

def bench_results(bench):
    """The results of all suites; a suite's result replaces that of the same case in quick."""
    merged = {}
    for name in ["quick"] + [name for name in bench if name != "quick"]:
        for result in bench.get(name, {}).get("results", []):
            if "rate" in result:
                merged[result["suite"], result["case"], result["path"]] = result
    return list(merged.values())


def is_mlp(result, training):
    return result["suite"] == "mlp" and bool(result.get("sizes", {}).get("training")) == training


def matrix_share(results, training):
    """The fastest coopmat MLP relative to the highest measured coopmat peak: (share, case, path)."""
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
    by_precision = {run.precision: run for run in runs if run.scene == scene and not run.other_precision}
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
            if run.scene == scene and not run.other_precision:
                steps, source = run.steps_at(SAMPLES)
                yield f"{name_of(scene)}: steps/s at 2^18 samples, {run.precision}", steps, source
    for label, training in (("forward", False), ("forward and backward", True)):
        best = matrix_share(results, training)
        if best:
            yield f"fused MLP {label} / highest matrix peak measured", best[0], f"{best[1]}, {best[2]}"


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
                 for name, p in session["parts"].items()])


def write_certificate(certificate):
    if not certificate:
        return []
    off = ", ".join(entry["feature"] for entry in certificate["switched_off"])
    return ["## Tests of passes", "", f"{certificate['tests']} tests, {certificate['failed']} failed; switched off: "
            f"{off or '-'}.", ""] + [f"- {line}" for line in certificate["failures"]] + [""]


def write_training(runs, peers):
    lines = []
    for scene in scenes_of(runs + peers):
        mine = [run for run in runs if run.scene == scene]
        lines += [f"## {name_of(scene)}", ""] + table(RUN_HEAD, [
            run.row() for run in mine + [peer for peer in peers if peer.scene == scene]])
        names = list(dict.fromkeys(name for run in mine for name in run.passes))
        if names:
            lines += ["Milliseconds per step, and their ratio to the cost model's floor of the pass:", ""]
            rows = []
            for name in names:
                cells = [run.passes.get(name, {}) for run in mine]
                rows.append([f"`{name}`"] + [
                    milliseconds(c.get("milliseconds")) + (
                        f" (x{c['milliseconds'] / c['floor_milliseconds']:.1f} {c.get('bound', '')})"
                        if c.get("floor_milliseconds") else "") for c in cells])
            lines += table(["pass"] + [run.raw["precision"] for run in mine], rows)
    return lines


def write_unprofiled(title, entries):
    """Section of unprofiled trainings: smoke, speed, variants."""
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
          "" if run.raw["exit"] == 0 else "not supported" if run.raw["exit"] == 2 else f"exit status {run.raw['exit']}")
         for entry, run in runs])
    if title == "Speed" and len(rates) > 1:
        lines += [f"Median {rates[len(rates) // 2]:.2f} steps/s, from {rates[0]:.2f} to {rates[-1]:.2f}.", ""]
    return lines


def write_tuning(tune):
    if not tune or "tuning" not in tune:
        return []
    tuning = tune["tuning"]
    source = " (from the cache)" if tuning["remembered"] else ""
    rows = [(p["name"], milliseconds(p["default_milliseconds"]), milliseconds(p["chosen_milliseconds"]),
             number(p["speedup"])) for p in tuning["passes"]]
    return ["## Tuning", "", f"{tuning['path']}: {tuning['result']}{source}.", ""] + table(
        ("pass", "default, ms", "chosen, ms", "speed-up"), rows)


def write_programs(programs):
    if not programs or not programs.get("programs"):
        return []
    names = ("registers", "spilled", "scratch_bytes", "shared_bytes", "code_bytes", "occupancy", "compile_ms")
    return ["## Compiler statistics of the driver", ""] + table(
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
              + (f" Incomplete: {', '.join(part)}." if part else ""), ""]
    if any(r["suite"] == "mlp" for r in results):
        lines += ["### MLPs", ""] + table(*mlp_rows(results))
    titles = {"peak": "Peaks", "step": "Training step", "gemm": "Matrix products", "grid": "Hash grid"}
    for suite, title in titles.items():
        rows = other_rows(results, suite)
        if rows:
            lines += [f"### {title}", ""] + table(("case", "path", "rate", "of peak", "/ vendor's"), rows)
    faults = [(r["suite"], r["case"], r["path"], r["fault"]) for b in bench.values() for r in b.get("results", [])
              if r.get("fault")]
    if faults:
        lines += ["### Not timed", ""] + table(("suite", "case", "path", "why"), faults)
    return lines


def write_tables(session, out):
    """Writes results.md, and results.json with the ratios of the first table."""
    runs, peers = [Run(run) for run in session["train"]], [Run(run) for run in session["peer"]]
    results = bench_results(session["bench"])
    ratios = [entry for entry in all_ratios(runs, peers, results) if entry[1] is not None]
    session["ratios"] = [{"what": what, "value": value, "note": note} for what, value, note in ratios]
    lines = write_head(session)
    if ratios:
        lines += ["## Ratios", ""] + table(("what", "value", ""), [(w, f"{v:.3f}", n) for w, v, n in ratios])
    lines += write_unprofiled("Smoke", [session["smoke"]] if session["smoke"] else [])
    lines += write_unprofiled("Speed", session["speed"]) + write_training(runs, peers)
    lines += write_tuning(session["tune"]) + write_unprofiled("Variants", session["variants"])
    lines += write_bench(session["bench"], results) + write_certificate(session["certify"])
    lines += write_programs(session["programs"])
    write_file(out + "/results.md", "\n".join(lines).rstrip() + "\n")
    write_file(out + "/results.json", json.dumps(session, indent=1) + "\n")


def main():
    command, *arguments = sys.argv[1:] or [""]
    if command in ("--help", "-h"):
        print(__doc__.rstrip())
        return 0
    if command == "pack":
        return pack(arguments)
    unpacked = os.environ.get("VKNERF_UNPACKED")
    try:
        if command == "run":
            return run(arguments)
        if command == "table" and len(arguments) == 1:
            path = os.path.join(arguments[0], "results.json")
            return write_tables(load(path) or die(f"{path}: cannot be read"), arguments[0])
    finally:
        if unpacked:
            shutil.rmtree(unpacked, ignore_errors=True)
    return usage()


if __name__ == "__main__":
    sys.exit(main())
