"""Applies, builds and tests mutations in copies of the checkout."""
import glob
import hashlib
import json
import os
import re
import shutil
import time

from lists import Stale, RunError, edited, program_of, read_file

FAILURE = re.compile(r"\d+: (\[  FAILED  \]|FAILED:)")


def clean(line):
    """A line of a test's output without ctest's number and without tabs."""
    return re.sub(r"^\d+: ", "", line).replace("\t", " ").strip()


def first_failure(lines):
    """The first failure of a test: cmocka's message and location, a script's FAILED line, or ctest's result."""
    message = location = ""
    for line in map(clean, lines):
        # The message of assert_...(), or of fail_msg(), which is followed by an empty one.
        found = re.match(r"(?:\[  ERROR   \] ---|ERROR:) (?!\[)(.*)", line)
        if found and not message:
            message = found[1]
        found = re.search(r"\[   LINE   \] --- (.*?): error", line)
        if found and not location:
            location = os.path.basename(found[1])
        found = re.match(r"\[  FAILED  \] (\S+)", line)
        if found:
            return f"{found[1]}: {message}" + (f" ({location})" if location else "")
        if line.startswith("FAILED:"):
            return line[len("FAILED:"):].strip()
    for line in lines:
        found = re.search(r"\*\*\*(.*?) +[\d.]+ sec", line)
        if found:
            return found[1].strip()
    return "failed"


# Further targets that scripts run.
HELPERS = {"test_make_scene": "make_scene", "test_device_lost": "vkfault"}


class Tree:
    """A copy of the checkout with its own build folder inside."""

    def __init__(self, run, number):
        self.run, self.programs = run, run.programs
        name = "sanitized" if run.options.sanitize else "tree"
        self.root = f"{run.work}/{name}" + (f"-{number}" if number > 1 else "")
        self.build = f"{self.root}/build"
        self.scratch = f"{self.build}/scratch"
        self.environment = dict(os.environ, VKNERF_TOOL_ROOT=run.tool_root, TMPDIR=self.scratch)
        self.environment.pop("VKNERF_BUILD_DIR", None)

    def write(self, files):
        """Writes path -> (content, mode); mode None keeps the mode. The pause is longer than the resolution of file
        times, so that the files are newer than all outputs built from their old contents."""
        time.sleep(0.02)
        for path, (content, mode) in files.items():
            path = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            if mode is not None:
                os.chmod(path, mode)

    def sync(self, files):
        """Makes the copy equal to the checkout, also after a run that could not revert its mutation."""
        for folder, folders, names in os.walk(self.root):
            if folder == self.root and "build" in folders:
                folders.remove("build")
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.root) not in files:
                    os.remove(path)
        self.write({path: file for path, file in files.items() if read_file(os.path.join(self.root, path)) != file})

    def configure(self):
        os.makedirs(self.scratch, exist_ok=True)
        self.run_or_raise(["cmake", "-S", self.root, "-B", self.build, "-G", "Ninja", "-DVKNERF_TESTS=ON",
                   f"-DVKNERF_TOOL_ROOT={self.run.tool_root}"] +
                  (["-DVKNERF_SANITIZE=address;undefined"] if self.run.options.sanitize else []))

    def run_or_raise(self, command):
        status, lines, _ = self.programs.run(command, self.environment)
        if status != 0:
            raise RunError("\n".join([f"without a mutation: {' '.join(command)} failed:"] + lines[-40:]))
        return lines

    def ninja(self, tests, jobs):
        # Test programs may run vknerf.
        targets = sorted({program_of(test, self.root) for test in tests} | {"vknerf"} |
                         {HELPERS[test] for test in tests if test in HELPERS})
        return ["ninja", "-C", self.build, "-j", str(jobs)] + targets

    def prepare(self, files, tests):
        self.sync(files)
        self.configure()
        self.run_or_raise(self.ninja(tests, os.cpu_count() or 1))

    def known_tests(self):
        listed = json.loads("\n".join(self.run_or_raise(["ctest", "--test-dir", self.build, "--show-only=json-v1"])))
        return {test["name"] for test in listed["tests"]}

    def test(self, name, limit=None, stop_early=False):
        """Runs a test; returns its outcome (passed, failed, skipped, late), its output and its seconds."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        os.makedirs(self.scratch)
        began = time.monotonic()
        status, lines, late = self.programs.run(
            ["ctest", "--test-dir", self.build, "-V", "-R", f"^{name}$", "--no-tests=error"], self.environment,
            limit, (lambda lines: FAILURE.match(lines[-1])) if stop_early else None)
        seconds = time.monotonic() - began
        failed = any(map(FAILURE.match, lines))
        if late and not failed:
            return "late", lines, seconds
        if status != 0 or failed:
            return "failed", lines, seconds
        skipped = any("***Skipped" in line for line in lines)
        return "skipped" if skipped else "passed", lines, seconds

    def judge(self, mutation):
        """Builds and tests a mutation of a list; returns verdict, test and first failure."""
        try:
            texts = edited(mutation, self.root)
        except Stale as reason:
            return "stale", "", str(reason)
        if "equivalent" in mutation:
            return "equivalent", "", mutation["equivalent"]
        try:
            self.write({path: (text.encode(), None) for path, (_, text) in texts.items()})
            status, lines, _ = self.programs.run(self.ninja(mutation["tests"], self.run.build_jobs), self.environment)
            if status != 0:
                errors = [line for line in lines if re.search(r"\berror: ", line, re.IGNORECASE)]
                return "invalid", "", (errors or lines[-1:] or ["ninja failed"])[0]
            for test in mutation["tests"]:
                limit = self.run.limit_of(test)
                outcome, lines, _ = self.test(test, limit, stop_early=True)
                if outcome == "late":
                    return "killed", test, f"takes more than {limit:.3g} s"
                if outcome == "failed":
                    return "killed", test, first_failure(lines)
            return "survived", "", ""
        finally:
            # Not built here: the next mutation is often one of the same file and needs only one build then.
            self.write({path: (text.encode(), None) for path, (text, _) in texts.items()})

    # -- random mutations

    def prepare_objects(self, files):
        self.sync(files)
        self.configure()
        self.run_or_raise(["ninja", "-C", self.build, "vknerf-core", "vknerf"])
        self.seen, self.objects = {}, {}
        self.objects = self.digests()

    def digests(self):
        """Digests of object files and SPIR-V; comparable because builds have no debug information."""
        digests = {}
        for path in glob.glob(f"{self.build}/CMakeFiles/*.dir/**/*.o", recursive=True) + \
                glob.glob(f"{self.build}/shaders/*.spv*"):
            stat = os.stat(path)
            if self.seen.get(path, (None,))[0] != (stat.st_mtime_ns, stat.st_size):
                self.seen[path] = ((stat.st_mtime_ns, stat.st_size), hashlib.sha256(read_file(path)[0]).digest())
            digests[path] = self.seen[path][1]
        return digests

    def judge_random(self, mutation):
        """Builds and tests a random mutation for up to --seconds; returns verdict, test and first failure."""
        path = mutation["path"]
        versions = {text: {path: (mutation[text].encode(), None)} for text in ("text", "mutated")}
        targets = ["vknerf"] if re.match(r"src/(cli|viewer)/", path) else ["vknerf-core"]
        try:
            self.write(versions["mutated"])
            failed = self.build_failure(targets)
            if failed:
                return failed
            if self.digests() == self.objects:
                return "equivalent", "", "the compiler generates the same code"
            began, tried = time.monotonic(), 0
            for test in mutation["tests"]:
                if time.monotonic() - began > self.run.options.seconds:
                    break
                detail = self.detects(test, versions, targets)
                if detail:
                    return "killed", test, detail
                tried += 1
            return "survived", "", f"{tried} of {len(mutation['tests'])} tests" if mutation["tests"] else \
                "no test is known to execute it"
        finally:
            self.write(versions["text"])

    def build_failure(self, targets):
        status, lines, _ = self.programs.run(["ninja", "-C", self.build, "-j", str(self.run.build_jobs), *targets],
                                             self.environment)
        if status != 0:
            errors = [line for line in lines if re.search(r"\berror: ", line, re.IGNORECASE)]
            return "invalid", "", (errors or lines[-1:] or ["ninja failed"])[0]
        # Warnings are errors only in a git checkout, which the copy is not.
        warnings = [line for line in lines if re.search(r"\bwarning: .*\[-W", line)]
        return ("warned", "", warnings[0]) if warnings else None

    def detects(self, test, versions, targets):
        """The test's first failure with the mutation; empty if the test passes, or also fails without the mutation."""
        targets = targets + self.run.targets_of(test)
        failed = self.build_failure(targets)
        if failed:
            return f"does not build: {failed[2]}"
        limit = self.run.limit_of(test)
        outcome, lines, _ = self.test(test, limit, stop_early=True)
        if outcome not in ("failed", "late"):
            return ""
        if not self.run.has_passed(test):
            self.write(versions["text"])
            self.build_failure(targets)
            passes = self.run.passes(self, test)
            self.write(versions["mutated"])
            if passes and outcome == "late" and self.run.limit_of(test) > limit:
                return self.detects(test, versions, targets)
            if not passes:
                return ""
        return first_failure(lines) if outcome == "failed" else f"takes more than {limit:.3g} s"
