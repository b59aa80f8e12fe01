#!/usr/bin/env python3
"""tools/changed.py SOURCE BUILD choose [REV] | note

Chooses the tests that execute code changed since REV (for tools/test.sh --changed) or a mutated line (for
tools/mutants.sh). Needs only Python's standard library.

BUILD is built with -DVKNERF_TRACE=ON: each test records the functions that it calls and the pipelines that it creates
(tests/trace.c). "note" collects these records after a run into BUILD/record/TEST.json. "choose" combines them with the
changes that git reports and with ninja's dependencies. Chosen tests, by what has changed:

  a C function          those that call it
  other lines of C      those that call a function of the file, or of a file that includes it or uses its tables
  a shader              those that create a pipeline from it or from a shader that includes it
  a file of a test      that test
  any other file        those that name it or, if no test does, its folder

A test without a record is always chosen. The most specific come first: tests that use few functions and pipelines other
than those of the changed files.
"""
import collections
import glob
import json
import mmap
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

CODE = re.compile(r"(src|include|shaders/shared)/.*\.[ch]$")
SHADER = re.compile(r"(shaders|tests)/.*\.(comp|glsl|h)$")
TEXT_OF_TESTS = ("tests/*.sh", "tests/*.py", "tests/test_*.c", "tests/faults/**/*.py", "tools/*.sh", "tools/*.py",
                 "tools/vendors/*")
# Build targets that scripts of tests may start.
TARGET = re.compile(r"(vknerf[\w-]*|test_\w+|fuzz_\w+|\w+fault|fake_\w+|installed|make_scene|\w+_shim)$")


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, text=True,
                          errors="replace", **options).stdout


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


# ---- C -----------------------------------------------------------------------------------------------------

TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def without_comments(text):
    """The text with comments replaced by blanks, so that lines and columns do not move."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found[0]) if found[0][0] == "/" else found[0]
    return TOKENS.sub(blank, text)


def functions_of(text):
    """Name, first and last line (from 1) of each function; its braces must be in the first column."""
    lines = without_comments(text).split("\n")
    found, start = [], None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{" and start is None:
            first = number - 1
            while first > 1 and lines[first - 2].strip() and not re.match(r"[#}]|.*;\s*$", lines[first - 2]):
                first -= 1
            name = re.search(r"(\w+)\s*\(", " ".join(lines[first - 1:number - 1]))
            start = (name[1], first) if name else None
        elif line.startswith("}") and start:
            found.append((*start, number))
            start = None
    return found


class Lines:
    """Functions of a C file that have changed lines; `outside`: lines outside of functions have changed."""

    def __init__(self):
        self.functions, self.outside = set(), False

    def add(self, text, lines):
        code_lines, functions = without_comments(text).split("\n"), functions_of(text)
        for line in lines:
            inside = [name for name, first, last in functions if first <= line <= last]
            self.functions.update(inside)
            if not inside and line <= len(code_lines) and code_lines[line - 1].strip():
                self.outside = True


# ---- build and its records -----------------------------------------------------------------------------------

class Build:
    def __init__(self, source, folder):
        self.source, self.folder = os.path.realpath(source), os.path.abspath(folder)
        self.tests = self.read_tests()
        self.record = {}
        for path in glob.glob(f"{self.folder}/record/*.json"):
            name = os.path.basename(path)[:-len(".json")]
            if name in self.tests:
                self.record[name] = json.loads(read(path))
        self.cache = {}

    def once(self, key, make):
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]

    def read_tests(self):
        """Name -> CMake lines that define the test."""
        tests = collections.defaultdict(list)
        for path in sorted(glob.glob(f"{self.folder}/**/CTestTestfile.cmake", recursive=True)):
            if not path.startswith(f"{self.folder}/selection/"):
                for line in read(path).split("\n"):
                    found = re.match(r"(?:add_test|set_tests_properties)\((?:\[=*\[)?([\w.+-]+)", line)
                    if found:
                        tests[found[1]].append(line)
        return dict(tests)

    def words(self, test):
        """Quoted words of the test's command."""
        return re.findall(r'"((?:\\.|[^"\\])*)"', self.tests[test][0])

    def inside(self, path):
        """The path relative to the checkout; None for files of the build or the system."""
        path = os.path.normpath(os.path.join(self.folder, path))
        if path.startswith(self.source + "/") and not path.startswith(self.folder + "/"):
            return path[len(self.source) + 1:]
        return None

    def depends(self):
        """Output file -> files of the checkout that it depends on, by ninja's dependency log."""
        def make():
            made, depends = None, {}
            for line in run("ninja", "-C", self.folder, "-t", "deps").split("\n"):
                if line and not line.startswith(" "):
                    made = re.sub(r": #deps .*", "", line)
                    depends[made] = set()
                elif made and line.startswith("    "):
                    path = self.inside(line.strip())
                    if path:
                        depends[made].add(path)
            return depends
        return self.once("depends", make)

    def source_of(self, made):
        """The C file of an object file."""
        path = re.sub(r"(^|.*/)CMakeFiles/[^/]+\.dir/", lambda found: found[1], made)
        return path[:-len(".o")] if path.endswith(".o") else path

    def shader_sources(self):
        """Shader -> the shader and all files that it includes. One dependency file of the build covers many shaders, so
        #include lines are followed here as the compiler does."""
        def included(path):
            folders = [os.path.dirname(path), "shaders"] + [f for f in glob.glob("tests/*/", root_dir=self.source)
                                                            if path.startswith(f)]
            text = read(f"{self.source}/{path}")
            for name in re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text, re.MULTILINE):
                for folder in folders:
                    if os.path.isfile(f"{self.source}/{folder}/{name}"):
                        yield os.path.normpath(f"{folder}/{name}")
                        break

        def make():
            sources = {}
            for path in glob.glob("shaders/**/*.comp", root_dir=self.source, recursive=True) + \
                    glob.glob("tests/*/**/*.comp", root_dir=self.source, recursive=True):
                found, todo = set(), [path]
                while todo:
                    file = todo.pop()
                    if file not in found:
                        found.add(file)
                        todo += included(file)
                sources[path] = found
            return sources
        return self.once("shaders", make)

    def symbols(self):
        """Object file -> symbols that it refers to, and object file -> data symbols that it defines."""
        def make():
            objects = glob.glob(f"{self.folder}/CMakeFiles/*.dir/**/*.o", recursive=True)
            refers, data = collections.defaultdict(set), {}
            for line in run("nm", "-A", "-P", *objects).split("\n") if objects else []:
                name, _, rest = line.partition(": ")
                words = rest.split()
                if len(words) > 1 and words[1] == "U":
                    refers[name].add(words[0])
                elif len(words) > 1 and words[1] in "DRBC":
                    data.setdefault(name, set()).add(words[0])
            return refers, data
        return self.once("symbols", make)

    def users_of_data(self, made):
        """C files that refer to data of the object files."""
        refers, data = self.symbols()
        names = set().union(*(data.get(os.path.join(self.folder, name), ()) for name in made))
        return {self.source_of(name[len(self.folder) + 1:]) for name, wanted in refers.items() if wanted & names}

    def objects_of(self, path):
        """Object files that embed a file that is not C, such as a web page or a shader's text."""
        todo, seen, objects = [os.path.join(self.source, path)], set(), set()
        while todo:
            output = run("ninja", "-C", self.folder, "-t", "query", todo.pop())
            for line in output.partition("outputs:")[2].split("\n"):
                name = line.strip()
                if name.endswith(".o"):
                    objects.add(name)
                elif "." in os.path.basename(name) and not name.endswith((".a", ".so", ".spv")) and name not in seen:
                    seen.add(name)
                    todo.append(name)
        return objects

    # -- tests by the code that they execute

    def callers(self, path, functions=None):
        """Tests that call one of the functions, or without `functions` any function, of the file."""
        return {test for test, record in self.record.items()
                if path in record["functions"] and
                (functions is None or functions & set(record["functions"][path]))}

    def creators(self, sources, names=()):
        return {test for test, record in self.record.items()
                if any(source in sources or name in names for name, source in record["programs"].items())}

    def share(self, test, paths):
        """The files' share of the test's functions or of its pipelines, whichever is larger."""
        record = self.record.get(test)
        if not record:
            return 0.0
        calls = sum(map(len, record["functions"].values()))
        near = sum(len(names) for path, names in record["functions"].items() if path in paths) / max(calls, 1)
        sources = self.shader_sources()
        programs = [source for source in record["programs"].values() if sources.get(source, {source}) & paths]
        return max(near, len(programs) / max(len(record["programs"]), 1))

    def scripts(self):
        """File name -> paths of scripts of tests and tools."""
        scripts = collections.defaultdict(list)
        for pattern in TEXT_OF_TESTS:
            for path in glob.glob(f"{self.source}/{pattern}", recursive=True):
                scripts[os.path.basename(path)].append(path)
        return scripts

    def targets_of(self, test):
        """The build targets that the test needs."""
        known = self.once("targets", lambda: {line.split(": ")[0] for line in run(
            "ninja", "-C", self.folder, "-t", "targets", "all").split("\n") if "/" not in line.split(": ")[0]})
        words = self.words(test)
        programs = {os.path.basename(word) for word in words} & known
        if programs:
            return programs | {"vknerf"}
        todo, seen = [word for word in words if word.startswith(self.source)], set()
        targets, scripts = {"vknerf"}, self.once("scripts", self.scripts)
        while todo:
            path = todo.pop()
            if path in seen:
                continue
            seen.add(path)
            text = read(path)
            targets |= {word for word in re.findall(r"[\w-]+", text) if TARGET.match(word)} & known
            todo += [script for name in re.findall(r"\w+\.(?:sh|py)", text) for script in scripts.get(name, ())]
            if path.endswith("/sweep.py"):  # it loads the files of its folder
                todo += glob.glob(f"{os.path.dirname(path)}/**/*.py", recursive=True)
        return targets


# ---- choosing ------------------------------------------------------------------------------------------------

class Choice:
    """The tests that execute changed code, with the reason for each."""

    def __init__(self, build):
        self.build = build
        self.reasons = {}  # test -> (reason, specificity)
        self.notes = []
        self.has_test = False  # whether a test was chosen for the present file

    def add(self, tests, reason, paths=(), near=None):
        self.has_test = self.has_test or bool(tests)
        for test in tests:
            specificity = near if near is not None else self.build.share(test, set(paths))
            if test not in self.reasons or specificity > self.reasons[test][1]:
                self.reasons[test] = (reason, specificity)

    def add_file(self, path, lines=None):
        """Adds the tests for a changed file; `lines`: the Lines of a C file."""
        self.has_test = False
        notes = len(self.notes)
        self.add_own(path)
        if CODE.match(path):
            self.add_code(path, lines or all_lines())
        elif SHADER.match(path):
            self.add_shader(path)
        elif not path.startswith("tests/test_") or path.count("/") > 1:
            self.add_named(path)
        if SHADER.match(path) and CODE.match(path):
            self.add_shader(path)
        if not self.has_test and len(self.notes) == notes:
            self.notes.append(f"{path}: no test is known to depend on it")

    def add_own(self, path):
        """Adds tests whose command or sources contain the file."""
        build = self.build
        for test in build.tests:
            words = build.words(test)
            if any(build.inside(word) == path for word in words):
                self.add([test], f"has {path} in its command", near=2.0)
            program = next((word for word in words if word.startswith(build.folder)), None)
            name = os.path.basename(program) if program else ""
            reads = path == f"tests/{name}.c" or path.startswith(f"tests/{name}/") if name else False
            reads = reads or bool(name) and path.startswith("tests/") and any(
                f"/{name}.dir/" in made and path in files for made, files in build.depends().items())
            if reads:
                self.add([test], f"is built from {path}", near=2.0)

    def add_code(self, path, lines):
        build = self.build
        if lines.functions:
            self.add(build.callers(path, lines.functions),
                     f"calls {path}: " + ", ".join(sorted(lines.functions)[:3]), [path])
        if not lines.outside:
            if not lines.functions:
                self.notes.append(f"{path}: only comments have changed")
            return
        made = {name for name, files in build.depends().items()
                if path in files and (path.endswith(".h") or build.source_of(name) == path)}
        sources = {build.source_of(name) for name in made} | {path}
        for source in sorted(sources):
            self.add(build.callers(source), f"calls {source}" + ("" if source == path else f", which reads {path}"),
                     [source])
        users = build.users_of_data(made) - sources
        for source in sorted(users):
            self.add(build.callers(source), f"calls {source}, which uses tables of {path}", [source])

    def add_shader(self, path, names=()):
        build = self.build
        sources = {source for source, files in build.shader_sources().items() if path in files}
        self.add(build.creators(sources, names), f"creates pipelines from {path}", {path} | sources)
        self.add_made(path)

    def add_made(self, path):
        made = self.build.objects_of(path)
        for source in self.build.users_of_data(made) | {self.build.source_of(name) for name in made}:
            self.add(self.build.callers(source), f"calls {source}, which embeds {path}", [source])

    def add_named(self, path):
        build = self.build
        self.add_made(path)
        texts = build.once("texts", lambda: {
            os.path.relpath(name, build.source): read(name) for pattern in TEXT_OF_TESTS
            for name in glob.glob(f"{build.source}/{pattern}", recursive=True)})

        def naming(name):
            pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
            return {file for file, text in texts.items() if file != path and pattern.search(text)}

        def tests_of(files):
            return {test for test in build.tests for file in files
                    if re.sub(r"_(gpu_shaped|subgroup_16)$", "", test) == os.path.splitext(os.path.basename(file))[0]}
        # Tries less specific names, ending with folders, only while no test names the path.
        names, folder = [path, os.path.basename(path)], os.path.dirname(path)
        while folder:
            names.append(folder)
            folder = os.path.dirname(folder)
        for name in names:
            if name in ("tests", "tools", "src", "cmake"):
                break  # too many files name these folders
            files = naming(name)
            tests = tests_of(files)
            if not tests and files:
                tests = tests_of(set().union(*(naming(os.path.basename(file)) for file in files)))
            if tests:
                self.add(tests, f"names {name}", near=1.0 if name == names[0] else 0.5)
                break
        if re.search(r"(^|/)CMakeLists\.txt$|^cmake/", path):
            self.notes.append(f"{path}: defines the build; run tools/test.sh")

    def add_unknown(self):
        for test in self.build.tests:
            if test not in self.build.record:
                self.add([test], "has no record yet", near=-1.0)

    def ordered(self):
        """Most specific first; among equals the faster first."""
        def key(test):
            seconds = self.build.record.get(test, {}).get("seconds", 600.0)
            return -round(self.reasons[test][1], 3), seconds, test
        return sorted(self.reasons, key=key)


def all_lines():
    lines = Lines()
    lines.outside = True
    return lines


# ---- git -----------------------------------------------------------------------------------------------------

def changed_files(source, since):
    """Path -> Lines of files that differ from the commit or are untracked."""
    git = ["git", "-C", source]
    if not shutil.which("git"):
        raise SystemExit("changed.py: git, which lists the changes, is not installed")
    if subprocess.run(git + ["rev-parse", "--verify", "-q", since + "^{commit}"], stdout=subprocess.DEVNULL,
                      check=False).returncode:
        raise SystemExit(f"changed.py: {since}: no such commit")
    names = run(*git, "diff", "--name-only", "--no-renames", "-z", since).split("\0")
    names += run(*git, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return {name: lines_of(source, since, name) for name in sorted(set(filter(None, names)))}


def hunks(source, since, path):
    """Line numbers of each hunk: removed ones of the old file, added ones of the new file."""
    output = run("git", "-C", source, "diff", "-U0", "--no-renames", since, "--", path)
    for found in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", output, re.MULTILINE):
        first, count, to, added = (1 if number is None else int(number) for number in found.groups())
        yield range(first, first + count), range(to, to + added)


def lines_of(source, since, path):
    if not CODE.match(path):
        return None
    lines, old, new = Lines(), run("git", "-C", source, "show", f"{since}:{path}"), read(f"{source}/{path}")
    if not old:
        return all_lines()
    for removed, added in hunks(source, since, path):
        lines.add(old, removed)
        lines.add(new, added)
    return lines


def added_lines(source, since):
    """Path -> numbers of lines added since the commit."""
    added = {}
    for path in changed_files(source, since):
        lines = {line for _, numbers in hunks(source, since, path) for line in numbers}
        added[path] = lines or set(range(1, read(f"{source}/{path}").count("\n") + 1))
    return added


# ---- the commands --------------------------------------------------------------------------------------------

def choose(build, since):
    choice = Choice(build)
    files = changed_files(build.source, since)
    for path, lines in files.items():
        choice.add_file(path, lines)
        if path == "shaders/shaders.txt":
            output = run("git", "-C", build.source, "diff", "-U0", since, "--", path)
            rows = re.findall(r"^[-+](?![-+]) *(\S+)", output, re.MULTILINE)
            patterns = [re.sub(r"\\{[^}]*\\}", r"\\w*", re.escape(row)) for row in rows if row[0] != "#"]
            names = {name for record in build.record.values() for name in record["programs"]
                     if any(re.fullmatch(pattern + "(_[a-z0-9]+)?", name) for pattern in patterns)}
            choice.add_shader(path, names)
    choice.add_unknown()
    chosen = choice.ordered()
    print(f"{len(files)} files have changed since {since}; {len(chosen)} of {len(build.tests)} tests:")
    for test in chosen:
        seconds = build.record.get(test, {}).get("seconds")
        print(f"  {test}: {choice.reasons[test][0]}" + (f" ({seconds:.1f} s)" if seconds is not None else ""))
    for note in choice.notes:
        print(f"  {note}")
    select(build, chosen)


def select(build, chosen):
    """Writes BUILD/selection: a test folder for ctest, and the build targets of the tests."""
    folder = f"{build.folder}/selection"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/CTestTestfile.cmake", "w", encoding="utf-8") as file:
        for rank, test in enumerate(chosen):
            trace = f"{build.folder}/trace/{test}"
            shutil.rmtree(trace, ignore_errors=True)
            os.makedirs(trace)
            file.write("\n".join(build.tests[test]) + "\n")
            file.write(f"set_tests_properties({test} PROPERTIES COST {len(chosen) - rank}\n"
                       f'    ENVIRONMENT_MODIFICATION "VKNERF_TRACE=set:{trace}")\n')
    targets = set().union(*map(build.targets_of, chosen))
    with open(f"{folder}/targets", "w", encoding="utf-8") as file:
        file.write("\n".join(sorted(targets)) + "\n")


def offsets_in(path):
    """Offsets of the called functions in a file written by tests/trace.c."""
    found = []
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = data.find(b"\1")
        while at >= 0:
            found.append(at)
            at = data.find(b"\1", at + 1)
    return found


def functions_at(build, program, offsets):
    """Offset -> (file, function) for functions of the checkout."""
    paths = [path for folder in ("", "tests/", "tools/*/") for path in glob.glob(f"{build.folder}/{folder}{program}")
             if os.path.isfile(path)]
    if not paths:
        return {}
    output = run("addr2line", "-f", "-e", paths[0], input="\n".join(map(hex, offsets)) + "\n").split("\n")
    named = {}
    for offset, name, location in zip(offsets, output[::2], output[1::2]):
        path = build.inside(location.rsplit(":", 1)[0])
        if path:
            named[offset] = (path, name.split(".")[0])
    return named


def note(build):
    """Moves the records of the last run from BUILD/trace into BUILD/record."""
    report = f"{build.folder}/selection/Testing/report.xml"
    results = {}
    if os.path.isfile(report):
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            results[case.get("name")] = (case.get("status"), float(case.get("time", 0)))
    calls = {}  # program -> test -> offsets
    for path in glob.glob(f"{build.folder}/trace/*/*.functions"):
        test, program = path.split("/")[-2], os.path.basename(path)[:-len(".functions")]
        if test in results:
            calls.setdefault(program, {})[test] = offsets_in(path)
    records = {test: {"seconds": seconds, "functions": {}, "programs": {}}
               for test, (status, seconds) in results.items()
               if status in ("run", "fail") and os.path.isdir(f"{build.folder}/trace/{test}")}
    for program, by_test in calls.items():
        named = functions_at(build, program, sorted(set().union(*by_test.values())))
        for test, offsets in by_test.items():
            functions = records[test]["functions"] if test in records else {}
            for path, name in filter(None, map(named.get, offsets)):
                functions.setdefault(path, set()).add(name)
    os.makedirs(f"{build.folder}/record", exist_ok=True)
    for test, record in records.items():
        for line in read(f"{build.folder}/trace/{test}/programs").split("\n"):
            if " " in line:
                name, source = line.split(" ")
                owned = f"tests/{test}/{source}"
                record["programs"][name] = owned if os.path.isfile(f"{build.source}/{owned}") else f"shaders/{source}"
        if results[test][0] == "fail" and test in build.record:
            # A failed test may have ended early: keeps the calls of its previous runs.
            record = merged(build.record[test], record)
        record["functions"] = {path: sorted(names) for path, names in sorted(record["functions"].items())}
        path = f"{build.folder}/record/{test}.json"
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.replace(f"{path}.new", path)
        shutil.rmtree(f"{build.folder}/trace/{test}")


def merged(old, new):
    functions = {path: set(names) | set(new["functions"].get(path, ())) for path, names in old["functions"].items()}
    return {"seconds": max(old["seconds"], new["seconds"]), "functions": {**new["functions"], **functions},
            "programs": {**old["programs"], **new["programs"]}}


def main():
    if "--help" in sys.argv[1:2] or "-h" in sys.argv[1:2]:
        print(__doc__.rstrip())
        return
    source, folder, command, *rest = sys.argv[1:] + [""] * 3
    if command not in ("choose", "note") or len(sys.argv) > (5 if command == "choose" else 4):
        raise SystemExit("usage: " + __doc__.partition("\n")[0])
    build = Build(source, folder)
    if not build.tests:
        raise SystemExit(f"changed.py: {folder}: a build without tests")
    if command == "choose":
        choose(build, rest[0] or "HEAD")
    else:
        note(build)


if __name__ == "__main__":
    main()
