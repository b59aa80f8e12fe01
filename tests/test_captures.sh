#!/bin/sh
# Tests tools/captures.py: two short trainings of the bundled scene, then a fake vknerf whose results are known.
set -u
source=${VKNERF_SOURCE_DIR:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR="$work"
failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

contains() { # FILE PATTERN
    grep -qE -- "$2" "$1" || fail "$1: '$2' is not in it: $(head -c 3000 "$1")"
}

compare() { # CODE ARGUMENT ...
    wanted=$1
    shift
    "$source/tools/captures.py" "$@" >"$work/out" 2>"$work/said"
    code=$?
    [ "$code" = "$wanted" ] || fail "$*: exit code $code: $(cat "$work/out" "$work/said")"
}

# ---- two trainings -------------------------------------------------------------------------------

small='--set grid.levels=4 --set batch.samples=1024 --set batch.max_rays=256 --set march.resolution=16 --set grid.log2_entries=14'
compare 0 "$source/assets/demo" --program "${VKNERF_BIN:?}" --seconds 0.5 --downscale 4 --options "$small" \
    --json "$work/results.json" --alternatives 'black background: --background black'
contains "$work/out" '^demo \(32x32 pixels, downscale 4\)$'
contains "$work/out" '^defaults +[0-9]+\.[0-9]{2} +0\.[0-9]{4}'
contains "$work/out" '^black background +[0-9]+\.[0-9]{2} +0\.[0-9]{4}'
python3 - "$work/results.json" <<'CHECK' || fail "results.json: $(cat "$work/results.json")"
import json, sys
results = json.load(open(sys.argv[1]))["results"]
assert [result["alternative"] for result in results] == ["defaults", "black background"]
assert all(result["psnr"] > 5 and 0 < result["ssim"] < 1 and result["step"] > 0 and result["seed"] == 1
           for result in results)
CHECK
[ "$(find "$work" -name run)" = "" ] || fail "runs are left"

# ---- known results -------------------------------------------------------------------------------

# PSNR: 20, and 1 more for each tenfold of the time and each seed; with "--better" 1 more, with "--worse" 1 less for
# each tenfold of the time, with "--untested" none. "--stop" waits for a signal, "--refuse" fails.
cat >"$work/vknerf" <<'FAKE'
#!/usr/bin/env python3
import json, math, os, sys, time
words = sys.argv[1:]
if words[0] == "info":
    if len(words) == 2:
        print(json.dumps({"devices": [{"chosen": True, "type": os.environ.get("DEVICE", "cpu")}]}))
    elif os.path.basename(words[1]) == "broken":
        print("broken: cut off", file=sys.stderr)
        sys.exit(2)
    else:
        print(json.dumps({"sizes": [{"width": 800, "height": 1900}]}))
    sys.exit(0)
if "--refuse" in words:
    print("a warning\nno such setting", file=sys.stderr)
    sys.exit(2)
if "--stop" in words:
    open(os.environ["TMPDIR"] + "/started", "w").close()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        sys.exit(130)
value = {words[i]: words[i + 1] for i in range(1, len(words) - 1)}
assert value["--downscale"] == os.environ["FACTOR"], words
longer = math.log10(float(value["--seconds"]))
psnr = 20 + int(value["--seed"]) + (("--better" in words) + (-longer if "--worse" in words else longer))
os.makedirs(value["--out"])
with open(value["--out"] + "/summary.json", "w") as file:
    json.dump({"psnr": None if "--untested" in words else psnr, "ssim": None if "--better" in words else 0.5, "step": 1}, file)
FAKE
chmod +x "$work/vknerf"
mkdir -p "$work/captures/beach" "$work/captures/broken" "$work/captures/wood"
echo file >"$work/captures/README"
printf '# a table\n\nbetter: --better\nworse: --worse\n' >"$work/table"
export FACTOR=10
compare 0 --captures "$work/captures" --program "$work/vknerf" --seconds 100,10 --seeds 1,3 --alternatives "$work/table"
contains "$work/said" '^broken is left out: broken: cut off$'
contains "$work/said" '^wood, worse, 100 s, seed 3: 21.00 dB$'
contains "$work/out" '^beach \(80x190 pixels, downscale 10\)$'
contains "$work/out" '^ +PSNR 10 s +SSIM +PSNR 100 s +SSIM$'
contains "$work/out" '^defaults +23.00  0.5000! +24.00  0.5000!$'
contains "$work/out" '^better +24.00 +- +25.00 +-$'
contains "$work/out" '^beach, 10 s: the defaults are 1.00 dB below better$'
contains "$work/out" '^wood, worse: 1.00 dB lower after 100 s than after 10 s$'
[ "$(grep -c 'lower after' "$work/out")" = 2 ] || fail "lower: $(cat "$work/out")"

# A setting that is not better; a failure; a launcher; a GPU; a chosen scene and factor.
FACTOR=1 DEVICE=discrete compare 1 --captures "$work/captures" --only '^wo' --program "$work/vknerf" --launcher env \
    --alternatives 'same:' --alternatives 'refused: --refuse'
contains "$work/out" '^refused +- +-$'
contains "$work/out" '^nothing is worse than it should be$'
contains "$work/out" '^failed: wood, refused: no such setting$'
! grep -q beach "$work/out" || fail "--only: $(cat "$work/out")"
FACTOR=4 compare 0 "$work/captures/beach" --program "$work/vknerf" --downscale 4 --alternatives 'untested: --untested'
contains "$work/said" '^beach, untested, 60 s, seed 1: no test views$'
contains "$work/out" '^untested +- +0.5000$'
compare 2 "$work/captures/beach" --program "$work/vknerf" --downscale 0
compare 2 "$work/captures/beach" --program "$work/none"
compare 2 --captures "$work/none" --program "$work/vknerf"
compare 2 "$work/captures/broken" --program "$work/vknerf"
compare 2 "$work/captures/beach" --program "$work/vknerf" --alternatives nonsense
compare 2 "$work/captures/beach" --program "$work/vknerf" --seconds soon

# Ctrl-C keeps the results so far.
python3 - "$source/tools/captures.py" "$work" >"$work/out" <<'INTERRUPT' || fail "interrupted: $(cat "$work/out")"
import os, signal, subprocess, sys, time
tool, work = sys.argv[1:]
command = [tool, work + "/captures/beach", "--program", work + "/vknerf", "--seconds", "10",
           "--json", work + "/part.json", "--alternatives", "stopped: --stop"]
process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
while not os.path.exists(work + "/started"):
    time.sleep(0.05)
os.killpg(process.pid, signal.SIGINT)
text = process.communicate()[0]
assert process.returncode == 130 and "defaults" in text and "22.00" in text, (process.returncode, text)
assert "22.0" in open(work + "/part.json").read()
INTERRUPT

[ "$failures" = 0 ] || exit 1
