#!/usr/bin/env python3
"""tools/captures.py [OPTION ...] [SCENE ...]

Compares the default settings with alternatives on many captures. Trains each scene with the defaults and with each
alternative, by turns, for equal times and with equal seeds. Prints tables of the means of PSNR and SSIM, and reports
  - defaults that are more than 0.2 dB below the best alternative;
  - settings whose PSNR is lower after a longer training than after a shorter one, by more than 0.05 dB.
Without SCENE all scenes in the folder of --captures are trained.

Options, with their defaults:
  --captures DIR          folder of scenes; ../shared/data beside the checkout, if it exists
  --only REGEX            only scenes whose names match
  --seconds LIST          durations of the trainings: 60
  --seeds LIST            seeds: 1
  --downscale K           factor by which images are reduced; auto: on CPU devices the longer side becomes about 200
                          pixels, on GPUs images are not reduced
  --alternatives WHAT     "NAME: OPTIONS of vknerf train", or a file of such lines; may be repeated, and replaces the
                          alternatives below
  --options "OPTIONS"     further options of every training, such as "--model dynamic"
  --json FILE             file for the results, replaced after each training
  --program PATH          vknerf; default: build/vknerf of the checkout
  --launcher "CMD"        command that runs the program; default: $VKNERF_TEST_LAUNCHER, else none. On a machine without
                          a GPU: tools/lavapipe.sh
  --limit 900             seconds after which a training is killed, on top of its duration

Needs only Python's standard library and the program, so that it also runs on a machine where nothing can be built.
Ctrl-C ends the comparison and prints the results so far.

Alternatives:
"""
import argparse
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEFAULTS = "defaults"
ALTERNATIVES = {
    "occupancy": "--set march.sampling=occupancy",
    "proposal": "--set march.sampling=proposal",
    "no distortion": "--set loss.distortion=0",
    "distortion": "--set loss.distortion=0.003",
    "random background": "--background random",
    "white background": "--background white",
}
BELOW = 0.2  # dB of the defaults below the best alternative
LOWER = 0.05  # dB after a longer training below a shorter one
CPU_SIDE = 200  # pixels of the longer side on CPU devices


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(text):
    say(f"captures.py: {text}")
    sys.exit(2)


# ---- options -----------------------------------------------------------------------------------------------------


def numbers(text, kind):
    try:
        values = [kind(word) for word in text.split(",")]
    except ValueError:
        values = [-1]
    return values if min(values) >= 0 else die(f"{text}: not a list of numbers")


def read_alternatives(given):
    """Names and options of the alternatives, from lines "NAME: OPTIONS" and files of such lines."""
    lines = []
    for what in given:
        if os.path.isfile(what):
            with open(what, encoding="utf-8") as file:
                lines += [line.strip() for line in file]
        else:
            lines.append(what)
    found = {}
    for line in lines:
        name, colon, options = line.partition(":")
        if line and not line.startswith("#"):
            if not colon or not name.strip() or name.strip() == DEFAULTS:
                die(f"{line}: neither a file nor NAME: OPTIONS")
            found[name.strip()] = options.strip()
    return found or dict(ALTERNATIVES)


def parse():
    text = __doc__.rstrip() + "\n" + "\n".join(f"  {name}: {ALTERNATIVES[name]}" for name in ALTERNATIVES)
    beside = os.path.join(SOURCE, "..", "shared", "data")
    parser = argparse.ArgumentParser(usage=text, add_help=False)
    parser.add_argument("--captures", default=beside if os.path.isdir(beside) else "")
    parser.add_argument("--only", default="")
    parser.add_argument("--seconds", default="60")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--downscale", default="auto")
    parser.add_argument("--alternatives", action="append", default=[])
    parser.add_argument("--options", default="")
    parser.add_argument("--json", default="")
    parser.add_argument("--program", default=os.path.join(SOURCE, "build", "vknerf"))
    parser.add_argument("--launcher", default=os.environ.get("VKNERF_TEST_LAUNCHER", ""))
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("scenes", nargs="*")
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(text)
        sys.exit(0)
    options = parser.parse_args()
    options.seconds = sorted(set(numbers(options.seconds, float)))
    options.seeds = numbers(options.seeds, int)
    options.alternatives = {DEFAULTS: "", **read_alternatives(options.alternatives)}
    if options.downscale != "auto":
        options.downscale = numbers(options.downscale, int)[0] or die("--downscale 0: must be at least 1")
    options.command = [*shlex.split(options.launcher), options.program]
    return options


# ---- scenes ------------------------------------------------------------------------------------------------------


def information(command, *arguments):
    """The object that vknerf info --json prints, or the last line of its messages."""
    try:
        done = subprocess.run([*command, "info", *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
    except OSError as error:
        return str(error)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    return json.loads(done.stdout)


def is_cpu(command):
    devices = information(command)
    if isinstance(devices, str):
        die(devices)
    chosen = [device for device in devices["devices"] if device.get("chosen")]
    return not chosen or chosen[0]["type"] == "cpu"


def list_scenes(options):
    """Names, paths and downscale factors of the scenes that can be read."""
    paths = options.scenes
    if not paths and options.captures:
        if not os.path.isdir(options.captures):
            die(f"{options.captures}: not a folder")
        paths = [os.path.join(options.captures, name) for name in sorted(os.listdir(options.captures))]
    reduces = options.downscale == "auto" and is_cpu(options.command)
    scenes = []
    for path in paths:
        name = os.path.basename(os.path.normpath(path))
        if not re.search(options.only, name) or (not options.scenes and not os.path.isdir(path)):
            continue
        scene = information(options.command, path)
        if isinstance(scene, str):
            say(f"{name} is left out: {scene}")
            continue
        longer = max(scene["sizes"][0]["width"], scene["sizes"][0]["height"])
        downscale = max(1, round(longer / CPU_SIDE)) if reduces else 1
        scenes.append({"name": name, "path": path, "width": scene["sizes"][0]["width"],
                       "height": scene["sizes"][0]["height"],
                       "downscale": downscale if options.downscale == "auto" else options.downscale})
    return scenes or die("no scene to train on")


# ---- training ----------------------------------------------------------------------------------------------------


def train(options, scene, alternative, seconds, seed):
    """Trains once. The result has psnr and ssim, or else the failure."""
    result = {"scene": scene["name"], "alternative": alternative, "seconds": seconds, "seed": seed}
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        command = [*options.command, "train", scene["path"], "--out", run, "--seconds", f"{seconds:g}", "--seed",
                   str(seed), "--downscale", str(scene["downscale"]), "--quiet", *shlex.split(options.options),
                   *shlex.split(options.alternatives[alternative])]
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=seconds + options.limit)
        except subprocess.TimeoutExpired:
            return result | {"failure": f"killed after {seconds + options.limit:g} s"}
        if done.returncode == 130:
            raise KeyboardInterrupt
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
            return result | {"failure": lines[-1]}
        with open(os.path.join(run, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
    return result | {key: summary.get(key) for key in ("psnr", "ssim", "step", "device")}


def train_all(options, scenes, results):
    """Appends a result for each training. All alternatives of a scene follow each other."""
    for seed in options.seeds:
        for scene in scenes:
            for seconds in options.seconds:
                for alternative in options.alternatives:
                    result = train(options, scene, alternative, seconds, seed)
                    results.append(result)
                    psnr = result.get("psnr")
                    quality = result.get("failure") or ("no test views" if psnr is None else f"{psnr:.2f} dB")
                    say(f"{scene['name']}, {alternative}, {seconds:g} s, seed {seed}: {quality}")
                    save(options, scenes, results)


# ---- results -----------------------------------------------------------------------------------------------------


def mean_of(results, scene, alternative, seconds, key):
    """The mean over the seeds; None without a result."""
    values = [result[key] for result in results if result.get(key) is not None and result["scene"] == scene["name"] and
              result["alternative"] == alternative and result["seconds"] == seconds]
    return statistics.mean(values) if values else None


def psnrs_of(options, results, scene, seconds):
    means = {name: mean_of(results, scene, name, seconds, "psnr") for name in options.alternatives}
    return {name: mean for name, mean in means.items() if mean is not None}


def find_worse(options, scenes, results):
    """Sentences about defaults below an alternative, and about settings that get worse with time."""
    found = []
    for scene in scenes:
        longest = {}  # seconds and PSNR of the best shorter training
        for seconds in options.seconds:
            means = psnrs_of(options, results, scene, seconds)
            best = max(means, key=means.get) if means else DEFAULTS
            if DEFAULTS in means and means[best] - means[DEFAULTS] > BELOW:
                found.append(f"{scene['name']}, {seconds:g} s: the defaults are {means[best] - means[DEFAULTS]:.2f} dB "
                             f"below {best}")
            for name, mean in means.items():
                if name in longest and longest[name][1] - mean > LOWER:
                    found.append(f"{scene['name']}, {name}: {longest[name][1] - mean:.2f} dB lower after {seconds:g} s "
                                 f"than after {longest[name][0]:g} s")
                longest[name] = max(longest.get(name, (seconds, mean)), (seconds, mean), key=lambda at: at[1])
    return found


def save(options, scenes, results):
    if not options.json:
        return
    document = {"scenes": scenes, "options": options.options, "alternatives": options.alternatives, "results": results,
                "worse": find_worse(options, scenes, results)}
    with open(options.json + ".new", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
    os.replace(options.json + ".new", options.json)


def print_table(options, scene, results):
    size = f"{scene['width'] // scene['downscale']}x{scene['height'] // scene['downscale']}"
    print(f"\n{scene['name']} ({size} pixels, downscale {scene['downscale']})")
    width = max(map(len, options.alternatives))
    print(" " * width + "".join(f"  {f'PSNR {seconds:g} s':>12}    SSIM " for seconds in options.seconds).rstrip())
    for name in options.alternatives:
        line = f"{name:{width}}"
        for seconds in options.seconds:
            means = psnrs_of(options, results, scene, seconds)
            ssim = mean_of(results, scene, name, seconds, "ssim")
            is_worse = name == DEFAULTS and name in means and max(means.values()) - means[name] > BELOW
            line += f"  {means[name]:12.2f}" if name in means else f"  {'-':>12}"
            line += (f"  {ssim:6.4f}" if ssim is not None else f"  {'-':>6}") + ("!" if is_worse else " ")
        print(line.rstrip())


def main():
    options = parse()
    scenes, results, code = list_scenes(options), [], 0
    try:
        train_all(options, scenes, results)
    except KeyboardInterrupt:
        say("interrupted: the results so far")
        code = 130
    for scene in scenes:
        print_table(options, scene, results)
    failures = [result for result in results if "failure" in result]
    worse = find_worse(options, scenes, results)
    print("".join(f"\n{line}" for line in worse or ["nothing is worse than it should be"]))
    for result in failures:
        print(f"failed: {result['scene']}, {result['alternative']}: {result['failure']}")
    save(options, scenes, results)
    sys.exit(code or (1 if failures else 0))


if __name__ == "__main__":
    main()
