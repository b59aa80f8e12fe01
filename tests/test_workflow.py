#!/usr/bin/env python3
"""Tests .github/workflows/*.yml and Dockerfile without running them.

Checks that the YAML is valid, that every step runs or uses one thing, that shellcheck accepts all commands, that called
scripts exist and accept the given options, and that expressions use existing values. Before that it breaks a copy in
several ways, each of which must be found.

Needs shellcheck. VKNERF_SOURCE_DIR names the sources.
"""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.environ.get("VKNERF_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOP_KEYS = {"name", "on", "permissions", "concurrency", "defaults", "env", "jobs"}
JOB_KEYS = {"name", "needs", "runs-on", "container", "timeout-minutes", "strategy", "env", "defaults", "steps"}
STEP_KEYS = {"name", "uses", "with", "run", "shell", "if", "env"}


# ---- the YAML subset in use -------------------------------------------------------------------------------

class Lines:
    def __init__(self, text):
        self.all = [line.rstrip() for line in text.split("\n")]
        self.at = 0

    def indent(self):
        """Indentation of the next line with content; -1 at the end."""
        while self.at < len(self.all) and re.fullmatch(r" *(#.*)?", self.all[self.at]):
            self.at += 1
        return -1 if self.at == len(self.all) else len(re.match(" *", self.all[self.at])[0])


def scalar(text):
    text = re.sub(r"\s+#.*", "", text)
    if text.startswith("["):
        return [scalar(item) for item in text.strip("[]").split(", ")]
    return text[1:-1] if text[:1] == "'" else text


def block(lines, indent):
    """Returns the value after "|", without its indentation."""
    kept = []
    while lines.at < len(lines.all) and (not lines.all[lines.at] or lines.all[lines.at].startswith(" " * (indent + 1))):
        kept.append(lines.all[lines.at])
        lines.at += 1
    least = min((len(re.match(" *", line)[0]) for line in kept if line), default=0)
    return "\n".join(line[least:] for line in kept).strip("\n") + "\n"


def value(lines, indent, text):
    if text == "|":
        return block(lines, indent)
    if text == ">-":
        return " ".join(block(lines, indent).split("\n")).strip()
    if text:
        return scalar(text)
    return node(lines) if lines.indent() > indent else None


def node(lines):
    indent = lines.indent()
    made = [] if lines.all[lines.at][indent:].startswith("- ") else {}
    while lines.indent() == indent:
        line = lines.all[lines.at][indent:]
        if "\t" in line:
            raise ValueError(f"line {lines.at + 1}: a tab")
        if isinstance(made, list):
            if not line.startswith("- "):
                raise ValueError(f"line {lines.at + 1}: no item")
            if re.match(r"[\w-]+:( |$)", line[2:]):  # a mapping that begins here
                lines.all[lines.at] = " " * (indent + 2) + line[2:]
                made.append(node(lines))
            else:
                lines.at += 1
                made.append(scalar(line[2:]))
            continue
        match = re.fullmatch(r"([\w-]+):(?: (.*))?", line)
        if not match or match[1] in made:
            raise ValueError(f"line {lines.at + 1}: {line}")
        lines.at += 1
        made[match[1]] = value(lines, indent, match[2] or "")
    if lines.indent() > indent:
        raise ValueError(f"line {lines.at + 1}: indented too far")
    return made


# ---- commands -------------------------------------------------------------------------------------------

def shellcheck(script):
    run = subprocess.run(["shellcheck", "--shell=sh", "--severity=style", "--format=gcc", "-"], input=script, text=True,
                         capture_output=True, check=False)
    return [line.partition(": ")[2] for line in run.stdout.split("\n") if line]


def check_scripts(text):
    """Checks that scripts exist, and that their heads, or vknerf, know the options."""
    for script, words in re.findall(r"(?:^|[ /])((?:tools|tests)/[\w.]+)([^\n&|>]*)", text):
        path = os.path.join(SOURCE, script)
        if not os.access(path, os.X_OK):
            yield f"there is no {script}"
            continue
        with open(path, encoding="utf-8") as file:
            head = file.read().partition("\nset -")[0]
        for option in re.findall(r"--[a-z][\w-]*", words):
            if option not in head and "OPTION-OF-vknerf" not in head:
                yield f"{script} has no option {option}"


def check_run(text):
    yield from shellcheck(re.sub(r"\$\{\{.*?\}\}", "x", text))
    yield from check_scripts(text)
    if "${{" in text:  # the shell would get its value as code
        yield "an expression in what a shell runs: pass it as a variable"


def check_step(step):
    for key in step.keys() - STEP_KEYS:
        yield f"a step's {key}"
    if ("run" in step) == ("uses" in step):
        yield "a step runs or uses one thing"
    if "uses" in step and not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]):
        yield f"uses {step['uses']}"
    if "run" in step:
        yield from check_run(step["run"])
        if "name" not in step:
            yield "a step that runs something has no name"


def check_job(name, job):
    for key in job.keys() - JOB_KEYS:
        yield f"{name}: a job's {key}"
    for key in ("runs-on", "timeout-minutes", "steps"):
        if not job.get(key):
            yield f"{name}: no {key}"
    for step in job.get("steps") or ():
        yield from (f"{name}: {finding}" for finding in check_step(step))
    matrix = (job.get("strategy") or {}).get("matrix") or {}
    for expression in re.findall(r"matrix\.(\w+)", str(job)):
        if expression not in matrix:
            yield f"{name}: matrix has no {expression}"
    for system in matrix.get("system", ()):
        if not re.fullmatch(r"(debian|ubuntu):[\d.]+", system):
            yield f"{name}: {system} is no system"


def check_workflow(text):
    try:
        workflow = node(Lines(text))
    except (ValueError, IndexError, TypeError) as error:
        yield str(error)
        return
    for key in workflow.keys() - TOP_KEYS:
        yield f"{key}"
    for key in ("on", "permissions", "jobs"):
        if not workflow.get(key):
            yield f"no {key}"
    for expression in re.findall(r"\$\{\{(.*?)(?:\}\}|\n)", text):
        for context in re.findall(r"\b([a-z]+)\.", re.sub(r"'[^']*'", "", expression)):
            if context not in ("github", "matrix", "strategy"):
                yield f"unknown context {context}"
    if text.count("${{") != len(re.findall(r"\$\{\{[^{}]*\}\}", text)):
        yield "an expression does not end"
    jobs = workflow.get("jobs") or {}
    for name, job in jobs.items():
        yield from check_job(name, job)
        if job.get("needs", name) not in jobs:
            yield f"{name}: there is no job {job['needs']}"


def check_dockerfile(text):
    stages = re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE)
    lines = re.sub(r"\\\n", " ", re.sub(r"^ *#.*\n", "", text, flags=re.MULTILINE)).split("\n")
    for line in filter(str.strip, lines):
        word, _, rest = line.partition(" ")
        if word not in ("ARG", "FROM", "RUN", "COPY", "ENV", "VOLUME", "WORKDIR", "ENTRYPOINT", "CMD"):
            yield f"{word} is no instruction"
        for stage in re.findall(r"from=(\w+)", line):
            if stage not in stages:
                yield f"there is no stage {stage}"
        if word == "RUN":
            yield from check_run(re.sub(r"^(--mount=\S+\s+)+", "", rest))


# ---- all checks -----------------------------------------------------------------------------------------

# Replacements, and the resulting messages.
FAULTS = (
    ("tools/test.sh", "tools/tests.sh", "there is no tools/tests.sh"),
    ("tools/package.sh --check", "tools/package.sh --chek", "no option --chek"),
    ("run: docker build -t vknerf .", "run: docker build -t $image .", "SC2086"),
    ("matrix.system }}\n    runs-on", "matrix.sytem }}\n    runs-on", "matrix has no sytem"),
    ("actions/checkout@v4", "actions/checkout", "uses actions/checkout"),
    ("    timeout-minutes: 60\n", "", "no timeout-minutes"),
    ("      - name: Test\n", "      - name: Test\n        runs: x\n", "a step's runs"),
    ("permissions:\n  contents: read\n", "", "no permissions"),
    ("github.workflow }}", "github.workflow }", "does not end"),
    ("${{ github.ref }}", "${{ gitub.ref }}", "unknown context gitub"),
    ("        run: tools/test.sh", "         run: tools/test.sh", "line "),
    ("debian:13", "debain:13", "debain:13 is no system"),
    ("needs: windows-build", "needs: windows", "there is no job windows"),
)
DOCKER_FAULTS = (
    ("from=build", "from=built", "no stage built"),
    ("tools/package.sh", "tools/pack.sh", "no tools/pack.sh"),
    ("RUN mkdir", "RAN mkdir", "RAN is no instruction"),
    ("rm -rf /var/lib/apt/lists/*", "cd $x", "SC2086"),
)


def check_all(texts):
    for path, text in texts.items():
        check = check_dockerfile if path == "Dockerfile" else check_workflow
        yield from (f"{path}: {finding}" for finding in check(text))


def main():
    paths = sorted(glob.glob(os.path.join(SOURCE, ".github/workflows/*.yml"))) + [os.path.join(SOURCE, "Dockerfile")]
    texts = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            texts[os.path.relpath(path, SOURCE)] = file.read()
    findings = [] if len(texts) >= 2 else ["there is no workflow"]
    for path, faults in ((".github/workflows/ci.yml", FAULTS), ("Dockerfile", DOCKER_FAULTS)):
        for old, new, wanted in faults:
            found = list(check_all({path: texts[path].replace(old, new)}))
            if old not in texts[path] or not any(wanted in finding for finding in found):
                findings.append(f"self-check: {new!r} gives {found}, not {wanted}")
    findings += check_all(texts)
    for finding in findings:
        print(f"FAILED: {finding}")
    if not findings:
        print("all passed")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
