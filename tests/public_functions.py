#!/usr/bin/env python3
"""tests/public_functions.py FOLDER: prints the functions that the headers in FOLDER declare with VKN_API, sorted."""
import os
import re
import sys


def prototypes(folder):
    """Yields declarations without VKN_API and semicolon, header by header."""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as text:
            yield from re.findall(r"^VKN_API ([^;{]*\));", text.read(), re.M)


def name_of(prototype):
    return re.search(r"(\w+)\(", prototype)[1]


if __name__ == "__main__":
    for function in sorted(map(name_of, prototypes(sys.argv[1]))):
        print(function)
