#!/usr/bin/env python3
"""tools/vendors/memory_requests.py [--subgroup N] [--subgroups N] SAMPLES

Counts the memory requests that encode_samples and scatter_gradients make for the samples of a real training step, by
layout of the hash grid. SAMPLES: a file of build/tools/vendors/dump_samples. One instruction of a subgroup makes one
request for each 128-byte line that its lanes load from (encode_samples, served by the L1 cache), and one for each
32-byte sector that its lanes add to (scatter_gradients, served by the L2 cache). The grids have the size of a GPU's
default: tables of 2^19 entries, finest level 2048.
"""
import argparse
import array
import math
import sys

BASE, FINEST, TABLE = 16, 2048, 1 << 19
LINE, SECTOR = 128, 32
HALF, FLOAT = 2, 4  # bytes of a feature that encode_samples loads, and of a sum
CORNERS = [(k & 1, k >> 1 & 1, k >> 2) for k in range(8)]


class Level:
    def __init__(self, number, count):
        self.scale = BASE * (FINEST / BASE) ** (number / (count - 1)) - 1
        self.resolution = math.ceil(self.scale) + 1
        self.dense = self.resolution ** 3 <= TABLE

    def cell(self, position):
        return tuple(int(p * self.scale + 0.5) for p in position)

    def entry(self, cell, corner):
        x, y, z = (c + o for c, o in zip(cell, corner))
        if self.dense:
            x, y, z = (min(c, self.resolution - 1) for c in (x, y, z))
            return x + self.resolution * (y + self.resolution * z)
        return (x ^ y * 2654435761 ^ z * 805459861) & (TABLE - 1)

    def corners(self, position):
        cell = self.cell(position)
        return [self.entry(cell, corner) for corner in CORNERS]


def distinct(addresses, block):
    return len({address // block for address in addresses})


def encode_lines(entries, features):
    """Lines of one load of each corner by a subgroup. `entries`: [lane][corner]."""
    return sum(distinct([lane[k] * features * HALF for lane in entries], LINE) for k in range(8))


def encode_lines_by_blocks(entries, features):
    """The same where one aligned load of 16 bytes gets both corners in x. Another load gets the second corner if it lies
    in another block, else the first word."""
    entry, lines = features * HALF, 0
    for k in range(0, 8, 2):
        pairs = [(lane[k] * entry, lane[k + 1] * entry) for lane in entries]
        lines += distinct([near for near, _ in pairs], LINE)
        lines += distinct([0 if near // 16 == far // 16 else far for near, far in pairs], LINE)
    return lines


def scatter_requests(entries, cells, features, lanes, resolution):
    """Sectors that atomics of a subgroup's samples touch, if 1 lane adds a sample's values or 4 lanes do. One
    instruction adds `lanes` values of each of `own` neighbouring samples."""
    requests, own = 0, len(cells) // lanes
    words = [[lane[k] * features * FLOAT + f * FLOAT for k in range(8) for f in range(features)] for lane in entries]
    last = [i + 1 == len(cells) or (i + 1) % own == 0 or cells[i] != cells[i + 1] for i in range(len(cells))]
    merges = resolution <= 1024 and sum(last) <= len(cells) // 2  # only the last of each run in one cell adds
    for start in range(0, len(cells), own):
        adds = [i for i in range(start, start + own) if last[i] or not merges]
        for first in range(0, 8 * features, lanes):
            requests += distinct([word for i in adds for word in words[i][first:first + lanes]], SECTOR)
    return requests


def count(positions, levels, features, subgroup, live):
    """{figure: requests per sample} of the samples, whose number is a multiple of `subgroup`."""
    names = [f"scatter, {lanes} lanes" for lanes in (1, 4)] if live else ["encode, lines", "encode, lines by blocks"]
    sums = dict.fromkeys(names, 0)
    for number in range(levels):
        level = Level(number, levels)
        for first in range(0, len(positions), subgroup):
            part = positions[first:first + subgroup]
            entries, cells = [level.corners(p) for p in part], [level.cell(p) for p in part]
            if not live:
                sums["encode, lines"] += encode_lines(entries, features)
                sums["encode, lines by blocks"] += encode_lines_by_blocks(entries, features)
            for lanes in (1, 4) if live else ():
                sums[f"scatter, {lanes} lanes"] += scatter_requests(entries, cells, features, lanes, level.resolution)
    return {name: total / len(positions) for name, total in sums.items()}


def read(path):
    """(positions of marched samples, indices of live samples)"""
    words = array.array("I")
    with open(path, "rb") as file:
        data = file.read()
    words.frombytes(data)
    if sys.byteorder == "big":
        words.byteswap()
    marched, live = words[0], words[1]
    if len(words) != 2 + 3 * marched + live:
        sys.exit(f"{path}: not {marched} marched and {live} live samples")
    floats = array.array("f")
    floats.frombytes(words[2:2 + 3 * marched].tobytes())
    return [tuple(floats[3 * i:3 * i + 3]) for i in range(marched)], list(words[2 + 3 * marched:])


def choose(samples, subgroup, subgroups):
    """Whole subgroups of neighbouring samples, evenly spread."""
    available = len(samples) // subgroup
    number = min(available, subgroups)
    starts = [i * available // number * subgroup for i in range(number)]
    return [sample for start in starts for sample in samples[start:start + subgroup]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--subgroup", type=int, default=32)
    parser.add_argument("--subgroups", type=int, default=256)
    parser.add_argument("samples")
    args = parser.parse_args()
    positions, live = read(args.samples)
    print(f"{len(positions)} marched and {len(live)} live samples; requests per sample, subgroups of {args.subgroup}")
    print("| grid | " + " | ".join(["encode, lines", "encode, lines by blocks"] +
                                   ["scatter, 1 lane", "scatter, 4 lanes"]) + " |\n" + "|---" * 5 + "|")
    for levels, features in ((16, 2), (8, 4)):
        figures = count(choose(positions, args.subgroup, args.subgroups), levels, features, args.subgroup, False)
        figures.update(count(choose([positions[i] for i in live], args.subgroup, args.subgroups), levels, features,
                             args.subgroup, True))
        print(f"| {levels} x {features} | " + " | ".join(f"{value:.1f}" for value in figures.values()) + " |")


if __name__ == "__main__":
    main()
