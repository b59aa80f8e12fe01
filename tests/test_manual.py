#!/usr/bin/env python3
"""tests/test_manual.py: tests the installed man page, shell completions and documents.

Installs the build into a folder: the man page has every command, option and setting, and mandoc and man give no
warning; bash, zsh and fish complete typed command lines; the script for PowerShell passes the words that it should; the
links of the documents lead to installed files.

Needs mandoc, man, bash, zsh and fish; VKNERF_BUILD_DIR names the build.
"""
import glob
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["VKNERF_BUILD_DIR"]

# Text typed before Tab, and words of the completed line; "X" is typed after Tab and shows whether the shell has added a
# blank. Except where noted there is one candidate, so that every shell completes it.
TYPED = (
    ("vknerf tra", ["train", "X"]),
    ("vknerf help rend", ["help", "render", "X"]),
    ("vknerf train --loss", ["train", "--loss-scale", "X"]),
    ("vknerf train scenes --prec", ["train", "scenes", "--precision", "X"]),
    ("vknerf train --set mlp.den", ["train", "--set", "mlp.density_X"]),  # several keys begin so
    ("vknerf train --set loss.ki", ["train", "--set", "loss.kind=X"]),
    ("vknerf train --set loss.kind=hu", ["train", "--set", "loss.kind=huber", "X"]),
    ("vknerf train --set=loss.kind=hu", ["train", "--set=loss.kind=huber", "X"]),
    ("vknerf train --set deterministic=t", ["train", "--set", "deterministic=true", "X"]),
    ("vknerf train --precision=coo", ["train", "--precision=coopmat", "X"]),
    ("vknerf train --loss-scale sch", ["train", "--loss-scale", "schedule:X"]),
    ("vknerf train --loss-scale schedule:not", ["train", "--loss-scale", "schedule:notes.txt", "X"]),
    ("vknerf train --resume runs/a", ["train", "--resume", "runs/alpha", "X"]),
    ("vknerf eval ru", ["eval", "runs/X"]),
    ("vknerf eval runs/", ["eval", "runs/alpha", "X"]),
    ("vknerf eval runs/alpha/che", ["eval", "runs/alpha/checkpoint.safetensors", "X"]),
    ("vknerf report runs/alpha two", ["report", "runs/alpha", "two words/X"]),
    ("vknerf report runs/alpha two\\ words/", ["report", "runs/alpha", "two words/run", "X"]),
    ("vknerf eval --split test runs/", ["eval", "--split", "test", "runs/alpha", "X"]),
    ("vknerf eval runs/alpha --spl", ["eval", "runs/alpha", "--split", "X"]),
    ("vknerf eval runs/alpha --split tr", ["eval", "runs/alpha", "--split", "train", "X"]),
    ("vknerf train sce", ["train", "scenes/X"]),
    ("vknerf train --out=sce", ["train", "--out=scenes/X"]),
    ("vknerf train --config not", ["train", "--config", "notes.txt", "X"]),
    ("vknerf train --find-batch=fa", ["train", "--find-batch=fastest", "X"]),
    ("vknerf render runs/alpha --maps rgb,opa", ["render", "runs/alpha", "--maps", "rgb,opacity", "X"]),
    ("vknerf train -- sce", ["train", "--", "scenes/X"]),
)

failures = []


def fail(text):
    failures.append(text)


def check(what, wanted, got):
    if wanted != got:
        fail(f"{what}: {got} instead of {wanted}")


# ---- shells ----------------------------------------------------------------------------------------------

def environment(folder, prefix):
    """Returns an environment without the user's settings, with the installed program in PATH."""
    return {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "HOME": folder, "TERM": "dumb", "LC_ALL": "C",
            "XDG_CONFIG_HOME": folder, "XDG_DATA_HOME": folder, "INPUTRC": "/dev/null", "ZDOTDIR": folder}


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, command, folder, variables):
        self.child, self.screen = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            os.execvpe(command[0], command, variables)
        self.seen = ""

    def type(self, text):
        os.write(self.screen, text.encode())

    def wait_for(self, pattern, seconds=10):
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen)):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.screen], [], [], left)[0]:
                raise TimeoutError(f"no {pattern} in {self.seen[-300:]!r}")
            self.seen += os.read(self.screen, 4096).decode(errors="replace")
        self.seen = self.seen[match.end():]
        return match

    def end(self):
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        os.close(self.screen)


def type_all(name, command, setup, folder, variables):
    """Types each line and Tab, and then a command at the line's front that prints the completed words."""
    terminal = Terminal(command, folder, variables)
    try:
        terminal.type(setup + "; show() { printf '%s' '<('; printf '{%s}' \"$@\"; echo ')>'; }; PS1=; echo re''ady\r")
        terminal.wait_for("ready\r?\n")
        for typed, wanted in TYPED:
            terminal.type(f"{typed}\tX\x01show \r")
            words = terminal.wait_for(r"<\((.*)\)>")[1]
            check(f"{name}: {typed}", ["vknerf", *wanted], re.findall(r"\{([^}]*)\}", words))
    except TimeoutError as error:
        fail(f"{name}: {error}")
    finally:
        terminal.end()


def bash(folder, prefix):
    script = f"{prefix}/share/bash-completion/completions/vknerf"
    type_all("bash", ["bash", "--norc", "--noprofile", "-i"], f"set -o emacs; . {script}", folder, environment(folder, prefix))


def zsh(folder, prefix):
    setup = f"bindkey -e; unsetopt zle_bracketed_paste; fpath=({prefix}/share/zsh/site-functions $fpath); " \
            "autoload -Uz compinit; compinit -u -D"
    type_all("zsh", ["zsh", "-f", "-i"], setup, folder, environment(folder, prefix))


def fish(folder, prefix):
    """Runs fish without a terminal, which prints its completions."""
    script = f"source {prefix}/share/fish/vendor_completions.d/vknerf.fish\n"
    script += "".join(f"echo \"line {typed}\"; complete -C \"{typed}\"\n" for typed, _ in TYPED)
    run = subprocess.run(["fish", "--no-config", "-c", script], cwd=folder, env=environment(folder, prefix),
                         capture_output=True, text=True, check=False)
    if run.stderr:
        fail(f"fish: {run.stderr}")
    found = {lines.split("\n")[0]: {line.split("\t")[0] for line in lines.split("\n")[1:] if line}
             for lines in run.stdout.split("line ")}
    for typed, wanted in TYPED:
        expected = wanted[-1][:-1] if wanted[-1] != "X" else wanted[-2]
        several = not expected.endswith(("=", ":", "/")) and wanted[-1] != "X"
        got = {word for word in found.get(typed, ()) if not several or word.startswith(expected)}
        if (len(got) < 2) if several else (got != {expected}):
            fail(f"fish: {typed}: {sorted(got)} instead of {expected}")


def check_powershell():
    """Reads the script for PowerShell, which tests/completions.ps1 runs on Windows: its brackets, and what it passes."""
    with open(os.path.join(os.path.dirname(__file__), "../completions/vknerf.ps1"), encoding="ascii") as file:
        text = file.read()
    for part in ("-CommandName 'vknerf', 'vknerf.exe'", "& $program help --complete @arguments", "'^:(files|directories) "):
        if part not in text:
            fail(f"vknerf.ps1: no {part}")
    brackets = re.sub(r"[^][(){}]", "", re.sub(r"(?m)'[^'\n]*'|\"[^\"\n]*\"|^ *#.*", "", text))
    while (shorter := re.sub(r"\(\)|\[\]|\{\}", "", brackets)) != brackets:
        brackets = shorter
    check("vknerf.ps1: brackets left open", "", brackets)


def make_files(folder):
    for path in ("runs/alpha/metrics.jsonl", "runs/alpha/checkpoint.safetensors", "runs/beta.txt",
                 "two words/run/metrics.jsonl", "scenes/one/a.png", "notes.txt"):
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        with open(os.path.join(folder, path), "w", encoding="utf-8"):
            pass


# ---- the man page ----------------------------------------------------------------------------------------

def output(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def check_page(prefix):
    page = f"{prefix}/share/man/man1/vknerf.1"
    check("mandoc -T lint", "", output("mandoc", "-T", "lint", "-W", "warning", page).stdout)
    shown = output("man", "--warnings", "-l", page, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
    check("man --warnings", "", shown.stderr)
    text = output("mandoc", "-T", "utf8", "-O", "width=1000", page).stdout
    text = re.sub(".\b", "", text)
    program = f"{prefix}/bin/vknerf"
    commands = re.findall(r"^  ([a-z]+) {2,}\S", output(program, "--help").stdout, re.MULTILINE)
    if len(commands) < 8:
        fail(f"vknerf --help: only the commands {commands}")
    for command in commands:
        part = re.search(rf"\n   {command}\n(.*?)(?=\n   [a-z]+\n|\n[A-Z])", text, re.DOTALL)
        help_text = output(program, "help", command).stdout
        names = re.findall(r"^  (--[a-z0-9-]+)", help_text, re.MULTILINE)
        names += re.findall(r"^  ([a-z_]+(?:\.[a-z_0-9]+)?) ", help_text.partition("\nKeys of")[2], re.MULTILINE)
        for name in names:
            if not part or not re.search(rf"^ +{re.escape(name)}\b", part[1], re.MULTILINE):
                fail(f"vknerf.1: {command}: {name} is not there")
        offered = output(program, "help", "--complete", command, "--").stdout
        for name in re.findall(r"^  (--[a-z0-9-]+)", help_text, re.MULTILINE):
            if f"{name}\t" not in offered:
                fail(f"completion of {command}: {name} is not offered")
        if not names or "--help\t" not in offered:
            fail(f"{command}: no options")
    for heading, wanted in (("EXIT STATUS", "130"), ("ENVIRONMENT", "XDG_CACHE_HOME"), ("FILES", "checkpoint.safetensors"),
                            ("EXAMPLES", "vknerf train SCENE"), ("DESCRIPTION", "radiance fields")):
        part = re.search(rf"\n{heading}\n(.*?)(?=\n[A-Z]|\Z)", text, re.DOTALL)
        if not part or wanted not in part[1]:
            fail(f"vknerf.1: {heading}: no {wanted}")
    for mark in ("](", "`", "\\f", "@DATE@"):
        if mark in text:
            fail(f"vknerf.1: {mark} is left in it")


# ---- documents -------------------------------------------------------------------------------------------

def check_links(folder):
    pages = glob.glob(f"{folder}/**/*.md", recursive=True)
    if len(pages) < 20:
        fail(f"only {len(pages)} documents are installed")
    for page in pages:
        with open(page, encoding="utf-8") as file:
            text = re.sub(r"```.*?```|`[^`]*`", "", file.read(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)", text):
            if "://" not in link and not os.path.exists(os.path.join(os.path.dirname(page), link)):
                fail(f"{os.path.relpath(page, folder)}: {link} is not installed")


def main():
    folder = tempfile.mkdtemp()
    try:
        prefix, place = f"{folder}/prefix", f"{folder}/place"
        installed = output("cmake", "--install", BUILD, "--prefix", prefix)
        if installed.returncode:
            fail(f"cmake --install: {installed.stderr[-500:]}")
        else:
            make_files(place)
            check_page(prefix)
            check_links(f"{prefix}/share/doc/vknerf")
            for shell in (bash, zsh, fish):
                shell(place, prefix)
            check_powershell()
    finally:
        shutil.rmtree(folder)
    for failure in failures:
        print(f"FAILED: {failure}")
    if not failures:
        print("all passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
