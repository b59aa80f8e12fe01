#!/usr/bin/env python3
"""tools/mutants.py SOURCE BUILD TOOL_ROOT [OPTION ...]

The work of tools/mutants.sh, which says what it does. Needs only Python's standard library.
"""
import argparse
import collections
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

KEYS = {"id", "what", "edits", "tests", "equivalent"}
VERDICTS = ("killed", "survived", "equivalent", "stale", "invalid")
HEAD = "id\tverdict\ttest\tfirst failed assertion\tseconds\n"
# What no test depends on, but that which tries this tool.
APART = re.compile(r"tests/(mutants/|test_mutants\.sh)|tools/mutants\.|.*\.md$")
# What a test that has failed may still take to clean up after itself.
GRACE_SECONDS = 5.0


class Wrong(Exception):
    """Ends the run with exit status 2."""


class Stale(Exception):
    """An edit does not apply."""


class Stopped(Exception):
    """Ctrl-C, or another worker found something wrong."""


# ---- the list ----------------------------------------------------------------------------------------------

def is_path_inside(path):
    return bool(path) and not os.path.isabs(path) and ".." not in path.split("/")


def list_problem(mutation):
    """What is wrong with an entry of a list, whatever the code; None if nothing."""
    if not isinstance(mutation, dict) or not isinstance(mutation.get("id"), str):
        return "not an object with an id"
    if mutation.keys() - KEYS:
        return f"unknown key {sorted(mutation.keys() - KEYS)[0]}"
    if not re.fullmatch(r"[\w.+-]+", mutation["id"]):
        return "the id has other characters than letters, digits and _.+-"
    if not isinstance(mutation.get("what"), str) or not mutation["what"]:
        return "does not say what it is"
    edits, tests = mutation.get("edits"), mutation.get("tests", [])
    if not isinstance(edits, list) or not edits:
        return "no edits"
    for edit in edits:
        if not isinstance(edit, list) or len(edit) != 3 or not all(isinstance(text, str) for text in edit):
            return "an edit is not [file, old text, new text]"
        if not is_path_inside(edit[0]):
            return f"{edit[0]}: not a file of the checkout"
        if not edit[1] or edit[1] == edit[2]:
            return f"{edit[0]}: an edit that changes nothing"
    if not isinstance(tests, list) or not all(isinstance(test, str) for test in tests):
        return "tests are not names"
    if "equivalent" in mutation:
        if not isinstance(mutation["equivalent"], str) or not mutation["equivalent"]:
            return "equivalent is not the reason"
    elif not tests:
        return "no test should notice it"
    return None


def read_lists(paths):
    """All mutations of the lists. Each id and each change is there once, so that none counts twice."""
    mutations, by_id, by_edits = [], {}, {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                entries = json.load(file)
        except (OSError, ValueError) as error:
            raise Wrong(f"{path}: {error}") from None
        if not isinstance(entries, list):
            raise Wrong(f"{path}: not an array")
        for index, mutation in enumerate(entries):
            problem = list_problem(mutation)
            if problem:
                name = mutation.get("id", index) if isinstance(mutation, dict) else index
                raise Wrong(f"{path}: {name}: {problem}")
            if mutation["id"] in by_id:
                raise Wrong(f"{path}: {mutation['id']} is there twice")
            edits = json.dumps(mutation["edits"])
            if edits in by_edits:
                raise Wrong(f"{path}: {mutation['id']} is the same as {by_edits[edits]}")
            by_id[mutation["id"]] = mutation
            by_edits[edits] = mutation["id"]
            mutations.append(mutation)
    return mutations


def read_text(path):
    # Line ends stay what they are.
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def read_file(path):
    """Content and mode; None when it is no file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(), os.stat(path).st_mode & 0o777


def find_text(text, old):
    """The ranges (first, end) of `text` that are `old`; where none is, those that differ from it in white space
    alone, so that an edit outlives the formatter."""
    exact = [match.span() for match in re.finditer(re.escape(old), text)]
    if exact:
        return exact
    places = [i for i, character in enumerate(text) if not character.isspace()]
    dense = "".join(text[i] for i in places)
    wanted = "".join(old.split())
    return [(places[match.start()], places[match.end() - 1] + 1)
            for match in re.finditer(re.escape(wanted), dense)] if wanted else []


def edited(mutation, root):
    """The files that the mutation changes: path -> (text, mutated text)."""
    texts = {}
    for path, old, new in mutation["edits"]:
        if path not in texts:
            try:
                text = read_text(os.path.join(root, path))
            except (OSError, ValueError):
                raise Stale(f"{path}: no such file of text") from None
            texts[path] = (text, text)
        original, text = texts[path]
        ranges = find_text(text, old)
        if len(ranges) != 1:
            raise Stale(f"{path}: {len(ranges)} times instead of once: {old!r}")
        first, end = ranges[0]
        texts[path] = (original, text[:first] + new + text[end:])
    return texts


def program_of(test, root):
    """The target that a test needs, or None when there is no such test."""
    program = test.removesuffix("_gpu_shaped")  # registered again, see tests/CMakeLists.txt
    if os.path.isfile(f"{root}/tests/{program}.c"):
        return program
    if test in ("test_manual", "test_package"):
        return "installed"
    if test == "test_cli_viewer":
        return "vknerf_without_viewer"  # beside the program, which every test has
    return "vknerf" if os.path.isfile(f"{root}/tests/{test}.sh") else None


def check_tests(mutations, root):
    for mutation in mutations:
        for test in mutation.get("tests", []):
            if not re.fullmatch(r"\w+", test) or not program_of(test, root):
                raise Wrong(f"{mutation['id']}: {test}: no such test in tests/")


def dry_run(mutations, root):
    stale = 0
    for mutation in mutations:
        try:
            edited(mutation, root)
        except Stale as reason:
            print(f"{mutation['id']}: stale: {reason}")
            stale += 1
    print(f"{len(mutations)} mutations, {stale} stale")
    return 1 if stale else 0


# ---- programs ----------------------------------------------------------------------------------------------

def session_members(leader):
    members = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                process, rest = file.read().split(" ", 1)
        except OSError:
            continue
        state, _, _, session = rest[rest.rindex(")") + 2:].split(" ")[:4]
        if int(session) == leader and state != "Z":
            members.append(int(process))
    return members


class Programs:
    """Starts programs, each the leader of a session, and ends them all when the run stops."""

    def __init__(self):
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.running = set()

    def start(self, command, environment):
        with self.lock:
            if self.stopping.is_set():
                raise Stopped
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                                       start_new_session=True)
            self.running.add(process)
            return process

    def kill(self, process):
        """The whole session: timeout, say, puts what it starts into a group of its own."""
        for _ in range(100):
            members = session_members(process.pid)
            for member in members:
                try:
                    os.kill(member, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            # What was just being started is seen the next time.
            if not members:
                break
            time.sleep(0.005)

    def stop(self):
        with self.lock:
            self.stopping.set()
            for process in self.running:
                self.kill(process)

    def run(self, command, environment, limit=None, on_line=None):
        """Returns exit status, lines of output and whether it took longer than limit. Whatever it started ends
        with it. When on_line returns True, it has GRACE_SECONDS left."""
        process = self.start(command, environment)
        late = threading.Event()

        def expire():
            late.set()
            self.kill(process)
        timers = [threading.Timer(limit, expire)] if limit is not None else []
        for timer in timers:
            timer.start()
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if on_line and on_line(lines):
                on_line = None
                timers.append(threading.Timer(GRACE_SECONDS, self.kill, [process]))
                timers[-1].start()
        # Not reaped until its session is gone, whose number would be free for another.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self.lock:
            self.kill(process)
            self.running.discard(process)
        for timer in timers:
            timer.cancel()
        status = process.wait()
        process.stdout.close()
        if self.stopping.is_set():
            raise Stopped
        return status, lines, late.is_set()


# ---- a test ------------------------------------------------------------------------------------------------

FAILURE = re.compile(r"\d+: (\[  FAILED  \]|FAILED:)")


def clean(line):
    """A line of a test without the number that ctest puts before it, on one line of a table."""
    return re.sub(r"^\d+: ", "", line).replace("\t", " ").strip()


def first_failure(lines):
    """What a test that failed says first: cmocka's message and place, a script's line, or how ctest names it."""
    message = place = ""
    for line in map(clean, lines):
        # Of assert_...(), or what fail_msg() says, which comes before an empty one of its own.
        found = re.match(r"(?:\[  ERROR   \] ---|ERROR:) (?!\[)(.*)", line)
        if found and not message:
            message = found[1]
        found = re.search(r"\[   LINE   \] --- (.*?): error", line)
        if found and not place:
            place = os.path.basename(found[1])
        found = re.match(r"\[  FAILED  \] (\S+)", line)
        if found:
            return f"{found[1]}: {message}" + (f" ({place})" if place else "")
        if line.startswith("FAILED:"):
            return line[len("FAILED:"):].strip()
    for line in lines:
        found = re.search(r"\*\*\*(.*?) +[\d.]+ sec", line)
        if found:
            return found[1].strip()
    return "failed"


class Tree:
    """A copy of the checkout, with a build folder of its own inside."""

    def __init__(self, run, number):
        self.run, self.programs = run, run.programs
        self.root = f"{run.work}/tree" + (f"-{number}" if number > 1 else "")
        self.build = f"{self.root}/build"
        self.scratch = f"{self.build}/scratch"
        self.environment = dict(os.environ, VKNERF_TOOL_ROOT=run.tool_root, TMPDIR=self.scratch)
        self.environment.pop("VKNERF_BUILD_DIR", None)

    def write(self, files):
        """Path -> content and mode, where None keeps that. Each is newer than whatever was made of its older content:
        the pause is longer than the clock of file times takes to tick."""
        time.sleep(0.02)
        for path, (content, mode) in files.items():
            path = os.path.join(self.root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            if mode is not None:
                os.chmod(path, mode)

    def sync(self, files):
        """Makes the copy what the checkout is, also after a run that could not revert its mutation."""
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
        self.must(["cmake", "-S", self.root, "-B", self.build, "-G", "Ninja", "-DVKNERF_TESTS=ON",
                   f"-DVKNERF_TOOL_ROOT={self.run.tool_root}"])

    def must(self, command):
        status, lines, _ = self.programs.run(command, self.environment)
        if status != 0:
            raise Wrong("\n".join([f"without a mutation: {' '.join(command)} failed:"] + lines[-40:]))
        return lines

    def ninja(self, tests, jobs):
        # Test programs may start vknerf.
        targets = sorted({program_of(test, self.root) for test in tests} | {"vknerf"})
        return ["ninja", "-C", self.build, "-j", str(jobs)] + targets

    def prepare(self, files, tests):
        self.sync(files)
        self.configure()
        self.must(self.ninja(tests, os.cpu_count() or 1))

    def known_tests(self):
        shown = json.loads("\n".join(self.must(["ctest", "--test-dir", self.build, "--show-only=json-v1"])))
        return {test["name"] for test in shown["tests"]}

    def test(self, name, limit=None, stop_early=False):
        """Returns how the test ended (passed, failed, skipped, late), its output and its seconds."""
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
        """Returns verdict, test and what that said first."""
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
            # The next build notices, whose time it often saves: mutations of a file follow each other.
            self.write({path: (text.encode(), None) for path, (text, _) in texts.items()})


# ---- the run -----------------------------------------------------------------------------------------------

def duration(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Results:
    """The table of verdicts: a line for each mutation, written as soon as it is known."""

    def __init__(self, path, keep, again):
        self.path, self.rows, self.lock = path, {}, threading.Lock()
        if keep and os.path.exists(path):
            self.read(path)
        for name in again:
            self.rows.pop(name, None)
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        temporary = f"{path}.new"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(HEAD)
            for row in self.rows.values():
                file.write("\t".join(row) + "\n")
        os.replace(temporary, path)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                row = line.rstrip("\n").split("\t")
                if line == HEAD:
                    continue
                if len(row) != 5 or row[1] not in VERDICTS:
                    raise Wrong(f"{path}:{number}: not a line of results: give another --out")
                self.rows[row[0]] = row

    def add(self, row):
        row = [re.sub(r"\s+", " ", cell) for cell in row]
        with self.lock, open(self.path, "a", encoding="utf-8") as file:
            self.rows[row[0]] = row
            file.write("\t".join(row) + "\n")


class Run:
    def __init__(self, source, build, tool_root, options):
        self.source, self.build, self.options = source, build, options
        self.work = f"{build}/mutants"
        self.programs = Programs()
        self.build_jobs = max(1, (os.cpu_count() or 1) // options.jobs)
        os.makedirs(self.work, exist_ok=True)
        self.lock_file = self.lock()
        self.tool_root = self.link_tool_root(tool_root)
        self.results, self.times = None, {}
        self.todo, self.done, self.began = 0, 0, 0.0
        self.interrupted = False

    def link_tool_root(self, tool_root):
        """Mesa's cache lies beside the tool root. Through a link that is not the one of other builds, which would
        fill with mutations."""
        if not os.path.exists(f"{tool_root}/.complete"):
            return tool_root
        link = f"{self.work}/toolroot"
        if os.path.islink(link):
            os.remove(link)
        os.symlink(os.path.realpath(tool_root), link)
        return link

    def lock(self):
        """One run at a time; the file stays open, and locked, until the process ends."""
        file = open(f"{self.work}/lock", "w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Wrong(f"{self.work}: another run works there") from None
        return file

    # -- the checkout

    def names(self):
        """What git knows of the checkout or does not ignore; without git, everything but build folders."""
        listed = subprocess.run(["git", "-C", self.source, "ls-files", "-z", "--cached", "--others",
                                 "--exclude-standard"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                check=False) if os.path.exists(f"{self.source}/.git") else None
        if listed and listed.returncode == 0:
            return {os.fsdecode(name) for name in listed.stdout.split(b"\0") if name}
        names = set()
        for folder, folders, files in os.walk(self.source):
            folders[:] = [name for name in folders if name not in (".git", "build", "runs")]
            names.update(os.path.relpath(os.path.join(folder, name), self.source) for name in files)
        return names

    def files(self):
        """Path -> content and mode, of every file of the checkout."""
        paths = {name: os.path.join(self.source, name) for name in sorted(self.names())}
        out = os.path.abspath(self.results.path)
        files = {name: read_file(path) for name, path in paths.items()
                 if path != out and not path.startswith(self.build + "/")}
        # Not there is what has been deleted but not committed.
        return {name: file for name, file in files.items() if file}

    def digest(self, files):
        state = hashlib.sha256(repr((self.tool_root, os.environ.get("VKNERF_TEST_NATIVE"))).encode())
        for name, (content, mode) in files.items():
            if not APART.match(name):
                state.update(f"{name}\0{mode}\0{len(content)}\0".encode())
                state.update(content)
        return state.hexdigest()

    # -- the tests without a mutation

    def limit_of(self, test):
        return max(self.options.limit, 4 * self.times["slowest"][test])

    def read_times(self, files):
        """What the tests took: those that passed with just these files, and the most that each ever took, since
        drivers keep what they compile and a mutation can make them compile it again."""
        path, digest = f"{self.work}/times.json", self.digest(files)
        try:
            with open(path, encoding="utf-8") as file:
                self.times = json.load(file)
        except (OSError, ValueError):
            self.times = {"slowest": {}}
        if self.times.get("digest") != digest:
            self.times.update(digest=digest, passed=[])

    def write_times(self):
        path = f"{self.work}/times.json"
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(self.times, file, indent=1)
        os.replace(f"{path}.new", path)

    def measure(self, tree, test):
        outcome, lines, seconds = tree.test(test)
        if outcome != "passed":
            raise Wrong("\n".join(lines[-40:] + [f"{test}: {outcome} without a mutation"]))
        print(f"{test} passes without a mutation, in {seconds:.1f} s", flush=True)
        slowest = self.times["slowest"]
        with self.results.lock:
            slowest[test] = max(slowest.get(test, 0), seconds)
            self.times["passed"].append(test)
            self.write_times()

    # -- mutations

    def mutate(self, tree, mutation):
        began = time.monotonic()
        verdict, test, detail = tree.judge(mutation)
        seconds = time.monotonic() - began
        self.results.add([mutation["id"], verdict, test, detail, f"{seconds:.1f}"])
        self.report(mutation, verdict, test, detail, seconds)

    def report(self, mutation, verdict, test, detail, seconds):
        with self.results.lock:
            self.done += 1
            left = self.todo - self.done
            rest = (time.monotonic() - self.began) / self.done * left
            text = f"{mutation['id']} {verdict}"
            text += f" by {test}" if test else f": {mutation['what']}" if verdict == "survived" else ""
            text += f": {detail}" if detail else ""
            ahead = f"{left} left, about {duration(rest)}" if left else "none left"
            print(f"{text} ({seconds:.1f} s; {ahead})", flush=True)

    # -- work in several copies

    def spread(self, trees, items, work):
        """Calls work(tree, item) for each item, in every tree one at a time."""
        queue, lock, errors = collections.deque(items), threading.Lock(), []

        def worker(tree):
            try:
                while not self.programs.stopping.is_set():
                    with lock:
                        if not queue:
                            return
                        item = queue.popleft()
                    work(tree, item)
            except Stopped:
                pass
            except BaseException as error:
                errors.append(error)
                self.programs.stop()
        threads = [threading.Thread(target=worker, args=[tree]) for tree in trees]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.05)
                if self.interrupted:
                    self.programs.stop()
        if errors:
            raise errors[0]
        if self.interrupted:
            raise Stopped

    def interrupt(self, *_):
        self.interrupted = True

    def all(self, mutations):
        options = self.options
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.interrupt)
        again = [mutation["id"] for mutation in mutations] if options.force else []
        self.results = Results(options.out or f"{self.work}/results.tsv", bool(options.out), again)
        # Those of a file one after the other: it is compiled once for reverting one and making the next.
        todo = sorted((mutation for mutation in mutations if mutation["id"] not in self.results.rows),
                      key=lambda mutation: [path for path, _, _ in mutation["edits"]])
        self.todo = len(todo)
        try:
            self.work_on(todo)
        except Stopped:
            print(f"stopped; {self.results.path} has {len(self.results.rows)}", flush=True)
            return 130
        return self.summary(mutations)

    def work_on(self, todo):
        files = self.files()
        tests = list(dict.fromkeys(test for mutation in todo if "equivalent" not in mutation
                                   for test in mutation["tests"]))
        trees = [Tree(self, number + 1) for number in range(self.options.jobs)]
        for tree in trees:
            os.makedirs(tree.root, exist_ok=True)
        if tests:
            for tree in trees:
                print(f"building {tree.root}", flush=True)
                self.spread([tree], [files], lambda tree, files: tree.prepare(files, tests))
            unknown = set(tests) - trees[0].known_tests()
            if unknown:
                raise Wrong(f"{sorted(unknown)[0]}: ctest knows no such test")
            self.read_times(files)
            self.spread(trees, [test for test in tests if test not in self.times["passed"]], self.measure)
        else:
            for tree in trees:
                tree.sync(files)
        self.began = time.monotonic()
        self.spread(trees, todo, self.mutate)

    def summary(self, mutations):
        rows = [self.results.rows[mutation["id"]] for mutation in mutations]
        counts = collections.Counter(row[1] for row in rows)
        for verdict in ("survived", "stale", "invalid"):
            names = [row[0] for row in rows if row[1] == verdict]
            if names:
                print(f"{verdict}: {' '.join(names)}")
        valid = counts["killed"] + counts["survived"]
        percent = 100 * counts["killed"] / valid if valid else 0.0
        print(", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS) +
              f": {percent:.1f} % of the valid ones killed")
        return 0 if percent >= self.options.floor else 1


# ---- options -----------------------------------------------------------------------------------------------

def parse_options(words):
    parser = argparse.ArgumentParser(prog="mutants.sh", add_help=False, allow_abbrev=False)
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--list", action="append", metavar="FILE")
    parser.add_argument("--out", metavar="FILE.tsv")
    parser.add_argument("--force", action="store_true")
    parser.add_argument("--floor", type=float, default=95, metavar="PERCENT")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args(words)
    if options.jobs < 1:
        parser.error("--jobs: not a number above 0")
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only: {error}")
    return options


def main():
    source, build, tool_root = sys.argv[1:4]
    options = parse_options(sys.argv[4:])
    try:
        mutations = read_lists(options.list or sorted(glob.glob(f"{source}/tests/mutants/*.json")))
        mutations = [mutation for mutation in mutations if re.search(options.only, mutation["id"])]
        if not mutations:
            raise Wrong("no such mutation")
        check_tests(mutations, source)
        if options.dry_run:
            return dry_run(mutations, source)
        return Run(source, os.path.abspath(build), tool_root, options).all(mutations)
    except Wrong as error:
        print(f"mutants.sh: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
