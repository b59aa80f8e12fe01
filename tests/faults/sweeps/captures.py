"""Tests hostile COLMAP, LLFF, NSVF and PLY files."""
import math
import os
import shutil
import struct

import faults

HOLDS = """vknerf info takes the capture or refuses it in one line, within seconds; nothing crashes or hangs. What
training measures of a capture, vknerf reads back from the checkpoint."""
SHORT = 4
SECONDS = 30.0
MOST = 2**64 - 1
COUNTS = (MOST, 2**63, 2**32, 10**9, 0)
ODD = (math.nan, math.inf, 1e308, 0.0)
SHAPES = ("(18446744073709551615, 17)", "(1085102592571150096, 17)", "(2305843009213693952, 17)", "(3, 0)", "(0, 17)",
          "(3,)", "(3, 17, 1)", "(-3, 17)", "(3, 18446744073709551616)", "(4294967296, 4294967296)")
KINDS = ("|O", "<f2", "<i8", "<c16", "|V10", "<U5", "", ">f8")
# Far bounds in poses_bounds.npy; scales of the largest ones were once too small to be read back.
BOUNDS = (1e-30, 1e-6, 1e3, 1e6, 1e9, 1.2e10, 1.3e10, 1e11, 1e15, 1e30, 1e38)


# ---- COLMAP ----------------------------------------------------------------------------------------------

def camera(width=24, height=24, model=1, numbers=(30, 30, 12, 12)):
    """Returns cameras.bin of one camera."""
    return struct.pack("<QiiQQ4d", 1, 1, model, width, height, *numbers)


def image(number, name, turn=(1, 0, 0, 0), shift=(0, 0, 3), points=0):
    """Returns an entry of images.bin."""
    return struct.pack("<i7di", number, *turn, *shift, 1) + name + b"\0" + struct.pack("<Q", points)


def images(first):
    """Returns images.bin of one given image and a valid one."""
    return struct.pack("<Q", 2) + first + image(2, b"b.png", (0.9, 0.1, 0, 0), (1, 0, 3))


def point(x=0.0, track=0):
    """Returns points3D.bin of one point."""
    return struct.pack("<QQ3d3BdQ", 1, 1, x, 0, 0, 1, 2, 3, 0.5, track)


WHOLE = {"cameras": camera(), "images": images(image(1, b"a.png")), "points3D": point()}


def damaged_models():
    """Returns each file truncated, extended, or with a wrong count at its beginning."""
    found = {"whole": {}, "empty": {name: b"" for name in WHOLE}, "no points": {"points3D": None},
             "no camera": {"cameras": struct.pack("<Q", 0)}}
    for name, data in WHOLE.items():
        for count in COUNTS:
            found[f"{name} count {count}"] = {name: struct.pack("<Q", count) + data[8:]}
        for size in (1, 7, 8, 9, 20):
            found[f"{name} cut at {size}"] = {name: data[:size]}
        found[f"{name} longer"] = {name: data + b"x" * 100}
    return found


def odd_models():
    """Returns files of valid form with impossible values."""
    found = {}
    for width, height in ((0, 0), (MOST, MOST), (2**32, 2**32), (2**31, 1), (16385, 10), (25, 25)):
        found[f"camera {width}x{height}"] = {"cameras": camera(width, height)}
    for model in (-1, 0, 2, 5, 6, 7, 11, 2**31 - 1):
        found[f"model {model}"] = {"cameras": camera(model=model)}
    for value in (0.0, -1.0, math.nan, math.inf, 1e308, 5e-324):
        found[f"focal {value}"] = {"cameras": camera(numbers=(value, 30, 12, 12))}
        found[f"center {value}"] = {"cameras": camera(numbers=(30, 30, value, 12))}
    for value in ODD:
        found[f"turn {value}"] = {"images": images(image(1, b"a.png", turn=(value,) * 4))}
        found[f"shift {value}"] = {"images": images(image(1, b"a.png", shift=(value, 0, 3)))}
        found[f"point {value}"] = {"points3D": point(value)}
    for count in (MOST, 2**60, 2**61 + 1, 10**9):
        found[f"points of an image {count}"] = {"images": images(image(1, b"a.png", points=count))}
        found[f"track {count}"] = {"points3D": point(track=count)}
    for name in (b"../../../../etc/passwd", b"/etc/passwd", b"x" * 100000, b"\xff\xfe", b"\n\x1b[31m", b"", b".", b"..",
                 b"a.png/../../images/a.png", b"b.png"):
        found[f"name {name[:20]!r}"] = {"images": images(image(1, name))}
    return found


def write_model(capture, files, ending=".bin"):
    """Writes a model in which these files replace valid ones; None: missing."""
    model = os.path.join(capture, "sparse", "0")
    os.makedirs(model)
    for name, data in {**WHOLE, **files}.items():
        if data is not None:
            faults.write_file(os.path.join(model, name + ending), data)


TEXTS = {"cameras": b"1 PINHOLE 24 24 30 30 12 12\n", "points3D": b"1 0 0 0 1 2 3 .5\n",
         "images": b"1 1 0 0 0 0 0 3 1 a.png\n\n2 .9 .1 0 0 1 0 3 1 b.png\n\n"}


def text_models():
    """Returns models as text."""
    cameras = {"long line": b"1 PINHOLE " + b"1 " * 10**6 + b"\n", "nan": b"1 PINHOLE 24 24 nan inf 12 12\n",
               "hexadecimal": b"1 PINHOLE 0x18 24 30 30 12 12\n", "negative": b"1 PINHOLE -24 24 30 30 12 12\n",
               "too large": b"1 PINHOLE 99999999999999999999 24 30 30 12 12\n",
               "no line end": b"1 PINHOLE 24 24 30 30 12 12", "crlf": b"1 PINHOLE 24 24 30 30 12 12\r\n",
               "comments": b"#\n" * 10**6 + TEXTS["cameras"]}
    return {"text": TEXTS, **{"text, " + name: {**TEXTS, "cameras": text} for name, text in cameras.items()},
            "text, a zero byte": {**TEXTS, "images": b"1 1 0 0 0 0 0 3 1 a\0.png\n\n"},
            "text, a million points": {**TEXTS, "points3D": TEXTS["points3D"] * 10**6}}


# ---- LLFF ------------------------------------------------------------------------------------------------

def npy(header=None, data=None, version=1, length=None):
    """Returns poses_bounds.npy of three poses, or with the given parts instead."""
    text = (header or "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 17), }").encode()
    if data is None:
        data = poses(5.0)
    size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def poses(far):
    """Returns rows of three cameras side by side, which see a scene between 1 and `far`."""
    rows = [[1, 0, 0, 0.1 * i, 24, 0, 1, 0, 0, 24, 0, 0, 1, 3, 30, far / 5, far * (1 + 0.1 * i)] for i in range(3)]
    return struct.pack("<51d", *[value for row in rows for value in row])


def npy_files():
    """Returns poses_bounds.npy in many variants."""
    found = {"npy": npy(), "npy length": npy(length=65535), "npy 2 length": npy(version=2, length=2**32 - 1),
             "npy version 9": npy(version=9), "npy cut": b"\x93NUMPY\x01", "npy no header": npy("x" * 100),
             "npy braces": npy("{" * 60000),
             "npy a zero byte": npy("{'descr': '<f8'\0, 'fortran_order': False, 'shape': (3, 17), }")}
    for order in ("False", "True"):
        for shape in SHAPES:
            header = f"{{'descr': '<f8', 'fortran_order': {order}, 'shape': {shape}, }}"
            found[f"npy {order} {shape}"] = npy(header)
    for kind in KINDS:
        found[f"npy kind {kind}"] = npy(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (3, 17), }}")
    for value in (*ODD, -1e308, 5e-324):
        found[f"npy all {value}"] = npy(data=struct.pack("<51d", *[value] * 51))
    return found


# ---- NSVF ------------------------------------------------------------------------------------------------

POSE = b"1 0 0 %d\n0 1 0 0\n0 0 1 -3\n0 0 0 1\n"
FOLDER = {"intrinsics.txt": b"30 0 12 0\n0 30 12 0\n0 0 1 0\n0 0 0 1\n", "bbox.txt": b"-1 -1 -1 1 1 1 0.1\n",
          "pose/0_a.txt": POSE % 0, "pose/0_b.txt": POSE % 1}


def nsvf_folders():
    """Returns the files of NSVF folders, one of them damaged or odd."""
    found = {"nsvf": FOLDER, "nsvf first line": {**FOLDER, "intrinsics.txt": b"30 12 12 0\n0 0 0\n0\n1\n24 24\n"}}
    texts = {"empty": b"", "a zero byte": b"1 2\0 3\n", "a long number": b"1" * 10**4, "large": b"# \n" * 10**5,
             "1e999": b"1e999 " * 16, "a million numbers": b"1 " * 10**6, "comments": b"#" * 10**4,
             "utf-16": "1 0".encode("utf-16"),
             **{f"all {value}": f"{value} ".encode() * 16 for value in (*ODD, -1e308, 5e-324, 1e9)}}
    for file in ("intrinsics.txt", "bbox.txt", "pose/0_a.txt"):
        found.update({f"nsvf {file} {name}": {**FOLDER, file: text} for name, text in texts.items()})
        found[f"nsvf {file} cut"] = {**FOLDER, file: FOLDER[file][:-5]}
    for value in (5e-324, 1e-9, 1e8, 9.9e8):
        found[f"nsvf box of {value}"] = {**FOLDER, "bbox.txt": f"0 0 0 {value} {value} {value} 0\n".encode()}
    return found


# ---- PLY -------------------------------------------------------------------------------------------------

BINARY, ASCII = b"binary_little_endian", b"ascii"


def ply(form, count, body, more=b"", before=b""):
    """Returns a PLY file of `count` points, with more properties or an element before them."""
    return (b"ply\nformat %s 1.0\n%selement vertex %d\nproperty float x\nproperty float y\nproperty float z\n%s"
            b"end_header\n" % (form, before, count, more)) + body


def ply_files():
    """Returns points in many variants."""
    found = {"ply": ply(BINARY, 2, struct.pack("<6f", *range(6))), "ply empty": b"", "ply cut": ply(BINARY, 100, bytes(24)),
             "ply no end": b"ply\n" * 100000, "ply 100000 properties": ply(BINARY, 1, b"", b"property float a\n" * 10**5),
             "ply element first": ply(BINARY, 1, b"", before=b"element face 1000000000000\nproperty list uchar int i\n")}
    for count in (MOST, 2**62, 2**32, 10**12, 2**64, 2**70):
        found[f"ply count {count}"] = ply(BINARY, count, bytes(24))
        found[f"ply text count {count}"] = ply(ASCII, count, b"1 2 3\n")
    for name, kind, body in (("4294967295", b"uint", b"\xff" * 4), ("-1", b"int", b"\xff" * 4),
                             ("nan", b"float", struct.pack("<f", math.nan))):
        found[f"ply list {name}"] = ply(BINARY, 1, bytes(12) + body + bytes(40), b"property list %s int i\n" % kind)
    for value in (math.nan, math.inf, 3e38):
        found[f"ply all {value}"] = ply(BINARY, 2, struct.pack("<6f", *[value] * 6))
    for name, body in (("long number", b"1" * 10**6 + b" 2 3\n"), ("1e999", b"1e999 2 3\n"), ("no line end", b"1 2 3"),
                       ("a zero byte", b"1 2\0 3\n")):
        found[f"ply text {name}"] = ply(ASCII, 1, body)
    return found


# ---- the sweep -------------------------------------------------------------------------------------------

def cases(_shared):
    colmap = [["colmap", name] for name in (*damaged_models(), *odd_models())]
    text = [["text", name] for name in text_models()]
    llff = [["llff", name] for name in npy_files()] + [["bounds", far] for far in BOUNDS]
    nsvf = [["nsvf", name] for name in nsvf_folders()]
    return colmap + text + llff + nsvf + [["ply", name] for name in ply_files()]


def make(kind, name, sandbox):
    """Makes the capture of a case in the sandbox, and returns its folder."""
    capture = sandbox.path("capture")
    if kind == "ply":
        shutil.copytree(sandbox.scene, capture)
        transforms = faults.read_json(capture + "/transforms_train.json")
        faults.write_json(capture + "/transforms_train.json", {**transforms, "ply_file_path": "p.ply"})
        faults.write_file(capture + "/p.ply", ply_files()[name])
        return capture
    if kind == "nsvf":
        os.makedirs(capture + "/rgb")
        os.makedirs(capture + "/pose")
        for i, picture in enumerate(("0_a.png", "0_b.png")):
            shutil.copy(f"{sandbox.scene}/train/r_{i}.png", f"{capture}/rgb/{picture}")
        for file, data in nsvf_folders()[name].items():
            faults.write_file(f"{capture}/{file}", data)
        return capture
    os.makedirs(capture + "/images")
    for i, picture in enumerate(("a.png", "b.png", "c.png") if kind in ("llff", "bounds") else ("a.png", "b.png")):
        shutil.copy(f"{sandbox.scene}/train/r_{i}.png", f"{capture}/images/{picture}")
    if kind in ("llff", "bounds"):
        data = npy(data=poses(name)) if kind == "bounds" else npy_files()[name]
        faults.write_file(capture + "/poses_bounds.npy", data)
    elif kind == "text":
        write_model(capture, text_models()[name], ".txt")
    else:
        write_model(capture, {**damaged_models(), **odd_models()}[name])
    return capture


def try_measured(capture, sandbox):
    """Returns problems of a training whose space is measured: its checkpoint can be read."""
    run = sandbox.path("run")
    ended = sandbox.run("train", capture, *faults.model_options(), "--steps", 16, "--quiet", "--out", run)
    problems = faults.check_refused(ended)
    if not problems and ended.code == faults.DONE:
        problems = faults.prefixed("eval", faults.check_ended(sandbox.run("eval", run), (faults.DONE,)))
        problems += faults.prefixed("resume", faults.check_ended(sandbox.resume(run, 32), (faults.DONE,)))
    return ended, problems


def try_case(case, sandbox):
    kind, name = case
    capture = make(kind, name, sandbox)
    if kind == "bounds":
        ended, problems = try_measured(capture, sandbox)
    else:
        ended = sandbox.run("info", capture, timeout=SECONDS)
        problems = faults.check_refused(ended)
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()})
