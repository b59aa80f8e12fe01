#!/usr/bin/env python3
"""Tests the module structure of src: a module includes only what src/modules.txt allows, and no internal header of
another module; modules have no cycles; files of a module have only small cycles, by the symbols of their objects; no
file or module is too large. Then it breaks a copy of the sources in each of these ways, and fails if a fault is not
found."""

import glob
import os
import re
import subprocess
import sys

MODULES = "src/modules.txt"
MOST_LINES = 500  # of a file other than a header
MAX_MODULE_LINES = {"train": 2670}
MOST_IN_CYCLE = 2  # files of a module in a cycle of calls
# Modules with larger cycles: commands and their table, settings and their rules, ...
MOST_IN_CYCLE_OF = {"base": 7, "cli": 24, "config": 8, "field": 3, "gpu": 3, "render": 4}
SHARED = "shared"
GENERATED = {"commit.h"}


INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


class Finding:
    def __init__(self, file, line, about, message):
        self.file, self.line, self.about, self.message = file, line, about, message

    def __str__(self):
        return f"{self.file}:{self.line}: {self.message}"


def read_tree(top):
    """Returns {path: lines} of all files in src, shaders and include."""
    tree = {}
    for folder in ("src", "shaders", "include"):
        for at, _, names in os.walk(os.path.join(top, folder)):
            for name in names:
                path = os.path.join(at, name)
                with open(path, encoding="utf-8") as file:
                    tree[os.path.relpath(path, top)] = file.read().splitlines()
    return tree


def read_modules(lines, findings):
    """Returns {module: (line number, modules that it may include)}."""
    modules = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 3 or not re.fullmatch("[a-z]+", parts[0]) or not parts[1] or parts[0] in modules:
            findings.append(Finding(MODULES, number, "line", "not 'MODULE | purpose | MODULE ...' of a new module"))
            continue
        modules[parts[0]] = (number, parts[2].split())
    for module, (number, allowed) in modules.items():
        for other in allowed:
            if other not in modules and other != SHARED:
                findings.append(Finding(MODULES, number, other, f"{module} may include {other}, which is no module"))
    return modules


def check_cycles(modules, findings):
    done = set()

    def visit(module, way):
        if module in way:
            cycle = " -> ".join(way[way.index(module):] + [module])
            findings.append(Finding(MODULES, modules[way[-1]][0], "cycle", f"modules form a cycle: {cycle}"))
        elif module not in done:
            for other in modules[module][1]:
                if other in modules:
                    visit(other, way + [module])
            done.add(module)

    for module in modules:
        visit(module, [])


def read_calls(top, build):
    """Returns {file: files of its module that define symbols which its object needs}."""
    defined, needed = {}, {}
    files = {path: "src/" + path.split("/src/")[-1].removesuffix(".o")
             for path in glob.glob(f"{build}/CMakeFiles/*.dir/src/*/*.c.o")}
    paths = [path for path, file in files.items() if os.path.exists(os.path.join(top, file))]
    symbols = subprocess.run(["nm", "-A", *paths], check=True, capture_output=True, text=True).stdout
    for line in symbols.splitlines():
        path, symbol = line.split(":", 1)
        kind, name = symbol.split()[-2:]
        if kind == "U":
            needed.setdefault(files[path], set()).add(name)
        elif kind in "TDBR":
            defined[name] = files[path]
    calls = {file: {defined[name] for name in names if name in defined} for file, names in needed.items()}
    return {file: {other for other in others if os.path.dirname(other) == os.path.dirname(file)} - {file}
            for file, others in calls.items()}


def reachable(calls, file):
    seen, left = set(), [file]
    while left:
        for other in calls.get(left.pop(), ()):
            if other not in seen:
                seen.add(other)
                left.append(other)
    return seen


def check_file_cycles(calls, findings):
    ends = {file: reachable(calls, file) for file in calls}
    for file in sorted(calls):
        cycle = sorted(other for other in ends[file] if file in ends.get(other, ()))
        module = file.split("/")[1]
        if cycle and cycle[0] == file and len(cycle) > MOST_IN_CYCLE_OF.get(module, MOST_IN_CYCLE):
            findings.append(Finding(file, 0, "cycle", "files call each other in a cycle: " + ", ".join(cycle)))


def check_folders(tree, modules, findings):
    folders = {path.split("/")[1] for path in tree if path.startswith("src/") and path.count("/") > 1}
    for folder in sorted(folders - set(modules)):
        findings.append(Finding(f"src/{folder}", 0, "folder", f"{folder} is not in {MODULES}"))
    for module in sorted(set(modules) - folders):
        findings.append(Finding(MODULES, modules[module][0], module, f"there is no folder src/{module}"))


def judge_include(module, path, quoted, modules):
    """Returns None, or why `module` may not include `path`."""
    other, slash, name = path.partition("/")
    allowed = modules[module][1]
    if not slash:
        return None if not quoted or path in GENERATED else "no module is named: MODULE/FILE.h"
    if other == module:
        return None
    if other not in modules and other != SHARED:
        return "no such module" if quoted else None  # <sys/stat.h>, <vknerf/run.h>
    if other not in allowed:
        return f"{MODULES} allows it: {' '.join(allowed) or 'no module'}"
    if other != SHARED and name != f"{other}.h":
        return f"an inner header; for neighbours there is {other}/{other}.h"
    return None


def check_includes(tree, modules, findings):
    for path, lines in sorted(tree.items()):
        parts = path.split("/")
        if parts[0] != "src" or len(parts) < 3 or parts[1] not in modules:
            continue
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            include = match[1] or match[2]
            why = judge_include(parts[1], include, bool(match[1]), modules)
            if why:
                findings.append(Finding(path, number, include, f"{parts[1]} may not include {include} ({why})"))


def check_sizes(tree, modules, findings):
    for path, lines in sorted(tree.items()):
        if len(lines) > MOST_LINES and not path.endswith(".h"):
            findings.append(Finding(path, MOST_LINES + 1, "lines", f"{len(lines)} lines; a file has {MOST_LINES} at most"))
    for module, most in MAX_MODULE_LINES.items():
        total = 0
        for path in sorted(tree):
            if not path.startswith(f"src/{module}/"):
                continue
            if total <= most < total + len(tree[path]):
                findings.append(Finding(path, most + 1 - total, "module", f"line {most + 1} of src/{module}, the most"
                                        f" is {most}"))
            total += len(tree[path])


def check(tree, calls=None):
    findings = []
    check_file_cycles(calls or {}, findings)
    modules = read_modules(tree.get(MODULES, []), findings)
    check_cycles(modules, findings)
    check_folders(tree, modules, findings)
    check_includes(tree, modules, findings)
    check_sizes(tree, modules, findings)
    return findings


# ---- self-check --------------------------------------------------------------------------------------


def line_of(tree, path, pattern):
    return next(number for number, line in enumerate(tree[path], 1) if re.search(pattern, line))


def some_file(tree, folder):
    """Returns the first file in a folder that is not a module's header."""
    return min(path for path in tree if path.startswith(folder) and not path.endswith(f"/{path.split('/')[1]}.h"))


def with_line(tree, path, text):
    """Returns a copy with a line added at the beginning of a file."""
    return {**tree, path: [text] + tree[path]}


def with_modules(tree, module, change):
    """Returns a copy in which `change` has changed the list of modules that `module` may include."""
    lines = list(tree[MODULES])
    number = line_of(tree, MODULES, rf"^{module} ")
    name, purpose, allowed = lines[number - 1].split("|")
    lines[number - 1] = "|".join((name, purpose, " ".join(change(allowed.split()))))
    return {**tree, MODULES: lines}


def broken_copies(tree):
    """Yields (fault, broken copy, file and line of the finding, part of its message)."""
    some, rays, volume, scene = (some_file(tree, f"src/{module}/") for module in ("base", "rays", "volume", "scene"))
    yield ("an arrow runs up", with_line(tree, some, '#include "scene/scene.h"'), some, 1,
           "base may not include scene/scene.h")
    yield ("an arrow runs up in <>", with_line(tree, some, "#  include <gpu/gpu.h>"), some, 1,
           "base may not include gpu/gpu.h")
    yield ("parts know each other", with_line(tree, rays, '#include "volume/volume.h"'), rays, 1,
           "rays may not include volume/volume.h")
    yield ("shared where the device is not known", with_line(tree, scene, '#include "shared/layout.h"'), scene, 1,
           "scene may not include shared/layout.h")
    yield ("an inner header", with_line(tree, volume, '#include "gpu/internal.h"'), volume, 1,
           "volume may not include gpu/internal.h (an inner header")
    yield ("a header of no module", with_line(tree, some, '#include "../gpu/gpu.h"'), some, 1, "no such module")
    yield ("a bare header", with_line(tree, some, '#include "internal.h"'), some, 1, "no module is named")
    using = 'include "scene/scene.h"'
    user = next(path for path in sorted(tree) if path.startswith("src/report/") and
                any(using in line for line in tree[path]))
    turned = with_modules(tree, "report", lambda allowed: [module for module in allowed if module != "scene"])
    turned = with_modules(turned, "scene", lambda allowed: allowed + ["report"])
    yield "an arrow turned", turned, user, line_of(tree, user, using), "report may not include scene/scene.h"
    yield ("a cycle", with_modules(tree, "base", lambda allowed: ["run"]), MODULES, line_of(tree, MODULES, "^run "),
           "modules form a cycle: base -> run -> base")
    yield ("a module that is none", with_modules(tree, "base", lambda allowed: ["cellar"]), MODULES,
           line_of(tree, MODULES, "^base "), "cellar, which is no module")
    yield ("a line without modules", {**tree, MODULES: tree[MODULES] + ["cellar"]}, MODULES, len(tree[MODULES]) + 1, "not 'MODULE")
    yield ("a folder that is not there", {**tree, MODULES: tree[MODULES] + ["cellar | wine |"]}, MODULES,
           len(tree[MODULES]) + 1, "no folder src/cellar")
    yield "a folder that is no module", {**tree, "src/cellar/wine.c": []}, "src/cellar", 0, "cellar is not in"
    for path in (some, some_file(tree, "shaders/")):
        yield f"a long {path}", {**tree, path: [""] * 501}, path, 501, "501 lines"
    train = {path: lines for path, lines in tree.items() if not path.startswith("src/train/")}
    most = MAX_MODULE_LINES["train"]
    train.update({f"src/train/{name}.c": [""] * 500 for name in "abcde"}, **{"src/train/f.c": [""] * (most - 2497)})
    yield "a large module", train, "src/train/f.c", most - 2499, f"line {most + 1} of src/train"


def check_checker(tree):
    """Returns faults that check() does not find. A broken copy may have further findings."""
    missed = []
    for what, copy, file, line, message in broken_copies(tree):
        found = [finding for finding in check(copy) if finding.file == file and message in finding.message]
        if not any(finding.line == line for finding in found):
            missed.append(f"not found: {what}: {file}:{line}: {message}")
    around = {f"src/rays/{a}.c": {f"src/rays/{b}.c"} for a, b in ("ab", "bc", "ca", "de", "ed")}
    cycles = [finding.message for finding in check(tree, around) if finding.about == "cycle"]
    if cycles != ["files call each other in a cycle: src/rays/a.c, src/rays/b.c, src/rays/c.c"]:
        missed.append(f"not found: a cycle of three files and no other: {cycles}")
    some = some_file(tree, "src/base/")
    even = {**tree, some: [""] * MOST_LINES, "src/base/base.h": [""] * (2 * MOST_LINES)}
    if any(finding.file in (some, "src/base/base.h") for finding in check(even)):
        missed.append(f"within the limits: a file of {MOST_LINES} lines and a header of twice as many")
    return missed


def main():
    top = os.environ.get("VKNERF_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    tree = read_tree(top)
    calls = read_calls(top, os.environ["VKNERF_BUILD_DIR"])
    findings = check(tree, calls)
    missed = check_checker(tree)
    if len(calls) < 100:
        missed.append(f"only {len(calls)} files have objects")
    for finding in findings:
        print(finding)
    for line in missed:
        print(line)
    if findings or missed:
        return 1
    print("all passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
