#!/usr/bin/env python3
"""tests/test_abi.py [--update]: tests that programs compiled against an earlier libvknerf.so.0 still work.

libabigail's abidiff compares the functions and structures of the public headers with tests/abi/libvknerf.so.0.abi.
Every difference but new functions is a failure. --update records the present headers; review its output first. Only
new members at the end of structures that begin with their size, or that the library owns, are compatible. All other
changes need another soname.

abidiff reads a library that is compiled from the headers alone, with empty functions, so internal types do not count.
test_library.sh checks that the real library has exactly these functions.
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
    """Returns abidiff's exit status and output."""
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
        # Checks that abidiff notices a missing function.
        if compare(describe(folder, functions[1:]))[0] == 0:
            sys.exit(f"FAILED: {functions[0]} is missing, and abidiff does not notice")


if __name__ == "__main__":
    main("--update" in sys.argv[1:])
