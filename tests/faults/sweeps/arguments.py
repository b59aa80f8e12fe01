"""Tests hostile arguments and camera paths."""
import functools
import json
import os

import faults

HOLDS = """render and export do what is asked or refuse it in one line, within seconds; nothing crashes or hangs."""
SHORT = 1
SECONDS = 60.0
ORBITS = ("0", "-1", "1e9", "4294967296", "99999999999999999999", "nan", "1.5", "", " 5", "0x10", "5x")
SIZES = ("0", "16385", "1000000", "4294967295", "-5")
LOOKING = {"position": [3, 0, 1], "look_at": [0, 0, 0]}
ACROSS = [LOOKING, {"position": [0, 3, 2], "look_at": [0, 0, 0]}]


def numbers_of(sandbox):
    """Returns options with numbers out of range, and options that do not fit together."""
    run, mesh, points = faults.model_run(sandbox), sandbox.path("a.ply"), sandbox.path("b.ply")
    orbit, full = ["render", run, "--quiet", "--out", sandbox.path("out"), "--orbit"], sandbox.path("full.ply")
    found = [[*orbit, count] for count in ORBITS]
    for size in SIZES:
        found += [[*orbit, "1", "--width", size], [*orbit, "1", "--height", size, "--width", "16"]]
    found += [[*orbit, "1", "--width", "16384", "--height", "1"], [*orbit, "1", "--supersample", "3"],
              [*orbit, "1", "--maps", "rgb,rgb,foo"], [*orbit, "1", "--maps", ""]]
    for count in ("0", "1", "100000", "4294967296", "-3"):
        found += [["export", run, "--mesh", mesh, "--resolution", count], ["export", run, "--points", points, "--count",
                                                                            count]]
    for crop in ("1,1,1,0,0,0", "nan,0,0,1,1,1", "-1e30,-1e30,-1e30,1e30,1e30,1e30"):
        found.append(["export", run, "--mesh", mesh, "--crop", crop, "--resolution", "32"])
    for threshold in ("nan", "-1"):
        found.append(["export", run, "--mesh", mesh, "--threshold", threshold, "--resolution", "32"])
    for size in ("0", "1", "100", "16385", "4294967295", "-5"):
        found.append(["export", run, "--mesh", sandbox.path("a.glb"), f"--texture={size}", "--resolution", "32"])
    for count in ("0", "1", "2", "-3"):
        found.append(["export", run, "--splats", points, "--count", count])
    found += [["export", run, "--splats", full, "--count", "100"], ["export", run, "--splats", sandbox.path("b.glb")]]
    return found + [["export", run, "--mesh", full, "--resolution", "32"],
                    ["export", run, "--mesh", "/proc/x.ply", "--resolution", "32"],
                    ["export", run, "--points", full, "--count", "100"]]


@functools.lru_cache(maxsize=None)
def camera_paths():
    """Returns texts of camera paths by name."""
    odd = {"a billion frames": {"frames": 10**9, "fps": 1, "keyframes": ACROSS},
           "1e300 seconds": {"seconds": 1e300, "fps": 30, "keyframes": ACROSS},
           "a billion a second": {"seconds": 1000, "fps": 1e9, "keyframes": ACROSS},
           "one position": {"frames": 2, "keyframes": [{"position": [0, 0, 0], "look_at": [0, 0, 0]}] * 2},
           "up along the view": {"frames": 2, "keyframes": [
               {"position": [0, 0, 1], "look_at": [0, 0, 0], "up": [0, 0, 1]},
               {"position": [0, 0, 2], "look_at": [0, 0, 0], "up": [0, 0, 0]}]},
           "angles": {"frames": 2, "keyframes": [{"position": [0, 0, 1], "look_at": [0, 0, 0], "fov": 180},
                                                 {"position": [0, 1, 2], "look_at": [0, 0, 0], "fov": -1}]},
           "far": {"frames": 2, "keyframes": [{"position": [1e308, 0, 1], "look_at": [0, 0, 0]},
                                              {"position": [-1e308, 1, 2], "look_at": [0, 0, 0]}]},
           "size": {"frames": 2, "width": 10**9, "height": 10**9, "keyframes": ACROSS},
           "a million keyframes": {"frames": 2, "keyframes": [LOOKING] * 10**6},
           "empty": {}, "array": [], "null": None, "no keyframes": {"keyframes": []},
           "one keyframe": {"frames": 3, "keyframes": [LOOKING]}}
    return {**{name: json.dumps(path) for name, path in odd.items()}, "deep": "[" * 100000}


def cases(shared):
    return [["option", n] for n in range(len(numbers_of(shared)))] + [["path", name] for name in camera_paths()]


def try_case(case, sandbox):
    kind, name = case
    os.symlink("/dev/full", sandbox.path("full.ply"))
    if kind == "option":
        arguments = numbers_of(sandbox)[name]
    else:
        faults.write_file(sandbox.path("path.json"), camera_paths()[name].encode())
        arguments = ["render", faults.model_run(sandbox), "--out", sandbox.path("out"), "--path",
                     sandbox.path("path.json"), "--width", "16", "--quiet"]
    ended = sandbox.run(*arguments, timeout=SECONDS)
    full = sandbox.path("full.ply") in arguments
    problems = faults.check_ended(ended, (faults.FAILED,) if full else (faults.DONE, faults.BAD_INPUT))
    if ended.code == faults.BAD_INPUT:
        problems += faults.check_refused(ended)
    if faults.leftovers(sandbox.folder):
        problems.append(f"temporaries: {faults.leftovers(sandbox.folder)}")
    facts = {"code": ended.code, "said": ended.last_line(), "arguments": [arguments[0], *arguments[2:]]}
    return faults.Outcome(problems, facts)
