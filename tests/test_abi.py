#!/usr/bin/env python3
"""tests/test_abi.py [--update]: programs that were compiled against an earlier libvknerf.so.0 go on working.

What functions and structures the public headers have now is compared with tests/abi/libvknerf.so.0.abi by libabigail's
abidiff. New functions are no difference. Anything else is one, and --update, after a look at what it prints, records
it: members at the end of structures that begin with their size, or that the library owns. All else needs another
soname.

abidiff reads libraries: it is given one with every function of the headers, which does nothing. So types that are the
library's own do not count. That the real one has these functions and no others is for test_library.sh.
"""
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from public_functions import prototypes

source = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
include = os.path.join(source, "include")
recorded = os.path.join(source, "tests", "abi", "libvknerf.so.0.abi")


def make_library(folder, functions):
    text, library = os.path.join(folder, "functions.c"), os.path.join(folder, "libvknerf.so.0")
    with open(text, "w", encoding="utf-8") as file:
        file.write("#include <vknerf/vknerf.h>\n")
        file.writelines(f"{function} {{ __builtin_trap(); }}\n" for function in functions)
    subprocess.run(["cc", "-std=c11", "-g", "-shared", "-fPIC", "-w", "-I", include, "-Wl,-soname,libvknerf.so.0",
                    text, "-o", library], check=True)
    return library


def describe(folder, functions):
    description = os.path.join(folder, "now.abi")
    subprocess.run(["abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--out-file", description,
                    make_library(folder, functions)], check=True)
    return description


def compare(description):
    """abidiff's exit status and what it found."""
    found = subprocess.run(["abidiff", "--no-added-syms", "--no-architecture", recorded, description],
                           capture_output=True, text=True, check=False)
    return found.returncode, found.stdout + found.stderr


def main(update):
    functions = list(prototypes(os.path.join(include, "vknerf")))
    with tempfile.TemporaryDirectory() as folder:
        description = describe(folder, functions)
        status, differences = compare(description)
        print(differences, end="")
        if update:
            shutil.copyfile(description, recorded)
        elif status != 0:
            sys.exit("FAILED: the ABI is not the recorded one (see tests/test_abi.py)")
        # Differences are seen: a function that is gone.
        if compare(describe(folder, functions[1:]))[0] == 0:
            sys.exit(f"FAILED: {functions[0]} is missed by nobody")


if __name__ == "__main__":
    main("--update" in sys.argv[1:])
