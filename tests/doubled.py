#!/usr/bin/env python3
"""doubled.py A.ply B.ply: checks that binary PLY file B has A's vertices with doubled positions (and sizes of splats,
which are logarithms), and everything else as in A."""
import math
import struct
import sys

TYPES = {"float": "f", "double": "d", "uchar": "B"}


def read(path):
    """Returns the names of the properties, the vertices and the bytes that follow."""
    with open(path, "rb") as file:
        header, data = file.read().split(b"end_header\n", 1)
    lines = [line.split() for line in header.decode().split("\n")]
    count = next(int(line[2]) for line in lines if line[:2] == ["element", "vertex"])
    properties = [line[1:] for line in lines if line[:1] == ["property"] and line[1] != "list"]
    row = struct.Struct("<" + "".join(TYPES[kind] for kind, _ in properties))
    vertices = [row.unpack_from(data, row.size * i) for i in range(count)]
    return [name for _, name in properties], vertices, data[row.size * count :]


names, ours, faces = read(sys.argv[1])
other_names, doubled, other_faces = read(sys.argv[2])
assert names == other_names and len(ours) == len(doubled) > 0 and faces == other_faces
for a, b in zip(ours, doubled):
    for name, before, after in zip(names, a, b):
        if name in ("x", "y", "z"):
            assert after == 2 * before, (name, before, after)
        elif name.startswith("scale_"):
            assert abs(after - before - math.log(2)) < 2e-6, (name, before, after)
        else:
            assert after == before, (name, before, after)
