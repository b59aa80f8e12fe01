"""Tests checkpoints that are truncated, forged, mislabelled, or hold values that training never writes."""
import copy
import functools
import json
import math
import random
import struct

import faults

HOLDS = """eval, train --resume, train --init, render and export take the file or refuse it in one line, within seconds;
nothing crashes or hangs; weights that are not finite are refused, and whatever training makes of the rest is finite."""
SHORT = 6
SECONDS = 30.0
STEPS = faults.STEPS + 16
RANDOM_CASES = 500
NAN, INFINITY = struct.pack("<f", math.nan), struct.pack("<f", math.inf)
FILLS = {"nan": NAN, "inf": INFINITY, "-inf": struct.pack("<f", -math.inf), "1e38": struct.pack("<f", 1e38),
         "ff": b"\xff" * 4, "denormal": struct.pack("<I", 1), "-1": struct.pack("<f", -1), "0": bytes(4)}
TENSORS = ("params", "average", "occupancy", "moment1", "moment2", "counts", "state")
WEIGHTS = ("params", "average")
SHAPES = ([2**32, 2**32], [2**62, 2], [2**53], [0], [], [-1], [1.5], [1] * 5, "x", None, [1e300])
OFFSETS = ([0, 0], [5, 3], [0, 2**53], [-4, 4], [0], [0, 8, 5], "x", [1e300, 1e301], [2**63, 2**63 + 4], [0, 8])
SETTINGS = (1e308, -1, 0, None, "x", [], {}, True, 2**32, 2**31, 4294967296 * 3 + 16, 1e-300, 0.5)
SCENES = ("/nonexistent", "/etc/passwd", "", "/dev/zero", "../..", "x" * 100000, "\x1b[31m\n%s%n")
GONE = object()
# The checksum covers the whole file, with zeros for its own eight digits.
CHECKSUM = b'"vknerf.crc32c":"'


class Original:
    """A valid checkpoint in parts, and ways to change one of them."""

    def __init__(self, path):
        self.bytes = faults.read_file(path)
        self.size, = struct.unpack("<Q", self.bytes[:8])
        self.header = json.loads(self.bytes[8:8 + self.size])
        self.data = self.bytes[8 + self.size:]
        self.settings = json.loads(self.header["__metadata__"]["vknerf.config"])

    def file(self, header=None, data=None, size=None):
        """Returns a file of this header (an object or text) and data; its size field says `size`."""
        header = self.header if header is None else header
        data = self.data if data is None else data
        text = header if isinstance(header, bytes) else compact(header)
        return signed(struct.pack("<Q", len(text) if size is None else size) + text + data)

    def with_value(self, path, value):
        """Returns a file whose header has another value at the path of keys."""
        return self.file(put(self.header, path, value))

    def with_setting(self, path, value):
        """Returns a file whose configuration has another value at the path of keys."""
        return self.with_value(("__metadata__", "vknerf.config"), json.dumps(put(self.settings, path, value)))

    def filled(self, tensor, word):
        """Returns a file with one word all over a tensor."""
        begin, end = self.header[tensor]["data_offsets"]
        return self.file(data=self.data[:begin] + word * ((end - begin) // 4) + self.data[end:])

    def with_word(self, tensor, index, word):
        """Returns a file with another word in a tensor."""
        begin = self.header[tensor]["data_offsets"][0] + 4 * index
        return self.file(data=self.data[:begin] + struct.pack("<I", word) + self.data[begin + 4:])

    def words(self, tensor):
        begin, end = self.header[tensor]["data_offsets"]
        return (end - begin) // 4


def compact(header):
    """Returns the text of a header as vknerf writes it."""
    return json.dumps(header, separators=(",", ":")).encode()


@functools.lru_cache(maxsize=None)
def crc_table():
    """Returns CRC-32C of each byte."""
    table = list(range(256))
    for _ in range(8):
        table = [value >> 1 ^ (0x82f63b78 if value & 1 else 0) for value in table]
    return table


def crc32c(data):
    table, crc = crc_table(), 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def signed(file):
    """Returns the file with a valid checksum, so that its content is tested and not only the checksum."""
    sandbox = file.find(CHECKSUM)
    if sandbox < 0:
        return file
    begin, end = sandbox + len(CHECKSUM), sandbox + len(CHECKSUM) + 8
    return file[:begin] + b"%08x" % crc32c(file[:begin] + b"0" * 8 + file[end:]) + file[end:]


def put(value, path, new):
    """Returns a copy of a JSON value with another one at the path; GONE removes it."""
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    if new is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def leaves(value, path=()):
    """Returns the paths of all values in an object that are not objects."""
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from leaves(inner, path + (key,))
        else:
            yield path + (key,)


# ---- the files -------------------------------------------------------------------------------------------

def frames_of(original):
    """Returns files with damaged size fields, ends and headers."""
    whole, size = len(original.bytes), original.size
    found = {}
    for claim in (2**63, 2**64 - 1, 2**64 - 8, 2**32, size + 1, size - 1, 0, 1, whole, whole - 8, 16 << 20):
        found[f"length {claim}"] = lambda claim=claim: original.file(size=claim)
    for end in (0, 7, 8, 9, 100, 8 + size - 1, 8 + size, whole - 1, whole // 2):
        found[f"cut at {end}"] = lambda end=end: original.bytes[:end]
    for name, header in {"an empty object": {}, "an array": b"[]", "deep": b'{"a":' + b"[" * 100000,
                         "a zero byte": compact(original.header).replace(b"F32", b"F\x0032")}.items():
        found["header: " + name] = lambda header=header: original.file(header)
    found["more data"] = lambda: original.bytes + bytes(10**6)
    text = compact(original.header)
    found["a tensor twice"] = lambda: original.file(
        text[:-1] + b',"params":' + compact(original.header["params"]) + b"}")
    empty = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    found["a name with controls"] = lambda: original.file({**original.header, "evil\n\x1b[31m": empty})
    found["100000 tensors"] = lambda: original.file({**original.header, **{f"t{i}": empty for i in range(100000)}})
    return found


def labels_of(original):
    """Returns headers with wrong descriptions of each tensor."""
    found = {}
    for tensor in TENSORS:
        whole = [original.words(tensor)]
        found[f"{tensor} gone"] = lambda t=tensor: original.with_value((t,), GONE)
        for kind in ("I32", "U32", "F32", "F16", 5):
            found[f"{tensor} dtype {kind}"] = lambda t=tensor, kind=kind: original.with_value((t, "dtype"), kind)
        for shape in (*SHAPES, whole + [1], [1, 1, 1] + whole, [1, 1, 1, 1] + whole):
            found[f"{tensor} shape {shape}"] = lambda t=tensor, shape=shape: original.with_value((t, "shape"), shape)
        for offsets in OFFSETS:
            found[f"{tensor} offsets {offsets}"] = lambda t=tensor, o=offsets: original.with_value(
                (t, "data_offsets"), o)
    return found


def metadata_of(original):
    """Returns files with damaged metadata and configurations."""
    found = {}
    for key in original.header["__metadata__"]:
        for name, value in (("gone", GONE), ("5", 5), ("empty", "")):
            found[f"{key} {name}"] = lambda k=key, v=value: original.with_value(("__metadata__", k), v)
    for key, values in (("vknerf.seconds", ("inf", "nan", "-1", "1e999", "1e308", "0x10", "abc", "5 ")),
                        ("vknerf.step", ("18446744073709551615", "-1", "1e9", "x")), ("vknerf.scene", SCENES)):
        for value in values:
            found[f"{key} {value[:20]!r}"] = lambda k=key, v=value: original.with_value(("__metadata__", k), v)
    rnd = random.Random(7)
    for path in leaves(original.settings):
        for value in rnd.sample(SETTINGS, 2):
            found[f"{'.'.join(path)} {value}"] = lambda p=path, v=value: original.with_setting(p, v)
    for name, path, value in (("unknown", ("unknown",), 1), ("huge grid", ("grid", "log2_entries"), 24),
                              ("huge batch", ("batch", "samples"), 16777216)):
        found[name] = lambda p=path, v=value: original.with_setting(p, v)
    return found


def contents_of(original):
    """Returns tensors with unusual values, under a valid checksum."""
    found = {}
    for tensor in TENSORS:
        for name, word in FILLS.items():
            found[f"{tensor} all {name}"] = lambda t=tensor, w=word: original.filled(t, w)
    for index in range(original.words("state")):
        for word in (0xffffffff, 0x7fc00000, 0x7fffffff, 0):
            found[f"state[{index}] {word:#x}"] = lambda i=index, w=word: original.with_word("state", i, w)
    return found


def random_of(original):
    """Returns random bytes of the header and words of the data."""
    found = {}
    for number in range(RANDOM_CASES):
        found[f"random {number}"] = lambda number=number: random_file(original, random.Random(number))
    return found


def random_file(original, rnd):
    if rnd.random() < 0.3:
        tensor = rnd.choice(TENSORS)
        return original.with_word(tensor, rnd.randrange(original.words(tensor)), rnd.getrandbits(32))
    changed = bytearray(original.bytes)
    for _ in range(rnd.choice((1, 1, 3, 20))):
        changed[rnd.randrange(8 + original.size)] = rnd.choice(b'0123456789"{}[],:.-eE\\ x\0\xff')
    return signed(bytes(changed)) if rnd.random() < 0.7 else bytes(changed)


@functools.lru_cache(maxsize=None)
def files_of(run):
    """Returns names of files and functions that make them."""
    original = Original(run + "/checkpoint.safetensors")
    parts = (frames_of, labels_of, metadata_of, contents_of, random_of)
    return {name: make for part in parts for name, make in part(original).items()}


# ---- the sweep -------------------------------------------------------------------------------------------

def cases(shared):
    found = []
    for name in files_of(faults.model_run(shared)):
        found.append([name, "resume"])
        if " all " in name and name.split()[0] in (*WEIGHTS, "occupancy"):
            found += [[name, command] for command in ("eval", "init", "mesh", "points", "render")]
        elif hash_of(name) % 3 == 0:
            found.append([name, "eval"])
    return found


def hash_of(name):
    """Returns a number that is the same in every process."""
    return sum(name.encode()) if name else 0


def arguments(command, file, sandbox):
    """Returns the arguments of vknerf."""
    return {
        "resume": ["train", "--resume", file, "--steps", STEPS, "--quiet", "--out", sandbox.path("run")],
        "eval": ["eval", file, "--quiet"],
        "init": [*sandbox.training("--init", file, steps=16)],
        "mesh": ["export", file, "--mesh", sandbox.path("m.ply"), "--resolution", 32],
        "points": ["export", file, "--points", sandbox.path("p.ply"), "--count", 1000],
        "render": ["render", file, "--out", sandbox.path("pictures"), "--orbit", 2, "--quiet", "--maps",
                   "rgb,depth,normal,opacity"],
    }[command]


def check_finite(path):
    """Returns problems of the weights that a training has written."""
    data = faults.read_file(path)
    _, header = faults.parse_checkpoint(data)
    tensors = faults.checkpoint_tensors(path)
    problems = []
    for name in WEIGHTS:
        begin, end = header[name]["data_offsets"]
        values = struct.unpack(f"<{(end - begin) // 4}f", tensors[begin:end])
        if not all(map(math.isfinite, values)):
            problems.append(f"{name} is not finite after the training")
    return problems


def try_case(case, sandbox):
    name, command = case
    file = sandbox.path("mutated.safetensors")
    faults.write_file(file, files_of(faults.model_run(sandbox))[name]())
    ended = sandbox.run(*arguments(command, file, sandbox), timeout=SECONDS)
    codes = [faults.DONE, faults.BAD_INPUT]
    if "huge" in name or "." in name:
        # Settings that need more memory than any machine has are no bad input.
        codes += [faults.FAILED, faults.NO_DEVICE]
    elif command in ("resume", "init") and ("diverged" in ended.err or "no step was taken" in ended.err):
        # Finite but absurd numbers, such as moments of 1e38.
        codes.append(faults.FAILED)
    problems = faults.check_refused(ended, codes)
    if name.split()[0] in WEIGHTS and name.endswith((" all nan", " all inf", " all -inf", " all ff")):
        problems += [] if ended.code == faults.BAD_INPUT else ["weights that are not finite are accepted"]
    if command == "resume" and ended.code == faults.DONE:
        step, wrong = faults.check_run(sandbox.path("run"))
        problems += wrong + (check_finite(sandbox.path("run", "checkpoint.safetensors")) if step is not None else [])
    return faults.Outcome(problems, {"code": ended.code, "said": ended.last_line()})
