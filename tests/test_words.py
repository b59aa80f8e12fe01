#!/usr/bin/env python3
"""Fails where a word is used instead of the field's term: in names, comments, texts of the program, or the manual.

WORDS has the words of prose, NAMES the parts of identifiers, each with the term to write instead, and EXCEPTIONS the
files in which a word means something else. Then the test plants each word and fails where that is not found."""

import fnmatch
import os
import re
import subprocess
import sys

# Rows of prose: a regular expression, what to write instead, and an example that the test plants.
WORDS = (
    (r"those and these|these and those|neither this nor|neither that nor", "the nouns", "those and these"),
    (r"the latter|the former(?= (is|are|has|have)|[,.;])", "the noun", "the latter"),
    (r"nobody|somebody", "user, caller, client", "nobody"),
    (r"light comes to|what light", "visible samples, transmittance", "what light comes to"),
    (r"(comes?|came) to (?!an end|rest)", "is, yields, sums to", "came to 3"),
    (r"in the place of", "instead of", "in the place of"),
    (r"warp(s|ed|ing)?", "deformation", "warped"),
    (r"flushed", "underflowed (f16), written (files)", "flushed"),
    (r"rooms|(base|config|gpu|scene|run|train|field) room|room (base|config|gpu|scene|run|train|field)", "module (of src)", "the room gpu"),
    (r"moments? (of|in) (time|the scene)", "time", "moments of time"),
    (r"take the step together|train together with", "synchronous data parallelism", "take the step together"),
    (r"gradient pieces|pieces of (the )?gradients", "gradient buckets", "pieces of gradients"),
    (r"since 0\.2", "nothing: 0.1.0 is not released", "since 0.2"),
    (r"lowered to (f16|16 bits)", "rounded to f16", "lowered to f16"),
)
# A part of identifiers, between underscores or capitals, in lower case, and what to write.
NAMES = {
    "warp": "deformation", "warped": "deformed", "flushed": "underflowed", "falls": "backoffs", "doubts": "sanity",
    "outlook": "eta", "journal": "run_log", "visitor": "callbacks", "attention": "focus", "sight": "visibility_maps",
    "tour": "camera_order", "contest": "benchmark", "sink": "file_buffer",
    "together": "synchronous, per_subgroup", "blend": "average", "wire": "communication_type",
    "looker": "renderer", "recipe": "pass_list",
}
# A word, and the files in which it is right.
EXCEPTIONS = (
    ("blend", "src/viewer/page/*"),  # of two pictures
    ("blend", "tests/test_viewer_page.py"),
    ("warp(s|ed|ing)?", "src/viewer/page/*"),  # of pictures
    ("warp(s|ed|ing)?", "src/gpu/statistics.c"),  # NVIDIA's
    ("flushed", "tests/test_base.c"),  # of files
    ("flushed", "tests/test_report_compare.c"),  # the former key, which is still read
    ("flushed", "src/report/log.c"),
    ("wire", "src/config/table.c"),
    ("wire", "tests/event_reader.h"),  # wire types of protocol buffers
    ("wire", "src/report/events.c"),
)
SOURCES = (".c", ".h", ".comp", ".glsl", ".js", ".py", ".sh", ".cmake", ".txt", ".md")
LEFT_OUT = ("docs/history/*", "CHANGELOG.md", "tests/fuzz/corpus/*", "tests/abi/*", "tests/test_words.py",
            "src/config/synonyms.c", "tests/faults/sweeps/*.json")
C_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
SCRIPT_CODE = re.compile(r'"""(.*?)"""|(?<![\\$\w{])#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SCRIPT_TEXT = re.compile(r'"""(.*?)"""|(?<![\\$\w{])#[^\n]*', re.S)


def prose_of(path, text):
    """Returns [(line, text)] of a file's prose: comments, literals with a space, paragraphs of the manual."""
    if path.endswith(".md"):
        text = re.sub(r"`[^`\n]*`|\]\([^)]*\)", lambda found: re.sub(r"[^\n]", " ", found.group()), text)
        return [(text.count("\n", 0, found.start()) + 1, found.group())
                for found in re.finditer(r"(?:.+\n?)+", text)]
    form = C_TEXT if path.endswith((".c", ".h", ".comp", ".glsl", ".js")) else SCRIPT_TEXT
    return [(text.count("\n", 0, found.start()) + 1, found.group()) for found in form.finditer(text)
            if found.group()[0] != '"' or found.group().startswith('"""') or " " in found.group()]


def excepted(word, path):
    return any(word == other and fnmatch.fnmatch(path, form) for other, form in EXCEPTIONS)


def find(path, text):
    """Returns messages about a file's words and names."""
    found = []
    for line, prose in prose_of(path, text):
        prose = re.sub(r"\s*\n\s*(\*|//|#)?\s*", " ", prose)
        for word, instead, _ in WORDS:
            hit = re.search(rf"\b(?:{word})\b", prose, re.I)
            if hit and not excepted(word, path):
                found.append(f"{path}:{line}: '{hit.group()}': write {instead}")
    if path.endswith(".md"):
        return found
    form = C_TEXT if path.endswith((".c", ".h", ".comp", ".glsl", ".js")) else SCRIPT_CODE
    text = form.sub(lambda hit: re.sub(r"[^\n]", " ", hit.group()), text)
    for number, line in enumerate(text.split("\n"), 1):
        for name in re.findall(r"[A-Za-z_]\w*", line):
            for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name):
                if part.lower() in NAMES and not excepted(part.lower(), path):
                    found.append(f"{path}:{number}: {name}: write {NAMES[part.lower()]}")
    return found


def check_tree():
    paths = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True, text=True).stdout.split("\0")
    found = []
    for path in paths:
        if not path.endswith(SOURCES) or any(fnmatch.fnmatch(path, form) for form in LEFT_OUT):
            continue
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found += find(path, file.read())
    return found


def check_itself():
    """Returns messages about planted words that are not found, and about findings in good texts."""
    missed = []
    for _, _, text in WORDS:
        for path, form in (("src/a.c", f"/* It\n * says {text}. */"), ("src/a.c", f'"it says {text} here"'),
                           ("README.md", f"It says {text} here."), ("tools/a.py", f"# It says {text} here.")):
            if not find(path, form):
                missed.append(f"{path}: '{text}' is not found in {form!r}")
    for name in NAMES:
        for form in (f"int {name}_count;", f"#define MAX_{name.upper()} 1", f"int a{name.capitalize()};"):
            if not find("src/a.c", form):
                missed.append(f"{name} is not found in {form!r}")
    for path, text in (("src/a.c", "/* Returns the time. */ int warm_up; /* a \"wired\" box */"),
                       ("README.md", "The file `warp_seeds.comp`.")):
        missed += find(path, text)
    return missed


def main():
    os.chdir(os.environ.get("VKNERF_SOURCE_DIR", "."))
    found = check_itself() + check_tree()
    for message in found:
        print(message)
    print("all passed" if not found else f"{len(found)} to mend")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
