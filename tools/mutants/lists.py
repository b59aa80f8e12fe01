"""Reads lists of mutations and applies their edits to the texts of files."""
import json
import os
import re

KEYS = {"id", "what", "edits", "tests", "equivalent"}


class RunError(Exception):
    """An error that ends the run with exit status 2."""


class Stale(Exception):
    """An edit that does not apply to the present code."""


class Stopped(Exception):
    """Raised in workers after Ctrl-C or an error of another worker."""


def is_path_inside(path):
    return bool(path) and not os.path.isabs(path) and ".." not in path.split("/")


def list_problem(mutation):
    """The error in an entry of a list, apart from the code; None if there is none."""
    if not isinstance(mutation, dict) or not isinstance(mutation.get("id"), str):
        return "not an object with an id"
    if mutation.keys() - KEYS:
        return f"unknown key {sorted(mutation.keys() - KEYS)[0]}"
    if not re.fullmatch(r"[\w.+-]+", mutation["id"]):
        return "the id has characters other than letters, digits and _.+-"
    if not isinstance(mutation.get("what"), str) or not mutation["what"]:
        return "\"what\" is missing or empty"
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
        return "\"tests\" is not an array of names"
    if "equivalent" in mutation:
        if not isinstance(mutation["equivalent"], str) or not mutation["equivalent"]:
            return "\"equivalent\" is not a text with the reason"
    elif not tests:
        return "\"tests\" is missing or empty"
    return None


def read_lists(paths):
    """All mutations of the lists. Ids and edits must be unique, so that no mutation counts twice."""
    mutations, by_id, by_edits = [], {}, {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                entries = json.load(file)
        except (OSError, ValueError) as error:
            raise RunError(f"{path}: {error}") from None
        if not isinstance(entries, list):
            raise RunError(f"{path}: not an array")
        for index, mutation in enumerate(entries):
            problem = list_problem(mutation)
            if problem:
                name = mutation.get("id", index) if isinstance(mutation, dict) else index
                raise RunError(f"{path}: {name}: {problem}")
            if mutation["id"] in by_id:
                raise RunError(f"{path}: id {mutation['id']} occurs twice")
            edits = json.dumps(mutation["edits"])
            if edits in by_edits:
                raise RunError(f"{path}: {mutation['id']} has the same edits as {by_edits[edits]}")
            by_id[mutation["id"]] = mutation
            by_edits[edits] = mutation["id"]
            mutations.append(mutation)
    return mutations


def read_text(path):
    # newline="": keeps line ends as they are.
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def read_file(path):
    """Content and mode; None if the path is not a file."""
    if not os.path.isfile(path):
        return None
    with open(path, "rb") as file:
        return file.read(), os.stat(path).st_mode & 0o777


def find_text(text, old):
    """The ranges (first, end) of `old` in `text`. Without an exact match white space is ignored, so that edits still
    apply after reformatting."""
    exact = [match.span() for match in re.finditer(re.escape(old), text)]
    if exact:
        return exact
    positions = [i for i, character in enumerate(text) if not character.isspace()]
    dense = "".join(text[i] for i in positions)
    wanted = "".join(old.split())
    return [(positions[match.start()], positions[match.end() - 1] + 1)
            for match in re.finditer(re.escape(wanted), dense)] if wanted else []


def edited(mutation, root):
    """The files that the mutation changes: path -> (text, mutated text)."""
    texts = {}
    for path, old, new in mutation["edits"]:
        if path not in texts:
            try:
                text = read_text(os.path.join(root, path))
            except (OSError, ValueError):
                raise Stale(f"{path}: no such text file") from None
            texts[path] = (text, text)
        original, text = texts[path]
        ranges = find_text(text, old)
        if len(ranges) != 1:
            raise Stale(f"{path}: {len(ranges)} times instead of once: {old!r}")
        first, end = ranges[0]
        texts[path] = (original, text[:first] + new + text[end:])
    return texts


def program_of(test, root):
    """The build target that a test needs; None if there is no such test."""
    program = test.removesuffix("_gpu_shaped")  # the same program with GPU kernels, see tests/CMakeLists.txt
    if os.path.isfile(f"{root}/tests/{program}.c"):
        return program
    part = re.fullmatch(r"test_pass_(\w+)", program)
    if part and os.path.isfile(f"{root}/src/certify/pass_{part[1]}.c"):
        return "vknerf"  # a part of vknerf certify
    if test in ("test_manual", "test_package"):
        return "installed"
    if test == "test_cli_viewer":
        return "vknerf_without_viewer"  # in addition to vknerf, which is always built
    return "vknerf" if any(os.path.isfile(f"{root}/tests/{test}{end}") for end in (".sh", ".py")) else None


def check_tests(mutations, root):
    for mutation in mutations:
        for test in mutation.get("tests", []):
            if not re.fullmatch(r"\w+", test) or not program_of(test, root):
                raise RunError(f"{mutation['id']}: {test}: no such test in tests/")


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
