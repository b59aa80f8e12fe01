#!/bin/sh
# Trains the outdoor scene of tools/make_scene: vknerf info finds its sky, the training has it by default, and the upper
# half of a panorama is the true sky. The other scenes show no sky.
set -u
make_scene=${VKNERF_BUILD_DIR:?}/tools/make_scene/make_scene
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
vknerf=${VKNERF_BIN:?}
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

"$make_scene" --outdoors --size 40 "$work/outdoors" 2>/dev/null || fail "make_scene --outdoors"
"$make_scene" --outdoors --size 40 --check "$work/outdoors" 2>/dev/null || fail "make_scene --outdoors --check"
"$make_scene" --outdoors --room "$work/both" 2>/dev/null && fail "--outdoors --room is accepted"
"$make_scene" --room --size 32 "$work/room" 2>/dev/null || fail "make_scene --room"
"$vknerf" info "$work/outdoors" --json >"$work/outdoors.json" || fail "info"
grep -q '"sky":.*images show a sky: 9[0-9] % of what' "$work/outdoors.json" || fail "the sky is not found"
for scene in "$work/room" assets/demo; do
    "$vknerf" info "$scene" --json >"$work/other.json" || fail "info $scene"
    grep -q '"sky"' "$work/other.json" && fail "a sky is found in $scene"
done

"$vknerf" train "$work/outdoors" --out "$work/run" --steps 192 --seed 1 --quiet --set batch.samples=8192 ||
    fail "train"
grep -q '"background":[[:space:]]*"sky"' "$work/run/summary.json" || fail "the evaluation shows no sky"
"$vknerf" render "$work/run" --orbit 1 --lens equirectangular --width 96 --height 48 --out "$work/panorama" \
    --maps rgb,opacity --quiet >/dev/null || fail "render"
"$vknerf" render "$work/run" --orbit 1 --lens equirectangular --width 96 --height 48 --out "$work/white" \
    --background white --quiet >/dev/null || fail "render on white"
python3 - "$work" <<'CHECK' || fail "the sky"
import math, struct, sys, zlib

def read(path):
    """Width, channels and rows of an 8-bit PNG."""
    data, packed, at = open(path, "rb").read(), b"", 8
    width, height, _, color = struct.unpack(">IIBB", data[16:26])
    channels = {0: 1, 2: 3, 6: 4}[color]
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        packed += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    raw, stride, rows = zlib.decompress(packed), channels * width, [bytes(channels * width)]
    for y in range(height):
        kind, row = raw[(stride + 1) * y], bytearray(raw[(stride + 1) * y + 1:(stride + 1) * (y + 1)])
        for x in range(stride):
            a, b = row[x - channels] if x >= channels else 0, rows[-1][x]
            c = rows[-1][x - channels] if x >= channels else 0
            nearest = min((a, b, c), key=lambda value: abs(a + b - c - value))
            row[x] = (row[x] + (0, a, b, (a + b) // 2, nearest)[kind]) % 256
        rows.append(bytes(row))
    return width, channels, rows[1:]

def pixel(image, x, y):
    width, channels, rows = image
    return rows[y][channels * x:channels * x + channels][:3]

work = sys.argv[1]
panorama, opacity = read(work + "/panorama/frame_0000.png"), read(work + "/panorama/frame_0000_opacity.png")
white, sky = read(work + "/white/frame_0000.png"), read(work + "/outdoors/sky.png")
size = sky[0]

def error(turn):
    """Mean squared error of rows from the zenith to 18 degrees above the horizon, turned to the left."""
    squares = 0
    for y in range(19):
        for x in range(96):
            true = pixel(sky, (size - 1 - x * size // 96 + turn) % size, (2 * y + 1) * size // 48)
            squares += sum((p - q) ** 2 for p, q in zip(pixel(panorama, x, y), true))
    return squares / (19 * 96 * 3 * 255 ** 2)

psnr = -10 * math.log10(min(error(turn) for turn in range(size)))
above = [pixel(opacity, x, y)[0] / 255 for y in range(19) for x in range(96)]
print(f"sky: {psnr:.2f} dB, mean opacity {sum(above) / len(above):.3f}")
assert psnr > 24, psnr
assert sum(above) / len(above) < 0.1, "walls in the sky"
assert min(min(pixel(white, x, 2)) for x in range(96)) > 200, "the sky is behind --background white"
CHECK

[ "$failures" = 0 ] || exit 1
