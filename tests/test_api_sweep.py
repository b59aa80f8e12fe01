#!/usr/bin/env python3
"""Checks that the sweeps over the public API are complete: test_api_use.c has every function that returns a status,
test_api_values.c every structure that begins with its size, and every number that the library reads from them."""
import os
import re
import sys

from public_functions import name_of, prototypes

SOURCE = os.environ.get("VKNERF_SOURCE_DIR", ".")
HEADERS = os.path.join(SOURCE, "include/vknerf")
NUMBERS = r"(?:double|float|uint32_t|uint64_t|size_t|enum \w+)"


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read()


def plain(text):
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def structures():
    """Yields each structure that begins with its size: name, and names of its other numeric members."""
    for header in sorted(os.listdir(HEADERS)):
        text = plain(read(os.path.join("include/vknerf", header)))
        for name, body in re.findall(r"\bstruct (\w+) \{\s*size_t size;(.*?)\n\}", text, re.S):
            members = []
            for names in re.findall(r"(?:^|;)\s*%s ([^;()*]*)(?=;)" % NUMBERS, body):
                members += [re.sub(r"\[.*", "", part).strip() for part in names.split(",")]
            yield name, members


def is_read(name):
    """Returns whether the library reads the structure; in others only `size` could be wrong."""
    return name.endswith(("_params", "_run")) or name in ("vkn_camera", "vkn_view", "vkn_field", "vkn_job")


def main():
    use, values = read("tests/test_api_use.c"), read("tests/test_api_values.c")
    missing = []
    for prototype in prototypes(HEADERS):
        name = name_of(prototype)
        if prototype.startswith("vkn_status ") and f"X({name}(" not in use:
            missing.append(f"tests/test_api_use.c: CALLS lacks {name}")
    count = 0
    for name, members in structures():
        count += 1
        if f"STRUCTURE({name}," not in values:
            missing.append(f"tests/test_api_values.c: structures lacks struct {name}")
        for member in members if is_read(name) else ():
            if not re.search(r"\((?:struct )?%s, %s, [A-Z]+\)" % (name, member), values):
                missing.append(f"tests/test_api_values.c: no table has struct {name}'s {member}")
    if count < 25:
        missing.append(f"{HEADERS}: only {count} structures with a size were found")
    print("\n".join(missing) if missing else f"{count} structures")
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
