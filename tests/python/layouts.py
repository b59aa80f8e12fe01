#!/usr/bin/env python3
"""tests/python/layouts.py INCLUDE [COMPILER [RUNNER]]: tests that the structures of the package have the sizes and offsets
of the C compiler, whose programs RUNNER starts, and that its enumerations and functions are those of the headers in
INCLUDE."""
import ctypes
import os
import re
import subprocess
import sys
import tempfile

from vknerf import _base, _generated


def structures():
    return {name: kind for name, kind in vars(_generated).items()
            if isinstance(kind, type) and issubclass(kind, _base.Structure) and name.startswith("vkn_")}


def enumerators(include, compiler):
    """Yields the C name and the Python member of all enumerators: names in C end with the member's."""
    declared = subprocess.run([compiler, "-E", "-P", "-I", include, "-"], input="#include <vknerf/vknerf.h>\n", text=True,
                              capture_output=True, check=True).stdout
    for name, body in re.findall(r"enum (vkn_\w+) \{([^}]*)\}", declared):
        kind = getattr(_generated, "".join(map(str.capitalize, name[4:].split("_"))))
        for enumerator in re.findall(r"\bVKN_\w+", body):
            yield enumerator, max((member for member in kind if enumerator.endswith("_" + member.name)),
                                  key=lambda member: len(member.name))


def expected(include, compiler):
    """Returns the lines that the compiler's program prints, and the program."""
    lines, program = [], ["#include <stdio.h>", "#include <stddef.h>", "#include <vknerf/vknerf.h>", "int main(void) {"]

    def add(label, expression, value):
        lines.append(f"{label} {value}")
        program.append(f'printf("{label} %ld\\n", (long)({expression}));')

    for name, kind in structures().items():
        c_name = name if name in ("vkn_field", "vkn_setting") else f"struct {name}"
        add(f"sizeof {name}", f"sizeof({c_name})", ctypes.sizeof(kind))
        for member in _base.members_of(kind):
            field = getattr(kind, member)
            add(f"{name}.{member}", f"offsetof({c_name}, {member})", field.offset)
            add(f"{name}.{member} size", f"sizeof((({c_name} *)0)->{member})", field.size)
    for enumerator, member in enumerators(include, compiler):
        add(enumerator, enumerator, int(member))
    return lines, "\n".join([*program, "return 0; }\n"])


def main(include, compiler="cc", *runner):
    lines, program = expected(include, compiler)
    assert len(lines) > 500, "hardly any structure was found"
    with tempfile.TemporaryDirectory() as folder:
        source, binary = os.path.join(folder, "layouts.c"), os.path.join(folder, "layouts.exe")
        with open(source, "w", encoding="utf-8") as file:
            file.write(program)
        subprocess.run([compiler, "-I", include, source, "-o", binary], check=True)
        printed = subprocess.run([*runner, binary], capture_output=True, text=True, check=True).stdout.splitlines()
    wrong = [f"{line}, not as in Python: {own}" for own, line in zip(lines, printed) if own != line]
    assert not wrong and len(printed) == len(lines), "\n".join(wrong)
    declared = set()
    for name in os.listdir(os.path.join(include, "vknerf")):
        with open(os.path.join(include, "vknerf", name), encoding="utf-8") as header:
            declared |= set(re.findall(r"^VKN_API [^;{(]*\b(vkn_\w+)\(", header.read(), re.M))
    assert declared == set(_generated.FUNCTIONS), declared ^ set(_generated.FUNCTIONS)
    print(f"{len(structures())} structures, {len(declared)} functions: as in C")


if __name__ == "__main__":
    main(*sys.argv[1:])
