#!/usr/bin/env python3
"""tests/windows_bits.py: trains the bundled scene for 48 deterministic steps on this machine's system and on Windows
(VKNERF_BIN), in each precision, and compares every tensor of the checkpoints bit by bit. Takes
40 s: both systems compile the step's shaders."""
import json
import os
import struct
import subprocess
import sys
import tempfile

SOURCE = os.environ["VKNERF_SOURCE_DIR"]
PROGRAMS = {"Linux": [SOURCE + "/tools/lavapipe.sh", SOURCE + "/build/vknerf"], "Windows": [os.environ["VKNERF_BIN"]]}
ARGUMENTS = ["--deterministic", "--steps", "48", "--downscale", "4", "--quiet", "--set", "batch.samples=8192",
             "--set", "batch.max_rays=1024"]
PRECISIONS = ["fp32", "fp16", "coopmat"]


def train(system, precision, folder):
    """Returns {tensor: bytes} of the checkpoint."""
    out = os.path.join(folder, f"{system} {precision}")
    # Wine's lavapipe has vectors of 256 bits; their size is the size of subgroups, of which the state has a count.
    subprocess.run([*PROGRAMS[system], "train", SOURCE + "/assets/demo", "--precision", precision, *ARGUMENTS,
                    "--out", out], check=True, env={**os.environ, "LP_NATIVE_VECTOR_WIDTH": "256"},
                   stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "checkpoint.safetensors"), "rb") as file:
        data = file.read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__")
    return {name: data[8 + size + tensor["data_offsets"][0]:8 + size + tensor["data_offsets"][1]]
            for name, tensor in header.items()}


def main():
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for precision in PRECISIONS:
            linux, windows = (train(system, precision, folder) for system in PROGRAMS)
            if set(linux) != set(windows) or not any(linux["params"]):
                failures += 1
                print(f"FAILED: {precision}: tensors {sorted(linux)} and {sorted(windows)}")
            for name in sorted(set(linux) & set(windows)):
                same = linux[name] == windows[name]
                failures += not same
                print(f"{'same' if same else 'FAILED: different'}: {precision} {name}, {len(linux[name])} bytes")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
