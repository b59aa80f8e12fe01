#!/usr/bin/env python3
"""same_mesh.py A.ply B.ply: compares a mesh that vknerf wrote (A) with assimp's conversion (Open Asset Import Library)
of the same mesh's .glb file (B): equal triangles, positions with y up instead of z, and linear instead of sRGB
colours."""
import itertools
import math
import struct
import sys


def read_binary(path):
    """Returns vertices as (x, y, z, red, green, blue), and faces."""
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


NEAR = 1e-5


def cell_of(position):
    return tuple(math.floor(value / (4 * NEAR)) for value in position)


def find_vertices(ours, others):
    """Returns for each of the others' vertices the index of ours at its position: assimp 5.4 reorders vertices."""
    cells = {}
    for number, mine in enumerate(ours):
        upright = mine[0], mine[2], -mine[1]
        cells.setdefault(cell_of(upright), []).append((number, upright))
    found = []
    for its in others:
        around = itertools.product(*((value - 1, value, value + 1) for value in cell_of(its[:3])))
        near = [number for cell in around for number, upright in cells.get(cell, ())
                if all(abs(a - b) <= NEAR for a, b in zip(upright, its[:3]))]
        if len(near) != 1:
            sys.exit(f"{len(near)} vertices are at {its[:3]}")
        found += near
    return found


def first_smallest(face):
    """Rotates a triangle's indices so that the smallest is first; the front side stays."""
    return min(face[i:] + face[:i] for i in range(3))


def main():
    (ours, our_faces), (others, other_faces) = read_binary(sys.argv[1]), read_text(sys.argv[2])
    if len(ours) != len(others):
        sys.exit("other vertices")
    found = find_vertices(ours, others)
    named = [tuple(found[vertex] for vertex in face) for face in other_faces]
    if sorted(map(first_smallest, our_faces)) != sorted(map(first_smallest, named)):
        sys.exit("other faces")
    for number, its in zip(found, others):
        mine = ours[number]
        if any(abs(linear(a) - b) > 1.01 for a, b in zip(mine[3:], its[3:])):
            sys.exit(f"the colour {mine[3:]} became {its[3:]}")
    print(f"{len(ours)} vertices are the same")


if __name__ == "__main__":
    main()
