#!/usr/bin/env python3
"""tools/mutants/main.py SOURCE BUILD TOOL_ROOT [OPTION ...]

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

from lists import Stopped, Wrong, check_tests, dry_run, read_file, read_lists
from generate import mutations_of
from programs import Programs
from trees import Tree

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import changed  # noqa: E402

VERDICTS = ("killed", "survived", "equivalent", "stale", "warned", "invalid")
HEAD = "id\tverdict\ttest\tfirst failed assertion\tseconds\tmutation\n"
# What no test depends on, but that which tries this tool.
APART = re.compile(r"tests/(mutants/|test_mutants\.sh)|tools/(mutants[./]|changed\.py)|.*\.md$")


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
                if len(row) != 6 or row[1] not in VERDICTS:
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
        self.results, self.times, self.map, self.known, self.unfit = None, {}, None, set(), set()
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
        # What is compiled already need not be compiled again for the copies.
        for cache in glob.glob(f"{os.path.dirname(os.path.realpath(tool_root))}/mesa_cache*"):
            if not os.path.exists(f"{self.work}/{os.path.basename(cache)}"):
                shutil.copytree(cache, f"{self.work}/{os.path.basename(cache)}")
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
        state = hashlib.sha256(repr((self.tool_root, self.options.sanitize, os.environ.get("VKNERF_TEST_NATIVE"))).encode())
        for name, (content, mode) in files.items():
            if not APART.match(name):
                state.update(f"{name}\0{mode}\0{len(content)}\0".encode())
                state.update(content)
        return state.hexdigest()

    # -- the tests without a mutation

    def limit_of(self, test):
        return max(self.options.limit, 4 * self.times["slowest"].get(test, 0))

    def has_passed(self, test):
        return test in self.times["passed"]

    def targets_of(self, test):
        return sorted(self.map.targets_of(test))

    def passes(self, tree, test):
        """Whether the test passes in the copy as it is. One that does not is not asked again."""
        try:
            self.measure(tree, test)
        except Wrong:
            print(f"{test} fails without a mutation, and is left out", flush=True)
            self.unfit.add(test)
        return test not in self.unfit

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
        if "mutated" in mutation:
            mutation["tests"] = [test for test in self.tests_of(mutation)
                                 if test in self.known and test not in self.unfit]
            verdict, test, detail = tree.judge_made_up(mutation)
        else:
            verdict, test, detail = tree.judge(mutation)
        seconds = time.monotonic() - began
        self.results.add([mutation["id"], verdict, test, detail, f"{seconds:.1f}", mutation["what"]])
        self.report(mutation, verdict, test, detail, seconds)

    def tests_of(self, mutation):
        """Those that execute the mutated line, the nearest first (tools/changed.py)."""
        lines = changed.Lines()
        lines.add(mutation["text"], [mutation["line"]])
        choice = changed.Choice(self.map)
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
        todo = [mutation for mutation in mutations if mutation["id"] not in self.results.rows]
        # Those of a file one after the other: it is compiled once for reverting one and making the next. Not those by
        # chance, whose share is to be told also of the first of them.
        if options.random is None:
            todo.sort(key=lambda mutation: [path for path, _, _ in mutation["edits"]])
        self.todo = len(todo)
        try:
            self.work_on(todo)
        except Stopped:
            print(f"stopped; {self.results.path} has {len(self.results.rows)}", flush=True)
            return 130
        return self.summary(mutations)

    def work_on(self, todo):
        files = self.files()
        if self.options.random is not None:
            self.work_on_made_up(todo, files)
            return
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

    def work_on_made_up(self, todo, files):
        trees = [Tree(self, number + 1) for number in range(self.options.jobs)]
        if not todo:
            return
        for tree in trees:
            os.makedirs(tree.root, exist_ok=True)
            print(f"building {tree.root}", flush=True)
            self.spread([tree], [files], lambda tree, files: tree.prepare_objects(files))
        self.known = trees[0].known_tests()
        self.read_times(files)
        self.began = time.monotonic()
        self.spread(trees, todo, self.mutate)

    def read_map(self):
        self.map = changed.Build(self.source, f"{self.build}/changed")
        if not self.map.record:
            raise Wrong("no test is known to execute anything: first run tools/test.sh --changed")

    def make_up(self):
        """The mutations of --random."""
        options, since = self.options, None
        self.read_map()
        if options.since:
            try:
                since = changed.added_lines(self.source, options.since)
            except SystemExit as error:
                raise Wrong(str(error)) from None
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
        parser.error("--random: not a number above 0, or with --list")
    try:
        re.compile(options.only)
    except re.error as error:
        parser.error(f"--only: {error}")
    return options


def random_run(source, build, tool_root, options):
    run = Run(source, build, tool_root, options)
    mutations = [mutation for mutation in run.make_up() if re.search(options.only, mutation["id"])]
    if not mutations:
        raise Wrong("no line of code to mutate")
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
