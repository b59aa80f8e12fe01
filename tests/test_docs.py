#!/usr/bin/env python3
"""tests/test_docs.py: tests that the manual agrees with the program.

Checks README.md, CONTRIBUTING.md, CHANGELOG.md, BENCHMARKS.md and docs/*.md (of docs/history only the links): links
and anchors; commands, options, values and settings against what vknerf prints; options of the scripts; paths; names
of documents; environment variables, and that every variable which the program reads is described; tables made by
scripts; that README.md and BENCHMARKS.md are short, and that README.md links to every page.
First it checks itself: it must find the fault in texts with one fault each.

Needs only Python's standard library. VKNERF_BIN names the program, VKNERF_SOURCE_DIR the sources.
"""
import collections
import glob
import itertools
import json
import os
import re
import shlex
import subprocess
import sys

SOURCE = os.environ.get("VKNERF_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "tools"))
import scaling_model  # noqa: E402

PROGRAM = os.environ.get("VKNERF_BIN") or os.path.join(
    os.environ.get("VKNERF_BUILD_DIR") or os.path.join(SOURCE, "build"), "vknerf")

MOST_LINES = {"README.md": 150, "BENCHMARKS.md": 500}
# Code spans that look like a setting and are none.
NO_SETTINGS = {"seconds.median", "torch.compile", "vknerf.crc32c"}
# Files that programs write are no documents of the project.
WRITTEN = {"results.md"}
FILE_ENDINGS = set("bin c comp csv deb dll dylib exe gif glsl h html ipynb jpeg jpg json jsonl log md mp4 npy obj ply png "
                   "ps1 py safetensors sh svg tar tfevents tsv txt".split())
ROOTS = ("src", "include", "shaders", "tests", "tools", "docs", "cmake", "assets", "examples", "python", ".ci")

# Facts that a text is checked against. options: by command, {name: its value in the help; None: no value}; settings:
# {key: choices; None: any value}; script_options: by script; variables: known to the sources; anchors: of a document
# by path; exists: whether a path of the project exists.
Facts = collections.namedtuple("Facts", "options settings script_options variables anchors exists")


# ---- Markdown --------------------------------------------------------------------------------------------

Document = collections.namedtuple("Document", "prose code")


def split(text):
    """Returns the prose as one text, with empty lines instead of code, and the code as (line number, line)."""
    prose, code = [], []
    fence, blank, indented = None, True, False
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r" {0,3}(```+|~~~+)", line)
        indented = line.startswith("    ") and (blank or indented)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = None
            else:
                code.append((number, line))
            prose.append("")
        elif mark:
            fence = mark[1]
            prose.append("")
        elif indented:
            code.append((number, line))
            prose.append("")
        else:
            prose.append(line)
        blank = not line.strip()
        indented = indented and not blank
    return Document("\n".join(prose), code)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


def spans(prose):
    """Yields (line number, code) of text in backticks; in tables \\| is |."""
    for match in re.finditer(r"(?<!`)`([^`]+)`(?!`)", prose):
        yield line_of(prose, match.start()), re.sub(r"\s+", " ", match[1].replace("\\|", "|"))


def anchors(text):
    """Returns the anchors of the headings, as GitHub makes them."""
    found, seen = set(), collections.Counter()
    for line in split(text).prose.split("\n"):
        heading = re.match(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$", line)
        if heading:
            title = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            slug = re.sub(r"[^\w\- ]", "", title.lower().replace("*", "")).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
    return found


# ---- links, length, contents -----------------------------------------------------------------------------

def links(text):
    """Yields (line number, target) of links and pictures."""
    prose = split(text).prose
    hidden = re.sub(r"`[^`]*`", lambda code: "x" * len(code[0]), prose)
    for match in re.finditer(r"\[[^\[\]]*\]\(\s*<?([^()\s>]+)>?[^()]*\)", hidden):
        yield line_of(prose, match.start()), match[1]


def target_of(name, target):
    """Returns path below the project and anchor; None for a target outside of the project."""
    if re.match(r"[a-z]+:", target):
        return None
    path, _, anchor = target.partition("#")
    return os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name, anchor


def check_links(name, text, facts):
    for line, target in links(text):
        where = target_of(name, target)
        if where is None:
            continue
        path, anchor = where
        if path.startswith("..") or not facts.exists(path):
            yield line, f"link to {target}: there is no {path}"
        elif anchor and anchor not in facts.anchors(path):
            yield line, f"link to {target}: {path} has no heading #{anchor}"


def check_length(name, text, _facts):
    lines = len(text.rstrip("\n").split("\n"))
    if lines > MOST_LINES.get(name, lines):
        yield lines, f"{lines} lines; {MOST_LINES[name]} at the most"


def check_contents(text, pages):
    """Yields findings about pages that README.md does not link to."""
    linked = {(target_of("README.md", target) or ("",))[0] for _, target in links(text)}
    for page in pages:
        if page not in linked:
            yield 1, f"no link to {page}"


# ---- commands --------------------------------------------------------------------------------------------

def is_placeholder(text):
    """Returns whether the text is a placeholder such as FILE, N or ..."""
    return not text or text in ("...", "…") or re.fullmatch(r"[A-Z][A-Z_0-9]*", text) is not None


def check_setting(assignment, facts):
    key, equals, value = assignment.partition("=")
    if is_placeholder(key):
        return
    if key == "key" and value == "value":
        return
    if key not in facts.settings:
        yield f"{key} is no setting"
    elif equals and facts.settings[key] and not is_placeholder(value) and value not in facts.settings[key]:
        yield f"{key}: {value} is none of its values"


def check_value(option, value, shown):
    """Checks a value if the help lists all values."""
    choices = shown.split("|")
    if len(choices) < 2 or re.search(r"[A-Z:]", shown) or is_placeholder(value):
        return
    if not set(value.split("|")) <= set(choices):
        yield f"{option}: {value} is none of {shown}"


def check_arguments(words, options, facts, who):
    """Checks options and their values against `options`."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.startswith("--") or word == "--":
            continue
        name, equals, value = word.partition("=")
        if name in ("--help", "--version") and not equals:
            continue
        if name not in options:
            yield f"{who} has no option {name}"
            continue
        shown = options[name]
        if shown is None:
            if equals:
                yield f"{name} takes no value"
            continue
        if shown.startswith("["):
            if equals:
                yield from check_value(name, value, shown[2:-1])
            continue
        if not equals:
            if at == len(words) or words[at].startswith("--"):
                yield f"{name}: its value is missing"
                continue
            value = words[at]
            at += 1
        if name == "--set":
            yield from check_setting(value, facts)
        else:
            yield from check_value(name, value, shown)


def check_vknerf(words, facts):
    """Checks the words after `vknerf`."""
    if not words:
        return
    if words[0] in ("--version", "--help", "-V", "-h") or words[:2] in (["help", "--man"], ["help", "--complete"]):
        return
    command = words[1] if words[0] == "help" and len(words) > 1 else words[0]
    if command == "help" or is_placeholder(command):
        return
    if command not in facts.options:
        yield f"vknerf has no command {command}"
        return
    yield from check_arguments(words[1:], facts.options[command], facts, f"vknerf {command}")


def check_script(script, words, facts):
    """Checks a script's options: its own, or those that it passes to vknerf."""
    path = script if "/" in script else f"tools/{script}"
    known = facts.script_options.get(path, set()) | {"--help"}
    for word in words:
        name = word.partition("=")[0]
        if not re.fullmatch(r"--[a-z][a-z0-9-]*", name) or name in known:
            continue
        if not any(name in options for options in facts.options.values()):
            yield f"{path} has no option {name}"


def command_words(line):
    """Splits a command line without comments, leading variables and brackets of alternatives."""
    line = re.sub(r"(^|\s)#.*", "", line)
    line = re.sub(r"[\[\]]", " ", re.sub(r"\[(=[^\]]*)\]", r"\1", line))
    line = re.sub(r"(^|\s)>\s*\S+", "", line)
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    while len(words) > 1 and words[0].endswith("tools/lavapipe.sh"):
        words.pop(0)
    return words


def check_command(line, facts):
    for part in re.split(r"\s(?:&&|\|\|)\s", line):
        words = command_words(part)
        if not words:
            continue
        if words[0] == "vknerf" or words[0].endswith("/vknerf"):
            yield from check_vknerf(words[1:], facts)
        elif re.fullmatch(r"(\S*/)?[\w-]+\.(sh|py)", words[0]):
            script = words[0]
            if script.startswith("DIR/"):
                script = os.path.basename(script)
            yield from check_script(script, words[1:], facts)


def check_span(code, facts):
    """Checks a code span."""
    words = command_words(code)
    if not words:
        return
    first = words[0]
    every = {name: shown for options in facts.options.values() for name, shown in options.items()}
    if first.startswith("--"):
        name = first.partition("=")[0]
        holders = [options for options in facts.options.values() if name in options]
        if not holders:
            if not any(name in options for options in facts.script_options.values()) and name != "--help":
                yield f"no command and no script has an option {name}"
            return
        # An option alone is only named.
        if len(words) == 1 and "=" not in first:
            return
        found = [list(check_arguments(words, {**every, **options}, facts, "vknerf")) for options in holders]
        yield from min(found, key=len)
    elif first in facts.options and any(word.startswith("--") for word in words):
        named = [word for word in words[1:] if word.startswith("--")]
        if len(words) == 2 and "=" not in named[0]:
            if named[0] not in facts.options[first]:
                yield f"vknerf {first} has no option {named[0]}"
        else:
            yield from check_vknerf(words, facts)
    else:
        yield from check_command(code, facts)


def check_commands(_name, text, facts):
    document = split(text)
    for line, code in document.code:
        for finding in check_command(code, facts):
            yield line, finding
    for line, code in spans(document.prose):
        for finding in check_span(code, facts):
            yield line, finding


def check_settings(_name, text, facts):
    """Checks spans such as `grid.levels` or `gradient_sums=fixed`."""
    groups = {key.partition(".")[0] for key in facts.settings if "." in key}
    for line, code in spans(split(text).prose):
        match = re.fullmatch(r"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)(=\S*)?", code)
        if not match or code in NO_SETTINGS:
            continue
        key, value = match[1], match[2]
        if "." not in key and not value:
            continue
        ending = key.rpartition(".")[2]
        if not value and key.partition(".")[0] not in groups and (
                ending in FILE_ENDINGS or re.search(r"\.so(\.|$)", key)):
            continue
        if not value and ending in FILE_ENDINGS and key not in facts.settings:
            continue
        for finding in check_setting(code.rstrip("=") if code.endswith("=") else code, facts):
            yield line, finding


# ---- paths, documents, variables -------------------------------------------------------------------------

def check_paths(_name, text, facts):
    document = split(text)
    pieces = list(spans(document.prose)) + document.code
    for line, code in pieces:
        for word in re.findall(r"(?<![\w./-])(?:%s)/[\w./*-]*" % "|".join(map(re.escape, ROOTS)), code):
            path = word.rstrip("/.").replace("SCENE", "*")
            if path and not facts.exists(path):
                yield line, f"there is no {path}"


def check_documents(name, text, facts):
    """Checks names of documents anywhere in the text."""
    for number, line in enumerate(text.split("\n"), 1):
        for word in re.findall(r"(?<![\w/.:*-])[\w./-]*\w\.md\b", line):
            here = os.path.normpath(os.path.join(os.path.dirname(name), word))
            if os.path.basename(word) not in WRITTEN and not facts.exists(here) and not facts.exists(word):
                yield number, f"there is no document {word}"


def check_variables(_name, text, facts):
    for number, line in enumerate(text.split("\n"), 1):
        for word in re.findall(r"\bVKNERF_[A-Z_]*[A-Z]\b", line):
            if word not in facts.variables:
                yield number, f"nothing knows {word}"


def check_policy(text, policy):
    """The table of precisions must equal what `vknerf info` prints, row by row."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.split("\n") if line.startswith("|")]
    for row in policy:
        wanted = [row[column] for column in ("operation", "fp32", "fp16", "coopmat")]
        wanted += [f"`{row['setting']}`"] if "setting" in row else []
        if wanted not in rows:
            yield 1, f"no row of a table is: {' | '.join(wanted)}"


def check_tables(page, made):
    """The text between tools/scaling_model.py's marks must be what it prints."""
    written = scaling_model.written(page)
    if written is None:
        yield 1, f"has no {scaling_model.BEGIN.strip()}"
    elif written != made:
        pairs = itertools.zip_longest(written.split("\n"), made.split("\n"))
        differs = next(number for number, (old, new) in enumerate(pairs) if old != new)
        line = line_of(page, page.index(scaling_model.BEGIN)) + 1 + differs
        yield line, "is not what tools/scaling_model.py --table prints; --write does it"


def check_described(read, texts):
    """Yields findings about variables that the program reads (name: file) and no text describes."""
    words = set(re.findall(r"\b[A-Z][A-Z_]+\b", "\n".join(texts)))
    for name, where in sorted(read.items()):
        if name not in words:
            yield where, f"reads {name}, which no document describes"


def check_keys(page, table):
    """Checks that the page describes the keys of transforms.json that the reader knows (src/scene/keys.c)."""
    described = {code for _, code in spans(page)}
    keys = re.findall(r'^    \{"(\w+)", (?:TOP|FRAME|BOTH), ', table, re.M)
    if len(keys) < 50:
        yield f"only {len(keys)} keys are read from src/scene/keys.c"
    for key in keys:
        if key not in described:
            yield f"does not describe the key {key} of src/scene/keys.c"


CHECKS = (check_links, check_length, check_commands, check_settings, check_paths, check_documents, check_variables)


def check_text(name, text, facts):
    """Returns all findings about a document as "name:line: what"."""
    return [f"{name}:{line}: {finding}" for check in CHECKS for line, finding in check(name, text, facts)]


# ---- facts -----------------------------------------------------------------------------------------------

def run_program(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, check=True).stdout.decode()


def parse_options(text):
    """Parses a command's help. One blank separates an option from its value, several from its description."""
    lines = text.partition("\nOptions:\n")[2].partition("\n\n")[0].split("\n")
    matches = (re.match(r"  (--[a-z0-9-]+)(?:(\[=\S+\])| (\S+))?", line) for line in lines)
    return {match[1]: match[2] or match[3] for match in matches if match}


def parse_settings(text):
    """Parses the help of train: a key, and in the next line choices or a range, then the default."""
    settings = {}
    lines = text.partition("\nKeys of --set")[2].split("\n")
    for line, below in zip(lines, lines[1:]):
        match = re.match(r"  ([a-z][a-z0-9_.]*) ", line)
        if match and below.startswith("      "):
            values = below.strip().partition(";")[0]
            choices = values.split("|") if re.fullmatch(r"[\w|]+", values) and "|" in values else None
            settings[match[1]] = set(choices) | {"default"} if choices else None
    return settings


def parse_script(path, text):
    """Returns the options that a script's head describes, or that it gives to argparse."""
    if path.endswith(".py"):
        head = "\n".join(re.findall(r"add_argument\(\"(--[a-z-]+)", text))
        head += "\n".join(re.findall(r'^"""(.*?)"""', text, re.DOTALL | re.MULTILINE)[:1])
    else:
        head = "\n".join(line for line in text.partition("\nset -")[0].split("\n") if line.startswith("#"))
    return set(re.findall(r"--[a-z][a-z0-9-]*", head))


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def files(*patterns):
    """Returns paths below the project."""
    found = (path for pattern in patterns for path in glob.glob(os.path.join(SOURCE, pattern), recursive=True))
    return sorted({os.path.relpath(path, SOURCE) for path in found if os.path.isfile(path)})


def read_policy():
    """Returns the policy of the first device; none without a device."""
    info = subprocess.run([PROGRAM, "info", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    devices = json.loads(info.stdout).get("devices", []) if info.returncode == 0 else []
    return devices[0].get("policy", []) if devices else []


def gather_facts(texts, sources):
    usage = run_program("--help")
    commands = re.findall(r"^  ([a-z]+) {2,}\S", usage, re.MULTILINE)
    helps = {command: run_program("help", command) for command in commands}
    known = {}

    def find_anchors(path):
        if path not in known:
            known[path] = anchors(texts.get(path) or read(path)) if path.endswith(".md") else set()
        return known[path]

    return Facts(
        options={command: parse_options(helps[command]) for command in commands},
        settings=parse_settings(helps["train"]),
        script_options={path: parse_script(path, text) for path, text in sources.items()
                        if re.match(r"(tools|tests)/.*\.(sh|py)$", path)},
        variables={word for text in sources.values() for word in re.findall(r"\bVKNERF_[A-Z_]*[A-Z]\b", text)},
        anchors=find_anchors,
        exists=lambda path: bool(glob.glob(os.path.join(SOURCE, path))))


def variables_read(sources):
    """Returns {name: file} of variables that the program reads, also through constants."""
    found = {}
    for path, text in sources.items():
        if path.startswith("src/"):
            for name in re.findall(r'getenv\("([A-Z_]+)"|"(VKNERF_[A-Z_]+)"', text):
                found.setdefault(name[0] or name[1], path)
    return found


def check_synonyms(text, facts):
    """Yields (line, finding) of src/config/synonyms.c: every target of a synonym must exist."""
    names = set(facts.settings) | set(facts.options) | {"SCENE", "RUN", "PICTURES"}
    names |= {name for options in facts.options.values() for name in options}
    rows = [(line, *row) for line, content in enumerate(text.splitlines(), 1)
            for row in re.findall(r'\{"([a-z0-9_]+)", "([^"]+)"\}', content)]
    if len(rows) < 5:
        yield 1, "no table of synonyms"
    for line, word, name in rows:
        if name not in names:
            yield line, f"{word}: there is no {name}"
        if word in facts.options and name in facts.options:
            yield line, f"{word}: is a command itself"


# ---- self-check ------------------------------------------------------------------------------------------

SOUND = """# A title

See [below](#the-second-part), [a page](docs/a.md#an-anchor), [elsewhere](https://example.org/x#y) and
[`code`](docs/a.md). `vknerf train SCENE --steps 20k --set grid.levels=8` and `--split test`, `train --resume`.

    vknerf train SCENE --out runs/a --set model=ngp     # into runs/a
    VKNERF_X=1 tools/run.sh --fast && build/vknerf eval runs/a --split=val
    tools/lavapipe.sh build/vknerf help train

## The second part

`grid.levels`, `model=ngp`, `config.json`, `--find[=use]`, `--find=use`, `--quick`, `VKNERF_X`, docs/a.md, `tools/run.sh`.

```c
[no](link) `--nothing`
```
"""

# Texts with one fault each, and the finding.
FAULTS = (
    ("[x](docs/none.md)", "there is no docs/none.md"),
    ("[two\nlines](docs/none.md)", "there is no docs/none.md"),
    ("[x](../out.md)", "link to ../out.md"),
    ("[x](docs/a.md#none)", "has no heading #none"),
    ("[x](#none)", "has no heading #none"),
    ("![x](assets/none.png)", "link to assets/none.png"),
    ("    vknerf fly SCENE", "no command fly"),
    ("    vknerf help --women", "no command --women"),
    ("```sh\nvknerf train SCENE --stepz 5\n```", "no option --stepz"),
    ("    vknerf eval RUN --steps 5", "vknerf eval has no option --steps"),
    ("    vknerf train SCENE --steps", "--steps: its value is missing"),
    ("    vknerf train SCENE --quick=3", "--quick takes no value"),
    ("    vknerf eval RUN --split tset", "tset is none of train|val|test"),
    ("    vknerf train SCENE --find=us", "us is none of use|all"),
    ("    true && vknerf train SCENE --stepz 5", "no option --stepz"),
    ("    tools/lavapipe.sh build/vknerf fly", "no command fly"),
    ("    tools/run.sh --slow", "tools/run.sh has no option --slow"),
    ("    vknerf train SCENE --set grid.levelz=3", "grid.levelz is no setting"),
    ("    vknerf train SCENE --set model=mlp", "mlp is none of its values"),
    ("`vknerf train --stepz 5`", "no option --stepz"),
    ("| a | `vknerf eval RUN [--splat val]` |", "no option --splat"),
    ("`eval --steps`", "vknerf eval has no option --steps"),
    ("`--stepz`", "option --stepz"),
    ("`--split tset`", "tset is none of"),
    ("`--set grid.levelz=1`", "grid.levelz is no setting"),
    ("`grid.levelz`", "grid.levelz is no setting"),
    ("`grd.levels`", "grd.levels is no setting"),
    ("`modell=ngp`", "modell is no setting"),
    ("`model=mlp`", "mlp is none of its values"),
    ("`tools/none.sh`", "there is no tools/none.sh"),
    ("`src/none/*.c`", "there is no src/none/*.c"),
    ("    tests/none.py 3", "there is no tests/none.py"),
    ("As NONE.md says", "no document NONE.md"),
    ("As docs/NONE.md says", "no document docs/NONE.md"),
    ("`VKNERF_Y=1`", "nothing knows VKNERF_Y"),
    ("x\n" * (MOST_LINES["README.md"] + 1), "at the most"),
)

HELP = """usage: vknerf x

Options:
  --steps N                          stop
  --precision auto|fp32|fp16|coopmat of the field
  --lr-schedule step|exponential|cosine|file:FILE
                                     of the rate
  --find[=use|all]                   try
  --quick                            soon

Keys of --set and of files. Whole
  model                      the field
                               default|ngp; default ngp
  steps                      training ends after these
                               1..429; default 20000
  progressive.start_downscale 2, 4 or 8
                               2..8, multiples of 2; default 4
"""


def self_check():
    """Returns faults that the checks do not find."""
    there = {"README.md", "docs/a.md", "tools/run.sh", "tools/lavapipe.sh"}
    facts = Facts(
        options={"train": {"--steps": "N", "--out": "DIR", "--set": "KEY=VALUE", "--quick": None, "--resume": "RUN",
                           "--find": "[=use|all]"},
                 "eval": {"--split": "train|val|test"}},
        settings={"grid.levels": None, "model": {"ngp", "default"}},
        script_options={"tools/run.sh": {"--fast"}},
        variables={"VKNERF_X"},
        anchors=lambda path: anchors(SOUND) if path == "README.md" else {"an-anchor"},
        exists=lambda path: path in there)
    failures = [f"a sound text: {finding}" for finding in check_text("README.md", SOUND, facts)]
    for text, wanted in FAULTS:
        found = check_text("README.md", f"# A title\n\n{text}\n", facts)
        if not any(wanted in finding for finding in found):
            failures.append(f"not found in {text[:60]!r}: {wanted}; only {found}")
    if not list(check_contents(SOUND, ["docs/a.md", "docs/b.md"])) == [(1, "no link to docs/b.md")]:
        failures.append("a page without a link is not found")
    policy = [{"operation": "sums", "fp32": "f32", "fp16": "f16", "coopmat": "f32", "setting": "a.b"}]
    if (list(check_policy("| sums | f32 | f16 | f32 | `a.b` |", policy))
            or not list(check_policy("| sums | f32 | f16 | f32 |", policy))):
        failures.append("a row of another table is not told from the right one")
    page = f"# A\n\n{scaling_model.BEGIN}| 1 |\n| 2 |\n{scaling_model.END}"
    if (list(check_tables(page, "| 1 |\n| 2 |\n")) or not list(check_tables("# A\n", ""))
            or [line for line, _ in check_tables(page, "| 1 |\n| 3 |\n")] != [5]):
        failures.append("tables that a script would make otherwise are not found")
    if not list(check_described({"VKNERF_Z": "src/z.c"}, ["VKNERF_X"])):
        failures.append("a variable that is not described is not found")
    if variables_read({"src/a.c": 'getenv("HOME"); lists("VKNERF_A")', "tools/b.sh": '"VKNERF_B"'}) != {
            "HOME": "src/a.c", "VKNERF_A": "src/a.c"}:
        failures.append("variables are not found in the sources")
    if anchors("# A b: `c.d`, *e*\n## A-b_c\n## [x](y)\n## A-b_c\n") != {"a-b-cd-e", "a-b_c", "a-b_c-1", "x"}:
        failures.append("anchors are not GitHub's")
    if parse_options(HELP) != {"--steps": "N", "--precision": "auto|fp32|fp16|coopmat", "--find": "[=use|all]",
                               "--lr-schedule": "step|exponential|cosine|file:FILE", "--quick": None}:
        failures.append("options are not read from the help")
    keys = list(check_keys("`a`", '    {"a", TOP, READ, NULL},\n    {"b", BOTH, REFUSED,\n'))
    if len(keys) != 2 or "the key b " not in keys[1]:
        failures.append(f"keys are not looked for: {keys}")
    if parse_settings(HELP) != {"model": {"default", "ngp"}, "steps": None, "progressive.start_downscale": None}:
        failures.append("settings are not read from the help")
    return failures


# ---- main ------------------------------------------------------------------------------------------------

def check_project():
    pages = files("docs/*.md")
    texts = {path: read(path) for path in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "BENCHMARKS.md", *pages]}
    sources = {path: read(path) for path in files(
        "src/**/*.[ch]", "include/**/*.h", "shaders/**/*.*", "tests/*.*", "tests/faults/**/*.[cp]*", "tools/**/*.*",
        "cmake/*.*", "CMakeLists.txt") if not path.endswith(".pyc")}
    own = os.path.relpath(os.path.join(SOURCE, "tests", "test_docs.py"))
    sources = {path: text for path, text in sources.items() if path != own and path != "tests/test_docs.py"}
    facts = gather_facts(texts, sources)
    for what, number in (("commands", len(facts.options)), ("settings", len(facts.settings)),
                         ("options of train", len(facts.options.get("train", ())))):
        if number < 5:
            return [f"only {number} {what} in what vknerf prints"]
    findings = [finding for name, text in texts.items() for finding in check_text(name, text, facts)]
    # Names, options and settings in the history are old: only links are checked.
    findings += [f"{path}:{line}: {finding}" for path in files("docs/history/*.md")
                 for line, finding in check_links(path, read(path), facts)]
    findings += [f"README.md:{line}: {finding}" for line, finding in check_contents(texts["README.md"], pages)]
    findings += [f"docs/precision.md:{line}: {finding}"
                 for line, finding in check_policy(texts["docs/precision.md"], read_policy())]
    findings += [f"docs/scaling.md:{line}: {finding}"
                 for line, finding in check_tables(texts["docs/scaling.md"], scaling_model.tables())]
    findings += [f"docs/scenes.md: {finding}"
                 for finding in check_keys(texts["docs/scenes.md"], sources["src/scene/keys.c"])]
    findings += [f"{path}: {finding}" for path, finding in check_described(variables_read(sources), texts.values())]
    findings += [f"src/config/synonyms.c:{line}: {finding}"
                 for line, finding in check_synonyms(sources["src/config/synonyms.c"], facts)]
    findings += [f"{path}:{line}: {finding}" for path, text in sources.items()
                 for line, finding in check_documents(path, text, facts)]
    return findings


def main():
    findings = [f"test_docs.py: self-check: {failure}" for failure in self_check()] or check_project()
    for finding in findings:
        print(f"FAILED: {finding}")
    if not findings:
        print("all passed")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
