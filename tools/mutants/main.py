#!/usr/bin/env python3
"""tools/mutants/main.py SOURCE BUILD TOOL_ROOT [OPTION ...]

Runs mutation tests for tools/mutants.sh, which explains the options. Needs only Python's standard library.
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

from lists import Stopped, RunError, check_tests, dry_run, read_file, read_lists
from generate import mutations_of
from programs import Programs
from trees import Tree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import changed  # noqa: E402

VERDICTS = ("killed", "survived", "equivalent", "stale", "warned", "invalid")
HEAD = "id\tverdict\ttest\tfirst failed assertion\tseconds\tmutation\n"
# Files on which no test depends, except the test of this tool.
IRRELEVANT = re.compile(r"tests/(mutants/|test_mutants\.sh)|tools/(mutants[./]|changed\.py)|.*\.md$")


# ---- the run -----------------------------------------------------------------------------------------------

def duration(seconds):
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class Results:
    """The table of verdicts; the line of a mutation is written as soon as its verdict is known."""

    def __init__(self, path, keep, discarded):
        self.path, self.rows, self.lock = path, {}, threading.Lock()
        if keep and os.path.exists(path):
            self.read(path)
        for name in discarded:
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
                if len(row) != 6 or row[1] not in VERDICTS:
                    raise RunError(f"{path}:{number}: not a line of results; name another file with --out")
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
        self.results, self.times, self.coverage, self.known, self.failing = None, {}, None, set(), set()
        self.todo, self.done, self.began = 0, 0, 0.0
        self.interrupted = False

    def link_tool_root(self, tool_root):
        """Makes a link to the tool root and returns it. Mesa's cache is in the link's folder: mutated shaders must not
        fill the cache of other builds."""
        if not os.path.exists(f"{tool_root}/.complete"):
            return tool_root
        link = f"{self.work}/toolroot"
        if os.path.islink(link):
            os.remove(link)
        os.symlink(os.path.realpath(tool_root), link)
        # Starts with the other builds' cache, so that unchanged shaders need not be compiled again.
        for cache in glob.glob(f"{os.path.dirname(os.path.realpath(tool_root))}/mesa_cache*"):
            if not os.path.exists(f"{self.work}/{os.path.basename(cache)}"):
                shutil.copytree(cache, f"{self.work}/{os.path.basename(cache)}")
        return link

    def lock(self):
        """Allows one run at a time: the file stays open and locked until the process ends."""
        file = open(f"{self.work}/lock", "w", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RunError(f"{self.work}: in use by another run") from None
        return file

    # -- the checkout

    def names(self):
        """Files that git tracks or does not ignore; without git, all files outside of build folders."""
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
        """Path -> (content, mode) of every file of the checkout."""
        paths = {name: os.path.join(self.source, name) for name in sorted(self.names())}
        out = os.path.abspath(self.results.path)
        files = {name: read_file(path) for name, path in paths.items()
                 if path != out and not path.startswith(self.build + "/")}
        # Deleted files that are not committed are still listed, but have no content.
        return {name: file for name, file in files.items() if file}

    def digest(self, files):
        variant = (self.tool_root, self.options.sanitize, os.environ.get("VKNERF_TEST_NATIVE"))
        state = hashlib.sha256(repr(variant).encode())
        for name, (content, mode) in files.items():
            if not IRRELEVANT.match(name):
                state.update(f"{name}\0{mode}\0{len(content)}\0".encode())
                state.update(content)
        return state.hexdigest()

    # -- the tests without a mutation

    def limit_of(self, test):
        return max(self.options.limit, 4 * self.times["slowest"].get(test, 0))

    def has_passed(self, test):
        return test in self.times["passed"]

    def targets_of(self, test):
        return sorted(self.coverage.targets_of(test))

    def passes(self, tree, test):
        """Whether the test passes in the copy without a mutation; if not, the test is not used any more."""
        try:
            self.measure(tree, test)
        except RunError:
            print(f"{test} fails without a mutation and is not used", flush=True)
            self.failing.add(test)
        return test not in self.failing

    def read_times(self, files):
        """Reads which tests have passed with exactly these files, and the longest time of each test in any run. The
        longest time counts because mutated shaders are not in the driver's cache."""
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
            raise RunError("\n".join(lines[-40:] + [f"{test}: {outcome} without a mutation"]))
        print(f"{test} passes without a mutation, in {seconds:.1f} s", flush=True)
        slowest = self.times["slowest"]
        with self.results.lock:
            slowest[test] = max(slowest.get(test, 0), seconds)
            self.times["passed"].append(test)
            self.write_times()

    # -- mutations

    def test_mutation(self, tree, mutation):
        began = time.monotonic()
        if "mutated" in mutation:
            mutation["tests"] = [test for test in self.tests_of(mutation)
                                 if test in self.known and test not in self.failing]
            verdict, test, detail = tree.judge_random(mutation)
        else:
            verdict, test, detail = tree.judge(mutation)
        seconds = time.monotonic() - began
        self.results.add([mutation["id"], verdict, test, detail, f"{seconds:.1f}", mutation["what"]])
        self.report(mutation, verdict, test, detail, seconds)

    def tests_of(self, mutation):
        """Tests that execute the mutated line, the most specific first (tools/changed.py)."""
        lines = changed.Lines()
        lines.add(mutation["text"], [mutation["line"]])
        choice = changed.Choice(self.coverage)
        choice.add_file(mutation["path"], lines)
        return choice.ordered()

    def report(self, mutation, verdict, test, detail, seconds):
        with self.results.lock:
            self.done += 1
            left = self.todo - self.done
            rest = (time.monotonic() - self.began) / self.done * left
            text = f"{mutation['id']} {verdict}"
            text += f" by {test}" if test else f": {mutation['what']}" if verdict == "survived" else ""
            text += f": {detail}" if detail else ""
            remaining = f"{left} left, about {duration(rest)}" if left else "none left"
            print(f"{text} ({seconds:.1f} s; {remaining})", flush=True)

    # -- work in several copies

    def run_in_trees(self, trees, items, work):
        """Calls work(tree, item) for each item, at most one call at a time for each tree."""
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
        discarded = [mutation["id"] for mutation in mutations] if options.force else []
        self.results = Results(options.out or f"{self.work}/results.tsv", bool(options.out), discarded)
        todo = [mutation for mutation in mutations if mutation["id"] not in self.results.rows]
        # Mutations of the same file follow each other: one build reverts one and applies the next. Random mutations
        # keep their order, so that the first N of them are a random sample, too.
        if options.random is None:
            todo.sort(key=lambda mutation: [path for path, _, _ in mutation["edits"]])
        self.todo = len(todo)
        try:
            self.test_listed(todo)
        except Stopped:
            print(f"stopped; {self.results.path} has {len(self.results.rows)}", flush=True)
            return 130
        return self.summary(mutations)

    def test_listed(self, todo):
        files = self.files()
        if self.options.random is not None:
            self.test_random(todo, files)
            return
        tests = list(dict.fromkeys(test for mutation in todo if "equivalent" not in mutation
                                   for test in mutation["tests"]))
        trees = [Tree(self, number + 1) for number in range(self.options.jobs)]
        for tree in trees:
            os.makedirs(tree.root, exist_ok=True)
        if tests:
            for tree in trees:
                print(f"building {tree.root}", flush=True)
                self.run_in_trees([tree], [files], lambda tree, files: tree.prepare(files, tests))
            unknown = set(tests) - trees[0].known_tests()
            if unknown:
                raise RunError(f"{sorted(unknown)[0]}: ctest knows no such test")
            self.read_times(files)
            self.run_in_trees(trees, [test for test in tests if test not in self.times["passed"]], self.measure)
        else:
            for tree in trees:
                tree.sync(files)
        self.began = time.monotonic()
        self.run_in_trees(trees, todo, self.test_mutation)

    def test_random(self, todo, files):
        trees = [Tree(self, number + 1) for number in range(self.options.jobs)]
        if not todo:
            return
        for tree in trees:
            os.makedirs(tree.root, exist_ok=True)
            print(f"building {tree.root}", flush=True)
            self.run_in_trees([tree], [files], lambda tree, files: tree.prepare_objects(files))
        self.known = trees[0].known_tests()
        self.read_times(files)
        self.began = time.monotonic()
        self.run_in_trees(trees, todo, self.test_mutation)

    def read_map(self):
        self.coverage = changed.Build(self.source, f"{self.build}/changed")
        if not self.coverage.record:
            raise RunError("no record of what tests execute: first run tools/test.sh --changed")

    def generate(self):
        """Generates the mutations of --random."""
        options, since = self.options, None
        self.read_map()
        if options.since:
            try:
                since = changed.added_lines(self.source, options.since)
            except SystemExit as error:
                raise RunError(str(error)) from None
        return mutations_of(self.names(), self.source, options.random, options.seed, since)

    def summary(self, mutations):
        rows = [self.results.rows[mutation["id"]] for mutation in mutations]
        counts = collections.Counter(row[1] for row in rows)
        for verdict in ("survived", "stale", "invalid"):
            names = [row[0] for row in rows if row[1] == verdict]
            if self.options.random is not None:
                for row in rows if verdict == "survived" else ():
                    if row[1] == verdict:
                        print(f"survived: {row[0]}: {row[5]} ({row[3]})")
            elif names:
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
    parser.add_argument("--random", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--since", metavar="REV")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--seconds", type=float, default=120, metavar="SECONDS")
    parser.add_argument("--floor", type=float, default=95, metavar="PERCENT")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--dry-run", action="store_true")
    options = parser.parse_args(words)
    if options.jobs < 1:
        parser.error("--jobs: not a number above 0")
    if options.random is not None and (options.random < 1 or options.list):
        parser.error("--random: not a number above 0, or used together with --list")
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only: {error}")
    return options


def random_run(source, build, tool_root, options):
    run = Run(source, build, tool_root, options)
    mutations = [mutation for mutation in run.generate() if re.search(options.only, mutation["id"])]
    if not mutations:
        raise RunError("no line of code to test_mutation")
    if options.dry_run:
        for mutation in mutations:
            print(f"{mutation['id']}: {mutation['what']}: {' '.join(run.tests_of(mutation)[:3]) or 'no test'}")
        return 0
    return run.all(mutations)


def main():
    source, build, tool_root = sys.argv[1:4]
    options = parse_options(sys.argv[4:])
    try:
        if options.random is not None:
            return random_run(source, os.path.abspath(build), tool_root, options)
        mutations = read_lists(options.list or sorted(glob.glob(f"{source}/tests/mutants/*.json")))
        mutations = [mutation for mutation in mutations if re.search(options.only, mutation["id"])]
        if not mutations:
            raise RunError("--only: no mutation matches")
        check_tests(mutations, source)
        if options.dry_run:
            return dry_run(mutations, source)
        return Run(source, os.path.abspath(build), tool_root, options).all(mutations)
    except RunError as error:
        print(f"mutants.sh: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
