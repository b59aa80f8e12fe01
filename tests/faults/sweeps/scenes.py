"""Tests hostile transforms.json files and pictures."""
import functools
import json
import os
import struct
import zlib

import faults

HOLDS = """vknerf info accepts the scene or refuses it in one line, within seconds and a gigabyte; nothing crashes or
hangs, and no file outside the scene is shown."""
SHORT = 6
SECONDS, KIB = 30.0, 1 << 20
ANGLE, POSITION = '"camera_angle_x": 0.69', 123456.75
NUMBERS = ("1e400", "-1e400", "NaN", "Infinity", "1e308", "5e-324", "1e38", "1e30", "-0.0", "1e-300", "0", "null", '"x"',
           "true", "[]", "9" * 400, "0x10", "1e", "01", ".5")
FACTORS = (1e-30, 1e-45, 1e8, 1e18, 1e37, 3.4e38, 1e300)
KEYS = (("aabb_scale", 128), ("aabb_scale", 129), ("aabb_scale", 1e9), ("k1", 1e30), ("k1", -1e5), ("p1", 1e9),
        ("fl_x", 1e-30), ("fl_x", 1e30), ("w", 1e9), ("w", -5), ("w", 2**32 + 24), ("h", 0.5), ("cx", 1e20),
        ("offset", [1e9, 0, 0]), ("offset", [1, 2]), ("camera_model", "X" * 100000), ("is_fisheye", "yes"))
PATHS = ("/etc/passwd", "../" * 6 + "etc/passwd", "../" * 2000 + "etc/passwd", "/dev/zero", "/dev/stdin",
         "/proc/self/mem", "/dev/random", "x" * 5000, "a/" * 3000, ".", "..", "/", "", " ", "\n", "%s%s%s%n", "~/x",
         "file:///etc/passwd", "train/r_0\r\nvknerf: done", "\x1b[31mred\x1b[0m", "train")


def base_scene():
    """Returns the transforms of the tiny scene."""
    frames = [{"file_path": f"./train/r_{i}", "transform_matrix": faults.ball_pose(0.5236 * i, 0.5)} for i in range(12)]
    return {"camera_angle_x": 0.69, "frames": frames}


def changed(change):
    """Returns transforms with a change applied to a copy."""
    scene = base_scene()
    change(scene)
    return scene


def scaled(factor, rows, columns):
    """Returns transforms whose poses are multiplied in some rows and columns."""
    scene = base_scene()
    for frame in scene["frames"]:
        for row in rows:
            for column in columns:
                frame["transform_matrix"][row][column] *= factor
    return scene


# ---- texts -----------------------------------------------------------------------------------------------

def numbers_of():
    """Returns invalid, too large and too small numbers, one at a time."""
    found, text = {}, json.dumps(base_scene())

    def set_position(scene):
        scene["frames"][3]["transform_matrix"][1][3] = POSITION

    posed = json.dumps(changed(set_position))
    for number in NUMBERS:
        found[f"angle {number[:12]}"] = text.replace(ANGLE, ANGLE.split()[0] + " " + number)
        found[f"pose {number[:12]}"] = posed.replace(str(POSITION), number)
    for factor in FACTORS:
        found[f"positions times {factor:g}"] = scaled(factor, range(3), (3,))
        found[f"rotations times {factor:g}"] = scaled(factor, range(3), range(3))
        found[f"scale {factor:g}"] = {**base_scene(), "scale": factor}
    for key, value in KEYS:
        found[f"{key} {str(value)[:20]}"] = {**base_scene(), key: value}
    return found


def structures_of():
    """Returns objects of other shapes than a scene's, and invalid JSON."""
    base, text = base_scene(), json.dumps(base_scene())
    name = text.replace("./train/r_0", "train/r_0")
    matrices = {"3x4": [[1, 0, 0, 0]] * 3, "ragged": [[1], [2, 3], [], [4]], "zero": [[0] * 4] * 4,
                "large": [[0] * 1000] * 1000}
    found = {f"matrix {size}": changed(lambda scene, m=m: scene["frames"][0].update(transform_matrix=m))
             for size, m in matrices.items()}
    return {**found,
            "no frames": {**base, "frames": []}, "frames missing": {"camera_angle_x": 1},
            "frames an object": {**base, "frames": {"a": 1}}, "frames null": {**base, "frames": [None] * 5},
            "deep": "[" * 100000, "deep but whole": '{"frames":' + "[" * 63 + "]" * 63 + "}", "empty": b"",
            "zero bytes": bytes(1000), "byte order mark": b"\xef\xbb\xbf" + text.encode(),
            "utf-16": text.encode("utf-16"), "keys twice": text[:-1] + ', "camera_angle_x": 99, "frames": []}',
            "trailing brace": text + "}", "cut": text[:3000],
            "latin-1 name": name.encode().replace(b"train/r_0", b"\xff\xfe\x80"),
            "zero byte in a name": name.replace("train/r_0", "train/r_0\\u0000.png"),
            "lone surrogate": name.replace("train/r_0", "\\ud800")}


def paths_of():
    """Returns names of files outside the scene, of other things than files, and invalid names."""
    found = {}
    for path in PATHS:
        for key in ("file_path", "mask_path"):
            found[f"{key} {path[:30]!r}"] = changed(lambda scene, k=key, p=path: scene["frames"][0].update({k: p}))
        found[f"ply_file_path {path[:30]!r}"] = {**base_scene(), "ply_file_path": path}
    return found


def sizes_of():
    """Returns texts of many megabytes."""
    base = base_scene()
    return {"64 MB of numbers": '{"frames":[' + "1," * (32 * 10**6 - 100) + "1]}",
            "64 MB of objects": '{"frames":[' + "{}," * (21 * 10**6 - 100) + "{}]}",
            "a million keys": "{" + ",".join(f'"k{i}":1' for i in range(10**6)) + "," + json.dumps(base)[1:],
            "a name of 60 MB": {**base, "frames": [{**base["frames"][0], "file_path": "x" * 60_000_000}]},
            "100000 frames": {**base, "frames": base["frames"] * 8400},
            "a million file names": {**base, "train_filenames": ["./train/r_0"] * 10**6}}


# ---- pictures --------------------------------------------------------------------------------------------

def bomb(size):
    """Returns a PNG of zero rows, compressed to a thousandth."""
    packer = zlib.compressobj(9)
    rows = [packer.compress(bytes((1 + 4 * size) * 64)) for _ in range(size // 64)]
    return faults.png_file(size, size, b"".join(rows) + packer.flush())


def pictures_of():
    """Returns files to replace a picture; functions if they are large."""
    rows, png = zlib.compress(bytes(100)), faults.png_file
    header = faults.png_chunk(b"IHDR", struct.pack(">IIBBBBB", 24, 24, 8, 6, 0, 0, 0))
    jpeg = b"\xff\xd8\xff\xc0\0\x11\x08" + b"\xff" * 4 + b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01\xff\xd9"
    return {"65535x65535": png(65535, 65535, rows), "2^31": png(2**31 - 1, 2**31 - 1, rows), "0x0": png(0, 0, rows),
            "16384x16384, cut": png(16384, 16384, rows), "bomb": lambda: bomb(16384),
            "wrong checksum": png(24, 24, rows)[:-4] + b"abcd", "no end": png(24, 24, rows)[:-12],
            "depth 3": png(24, 24, rows, 3, 6), "color 7": png(24, 24, rows, 8, 7), "no palette": png(24, 24, rows, 8, 3),
            "cut stream": png(24, 24, zlib.compress(bytes(24 * 97))[:20]), "no stream": png(24, 24, b"\xff" * 50),
            "too many rows": png(24, 24, zlib.compress(bytes(10**7))), "gif": b"GIF89a" + bytes(100), "empty": b"",
            "hdr, cut": b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 9 +X 9\n\2\2\0\x09", "bmp, cut": b"BM" + bytes(20),
            "webp of zeros": b"RIFF\x20\0\0\0WEBPVP8 " + bytes(30), "tiff of ones": b"II*\0\x08\0\0\0" + b"\xff" * 40,
            "html": b"<html>", "jpeg begins": b"\xff\xd8\xff", "jpeg ends": b"\xff\xd8\xff\xd9", "jpeg 65535": jpeg,
            "a million chunks": lambda: b"\x89PNG\r\n\x1a\n" + header + faults.png_chunk(b"teXt", b"") * 10**6}


# ---- the sweep -------------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def texts():
    """Returns all transforms but the largest, by name."""
    return {**numbers_of(), **structures_of(), **paths_of()}


def cases(_shared):
    large = ["64 MB of numbers", "64 MB of objects", "a million keys", "a name of 60 MB", "100000 frames",
             "a million file names"]
    pictures = [["picture", name, ending] for name in pictures_of() for ending in (".png", "")]
    return [["text", name, ""] for name in texts()] + [["large", name, ""] for name in large] + pictures


def pick(rnd, found, count):
    """Omits most of the largest, which take seconds."""
    slow = ("bomb", "a million chunks")
    return faults.draw(rnd, [case for case in found if case[0] != "large" and case[1] not in slow], count)


def make(kind, name, ending, sandbox):
    """Makes the scene of a case in the sandbox, and returns its folder."""
    scene = sandbox.path("scene")
    os.makedirs(scene)
    for split in ("train", "test"):
        os.symlink(os.path.join(sandbox.scene, split), os.path.join(scene, split))
    text = {"text": texts, "large": sizes_of}[kind]()[name] if kind != "picture" else None
    if kind == "picture":
        picture = pictures_of()[name]
        faults.write_file(os.path.join(scene, "evil" + ending), picture() if callable(picture) else picture)
        text = changed(lambda scene: scene["frames"][0].update(file_path="evil"))
    if isinstance(text, dict):
        text = json.dumps(text)
    faults.write_file(os.path.join(scene, "transforms_train.json"), text if isinstance(text, bytes) else text.encode())
    return scene


def try_case(case, sandbox):
    ended = sandbox.run("info", make(*case, sandbox), timeout=SECONDS)
    # A text too large for memory is no bad input.
    codes = (faults.DONE, faults.BAD_INPUT) + ((faults.FAILED,) if "/proc/" in case[1] else ())
    problems = faults.check_refused(ended, codes)
    if ended.memory > KIB:
        problems.append(f"takes {ended.memory // 1024} MiB of memory")
    if "root:" in ended.out + ended.err:
        problems.append("shows a file outside of the scene")
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line(), "mebibytes": ended.memory // 1024})
