#!/usr/bin/env python3
"""same_mesh.py A.ply B.ply: A as vknerf writes it, B what assimp (Open Asset Import Library) made of the same mesh's
.glb file. The same triangles, in the same places with what was z up y up, as the node says; and B's colours are A's,
from sRGB made linear."""
import struct
import sys


def read_binary(path):
    """Vertices as (x, y, z, red, green, blue), faces."""
    with open(path, "rb") as file:
        data = file.read()
    at = data.index(b"end_header\n") + 11
    header = data[:at].decode().split("\n")
    counts = {line.split()[1]: int(line.split()[2]) for line in header if line.startswith("element")}
    vertices, faces = [], []
    for _ in range(counts["vertex"]):
        row = struct.unpack_from("<6f3B", data, at)
        vertices.append(row[:3] + row[6:])
        at += 27
    for _ in range(counts["face"]):
        faces.append(struct.unpack_from("<B3i", data, at)[1:])
        at += 13
    return vertices, faces


def read_text(path):
    with open(path, encoding="ascii", errors="replace") as file:
        lines = file.read().splitlines()
    end = lines.index("end_header")
    names = []
    for line in lines[:end]:
        words = line.split()
        if words[:2] == ["element", "vertex"]:
            faces_begin = end + 1 + int(words[2])
        elif words[0] == "property" and words[1] != "list":
            names.append(words[2])
    wanted = [names.index(name) for name in ("x", "y", "z", "red", "green", "blue")]
    vertices = [tuple(float(line.split()[i]) for i in wanted) for line in lines[end + 1 : faces_begin]]
    return vertices, [tuple(int(word) for word in line.split()[1:]) for line in lines[faces_begin:]]


def linear(byte):
    value = byte / 255
    return 255 * (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4)


def main():
    (ours, our_faces), (others, other_faces) = read_binary(sys.argv[1]), read_text(sys.argv[2])
    if our_faces != other_faces or len(ours) != len(others):
        sys.exit("other faces")
    for mine, its in zip(ours, others):
        upright = mine[0], mine[2], -mine[1]
        if any(abs(a - b) > 1e-5 for a, b in zip(upright, its[:3])):
            sys.exit(f"a vertex at {upright} became one at {its[:3]}")
        if any(abs(linear(a) - b) > 1.01 for a, b in zip(mine[3:], its[3:])):
            sys.exit(f"the colour {mine[3:]} became {its[3:]}")
    print(f"{len(ours)} vertices are the same")


if __name__ == "__main__":
    main()
