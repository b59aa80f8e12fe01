#!/bin/sh
# Tests the room of tools/make_scene: cameras, no alpha, no plain background, and an exposure of each image. ctest
# compares the two bundled scenes with their files.
set -u
make_scene=${VKNERF_BUILD_DIR:?}/tools/make_scene/make_scene
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

"$make_scene" --room --size 32 "$work/room" 2>/dev/null || fail "make_scene --room"
"$make_scene" --room --size 32 --check "$work/room" 2>/dev/null || fail "make_scene --room --check"
"$make_scene" --room --moving "$work/both" 2>/dev/null && fail "--room --moving is accepted"
"${VKNERF_BIN:?}" info "$work/room" --json >"$work/info" || fail "info"
python3 - "$work" <<'CHECK' || fail "the room"
import json, statistics, struct, sys, zlib

def bytes_of(path):
    """RGBA of an 8-bit PNG, without filters."""
    with open(path, "rb") as file:
        data = file.read()
    packed, at = b"", 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw, before, pixels = zlib.decompress(packed), bytes(4 * 32), b""
    for y in range(32):
        kind, row = raw[129 * y], bytearray(raw[129 * y + 1:129 * (y + 1)])
        for x in range(128):
            a, b, c = (row[x - 4] if x > 3 else 0), before[x], (before[x - 4] if x > 3 else 0)
            nearest = min((a, b, c), key=lambda value: abs(a + b - c - value))
            row[x] = (row[x] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        before, pixels = row, pixels + row
    return pixels

info = json.load(open(sys.argv[1] + "/info"))
assert info["views"]["train"] == 60 and info["views"]["test"] == 12, info
assert info["training_space"]["aabb_scale"] == 8 and "background" not in info and not info["problems"], info
images = [bytes_of(f"{sys.argv[1]}/room/train/r_{i}.png") for i in range(60)]
assert all(min(image[3::4]) == 255 for image in images), "alpha"
# The walls' means, from the upper rows of views from low cameras, differ by the gain.
means = [statistics.mean(image[:128 * 6]) for image in images[:20]]
assert max(means) > 1.5 * min(means), means
CHECK

[ "$failures" = 0 ] || exit 1
